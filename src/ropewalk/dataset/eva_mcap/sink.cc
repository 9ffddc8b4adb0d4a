#include <algorithm>
#include <deque>
#include <utility>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/eva_mcap/episode_body_internal.h"
#include "ropewalk/dataset/eva_mcap/eva_mcap.h"
#include "ropewalk/dataset/eva_mcap/frame_pump_internal.h"
#include "ropewalk/episode/array_layout.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/statistics.h"
#include "ropewalk/format/mcap/record_writer.h"
#include "ropewalk/format/mcap/writer.h"

namespace ropewalk {
namespace {

using eva_mcap::AsyncHashSink;
using eva_mcap::BodyPiece;
using eva_mcap::Frame;
using eva_mcap::FramePump;
using eva_mcap::InlineCamera;

constexpr std::string_view kDataPath =
    "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.mcap";
constexpr std::string_view kLibrary = "eva-client";
constexpr std::string_view kVersion = ROPEWALK_VERSION;
constexpr std::string_view kEncoding = "messagepack";
constexpr std::uint64_t kPumpBytes = 64ULL << 20;
/// A file waits for the disk; two of them are enough to hide that.
constexpr std::size_t kMaxSealing = 2;

/// A clip with more pictures than the table has rows must not be cut in silence.
Status check_count(const Episode& episode, const std::string& camera, std::int64_t length) {
  const auto packets = episode.packets(camera);
  if (!packets.ok() || (*packets)->count() <= length) return ok_status();
  return data_loss(
      fmt::format("{}: {} pictures for {} rows of the table", camera, (*packets)->count(), length));
}

class EvaMcapSink final : public EpisodeSink {
 public:
  EvaMcapSink(std::filesystem::path root, Schema schema, EvaMcapOptions options,
              mcap::Writer writer, SideFiles side_files)
      : root_(std::move(root)),
        schema_(std::move(schema)),
        options_(std::move(options)),
        compressed_(options_.compression != "none"),
        writer_(std::move(writer)),
        side_files_(std::move(side_files)) {}

  std::string_view format() const override { return "mcap"; }
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
    while (!sealing_.empty()) {
      ROPEWALK_RETURN_IF_ERROR(take_sealed());
    }
    Json statistics = Json::object();
    if (numbering_.episodes() > 0) statistics = statistics_to_json(pool_.result(), false);
    ROPEWALK_RETURN_IF_ERROR(side_files_.finish(schema_, numbering_, statistics));
    files_.insert(files_.end(), side_files_.files().begin(), side_files_.files().end());
    return ok_status();
  }

 private:
  /// A written file whose fsync and last hashing run on the pool.
  struct Sealing {
    explicit Sealing(ThreadPool* pool) : group(pool) {}
    std::string path;
    std::unique_ptr<AsyncHashSink> sink;
    std::string sha256;
    TaskGroup group;  // last: it waits in its destructor
  };

  Status usable() const {
    if (broken_.ok()) return ok_status();
    return failed_precondition(fmt::format("the MCAP sink takes no more: {}", broken_.message()));
  }

  Status write_episode(const Episode& episode, const RunContext& context) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    ROPEWALK_ASSIGN_OR_RETURN(const NumberedEpisode numbered, numbering_.number(episode));
    while (sealing_.size() >= kMaxSealing) {
      ROPEWALK_RETURN_IF_ERROR(take_sealed());
    }
    const std::string relative = eva_mcap_path(numbered.episode_index);
    const auto path = root_ / relative;
    ROPEWALK_RETURN_IF_ERROR(make_directories(path.parent_path()));
    auto sealing = std::make_unique<Sealing>(context.pool);
    sealing->path = relative;
    ROPEWALK_ASSIGN_OR_RETURN(auto file, create_sink(path));
    sealing->sink = std::make_unique<AsyncHashSink>(std::move(file), context.pool);

    Status status = write_file(*sealing->sink, episode, numbered, context);
    if (!status.ok()) {
      return status.with_context(fmt::format("episode {}", episode.info().index));
    }
    sealing->group.run([s = sealing.get()]() -> Status {
      ROPEWALK_RETURN_IF_ERROR(s->sink->sync());
      ROPEWALK_RETURN_IF_ERROR(s->sink->close());
      s->sha256 = s->sink->finish_hex();
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
    files_.push_back({sealing->path, sealing->sink->size(), sealing->sha256});
    return ok_status();
  }

  Status write_file(AsyncHashSink& sink, const Episode& episode, const NumberedEpisode& numbered,
                    const RunContext& context) {
    std::vector<std::string> images;
    for (const Feature* image : schema_.of_kind(FeatureKind::image)) images.push_back(image->name);
    std::vector<std::string> videos = ordered_videos(schema_, numbered.row);
    leave_out_absent(episode, numbered, images);
    leave_out_absent(episode, numbered, videos);

    ROPEWALK_RETURN_IF_ERROR(writer_.open(sink));
    Status status = write_messages(sink, episode, numbered, images, videos, context);
    // finish() also ends a file that failed, so that the writer is free.
    const Status finished = writer_.finish();
    return status.ok() ? finished : status;
  }

  Status write_messages(AsyncHashSink& sink, const Episode& episode,
                        const NumberedEpisode& numbered, const std::vector<std::string>& images,
                        const std::vector<std::string>& videos, const RunContext& context) {
    ROPEWALK_RETURN_IF_ERROR(writer_.write_metadata(
        {.name = "ropewalk", .metadata = {{"version", std::string(kVersion)}}}));
    ROPEWALK_ASSIGN_OR_RETURN(
        const std::uint16_t schema_id,
        writer_.add_schema("eva_client.episode", "jsonschema", as_bytes(R"({"type":"object"})")));
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint16_t episode_channel,
                              writer_.add_channel({.id = 0,
                                                   .schema_id = schema_id,
                                                   .topic = "episode",
                                                   .message_encoding = std::string(kEncoding),
                                                   .metadata = {}}));
    ROPEWALK_RETURN_IF_ERROR(
        write_episode_message(sink, episode, numbered, images, episode_channel, context));
    return write_frames(sink, episode, numbered, videos, context);
  }

  void leave_out_absent(const Episode& episode, const NumberedEpisode& numbered,
                        std::vector<std::string>& cameras) {
    std::erase_if(cameras, [&](const std::string& name) {
      if (episode.has_camera(name)) return false;
      findings_.add({.code = "missing_camera",
                     .file = eva_mcap_path(numbered.episode_index),
                     .episode = episode.info().index,
                     .feature = name,
                     .declared = "a camera of the dataset",
                     .found = "no pictures in this episode",
                     .decision = "the episode is written without it"});
      return true;
    });
  }

  Status write_episode_message(AsyncHashSink& sink, const Episode& episode,
                               const NumberedEpisode& numbered,
                               const std::vector<std::string>& images, std::uint16_t channel,
                               const RunContext& context) {
    std::vector<InlineCamera> cameras;
    for (const std::string& name : images) {
      InlineCamera camera{.name = name, .shape = {}};
      if (numbered.length > 0) {
        ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto reader, episode.frames(name, {0, 1}), name);
        camera.shape = reader->shape();
      }
      cameras.push_back(std::move(camera));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::vector<BodyPiece> body,
                              eva_mcap::episode_body(numbered, schema_, cameras));
    const mcap::MessageHead head{
        .channel_id = channel, .sequence = 0, .log_time = 0, .publish_time = 0};
    if (images.empty()) return writer_.write(head, ByteSpan(body.front().bytes));

    // Length and CRC stand before the data: the pictures are decoded once for them.
    std::uint64_t size = 0;
    std::uint32_t crc = 0;
    for (const BodyPiece& piece : body) {
      size += piece.bytes.size() + piece.frames_bytes;
      crc = crc32(crc, piece.bytes);
      ROPEWALK_RETURN_IF_ERROR(
          for_each_frame(episode, piece, numbered.length, context, [&](const auto& frame) {
            crc = mcap::crc32_combine(crc, frame->crc, frame->pixels.size());
            return ok_status();
          }));
    }
    ROPEWALK_RETURN_IF_ERROR(writer_.begin_message(head, size, crc));
    for (const BodyPiece& piece : body) {
      ROPEWALK_RETURN_IF_ERROR(writer_.append_message(piece.bytes));
      ROPEWALK_RETURN_IF_ERROR(
          for_each_frame(episode, piece, numbered.length, context, [&](const auto& frame) {
            sink.share(frame);
            return writer_.append_message(frame->pixels);
          }));
    }
    sink.share(nullptr);
    return writer_.end_message();
  }

  template <typename Take>
  static Status for_each_frame(const Episode& episode, const BodyPiece& piece, std::int64_t length,
                               const RunContext& context, Take take) {
    if (piece.camera.empty() || length == 0) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(
        FramePump pump, FramePump::open(episode, {piece.camera}, length, context, kPumpBytes));
    for (std::int64_t i = 0; i < length; ++i) {
      ROPEWALK_ASSIGN_OR_RETURN(const auto frame, pump.next(0));
      ROPEWALK_RETURN_IF_ERROR(take(frame));
    }
    return ok_status();
  }

  Status write_frames(AsyncHashSink& sink, const Episode& episode, const NumberedEpisode& numbered,
                      const std::vector<std::string>& videos, const RunContext& context) {
    if (videos.empty()) return ok_status();
    struct Camera {
      std::uint16_t channel = 0;
      msgpack::NdFrame frame;
    };
    std::vector<Camera> cameras;
    for (const std::string& name : videos) {
      ROPEWALK_RETURN_IF_ERROR(check_count(episode, name, numbered.length));
      Camera camera;
      ROPEWALK_ASSIGN_OR_RETURN(camera.channel,
                                writer_.add_channel({.id = 0,
                                                     .schema_id = 0,
                                                     .topic = "episode/image/" + name,
                                                     .message_encoding = std::string(kEncoding),
                                                     .metadata = {}}));
      cameras.push_back(std::move(camera));
    }
    if (numbered.length == 0) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(
        FramePump pump, FramePump::open(episode, videos, numbered.length, context, kPumpBytes));
    for (std::size_t c = 0; c < cameras.size(); ++c) {
      const FrameShape& shape = pump.shape(c);
      const std::vector<std::int64_t> extents{shape.height, shape.width, shape.channels};
      const DType dtype = shape.bytes_per_sample == 2 ? DType::uint16 : DType::uint8;
      ROPEWALK_ASSIGN_OR_RETURN_CTX(cameras[c].frame, msgpack::ndarray_frame(dtype, extents),
                                    videos[c]);
    }
    const std::uint64_t period = eva_mcap_period_ns(schema_.fps);
    for (std::int64_t i = 0; i < numbered.length; ++i) {
      ROPEWALK_RETURN_IF_ERROR(context.check_stop());
      const std::uint64_t time = (static_cast<std::uint64_t>(i) + 1) * period;
      for (std::size_t c = 0; c < cameras.size(); ++c) {
        ROPEWALK_ASSIGN_OR_RETURN(const std::shared_ptr<const Frame> frame, pump.next(c));
        ROPEWALK_RETURN_IF_ERROR(write_frame(sink, cameras[c].frame, frame,
                                             {.channel_id = cameras[c].channel,
                                              .sequence = static_cast<std::uint32_t>(i),
                                              .log_time = time,
                                              .publish_time = time}));
      }
    }
    return ok_status();
  }

  // One frame: in parts when it goes straight to the file, so that the CRC taken while decoding
  // serves for the chunk and the pixels are hashed where they lie.
  Status write_frame(AsyncHashSink& sink, const msgpack::NdFrame& around,
                     const std::shared_ptr<const Frame>& frame, const mcap::MessageHead& head) {
    const ByteSpan pixels(frame->pixels);
    if (compressed_ || pixels.size() < kStraightBytes) {
      const ByteSpan parts[] = {around.head, pixels, around.tail};
      return writer_.write(head, parts);
    }
    std::uint32_t crc = crc32(0, around.head);
    crc = mcap::crc32_combine(crc, frame->crc, pixels.size());
    crc = crc32(crc, around.tail);
    sink.share(frame);
    ROPEWALK_RETURN_IF_ERROR(writer_.begin_message(head, around.total_bytes(), crc));
    ROPEWALK_RETURN_IF_ERROR(writer_.append_message(around.head));
    ROPEWALK_RETURN_IF_ERROR(writer_.append_message(pixels));
    ROPEWALK_RETURN_IF_ERROR(writer_.append_message(around.tail));
    sink.share(nullptr);
    return writer_.end_message();
  }

  std::vector<std::string> statistics_names() const {
    if (options_.statistics_names) return *options_.statistics_names;
    std::vector<std::string> names;
    for (const Feature* feature : schema_.of_kind(FeatureKind::column)) {
      if (!is_default_column(feature->name)) names.push_back(feature->name);
    }
    return names;
  }

  /// Frames from this size on go straight to the file, each in a chunk of its own.
  static constexpr std::size_t kStraightBytes = 256U << 10;

  std::filesystem::path root_;
  Schema schema_;
  EvaMcapOptions options_;
  bool compressed_;
  mcap::Writer writer_;
  SideFiles side_files_;
  Numbering numbering_;
  StatisticsPool pool_;
  Findings findings_;
  std::vector<WrittenFile> files_;
  Status broken_;
  std::deque<std::unique_ptr<Sealing>> sealing_;
};

}  // namespace

std::string eva_mcap_path(std::int64_t episode_index) {
  return fmt::format("data/chunk-{:03}/episode_{:06}.mcap", episode_index / kEpisodesPerChunk,
                     episode_index);
}

std::uint64_t eva_mcap_period_ns(Rational fps) {
  // 1e9 * den / num, rounded half to even, in whole numbers; the denominator of a rate has at most
  // seven digits (rational.h).
  const std::int64_t product = 1'000'000'000 * fps.den;
  std::int64_t quotient = product / fps.num;
  const std::int64_t rest = product % fps.num;
  if (rest > fps.num - rest || (rest == fps.num - rest && quotient % 2 != 0)) ++quotient;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, quotient));
}

Status EvaMcapOptions::validate() const {
  if (compression == "none" || compression == "lz4" || compression == "zstd") return ok_status();
  return invalid_argument(fmt::format(
      "compression of MCAP chunks: expected none, lz4 or zstd, found '{}'", compression));
}

Result<std::unique_ptr<EpisodeSink>> create_eva_mcap_sink(const std::filesystem::path& root,
                                                          const Schema& schema,
                                                          const EvaMcapOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  for (const Feature& feature : schema.features) {
    ROPEWALK_RETURN_IF_ERROR(check_array_feature(feature, "MCAP"));
  }
  if (schema.fps.num <= 0 || schema.fps.den <= 0 || schema.fps.den > 1'000'000'000) {
    return invalid_argument(
        fmt::format("fps: expected more than 0, found {}", to_string(schema.fps)));
  }
  ROPEWALK_ASSIGN_OR_RETURN(
      mcap::Writer writer,
      mcap::Writer::create(
          {.profile = std::string(kLibrary),
           .library = std::string(kLibrary),
           .compression = compression_from_name(options.compression).value_or(Compression::none)}));
  SideFileOptions side;
  side.codebase_version = "mcap";
  side.dataset_format = "mcap";
  side.data_path = kDataPath;
  side.embedded_images = true;
  ROPEWALK_ASSIGN_OR_RETURN(SideFiles side_files, SideFiles::create(root, std::move(side)));
  return std::unique_ptr<EpisodeSink>(std::make_unique<EvaMcapSink>(
      root, schema, options, std::move(writer), std::move(side_files)));
}

}  // namespace ropewalk
