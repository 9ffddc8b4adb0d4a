#include "ropewalk/format/hdf5/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/codec/compression.h"
#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/hdf5/library_internal.h"

namespace ropewalk {

using hdf5_internal::FileState;
using hdf5_internal::Handle;
using hdf5_internal::library_error;
using hdf5_internal::LibraryLock;

namespace {

constexpr std::string_view kTemporarySuffix = ".part";

/// Keeps the state of a file that the library would not close: it may come back to it at exit.
void keep_for_ever(std::shared_ptr<FileState> state) {
  static auto* const kept = new std::vector<std::shared_ptr<FileState>>();
  kept->push_back(std::move(state));
}

std::string join(std::span<const std::int64_t> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Groups the bytes of elements by significance, as the library's shuffle filter does.
void shuffle(ByteSpan in, std::size_t element_bytes, Bytes& out) {
  const std::size_t count = in.size() / element_bytes;
  out.resize(in.size());
  for (std::size_t b = 0; b < element_bytes; ++b) {
    std::uint8_t* to = out.data() + b * count;
    const std::uint8_t* from = in.data() + b;
    for (std::size_t i = 0; i < count; ++i) to[i] = from[i * element_bytes];
  }
}

Handle make_creation_list(hid_t type_class) {
  Handle list(H5Pcreate(type_class), &H5Pclose);
  if (!list.valid() || H5Pset_obj_track_times(list.id(), false) < 0) return {};
  return list;
}

Handle make_link_list() {
  Handle list(H5Pcreate(H5P_LINK_CREATE), &H5Pclose);
  if (!list.valid() || H5Pset_char_encoding(list.id(), H5T_CSET_UTF8) < 0) return {};
  return list;
}

}  // namespace

Result<Hdf5Compression> Hdf5Compression::parse(std::string_view text) {
  if (text == "none") return Hdf5Compression{};
  if (text.size() == 6 && text.starts_with("gzip:") && text[5] >= '1' && text[5] <= '9') {
    return Hdf5Compression{.gzip_level = text[5] - '0'};
  }
  return invalid_argument(
      fmt::format("HDF5 compression is \"none\" or \"gzip:1\" to \"gzip:9\", found \"{}\"", text));
}

Status Hdf5Compression::validate() const {
  if (gzip_level >= 0 && gzip_level <= 9) return ok_status();
  return invalid_argument(fmt::format("gzip_level is 0 (none) to 9, found {}", gzip_level));
}

// --- Hdf5Frames ---

struct Hdf5Frames::Impl {
  std::shared_ptr<FileState> state;
  std::string place;  ///< "file: dataset", for messages
  Handle dataset;
  std::size_t rank = 0;
  std::size_t frame_bytes = 0;
  std::size_t element_bytes = 1;
  std::int64_t count = 0;
  Hdf5Compression compression;
  std::vector<std::uint64_t> places;  ///< offset of each frame in the file; empty when compressed
  std::unique_ptr<std::atomic<bool>[]> taken;
  std::atomic<std::int64_t> written{0};

  ~Impl() {
    const LibraryLock lock;
    static_cast<void>(dataset.reset());
  }

  /// Lets the library assign a place for a chunk of `bytes` without writing it. Under the lock.
  Result<std::uint64_t> assign(std::int64_t ordinal, ByteSpan bytes) {
    std::vector<hsize_t> at(rank, 0);
    at[0] = static_cast<hsize_t>(ordinal);
    state->deferred = bytes.data();
    state->deferred_size = bytes.size();
    state->deferred_at.reset();
    const herr_t done =
        H5Dwrite_chunk(dataset.id(), H5P_DEFAULT, 0, at.data(), bytes.size(), bytes.data());
    state->deferred = nullptr;
    if (done < 0) return library_error(fmt::format("{}: frame {}", place, ordinal));
    if (!state->deferred_at) {
      return internal(fmt::format("{}: frame {}: the library assigned no place", place, ordinal));
    }
    return *state->deferred_at;
  }

  Status assign_all() {
    const Bytes zeros(frame_bytes);
    places.reserve(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t at, assign(i, zeros));
      places.push_back(at);
    }
    return ok_status();
  }

  Status write_compressed(std::int64_t ordinal, ByteSpan frame) {
    Bytes shuffled;
    if (element_bytes > 1) {
      shuffle(frame, element_bytes, shuffled);
      frame = shuffled;
    }
    Bytes packed;
    ROPEWALK_RETURN_IF_ERROR(compress(Compression::zlib, frame, compression.gzip_level, packed));
    std::uint64_t at = 0;
    {
      const LibraryLock lock;
      ROPEWALK_ASSIGN_OR_RETURN(at, assign(ordinal, packed));
    }
    return state->write_at(at, packed);
  }
};

Hdf5Frames::Hdf5Frames(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5Frames::~Hdf5Frames() = default;

std::size_t Hdf5Frames::frame_bytes() const { return impl_->frame_bytes; }

Status Hdf5Frames::write(std::int64_t ordinal, ByteSpan frame) {
  Impl& impl = *impl_;
  if (frame.size() != impl.frame_bytes) {
    return invalid_argument(fmt::format("{}: frame {} has {} bytes, expected {}", impl.place,
                                        ordinal, frame.size(), impl.frame_bytes));
  }
  if (ordinal < 0 || ordinal >= impl.count) {
    return out_of_range(
        fmt::format("{}: frame {} of a dataset of {} frames", impl.place, ordinal, impl.count));
  }
  if (impl.taken[static_cast<std::size_t>(ordinal)].exchange(true)) {
    return failed_precondition(fmt::format("{}: frame {} is written twice", impl.place, ordinal));
  }
  if (impl.compression.gzip_level > 0) {
    ROPEWALK_RETURN_IF_ERROR(impl.write_compressed(ordinal, frame));
  } else {
    ROPEWALK_RETURN_IF_ERROR(
        impl.state->write_at(impl.places[static_cast<std::size_t>(ordinal)], frame));
  }
  ++impl.written;
  return ok_status();
}

Status Hdf5Frames::finish() {
  Impl& impl = *impl_;
  {
    const LibraryLock lock;
    if (!impl.dataset.reset())
      return library_error(fmt::format("{}: close the dataset", impl.place));
  }
  if (impl.state->failed) return impl.state->error();
  if (impl.written != impl.count) {
    return data_loss(fmt::format("{}: {} of {} frames were written", impl.place,
                                 impl.written.load(), impl.count));
  }
  return ok_status();
}

// --- Hdf5Writer ---

struct Hdf5Writer::Impl {
  std::filesystem::path path;
  std::filesystem::path temporary;
  std::shared_ptr<FileState> state = std::make_shared<FileState>();
  Handle file;

  ~Impl() {
    if (state->fd < 0) return;
    static_cast<void>(end_file());
    static_cast<void>(remove_file(temporary));
  }

  std::string place(std::string_view object) const {
    return fmt::format("{}: {}", path.string(), object);
  }

  /// Takes the file from the library and closes the descriptor.
  Status end_file() {
    Status status;
    {
      const LibraryLock lock;
      if (!file.reset()) {
        status = library_error(fmt::format("{}: close", path.string()));
        keep_for_ever(state);
        return status;
      }
    }
    if (state->failed) status = state->error();
    if (::close(std::exchange(state->fd, -1)) != 0 && status.ok()) {
      status = errno_status(errno, fmt::format("{}: close", temporary.string()));
    }
    return status;
  }
};

Hdf5Writer::Hdf5Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;
Hdf5Writer& Hdf5Writer::operator=(Hdf5Writer&&) noexcept = default;
Hdf5Writer::~Hdf5Writer() = default;

Result<Hdf5Writer> Hdf5Writer::create(const std::filesystem::path& path) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto present, file_info(path));
  if (present) return already_exists(fmt::format("{}: exists already", path.string()));
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->temporary = path;
  impl->temporary += kTemporarySuffix;
  if (Status injected = fault_point("io.create"); !injected.ok()) {
    return injected.with_context(impl->temporary.string());
  }
  const int fd = ::open(impl->temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno_status(errno, fmt::format("{}: create", impl->temporary.string()));
  FileState& state = *impl->state;
  state.fd = fd;
  state.writable = true;
  state.name = impl->temporary.string();
  const LibraryLock lock;
  impl->file = hdf5_internal::create_file(state);
  if (!impl->file.valid()) return library_error(fmt::format("{}: create", path.string()));
  return Hdf5Writer(std::move(impl));
}

Status Hdf5Writer::create_group(std::string_view path) {
  const LibraryLock lock;
  const Handle links = make_link_list();
  const Handle creation = make_creation_list(H5P_GROUP_CREATE);
  Handle group(H5Gcreate2(impl_->file.id(), std::string(path).c_str(), links.id(), creation.id(),
                          H5P_DEFAULT),
               &H5Gclose);
  if (!group.valid() || !group.reset()) return library_error(impl_->place(path));
  return impl_->state->error();
}

Status Hdf5Writer::set_text_attribute(std::string_view object, std::string_view name,
                                      std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return invalid_argument(
        fmt::format("{}: attribute {} has a NUL byte, which HDF5 text cannot hold",
                    impl_->place(object), name));
  }
  const LibraryLock lock;
  const Handle type = hdf5_internal::make_text_type();
  const Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  const Handle target(H5Oopen(impl_->file.id(), std::string(object).c_str(), H5P_DEFAULT),
                      &H5Oclose);
  if (!target.valid()) return library_error(impl_->place(object));
  Handle attribute(H5Acreate2(target.id(), std::string(name).c_str(), type.id(), space.id(),
                              H5P_DEFAULT, H5P_DEFAULT),
                   &H5Aclose);
  const std::string terminated(text);
  const char* value = terminated.c_str();
  if (!attribute.valid() || H5Awrite(attribute.id(), type.id(), &value) < 0 || !attribute.reset()) {
    return library_error(fmt::format("{}: attribute {}", impl_->place(object), name));
  }
  return impl_->state->error();
}

Status Hdf5Writer::write_array(std::string_view path, const NdView& array) {
  const auto count = element_count(array.shape);
  const std::size_t item = dtype_size(array.dtype);
  if (item == 0) {
    return invalid_argument(fmt::format("{}: an array of {} is not numeric", impl_->place(path),
                                        dtype_name(array.dtype)));
  }
  if (!count || array.data.size() % item != 0 ||
      static_cast<std::uint64_t>(*count) != array.data.size() / item) {
    return invalid_argument(fmt::format("{}: shape {} of {} does not fit {} bytes",
                                        impl_->place(path), join(array.shape),
                                        dtype_name(array.dtype), array.data.size()));
  }
  const LibraryLock lock;
  const std::vector<hsize_t> dims(array.shape.begin(), array.shape.end());
  const Handle space(dims.empty()
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr),
                     &H5Sclose);
  const Handle type = hdf5_internal::make_type(array.dtype);
  const Handle links = make_link_list();
  const Handle creation = make_creation_list(H5P_DATASET_CREATE);
  Handle dataset(H5Dcreate2(impl_->file.id(), std::string(path).c_str(), type.id(), space.id(),
                            links.id(), creation.id(), H5P_DEFAULT),
                 &H5Dclose);
  if (!dataset.valid()) return library_error(impl_->place(path));
  if (*count > 0 &&
      H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, array.data.data()) < 0) {
    return library_error(impl_->place(path));
  }
  if (!dataset.reset()) return library_error(impl_->place(path));
  return impl_->state->error();
}

Status Hdf5Writer::write_text(std::string_view path, std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    return invalid_argument(fmt::format("{}: the text has a NUL byte, which HDF5 text cannot hold",
                                        impl_->place(path)));
  }
  const LibraryLock lock;
  const Handle type = hdf5_internal::make_text_type();
  const Handle space(H5Screate(H5S_SCALAR), &H5Sclose);
  const Handle links = make_link_list();
  const Handle creation = make_creation_list(H5P_DATASET_CREATE);
  Handle dataset(H5Dcreate2(impl_->file.id(), std::string(path).c_str(), type.id(), space.id(),
                            links.id(), creation.id(), H5P_DEFAULT),
                 &H5Dclose);
  const std::string terminated(text);
  const char* value = terminated.c_str();
  if (!dataset.valid() ||
      H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0 ||
      !dataset.reset()) {
    return library_error(impl_->place(path));
  }
  return impl_->state->error();
}

Result<std::unique_ptr<Hdf5Frames>> Hdf5Writer::create_frames(
    std::string_view path, std::span<const std::int64_t> frame_shape, std::int64_t count,
    DType dtype, Hdf5Compression compression) {
  ROPEWALK_RETURN_IF_ERROR(compression.validate());
  const std::string place = impl_->place(path);
  const auto elements = element_count(frame_shape);
  const std::size_t item = dtype_size(dtype);
  constexpr std::int64_t kMaxChunkBytes = (std::int64_t{1} << 32) - 1;  // of the format itself
  if (!elements || *elements <= 0 || item == 0 || count < 0 ||
      *elements > kMaxChunkBytes / static_cast<std::int64_t>(item)) {
    return invalid_argument(fmt::format("{}: {} frames of shape {} and type {} cannot be stored",
                                        place, count, join(frame_shape), dtype_name(dtype)));
  }
  auto impl = std::make_unique<Hdf5Frames::Impl>();
  impl->state = impl_->state;
  impl->place = place;
  impl->rank = frame_shape.size() + 1;
  impl->element_bytes = item;
  impl->frame_bytes = static_cast<std::size_t>(*elements) * item;
  impl->count = count;
  impl->compression = compression;
  impl->taken = std::make_unique<std::atomic<bool>[]>(static_cast<std::size_t>(count));

  std::vector<hsize_t> dims{0};
  dims.insert(dims.end(), frame_shape.begin(), frame_shape.end());
  std::vector<hsize_t> max_dims = dims;
  max_dims[0] = H5S_UNLIMITED;
  std::vector<hsize_t> chunk = dims;
  chunk[0] = 1;
  const int rank = static_cast<int>(impl->rank);

  const LibraryLock lock;
  const Handle space(H5Screate_simple(rank, dims.data(), max_dims.data()), &H5Sclose);
  const Handle type = hdf5_internal::make_type(dtype);
  const Handle links = make_link_list();
  const Handle creation = make_creation_list(H5P_DATASET_CREATE);
  if (!creation.valid() || H5Pset_chunk(creation.id(), rank, chunk.data()) < 0 ||
      H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER) < 0) {
    return library_error(place);
  }
  if (compression.gzip_level > 0 &&
      (H5Pset_shuffle(creation.id()) < 0 ||
       H5Pset_deflate(creation.id(), static_cast<unsigned>(compression.gzip_level)) < 0)) {
    return library_error(place);
  }
  impl->dataset = Handle(H5Dcreate2(impl_->file.id(), std::string(path).c_str(), type.id(),
                                    space.id(), links.id(), creation.id(), H5P_DEFAULT),
                         &H5Dclose);
  dims[0] = static_cast<hsize_t>(count);
  if (!impl->dataset.valid() || H5Dset_extent(impl->dataset.id(), dims.data()) < 0) {
    return library_error(place);
  }
  if (compression.gzip_level == 0) ROPEWALK_RETURN_IF_ERROR(impl->assign_all());
  ROPEWALK_RETURN_IF_ERROR(impl_->state->error());
  return std::unique_ptr<Hdf5Frames>(new Hdf5Frames(std::move(impl)));
}

Result<Hdf5ClosedFile> Hdf5Writer::close() {
  if (impl_->state->fd < 0)
    return failed_precondition(fmt::format("{}: closed twice", impl_->path.string()));
  if (Status status = impl_->end_file(); !status.ok()) {
    static_cast<void>(remove_file(impl_->temporary));
    return status;
  }
  return Hdf5ClosedFile{impl_->path, impl_->temporary, impl_->state->size};
}

Result<Hdf5FileRecord> seal(const Hdf5ClosedFile& file) {
  Hdf5FileRecord record{file.path, file.size_bytes, {}};
  {
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(file.temporary));
    if (source->size() != file.size_bytes) {
      return data_loss(fmt::format("{}: has {} bytes, {} were written", file.temporary.string(),
                                   source->size(), file.size_bytes));
    }
    constexpr std::size_t kPieceBytes = 1 << 20;
    Bytes piece(kPieceBytes);
    Sha256 digest;
    for (std::uint64_t at = 0; at < file.size_bytes;) {
      const auto size =
          static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, file.size_bytes - at));
      ROPEWALK_RETURN_IF_ERROR(source->read_at(at, MutableByteSpan(piece).first(size)));
      digest.update(ByteSpan(piece).first(size));
      at += size;
    }
    record.sha256 = digest.finish_hex();
  }
  ROPEWALK_RETURN_IF_ERROR(sync_file(file.temporary));
  Status renamed = rename_no_replace(file.temporary, file.path);
  // Some file systems cannot refuse to replace; create() has seen that the name was free.
  if (renamed.code() == StatusCode::unimplemented) renamed = rename_path(file.temporary, file.path);
  ROPEWALK_RETURN_IF_ERROR(std::move(renamed));
  return record;
}

}  // namespace ropewalk
