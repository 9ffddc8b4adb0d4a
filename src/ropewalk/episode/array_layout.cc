#include "ropewalk/episode/array_layout.h"

#include <algorithm>

#include <fmt/format.h>

namespace ropewalk {

Status check_array_feature(const Feature& feature, std::string_view layout) {
  const auto refuse = [&](std::string_view what) {
    return unimplemented(
        fmt::format("feature {}: the {} layout cannot hold {}; leave the feature out", feature.name,
                    layout, what));
  };
  switch (feature.kind) {
    case FeatureKind::column:
    case FeatureKind::image:
    case FeatureKind::video:
      break;
    case FeatureKind::points:
    case FeatureKind::audio:
    case FeatureKind::events:
      return refuse(fmt::format("features of kind {}", feature_kind_name(feature.kind)));
  }
  if (feature.own_timeline) return refuse("a stream of its own timeline");
  if (feature.is_ragged()) return refuse("a ragged shape");
  return ok_status();
}

std::vector<std::string> ordered_videos(const Schema& schema, const Json& row) {
  std::vector<std::string> keys;
  if (const Json* listed = row.find("video_keys"); listed != nullptr && listed->is_array()) {
    for (const Json& key : *listed->as_array()) {
      if (const std::string* text = key.as_string()) keys.push_back(*text);
    }
  }
  std::vector<std::string> out;
  for (const Feature* video : schema.of_kind(FeatureKind::video)) out.push_back(video->name);
  std::ranges::stable_sort(out, {}, [&](const std::string& name) {
    return std::ranges::find(keys, name) - keys.begin();
  });
  return out;
}

}  // namespace ropewalk
