// UnsyncedTracker: a log of namespace changes whose directories were not fsynced yet, and the
// synced size of every file with unsynced bytes. Files and directories are held by descriptors, so
// that renames above them do not matter.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/unsynced_internal.h"

namespace ropewalk {
namespace {

using Key = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

struct Directory {
  int fd = -1;
  Key key;
  ~Directory() {
    if (fd >= 0) ::close(fd);
  }
};

enum class Kind { create, rename, exchange, remove };

struct Change {
  Kind kind = Kind::create;
  std::shared_ptr<Directory> from_dir;
  std::string from;
  std::shared_ptr<Directory> to_dir;  // rename and exchange
  std::string to;
  std::string kept;  // name in the graveyard; empty when nothing was replaced
  bool from_synced = false;
  bool to_synced = false;
};

struct OpenFile {
  int fd = -1;
  off_t synced_bytes = 0;
};

struct Tracker {
  std::mutex mutex;
  std::shared_ptr<Directory> graveyard;
  std::uint64_t next_kept = 0;
  std::map<Key, std::weak_ptr<Directory>> directories;
  std::map<Key, OpenFile> files;
  std::vector<Change> changes;

  void clear() {
    for (auto& [key, file] : files) ::close(file.fd);
    files.clear();
    changes.clear();
    directories.clear();
    graveyard.reset();
  }
};

std::atomic<bool> g_armed{false};

Tracker& tracker() {
  static auto* instance = new Tracker;  // never destroyed: used until the process ends
  return *instance;
}

Key key_of(int fd) {
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return {};
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
}

// Takes ownership of `fd`.
std::shared_ptr<Directory> remember_directory(Tracker& t, int fd) {
  if (fd < 0) return nullptr;
  auto opened = std::make_shared<Directory>();
  opened->fd = fd;
  opened->key = key_of(fd);
  auto& known = t.directories[opened->key];
  if (auto existing = known.lock()) return existing;
  known = opened;
  return opened;
}

struct Place {
  std::shared_ptr<Directory> dir;
  std::string name;
};

Place place_of(Tracker& t, const std::string& path) {
  const std::filesystem::path p(path);
  const std::string parent = p.has_parent_path() ? p.parent_path().string() : ".";
  return {remember_directory(t, ::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)),
          p.filename().string()};
}

void undo_create(const Change& change) {
  if (::unlinkat(change.from_dir->fd, change.from.c_str(), 0) == 0) return;
  std::error_code ignored;
  std::filesystem::remove_all(fmt::format("/proc/self/fd/{}/{}", change.from_dir->fd, change.from),
                              ignored);
}

void undo(const Tracker& t, const Change& change) {
  switch (change.kind) {
    case Kind::create:
      undo_create(change);
      return;
    case Kind::rename:
      std::ignore = ::renameat(change.to_dir->fd, change.to.c_str(), change.from_dir->fd,
                               change.from.c_str());
      if (!change.kept.empty()) {
        std::ignore =
            ::renameat(t.graveyard->fd, change.kept.c_str(), change.to_dir->fd, change.to.c_str());
      }
      return;
    case Kind::exchange:
      std::ignore = ::renameat2(change.from_dir->fd, change.from.c_str(), change.to_dir->fd,
                                change.to.c_str(), RENAME_EXCHANGE);
      return;
    case Kind::remove:
      std::ignore = ::renameat(t.graveyard->fd, change.kept.c_str(), change.from_dir->fd,
                               change.from.c_str());
      return;
  }
}

void add_pair(Kind kind, const std::string& a, const std::string& b, const std::string& kept) {
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  Place from = place_of(t, a);
  Place to = place_of(t, b);
  if (!from.dir || !to.dir) return;
  t.changes.push_back({kind, from.dir, from.name, to.dir, to.name, kept, false, false});
}

}  // namespace

void UnsyncedTracker::arm(const std::filesystem::path& graveyard) {
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  t.clear();
  t.graveyard = std::make_shared<Directory>();
  t.graveyard->fd = ::open(graveyard.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  g_armed.store(t.graveyard->fd >= 0);
}

void UnsyncedTracker::disarm() {
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  g_armed.store(false);
  t.clear();
}

void UnsyncedTracker::drop_unsynced() {
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  for (const auto& [key, file] : t.files) std::ignore = ::ftruncate(file.fd, file.synced_bytes);
  for (auto change = t.changes.rbegin(); change != t.changes.rend(); ++change) undo(t, *change);
  for (auto& [key, file] : t.files) ::close(file.fd);
  t.files.clear();
  t.changes.clear();
}

namespace unsynced {

bool armed() { return g_armed.load(std::memory_order_relaxed); }

void will_write(int fd) {
  if (!armed()) return;
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  struct stat info = {};
  if (::fstat(fd, &info) != 0) return;
  auto [entry, is_new] = t.files.try_emplace(key_of(fd));
  if (is_new) entry->second = {::fcntl(fd, F_DUPFD_CLOEXEC, 0), info.st_size};
}

void synced_file(int fd) {
  if (!armed()) return;
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  const auto entry = t.files.find(key_of(fd));
  if (entry == t.files.end()) return;
  ::close(entry->second.fd);
  t.files.erase(entry);
}

void synced_directory(int fd) {
  if (!armed()) return;
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  const Key key = key_of(fd);
  std::erase_if(t.changes, [&](Change& change) {
    change.from_synced |= change.from_dir->key == key;
    change.to_synced |= !change.to_dir || change.to_dir->key == key;
    return change.from_synced && change.to_synced;
  });
}

void synced_filesystem() {
  if (!armed()) return;
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  for (auto& [key, file] : t.files) ::close(file.fd);
  t.files.clear();
  t.changes.clear();
}

void created(const std::string& path) {
  if (!armed()) return;
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  Place place = place_of(t, path);
  if (!place.dir) return;
  t.changes.push_back({Kind::create, place.dir, place.name, nullptr, {}, {}, false, false});
}

std::string keep_replaced(const std::string& to) {
  if (!armed()) return {};
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  std::string kept = fmt::format("kept-{}-{}", ::getpid(), t.next_kept++);
  if (::linkat(AT_FDCWD, to.c_str(), t.graveyard->fd, kept.c_str(), 0) != 0) return {};
  return kept;
}

void renamed(const std::string& from, const std::string& to, const std::string& kept) {
  if (armed()) add_pair(Kind::rename, from, to, kept);
}

void exchanged(const std::string& a, const std::string& b) {
  if (armed()) add_pair(Kind::exchange, a, b, {});
}

int take_away(int dir_fd, const char* name) {
  Tracker& t = tracker();
  const std::scoped_lock lock(t.mutex);
  auto dir = remember_directory(t, ::openat(dir_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!dir) return errno;
  const std::string kept = fmt::format("kept-{}-{}", ::getpid(), t.next_kept++);
  if (::renameat(dir->fd, name, t.graveyard->fd, kept.c_str()) != 0) return errno;
  t.changes.push_back({Kind::remove, dir, name, nullptr, {}, kept, false, false});
  return 0;
}

}  // namespace unsynced
}  // namespace ropewalk
