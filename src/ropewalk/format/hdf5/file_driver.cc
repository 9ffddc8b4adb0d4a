// The file driver: how the library reads and writes descriptors of ours.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/format/hdf5/library_internal.h"

#if !defined(__linux__)
#error "written for Linux"
#endif
#include <fcntl.h>

namespace ropewalk::hdf5_internal {
namespace {

// The library allocates nothing of this; its public part must come first.
struct DriverFile {
  H5FD_t base;
  FileState* state;
};

// What is handed over in the access property list, copied by the library byte for byte.
struct DriverInfo {
  FileState* state;
};

FileState& state_of(const H5FD_t* file) {
  return *reinterpret_cast<const DriverFile*>(file)->state;
}

H5FD_t* driver_open(const char*, unsigned, hid_t access, haddr_t) {
  const auto* info = static_cast<const DriverInfo*>(H5Pget_driver_info(access));
  if (info == nullptr || info->state == nullptr) return nullptr;
  auto* file = new (std::nothrow) DriverFile();
  if (file == nullptr) return nullptr;
  file->state = info->state;
  return &file->base;
}

herr_t driver_close(H5FD_t* file) {
  delete reinterpret_cast<DriverFile*>(file);
  return 0;
}

int driver_compare(const H5FD_t* a, const H5FD_t* b) {
  const FileState& left = state_of(a);
  const FileState& right = state_of(b);
  if (left.device != right.device) return left.device < right.device ? -1 : 1;
  if (left.inode != right.inode) return left.inode < right.inode ? -1 : 1;
  return 0;
}

herr_t driver_query(const H5FD_t*, unsigned long* flags) {
  if (flags != nullptr) {
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DEFAULT_VFD_COMPATIBLE;
  }
  return 0;
}

haddr_t driver_get_eoa(const H5FD_t* file, H5FD_mem_t) { return state_of(file).end; }
herr_t driver_set_eoa(H5FD_t* file, H5FD_mem_t, haddr_t end) {
  state_of(file).end = end;
  return 0;
}
haddr_t driver_get_eof(const H5FD_t* file, H5FD_mem_t) { return state_of(file).size; }

herr_t driver_read(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, void* out) {
  const FileState& state = state_of(file);
  auto* to = static_cast<std::uint8_t*>(out);
  while (size > 0) {
    const ssize_t n = ::pread(state.fd, to, size, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return -1;
    if (n == 0) {
      // Beyond the end of the file the assigned space reads as zeros, as with the library's own
      // driver.
      std::memset(to, 0, size);
      return 0;
    }
    to += n;
    at += static_cast<haddr_t>(n);
    size -= static_cast<std::size_t>(n);
  }
  return 0;
}

herr_t driver_write(H5FD_t* file, H5FD_mem_t, hid_t, haddr_t at, size_t size, const void* data) {
  FileState& state = state_of(file);
  if (!state.writable) return -1;
  state.size = std::max(state.size, at + size);
  if (state.deferred != nullptr && data == state.deferred && size == state.deferred_size) {
    state.deferred_at = at;  // see Note [Deferred chunk]
    return 0;
  }
  // See Note [Sticky disk errors].
  static_cast<void>(state.write_at(at, {static_cast<const std::uint8_t*>(data), size}));
  return 0;
}

herr_t driver_truncate(H5FD_t* file, hid_t, hbool_t) {
  FileState& state = state_of(file);
  if (!state.writable || state.size == state.end || state.failed) return 0;
  if (::ftruncate(state.fd, static_cast<off_t>(state.end)) != 0) {
    state.fail(
        errno_status(errno, fmt::format("{}: set the size to {} bytes", state.name, state.end)));
  }
  state.size = state.end;
  return 0;
}

hid_t driver_id() {
  static const hid_t id = [] {
    static H5FD_class_t driver{};
    driver.name = "ropewalk";
    driver.maxaddr = (haddr_t{1} << 62) - 1;
    driver.fc_degree = H5F_CLOSE_STRONG;
    driver.fapl_size = sizeof(DriverInfo);
    driver.open = &driver_open;
    driver.close = &driver_close;
    driver.cmp = &driver_compare;
    driver.query = &driver_query;
    driver.get_eoa = &driver_get_eoa;
    driver.set_eoa = &driver_set_eoa;
    driver.get_eof = &driver_get_eof;
    driver.read = &driver_read;
    driver.write = &driver_write;
    driver.truncate = &driver_truncate;
    // Two kinds of space, metadata and raw data, the rest follows them: H5FD_FLMAP_DICHOTOMY.
    const H5FD_mem_t map[] = H5FD_FLMAP_DICHOTOMY;
    std::copy(std::begin(map), std::end(map), std::begin(driver.fl_map));
    return H5FDregister(&driver);
  }();
  return id;
}

Handle access_list(FileState& state) {
  Handle access(H5Pcreate(H5P_FILE_ACCESS), &H5Pclose);
  const DriverInfo info{&state};
  if (!access.valid() || driver_id() < 0 || H5Pset_driver(access.id(), driver_id(), &info) < 0 ||
      H5Pset_fclose_degree(access.id(), H5F_CLOSE_STRONG) < 0) {
    return {};
  }
  struct stat status {};
  if (::fstat(state.fd, &status) != 0) return {};
  state.device = status.st_dev;
  state.inode = status.st_ino;
  state.size = static_cast<std::uint64_t>(status.st_size);
  return access;
}

}  // namespace

Status FileState::write_at(std::uint64_t offset, ByteSpan bytes) {
  if (failed) return error();
  if (Status injected = fault_point("io.write"); !injected.ok()) {
    fail(injected.with_context(name));
    return error();
  }
  const std::uint64_t total = bytes.size();
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      fail(errno_status(n < 0 ? errno : ENOSPC,
                        fmt::format("{}: write {} bytes at {}", name, bytes.size(), offset)));
      return error();
    }
    offset += static_cast<std::uint64_t>(n);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  // Ask the kernel to start writing back early, so that the fsync at the end finds little to do.
  constexpr std::uint64_t kKickBytes = 32ULL << 20;
  if (written_since_kick_.fetch_add(total) + total >= kKickBytes) {
    written_since_kick_ = 0;
    static_cast<void>(::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE));
  }
  return ok_status();
}

Status FileState::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void FileState::fail(Status status) {
  const std::lock_guard lock(mutex_);
  if (error_.ok()) error_ = std::move(status);
  failed = true;
}

Handle create_file(FileState& state) {
  const Handle access = access_list(state);
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), &H5Pclose);
  if (!access.valid() || !creation.valid()) return {};
  // Without times of objects the same content gives the same bytes.
  if (H5Pset_obj_track_times(creation.id(), false) < 0) return {};
  return {H5Fcreate(state.name.c_str(), H5F_ACC_TRUNC, creation.id(), access.id()), &H5Fclose};
}

Handle open_file(FileState& state) {
  const Handle access = access_list(state);
  if (!access.valid()) return {};
  return {H5Fopen(state.name.c_str(), H5F_ACC_RDONLY, access.id()), &H5Fclose};
}

}  // namespace ropewalk::hdf5_internal
