#include <algorithm>
#include <cmath>
#include <cstdlib>

#include <fmt/format.h>

#include "ropewalk/stage/quality/picture_checks_internal.h"

namespace ropewalk {
namespace {

struct Sums {
  std::uint64_t luma = 0;
  std::uint64_t overexposed = 0;
  std::uint64_t step1 = 0;
  std::uint64_t step2 = 0;
};

// One pass over the picture and the two before it. Written so that the compiler vectorises it.
Sums sum_picture(ByteSpan now, ByteSpan before, ByteSpan earlier, int overexposed_level) {
  Sums sums;
  const auto level = static_cast<std::uint8_t>(std::clamp(overexposed_level, 0, 255));
  constexpr std::size_t kBlock = 4096;
  for (std::size_t start = 0; start < now.size(); start += kBlock) {
    const std::size_t end = std::min(now.size(), start + kBlock);
    std::uint32_t luma = 0;
    std::uint32_t bright = 0;
    std::uint32_t one = 0;
    std::uint32_t two = 0;
    for (std::size_t i = start; i < end; ++i) {
      const std::uint8_t value = now[i];
      luma += value;
      bright += value >= level ? 1U : 0U;
      one += static_cast<std::uint32_t>(value > before[i] ? value - before[i] : before[i] - value);
      two +=
          static_cast<std::uint32_t>(value > earlier[i] ? value - earlier[i] : earlier[i] - value);
    }
    sums.luma += luma;
    sums.overexposed += bright;
    sums.step1 += one;
    sums.step2 += two;
  }
  return sums;
}

float laplacian_variance(ByteSpan luma, int width, int height) {
  double sum = 0;
  double squares = 0;
  std::int64_t count = 0;
  const auto stride = static_cast<std::size_t>(width);
  for (int y = 1; y + 1 < height; y += 2) {
    const std::uint8_t* row = luma.data() + static_cast<std::size_t>(y) * stride;
    for (std::size_t x = 1; x + 1 < stride; x += 2) {
      const int value = 4 * row[x] - row[x - 1] - row[x + 1] - row[x - stride] - row[x + stride];
      sum += value;
      squares += static_cast<double>(value) * value;
      ++count;
    }
  }
  if (count == 0) return 0;
  const double mean = sum / static_cast<double>(count);
  return static_cast<float>(squares / static_cast<double>(count) - mean * mean);
}

void luma_of_rgb(ByteSpan rgb, Bytes& luma) {
  for (std::size_t i = 0; i < luma.size(); ++i) {
    luma[i] = static_cast<std::uint8_t>(
        (77 * rgb[3 * i] + 150 * rgb[3 * i + 1] + 29 * rgb[3 * i + 2]) >> 8);
  }
}

struct Run {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t size() const { return end - begin; }
};

// The runs of consecutive indices for which `holds`, at least `shortest` long.
template <typename Predicate>
std::vector<Run> runs_where(std::int64_t count, std::int64_t shortest, Predicate holds) {
  std::vector<Run> out;
  for (std::int64_t i = 0; i < count;) {
    if (!holds(i)) {
      ++i;
      continue;
    }
    const std::int64_t begin = i;
    while (i < count && holds(i)) ++i;
    if (i - begin >= shortest) out.push_back({begin, i});
  }
  return out;
}

void add_runs(std::vector<QualityEntry>& entries, const char* severity, const char* code,
              const std::string& stream, const std::string& detail, const std::vector<Run>& runs,
              std::optional<double> worst = std::nullopt) {
  if (runs.empty()) return;
  QualityEntry entry{
      .severity = severity, .code = code, .detail = detail, .stream = stream, .count = 0};
  for (const Run& run : runs) entry.count += run.size();
  entry.first_frame = runs.front().begin;
  entry.last_frame = runs.back().end - 1;
  entry.max = worst;
  entries.push_back(std::move(entry));
}

// "left" for observation.images.left_wrist; empty for cameras that no arm carries.
std::string wrist_arm(const std::string& camera) {
  if (camera.find("wrist") == std::string::npos && camera.find("hand") == std::string::npos)
    return "";
  if (camera.find("left") != std::string::npos) return "left";
  return camera.find("right") != std::string::npos ? "right" : "?";
}

}  // namespace

Result<std::vector<PictureTrace>> trace_pictures(const Episode& episode, const std::string& camera,
                                                 const QualityOptions& options,
                                                 const RunContext& context) {
  const std::int64_t length = episode.info().length;
  std::vector<PictureTrace> out(static_cast<std::size_t>(length));
  if (const auto packets = episode.packets(camera); packets.ok()) {
    if ((*packets)->count() != length) {
      return failed_precondition(fmt::format("{}", (*packets)->count()));
    }
    for (std::int64_t i = 0; i < length; ++i) {
      const auto entry = (*packets)->entry(i);
      if (entry.ordinal >= 0 && entry.ordinal < length) {
        out[static_cast<std::size_t>(entry.ordinal)].keyframe = entry.keyframe;
      }
    }
  }
  // Sources that deliver RGB alone give their luma here.
  bool is_rgb = false;
  auto reader = episode.frames(camera, {0, length}, {.layout = FrameLayout::luma});
  if (!reader.ok() && reader.status().code() == StatusCode::unimplemented) {
    reader = episode.frames(camera, {0, length});
    is_rgb = true;
  }
  if (!reader.ok()) return std::move(reader).status();
  const FrameShape shape = (*reader)->shape();
  if (shape.bytes_per_sample != 1) {
    return unimplemented("pictures of more than 8 bits are not judged");
  }
  const auto pixels =
      static_cast<std::size_t>(shape.width) * static_cast<std::size_t>(shape.height);
  is_rgb = is_rgb && shape.channels == 3;
  Bytes rgb(is_rgb ? shape.frame_bytes() : 0);
  std::vector<Bytes> luma(3, Bytes(pixels));
  for (std::int64_t frame = 0; frame < length; ++frame) {
    if (frame % 16 == 0) ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    Bytes& now = luma[static_cast<std::size_t>(frame % 3)];
    ROPEWALK_ASSIGN_OR_RETURN(
        const bool more, (*reader)->next(is_rgb ? MutableByteSpan(rgb) : MutableByteSpan(now)));
    if (!more) return failed_precondition(fmt::format("{}", frame));
    if (is_rgb) luma_of_rgb(rgb, now);
    const Bytes& before = luma[static_cast<std::size_t>((frame + 2) % 3)];
    const Bytes& earlier = luma[static_cast<std::size_t>((frame + 1) % 3)];
    const Sums sums = sum_picture(now, before, earlier, options.overexposed_level);
    const auto share = [pixels](std::uint64_t sum) {
      return static_cast<float>(static_cast<double>(sum) /
                                static_cast<double>(std::max<std::size_t>(1, pixels)));
    };
    PictureTrace& trace = out[static_cast<std::size_t>(frame)];
    trace.mean = share(sums.luma);
    trace.overexposed = share(sums.overexposed);
    if (frame > 0) trace.step1 = share(sums.step1);
    if (frame > 1) trace.step2 = share(sums.step2);
    if (options.sharpness_limit > 0) {
      trace.sharpness = laplacian_variance(now, shape.width, shape.height);
    }
  }
  return out;
}

void check_pictures(const Feature& camera, const std::vector<PictureTrace>& pictures,
                    const JointTraces& joints, double fps, const QualityOptions& options,
                    QualityReport& report) {
  const auto count = static_cast<std::int64_t>(pictures.size());
  const auto at = [&](std::int64_t i) -> const PictureTrace& {
    return pictures[static_cast<std::size_t>(i)];
  };
  const auto frames_of = [fps](double seconds) {
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(seconds * fps)));
  };
  const std::int64_t shortest = frames_of(options.dark_bright_seconds);
  add_runs(
      report.issues, "red", "black_frames", camera.name,
      fmt::format("mean luma below {} for at least {} s", options.black_luma,
                  options.dark_bright_seconds),
      runs_where(count, shortest, [&](std::int64_t i) { return at(i).mean < options.black_luma; }));
  add_runs(report.issues, "red", "overexposed_frames", camera.name,
           fmt::format("more than {:.0f} % of the samples at {} or above for at least {} s",
                       options.overexposed_share * 100, options.overexposed_level,
                       options.dark_bright_seconds),
           runs_where(count, shortest, [&](std::int64_t i) {
             return at(i).overexposed > options.overexposed_share;
           }));
  if (options.sharpness_limit > 0) {
    add_runs(report.findings, "warn", "blurred_frames", camera.name,
             fmt::format("variance of the Laplacian below {}", options.sharpness_limit),
             runs_where(count, shortest,
                        [&](std::int64_t i) { return at(i).sharpness < options.sharpness_limit; }));
  }
  if (count < 2) return;

  // A keyframe of a still scene is encoded anew and differs a little; it proves nothing.
  const auto same = [&](std::int64_t i) { return at(i).step1 <= options.same_luma; };
  const std::string arm = wrist_arm(camera.name);
  const double travel = joints.state.width == 0 ? 0.0
                        : arm.empty()           ? joints.state.travel(0, count)
                                                : joints.state.travel_of(arm, 0, count);
  std::int64_t judged = 0;
  std::int64_t equal = 0;
  double largest_keyframe_step = 0;
  for (std::int64_t i = 1; i < count; ++i) {
    if (at(i).keyframe) {
      largest_keyframe_step = std::max<double>(largest_keyframe_step, at(i).step1);
      continue;
    }
    ++judged;
    if (same(i)) ++equal;
  }
  // A lossy encoder may hold a resting scene still, so that only pictures stored as they came are
  // judged without joint motion.
  const bool must_move =
      travel >= options.frozen_travel_rad || (camera.kind == FeatureKind::image && arm.empty());
  if (judged > 0 && equal == judged && largest_keyframe_step <= 2.0 && must_move) {
    report.issues.push_back({.severity = "red",
                             .code = "frozen_camera",
                             .detail = fmt::format("every picture equals the first while joints "
                                                   "travel {:.2f} rad",
                                                   travel),
                             .stream = camera.name,
                             .count = count,
                             .first_frame = 0,
                             .last_frame = count - 1});
    return;
  }

  // A stall: over a window most pictures equal the ones two before, while joints travel.
  const std::int64_t window = std::max<std::int64_t>(frames_of(options.stall_seconds), 10);
  std::vector<std::int64_t> stills(static_cast<std::size_t>(count) + 1, 0);
  std::vector<std::int64_t> pairs(static_cast<std::size_t>(count) + 1, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    const bool pair = i >= 2 && !at(i).keyframe && !at(i - 1).keyframe;
    const auto k = static_cast<std::size_t>(i);
    pairs[k + 1] = pairs[k] + (pair ? 1 : 0);
    stills[k + 1] = stills[k] + (pair && at(i).step2 <= options.same_luma ? 1 : 0);
  }
  std::vector<bool> stalled(static_cast<std::size_t>(count), false);
  for (std::int64_t begin = 0; begin + window <= count; ++begin) {
    const auto b = static_cast<std::size_t>(begin);
    const auto e = static_cast<std::size_t>(begin + window);
    const std::int64_t there = pairs[e] - pairs[b];
    if (there < 8 || 2 * (stills[e] - stills[b]) < there) continue;
    const double moved = joints.state.width == 0 ? 0.0
                         : arm.empty()           ? joints.state.travel(begin, begin + window)
                                       : joints.state.travel_of(arm, begin, begin + window);
    if (moved < options.stall_travel_rad) continue;
    std::fill(stalled.begin() + begin, stalled.begin() + begin + window, true);
  }
  add_runs(
      report.issues, "red", "camera_stalled", camera.name,
      fmt::format("the picture stands still for at least {} s while joints move",
                  options.stall_seconds),
      runs_where(count, 1, [&](std::int64_t i) { return stalled[static_cast<std::size_t>(i)]; }));

  // The rate of pictures that differ from the one before, where joints move throughout.
  const std::int64_t rate_window = frames_of(options.rate_window_seconds);
  std::vector<std::int64_t> fresh(static_cast<std::size_t>(count) + 1, 0);
  for (std::int64_t i = 0; i < count; ++i) {
    fresh[static_cast<std::size_t>(i) + 1] =
        fresh[static_cast<std::size_t>(i)] + (i == 0 || !same(i) ? 1 : 0);
  }
  double lowest = fps;
  std::vector<bool> slow(static_cast<std::size_t>(count), false);
  for (std::int64_t begin = 0; begin + rate_window <= count && rate_window >= 5; ++begin) {
    const std::int64_t end = begin + rate_window;
    const double rate = static_cast<double>(fresh[static_cast<std::size_t>(end)] -
                                            fresh[static_cast<std::size_t>(begin)]) *
                        fps / static_cast<double>(rate_window);
    if (rate >= options.rate_share * fps) continue;
    // Joints must move in every fifth of the window: a lossy encoder repeats a resting scene.
    bool moving = joints.state.width > 0;
    for (int part = 0; part < 5 && moving; ++part) {
      moving = joints.moves(begin + part * rate_window / 5,
                            begin + (part + 1) * rate_window / 5 + 1, options.idle_rad);
    }
    if (!moving) continue;
    lowest = std::min(lowest, rate);
    std::fill(slow.begin() + begin, slow.begin() + end, true);
  }
  add_runs(report.issues, "red", "source_rate_low", camera.name,
           fmt::format("{:.1f} new pictures a second, nominal {:.1f}", lowest, fps),
           runs_where(count, 1, [&](std::int64_t i) { return slow[static_cast<std::size_t>(i)]; }),
           lowest);
}

}  // namespace ropewalk
