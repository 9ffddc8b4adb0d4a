#pragma once
// check: validates a LeRobot dataset and says everything that is wrong with it, at once.
// The codes, with the decision taken in lenient and in strict mode, stand in docs/findings.md.
#include <filesystem>
#include <span>

#include "ropewalk/dataset/lerobot/source.h"

namespace ropewalk {

struct CheckOptions {
  bool strict = false;  ///< what lenient mode repairs is an error
  bool decode = false;  ///< decode every frame of every camera
  Limits limits = {};
};

struct CheckReport {
  std::string format;         ///< "lerobot_v21", …; empty when it could not be told
  std::int64_t episodes = 0;  ///< that can be read
  std::int64_t listed = 0;    ///< in the metadata
  std::int64_t frames = 0;    ///< grid frames of those that can be read
  std::int64_t decoded = 0;   ///< pictures decoded
  Findings findings;          ///< everything found, in the order of the dataset
  bool ok() const { return !findings.has_errors(); }
  Json to_json() const;
};

/// Reads metadata, footers, indices and all columns, on the pool of `context`.
/// A dataset that cannot be opened at all gives a report with one error, not a Status.
/// Errors: not_found for a path that is not there; cancelled.
Result<CheckReport> check_dataset(const std::filesystem::path& root, const CheckOptions& options,
                                  const RunContext& context);

/// Checks what an export of the episodes at positions `episodes` (all when empty) needs, and gives
/// every reason against it: files that are missing or Git LFS pointers, table and video counts that
/// differ from the listed length, task_index values without a text, missing columns, episodes
/// without frames, duplicate indices, a source that is not v2.1. Reads footers, MP4 indices and the
/// task_index column. Entries of severity error forbid the export.
/// Errors: cancelled; out_of_range for a position.
/// Spec: review-export-upload 5.3.
Result<Findings> validate_for_export(const LerobotSource& source,
                                     std::span<const std::int64_t> episodes,
                                     const RunContext& context);

}  // namespace ropewalk
