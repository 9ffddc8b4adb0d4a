// copy_file: the cheapest copy the file system offers that shares no inode with the original.
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "ropewalk/base/io/fd_internal.h"
#include "ropewalk/base/io/local_fs.h"

namespace ropewalk {
namespace {

using OnBytes = std::function<void(ByteSpan)>;

struct Copy {
  const Fd& from;
  const Fd& to;
  std::uint64_t size;
  std::string from_name;
  std::string to_name;
  const OnBytes& on_bytes;
  std::stop_token stop;

  Status check_stop() const {
    return stop.stop_requested() ? cancelled(to_name + ": copy stopped on request") : ok_status();
  }
  Status shrank(std::uint64_t at) const {
    return data_loss(fmt::format("{}: ends at byte {} although it had {} when the copy began",
                                 from_name, at, size));
  }

  // Reads the source front to back; writes the blocks too unless they are there already.
  Status read_blocks(bool write) const {
    const auto block = std::make_unique_for_overwrite<std::uint8_t[]>(static_cast<std::size_t>(
        std::min<std::uint64_t>(std::max<std::uint64_t>(size, 1), kIoBlockBytes)));
    for (std::uint64_t at = 0; at < size;) {
      ROPEWALK_RETURN_IF_ERROR(check_stop());
      const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(kIoBlockBytes, size - at));
      const ssize_t got = retry_interrupted(
          [&] { return ::pread(from.get(), block.get(), want, static_cast<off_t>(at)); });
      if (got < 0) return errno_status(errno, fmt::format("{}: read at offset {}", from_name, at));
      if (got == 0) return shrank(at);
      const ByteSpan bytes(block.get(), static_cast<std::size_t>(got));
      if (write) ROPEWALK_RETURN_IF_ERROR(write_all(to.get(), bytes, at, to_name));
      if (on_bytes) on_bytes(bytes);
      at += bytes.size();
    }
    return ok_status();
  }

  // Sets `done` when the kernel copied everything; clears it when it cannot copy between the two.
  Status copy_in_kernel(bool& done) const {
    done = false;
    ROPEWALK_RETURN_IF_ERROR(fault_point("io.write").with_context(to_name + ": write"));
    unsynced::will_write(to.get());
    for (std::uint64_t at = 0; at < size;) {
      ROPEWALK_RETURN_IF_ERROR(check_stop());
      const auto want =
          static_cast<std::size_t>(std::min<std::uint64_t>(4 * kIoBlockBytes, size - at));
      auto from_offset = static_cast<off_t>(at);
      auto to_offset = static_cast<off_t>(at);
      const ssize_t got = retry_interrupted([&] {
        return ::copy_file_range(from.get(), &from_offset, to.get(), &to_offset, want, 0);
      });
      if (got < 0 && at == 0 &&
          (errno == EXDEV || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)) {
        return ok_status();
      }
      if (got < 0) return errno_status(errno, fmt::format("{}: copy at offset {}", to_name, at));
      // Some file systems answer 0 where they cannot copy; a short source shows when it is read.
      if (got == 0 && at == 0) return ok_status();
      if (got == 0) return shrank(at);
      at += static_cast<std::uint64_t>(got);
    }
    done = true;
    return ok_status();
  }

  Status run() const {
    if (size > 0 && ::ioctl(to.get(), FICLONE, from.get()) == 0) {
      return on_bytes ? read_blocks(false) : ok_status();
    }
    bool done = false;
    if (!on_bytes) ROPEWALK_RETURN_IF_ERROR(copy_in_kernel(done));
    return done ? ok_status() : read_blocks(true);
  }
};

}  // namespace

Status copy_file(const std::filesystem::path& from, const std::filesystem::path& to,
                 const OnBytes& on_bytes, std::stop_token stop) {
  const std::string what = fmt::format("{}: copy to {}", from.string(), to.string());
  ROPEWALK_RETURN_IF_ERROR(fault_point("io.copy").with_context(what));
  const Fd source(retry_interrupted(
      [&] { return ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!source) return errno_status(errno, from.string() + ": open");
  struct stat s = {};
  if (::fstat(source.get(), &s) != 0) return errno_status(errno, from.string() + ": stat");
  if (!S_ISREG(s.st_mode)) {
    return failed_precondition(from.string() + ": copy: expected a regular file");
  }
  ROPEWALK_ASSIGN_OR_RETURN(const Fd target, create_file(to));
  const Copy copy{source,         target,      static_cast<std::uint64_t>(s.st_size),
                  from.string(),  to.string(), on_bytes,
                  std::move(stop)};
  Status status = copy.run();
  if (status.ok()) status = fsync_file(target.get(), to.string());
  if (!status.ok()) std::ignore = remove_file(to);
  return status;
}

}  // namespace ropewalk
