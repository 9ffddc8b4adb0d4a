#pragma once
// Private: the door to the HDF5 C library: its lock, its handles, its errors, its types, and the
// file driver through which it reaches descriptors of ours.
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <hdf5.h>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/dtype.h"

namespace ropewalk::hdf5_internal {

/// Holds the library for one thread. Handles are opened, used and closed under it.
class LibraryLock {
 public:
  LibraryLock();

 private:
  std::unique_lock<std::recursive_mutex> lock_;
};

/// Owns one identifier of the library.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept
      : id_(std::exchange(other.id_, -1)), close_(std::exchange(other.close_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() { static_cast<void>(reset()); }

  bool valid() const { return id_ >= 0; }
  hid_t id() const { return id_; }
  /// Closes it now; returns whether that worked.
  bool reset() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// Returns data_loss with `what` and the innermost reason on the library's error stack.
Status library_error(std::string_view what);

/// Returns the type that stands in memory and in our files for `dtype`: little-endian, booleans as
/// h5py's enumeration, float16 as IEEE half. Invalid for string and bytes.
Handle make_type(DType dtype);
/// The variable-length UTF-8 string type.
Handle make_text_type();
/// Returns which of our types a file type is, or nullopt; `name` becomes a word for messages.
std::optional<DType> classify_type(hid_t type, std::string& name);

/// An open descriptor as the library sees it, through our driver.
/// Note [Sticky disk errors]: a write that fails is remembered and then reported as done, as all
/// that follow are. The library, which cannot let go of a file that it cannot flush, closes it in
/// good order, and the error is returned by our own calls.
struct FileState {
  int fd = -1;
  bool writable = false;
  std::uint64_t size = 0;  ///< bytes that count as being there, deferred ones included
  std::uint64_t end = 0;   ///< end of the space that the library has assigned
  std::uint64_t inode = 0;
  std::uint64_t device = 0;

  /// Note [Deferred chunk]: while `deferred` is set, the write of exactly this buffer is not done;
  /// its place is told instead, and the caller writes it there without the lock.
  const void* deferred = nullptr;
  std::size_t deferred_size = 0;
  std::optional<std::uint64_t> deferred_at;

  /// Writes at a place. Threads: any; needs no library lock.
  Status write_at(std::uint64_t offset, ByteSpan bytes);
  Status error() const;
  void fail(Status status);

  std::string name;
  std::atomic<bool> failed{false};

 private:
  mutable std::mutex mutex_;
  Status error_;
  std::atomic<std::uint64_t> written_since_kick_{0};
};

/// Opens or creates (truncates) the file behind `state`. Lifetime: `state` outlives the file.
Handle create_file(FileState& state);
Handle open_file(FileState& state);

}  // namespace ropewalk::hdf5_internal
