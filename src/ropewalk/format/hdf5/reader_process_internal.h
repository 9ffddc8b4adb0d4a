#pragma once
// Private: the child process of one Hdf5Reader: started, asked, watched, ended.
#include <sys/types.h>

#include <string>

#include "ropewalk/format/hdf5/protocol_internal.h"
#include "ropewalk/format/hdf5/reader.h"

namespace ropewalk::hdf5_internal {

/// Not thread-safe. Destroying it ends the child.
class ReaderProcess {
 public:
  ReaderProcess() = default;
  ReaderProcess(const ReaderProcess&) = delete;
  ReaderProcess& operator=(const ReaderProcess&) = delete;
  ~ReaderProcess();

  /// Starts the child on the file behind `file_fd`, which stays the caller's.
  Status start(int file_fd, const Hdf5ReaderOptions& options);
  /// Sends a request and returns the fields of the answer. `what` says in an error what was being
  /// read. Lifetime: the view lives until the next call.
  Result<ByteSpan> call(ByteSpan request, std::string_view what);
  /// Makes at least `bytes` of shared memory available and returns how much there is.
  Result<std::uint64_t> reserve_shared(std::uint64_t bytes);
  ByteSpan shared() const { return {shared_, shared_bytes_}; }

 private:
  Status receive(std::string_view what);
  Status receive_exactly(MutableByteSpan out, std::string_view what, std::int64_t deadline_ns);
  /// Ends the child, remembers `reason` and returns it from now on.
  Status give_up(Status reason);
  Status died(std::string_view what);
  void end();

  Hdf5ReaderOptions options_;
  pid_t pid_ = -1;
  int socket_ = -1;
  int shared_fd_ = -1;
  std::uint8_t* shared_ = nullptr;
  std::uint64_t shared_bytes_ = 0;
  Bytes response_;
  Status broken_;
};

}  // namespace ropewalk::hdf5_internal
