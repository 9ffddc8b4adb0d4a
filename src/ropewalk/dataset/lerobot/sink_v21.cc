#include "ropewalk/dataset/lerobot/sink_v21.h"

#include <algorithm>

#include <arrow/api.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/sink_files_internal.h"
#include "ropewalk/dataset/lerobot/table_schema_internal.h"
#include "ropewalk/episode/numbering.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/statistics.h"
#include "ropewalk/format/parquet/writer.h"

namespace ropewalk {
namespace {

using namespace lerobot_internal;

constexpr const char* kDataPath =
    "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet";
constexpr const char* kVideoPath =
    "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4";

std::string data_path(std::int64_t episode) {
  return fmt::format("data/chunk-{:03d}/episode_{:06d}.parquet", episode / kEpisodesPerChunk,
                     episode);
}

std::string video_path(const std::string& camera, std::int64_t episode) {
  return fmt::format("videos/chunk-{:03d}/{}/episode_{:06d}.mp4", episode / kEpisodesPerChunk,
                     camera, episode);
}

/// Whether an entry of the source holds for this episode: as many elements as the feature, and a
/// count: of its rows, or for cameras of its sampled frames.
bool is_whole(const FeatureStatistics& found, const Feature& feature, std::int64_t length) {
  if (feature.is_camera()) return found.count > 0 && found.mean.size() == 3;
  return found.count == length && found.mean.size() == static_cast<std::size_t>(feature.elements());
}

/// Whether readers take the nesting of an entry as it is; if not, its numbers are nested anew.
bool is_nested_well(const FeatureStatistics& found, const Feature& feature, const Json& entry) {
  const std::vector<std::int64_t> shape =
      feature.is_camera() ? std::vector<std::int64_t>{3, 1, 1} : feature.shape;
  bool lists = found.shape == shape;
  for (const char* key : {"min", "max", "mean", "std", "count"}) {
    lists = lists && entry.find(key) != nullptr && entry.find(key)->is_array();
  }
  return lists;
}

class V21Sink final : public LerobotV21Sink {
 public:
  V21Sink(std::filesystem::path root, LerobotV21Options options, SideFiles side_files,
          std::unique_ptr<HashingSink> statistics)
      : root_(std::move(root)),
        options_(std::move(options)),
        encode_{.settings = options_.encoder, .repair_video = options_.repair_video},
        side_files_(std::move(side_files)),
        statistics_file_(std::move(statistics)) {}

  std::string_view format() const override { return "lerobot_v21"; }
  Status write(const Episode& episode, const RunContext& context) override;
  Status finish(const RunContext& context) override;
  const std::vector<WrittenFile>& files() const override { return files_; }
  const std::vector<ClipRecord>& clips() const override { return clips_; }
  const Findings& findings() const override { return findings_; }

 private:
  Status begin(const Schema& schema, const arrow::RecordBatch* first);
  Result<std::int64_t> write_videos(const Episode& episode, std::int64_t episode_index,
                                    const RunContext& context);
  Status write_clip(const OutputFeature& camera, Clip clip, std::int64_t episode_index,
                    const RunContext& context);
  Status write_table(std::shared_ptr<arrow::RecordBatch> table, std::int64_t episode_index,
                     const RunContext& context);
  Status write_statistics(const Episode& episode, const NumberedEpisode& numbered,
                          const arrow::RecordBatch& table, const RunContext& context);

  std::filesystem::path root_;
  LerobotV21Options options_;
  EncodeOptions encode_;
  SideFiles side_files_;
  std::unique_ptr<HashingSink> statistics_file_;
  std::optional<Schema> schema_;  ///< of the first episode
  OutputTable table_;
  std::string huggingface_;
  std::vector<bool> described_;  ///< by output feature: a stream of it was seen
  Numbering numbering_;
  StatisticsPool pool_;
  Written written_;
  Findings findings_;
  std::vector<WrittenFile> files_;
  std::vector<ClipRecord> clips_;
  JobWindow jobs_;  // last: its destructor waits for jobs that use the members above
};

Status V21Sink::begin(const Schema& schema, const arrow::RecordBatch* first) {
  schema_ = schema;
  table_ = plan_table(schema, first, options_.drop_features, findings_);
  huggingface_ = huggingface_metadata(table_);
  described_.assign(table_.features.size(), false);
  return ok_status();
}

Status V21Sink::write(const Episode& episode, const RunContext& context) {
  const EpisodeInfo& info = episode.info();
  if (info.length == 0) {
    findings_.add({.code = "empty_episode_dropped",
                   .episode = info.index,
                   .decision = "left out: readers refuse an episode without frames"});
    return ok_status();
  }
  ROPEWALK_ASSIGN_OR_RETURN(NumberedEpisode numbered, numbering_.number(episode));
  if (!schema_) ROPEWALK_RETURN_IF_ERROR(begin(episode.schema(), numbered.columns.get()));
  ROPEWALK_ASSIGN_OR_RETURN(
      auto table, conform(table_, *numbered.columns, schema_->fps, info.index, findings_));
  numbered.columns.reset();
  if (const auto row = first_bad_step(*table, schema_->fps)) {
    findings_.add(
        {.code = "timestamp_float32_step",
         .episode = info.index,
         .feature = "timestamp",
         .row = *row,
         .found = fmt::format("{} rows at {} fps", info.length, to_string(schema_->fps)),
         .decision = "written whole; upstream's v2.1 loader refuses an episode this long"});
  }
  ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t videos,
                            write_videos(episode, numbered.episode_index, context));
  ROPEWALK_RETURN_IF_ERROR(write_statistics(episode, numbered, *table, context));
  ROPEWALK_RETURN_IF_ERROR(write_table(std::move(table), numbered.episode_index, context));
  if (Json::Object* row = numbered.row.as_object()) {
    std::erase_if(*row, [](const Json::Member& member) { return is_locator_key(member.first); });
  }
  return side_files_.add(numbered, videos);
}

Result<std::int64_t> V21Sink::write_videos(const Episode& episode, std::int64_t episode_index,
                                           const RunContext& context) {
  std::int64_t videos = 0;
  std::vector<std::size_t> to_encode;
  for (std::size_t i = 0; i < table_.features.size(); ++i) {
    OutputFeature& camera = table_.features[i];
    if (camera.storage != Storage::video) continue;
    if (!episode.has_camera(camera.source)) {
      findings_.add({.code = "camera_missing",
                     .episode = episode.info().index,
                     .feature = camera.source,
                     .decision = "written without it; upstream cannot load such an episode"});
      continue;
    }
    ++videos;
    ROPEWALK_ASSIGN_OR_RETURN(auto clip, open_clip(episode, camera.source, encode_, findings_));
    if (!clip) {
      to_encode.push_back(i);
      continue;
    }
    if (!described_[i]) describe_camera(camera.feature, clip->params, schema_->fps);
    described_[i] = true;
    ROPEWALK_RETURN_IF_ERROR(write_clip(camera, std::move(*clip), episode_index, context));
  }
  // Frames come through the episode, which its caller keeps only until write() returns.
  std::vector<VideoParams> params(to_encode.size());
  ROPEWALK_RETURN_IF_ERROR(parallel_for(
      context.pool, static_cast<std::int64_t>(to_encode.size()), [&](std::int64_t k) -> Status {
        const OutputFeature& camera = table_.features[to_encode[static_cast<std::size_t>(k)]];
        const std::string path = video_path(camera.feature.name, episode_index);
        WrittenFile file;
        ROPEWALK_ASSIGN_OR_RETURN_CTX(
            const EncodedVideo encoded,
            encode_clip(episode, camera.source, root_, path, encode_, context.stop, &file), path);
        params[static_cast<std::size_t>(k)] = encoded.params;
        written_.add(ClipRecord{.path = path,
                                .camera = camera.feature.name,
                                .episode_index = episode_index,
                                .frames = encoded.frames,
                                .encoded = true,
                                .sha256 = encoded.packet_sha256});
        written_.add(std::move(file));
        return ok_status();
      }));
  for (std::size_t k = 0; k < to_encode.size(); ++k) {
    OutputFeature& camera = table_.features[to_encode[k]];
    findings_.add({.code = "video_encoded",
                   .severity = Severity::info,
                   .feature = camera.source,
                   .decision = "encoded, since the source has no encoded form of it"});
    if (!described_[to_encode[k]]) describe_camera(camera.feature, params[k], schema_->fps);
    described_[to_encode[k]] = true;
  }
  return videos;
}

Status V21Sink::write_clip(const OutputFeature& camera, Clip clip, std::int64_t episode_index,
                           const RunContext& context) {
  ClipRecord record{.path = video_path(camera.feature.name, episode_index),
                    .camera = camera.feature.name,
                    .episode_index = episode_index,
                    .frames = clip.frames,
                    .whole_file = clip.file.has_value()};
  const auto from = std::make_shared<Clip>(std::move(clip));
  if (from->file) from->reader.reset();
  const Rational fps = schema_->fps;
  return jobs_.run(
      context.pool, 1 << 20, [this, record, from, fps, stop = context.stop]() -> Status {
        ClipRecord done = record;
        const std::filesystem::path to = root_ / done.path;
        if (from->file) {
          Sha256 hash;
          std::uint64_t size = 0;
          ROPEWALK_RETURN_IF_ERROR(make_directories(to.parent_path()));
          ROPEWALK_RETURN_IF_ERROR(copy_file(
              *from->file, to,
              [&](ByteSpan bytes) {
                hash.update(bytes);
                size += bytes.size();
              },
              stop));
          done.sha256 = hash.finish_hex();
          written_.add(WrittenFile{done.path, size, done.sha256});
          written_.add(std::move(done));
          return ok_status();
        }
        Mp4Plan plan{.params = from->params, .fps = fps};
        for (std::int64_t i = 0; i < from->frames; ++i) {
          const PacketReader::PacketEntry entry = from->reader->entry(i);
          plan.packets.push_back(
              {entry.size_bytes, static_cast<std::uint32_t>(entry.ordinal), entry.keyframe});
        }
        ROPEWALK_ASSIGN_OR_RETURN(const auto sink, HashingSink::create(root_, done.path));
        ROPEWALK_ASSIGN_OR_RETURN_CTX(Mp4Writer writer, Mp4Writer::create(*sink, plan), done.path);
        ROPEWALK_ASSIGN_OR_RETURN_CTX(done.sha256, append_packets(*from, writer, stop), done.path);
        ROPEWALK_RETURN_IF_ERROR(writer.finish().with_context(done.path));
        ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, sink->finish());
        written_.add(std::move(file));
        written_.add(std::move(done));
        return ok_status();
      });
}

Status V21Sink::write_table(std::shared_ptr<arrow::RecordBatch> table, std::int64_t episode_index,
                            const RunContext& context) {
  const auto bytes = static_cast<std::uint64_t>(arrow::util::TotalBufferSize(*table));
  return jobs_.run(context.pool, bytes,
                   [this, table = std::move(table), episode_index]() -> Status {
                     ROPEWALK_ASSIGN_OR_RETURN(
                         const auto sink, HashingSink::create(root_, data_path(episode_index)));
                     ROPEWALK_ASSIGN_OR_RETURN(
                         const auto writer,
                         ParquetWriter::create(*sink, table->schema(),
                                               {.metadata = {{"huggingface", huggingface_}}}));
                     ROPEWALK_RETURN_IF_ERROR(writer->write_row_group(*table));
                     ROPEWALK_RETURN_IF_ERROR(writer->close());
                     ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, sink->finish());
                     written_.add(std::move(file));
                     return ok_status();
                   });
}

Status V21Sink::write_statistics(const Episode& episode, const NumberedEpisode& numbered,
                                 const arrow::RecordBatch& table, const RunContext& context) {
  const Json source = episode.statistics();
  const StatisticsMap given = statistics_from_json(source);
  Json line = Json::object();
  StatisticsMap all;
  for (const OutputFeature& output : table_.features) {
    const Feature& feature = output.feature;
    const auto at = given.find(output.source);
    // The five default columns are new numbers; the source's describe the old ones.
    if (!is_default_column(feature.name) && at != given.end() &&
        is_whole(at->second, feature, numbered.length)) {
      FeatureStatistics found = at->second;
      Json kept = *source.find(output.source);
      if (!is_nested_well(found, feature, kept)) {
        found.shape = feature.is_camera() ? std::vector<std::int64_t>{3, 1, 1} : feature.shape;
        kept = statistics_to_json(found);
      }
      for (const std::string_view name : kQuantileNames) kept.erase(name);
      line.set(feature.name, std::move(kept));
      all[feature.name] = std::move(found);
      continue;
    }
    if (feature.is_camera()) {
      if (!episode.has_camera(output.source)) continue;
      ROPEWALK_ASSIGN_OR_RETURN(all[feature.name],
                                camera_statistics(episode, output.source, {}, context.stop));
    } else if (dtype_is_numeric(feature.dtype)) {
      ROPEWALK_ASSIGN_OR_RETURN(
          all[feature.name], column_statistics(*table.GetColumnByName(feature.name), feature, {}));
    } else {
      continue;
    }
    line.set(feature.name, statistics_to_json(all[feature.name]));
    if (is_default_column(feature.name)) continue;
    findings_.add({.code = "statistics_recomputed",
                   .severity = Severity::info,
                   .feature = output.source,
                   .decision = "computed, since the source has none that can be kept"});
  }
  pool_.add(all);
  Json row = Json::object();
  row.set("episode_index", numbered.episode_index);
  row.set("stats", std::move(line));
  return statistics_file_->append(as_bytes(row.dump_spaced() + "\n"));
}

Status V21Sink::finish(const RunContext& context) {
  ROPEWALK_RETURN_IF_ERROR(jobs_.wait());
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  if (!schema_) {
    Schema schema = options_.schema.value_or(Schema{.features = default_features()});
    ROPEWALK_RETURN_IF_ERROR(begin(schema, nullptr));
  }
  const StatisticsMap pooled = pool_.result();
  Json statistics = Json::object();
  for (const OutputFeature& output : table_.features) {
    const auto at = pooled.find(output.feature.name);
    if (at == pooled.end()) continue;
    const bool asked = options_.statistics_names.empty()
                           ? !output.feature.is_camera() && !is_default_column(output.feature.name)
                           : std::ranges::find(options_.statistics_names, output.source) !=
                                 options_.statistics_names.end();
    if (asked) statistics.set(output.feature.name, statistics_to_json(at->second, false));
  }
  ROPEWALK_RETURN_IF_ERROR(side_files_.finish(table_.declared(*schema_), numbering_, statistics));
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile lines, statistics_file_->finish());
  written_.add(std::move(lines));
  for (const WrittenFile& file : side_files_.files()) written_.add(file);
  files_ = written_.take_files();
  clips_ = written_.take_clips();
  return ok_status();
}

}  // namespace

Result<std::unique_ptr<LerobotV21Sink>> create_lerobot_v21_sink(const std::filesystem::path& root,
                                                                LerobotV21Options options) {
  ROPEWALK_RETURN_IF_ERROR(options.encoder.validate());
  ROPEWALK_ASSIGN_OR_RETURN(SideFiles side_files,
                            SideFiles::create(root, {.dataset_format = options.dataset_format,
                                                     .data_path = kDataPath,
                                                     .video_path = kVideoPath}));
  ROPEWALK_ASSIGN_OR_RETURN(auto statistics,
                            HashingSink::create(root, "meta/episodes_stats.jsonl"));
  return std::unique_ptr<LerobotV21Sink>(std::make_unique<V21Sink>(
      root, std::move(options), std::move(side_files), std::move(statistics)));
}

}  // namespace ropewalk
