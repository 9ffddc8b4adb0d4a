#pragma once
// Source and Sink: one large file, read at any place or written front to back.
// Data code reaches local bytes through this header, store.h and staged_directory.h, and in no
// other way; a fault-injecting build of these functions is what crash tests stand on (fault.h).
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/limits.h"

namespace ropewalk {

/// A file that can be read at any offset. Threads: const members may run concurrently.
class Source {
 public:
  virtual ~Source() = default;
  /// Units: bytes. The size at open; a file that shrinks meanwhile gives data_loss on read.
  virtual std::uint64_t size() const = 0;
  /// The name for messages: a path or URL.
  virtual const std::string& name() const = 0;
  /// Fills `out` from `offset`. Errors: out_of_range past the end, unavailable, data_loss.
  virtual Status read_at(std::uint64_t offset, MutableByteSpan out) const = 0;
  /// Returns the whole file as a view when it is mapped into memory, else an empty span.
  virtual ByteSpan mapped() const { return {}; }
};

/// A file that is written strictly forward. Not thread-safe.
/// A sink destroyed without `close()` leaves the bytes appended so far.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Status append(ByteSpan bytes) = 0;
  /// Appends the parts in a row: in one system call where they do not fit a buffer.
  virtual Status append_parts(std::span<const ByteSpan> parts);
  virtual Status flush() { return ok_status(); }  ///< hands what is buffered to the system
  virtual Status sync() = 0;  ///< everything appended is durable when it returns OK
  /// As sync(), but times and the like may be lost.
  virtual Status sync_data() { return sync(); }
  virtual Status close() = 0;  ///< idempotent; the file is complete
  virtual std::uint64_t size() const = 0;
  virtual const std::string& name() const = 0;
};

struct OpenOptions {
  bool map = false;  ///< memory-map the file; a file truncated meanwhile then ends the process
};

/// Errors: not_found, permission_denied, failed_precondition for anything but a regular file.
Result<std::unique_ptr<Source>> open_source(const std::filesystem::path& path,
                                            OpenOptions options = {});
/// A source over bytes in memory.
std::unique_ptr<Source> memory_source(Bytes bytes, std::string name = "memory");
/// A source over bytes that somebody else keeps alive.
std::unique_ptr<Source> view_source(ByteSpan bytes, std::string name = "memory");

/// Creates `path` (which must not exist) for writing. Appends go through a buffer of 1 MiB.
Result<std::unique_ptr<Sink>> create_sink(const std::filesystem::path& path);
/// Opens an existing file for writing behind its first `size` bytes; what stands there is cut off.
/// Errors: not_found; failed_precondition when the file is shorter.
Result<std::unique_ptr<Sink>> continue_sink(const std::filesystem::path& path, std::uint64_t size);
/// A sink that appends to `out`. Lifetime: `out` must outlive it.
std::unique_ptr<Sink> memory_sink(Bytes& out, std::string name = "memory");

/// Reads a whole small file. Errors: as open_source; resource_exhausted above `max_bytes`.
Result<Bytes> read_file(const std::filesystem::path& path, std::uint64_t max_bytes);
Result<std::string> read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes);

/// Creates `path` with `bytes`, fsynced; the caller fsyncs the directory (sync_tree does).
Status write_new_file(const std::filesystem::path& path, ByteSpan bytes);
/// Replaces `path` atomically: temporary name, write, fsync, rename, fsync of the directory.
Status replace_file(const std::filesystem::path& path, ByteSpan bytes);
/// Writes `bytes` over what `path` has at `offset`, and makes them durable: for a header that is
/// only known when the rest is written. Errors: out_of_range past the end of the file.
Status overwrite_durably(const std::filesystem::path& path, std::uint64_t offset, ByteSpan bytes);
/// Appends `bytes` and makes them durable with fdatasync before it returns.
Status append_file_durably(const std::filesystem::path& path, ByteSpan bytes);

}  // namespace ropewalk
