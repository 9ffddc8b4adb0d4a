#pragma once
// Schema: what an episode holds: its rate, its robot, its features. The names and values are those
// of the LeRobot formats, since every dataset of the field can be said in them.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/dtype.h"
#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/rational.h"

namespace ropewalk {

/// What a feature is. A sink names the kinds it can hold; others it refuses or drops with a report.
enum class FeatureKind : std::uint8_t {
  column,  ///< one value, vector or array per grid frame, in the table
  image,   ///< one picture per grid frame, stored inside the table (PNG, JPEG, TIFF bytes)
  video,   ///< one picture per grid frame, in an encoded stream
  points,  ///< point clouds, ragged
  audio,   ///< samples at their own rate
  events,  ///< sparse, on their own timeline
};

std::string_view feature_kind_name(FeatureKind kind);

/// One feature. Shape: without the frame axis; a scalar is [1]; -1 marks a free (ragged) length.
struct Feature {
  std::string name;
  FeatureKind kind = FeatureKind::column;
  DType dtype = DType::float32;     ///< of one element; uint8 for image and video
  std::vector<std::int64_t> shape;  ///< cameras: [height, width, channels]
  Json names;                       ///< as found: a list, an object, nested lists, or null
  Json info;                        ///< `info` or `video_info` of cameras, as found
  Json extra;                       ///< unknown members of the entry, as found
  bool own_timeline = false;        ///< not on the grid: read it with Episode::stream()

  bool is_camera() const { return kind == FeatureKind::image || kind == FeatureKind::video; }
  bool is_ragged() const;
  /// Product of the shape; 0 when ragged.
  std::int64_t elements() const;
};

/// The five columns that every LeRobot table has, in the order they are appended.
/// timestamp float32; frame_index, episode_index, index, task_index int64.
const std::vector<std::string>& default_column_names();
bool is_default_column(std::string_view name);
/// The declarations of these five, all of shape [1].
std::vector<Feature> default_features();

struct Schema {
  Rational fps{30, 1};
  std::string robot_type;         ///< empty: unknown
  std::vector<Feature> features;  ///< in the order of the source, the five default ones included
  Json extra;                     ///< unknown members of info.json, as found

  const Feature* find(std::string_view name) const;
  /// Names of features of kind video or image, in schema order.
  std::vector<std::string> cameras() const;
  std::vector<const Feature*> of_kind(FeatureKind kind) const;
};

/// Flattens `names` to one list when its length equals `dimension`: a list, nested lists,
/// {"motors": […]}, {"axes": […]}, {name: index}. Returns nullopt otherwise; the raw form is then
/// kept. Spec: lerobot formats, hard input H01.
std::optional<std::vector<std::string>> flat_names(const Json& names, std::int64_t dimension);

}  // namespace ropewalk
