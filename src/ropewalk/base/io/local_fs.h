#pragma once
// The few calls on a local file system that decide what survives a crash: copies, renames,
// exchanges, syncs, locks, free space. Everything here reports its fault points to fault.h.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk {

/// What identifies a file across renames.
struct FileId {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  bool operator==(const FileId&) const = default;
};

struct FileInfo {
  FileId id;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
  bool is_directory = false;
  bool is_regular = false;
  bool is_symlink = false;  ///< of the name itself; the other fields are then those of the link
};

/// Returns nullopt when nothing has that name (not an error). Symbolic links are not followed.
Result<std::optional<FileInfo>> file_info(const std::filesystem::path& path);

/// Creates the directory and its parents. Existing directories are fine.
Status make_directories(const std::filesystem::path& path);
/// The same, and fsyncs the parent of every directory it created.
Status make_durable_directories(const std::filesystem::path& path);
/// Lists names in a directory, sorted. Errors: not_found.
Result<std::vector<std::string>> list_directory(const std::filesystem::path& path);
/// Lists all regular files below `root`, relative, '/'-separated, sorted. Symbolic links are
/// refused with failed_precondition.
Result<std::vector<std::string>> list_tree(const std::filesystem::path& root);

/// Copies a file: reflink, else copy_file_range, else read and write. Never a hard link.
/// `to` must not exist; it is removed again on errors. The copy is fsynced. When `on_bytes` is
/// given it gets every byte once, in file order (for a hash taken in the same pass). `stop` is
/// polled per 1 MiB. Errors: already_exists, not_found, data_loss when the source shrinks
/// meanwhile, cancelled.
Status copy_file(const std::filesystem::path& from, const std::filesystem::path& to,
                 const std::function<void(ByteSpan)>& on_bytes = {}, std::stop_token stop = {});

Status rename_path(const std::filesystem::path& from, const std::filesystem::path& to);
/// Exchanges two names in one system call. Errors: unimplemented where the file system cannot.
Status exchange_paths(const std::filesystem::path& a, const std::filesystem::path& b);
/// Renames unless the target exists. Errors: already_exists; unimplemented where it cannot.
Status rename_no_replace(const std::filesystem::path& from, const std::filesystem::path& to);

Status remove_file(const std::filesystem::path& path);
/// Removes a directory with everything below it, never following a symbolic link out of it.
Status remove_tree(const std::filesystem::path& path);

Status sync_file(const std::filesystem::path& path);
Status sync_directory(const std::filesystem::path& path);
/// Fsyncs every directory below and including `root`, bottom-up. Files are synced when closed.
Status sync_tree_directories(const std::filesystem::path& root);
/// Makes everything durable that was written to the file system of `path`, in one call: for trees
/// of many small files, where an fsync of each would take longer.
Status sync_filesystem(const std::filesystem::path& path);

/// Units: bytes that an unprivileged process may still write.
Result<std::uint64_t> free_bytes(const std::filesystem::path& directory);

/// An exclusive or shared open-file-description lock on a file, released by destruction or by the
/// death of the process (and of children forked without exec meanwhile). Exclusive holders write
/// "host pid start-time" into the file; the file itself stays.
class FileLock {
 public:
  enum class Mode { shared, exclusive };
  /// Errors: unavailable naming the holder when another process has it; permission_denied.
  static Result<FileLock> acquire(const std::filesystem::path& path, Mode mode, bool wait = false);
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;
  ~FileLock();

 private:
  explicit FileLock(int fd) : fd_(fd) {}
  int fd_ = -1;
};

}  // namespace ropewalk
