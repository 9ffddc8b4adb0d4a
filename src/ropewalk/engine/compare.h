#pragma once
// compare: whether a copy of an episode says what its source says: every column, and pictures.
// It stands on the waist alone, so it proves any sink against any source.
#include <cstdint>
#include <string>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

struct CompareOptions {
  bool all_frames = false;  ///< decode every frame; otherwise first, middle and last of each camera
  int max_level_difference = 0;  ///< allowed per sample; above 0 only where video was re-encoded
};

/// What the copy must carry in the columns that sinks rewrite.
struct ExpectedNumbers {
  std::int64_t episode_index = 0;
  std::int64_t index_begin = 0;
};

struct CompareResult {
  std::int64_t columns = 0;  ///< columns compared
  std::int64_t frames = 0;   ///< pictures decoded and compared
};

/// Compares `copy` with `source`. Every column of the copy except the numbers must equal the
/// source's after the cast to the copy's declared type; the numbers must be dense; each frame's
/// task text must be the same; decoded pictures must agree. Errors: data_loss naming the column and
/// row, or the camera and frame, that differs; cancelled.
Result<CompareResult> compare_episodes(const Episode& source, const Episode& copy,
                                       const ExpectedNumbers& numbers,
                                       const CompareOptions& options, const RunContext& context);

}  // namespace ropewalk
