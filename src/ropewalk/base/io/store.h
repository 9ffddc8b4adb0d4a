#pragma once
// A Store maps keys to byte values: a directory, a bucket, an SFTP tree, or memory.
// Many values; for one large file see file.h. Every implementation passes store_suite
// (tests/support).
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk {

/// Half-open byte range [offset, offset + length); `length` of npos means to the end.
struct ByteRange {
  static constexpr std::uint64_t npos = ~std::uint64_t{0};
  std::uint64_t offset = 0;
  std::uint64_t length = npos;
};

struct StoreEntry {
  std::string key;
  std::uint64_t size_bytes = 0;
};

/// Keys are relative, '/'-separated, without "." and ".." parts; others give invalid_argument.
/// Threads: const members may run concurrently; the caller serializes writes to one key.
class Store {
 public:
  virtual ~Store() = default;

  /// The name for messages: a path or URL.
  virtual const std::string& name() const = 0;
  /// Returns the size of a value, or nullopt if `key` is absent (not an error).
  virtual Result<std::optional<std::uint64_t>> size(std::string_view key) const = 0;
  /// Returns the bytes of `range` (clamped to the value), or nullopt if `key` is absent.
  /// Errors: unavailable (a retry may help), permission_denied, resource_exhausted (max_bytes).
  virtual Result<std::optional<Bytes>> get(std::string_view key, ByteRange range = {},
                                           std::uint64_t max_bytes = 1ULL << 30) const = 0;
  /// Replaces `key`: a reader sees the old value or the whole new one. Durable on return.
  virtual Status put(std::string_view key, ByteSpan value) = 0;
  /// Creates `key` unless it exists. Errors: already_exists; unimplemented where it cannot.
  virtual Status put_if_absent(std::string_view key, ByteSpan value) = 0;
  /// Lists keys that start with `prefix`, sorted.
  virtual Result<std::vector<StoreEntry>> list(std::string_view prefix) const = 0;
  /// Removes a key; an absent key is fine.
  virtual Status remove(std::string_view key) = 0;
};

/// A directory. Created on the first put.
Result<std::unique_ptr<Store>> local_store(const std::filesystem::path& root);
std::unique_ptr<Store> memory_store(std::string name = "memory");

/// Returns OK for a legal key, else invalid_argument that says which part is not.
Status validate_store_key(std::string_view key);

}  // namespace ropewalk
