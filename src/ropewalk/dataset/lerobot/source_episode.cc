// One episode of a LeRobot dataset: its table, its packets, its pictures.
#include <algorithm>

#include <arrow/record_batch.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/source_internal.h"
#include "ropewalk/format/video/decoder.h"
#include "ropewalk/format/video/packets.h"

namespace ropewalk::lerobot {
namespace {

/// Packets of a whole clip or of a span of a packed file.
class ClipPackets final : public PacketReader {
 public:
  static Result<std::unique_ptr<PacketReader>> open(std::shared_ptr<const Clip> clip,
                                                    FrameRange frames,
                                                    const std::filesystem::path& path) {
    const Mp4Index& index = *clip->index;
    ROPEWALK_ASSIGN_OR_RETURN(const PacketRange range, index.packets_of(frames));
    ROPEWALK_ASSIGN_OR_RETURN(Mp4PacketReader reader,
                              Mp4PacketReader::open(clip->index, clip->source, range));
    auto out = std::unique_ptr<ClipPackets>(
        new ClipPackets(std::move(clip), frames, range, std::move(reader)));
    const Mp4Index& kept = *out->clip_->index;
    if (frames.begin == 0 && frames.end == kept.frame_count() && kept.hidden_packets == 0) {
      out->whole_ = path;
    }
    return std::unique_ptr<PacketReader>(std::move(out));
  }

  const VideoParams& params() const override { return clip_->index->params; }
  std::int64_t count() const override { return static_cast<std::int64_t>(range_.size()); }
  PacketEntry entry(std::int64_t i) const override {
    const Mp4Packet& packet = clip_->index->packets[range_.begin + static_cast<std::size_t>(i)];
    return {.size_bytes = packet.size,
            .keyframe = packet.keyframe,
            .ordinal = packet.rank - frames_.begin};
  }
  Result<std::optional<VideoPacket>> next() override { return reader_.next(); }
  std::optional<std::filesystem::path> whole_file() const override { return whole_; }

 private:
  ClipPackets(std::shared_ptr<const Clip> clip, FrameRange frames, PacketRange range,
              Mp4PacketReader reader)
      : clip_(std::move(clip)), frames_(frames), range_(range), reader_(std::move(reader)) {}

  std::shared_ptr<const Clip> clip_;
  FrameRange frames_;
  PacketRange range_;
  Mp4PacketReader reader_;
  std::optional<std::filesystem::path> whole_;
};

class ClipFrames final : public FrameReader {
 public:
  ClipFrames(std::unique_ptr<VideoDecoder> decoder, FrameRange frames)
      : decoder_(std::move(decoder)), frames_(frames), at_(frames.begin) {}

  FrameShape shape() const override { return decoder_->frame_shape(); }
  Result<bool> next(MutableByteSpan out) override {
    if (at_ == frames_.end) return false;
    ROPEWALK_RETURN_IF_ERROR(decoder_->read({at_, at_ + 1}, out));
    ++at_;
    return true;
  }

 private:
  std::unique_ptr<VideoDecoder> decoder_;
  FrameRange frames_;  // in the file
  std::int64_t at_;
};

class LerobotEpisode final : public Episode {
 public:
  LerobotEpisode(const LerobotSource& source, std::int64_t position, EpisodeInfo info)
      : impl_(source.impl()),
        info_(std::move(info)),
        row_(impl_.rows[static_cast<std::size_t>(position)]) {}

  const EpisodeInfo& info() const override { return info_; }
  const Schema& schema() const override { return impl_.info.schema; }

  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(auto batch, impl_.read(row_, info_.length, range, {}, nullptr),
                                  place());
    return batch;
  }

  Result<std::shared_ptr<arrow::RecordBatch>> columns_of(const std::vector<std::string>& names,
                                                         FrameRange range) const override {
    for (const std::string& name : names) {
      const Feature* feature = impl_.info.schema.find(name);
      if (feature == nullptr ||
          (feature->kind != FeatureKind::column && feature->kind != FeatureKind::image)) {
        return not_found(fmt::format("{}: no column \"{}\"", place(), name));
      }
    }
    ROPEWALK_ASSIGN_OR_RETURN_CTX(auto batch, impl_.read(row_, info_.length, range, names, nullptr),
                                  place());
    return batch;
  }

  Result<std::unique_ptr<PacketReader>> packets(std::string_view camera) const override {
    ROPEWALK_ASSIGN_OR_RETURN(const Span span, span_of(camera));
    auto reader = ClipPackets::open(span.clip, span.frames, impl_.root / span.path);
    if (!reader.ok() && reader.status().code() == StatusCode::failed_precondition) {
      const Status& why = reader.status();
      return failed_precondition(
                 fmt::format(
                     "{}: {}: frames {}..{} cannot be copied as packets: {}; decode and encode "
                     "them again, or cut at a keyframe",
                     place(), span.path, span.frames.begin, span.frames.end, why.message()))
          .with_reason("NOT_REMUXABLE");
    }
    if (!reader.ok()) return reader.status().with_context(place());
    return std::move(*reader);
  }

  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm form) const override {
    ROPEWALK_ASSIGN_OR_RETURN(const Feature* feature, camera_feature(camera));
    if (range.begin < 0 || range.end < range.begin || range.end > info_.length) {
      return out_of_range(fmt::format("{}: {}: frames {}..{} of {}", place(), camera, range.begin,
                                      range.end, info_.length));
    }
    if (feature->kind == FeatureKind::image) {
      ROPEWALK_ASSIGN_OR_RETURN_CTX(
          auto reader, image_frames(impl_, row_, info_.length, feature->name, range, form),
          place());
      return reader;
    }
    ROPEWALK_ASSIGN_OR_RETURN(const Span span, span_of(camera));
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        auto decoder,
        VideoDecoder::open(span.clip->index, span.clip->source,
                           {.form = form, .limits = impl_.options.limits}),
        place());
    return std::unique_ptr<FrameReader>(std::make_unique<ClipFrames>(
        std::move(decoder),
        FrameRange{span.frames.begin + range.begin, span.frames.begin + range.end}));
  }

  FrameRange decode_unit(std::string_view camera, std::int64_t frame) const override {
    const Feature* feature = impl_.info.schema.find(camera);
    if (feature != nullptr && feature->kind == FeatureKind::video) {
      if (const auto span = span_of(camera); span.ok()) {
        const FrameRange unit = span->clip->index->decode_unit(span->frames.begin + frame);
        return {std::max<std::int64_t>(0, unit.begin - span->frames.begin),
                std::min(info_.length, unit.end - span->frames.begin)};
      }
    }
    return {frame, frame + 1};
  }

  Result<std::string> task_text(std::int64_t task_index) const override {
    if (const std::string* text = impl_.tasks.find(task_index)) return *text;
    // Without any task list the row's own text is the only one there can be.
    if (impl_.tasks.entries().empty()) {
      return info_.tasks.empty() ? std::string() : info_.tasks.front();
    }
    return data_loss(fmt::format("{}: task_index {} is not in the task list of {} entries", place(),
                                 task_index, impl_.tasks.entries().size()))
        .with_reason("task_index_unknown");
  }

  bool has_camera(std::string_view camera) const override {
    const Feature* feature = impl_.info.schema.find(camera);
    if (feature == nullptr || !feature->is_camera()) return false;
    const std::string& key = impl_.info.physical_name(camera);
    if (feature->kind == FeatureKind::image) return has_column(key);
    return impl_.has_camera(row_, key, info_.row);
  }

  Json statistics() const override { return impl_.episode_statistics(row_); }

 private:
  struct Span {
    std::string path;
    std::shared_ptr<const Clip> clip;
    FrameRange frames;  // in the file
  };

  // Pictures inside the table: a recorder that got none writes no such column. A table that cannot
  // be read says so when it is read.
  bool has_column(const std::string& column) const {
    const auto places = impl_.places(row_);
    if (!places.ok() || places->empty()) return true;
    const auto file = impl_.table(places->front().file);
    return !file.ok() || (*file)->reader->has_column(column);
  }

  std::string place() const { return fmt::format("episode {}", info_.index); }

  Result<const Feature*> camera_feature(std::string_view camera) const {
    const Feature* feature = impl_.info.schema.find(camera);
    if (feature == nullptr || !feature->is_camera()) {
      return not_found(fmt::format("{}: no camera \"{}\"; there are: {}", place(), camera,
                                   fmt::join(impl_.info.schema.cameras(), ", ")));
    }
    return feature;
  }

  Result<Span> span_of(std::string_view camera) const {
    ROPEWALK_ASSIGN_OR_RETURN(const Feature* feature, camera_feature(camera));
    if (feature->kind != FeatureKind::video) {
      return failed_precondition(fmt::format(
          "{}: camera {} is stored as single pictures, not as encoded video", place(), camera));
    }
    const std::string& key = impl_.info.physical_name(camera);
    Span out;
    out.path = impl_.video_path(row_, key);
    if (!impl_.has_camera(row_, key, info_.row) || out.path.empty()) {
      return not_found(
          fmt::format("{}: camera {} was not recorded in this episode", place(), camera));
    }
    ROPEWALK_ASSIGN_OR_RETURN_CTX(out.clip, impl_.clip(out.path), place());
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const std::int64_t begin,
                                  impl_.first_frame(row_, key, *out.clip->index), place());
    out.frames = {begin, begin + info_.length};
    const std::int64_t count = out.clip->index->frame_count();
    // Without a survey nothing was cut to fit: a clip of one episode has to agree with its table.
    const bool exact = !impl_.is_v3() && impl_.table_rows.empty();
    if (out.frames.end > count || (exact && out.frames.end != count)) {
      return data_loss(fmt::format("{}: {}: {} frames, but the table has {} rows{}", place(),
                                   out.path, count - begin, info_.length,
                                   begin > 0 ? fmt::format(" from frame {} on", begin) : ""))
          .with_reason("frame_count_mismatch");
    }
    return out;
  }

  const LerobotSource::Impl& impl_;
  EpisodeInfo info_;
  std::size_t row_;
};

}  // namespace

std::unique_ptr<Episode> make_episode(const LerobotSource& source, std::int64_t position,
                                      EpisodeInfo info) {
  return std::make_unique<LerobotEpisode>(source, position, std::move(info));
}

}  // namespace ropewalk::lerobot
