#include "ropewalk/base/io/local_fs.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "ropewalk/base/io/fd_internal.h"

namespace ropewalk {
namespace {

struct CloseDirectory {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirectoryStream = std::unique_ptr<DIR, CloseDirectory>;

Status injected_fault(std::string_view point, const std::string& what) {
  return fault_point(point).with_context(what);
}

FileInfo to_info(const struct stat& s) {
  FileInfo info;
  info.id = {static_cast<std::uint64_t>(s.st_dev), static_cast<std::uint64_t>(s.st_ino)};
  info.size_bytes = static_cast<std::uint64_t>(s.st_size);
  info.modified_ns =
      static_cast<std::int64_t>(s.st_mtim.tv_sec) * 1'000'000'000 + s.st_mtim.tv_nsec;
  info.is_directory = S_ISDIR(s.st_mode);
  info.is_regular = S_ISREG(s.st_mode);
  info.is_symlink = S_ISLNK(s.st_mode);
  return info;
}

// Reads all names of the directory `fd` (which it takes) and sorts them.
Result<std::vector<std::string>> names_in(Fd fd, const std::string& path) {
  DirectoryStream dir(::fdopendir(fd.get()));
  if (!dir) return errno_status(errno, path + ": list");
  fd.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return errno_status(errno, path + ": list");
  std::sort(names.begin(), names.end());
  return names;
}

Result<Fd> open_directory(int at, const char* name, const std::string& path) {
  Fd fd(retry_interrupted(
      [&] { return ::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }));
  if (!fd) return errno_status(errno, path + ": open directory");
  return fd;
}

Status list_below(const std::filesystem::path& dir, const std::string& prefix,
                  std::vector<std::string>& out) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(dir));
  for (const std::string& name : names) {
    const std::filesystem::path path = dir / name;
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(path));
    if (!info) continue;
    if (info->is_symlink) {
      return failed_precondition(path.string() +
                                 ": expected a file or directory, found a symbolic link");
    }
    if (info->is_directory) {
      ROPEWALK_RETURN_IF_ERROR(list_below(path, prefix + name + "/", out));
    } else if (info->is_regular) {
      out.push_back(prefix + name);
    }
  }
  return ok_status();
}

Status unlink_at(int at, const std::string& name, bool is_directory, const std::string& path) {
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.remove", path + ": remove"));
  int error = 0;
  if (unsynced::armed()) {
    error = unsynced::take_away(at, name.c_str());
  } else if (::unlinkat(at, name.c_str(), is_directory ? AT_REMOVEDIR : 0) != 0) {
    error = errno;
  }
  return error == 0 ? ok_status() : errno_status(error, path + ": remove");
}

// Removes everything in the directory `dir`, which is open, and keeps itself.
Status empty_directory(const Fd& dir, const std::string& path) {
  Fd duplicate(::openat(dir.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!duplicate) return errno_status(errno, path + ": open directory");
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, names_in(std::move(duplicate), path));
  for (const std::string& name : names) {
    const std::string child = path + "/" + name;
    struct stat s = {};
    if (::fstatat(dir.get(), name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return errno_status(errno, child + ": stat");
    }
    if (S_ISDIR(s.st_mode)) {
      ROPEWALK_ASSIGN_OR_RETURN(const Fd below, open_directory(dir.get(), name.c_str(), child));
      ROPEWALK_RETURN_IF_ERROR(empty_directory(below, child));
    }
    ROPEWALK_RETURN_IF_ERROR(unlink_at(dir.get(), name, S_ISDIR(s.st_mode), child));
  }
  return ok_status();
}

Status make_one_directory(const std::filesystem::path& path) {
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.mkdir", path.string() + ": create directory"));
  if (::mkdir(path.c_str(), 0777) == 0) {
    unsynced::created(path.string());
    return ok_status();
  }
  const int error = errno;
  struct stat s = {};
  if (error == EEXIST && ::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode)) return ok_status();
  return errno_status(error, path.string() + ": create directory");
}

Status rename_with_flags(const std::filesystem::path& from, const std::filesystem::path& to,
                         unsigned flags, const std::string& what) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0) return ok_status();
  if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP) {
    return unimplemented(what + ": the file system does not support it");
  }
  return errno_status(errno, what);
}

}  // namespace

Result<std::optional<FileInfo>> file_info(const std::filesystem::path& path) {
  struct stat s = {};
  if (::lstat(path.c_str(), &s) == 0) return std::optional<FileInfo>(to_info(s));
  if (errno == ENOENT || errno == ENOTDIR) return std::optional<FileInfo>();
  return errno_status(errno, path.string() + ": stat");
}

Status make_directories(const std::filesystem::path& path) {
  struct stat s = {};
  if (path.empty() || (::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode))) return ok_status();
  if (path.has_parent_path() && path.parent_path() != path) {
    ROPEWALK_RETURN_IF_ERROR(make_directories(path.parent_path()));
  }
  if (!path.has_filename()) return ok_status();  // a trailing '/'
  return make_one_directory(path);
}

Status make_durable_directories(const std::filesystem::path& path) {
  struct stat s = {};
  if (path.empty() || (::stat(path.c_str(), &s) == 0 && S_ISDIR(s.st_mode))) return ok_status();
  const std::filesystem::path parent = parent_of(path);
  if (parent != path) ROPEWALK_RETURN_IF_ERROR(make_durable_directories(parent));
  ROPEWALK_RETURN_IF_ERROR(make_directories(path));
  return sync_directory(parent);
}

Result<std::vector<std::string>> list_directory(const std::filesystem::path& path) {
  Fd fd(
      retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd) return errno_status(errno, path.string() + ": list");
  return names_in(std::move(fd), path.string());
}

Result<std::vector<std::string>> list_tree(const std::filesystem::path& root) {
  std::vector<std::string> files;
  ROPEWALK_RETURN_IF_ERROR(list_below(root, "", files));
  std::sort(files.begin(), files.end());
  return files;
}

Status rename_path(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::string what = fmt::format("{}: rename to {}", from.string(), to.string());
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.rename", what));
  const std::string kept = unsynced::keep_replaced(to.string());
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_status(errno, what);
  unsynced::renamed(from.string(), to.string(), kept);
  return ok_status();
}

Status exchange_paths(const std::filesystem::path& a, const std::filesystem::path& b) {
  const std::string what = fmt::format("{}: exchange with {}", a.string(), b.string());
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.exchange", what));
  ROPEWALK_RETURN_IF_ERROR(rename_with_flags(a, b, RENAME_EXCHANGE, what));
  unsynced::exchanged(a.string(), b.string());
  return ok_status();
}

Status rename_no_replace(const std::filesystem::path& from, const std::filesystem::path& to) {
  const std::string what = fmt::format("{}: rename to {}", from.string(), to.string());
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.rename", what));
  ROPEWALK_RETURN_IF_ERROR(rename_with_flags(from, to, RENAME_NOREPLACE, what));
  unsynced::renamed(from.string(), to.string(), {});
  return ok_status();
}

Status remove_file(const std::filesystem::path& path) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(path));
  if (!info) return not_found(path.string() + ": remove: no such file");
  if (info->is_directory) return failed_precondition(path.string() + ": remove: is a directory");
  if (!unsynced::armed()) return unlink_at(AT_FDCWD, path.string(), false, path.string());
  const Fd dir(::open(parent_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return errno_status(errno, path.string() + ": remove");
  return unlink_at(dir.get(), path.filename().string(), false, path.string());
}

Status remove_tree(const std::filesystem::path& path) {
  const std::filesystem::path named = path.has_filename() ? path : path.parent_path();
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(named));
  if (!info) return ok_status();
  if (!info->is_directory) return remove_file(named);
  const Fd parent(::open(parent_of(named).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return errno_status(errno, named.string() + ": remove");
  const std::string name = named.filename().string();
  {
    ROPEWALK_ASSIGN_OR_RETURN(const Fd dir,
                              open_directory(parent.get(), name.c_str(), named.string()));
    ROPEWALK_RETURN_IF_ERROR(empty_directory(dir, named.string()));
  }
  return unlink_at(parent.get(), name, true, named.string());
}

Status sync_file(const std::filesystem::path& path) {
  const Fd fd(retry_interrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!fd) return errno_status(errno, path.string() + ": open for fsync");
  return fsync_file(fd.get(), path.string());
}

Status sync_directory(const std::filesystem::path& path) {
  const std::string name = path.empty() ? "." : path.string();
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.fsync_dir", name + ": fsync"));
  const Fd fd(
      retry_interrupted([&] { return ::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!fd) return errno_status(errno, name + ": open for fsync");
  if (retry_interrupted([&] { return ::fsync(fd.get()); }) != 0) {
    // Some network file systems cannot fsync a directory and say so with EINVAL; their renames are
    // as durable as they get.
    if (errno != EINVAL) return errno_status(errno, name + ": fsync");
  }
  unsynced::synced_directory(fd.get());
  return ok_status();
}

Status sync_filesystem(const std::filesystem::path& path) {
  const std::string name = path.empty() ? "." : path.string();
  ROPEWALK_RETURN_IF_ERROR(injected_fault("io.fsync", name + ": syncfs"));
  const Fd fd(retry_interrupted([&] { return ::open(name.c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!fd) return errno_status(errno, name + ": open for syncfs");
  if (retry_interrupted([&] { return ::syncfs(fd.get()); }) != 0) {
    return errno_status(errno, name + ": syncfs");
  }
  unsynced::synced_filesystem();
  return ok_status();
}

Status sync_tree_directories(const std::filesystem::path& root) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(root));
  for (const std::string& name : names) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(root / name));
    if (info && info->is_directory) ROPEWALK_RETURN_IF_ERROR(sync_tree_directories(root / name));
  }
  return sync_directory(root);
}

Result<std::uint64_t> free_bytes(const std::filesystem::path& directory) {
  struct statvfs s = {};
  if (::statvfs(directory.c_str(), &s) != 0) {
    return errno_status(errno, directory.string() + ": free space");
  }
  return static_cast<std::uint64_t>(s.f_bavail) * static_cast<std::uint64_t>(s.f_frsize);
}

}  // namespace ropewalk
