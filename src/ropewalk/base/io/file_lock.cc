#include <sys/stat.h>

#include <array>

#include <fmt/format.h>

#include "ropewalk/base/io/fd_internal.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/process.h"

namespace ropewalk {
namespace {

Result<Fd> open_lock_file(const std::filesystem::path& path, FileLock::Mode mode) {
  // A shared lock asks for no right to write where the file is there already.
  if (mode == FileLock::Mode::shared) {
    Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
    if (fd) return fd;
    if (errno != ENOENT) return errno_status(errno, path.string() + ": lock");
  }
  Fd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd) return errno_status(errno, path.string() + ": lock");
  return fd;
}

struct flock lock_of(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// "host h, process 12, started …" from the text an exclusive holder wrote.
std::string describe_holder(int fd) {
  struct flock probe = lock_of(F_WRLCK);
  const bool probed = ::fcntl(fd, F_OFD_GETLK, &probe) == 0;
  if (probed && probe.l_type == F_RDLCK) return "another process, which reads";
  std::array<char, 512> text{};
  const ssize_t got = ::pread(fd, text.data(), text.size(), 0);
  const std::string_view holder(text.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t first = holder.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : holder.find(' ', first + 1);
  if (second == std::string_view::npos) return "another process";
  std::string_view since = holder.substr(second + 1);
  since = since.substr(0, since.find('\n'));
  return fmt::format("process {} on {}, started {}", holder.substr(first + 1, second - first - 1),
                     holder.substr(0, first), since);
}

Status write_holder(int fd, const std::string& name) {
  const ProcessIdentity self = this_process();
  const std::string text = fmt::format("{} {} {}\n", self.host, self.pid, self.started_at);
  // Written over, then cut: a file cut to nothing and written anew is flushed by some file systems
  // when it is closed, which costs milliseconds per lock.
  if (::pwrite(fd, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
    return errno_status(errno, name + ": lock");
  }
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return errno_status(errno, name + ": lock");
  if (info.st_size != static_cast<off_t>(text.size()) &&
      ::ftruncate(fd, static_cast<off_t>(text.size())) != 0) {
    return errno_status(errno, name + ": lock");
  }
  return ok_status();
}

}  // namespace

Result<FileLock> FileLock::acquire(const std::filesystem::path& path, Mode mode, bool wait) {
  ROPEWALK_RETURN_IF_ERROR(fault_point("io.lock").with_context(path.string() + ": lock"));
  ROPEWALK_ASSIGN_OR_RETURN(Fd fd, open_lock_file(path, mode));
  struct flock lock = lock_of(mode == Mode::exclusive ? F_WRLCK : F_RDLCK);
  if (retry_interrupted(
          [&] { return ::fcntl(fd.get(), wait ? F_OFD_SETLKW : F_OFD_SETLK, &lock); }) != 0) {
    if (errno != EAGAIN && errno != EACCES) return errno_status(errno, path.string() + ": lock");
    return unavailable(fmt::format("{}: locked by {}; try again when it is done", path.string(),
                                   describe_holder(fd.get())))
        .with_reason("LOCKED");
  }
  if (mode == Mode::exclusive) ROPEWALK_RETURN_IF_ERROR(write_holder(fd.get(), path.string()));
  return FileLock(fd.release());
}

FileLock::FileLock(FileLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileLock& FileLock::operator=(FileLock&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace ropewalk
