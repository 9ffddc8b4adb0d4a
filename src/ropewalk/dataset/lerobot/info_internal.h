#pragma once
// info.json read leniently: the schema, the paths, the totals, and what is odd about them.
// Spec: lerobot-formats 2.2, 2.3, 3.2, hard inputs H01 to H04, H10, H13, H15, H20.
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/dataset/lerobot/finding_rules_internal.h"
#include "ropewalk/dataset/lerobot/layout_internal.h"
#include "ropewalk/dataset/lerobot/probe.h"
#include "ropewalk/episode/schema.h"

namespace ropewalk::lerobot {

struct Info {
  Json document;  ///< as found
  LerobotGeneration generation = LerobotGeneration::v21;
  Schema schema;
  std::vector<std::string> physical;  ///< column or video key in files, by place in the features
  std::int64_t chunks_size = 1000;
  PathTemplate data_path;
  PathTemplate video_path;
  std::optional<std::int64_t> total_episodes;
  std::optional<std::int64_t> total_frames;
  std::optional<std::int64_t> total_tasks;
  std::optional<std::int64_t> total_videos;

  /// Returns the column or video key behind a feature of the schema.
  const std::string& physical_name(std::string_view feature) const;
  void drop_feature(std::string_view feature);
};

/// Reads one JSON document; byte order mark, NaN literals and duplicated keys become findings.
/// `file` is its path below the root. Errors: those of reading; data_loss for bad JSON.
Result<Json> read_json_document(const std::filesystem::path& root, const std::string& file,
                                const Limits& limits, FindingLog& log);
/// Reads a document from memory; the parser behind read_json_document and its fuzz target.
Result<Json> parse_json_document(std::string_view text, const std::string& file,
                                 const Limits& limits, FindingLog& log);

/// What probe_lerobot decides, from a document that is read already.
Result<LerobotProbe> probe_document(const std::filesystem::path& root, const Json& document);

/// Errors: data_loss for a document without features or without a usable rate; permission_denied
/// for a video key that would leave the root.
Result<Info> parse_info(Json document, LerobotGeneration generation, FindingLog& log);

/// Compares `splits` with the number of episodes.
void check_splits(const Info& info, std::int64_t episodes, FindingLog& log);

/// How a declared camera shape is meant.
struct CameraShape {
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::int64_t channels = 3;
  bool valid = false;      ///< three positive extents, or two
  bool reordered = false;  ///< declared in another order than height, width, channels
};
CameraShape interpret_camera_shape(const std::vector<std::int64_t>& shape, const Json& names);

/// "[3, 480, 640]".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace ropewalk::lerobot
