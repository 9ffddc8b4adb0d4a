#pragma once
// What a published pair says about itself: the markers of its two halves, and whether they belong
// together. Spec: review-export-upload 5.5, 6.3 step 6, 6.4.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/base/core/json.h"

namespace ropewalk {

/// The marker `meta/quality_split.json` of one half.
struct Marker {
  Json json;
  std::string subset;          ///< "accepted" or "rejected"
  std::string dataset_format;  ///< empty where the file does not say
  std::string export_id;       ///< empty in pairs of the reference system
  std::vector<std::int64_t> source_episode_indices;
};

/// Errors: not_found; data_loss for anything but a marker.
Result<Marker> read_marker(const std::filesystem::path& half_dir);

struct Pair {
  Marker accepted;
  Marker rejected;
  std::string mixed;  ///< why the halves do not belong together; empty when they do
};

/// Reads both markers. Errors: not_found, data_loss.
Result<Pair> read_pair(const std::filesystem::path& pair_dir);

/// Checks that both halves are there, belong together, and hold what their manifests list (sizes).
/// With an `export_id` the pair must be that one; without, a pair of the reference system passes
/// without a manifest. Errors: not_found, data_loss, failed_precondition for a mixed pair.
Status verify_pair(const std::filesystem::path& pair_dir, std::string_view export_id = {});

/// What lies at the place of a pair.
enum class PairPresence {
  absent,
  empty,       ///< a directory without entries
  pair,        ///< both halves with their markers
  incomplete,  ///< one half, or a half without its marker
  other,       ///< something that is no pair
};
Result<PairPresence> look_at(const std::filesystem::path& pair_dir);

/// The result of the decode proof, kept as `verify.json` beside the halves.
struct Verification {
  std::string export_id;
  std::string verified_at;  ///< UTC ISO
  std::string accepted_manifest_sha256;
  std::string rejected_manifest_sha256;
  std::string result;  ///< "passed" or "failed"
  Json findings = Json::array();
};

/// Replaces `verify.json` durably.
Status write_verification(const std::filesystem::path& pair_dir, const Verification& verification);
/// Returns nullopt when there is none. Errors: data_loss.
Result<std::optional<Verification>> read_verification(const std::filesystem::path& pair_dir);

}  // namespace ropewalk
