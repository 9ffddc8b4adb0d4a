#pragma once
// ProcessIdentity: who made a temporary thing, so that a later process can tell whether the maker
// is gone. A process id alone is not enough: ids are used again, and start anew at each boot.
#include <cstdint>
#include <string>

namespace ropewalk {

struct ProcessIdentity {
  std::string host;
  std::int64_t pid = 0;
  std::string boot_id;            ///< changes at each boot; empty where the system has none
  std::uint64_t start_ticks = 0;  ///< clock ticks from boot to the start of the process
  std::string started_at;         ///< the same for people: UTC ISO, seconds
  bool operator==(const ProcessIdentity&) const = default;
};

/// Returns the identity of this process.
ProcessIdentity this_process();

/// Returns whether `process` certainly runs no more. Another host's process counts as running,
/// since nothing can be said about it from here.
bool is_gone(const ProcessIdentity& process);

/// Returns the present time as UTC ISO with microseconds and Z, for records.
std::string utc_now();

}  // namespace ropewalk
