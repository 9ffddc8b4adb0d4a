#include <algorithm>
#include <deque>
#include <utility>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/eva_hdf5/eva_hdf5.h"
#include "ropewalk/dataset/eva_hdf5/items_internal.h"
#include "ropewalk/episode/array_layout.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/episode/numbering.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/statistics.h"

namespace ropewalk {
namespace {

using eva_hdf5::ItemWriter;

constexpr std::string_view kDataPath =
    "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.hdf5";

/// Cameras in the order of the layout: inline images, then videos in the order of `video_keys`.
std::vector<std::string> ordered_cameras(const Schema& schema, const Json& row) {
  std::vector<std::string> out;
  for (const Feature* image : schema.of_kind(FeatureKind::image)) out.push_back(image->name);
  std::ranges::move(ordered_videos(schema, row), std::back_inserter(out));
  return out;
}

/// Cuts [0, length) where the camera can be decoded anew, into parts that keep `workers` threads
/// busy.
std::vector<FrameRange> cut(const Episode& episode, const std::string& camera, std::int64_t length,
                            std::int64_t parts) {
  constexpr std::int64_t kMinFrames = 32;  // below this, opening a decoder costs more than it saves
  const std::int64_t wanted = std::max(kMinFrames, (length + parts - 1) / parts);
  std::vector<FrameRange> out;
  std::int64_t begin = 0;
  while (begin < length) {
    std::int64_t end = begin + wanted;
    end = end >= length ? length : episode.decode_unit(camera, end).begin;
    // A unit that began before this part is longer than it: take it whole.
    if (end <= begin) end = episode.decode_unit(camera, begin).end;
    end = std::clamp(end, begin + 1, length);
    out.push_back({begin, end});
    begin = end;
  }
  return out;
}

/// One camera of the episode in work.
struct Camera {
  std::string name;
  FrameShape shape;
  std::unique_ptr<FrameReader> first;  ///< already open, at frame 0
  std::vector<FrameRange> parts;
  std::unique_ptr<Hdf5Frames> frames;
};

Status write_part(const Episode& episode, Camera& camera, std::size_t part, std::stop_token stop) {
  const FrameRange range = camera.parts[part];
  std::unique_ptr<FrameReader> reader;
  if (part == 0) {
    reader = std::move(camera.first);
  } else {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(reader, episode.frames(camera.name, range), camera.name);
  }
  if (!(reader->shape() == camera.shape)) {
    return data_loss(fmt::format("{}: frame {} is {}x{}x{}, expected {}x{}x{} as the first frame",
                                 camera.name, range.begin, reader->shape().height,
                                 reader->shape().width, reader->shape().channels,
                                 camera.shape.height, camera.shape.width, camera.shape.channels));
  }
  Bytes pixels(camera.shape.frame_bytes());
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    if (stop.stop_requested()) return cancelled();
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const bool there, reader->next(pixels), camera.name);
    if (!there) {
      return data_loss(fmt::format("{}: frame {}: the pictures end early, {} rows are in the table",
                                   camera.name, i, episode.info().length));
    }
    ROPEWALK_RETURN_IF_ERROR(camera.frames->write(i, pixels));
  }
  return ok_status();
}

class EvaHdf5Sink final : public EpisodeSink {
 public:
  EvaHdf5Sink(std::filesystem::path root, Schema schema, EvaHdf5Options options,
              Hdf5Compression compression, SideFiles side_files)
      : root_(std::move(root)),
        schema_(std::move(schema)),
        options_(std::move(options)),
        compression_(compression),
        side_files_(std::move(side_files)) {}

  std::string_view format() const override { return "hdf5"; }
  const std::vector<WrittenFile>& files() const override { return files_; }
  const Findings& findings() const override { return findings_; }

  Status write(const Episode& episode, const RunContext& context) override {
    ROPEWALK_RETURN_IF_ERROR(usable());
    Status status = write_episode(episode, context);
    if (!status.ok()) broken_ = status;
    return status;
  }

  Status finish(const RunContext& context) override {
    ROPEWALK_RETURN_IF_ERROR(usable());
    broken_ = failed_precondition("the sink is finished");
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    while (!sealing_.empty()) ROPEWALK_RETURN_IF_ERROR(take_sealed());
    Json statistics = Json::object();
    const StatisticsMap pooled = pool_.result();
    if (numbering_.episodes() > 0) statistics = statistics_to_json(pooled, false);
    ROPEWALK_RETURN_IF_ERROR(side_files_.finish(schema_, numbering_, statistics));
    files_.insert(files_.end(), side_files_.files().begin(), side_files_.files().end());
    return ok_status();
  }

 private:
  /// A closed file whose SHA-256, fsync and rename run on the pool.
  struct Sealing {
    explicit Sealing(ThreadPool* pool) : group(pool) {}
    std::string path;
    Hdf5FileRecord record;
    TaskGroup group;  // last: it waits in its destructor
  };

  Status usable() const {
    if (broken_.ok()) return ok_status();
    return failed_precondition(fmt::format("the HDF5 sink takes no more: {}", broken_.message()));
  }

  Status write_episode(const Episode& episode, const RunContext& context) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    ROPEWALK_ASSIGN_OR_RETURN(const NumberedEpisode numbered,
                              numbering_.number_without_pictures(episode));
    // A file waits for the disk; two of them are enough to hide that.
    while (sealing_.size() >= 2) ROPEWALK_RETURN_IF_ERROR(take_sealed());

    const std::string relative = eva_hdf5_path(numbered.episode_index);
    const auto path = root_ / relative;
    ROPEWALK_RETURN_IF_ERROR(make_directories(path.parent_path()));
    ROPEWALK_ASSIGN_OR_RETURN(Hdf5Writer writer, Hdf5Writer::create(path));
    ROPEWALK_RETURN_IF_ERROR(write_columns(writer, numbered));
    ROPEWALK_RETURN_IF_ERROR(write_images(writer, episode, numbered, context));
    ROPEWALK_RETURN_IF_ERROR(write_metadata(writer, numbered));
    ROPEWALK_ASSIGN_OR_RETURN(const Hdf5ClosedFile closed, writer.close());

    auto sealing = std::make_unique<Sealing>(context.pool);
    sealing->path = relative;
    sealing->group.run([closed, record = &sealing->record]() -> Status {
      ROPEWALK_ASSIGN_OR_RETURN(*record, seal(closed));
      return ok_status();
    });
    sealing_.push_back(std::move(sealing));
    ROPEWALK_ASSIGN_OR_RETURN(
        const StatisticsMap statistics,
        known_or_computed_statistics(episode, *numbered.columns, schema_, statistics_names()));
    pool_.add(statistics);
    return side_files_.add(numbered, 0);
  }

  Status take_sealed() {
    const std::unique_ptr<Sealing> sealing = std::move(sealing_.front());
    sealing_.pop_front();
    ROPEWALK_RETURN_IF_ERROR(sealing->group.wait());
    files_.push_back({sealing->path, sealing->record.size_bytes, sealing->record.sha256});
    return ok_status();
  }

  Status write_columns(Hdf5Writer& writer, const NumberedEpisode& numbered) {
    ItemWriter items(writer, "columns");
    ROPEWALK_RETURN_IF_ERROR(items.begin());
    const arrow::RecordBatch& batch = *numbered.columns;
    for (int i = 0; i < batch.num_columns(); ++i) {
      const std::string& name = batch.schema()->field(i)->name();
      const Feature* feature = schema_.find(name);
      if (feature != nullptr && feature->is_camera()) continue;
      const auto column = dense_column(*batch.column(i));
      if (!column.ok()) return column.status().with_context("column " + name);
      ROPEWALK_RETURN_IF_ERROR(items.add_column(name, *column));
    }
    return ok_status();
  }

  Status write_images(Hdf5Writer& writer, const Episode& episode, const NumberedEpisode& numbered,
                      const RunContext& context) {
    ItemWriter items(writer, "images");
    ROPEWALK_RETURN_IF_ERROR(items.begin());
    std::vector<std::string> names;
    for (const std::string& name : ordered_cameras(schema_, numbered.row)) {
      if (episode.has_camera(name)) {
        names.push_back(name);
        continue;
      }
      findings_.add({.code = "missing_camera",
                     .file = eva_hdf5_path(numbered.episode_index),
                     .episode = episode.info().index,
                     .feature = name,
                     .declared = "a camera of the dataset",
                     .found = "no pictures in this episode",
                     .decision = "the episode is written without it"});
    }
    if (numbered.length == 0) {
      for (const std::string& name : names) ROPEWALK_RETURN_IF_ERROR(items.add_empty_images(name));
      return ok_status();
    }
    const std::int64_t workers = context.pool != nullptr ? context.pool->size() + 1 : 1;
    const auto cameras_count = std::max<std::int64_t>(1, static_cast<std::int64_t>(names.size()));
    const std::int64_t parts = workers == 1 ? 1 : (2 * workers + cameras_count - 1) / cameras_count;
    std::vector<Camera> cameras;
    for (const std::string& name : names) {
      ROPEWALK_ASSIGN_OR_RETURN(Camera camera, open_camera(episode, name, numbered.length, parts));
      const std::vector<std::int64_t> shape{camera.shape.height, camera.shape.width,
                                            camera.shape.channels};
      const DType dtype = camera.shape.bytes_per_sample == 2 ? DType::uint16 : DType::uint8;
      ROPEWALK_ASSIGN_OR_RETURN(
          camera.frames, items.add_frames(name, shape, numbered.length, dtype, compression_));
      cameras.push_back(std::move(camera));
    }
    {
      TaskGroup group(context.pool);
      std::size_t most = 0;
      for (const Camera& camera : cameras) most = std::max(most, camera.parts.size());
      for (std::size_t part = 0; part < most; ++part) {
        for (Camera& camera : cameras) {
          if (part >= camera.parts.size()) continue;
          group.run([&episode, &camera, part, stop = context.stop] {
            return write_part(episode, camera, part, stop);
          });
        }
      }
      ROPEWALK_RETURN_IF_ERROR(group.wait());
    }
    for (Camera& camera : cameras) ROPEWALK_RETURN_IF_ERROR(camera.frames->finish());
    return ok_status();
  }

  static Result<Camera> open_camera(const Episode& episode, const std::string& name,
                                    std::int64_t length, std::int64_t parts) {
    Camera camera;
    camera.name = name;
    camera.parts = cut(episode, name, length, parts);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(camera.first, episode.frames(name, camera.parts.front()), name);
    camera.shape = camera.first->shape();
    return camera;
  }

  Status write_metadata(Hdf5Writer& writer, const NumberedEpisode& numbered) {
    ItemWriter items(writer, "metadata");
    ROPEWALK_RETURN_IF_ERROR(items.begin());
    for (const auto& [key, value] : *numbered.row.as_object()) {
      if (key == "video_keys" || key == "total_videos" || key == "fps") continue;
      ROPEWALK_RETURN_IF_ERROR(items.add_json(key, value));
    }
    return items.add_json("fps", Json(schema_.fps.to_double()));
  }

  std::vector<std::string> statistics_names() const {
    if (options_.statistics_names) return *options_.statistics_names;
    std::vector<std::string> names;
    for (const Feature* feature : schema_.of_kind(FeatureKind::column)) {
      if (!is_default_column(feature->name)) names.push_back(feature->name);
    }
    return names;
  }

  std::filesystem::path root_;
  Schema schema_;
  EvaHdf5Options options_;
  Hdf5Compression compression_;
  SideFiles side_files_;
  Numbering numbering_;
  StatisticsPool pool_;
  Findings findings_;
  std::vector<WrittenFile> files_;
  Status broken_;
  std::deque<std::unique_ptr<Sealing>> sealing_;
};

}  // namespace

std::string eva_hdf5_path(std::int64_t episode_index) {
  return fmt::format("data/chunk-{:03}/episode_{:06}.hdf5", episode_index / kEpisodesPerChunk,
                     episode_index);
}

Status EvaHdf5Options::validate() const { return Hdf5Compression::parse(compression).status(); }

Result<std::unique_ptr<EpisodeSink>> create_eva_hdf5_sink(const std::filesystem::path& root,
                                                          const Schema& schema,
                                                          const EvaHdf5Options& options) {
  ROPEWALK_ASSIGN_OR_RETURN(const Hdf5Compression compression,
                            Hdf5Compression::parse(options.compression));
  for (const Feature& feature : schema.features)
    ROPEWALK_RETURN_IF_ERROR(check_array_feature(feature, "HDF5"));
  SideFileOptions side;
  side.codebase_version = "hdf5";
  side.dataset_format = "hdf5";
  side.data_path = kDataPath;
  side.embedded_images = true;
  ROPEWALK_ASSIGN_OR_RETURN(SideFiles side_files, SideFiles::create(root, std::move(side)));
  return std::unique_ptr<EpisodeSink>(
      std::make_unique<EvaHdf5Sink>(root, schema, options, compression, std::move(side_files)));
}

}  // namespace ropewalk
