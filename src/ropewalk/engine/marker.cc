#include "ropewalk/engine/marker.h"

#include <fmt/format.h>

namespace ropewalk {

Json to_json(const SplitMarker& marker) {
  Json out = Json::object();
  out.set("source_dir", marker.source_dir);
  out.set("subset", marker.subset);
  out.set("dataset_format", marker.dataset_format);
  out.set("rule", marker.rule);
  Json indices = Json::array();
  for (const std::int64_t index : marker.source_episode_indices) indices.push_back(index);
  out.set("source_episode_indices", std::move(indices));
  if (!marker.episode_selection.empty()) out.set("episode_selection", marker.episode_selection);
  if (!marker.export_id.empty()) out.set("export_id", marker.export_id);
  if (marker.source_revision) out.set("source_revision", *marker.source_revision);
  if (!marker.source_digest.empty()) out.set("source_digest", marker.source_digest);
  if (!marker.exported_at.empty()) out.set("exported_at", marker.exported_at);
  if (!marker.generator.empty()) out.set("generator", marker.generator);
  Json counts = Json::object();
  counts.set("accepted_episodes", marker.counts.accepted_episodes);
  counts.set("rejected_episodes", marker.counts.rejected_episodes);
  counts.set("accepted_frames", marker.counts.accepted_frames);
  counts.set("rejected_frames", marker.counts.rejected_frames);
  counts.set("overrides", marker.counts.overrides);
  out.set("counts", std::move(counts));
  return out;
}

Result<SplitMarker> split_marker_from_json(const Json& json) {
  SplitMarker marker;
  for (const auto& [key, into] : std::initializer_list<std::pair<const char*, std::string*>>{
           {"source_dir", &marker.source_dir},
           {"subset", &marker.subset},
           {"dataset_format", &marker.dataset_format}}) {
    const auto value = json.get_string(key);
    if (!value) return data_loss(fmt::format("marker: member {} is missing or no string", key));
    *into = *value;
  }
  if (marker.subset != "accepted" && marker.subset != "rejected") {
    return data_loss(
        fmt::format("marker: subset is '{}', expected accepted or rejected", marker.subset));
  }
  const Json* indices = json.find("source_episode_indices");
  if (!indices || !indices->is_array()) {
    return data_loss("marker: member source_episode_indices is missing or no list");
  }
  for (const Json& item : *indices->as_array()) {
    const auto index = item.as_int64();
    if (!index)
      return data_loss("marker: source_episode_indices holds something else than integers");
    marker.source_episode_indices.push_back(*index);
  }
  marker.rule = json.get_string("rule").value_or("");
  marker.episode_selection = json.get_string("episode_selection").value_or("");
  marker.export_id = json.get_string("export_id").value_or("");
  marker.source_revision = json.get_int64("source_revision");
  marker.source_digest = json.get_string("source_digest").value_or("");
  marker.exported_at = json.get_string("exported_at").value_or("");
  marker.generator = json.get_string("generator").value_or("");
  if (const Json* counts = json.find("counts")) {
    marker.counts.accepted_episodes = counts->get_int64("accepted_episodes").value_or(0);
    marker.counts.rejected_episodes = counts->get_int64("rejected_episodes").value_or(0);
    marker.counts.accepted_frames = counts->get_int64("accepted_frames").value_or(0);
    marker.counts.rejected_frames = counts->get_int64("rejected_frames").value_or(0);
    marker.counts.overrides = counts->get_int64("overrides").value_or(0);
  }
  return marker;
}

}  // namespace ropewalk
