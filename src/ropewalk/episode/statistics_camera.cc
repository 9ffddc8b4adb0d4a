// Statistics of cameras: which frames count, and what a histogram of their samples holds.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "ropewalk/episode/statistics.h"

namespace ropewalk {
namespace {

// Spec: lerobot-formats 5.2.
constexpr int kDownsampleFrom = 300;
constexpr int kDownsampleTo = 150;
constexpr std::int64_t kFewestSamples = 100;
constexpr std::int64_t kMostSamples = 10000;

int stride_of(const FrameShape& shape) {
  const int longer = std::max(shape.width, shape.height);
  return longer < kDownsampleFrom ? 1 : longer / kDownsampleTo;
}

void count_samples(const FrameShape& shape, ByteSpan frame, int stride,
                   std::vector<std::uint64_t>& histogram, std::size_t bins) {
  const auto channels = static_cast<std::size_t>(shape.channels);
  const auto width = static_cast<std::size_t>(shape.width);
  const auto step = static_cast<std::size_t>(stride);
  for (std::size_t y = 0; y < static_cast<std::size_t>(shape.height); y += step) {
    for (std::size_t x = 0; x < width; x += step) {
      const std::size_t at = (y * width + x) * channels;
      for (std::size_t c = 0; c < channels; ++c) {
        std::size_t value = 0;
        if (shape.bytes_per_sample == 2) {
          std::uint16_t wide = 0;
          std::memcpy(&wide, frame.data() + (at + c) * 2, sizeof(wide));
          value = wide;
        } else {
          value = frame[at + c];
        }
        ++histogram[c * bins + value];
      }
    }
  }
}

double histogram_quantile(std::span<const std::uint64_t> counts, std::uint64_t total,
                          double level) {
  const double rank = level * static_cast<double>(total - 1);
  const auto lower = static_cast<std::uint64_t>(rank);
  std::uint64_t seen = 0;
  std::size_t low = 0;
  while (low < counts.size() && seen + counts[low] <= lower) seen += counts[low++];
  std::size_t high = low;
  if (seen + counts[low] <= lower + 1 && lower + 1 < total) {
    do ++high;
    while (counts[high] == 0);
  }
  const auto base = static_cast<double>(low);
  return base + (static_cast<double>(high) - base) * (rank - static_cast<double>(lower));
}

}  // namespace

std::vector<std::int64_t> sampled_frames(std::int64_t length) {
  if (length <= 0) return {};
  const auto power = static_cast<std::int64_t>(std::pow(static_cast<double>(length), 0.75));
  const std::int64_t count = std::clamp(power, std::min(kFewestSamples, length), kMostSamples);
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  // numpy.linspace: i * step with the last value set to the end; rint rounds half to even.
  const double step =
      count > 1 ? static_cast<double>(length - 1) / static_cast<double>(count - 1) : 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    out[static_cast<std::size_t>(i)] =
        static_cast<std::int64_t>(std::nearbyint(static_cast<double>(i) * step));
  }
  if (count > 1) out.back() = length - 1;
  return out;
}

FeatureStatistics histogram_statistics(std::vector<std::uint64_t> histogram, std::size_t bins,
                                       std::int64_t count, const StatisticsOptions& options) {
  FeatureStatistics out;
  const std::size_t channels = histogram.size() / bins;
  const double scale = bins == 256 ? 255.0 : 1.0;
  out.shape = {static_cast<std::int64_t>(channels), 1, 1};
  out.count = count;
  for (auto* values : {&out.min, &out.max, &out.mean, &out.std}) values->assign(channels, 0.0);
  if (options.quantiles) out.quantiles.fill(std::vector<double>(channels, 0.0));
  for (std::size_t c = 0; c < channels; ++c) {
    const std::span<const std::uint64_t> counts(histogram.data() + c * bins, bins);
    std::uint64_t total = 0;
    double sum = 0;
    for (std::size_t value = 0; value < bins; ++value) {
      total += counts[value];
      sum += static_cast<double>(counts[value]) * static_cast<double>(value);
    }
    if (total == 0) continue;
    const double mean = sum / static_cast<double>(total);
    double squares = 0;
    std::size_t low = bins;
    std::size_t high = 0;
    for (std::size_t value = 0; value < bins; ++value) {
      if (counts[value] == 0) continue;
      low = std::min(low, value);
      high = value;
      const double delta = static_cast<double>(value) - mean;
      squares += static_cast<double>(counts[value]) * delta * delta;
    }
    out.min[c] = static_cast<double>(low) / scale;
    out.max[c] = static_cast<double>(high) / scale;
    out.mean[c] = mean / scale;
    out.std[c] = std::sqrt(squares / static_cast<double>(total)) / scale;
    if (!options.quantiles) continue;
    for (std::size_t i = 0; i < kQuantileLevels.size(); ++i) {
      out.quantiles[i][c] = histogram_quantile(counts, total, kQuantileLevels[i]) / scale;
    }
  }
  out.histogram = std::move(histogram);
  return out;
}

CameraSamples::CameraSamples(const FrameShape& shape)
    : shape_(shape),
      stride_(stride_of(shape)),
      bins_(shape.bytes_per_sample == 2 ? 65536 : 256),
      histogram_(static_cast<std::size_t>(shape.channels) * bins_, 0) {}

Result<CameraSamples> CameraSamples::create(const FrameShape& shape) {
  if (shape.channels < 1 || shape.channels > 4) {
    return invalid_argument(fmt::format("no statistics of {} channels", shape.channels));
  }
  return CameraSamples(shape);
}

void CameraSamples::add(ByteSpan frame) {
  count_samples(shape_, frame, stride_, histogram_, bins_);
  ++frames_;
}

FeatureStatistics CameraSamples::result(const StatisticsOptions& options) && {
  if (shape_.channels == 1) {
    const std::vector<std::uint64_t> gray = histogram_;
    histogram_.insert(histogram_.end(), gray.begin(), gray.end());
    histogram_.insert(histogram_.end(), gray.begin(), gray.end());
  }
  return histogram_statistics(std::move(histogram_), bins_, frames_, options);
}

Result<FeatureStatistics> camera_statistics(const Episode& episode, const std::string& camera,
                                            const StatisticsOptions& options,
                                            std::stop_token stop) {
  const std::int64_t length = episode.info().length;
  const std::vector<std::int64_t> samples = sampled_frames(length);
  std::unique_ptr<FrameReader> reader;
  std::int64_t position = 0;  // the frame that reader gives next
  FrameShape shape;
  Bytes frame;
  std::optional<CameraSamples> counted;
  for (const std::int64_t sample : samples) {
    if (stop.stop_requested()) return cancelled();
    // Reading on is cheaper than a seek as long as the frame lies in the unit at hand.
    if (reader == nullptr || episode.decode_unit(camera, sample).begin > position) {
      ROPEWALK_ASSIGN_OR_RETURN(reader, episode.frames(camera, {sample, length}));
      position = sample;
      if (!counted) {
        shape = reader->shape();
        ROPEWALK_ASSIGN_OR_RETURN_CTX(counted, CameraSamples::create(shape), "camera " + camera);
        frame.resize(shape.frame_bytes());
      } else if (reader->shape() != shape) {
        return data_loss(
            fmt::format("camera {}: frame {} has another shape than frame 0", camera, sample));
      }
    }
    while (position <= sample) {
      ROPEWALK_ASSIGN_OR_RETURN(const bool more, reader->next(frame));
      if (!more) {
        return data_loss(
            fmt::format("camera {}: ends before frame {} of {}", camera, position, length));
      }
      ++position;
    }
    counted->add(frame);
  }
  if (!counted) return failed_precondition(fmt::format("camera {}: no frames", camera));
  return std::move(*counted).result(options);
}

}  // namespace ropewalk
