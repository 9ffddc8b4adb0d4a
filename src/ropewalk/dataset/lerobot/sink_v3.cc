#include "ropewalk/dataset/lerobot/sink_v3.h"

#include <algorithm>

#include <arrow/api.h>
#include <arrow/util/byte_size.h>
#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/sink_v3_episodes_internal.h"
#include "ropewalk/dataset/lerobot/table_schema_internal.h"
#include "ropewalk/episode/numbering.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/statistics.h"
#include "ropewalk/format/parquet/writer.h"

namespace ropewalk {
namespace {

using namespace lerobot_internal;

constexpr const char* kDataPath = "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet";
constexpr const char* kVideoPath =
    "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4";
constexpr const char* kEncodeDirectory = ".encoded";
constexpr std::size_t kCameraElements = 3;
constexpr StatisticsOptions kStatistics{.quantiles = true, .fold_leading_dimensions = true};

std::int64_t in_mebibytes(std::uint64_t bytes) {
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(bytes >> 20));
}

/// The data files: one row group per episode, an episode never straddles files.
class DataShards {
 public:
  DataShards(std::filesystem::path root, std::uint64_t file_bytes, std::int64_t chunks_size)
      : root_(std::move(root)), file_bytes_(file_bytes), chunks_size_(chunks_size) {}

  Result<FileNumber> add(const arrow::RecordBatch& table, const std::string& huggingface,
                         Written& written) {
    const auto raw = static_cast<double>(arrow::util::TotalBufferSize(table));
    const std::uint64_t footer =
        kFooterBytesPerColumn * static_cast<std::uint64_t>(table.num_columns());
    const auto estimate = static_cast<std::uint64_t>(raw * ratio_) + footer;
    footers_ += footer;
    if (writer_ != nullptr && writer_->size_bytes() + footers_ + estimate >= file_bytes_) {
      ROPEWALK_RETURN_IF_ERROR(close(written));
    }
    if (writer_ == nullptr) {
      number_.advance(chunks_size_);
      ROPEWALK_ASSIGN_OR_RETURN(
          sink_, HashingSink::create(root_, fmt::format("data/{}.parquet", number_.text())));
      ROPEWALK_ASSIGN_OR_RETURN(
          writer_, ParquetWriter::create(*sink_, table.schema(),
                                         {.metadata = {{"huggingface", huggingface}}}));
      largest_ratio_ = 0;
      footers_ = footer;
    }
    const std::uint64_t before = writer_->size_bytes();
    ROPEWALK_RETURN_IF_ERROR(writer_->write_row_group(table));
    // The episode that compressed worst in this file stands for the next one.
    largest_ratio_ = std::max(
        largest_ratio_, static_cast<double>(writer_->size_bytes() - before) / std::max(raw, 1.0));
    ratio_ = largest_ratio_;
    return number_;
  }

  Status close(Written& written) {
    if (writer_ == nullptr) return ok_status();
    ROPEWALK_RETURN_IF_ERROR(writer_->close());
    ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, sink_->finish());
    written.add(std::move(file));
    writer_.reset();
    return ok_status();
  }

 private:
  std::filesystem::path root_;
  std::uint64_t file_bytes_;
  std::int64_t chunks_size_;
  FileNumber number_;
  std::unique_ptr<HashingSink> sink_;
  std::unique_ptr<ParquetWriter> writer_;
  double ratio_ = 1.0;  ///< compressed to raw bytes, for the estimate
  double largest_ratio_ = 0;
  std::uint64_t footers_ = 0;  ///< of the open file, estimated
};

class V3Sink final : public LerobotV3Sink {
 public:
  V3Sink(std::filesystem::path root, LerobotV3Options options, EpisodeRows rows)
      : root_(std::move(root)),
        options_(std::move(options)),
        encode_{.settings = options_.encoder, .repair_video = options_.repair_video},
        rows_(std::move(rows)),
        data_(root_, options_.data_file_bytes, options_.chunks_size) {}

  std::string_view format() const override { return "lerobot_v3"; }
  Status write(const Episode& episode, const RunContext& context) override;
  Status finish(const RunContext& context) override;
  const std::vector<WrittenFile>& files() const override { return files_; }
  const std::vector<ClipRecord>& clips() const override { return clips_; }
  const Findings& findings() const override { return findings_; }

 private:
  struct Camera {
    std::size_t feature = 0;  ///< in table_.features
    VideoShards shards;
    bool described = false;
  };
  Status begin(const Schema& schema, const arrow::RecordBatch* first);
  Result<std::vector<std::optional<Clip>>> open_clips(const Episode& episode,
                                                      std::int64_t episode_index,
                                                      const RunContext& context);
  Result<StatisticsMap> episode_statistics(const Episode& episode, const arrow::RecordBatch& table,
                                           const RunContext& context);
  Json dataset_statistics() const;
  Status write_tasks();
  Status write_info();

  std::filesystem::path root_;
  LerobotV3Options options_;
  EncodeOptions encode_;
  std::optional<Schema> schema_;  ///< of the first episode
  Schema declared_;               ///< as written
  OutputTable table_;
  std::string huggingface_;
  std::vector<Camera> cameras_;
  Numbering numbering_;
  StatisticsPool pool_;
  EpisodeRows rows_;
  DataShards data_;
  std::int64_t videos_ = 0;
  Written written_;
  Findings findings_;
  std::vector<WrittenFile> files_;
  std::vector<ClipRecord> clips_;
  JobWindow jobs_;  // last: its destructor waits for jobs that use the members above
};

Status V3Sink::begin(const Schema& schema, const arrow::RecordBatch* first) {
  if (!schema.fps.is_integral()) {
    return failed_precondition(
               fmt::format(
                   "rate {} is no integer, which v3.0 needs; give a rate to resample to, or "
                   "export as lerobot_v21",
                   to_string(schema.fps)))
        .with_reason("FPS_NOT_INTEGRAL");
  }
  schema_ = schema;
  table_ = plan_table(schema, first, options_.drop_features, findings_);
  declared_ = table_.declared(schema);
  huggingface_ = huggingface_metadata(table_);
  std::vector<std::string> videos;
  std::vector<StatisticsColumn> statistics;
  const ShardLimits limits{.file_bytes = options_.video_file_bytes,
                           .file_frames = options_.video_file_seconds * schema.fps.num,
                           .chunks_size = options_.chunks_size};
  for (std::size_t i = 0; i < table_.features.size(); ++i) {
    const OutputFeature& output = table_.features[i];
    const Feature& feature = output.feature;
    if (output.storage == Storage::video) {
      videos.push_back(feature.name);
      cameras_.push_back({i, VideoShards(root_, feature.name, schema.fps, limits)});
    }
    if (feature.is_camera()) {
      statistics.push_back({feature.name, kCameraElements, true});
    } else if (dtype_is_numeric(feature.dtype)) {
      statistics.push_back({feature.name, static_cast<std::size_t>(feature.shape.back()), false});
    }
  }
  rows_.begin(std::move(videos), std::move(statistics), schema.fps.num);
  return ok_status();
}

Status V3Sink::write(const Episode& episode, const RunContext& context) {
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
      const auto table, conform(table_, *numbered.columns, schema_->fps, info.index, findings_));
  numbered.columns.reset();
  ROPEWALK_ASSIGN_OR_RETURN(auto clips, open_clips(episode, numbered.episode_index, context));
  ROPEWALK_ASSIGN_OR_RETURN(const StatisticsMap statistics,
                            episode_statistics(episode, *table, context));
  pool_.add(statistics);

  EpisodeNumbers numbers{.episode_index = numbered.episode_index,
                         .length = numbered.length,
                         .index_begin = numbered.index_begin};
  ROPEWALK_ASSIGN_OR_RETURN(numbers.data_file, data_.add(*table, huggingface_, written_));
  for (std::size_t c = 0; c < cameras_.size(); ++c) {
    numbers.videos.emplace_back();
    if (!clips[c]) continue;
    Camera& camera = cameras_[c];
    if (!camera.described) {
      describe_camera(table_.features[camera.feature].feature, clips[c]->params, schema_->fps);
    }
    camera.described = true;
    ++videos_;
    ROPEWALK_ASSIGN_OR_RETURN(
        numbers.videos.back(),
        camera.shards.add(std::move(*clips[c]), numbers.episode_index, context, jobs_, written_));
  }
  if (Json::Object* row = numbered.row.as_object()) {
    std::erase_if(*row, [](const Json::Member& member) { return is_locator_key(member.first); });
  }
  return rows_.add(numbers, numbered.row, statistics);
}

Result<std::vector<std::optional<Clip>>> V3Sink::open_clips(const Episode& episode,
                                                            std::int64_t episode_index,
                                                            const RunContext& context) {
  std::vector<std::optional<Clip>> out(cameras_.size());
  std::vector<std::size_t> to_encode;
  for (std::size_t c = 0; c < cameras_.size(); ++c) {
    const std::string& source = table_.features[cameras_[c].feature].source;
    if (!episode.has_camera(source)) {
      findings_.add({.code = "camera_missing",
                     .episode = episode.info().index,
                     .feature = source,
                     .decision = "its locators are null; upstream cannot read such an episode"});
      continue;
    }
    ROPEWALK_ASSIGN_OR_RETURN(out[c], open_clip(episode, source, encode_, findings_));
    if (out[c]) {
      Status status = check_copyable(*out[c]);
      if (out[c]->index != nullptr && out[c]->index->has_audio) {
        findings_.add({.code = "audio_dropped",
                       .episode = episode.info().index,
                       .feature = source,
                       .decision = "left out: packed files hold one video track"});
      }
      if (!status.ok() && status.reason() == "NOT_REMUXABLE" && options_.repair_video) {
        findings_.add({.code = "video_reencoded",
                       .episode = episode.info().index,
                       .feature = source,
                       .found = std::string(status.message()),
                       .decision = "decoded and encoded anew, as asked"});
        out[c].reset();
      } else {
        ROPEWALK_RETURN_IF_ERROR(status);
        continue;
      }
    } else {
      findings_.add({.code = "video_encoded",
                     .severity = Severity::info,
                     .feature = source,
                     .decision = "encoded, since the source has no encoded form that fits"});
    }
    to_encode.push_back(c);
  }
  Status encoded_all = parallel_for(
      context.pool, static_cast<std::int64_t>(to_encode.size()), [&](std::int64_t k) -> Status {
        const std::size_t c = to_encode[static_cast<std::size_t>(k)];
        const std::string path = fmt::format("{}/{}-{:06d}", kEncodeDirectory, c, episode_index);
        ROPEWALK_ASSIGN_OR_RETURN(EncodedVideo encoded,
                                  encode_clip(episode, table_.features[cameras_[c].feature].source,
                                              root_, path, encode_, context.stop, nullptr));
        Clip clip{.file = root_ / path,
                  .params = std::move(encoded.params),
                  .frames = encoded.frames,
                  .encoded_here = true};
        ROPEWALK_RETURN_IF_ERROR(load_index(clip));
        out[c] = std::move(clip);
        return ok_status();
      });
  if (!encoded_all.ok()) return encoded_all;
  return out;
}

Result<StatisticsMap> V3Sink::episode_statistics(const Episode& episode,
                                                 const arrow::RecordBatch& table,
                                                 const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN(StatisticsMap out, batch_statistics(table, declared_, kStatistics));
  ROPEWALK_RETURN_IF_ERROR(pool_.add_values(table, declared_, kStatistics));
  const Json given_json = episode.statistics();
  const StatisticsMap given = statistics_from_json(given_json);
  for (const OutputFeature& output : table_.features) {
    if (!output.feature.is_camera() || !episode.has_camera(output.source)) continue;
    const auto at = given.find(output.source);
    const bool kept = at != given.end() && at->second.count > 0 &&
                      at->second.mean.size() == kCameraElements &&
                      (!options_.camera_quantiles || at->second.has_quantiles());
    if (kept) {
      out[output.feature.name] = at->second;
      out[output.feature.name].shape = {3, 1, 1};
      continue;
    }
    ROPEWALK_ASSIGN_OR_RETURN(out[output.feature.name],
                              camera_statistics(episode, output.source, kStatistics, context.stop));
    findings_.add({.code = "camera_statistics_decoded",
                   .severity = Severity::info,
                   .feature = output.source,
                   .decision = "computed from decoded frames, since the source has none"});
  }
  return out;
}

Status V3Sink::finish(const RunContext& context) {
  if (!schema_) {
    ROPEWALK_RETURN_IF_ERROR(
        begin(options_.schema.value_or(Schema{.features = default_features()}), nullptr));
  }
  for (Camera& camera : cameras_) {
    ROPEWALK_RETURN_IF_ERROR(camera.shards.close(context, jobs_, written_));
  }
  ROPEWALK_RETURN_IF_ERROR(data_.close(written_));
  ROPEWALK_RETURN_IF_ERROR(
      rows_.finish(options_.data_file_bytes, options_.chunks_size, context, written_));
  ROPEWALK_RETURN_IF_ERROR(jobs_.wait());
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  ROPEWALK_RETURN_IF_ERROR(remove_tree(root_ / kEncodeDirectory));
  ROPEWALK_RETURN_IF_ERROR(write_tasks());
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile statistics, put_text(root_, "meta/stats.json",
                                                             dataset_statistics().dump(4) + "\n"));
  written_.add(std::move(statistics));
  ROPEWALK_RETURN_IF_ERROR(write_info());
  files_ = written_.take_files();
  clips_ = written_.take_clips();
  return ok_status();
}

Json V3Sink::dataset_statistics() const {
  const StatisticsMap pooled = pool_.result();
  Json out = Json::object();
  for (const OutputFeature& output : table_.features) {
    const auto at = pooled.find(output.feature.name);
    if (at != pooled.end()) out.set(output.feature.name, statistics_to_json(at->second));
  }
  return out;
}

Status V3Sink::write_tasks() {
  std::string lines;
  arrow::Int64Builder numbers;
  arrow::StringBuilder texts;
  for (std::size_t i = 0; i < numbering_.tasks().size(); ++i) {
    const auto index = static_cast<std::int64_t>(i);
    Json line = Json::object();
    line.set("task_index", index);
    line.set("task", numbering_.tasks()[i]);
    lines += line.dump_spaced() + "\n";
    arrow::Status status = numbers.Append(index);
    if (status.ok()) status = texts.Append(numbering_.tasks()[i]);
    if (!status.ok()) return resource_exhausted(status.ToString());
  }
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, put_text(root_, "meta/tasks.jsonl", lines));
  written_.add(std::move(file));
  if (numbering_.episodes() == 0) return ok_status();

  std::shared_ptr<arrow::Array> number_column;
  std::shared_ptr<arrow::Array> text_column;
  arrow::Status status = numbers.Finish(&number_column);
  if (status.ok()) status = texts.Finish(&text_column);
  if (!status.ok()) return resource_exhausted(status.ToString());
  const auto batch =
      arrow::RecordBatch::Make(arrow::schema({arrow::field("task_index", arrow::int64()),
                                              arrow::field("task", arrow::utf8())}),
                               number_column->length(), {number_column, text_column});
  const auto column = [](const char* name, const char* pandas_type, const char* numpy_type) {
    return Json(Json::Object{{"name", Json(name)},
                             {"field_name", Json(name)},
                             {"pandas_type", Json(pandas_type)},
                             {"numpy_type", Json(numpy_type)},
                             {"metadata", Json()}});
  };
  Json pandas = Json::object();
  pandas.set("index_columns", Json(Json::Array{Json("task")}));
  pandas.set("column_indexes", Json::array());
  pandas.set("columns", Json(Json::Array{column("task_index", "int64", "int64"),
                                         column("task", "unicode", "object")}));
  pandas.set("pandas_version", "2.0.0");
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, HashingSink::create(root_, "meta/tasks.parquet"));
  ROPEWALK_ASSIGN_OR_RETURN(
      const auto writer, ParquetWriter::create(*sink, batch->schema(),
                                               {.metadata = {{"pandas", pandas.dump_spaced()}}}));
  ROPEWALK_RETURN_IF_ERROR(writer->write_row_group(*batch));
  ROPEWALK_RETURN_IF_ERROR(writer->close());
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile table, sink->finish());
  written_.add(std::move(table));
  return ok_status();
}

Status V3Sink::write_info() {
  const std::int64_t episodes = numbering_.episodes();
  Json info = Json::object();
  info.set("codebase_version", "v3.0");
  info.set("robot_type", schema_->robot_type.empty() ? Json() : Json(schema_->robot_type));
  info.set("total_episodes", episodes);
  info.set("total_frames", numbering_.frames());
  info.set("total_tasks", static_cast<std::int64_t>(numbering_.tasks().size()));
  info.set("chunks_size", options_.chunks_size);
  info.set("data_files_size_in_mb", in_mebibytes(options_.data_file_bytes));
  info.set("video_files_size_in_mb", in_mebibytes(options_.video_file_bytes));
  info.set("fps", schema_->fps.num);
  info.set("splits", Json(Json::Object{{"train", Json(fmt::format("0:{}", episodes))}}));
  info.set("data_path", kDataPath);
  info.set("video_path", cameras_.empty() ? Json() : Json(kVideoPath));
  Json features = Json::object();
  for (const OutputFeature& output : table_.features) {
    features.set(output.feature.name, feature_to_json(output.feature));
  }
  info.set("features", std::move(features));
  info.set("total_videos", videos_);
  info.set("total_chunks", (episodes + kEpisodesPerChunk - 1) / kEpisodesPerChunk);
  if (!options_.dataset_format.empty()) info.set("dataset_format", options_.dataset_format);
  if (const auto* kept = schema_->extra.as_object()) {
    for (const auto& [key, value] : *kept) {
      if (info.find(key) == nullptr && key != "dataset_format") info.set(key, value);
    }
  }
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file,
                            put_text(root_, "meta/info.json", info.dump(4) + "\n"));
  written_.add(std::move(file));
  return ok_status();
}

}  // namespace

Status LerobotV3Options::validate() const {
  if (data_file_bytes == 0) return invalid_argument("data_file_bytes: expected at least 1");
  if (video_file_bytes == 0) return invalid_argument("video_file_bytes: expected at least 1");
  if (video_file_seconds < 1 || video_file_seconds > 1000000) {
    return invalid_argument(
        fmt::format("video_file_seconds: expected 1 to 1000000, found {}", video_file_seconds));
  }
  if (chunks_size < 1) {
    return invalid_argument(fmt::format("chunks_size: expected at least 1, found {}", chunks_size));
  }
  return encoder.validate();
}

Result<std::unique_ptr<LerobotV3Sink>> create_lerobot_v3_sink(const std::filesystem::path& root,
                                                              LerobotV3Options options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  ROPEWALK_ASSIGN_OR_RETURN(EpisodeRows rows, EpisodeRows::create(root));
  return std::unique_ptr<LerobotV3Sink>(
      std::make_unique<V3Sink>(root, std::move(options), std::move(rows)));
}

}  // namespace ropewalk
