// The HDF5 reader through its child process. The library may crash on these bytes, which ends the
// child and is an expected error here; a crash or a hang of this process is the bug that is looked
// for.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "ropewalk/format/hdf5/reader.h"

namespace {

using namespace ropewalk;

constexpr int kMaxObjects = 64;
constexpr std::uint64_t kMaxBytes = 16U << 20;

void fail(const char* what) {
  std::fprintf(stderr, "hdf5_reader_fuzz: %s\n", what);
  std::abort();
}

/// Walks the file the way a source does: lists groups, describes objects, reads values.
void walk(const Hdf5Reader& reader) {
  std::vector<std::string> waiting{""};
  for (int visited = 0; !waiting.empty() && visited < kMaxObjects; ++visited) {
    const std::string at = waiting.back();
    waiting.pop_back();
    const auto info = reader.describe(at);
    if (!info.ok()) continue;
    if (info->kind == Hdf5ObjectKind::group) {
      const auto names = reader.list(at);
      if (!names.ok()) continue;
      for (const std::string& name : *names) waiting.push_back(at + "/" + name);
      continue;
    }
    const auto value = reader.read(at, kMaxBytes);
    if (!value.ok()) continue;
    const auto elements = element_count(value->shape);
    if (!elements || *elements < 0) fail("a value without a shape");
    const std::size_t held = dtype_size(value->dtype) == 0
                                 ? value->texts.size()
                                 : value->data.size() / dtype_size(value->dtype);
    if (held != static_cast<std::size_t>(*elements)) fail("a value does not fit its shape");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int fd = ::memfd_create("hdf5-fuzz", MFD_CLOEXEC);
  if (fd < 0) fail("no memory file");
  for (std::size_t done = 0; done < size;) {
    const ssize_t n = ::write(fd, data + done, size - done);
    if (n <= 0) fail("cannot write the memory file");
    done += static_cast<std::size_t>(n);
  }
  Hdf5ReaderOptions options;
  options.max_wait = std::chrono::seconds(5);
  options.max_cpu = std::chrono::seconds(2);
  const auto reader = Hdf5Reader::open_descriptor(fd, "input", {}, options);
  if (reader.ok()) {
    walk(*reader);
  } else if (reader.status().code() == StatusCode::failed_precondition) {
    fail("the reader program is missing");
  }
  ::close(fd);
  return 0;
}
