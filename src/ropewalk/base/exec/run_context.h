#pragma once
// RunContext: what long work is given by its caller: threads, a way to be stopped, a way to tell
// how far it is. Passed by reference through sinks and stages; all members may be left at their
// defaults.
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "ropewalk/base/core/status.h"

namespace ropewalk {

class ThreadPool;

/// Counts are cumulative and never go backwards within one phase.
struct Progress {
  std::string phase;  ///< "splitting", "converting accepted", "verifying", …
  std::string item;   ///< what is at work, such as "episode 12"
  std::int64_t done = 0;
  std::int64_t total = 0;  ///< 0: unknown
  std::string unit = "episodes";
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;  ///< 0: unknown
};

/// Threads: `progress` may be called from any thread, one call at a time.
struct RunContext {
  ThreadPool* pool = nullptr;  ///< null: run inline, which is deterministic
  std::stop_token stop;
  std::function<void(const Progress&)> progress;

  void report(const Progress& event) const {
    if (progress) progress(event);
  }
  /// Returns cancelled once a stop was requested. Polled per episode or 4 MiB.
  Status check_stop() const { return stop.stop_requested() ? cancelled() : ok_status(); }
};

}  // namespace ropewalk
