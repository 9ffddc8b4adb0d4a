#include "ropewalk/episode/side_files_reader.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <optional>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"

namespace ropewalk {
namespace {

template <std::size_t N>
Json members_except(const Json& object, const std::array<std::string_view, N>& known) {
  Json out = Json::object();
  for (const auto& [key, value] : *object.as_object()) {
    if (std::ranges::find(known, key) == known.end()) out.set(key, value);
  }
  return out.size() == 0 ? Json() : out;
}

Result<Feature> parse_feature(const std::string& name, const Json& entry) {
  if (!entry.is_object()) {
    return data_loss(
        fmt::format("feature {}: expected an object, found {}", name, entry.type_name()));
  }
  Feature feature;
  feature.name = name;
  const std::string dtype = entry.get_string("dtype").value_or("");
  if (dtype == "video" || dtype == "image") {
    feature.kind = FeatureKind::video;
    feature.dtype = DType::uint8;
  } else if (const auto found = dtype_from_name(dtype)) {
    feature.dtype = *found;
  } else {
    return data_loss(fmt::format(
        "feature {}: dtype: expected a numeric type, string, image or video, found '{}'", name,
        dtype));
  }
  const Json* shape = entry.find("shape");
  if (shape == nullptr || !shape->is_array()) {
    return data_loss(fmt::format("feature {}: shape: expected a list", name));
  }
  for (const Json& extent : *shape->as_array()) {
    const auto value = extent.as_int64();
    if (!value || *value < -1) {
      return data_loss(
          fmt::format("feature {}: shape: expected lengths, found {}", name, shape->dump()));
    }
    feature.shape.push_back(*value);
  }
  if (const Json* names = entry.find("names")) feature.names = *names;
  for (const char* key : {"info", "video_info"}) {
    if (const Json* info = entry.find(key)) feature.info = *info;
  }
  feature.extra = members_except(
      entry, std::array<std::string_view, 5>{"dtype", "shape", "names", "info", "video_info"});
  return feature;
}

Result<Schema> parse_schema(const Json& info) {
  Schema schema;
  const auto fps = info.get_double("fps");
  if (!fps) return data_loss("fps: expected a number");
  auto rate = rational_from_rate(*fps);
  if (!rate.ok()) return data_loss(fmt::format("fps: {}", rate.status().message()));
  schema.fps = *rate;
  schema.robot_type = info.get_string("robot_type").value_or("");
  const Json* features = info.find("features");
  if (features == nullptr || !features->is_object()) {
    return data_loss("features: expected an object");
  }
  for (const auto& [name, entry] : *features->as_object()) {
    ROPEWALK_ASSIGN_OR_RETURN(Feature feature, parse_feature(name, entry));
    schema.features.push_back(std::move(feature));
  }
  schema.extra = members_except(
      info, std::array<std::string_view, 15>{
                "codebase_version", "robot_type", "total_episodes", "total_frames", "total_tasks",
                "total_videos", "total_chunks", "chunks_size", "fps", "splits", "data_path",
                "video_path", "features", "dataset_format", "embedded_images"});
  return schema;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

Result<EpisodeInfo> parse_row(Json row) {
  EpisodeInfo info;
  const auto index = row.get_int64("episode_index");
  const auto length = row.get_int64("length");
  if (!index || !length || *length < 0) {
    return data_loss("expected integers episode_index and length");
  }
  info.index = *index;
  info.length = *length;
  if (const Json* tasks = row.find("tasks"); tasks != nullptr && tasks->is_array()) {
    for (const Json& task : *tasks->as_array()) {
      if (const std::string* text = task.as_string()) info.tasks.push_back(*text);
    }
  }
  info.quality = lower(row.get_string("quality").value_or(""));
  if (const Json* issues = row.find("quality_issues")) info.issues = *issues;
  info.verdict = lower(row.get_string("qc_verdict").value_or(""));
  info.note = row.get_string("qc_note").value_or("");
  info.row = std::move(row);
  return info;
}

/// Calls `take` with each JSON line of the text of `path`, parsed and as it stands. Lines end at
/// LF; the last one may lack it.
Status for_each_line(const std::filesystem::path& path, std::string_view text, const Limits& limits,
                     const std::function<Status(Json, std::string_view)>& take) {
  std::string_view rest = text;
  for (std::int64_t line = 1; !rest.empty(); ++line) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view one = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto json = parse_json(one, limits);
    Status status = json.ok() ? take(std::move(*json), one) : json.status();
    if (!status.ok()) {
      return status.with_context(fmt::format("{}: line {}", path.string(), line));
    }
  }
  return ok_status();
}

}  // namespace

Result<SideFileContents> read_side_files(const std::filesystem::path& root, const Limits& limits) {
  SideFileContents out;
  const auto meta = root / "meta";
  const auto info_path = meta / "info.json";
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                            read_text_file(info_path, limits.max_json_bytes));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(out.info, parse_json(text, limits), info_path.string());
  if (!out.info.is_object()) {
    return data_loss(
        fmt::format("{}: expected an object, found {}", info_path.string(), out.info.type_name()));
  }
  out.codebase_version = out.info.get_string("codebase_version").value_or("");
  out.dataset_format = out.info.get_string("dataset_format").value_or("");
  ROPEWALK_ASSIGN_OR_RETURN_CTX(out.schema, parse_schema(out.info), info_path.string());

  const auto rows_path = meta / "episodes.jsonl";
  ROPEWALK_ASSIGN_OR_RETURN(out.row_text, read_text_file(rows_path, limits.max_json_bytes));
  const auto take_row = [&](Json row, std::string_view line) -> Status {
    if (out.rows.size() >= limits.max_episodes) {
      return resource_exhausted(
          fmt::format("more than {} episodes, the limit", limits.max_episodes));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const EpisodeInfo info, parse_row(std::move(row)));
    if (info.index != out.size()) {
      return data_loss(fmt::format("episode_index: expected {}, found {}", out.size(), info.index));
    }
    out.rows.push_back(
        {static_cast<std::uint64_t>(line.data() - out.row_text.data()), line.size()});
    return ok_status();
  };
  ROPEWALK_RETURN_IF_ERROR(for_each_line(rows_path, out.row_text, limits, take_row));

  std::vector<std::optional<std::string>> tasks;
  const auto tasks_path = meta / "tasks.jsonl";
  const auto tasks_text = read_text_file(tasks_path, limits.max_json_bytes);
  if (!tasks_text.ok() && tasks_text.status().code() != StatusCode::not_found) {
    return tasks_text.status();
  }
  const auto take_task = [&](Json line, std::string_view) -> Status {
    const auto index = line.get_int64("task_index");
    auto task = line.get_string("task");
    if (!index || *index < 0 || !task) return data_loss("expected task_index and task");
    // Every line adds at most one place, so that an index cannot claim memory.
    if (*index > static_cast<std::int64_t>(tasks.size())) {
      return data_loss(
          fmt::format("task_index: expected at most {}, found {}", tasks.size(), *index));
    }
    if (*index == static_cast<std::int64_t>(tasks.size())) tasks.emplace_back();
    tasks[static_cast<std::size_t>(*index)] = std::move(*task);
    return ok_status();
  };
  if (tasks_text.ok()) {
    ROPEWALK_RETURN_IF_ERROR(for_each_line(tasks_path, *tasks_text, limits, take_task));
  }
  for (auto& task : tasks) out.tasks.push_back(std::move(*task));

  auto stats = read_text_file(meta / "stats.json", limits.max_json_bytes);
  if (stats.ok()) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(out.statistics, parse_json(*stats, limits),
                                  (meta / "stats.json").string());
  } else if (stats.status().code() != StatusCode::not_found) {
    return stats.status();
  }
  return out;
}

EpisodeInfo SideFileContents::episode(std::int64_t i) const {
  const Row& row = rows[static_cast<std::size_t>(i)];
  auto json = parse_json(std::string_view(row_text).substr(row.offset, row.bytes));
  if (!json.ok()) return {.index = i};
  auto parsed = parse_row(std::move(json).value());
  return parsed.ok() ? std::move(parsed).value() : EpisodeInfo{.index = i};
}

}  // namespace ropewalk
