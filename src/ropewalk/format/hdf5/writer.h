#pragma once
// Hdf5Writer: one new HDF5 file, written under a temporary name, and Hdf5Frames: an image dataset
// that many threads fill at once.
//
//   ROPEWALK_ASSIGN_OR_RETURN(auto writer, Hdf5Writer::create(path));
//   ROPEWALK_RETURN_IF_ERROR(writer.create_group("images"));
//   ROPEWALK_ASSIGN_OR_RETURN(auto frames, writer.create_frames("images/top", {480, 640, 3}, 300));
//   … frames->write(i, pixels), from any thread, each i once …
//   ROPEWALK_RETURN_IF_ERROR(frames->finish());
//   ROPEWALK_ASSIGN_OR_RETURN(auto closed, writer.close());
//   ROPEWALK_ASSIGN_OR_RETURN(auto record, seal(closed));   // SHA-256, fsync, rename; no library
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "ropewalk/format/hdf5/hdf5.h"

namespace ropewalk {

/// How image chunks are stored. Every HDF5 reader undoes it by itself.
struct Hdf5Compression {
  int gzip_level = 0;  ///< 0: none; 1..9: shuffle, then deflate

  /// Reads "none" or "gzip:1" … "gzip:9". Errors: invalid_argument naming the choices.
  static Result<Hdf5Compression> parse(std::string_view text);
  Status validate() const;
};

/// An image dataset of shape (T, ...), maximum (∞, ...), chunk (1, ...).
/// Lifetime: finish() or destroy it before the writer closes.
class Hdf5Frames {
 public:
  ~Hdf5Frames();
  Hdf5Frames(const Hdf5Frames&) = delete;
  Hdf5Frames& operator=(const Hdf5Frames&) = delete;

  std::size_t frame_bytes() const;
  /// Writes frame `ordinal`, each once. Without compression no lock is held while bytes move; with
  /// it the calling thread compresses. Errors: invalid_argument (size), out_of_range,
  /// failed_precondition (written twice), resource_exhausted (disk full).
  /// Threads: may be called concurrently.
  Status write(std::int64_t ordinal, ByteSpan frame);
  /// Closes the dataset. Errors: data_loss when a frame is missing.
  Status finish();

 private:
  friend class Hdf5Writer;
  struct Impl;
  explicit Hdf5Frames(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// A file that is complete but not yet durable; it lies at `temporary`.
struct Hdf5ClosedFile {
  std::filesystem::path path;
  std::filesystem::path temporary;
  std::uint64_t size_bytes = 0;
};

/// A durable file under its own name.
struct Hdf5FileRecord {
  std::filesystem::path path;
  std::uint64_t size_bytes = 0;
  std::string sha256;
};

/// Paths inside the file are '/'-separated; parents must exist. The first error of the disk sticks:
/// every later call returns it. A writer destroyed before close() removes its file. Threads: one at
/// a time; different writers may be used concurrently.
class Hdf5Writer {
 public:
  /// Creates `<path>.part`; `path` itself must not exist. Errors: already_exists, not_found.
  static Result<Hdf5Writer> create(const std::filesystem::path& path);
  Hdf5Writer(Hdf5Writer&&) noexcept;
  Hdf5Writer& operator=(Hdf5Writer&&) noexcept;
  ~Hdf5Writer();

  Status create_group(std::string_view path);
  /// Sets a scalar variable-length UTF-8 string. Errors: invalid_argument for text with a NUL byte.
  Status set_text_attribute(std::string_view object, std::string_view name, std::string_view text);
  /// Writes a dataset of the view's type and shape; booleans the way h5py stores them.
  /// Errors: invalid_argument for strings, or data that does not fit the shape.
  Status write_array(std::string_view path, const NdView& array);
  /// Writes a scalar variable-length UTF-8 string. Errors: invalid_argument for text with a NUL
  /// byte.
  Status write_text(std::string_view path, std::string_view text);
  /// Creates an image dataset for `count` frames of `frame_shape`.
  Result<std::unique_ptr<Hdf5Frames>> create_frames(std::string_view path,
                                                    std::span<const std::int64_t> frame_shape,
                                                    std::int64_t count, DType dtype = DType::uint8,
                                                    Hdf5Compression compression = {});
  /// Ends the file; the library has let go of it when this returns.
  Result<Hdf5ClosedFile> close();

 private:
  struct Impl;
  explicit Hdf5Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Takes the SHA-256 of a closed file, fsyncs it and gives it its own name.
/// Threads: does not enter the library; may run on any thread.
Result<Hdf5FileRecord> seal(const Hdf5ClosedFile& file);

}  // namespace ropewalk
