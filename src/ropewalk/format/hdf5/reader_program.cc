// ropewalk-hdf5-reader: the child process of Hdf5Reader. It sets its own limits, then answers
// requests (protocol_internal.h) about the one file it was given until its parent is gone. Whatever
// a damaged file makes the library do happens here, and ends here.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/format/hdf5/file_objects_internal.h"
#include "ropewalk/format/hdf5/protocol_internal.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::hdf5_internal;

// The address sanitizer reserves terabytes of address space.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif
#else
constexpr bool kSanitized = false;
#endif

void limit(__rlimit_resource resource, rlim_t soft, rlim_t hard) {
  const rlimit value{soft, hard};
  if (::setrlimit(resource, &value) != 0) std::exit(65);
}

/// Gives the next request its own budget of processor time, counted from now.
void renew_cpu_limit(rlim_t seconds) {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto so_far = static_cast<rlim_t>(used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1);
  limit(RLIMIT_CPU, so_far + seconds, RLIM_INFINITY);
}

bool receive(MutableByteSpan out) {
  while (!out.empty()) {
    const ssize_t n = ::recv(kSocketFd, out.data(), out.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return true;
}

/// The memory shared with the parent, mapped anew whenever it has grown.
class SharedMemory {
 public:
  Result<MutableByteSpan> get(std::uint64_t bytes) {
    if (bytes > size_) {
      if (data_ != nullptr) ::munmap(data_, size_);
      size_ = 0;
      void* mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, kSharedFd, 0);
      data_ = mapped == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(mapped);
      if (data_ == nullptr) return errno_status(errno, "map the shared memory");
      size_ = bytes;
    }
    return MutableByteSpan(data_, size_);
  }

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t size_ = 0;
};

Result<Bytes> answer(FileObjects& file, SharedMemory& shared, ByteSpan request) {
  Bytes out;
  ByteWriter writer(out);
  ByteCursor in(request);
  ROPEWALK_ASSIGN_OR_RETURN(const auto operation, in.read_le<std::uint8_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const std::string path, get_text(in));
  switch (static_cast<Operation>(operation)) {
    case Operation::open:
      ROPEWALK_RETURN_IF_ERROR(file.open(kFileFd));
      return out;
    case Operation::list: {
      ROPEWALK_ASSIGN_OR_RETURN(const auto names, file.list(path));
      writer.write_le(static_cast<std::uint32_t>(names.size()));
      for (const std::string& name : names) put_text(writer, name);
      return out;
    }
    case Operation::describe: {
      ROPEWALK_ASSIGN_OR_RETURN(const Hdf5ObjectInfo info, file.describe(path));
      put_info(writer, info);
      return out;
    }
    case Operation::read_rows: {
      ROPEWALK_ASSIGN_OR_RETURN(const auto begin, in.read_le<std::uint64_t>());
      ROPEWALK_ASSIGN_OR_RETURN(const auto end, in.read_le<std::uint64_t>());
      ROPEWALK_ASSIGN_OR_RETURN(const auto bytes, in.read_le<std::uint64_t>());
      ROPEWALK_ASSIGN_OR_RETURN(const auto shared_bytes, in.read_le<std::uint64_t>());
      ROPEWALK_ASSIGN_OR_RETURN(const MutableByteSpan memory, shared.get(shared_bytes));
      if (bytes > memory.size()) return internal("the shared memory is too small");
      ROPEWALK_RETURN_IF_ERROR(file.read_rows(path, begin, end, memory.first(bytes)));
      return out;
    }
    case Operation::read_texts: {
      ROPEWALK_ASSIGN_OR_RETURN(const auto max_bytes, in.read_le<std::uint64_t>());
      ROPEWALK_ASSIGN_OR_RETURN(
          const Hdf5Value value,
          file.read_texts(path, std::min<std::uint64_t>(max_bytes, kMaxResponseBytes / 2)));
      put_value(writer, value);
      return out;
    }
  }
  return internal("unknown request");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || ::lseek(kFileFd, 0, SEEK_CUR) < 0) {
    std::fprintf(stderr, "ropewalk-hdf5-reader is started by ropewalk itself\n");
    return 64;
  }
  const rlim_t max_memory = std::strtoull(argv[1], nullptr, 10);
  const rlim_t max_cpu_seconds = std::strtoull(argv[2], nullptr, 10);
  if (!kSanitized) limit(RLIMIT_AS, max_memory, max_memory);
  limit(RLIMIT_CORE, 0, 0);
  limit(RLIMIT_FSIZE, 0, 0);
  limit(RLIMIT_NOFILE, 16, 16);
  limit(RLIMIT_STACK, 8U << 20, 8U << 20);

  FileObjects file;
  SharedMemory shared;
  Bytes request;
  while (true) {
    std::array<std::uint8_t, 4> head{};
    if (!receive(head)) return 0;
    std::uint32_t size = 0;
    std::memcpy(&size, head.data(), sizeof size);
    if (size > kMaxRequestBytes) return 66;
    request.resize(size);
    if (!receive(request)) return 0;
    renew_cpu_limit(max_cpu_seconds);
    const auto result = answer(file, shared, request);
    Bytes response = make_response(result.status(), result.ok() ? ByteSpan(*result) : ByteSpan());
    if (response.size() > kMaxResponseBytes) {
      response = make_response(
          resource_exhausted(fmt::format("the answer takes {} bytes, at most {} are passed on",
                                         response.size(), kMaxResponseBytes)),
          {});
    }
    if (!send_message(kSocketFd, response).ok()) return 0;
  }
}
