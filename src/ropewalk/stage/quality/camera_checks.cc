// Checks of one camera: everything is measured in one pass over its decoded luma.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/stage/quality/picture_metrics_internal.h"
#include "ropewalk/stage/quality/signals_internal.h"

namespace ropewalk::quality {
namespace {

// Note [Pictures that are the same after coding]
// A recorder codes pictures with loss, so equal pictures are not equal to the bit once decoded, and
// different ones may be: an encoder skips what changes less than its noise. Three rules hold the
// two apart. (1) A pair of pictures counts as equal up to static_max_difference, a fiftieth of a
// luma step on average. (2) A keyframe is coded anew and differs from the picture before it even
// when the camera showed the same; so a pair that ends in a keyframe never counts as equal, and
// counts as surely different only when it differs by more than keyframes of this clip do anyway.
// (3) Equal pictures accuse the camera only while the robot moves, and has and will for a while,
// since pictures lag behind joints; a robot at rest looks the same in every picture.

constexpr double kLagSeconds = 0.3;
constexpr double kSurelyDifferent = 0.3;  // mean luma difference
constexpr double kFrozenMinShare = 0.75;  // of pairs two apart; the rest are keyframes
constexpr int kFrozenMaxBlockShift = 3;   // of block means, luma steps: coding noise
constexpr std::int64_t kStallMinPairs = 8;
constexpr double kRateMinFps = 8.0;  // below, a second has too few pictures to judge a rate

std::int64_t frames_of(double seconds, double fps) {
  return std::max<std::int64_t>(1, std::llround(seconds * fps));
}

// What one pass over a camera gives. Vectors are per frame.
struct Measured {
  std::vector<float> difference;      // mean, from the frame before; 0 for the first
  std::vector<float> difference_two;  // from two before
  std::vector<std::uint8_t> is_key;
  std::int64_t frames = 0;
  int largest_block_shift = 0;  // from the first frame
  bool is_wide = false;         // 16 bits: equal means equal to the bit
  Spans black, overexposed, blurred, resized;
  double lowest_sharpness = INFINITY;
  FrameShape first_shape;
  FrameShape other_shape;
  std::optional<Status> fault;
};

struct CameraFacts {
  std::vector<std::uint8_t> is_key;  // empty: not known
  bool is_full_range = true;
  bool is_depth = false;
  bool is_lossless = false;
};

QualityEntry& add_issue(QualityReport& report, std::string code, std::string camera) {
  report.issues.push_back({.code = std::move(code), .stream = std::move(camera)});
  return report.issues.back();
}

bool must_stop(const Status& status) {
  return status.code() == StatusCode::cancelled || status.code() == StatusCode::resource_exhausted;
}

void note_fault(const Status& status, std::int64_t frames, const std::string& camera,
                QualityReport& report) {
  std::string code = "unreadable_camera";
  if (status.reason() == "frame_count_mismatch") {
    code = "frame_count_mismatch";
  } else if (status.reason() == "value_missing") {
    code = "missing_camera";
  } else if (status.code() == StatusCode::not_found) {
    code = "missing_camera_stream";
  }
  QualityEntry& issue = add_issue(report, std::move(code), camera);
  issue.detail = std::string(status.message());
  issue.count = frames;
}

CameraFacts facts_of(const Episode& episode, const Feature& feature, const PacketReader* packets) {
  CameraFacts facts;
  for (const std::string_view key : {"video.is_depth_map", "is_depth_map"}) {
    facts.is_depth = facts.is_depth || feature.info.get_bool(key).value_or(false);
  }
  facts.is_depth = facts.is_depth || feature.name.find("depth") != std::string::npos;
  facts.is_lossless = feature.kind == FeatureKind::image;
  if (packets == nullptr) {
    facts.is_full_range = feature.kind == FeatureKind::image;
    return facts;
  }
  facts.is_full_range =
      packets->params().color_range == 2 || packets->params().pix_fmt.starts_with("yuvj");
  facts.is_key.assign(static_cast<std::size_t>(episode.info().length), 0);
  for (std::int64_t i = 0; i < packets->count(); ++i) {
    const PacketReader::PacketEntry entry = packets->entry(i);
    if (entry.keyframe && entry.ordinal >= 0 && entry.ordinal < episode.info().length) {
      facts.is_key[static_cast<std::size_t>(entry.ordinal)] = 1;
    }
  }
  return facts;
}

// Measures frame after frame; keeps the three last pictures.
class Meter {
 public:
  Meter(const CameraFacts& facts, const QualityOptions& options, std::int64_t length)
      : facts_(facts), options_(options) {
    out_.difference.reserve(static_cast<std::size_t>(length));
    out_.difference_two.reserve(static_cast<std::size_t>(length));
  }

  // The memory that the next frame goes into.
  MutableByteSpan buffer(const FrameShape& shape) {
    Bytes& bytes = ring_[slot_];
    bytes.resize(shape.frame_bytes());
    return bytes;
  }

  void take(const FrameShape& shape) {
    const std::int64_t frame = out_.frames++;
    if (frame == 0) out_.first_shape = shape;
    const bool same_shape = shape == shape_;
    if (!(shape == out_.first_shape)) {
      out_.resized.add({frame, frame + 1});
      out_.other_shape = shape;
    }
    kept_ = same_shape ? std::min(kept_ + 1, 3) : 1;
    shape_ = shape;
    const Bytes& now = ring_[slot_];
    const Bytes& one = ring_[(slot_ + 2) % 3];
    const Bytes& two = ring_[(slot_ + 1) % 3];
    slot_ = (slot_ + 1) % 3;
    const double samples =
        std::max(1.0, static_cast<double>(shape.width) * static_cast<double>(shape.height));
    if (shape.bytes_per_sample == 2) {
      take_wide(now, kept_ >= 2 ? ByteSpan(one) : ByteSpan(),
                kept_ >= 3 ? ByteSpan(two) : ByteSpan(), samples);
      return;
    }
    const PictureSums sums =
        measure_picture(now, kept_ >= 2 ? ByteSpan(one) : ByteSpan(),
                        kept_ >= 3 ? ByteSpan(two) : ByteSpan(), shape, bright_limit(), blocks_);
    push(sums, samples);
    if (frame == 0) {
      first_blocks_ = blocks_;
    } else if (shape == out_.first_shape) {
      out_.largest_block_shift =
          std::max(out_.largest_block_shift, largest_difference(blocks_, first_blocks_));
    }
    if (facts_.is_depth) return;
    const FrameRange here{frame, frame + 1};
    if (full_range_mean(static_cast<double>(sums.luma) / samples) < options_.black_max_luma) {
      out_.black.add(here);
    }
    if (static_cast<double>(sums.bright) > options_.overexposed_min_share * samples) {
      out_.overexposed.add(here);
    }
    if (options_.blurred_min_sharpness > 0) {
      const double sharp = sharpness(now, shape);
      out_.lowest_sharpness = std::min(out_.lowest_sharpness, sharp);
      if (sharp < options_.blurred_min_sharpness) out_.blurred.add(here);
    }
  }

  Measured finish() && {
    out_.is_key = facts_.is_key;
    out_.is_key.resize(static_cast<std::size_t>(out_.frames), 0);
    return std::move(out_);
  }
  std::int64_t frames() const { return out_.frames; }
  void fail(Status fault) { out_.fault = std::move(fault); }

 private:
  void push(const PictureSums& sums, double samples) {
    const auto mean = [&](std::uint64_t sum, int needed) {
      // Without the earlier picture nothing is known: taken as different.
      return kept_ >= needed ? static_cast<float>(static_cast<double>(sum) / samples) : INFINITY;
    };
    out_.difference.push_back(mean(sums.difference, 2));
    out_.difference_two.push_back(mean(sums.difference_two, 3));
  }
  void take_wide(ByteSpan now, ByteSpan one, ByteSpan two, double samples) {
    out_.is_wide = true;
    const auto wide = [](ByteSpan bytes, std::vector<std::uint16_t>& samples_out) {
      samples_out.resize(bytes.size() / 2);
      std::memcpy(samples_out.data(), bytes.data(), samples_out.size() * 2);
    };
    wide(now, wide_[0]);
    wide(one, wide_[1]);
    wide(two, wide_[2]);
    push(measure_wide_picture(wide_[0], wide_[1], wide_[2]), samples);
  }
  // Luma of limited range, 16..235, on the scale of full range.
  double full_range_mean(double mean) const {
    return facts_.is_full_range ? mean : (mean - 16.0) * 255.0 / 219.0;
  }
  std::uint8_t bright_limit() const {
    const double limit = facts_.is_full_range
                             ? static_cast<double>(options_.overexposed_min_luma)
                             : 16.0 + options_.overexposed_min_luma * 219.0 / 255.0;
    return static_cast<std::uint8_t>(std::clamp(std::ceil(limit), 0.0, 255.0));
  }

  const CameraFacts& facts_;
  const QualityOptions& options_;
  std::array<Bytes, 3> ring_;
  std::array<std::vector<std::uint16_t>, 3> wide_;
  std::size_t slot_ = 0;
  int kept_ = 0;  // pictures of the present shape at hand, at most 3
  FrameShape shape_;
  std::vector<std::uint8_t> blocks_, first_blocks_;
  Measured out_;
};

Result<Measured> measure(const Episode& episode, const std::string& camera,
                         const CameraFacts& facts, const QualityOptions& options,
                         const RunContext& context) {
  const std::int64_t length = episode.info().length;
  Meter meter(facts, options, length);
  while (meter.frames() < length) {
    const std::int64_t begin = meter.frames();
    auto reader = episode.frames(camera, {begin, length}, {.layout = FrameLayout::luma});
    if (!reader.ok()) {
      if (must_stop(reader.status())) return reader.status();
      meter.fail(reader.status());
      break;
    }
    const FrameShape shape = (*reader)->shape();
    Status fault;
    while (meter.frames() < length) {
      ROPEWALK_RETURN_IF_ERROR(context.check_stop());
      const auto more = (*reader)->next(meter.buffer(shape));
      if (!more.ok()) {
        fault = more.status();
        break;
      }
      if (!*more) {
        fault = data_loss(fmt::format("{}: {} of {} frames", camera, meter.frames(), length))
                    .with_reason("frame_count_mismatch");
        break;
      }
      meter.take(shape);
    }
    if (fault.ok()) continue;
    if (must_stop(fault)) return fault;
    // A picture of another size ends a reader; a new one begins with its size.
    if (fault.code() == StatusCode::invalid_argument && meter.frames() > begin) continue;
    meter.fail(std::move(fault));
    break;
  }
  return std::move(meter).finish();
}

bool is_static(const Measured& measured, const QualityOptions& options, float difference) {
  return static_cast<double>(difference) <=
         (measured.is_wide ? 0.0 : options.static_max_difference);
}

bool is_frozen(const Measured& measured, const CameraFacts& facts, const QualityOptions& options) {
  if (measured.frames < 2 || !measured.resized.empty()) return false;
  std::int64_t equal = 0;
  for (std::int64_t i = 1; i < measured.frames; ++i) {
    equal += measured.difference[static_cast<std::size_t>(i)] == 0.0F ? 1 : 0;
  }
  if (equal == measured.frames - 1) return true;
  if (facts.is_lossless || measured.is_wide) return false;
  // See Note [Pictures that are the same after coding].
  if (measured.largest_block_shift > kFrozenMaxBlockShift) return false;
  std::int64_t pairs = 0;
  std::int64_t still = 0;
  for (std::int64_t i = 2; i < measured.frames; ++i) {
    ++pairs;
    still +=
        is_static(measured, options, measured.difference_two[static_cast<std::size_t>(i)]) ? 1 : 0;
  }
  return pairs > 0 && static_cast<double>(still) >= kFrozenMinShare * static_cast<double>(pairs);
}

// A camera outside must see the robot move; of a coded picture that is known only when it moved.
bool must_show_change(const Signals& signals, const CameraPlace& place, const CameraFacts& facts,
                      const QualityOptions& options) {
  const FrameRange all{0, signals.frames};
  if (place.is_wrist) return signals.travel(place.arm, all) >= options.frozen_min_travel_rad;
  if (facts.is_lossless || signals.joints.empty()) return true;
  return signals.travel(Arm::none, all) >= options.frozen_min_travel_rad;
}

// Frames [i, i + width) for which `good` holds throughout are windows; calls on_window(i).
template <typename Good, typename OnWindow>
void for_each_window(std::int64_t count, std::int64_t width, const Good& good,
                     const OnWindow& on_window) {
  std::int64_t run = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    run = good(i) ? run + 1 : 0;
    if (run >= width) on_window(i + 1 - width);
  }
}

void check_stall(const Measured& measured, const Signals& signals, const CameraPlace& place,
                 const std::vector<std::uint8_t>& moving, const std::string& camera,
                 const QualityOptions& options, QualityReport& report) {
  // Pair i is (i, i + 2).
  const std::int64_t pairs = measured.frames - 2;
  const std::int64_t width =
      std::max(frames_of(options.stall_min_seconds, signals.fps), kStallMinPairs + 2);
  std::vector<std::int64_t> still(static_cast<std::size_t>(std::max<std::int64_t>(pairs, 0)) + 1,
                                  0);
  const auto pair_is_still = [&](std::int64_t i) {
    return is_static(measured, options, measured.difference_two[static_cast<std::size_t>(i + 2)]);
  };
  for (std::int64_t i = 0; i < pairs; ++i) {
    still[static_cast<std::size_t>(i + 1)] =
        still[static_cast<std::size_t>(i)] + (pair_is_still(i) ? 1 : 0);
  }
  const auto still_in = [&](std::int64_t begin, std::int64_t end) {
    return still[static_cast<std::size_t>(end)] - still[static_cast<std::size_t>(begin)];
  };
  Spans spans;
  std::int64_t marked = 0;
  for_each_window(
      measured.frames, width,
      [&](std::int64_t i) { return moving[static_cast<std::size_t>(i)] != 0; },
      [&](std::int64_t begin) {
        const std::int64_t end = begin + width - 2;  // of pairs within the window
        if (static_cast<double>(still_in(begin, end)) <
            options.static_min_share * static_cast<double>(width - 2)) {
          return;
        }
        if (signals.travel(place.arm, {begin, begin + width}) < options.motion_min_travel_rad) {
          return;
        }
        for (std::int64_t i = std::max(begin, marked); i < end; ++i) {
          if (pair_is_still(i)) spans.add({i, i + 3});
        }
        marked = std::max(marked, end);
      });
  if (spans.empty()) return;
  QualityEntry& issue = add_issue(report, "camera_stalled", camera);
  spans.put(issue);
  issue.max = static_cast<double>(spans.longest()) / signals.fps;
  issue.detail = fmt::format("the picture stands still for {} while the robot moves",
                             describe(spans, signals.fps));
}

// The difference that keyframes of this clip show anyway; infinite when there are too few to tell.
double keyframe_difference(const Measured& measured) {
  std::vector<float> values;
  for (std::size_t i = 1; i < measured.difference.size(); ++i) {
    if (measured.is_key[i] != 0 && std::isfinite(measured.difference[i])) {
      values.push_back(measured.difference[i]);
    }
  }
  if (values.size() < 4) return INFINITY;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 10);
  std::ranges::nth_element(values, at);
  return static_cast<double>(*at);
}

void check_rate(const Measured& measured, const Signals& signals,
                const std::vector<std::uint8_t>& moving, const std::string& camera,
                const QualityOptions& options, QualityReport& report) {
  if (signals.fps < kRateMinFps || report.has("source_rate_low", camera)) return;
  const std::int64_t width = frames_of(options.source_rate_window_seconds, signals.fps);
  const double keyframe = keyframe_difference(measured);
  // Frame i stands for the pair (i - 1, i).
  std::vector<std::int64_t> repeated(static_cast<std::size_t>(measured.frames) + 1, 0);
  std::vector<std::int64_t> fresh(static_cast<std::size_t>(measured.frames) + 1, 0);
  for (std::size_t i = 0; i < measured.difference.size(); ++i) {
    const float difference = measured.difference[i];
    const bool is_key = measured.is_key[i] != 0;
    const bool repeats = i > 0 && !is_key && is_static(measured, options, difference);
    const bool is_fresh =
        i > 0 && std::isfinite(difference) &&
        static_cast<double>(difference) >= (is_key ? 1.3 * keyframe + 0.1 : kSurelyDifferent);
    repeated[i + 1] = repeated[i] + (repeats ? 1 : 0);
    fresh[i + 1] = fresh[i] + (is_fresh ? 1 : 0);
  }
  Spans spans;
  double lowest = signals.fps;
  for_each_window(
      measured.frames, width,
      [&](std::int64_t i) { return i > 0 && moving[static_cast<std::size_t>(i)] != 0; },
      [&](std::int64_t begin) {
        const auto first = static_cast<std::size_t>(begin);
        const auto after = static_cast<std::size_t>(begin + width);
        const std::int64_t repeats = repeated[after] - repeated[first];
        const std::int64_t news = fresh[after] - fresh[first];
        const double rate =
            signals.fps * static_cast<double>(width - repeats) / static_cast<double>(width);
        // Hardly anything fresh: the camera stands or sees nothing move, which is no rate.
        if (news * 10 < width || news < 2) return;
        if (!(rate < options.source_rate_min_share * signals.fps)) return;
        spans.add({begin, begin + width});
        lowest = std::min(lowest, rate);
      });
  if (spans.empty()) return;
  QualityEntry& issue = add_issue(report, "source_rate_low", camera);
  spans.put(issue);
  issue.max = lowest;
  issue.detail = fmt::format(
      "new pictures come at {:.1f} Hz or less for {} while the robot moves; nominal "
      "{:.1f} Hz",
      lowest, describe(spans, signals.fps), signals.fps);
}

// Keeps the stretches that last.
Spans lasting(const Spans& spans, double seconds, double fps) {
  Spans out;
  const std::int64_t least = frames_of(seconds, fps);
  for (const FrameRange& span : spans.list()) {
    if (span.size() >= least) out.add(span);
  }
  return out;
}

void check_light(const Measured& measured, const std::string& camera, double fps,
                 const QualityOptions& options, QualityReport& report) {
  const Spans black = lasting(measured.black, options.black_min_seconds, fps);
  if (!black.empty()) {
    QualityEntry& issue = add_issue(report, "black_frames", camera);
    black.put(issue);
    issue.detail = fmt::format("black for {}", describe(black, fps));
  }
  const Spans white = lasting(measured.overexposed, options.overexposed_min_seconds, fps);
  if (!white.empty()) {
    QualityEntry& issue = add_issue(report, "overexposed_frames", camera);
    white.put(issue);
    issue.detail = fmt::format("more than {:.0f} % of the pixels are white for {}",
                               options.overexposed_min_share * 100, describe(white, fps));
  }
  if (!measured.blurred.empty()) {
    QualityEntry finding{.severity = "warn", .code = "blurred_frames", .stream = camera};
    measured.blurred.put(finding);
    finding.max = measured.lowest_sharpness;
    finding.detail =
        fmt::format("sharpness down to {:.1f}, limit {:.1f}, for {}", measured.lowest_sharpness,
                    options.blurred_min_sharpness, describe(measured.blurred, fps));
    report.findings.push_back(std::move(finding));
  }
  if (!measured.resized.empty()) {
    QualityEntry& issue = add_issue(report, "resolution_changed", camera);
    measured.resized.put(issue);
    issue.detail = fmt::format("frame {} is {}x{}, the first one {}x{}", *issue.first_frame,
                               measured.other_shape.width, measured.other_shape.height,
                               measured.first_shape.width, measured.first_shape.height);
  }
}

}  // namespace

Status check_camera(const Episode& episode, const std::string& camera, const Signals& signals,
                    const QualityOptions& options, const RunContext& context,
                    QualityReport& report) {
  const Feature* feature = episode.schema().find(camera);
  const std::int64_t length = episode.info().length;
  if (feature == nullptr || !episode.has_camera(camera)) {
    QualityEntry& issue = add_issue(report, "missing_camera_stream", camera);
    issue.detail = "the dataset declares the camera; this episode was saved without it";
    issue.count = length;
    return ok_status();
  }
  if (length == 0) return ok_status();
  const auto packets = episode.packets(camera);
  if (!packets.ok() && packets.status().code() != StatusCode::failed_precondition) {
    if (must_stop(packets.status())) return packets.status();
    note_fault(packets.status(), length, camera, report);
    return ok_status();
  }
  if (packets.ok() && (*packets)->count() != length) {
    note_fault(data_loss(fmt::format("the video has {} frames, the table {} rows",
                                     (*packets)->count(), length))
                   .with_reason("frame_count_mismatch"),
               length, camera, report);
    return ok_status();
  }
  if (!options.pictures) return ok_status();
  const CameraFacts facts = facts_of(episode, *feature, packets.ok() ? packets->get() : nullptr);
  ROPEWALK_ASSIGN_OR_RETURN(const Measured measured,
                            measure(episode, camera, facts, options, context));
  report.pictures += measured.frames;
  if (measured.fault) note_fault(*measured.fault, length - measured.frames, camera, report);
  check_light(measured, camera, signals.fps, options, report);
  if (measured.fault) return ok_status();

  const CameraPlace place = camera_place(camera);
  if (is_frozen(measured, facts, options)) {
    if (!must_show_change(signals, place, facts, options)) return ok_status();
    QualityEntry& issue = add_issue(report, "frozen_camera", camera);
    issue.detail = fmt::format("all {} frames show one picture", measured.frames);
    issue.count = measured.frames;
    issue.first_frame = 0;
    issue.last_frame = measured.frames - 1;
    return ok_status();
  }
  if (signals.joints.empty()) return ok_status();
  const auto moving = signals.moving(place.arm, options.motion_min_travel_rad, kLagSeconds);
  check_stall(measured, signals, place, moving, camera, options, report);
  check_rate(measured, signals, moving, camera, options, report);
  return ok_status();
}

}  // namespace ropewalk::quality
