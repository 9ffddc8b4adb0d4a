#include "ropewalk/format/hdf5/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/format/hdf5/reader_process_internal.h"

namespace ropewalk {

using hdf5_internal::Operation;
using hdf5_internal::ReaderProcess;

namespace {

constexpr std::string_view kProgram = "ropewalk-hdf5-reader";

std::filesystem::path& named_program() {
  static auto* const path = new std::filesystem::path();
  return *path;
}

bool is_program(const std::filesystem::path& path) { return ::access(path.c_str(), X_OK) == 0; }

/// A request under construction.
class Request {
 public:
  Request(Operation operation, std::string_view path) : writer_(bytes_) {
    writer_.write_le(static_cast<std::uint8_t>(operation));
    hdf5_internal::put_text(writer_, path);
  }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  Request& add(std::uint64_t value) {
    writer_.write_le(value);
    return *this;
  }
  ByteSpan bytes() const { return bytes_; }

 private:
  Bytes bytes_;
  ByteWriter writer_;
};

/// Bytes of the whole dataset, or nullopt when they overflow.
std::optional<std::uint64_t> total_bytes(std::span<const std::int64_t> shape, std::size_t item) {
  const auto count = element_count(shape);
  if (!count || static_cast<std::uint64_t>(*count) > UINT64_MAX / std::max<std::size_t>(item, 1)) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*count) * item;
}

}  // namespace

Status Hdf5ReaderOptions::validate() const {
  if (max_wait.count() <= 0 || max_cpu.count() <= 0) {
    return invalid_argument("max_wait and max_cpu of an HDF5 reader are positive");
  }
  if (max_piece_bytes == 0 || max_address_space_bytes < (64ULL << 20)) {
    return invalid_argument(
        "an HDF5 reader needs max_piece_bytes above 0 and max_address_space_bytes of 64 MiB or "
        "more");
  }
  return ok_status();
}

std::optional<std::string> Hdf5ObjectInfo::text_attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes) {
    if (key == name && value.dtype == DType::string && value.shape.empty() &&
        value.texts.size() == 1) {
      return value.texts.front();
    }
  }
  return std::nullopt;
}

void set_hdf5_reader_program(std::filesystem::path program) {
  named_program() = std::move(program);
}

Result<std::filesystem::path> hdf5_reader_program() {
  if (!named_program().empty()) {
    if (is_program(named_program())) return named_program();
    return failed_precondition(fmt::format("{}: the HDF5 reader named by the caller cannot be run",
                                           named_program().string()));
  }
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto directory = self.parent_path();
  const std::array<std::filesystem::path, 3> places{
      directory / kProgram, directory.parent_path() / "bin" / kProgram,
      directory.parent_path() / "libexec" / "ropewalk" / kProgram};
  for (const auto& place : places) {
    if (is_program(place)) return place;
  }
  return failed_precondition(fmt::format("the program {} is not there; looked for {}, {} and {}",
                                         kProgram, places[0].string(), places[1].string(),
                                         places[2].string()));
}

Status check_claimed_bytes(const Hdf5ObjectInfo& info, std::uint64_t file_bytes,
                           std::uint64_t max_bytes) {
  const std::size_t item = std::max<std::size_t>(1, dtype_size(info.dtype.value_or(DType::uint8)));
  const std::string shape = fmt::format("[{}]", fmt::join(info.shape, ", "));
  const auto total = total_bytes(info.shape, item);
  if (!total) return data_loss(fmt::format("the shape {} is too large for any file", shape));
  if (*total > max_bytes) {
    return resource_exhausted(
        fmt::format("the shape {} takes {} bytes, the limit is {}", shape, *total, max_bytes));
  }
  // Below this it costs nothing to believe a file, and fill values may stand for what is not
  // stored.
  constexpr std::uint64_t kBelieved = 1U << 20;
  if (*total <= kBelieved) return ok_status();
  // Deflate cannot expand by more than 1032.
  constexpr std::uint64_t kMaxRatio = 1032;
  const std::uint64_t stored = std::min(info.stored_bytes, file_bytes);
  const bool holds = info.filtered ? *total / kMaxRatio <= stored : *total <= stored;
  if (info.stored_bytes > file_bytes || !holds) {
    return data_loss(fmt::format("the shape {} claims {} bytes, but {} are stored in a file of {}",
                                 shape, *total, info.stored_bytes, file_bytes));
  }
  return ok_status();
}

struct Hdf5Reader::Impl {
  std::string name;
  Limits limits;
  Hdf5ReaderOptions options;
  std::uint64_t file_bytes = 0;
  mutable std::mutex mutex;
  mutable ReaderProcess process;

  std::string place(std::string_view path) const { return fmt::format("{}: {}", name, path); }
};

Hdf5Reader::Hdf5Reader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5Reader::Hdf5Reader(Hdf5Reader&&) noexcept = default;
Hdf5Reader& Hdf5Reader::operator=(Hdf5Reader&&) noexcept = default;
Hdf5Reader::~Hdf5Reader() = default;

const std::string& Hdf5Reader::name() const { return impl_->name; }

Result<Hdf5Reader> Hdf5Reader::open(const std::filesystem::path& path, const Limits& limits,
                                    const Hdf5ReaderOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(fault_point("io.open").with_context(path.string()));
  // O_NONBLOCK: opening a pipe must not wait for a writer; it is refused below.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno_status(errno, fmt::format("{}: open", path.string()));
  auto reader = open_descriptor(fd, path.string(), limits, options);
  ::close(fd);
  return reader;
}

Result<Hdf5Reader> Hdf5Reader::open_descriptor(int fd, std::string name, const Limits& limits,
                                               const Hdf5ReaderOptions& options) {
  auto impl = std::make_unique<Impl>();
  impl->name = std::move(name);
  impl->limits = limits;
  impl->options = options;
  struct stat status {};
  if (::fstat(fd, &status) != 0) return errno_status(errno, impl->name);
  if (!S_ISREG(status.st_mode)) {
    return failed_precondition(fmt::format("{}: is not a regular file", impl->name));
  }
  impl->file_bytes = static_cast<std::uint64_t>(status.st_size);
  ROPEWALK_RETURN_IF_ERROR(impl->process.start(fd, options).with_context(impl->name));
  auto opened = impl->process.call(Request(Operation::open, "").bytes(), impl->name);
  if (!opened.ok()) return std::move(opened).status();
  return Hdf5Reader(std::move(impl));
}

Result<std::vector<std::string>> Hdf5Reader::list(std::string_view group) const {
  const std::string place = impl_->place(group);
  const std::lock_guard lock(impl_->mutex);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan fields,
                            impl_->process.call(Request(Operation::list, group).bytes(), place));
  ByteCursor in(fields);
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto count, in.read_le<std::uint32_t>(), place);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(std::string name, hdf5_internal::get_text(in), place);
    names.push_back(std::move(name));
  }
  return names;
}

Result<Hdf5ObjectInfo> Hdf5Reader::describe(std::string_view path) const {
  const std::string place = impl_->place(path);
  const std::lock_guard lock(impl_->mutex);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan fields,
                            impl_->process.call(Request(Operation::describe, path).bytes(), place));
  ByteCursor in(fields);
  auto info = hdf5_internal::get_info(in);
  if (!info.ok()) return info.status().with_context(place);
  return info;
}

Status Hdf5Reader::read_rows(std::string_view path, const Hdf5ObjectInfo& info, std::int64_t begin,
                             std::int64_t end, MutableByteSpan out) const {
  const std::string place = impl_->place(path);
  const std::size_t item = info.dtype ? dtype_size(*info.dtype) : 0;
  if (info.kind != Hdf5ObjectKind::dataset || item == 0) {
    return invalid_argument(fmt::format("{}: holds {}, not numbers", place, info.type_name));
  }
  const std::int64_t rows = info.shape.empty() ? 1 : info.shape[0];
  if (begin < 0 || end < begin || end > rows) {
    return out_of_range(fmt::format("{}: rows [{}, {}) of {}", place, begin, end, rows));
  }
  const std::span<const std::int64_t> row_shape =
      info.shape.empty() ? std::span<const std::int64_t>() : std::span(info.shape).subspan(1);
  const auto row_bytes = total_bytes(row_shape, item);
  if (!row_bytes ||
      (*row_bytes > 0 && out.size() / *row_bytes != static_cast<std::uint64_t>(end - begin)) ||
      out.size() != *row_bytes * static_cast<std::uint64_t>(end - begin)) {
    return invalid_argument(
        fmt::format("{}: {} rows do not fit {} bytes of memory", place, end - begin, out.size()));
  }
  if (out.empty()) return ok_status();
  if (*row_bytes > impl_->limits.max_array_bytes) {
    return resource_exhausted(fmt::format("{}: one row has {} bytes, the limit is {}", place,
                                          *row_bytes, impl_->limits.max_array_bytes));
  }
  const auto piece_rows = static_cast<std::int64_t>(
      std::max<std::uint64_t>(1, impl_->options.max_piece_bytes / *row_bytes));
  const std::lock_guard lock(impl_->mutex);
  while (begin < end) {
    const std::int64_t stop = std::min(end, begin + piece_rows);
    const std::uint64_t bytes = *row_bytes * static_cast<std::uint64_t>(stop - begin);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const std::uint64_t shared, impl_->process.reserve_shared(bytes),
                                  place);
    Request request(Operation::read_rows, path);
    request.add(static_cast<std::uint64_t>(begin)).add(static_cast<std::uint64_t>(stop));
    request.add(bytes).add(shared);
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan fields, impl_->process.call(request.bytes(), place));
    static_cast<void>(fields);
    std::memcpy(out.data(), impl_->process.shared().data(), bytes);
    out = out.subspan(bytes);
    begin = stop;
  }
  return ok_status();
}

Result<Hdf5Value> Hdf5Reader::read(std::string_view path, std::uint64_t max_bytes) const {
  const std::string place = impl_->place(path);
  ROPEWALK_ASSIGN_OR_RETURN(const Hdf5ObjectInfo info, describe(path));
  if (info.kind != Hdf5ObjectKind::dataset) {
    return invalid_argument(fmt::format("{}: is not a dataset", place));
  }
  if (!info.dtype) {
    return unimplemented(
        fmt::format("{}: elements are {}, which is not read", place, info.type_name));
  }
  ROPEWALK_RETURN_IF_ERROR(check_claimed_bytes(info, impl_->file_bytes,
                                               std::min(max_bytes, impl_->limits.max_array_bytes))
                               .with_context(place));
  if (*info.dtype == DType::string) {
    const std::lock_guard lock(impl_->mutex);
    Request request(Operation::read_texts, path);
    request.add(max_bytes);
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan fields, impl_->process.call(request.bytes(), place));
    ByteCursor in(fields);
    auto value = hdf5_internal::get_value(in);
    if (!value.ok()) return value.status().with_context(place);
    return value;
  }
  Hdf5Value value{*info.dtype, info.shape, {}, {}};
  const auto bytes = total_bytes(info.shape, dtype_size(*info.dtype));
  value.data.resize(static_cast<std::size_t>(*bytes));
  ROPEWALK_RETURN_IF_ERROR(
      read_rows(path, info, 0, info.shape.empty() ? 1 : info.shape[0], value.data));
  return value;
}

}  // namespace ropewalk
