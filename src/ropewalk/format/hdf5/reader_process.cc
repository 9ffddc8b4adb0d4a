#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/format/hdf5/reader_process_internal.h"

namespace ropewalk::hdf5_internal {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Owns a descriptor.
struct Fd {
  int fd = -1;
  ~Fd() {
    if (fd >= 0) ::close(fd);
  }
};

/// Returns a duplicate above the numbers that the child uses, so that none is overwritten by
/// another.
int duplicate_high(int fd) { return ::fcntl(fd, F_DUPFD_CLOEXEC, 16); }

struct SpawnActions {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnActions() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
};

}  // namespace

ReaderProcess::~ReaderProcess() {
  end();
  if (shared_ != nullptr) ::munmap(shared_, shared_bytes_);
  if (shared_fd_ >= 0) ::close(shared_fd_);
}

void ReaderProcess::end() {
  if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }
}

Status ReaderProcess::start(int file_fd, const Hdf5ReaderOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  options_ = options;
  if (options_.program.empty()) {
    ROPEWALK_ASSIGN_OR_RETURN(options_.program, hdf5_reader_program());
  }
  std::array<int, 2> pair{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0) {
    return errno_status(errno, "make a socket pair for the HDF5 reader");
  }
  socket_ = pair[0];
  const Fd theirs{pair[1]};
  shared_fd_ = ::memfd_create("ropewalk-hdf5", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // It may grow, never shrink: a child that went wrong cannot take memory away under our feet.
  if (shared_fd_ < 0 || ::fcntl(shared_fd_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) {
    return errno_status(errno, "make shared memory for the HDF5 reader");
  }
  const Fd socket_high{duplicate_high(theirs.fd)};
  const Fd file_high{duplicate_high(file_fd)};
  const Fd shared_high{duplicate_high(shared_fd_)};
  if (socket_high.fd < 0 || file_high.fd < 0 || shared_high.fd < 0) {
    return errno_status(errno, "duplicate descriptors for the HDF5 reader");
  }

  SpawnActions spawn;
  int error = 0;
  for (const int standard : {0, 1, 2}) {
    if (error == 0) {
      error = posix_spawn_file_actions_addopen(&spawn.actions, standard, "/dev/null", O_RDWR, 0);
    }
  }
  if (error == 0)
    error = posix_spawn_file_actions_adddup2(&spawn.actions, socket_high.fd, kSocketFd);
  if (error == 0) error = posix_spawn_file_actions_adddup2(&spawn.actions, file_high.fd, kFileFd);
  if (error == 0)
    error = posix_spawn_file_actions_adddup2(&spawn.actions, shared_high.fd, kSharedFd);
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&spawn.actions, kSharedFd + 1);
  // A group of its own: Ctrl-C reaches us, and we end the child. Signals as in a fresh process.
  if (error == 0) error = posix_spawnattr_setpgroup(&spawn.attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  sigset_t all;
  sigfillset(&all);
  if (error == 0) error = posix_spawnattr_setsigmask(&spawn.attributes, &none);
  if (error == 0) error = posix_spawnattr_setsigdefault(&spawn.attributes, &all);
  if (error == 0) {
    error = posix_spawnattr_setflags(
        &spawn.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  std::string program = options_.program.string();
  std::string memory = std::to_string(options_.max_address_space_bytes);
  std::string seconds = std::to_string(options_.max_cpu.count());
  std::array<char*, 4> arguments{program.data(), memory.data(), seconds.data(), nullptr};
  std::array<char*, 1> environment{nullptr};
  if (error == 0) {
    error = ::posix_spawn(&pid_, program.c_str(), &spawn.actions, &spawn.attributes,
                          arguments.data(), environment.data());
  }
  if (error != 0) {
    pid_ = -1;
    return errno_status(error, fmt::format("start the HDF5 reader {}", program));
  }
  return ok_status();
}

Status ReaderProcess::give_up(Status reason) {
  end();
  broken_ = std::move(reason);
  return broken_;
}

Status ReaderProcess::died(std::string_view what) {
  int status = 0;
  pid_t ended = 0;
  // The socket closes a moment before the process can be waited for.
  ::kill(pid_, SIGKILL);
  while ((ended = ::waitpid(pid_, &status, 0)) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  std::string how = "ended unexpectedly";
  if (ended > 0 && WIFSIGNALED(status)) {
    const int signal = WTERMSIG(status);
    const char* name = sigabbrev_np(signal);
    how = signal == SIGXCPU
              ? fmt::format("used more than {} s of processor time", options_.max_cpu.count())
              : fmt::format("ended by SIG{}", name != nullptr ? name : "?");
  } else if (ended > 0 && WIFEXITED(status)) {
    how = fmt::format("ended with exit code {}", WEXITSTATUS(status));
  }
  return give_up(data_loss(fmt::format(
      "{}: the HDF5 reader process {}; the file is damaged or asks for more than the limits allow",
      what, how)));
}

Status ReaderProcess::receive_exactly(MutableByteSpan out, std::string_view what,
                                      std::int64_t deadline_ns) {
  while (!out.empty()) {
    const std::int64_t left_ms =
        std::max<std::int64_t>(0, (deadline_ns - now_ns() + 999'999) / 1'000'000);
    pollfd watch{socket_, POLLIN, 0};
    const int ready =
        ::poll(&watch, 1, static_cast<int>(std::min<std::int64_t>(left_ms, 1'000'000)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return give_up(errno_status(errno, "wait for the HDF5 reader"));
    if (ready == 0) {
      if (now_ns() < deadline_ns) continue;
      return give_up(data_loss(
          fmt::format("{}: no answer from the HDF5 reader within {} ms; the file is damaged or its "
                      "storage does not answer",
                      what, options_.max_wait.count())));
    }
    const ssize_t n = ::recv(socket_, out.data(), out.size(), 0);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (n <= 0) return died(what);
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return ok_status();
}

Status ReaderProcess::receive(std::string_view what) {
  const std::int64_t deadline_ns =
      now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(options_.max_wait).count();
  std::array<std::uint8_t, 4> head{};
  ROPEWALK_RETURN_IF_ERROR(receive_exactly(head, what, deadline_ns));
  std::uint32_t size = 0;
  std::memcpy(&size, head.data(), sizeof size);
  if (size > kMaxResponseBytes) {
    return give_up(
        data_loss(fmt::format("{}: the HDF5 reader answers with {} bytes, at most {} are taken",
                              what, size, kMaxResponseBytes)));
  }
  response_.resize(size);
  return receive_exactly(response_, what, deadline_ns);
}

Result<ByteSpan> ReaderProcess::call(ByteSpan request, std::string_view what) {
  if (!broken_.ok()) return broken_;
  if (request.size() > kMaxRequestBytes) {
    return invalid_argument(fmt::format("{}: the name is too long", what));
  }
  if (!send_message(socket_, request).ok()) return died(what);
  ROPEWALK_RETURN_IF_ERROR(receive(what));
  auto fields = open_response(response_);
  if (!fields.ok()) return fields.status().with_context(what);
  return fields;
}

Result<std::uint64_t> ReaderProcess::reserve_shared(std::uint64_t bytes) {
  if (bytes <= shared_bytes_) return shared_bytes_;
  constexpr std::uint64_t kStep = 1U << 20;
  const std::uint64_t wanted = (bytes + kStep - 1) / kStep * kStep;
  if (::ftruncate(shared_fd_, static_cast<off_t>(wanted)) != 0) {
    return errno_status(errno,
                        fmt::format("set aside {} bytes shared with the HDF5 reader", wanted));
  }
  void* mapped = ::mmap(nullptr, wanted, PROT_READ, MAP_SHARED, shared_fd_, 0);
  if (mapped == MAP_FAILED) {
    return errno_status(errno, fmt::format("map {} bytes shared with the HDF5 reader", wanted));
  }
  if (shared_ != nullptr) ::munmap(shared_, shared_bytes_);
  shared_ = static_cast<std::uint8_t*>(mapped);
  shared_bytes_ = wanted;
  return shared_bytes_;
}

}  // namespace ropewalk::hdf5_internal
