#pragma once
// What the rest of io tells UnsyncedTracker. Every call returns at once when it is not armed.
#include <string>
#include <string_view>

namespace ropewalk::unsynced {

bool armed();

/// The file behind `fd` is about to grow: what it holds beyond its present size is not durable.
void will_write(int fd);
/// The file behind `fd` was fsynced.
void synced_file(int fd);
/// The directory behind `fd` was fsynced.
void synced_directory(int fd);

/// The whole file system was synced. What is tracked lies on one.
void synced_filesystem();

/// A new name `path` exists (file or directory).
void created(const std::string& path);
/// Keeps what `to` names now, if anything, since a rename will replace it. Returns a token for
/// renamed().
std::string keep_replaced(const std::string& to);
void renamed(const std::string& from, const std::string& to, const std::string& kept);
void exchanged(const std::string& a, const std::string& b);
/// Takes `name` out of the directory `dir_fd` in place of unlink or rmdir. Returns 0 or an errno.
int take_away(int dir_fd, const char* name);

}  // namespace ropewalk::unsynced
