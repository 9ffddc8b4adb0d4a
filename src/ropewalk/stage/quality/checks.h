#pragma once
// Checks: the automatic checks that need only a saved episode: its columns, its pictures, its row.
// An issue turns the episode red; a finding does not. Both are aggregated: one entry per code and
// stream with count, first and last frame.
// Typical usage: `check_episode(episode, options, context)`, then quality() and issues_json().
// Spec: review-export-upload 2.5; R-DATA-5, R-DATA-8.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// Defaults are those of `quality.checks`. Angles in radians, times in seconds, luma in levels of
/// 255.
struct QualityOptions {
  /// Shorter episodes are red. 0: what the dataset says in info.json (`quality.checks`), else 1.
  std::int64_t min_episode_frames = 0;
  double black_luma = 8.0;           ///< mean below: black
  int overexposed_level = 250;       ///< samples at or above count as blown out
  double overexposed_share = 0.5;    ///< more than this share of them: overexposed
  double dark_bright_seconds = 0.5;  ///< black or overexposed for at least so long
  double sharpness_limit = 0.0;      ///< variance of the Laplacian below: blurred; 0: off
  double same_luma = 0.02;           ///< mean absolute difference at or below: the same picture
  double stall_seconds = 1.0;
  double stall_travel_rad = 0.05;   ///< joints move at least so far during a stall
  double frozen_travel_rad = 0.02;  ///< joints move at least so far during a frozen episode
  double stuck_seconds = 1.0;       ///< a joint constant to the bit for so long …
  double stuck_command_rad = 0.05;  ///< … while its command moves at least so far
  double idle_seconds = 3.0;
  double idle_rad = 0.01;
  double rate_share = 0.9;  ///< of the nominal rate, in any window of rate_window_seconds
  double rate_window_seconds = 1.0;
  double max_frame_dt_factor = 3.0;  ///< a source gap is longer than so many frames

  /// Errors: invalid_argument naming the option, its value and its range.
  Status validate() const;
};

/// One issue or finding. `severity`: "red" for issues, "info" or "warn" for findings.
struct QualityEntry {
  std::string severity;
  std::string code;
  std::string detail;
  std::string stream;  ///< camera or column; empty: the episode
  std::int64_t count = 1;
  std::optional<std::int64_t> first_frame;
  std::optional<std::int64_t> last_frame;  ///< inclusive
  std::optional<double> max;               ///< the worst value, in the unit the detail names
};

struct QualityReport {
  std::vector<QualityEntry> issues;
  std::vector<QualityEntry> findings;
  std::int64_t pictures = 0;  ///< decoded

  /// "red" with issues, else "green".
  std::string quality() const { return issues.empty() ? "green" : "red"; }
  /// The array kept as `quality_issues`: severity, code, detail, then the rest.
  Json issues_json() const;
  Json findings_json() const;
};

/// Runs every check. Data that cannot be read is an issue (`unreadable_table`, `unreadable_video`),
/// not an error. Errors: cancelled; invalid_argument for the options. Threads: cameras are decoded
/// on the pool of `context`. Memory: two pictures per camera and the columns of the episode.
Result<QualityReport> check_episode(const Episode& episode, const QualityOptions& options,
                                    const RunContext& context);

}  // namespace ropewalk
