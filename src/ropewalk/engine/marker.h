#pragma once
// The marker meta/quality_split.json inside each half of a published pair.
// Spec: review-export-upload 5.5. Markers of other writers lack the keys added here; they read as
// well.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {

struct SplitCounts {
  std::int64_t accepted_episodes = 0;
  std::int64_t rejected_episodes = 0;
  std::int64_t accepted_frames = 0;
  std::int64_t rejected_frames = 0;
  std::int64_t overrides = 0;
  bool operator==(const SplitCounts&) const = default;
};

/// All members of a marker; stage/publish reads the few it needs by itself.
struct SplitMarker {
  std::string source_dir;
  std::string subset;          ///< "accepted" or "rejected"
  std::string dataset_format;  ///< "lerobot_v21", "lerobot_v3", "hdf5", "mcap"
  std::string rule;
  std::vector<std::int64_t> source_episode_indices;  ///< position = new index
  std::string episode_selection;                     ///< empty: all
  std::string export_id;                             ///< empty in markers of other writers
  std::optional<std::int64_t> source_revision;
  std::string source_digest;
  std::string exported_at;
  std::string generator;
  SplitCounts counts;
};

Json to_json(const SplitMarker& marker);
/// Errors: data_loss naming the member that is missing or of another type.
Result<SplitMarker> split_marker_from_json(const Json& json);

}  // namespace ropewalk
