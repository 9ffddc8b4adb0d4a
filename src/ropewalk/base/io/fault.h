#pragma once
// Fault points: named places where a crash test may end the process or make a call fail.
// They cost one relaxed load when no test has armed them.
// Points of this module, reached right before the system call: io.open io.create io.write io.fsync
// io.fsync_dir io.mkdir io.rename io.exchange io.remove io.copy io.lock.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/status.h"

namespace ropewalk {

/// Tells the armed hook, if any, that `point` is reached. Returns the error it injects, or OK.
/// Points are named "module.step", for example "publish.switching_durable" or "io.fsync".
Status fault_point(std::string_view point);

/// Arms a hook for all fault points; null disarms. Tests only.
/// Threads: set before the work starts; the hook may be called from several threads at once.
void set_fault_hook(std::function<Status(std::string_view point)> hook);

/// While armed, remembers what was written, created, renamed and removed through this module but
/// not yet fsynced, so that a test can undo it the way a power loss would: unsynced bytes vanish,
/// unsynced names revert. Tests only.
/// Limits: everything unsynced is lost at once. A real file system may keep any part of it, so an
/// fsync that only orders two changes, both of which may be lost, is not proven by this.
class UnsyncedTracker {
 public:
  /// Removed and replaced entries are kept in `graveyard`, a directory on the same file system and
  /// outside of the tree under test, until the removal is synced.
  static void arm(const std::filesystem::path& graveyard);
  static void disarm();
  /// Drops everything that was not synced since arm(). Call right before the process dies.
  static void drop_unsynced();
};

}  // namespace ropewalk
