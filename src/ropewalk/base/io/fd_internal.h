#pragma once
// A file descriptor that closes itself, and the loops around interrupted calls.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/unsynced_internal.h"

namespace ropewalk {

inline constexpr std::size_t kIoBlockBytes = std::size_t{1} << 20;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_ = -1;
};

template <typename Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

inline std::string parent_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path().string() : ".";
}

/// Writes all of `bytes` at `offset`, which names the place in messages.
Status write_all(int fd, ByteSpan bytes, std::uint64_t offset, const std::string& name);
/// Writes the parts in a row, with as few calls as the system allows.
Status write_all_parts(int fd, std::span<const ByteSpan> parts, std::uint64_t offset,
                       const std::string& name);
/// Creates a file for writing; `name` must not exist.
Result<Fd> create_file(const std::filesystem::path& path);
/// Fsyncs a file, with its fault point.
Status fsync_file(int fd, const std::string& name, bool data_only = false);

}  // namespace ropewalk
