#include "ropewalk/engine/subset_source.h"

#include <arrow/record_batch.h>

namespace ropewalk {
namespace {

// Forwards everything but info() to the episode it wraps.
class SubsetEpisode final : public Episode {
 public:
  SubsetEpisode(std::unique_ptr<Episode> episode, EpisodeInfo info)
      : episode_(std::move(episode)), info_(std::move(info)) {}

  const EpisodeInfo& info() const override { return info_; }
  const Schema& schema() const override { return episode_->schema(); }
  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    return episode_->columns(range);
  }
  Result<std::shared_ptr<arrow::RecordBatch>> stream(std::string_view feature,
                                                     TimeRange range) const override {
    return episode_->stream(feature, range);
  }
  Result<std::unique_ptr<PacketReader>> packets(std::string_view camera) const override {
    return episode_->packets(camera);
  }
  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm form) const override {
    return episode_->frames(camera, range, form);
  }
  FrameRange decode_unit(std::string_view camera, std::int64_t frame) const override {
    return episode_->decode_unit(camera, frame);
  }
  Result<std::string> task_text(std::int64_t task_index) const override {
    return episode_->task_text(task_index);
  }
  bool has_camera(std::string_view camera) const override { return episode_->has_camera(camera); }
  Json statistics() const override { return episode_->statistics(); }

 private:
  std::unique_ptr<Episode> episode_;
  EpisodeInfo info_;
};

}  // namespace

SubsetSource::SubsetSource(const EpisodeSource& source, std::vector<std::int64_t> positions,
                           Amend amend)
    : source_(source), positions_(std::move(positions)), amend_(std::move(amend)) {}

EpisodeInfo SubsetSource::info(std::int64_t i) const {
  EpisodeInfo out = source_.info(positions_[static_cast<std::size_t>(i)]);
  if (amend_) amend_(out);
  return out;
}

Result<std::unique_ptr<Episode>> SubsetSource::open(std::int64_t i) const {
  const auto at = static_cast<std::size_t>(i);
  ROPEWALK_ASSIGN_OR_RETURN(auto episode, source_.open(positions_[at]));
  EpisodeInfo info = episode->info();
  if (amend_) amend_(info);
  return std::unique_ptr<Episode>(
      std::make_unique<SubsetEpisode>(std::move(episode), std::move(info)));
}

}  // namespace ropewalk
