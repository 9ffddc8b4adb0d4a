#include "ropewalk/episode/side_files.h"

#include <array>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"

namespace ropewalk {
namespace {

constexpr std::array<std::string_view, 14> kOwnInfoKeys{
    "codebase_version", "robot_type",   "total_episodes", "total_frames",  "total_tasks",
    "total_videos",     "total_chunks", "chunks_size",    "fps",           "splits",
    "data_path",        "video_path",   "features",       "dataset_format"};

bool is_own_key(std::string_view key) {
  for (const std::string_view own : kOwnInfoKeys) {
    if (own == key) return true;
  }
  return key == "embedded_images" || key == "data_files_size_in_mb" ||
         key == "video_files_size_in_mb";
}

}  // namespace

Json feature_to_json(const Feature& feature) {
  Json out = Json::object();
  std::string dtype(dtype_name(feature.dtype));
  if (feature.is_camera()) dtype = feature_kind_name(feature.kind);
  out.set("dtype", dtype);
  Json shape = Json::array();
  for (const std::int64_t extent : feature.shape) shape.push_back(extent);
  out.set("shape", std::move(shape));
  Json names = feature.names;
  if (feature.is_camera()) {
    names = Json(Json::Array{Json("height"), Json("width"), Json("channels")});
  }
  out.set("names", std::move(names));
  if (feature.is_camera() && !feature.info.is_null()) out.set("info", feature.info);
  if (const auto* extra = feature.extra.as_object()) {
    for (const auto& [key, value] : *extra) out.set(key, value);
  }
  return out;
}

Result<SideFiles> SideFiles::create(std::filesystem::path root, SideFileOptions options) {
  ROPEWALK_RETURN_IF_ERROR(make_directories(root / "meta"));
  ROPEWALK_ASSIGN_OR_RETURN(auto rows, create_sink(root / "meta" / "episodes.jsonl"));
  return SideFiles(std::move(root), std::move(options), std::move(rows));
}

Status SideFiles::add(const NumberedEpisode& episode, std::int64_t videos) {
  Json row = episode.row;
  if (options_.embedded_images) {
    row.erase("video_keys");
    row.erase("total_videos");
  }
  std::string line = row.dump_spaced();
  line.push_back('\n');
  rows_hash_.update(as_bytes(line));
  videos_ += videos;
  return rows_->append(as_bytes(line));
}

Status SideFiles::finish(const Schema& schema, const Numbering& numbering, const Json& statistics) {
  ROPEWALK_RETURN_IF_ERROR(rows_->sync());
  ROPEWALK_RETURN_IF_ERROR(rows_->close());
  files_.push_back({"meta/episodes.jsonl", rows_->size(), rows_hash_.finish_hex()});
  const auto put = [this](const std::string& path, const std::string& text) -> Status {
    ROPEWALK_RETURN_IF_ERROR(write_new_file(root_ / path, as_bytes(text)));
    files_.push_back({path, text.size(), sha256_hex(as_bytes(text))});
    return ok_status();
  };

  std::string tasks;
  // An empty half has no tasks at all; otherwise numbering registered at least one.
  for (std::size_t i = 0; i < numbering.tasks().size(); ++i) {
    Json line = Json::object();
    line.set("task_index", static_cast<std::int64_t>(i));
    line.set("task", numbering.tasks()[i]);
    tasks += line.dump_spaced() + "\n";
  }
  ROPEWALK_RETURN_IF_ERROR(put("meta/tasks.jsonl", tasks));

  const std::int64_t episodes = numbering.episodes();
  Json info = Json::object();
  info.set("codebase_version", options_.codebase_version);
  info.set("robot_type", schema.robot_type.empty() ? Json() : Json(schema.robot_type));
  info.set("total_episodes", episodes);
  info.set("total_frames", numbering.frames());
  info.set("total_tasks", static_cast<std::int64_t>(numbering.tasks().size()));
  info.set("total_videos", videos_);
  info.set("total_chunks", (episodes + kEpisodesPerChunk - 1) / kEpisodesPerChunk);
  info.set("chunks_size", kEpisodesPerChunk);
  info.set("fps", schema.fps.is_integral() ? Json(schema.fps.num) : Json(schema.fps.to_double()));
  info.set("splits", Json(Json::Object{{"train", Json(fmt::format("0:{}", episodes))}}));
  info.set("data_path", options_.data_path);
  if (!options_.video_path.empty() && !schema.of_kind(FeatureKind::video).empty()) {
    info.set("video_path", options_.video_path);
  } else if (!options_.embedded_images) {
    info.set("video_path", Json());
  }
  Json features = Json::object();
  for (const Feature& feature : schema.features) {
    Json entry = feature_to_json(feature);
    if (options_.embedded_images && feature.is_camera()) entry.set("dtype", "image");
    features.set(feature.name, std::move(entry));
  }
  info.set("features", std::move(features));
  if (!options_.dataset_format.empty()) info.set("dataset_format", options_.dataset_format);
  if (options_.embedded_images) info.set("embedded_images", true);
  if (const auto* kept = schema.extra.as_object()) {
    for (const auto& [key, value] : *kept) {
      if (!is_own_key(key)) info.set(key, value);
    }
  }
  ROPEWALK_RETURN_IF_ERROR(put("meta/info.json", info.dump(options_.indent) + "\n"));
  const Json stats = statistics.is_object() ? statistics : Json::object();
  return put("meta/stats.json", stats.dump(options_.indent) + "\n");
}

}  // namespace ropewalk
