// Checks of what the recorder wrote into the row: skew, gaps, rates and losses of the sources.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/stage/quality/signals_internal.h"

namespace ropewalk::quality {
namespace {

// Spec: review-export-upload 4.3, the skew tolerance at a rate.
double default_tolerance_seconds(double fps) {
  return fps <= 1.0 ? 0.5 / fps : 1.0 / (2.0 * (fps - 1.0));
}

bool is_camera(const Episode& episode, std::string_view stream) {
  const Feature* feature = episode.schema().find(stream);
  return feature != nullptr && feature->is_camera();
}

bool makes_red(const Episode& episode, std::string_view stream) {
  return is_camera(episode, stream) || stream.find("action") != std::string_view::npos;
}

void check_skew(const Episode& episode, QualityReport& report) {
  const Json& row = episode.info().row;
  const Json* skews = row.find("alignment_image_max_skew_sec");
  const Json::Object* cameras = skews ? skews->as_object() : nullptr;
  if (cameras == nullptr) return;
  const double tolerance =
      row.get_double("alignment_image_skew_tolerance_sec")
          .value_or(default_tolerance_seconds(episode.schema().fps.to_double()));
  for (const auto& [camera, value] : *cameras) {
    const auto skew = value.as_double();
    if (!skew || !(*skew > tolerance)) continue;
    report.issues.push_back(
        {.code = "image_skew_exceeded",
         .detail = fmt::format("pictures lie up to {:.1f} ms from their frame; tolerance {:.1f} ms",
                               *skew * 1e3, tolerance * 1e3),
         .max = *skew,
         .stream = camera});
  }
}

// The frames that a gap between two source times falls on, when the row tells the grid.
std::optional<FrameRange> frames_of_gap(const Episode& episode, const Json& stats) {
  const auto grid = episode.info().row.get_double("alignment_grid_start");
  const auto begin = stats.get_double("max_gap_start_time");
  const auto end = stats.get_double("max_gap_end_time");
  if (!grid || !begin || !end || !(*end > *begin)) return std::nullopt;
  const double fps = episode.schema().fps.to_double();
  const double last = static_cast<double>(episode.info().length);
  const double first = std::clamp(std::floor((*begin - *grid) * fps), 0.0, last);
  const double after = std::clamp(std::ceil((*end - *grid) * fps), first, last);
  return FrameRange{static_cast<std::int64_t>(first), static_cast<std::int64_t>(after)};
}

void check_gaps(const Episode& episode, const QualityOptions& options, QualityReport& report) {
  const double frame = 1.0 / episode.schema().fps.to_double();
  for (const std::string_view key : {"alignment_image_stream_stats", "capture_stream_stats"}) {
    const Json* all = episode.info().row.find(key);
    const Json::Object* streams = all ? all->as_object() : nullptr;
    if (streams == nullptr) continue;
    for (const auto& [stream, stats] : *streams) {
      if (report.has("source_gap", stream)) continue;
      const auto gap = stats.get_double("max_gap_sec");
      if (!gap) continue;
      const double rate = stats.get_double("estimated_hz").value_or(0);
      const double period = rate > 0 ? 1.0 / rate : 0.0;
      const double limit = options.max_frame_dt_factor * std::max(frame, period);
      if (!(*gap > limit)) continue;
      QualityEntry issue{
          .code = "source_gap",
          .detail = fmt::format("a gap of {:.1f} ms between samples; at most {:.1f} ms", *gap * 1e3,
                                limit * 1e3),
          .max = *gap,
          .stream = stream};
      if (const auto frames = frames_of_gap(episode, stats); frames && frames->size() > 0) {
        issue.count = frames->size();
        issue.first_frame = frames->begin;
        issue.last_frame = frames->end - 1;
      }
      report.issues.push_back(std::move(issue));
    }
  }
}

void check_rates(const Episode& episode, const QualityOptions& options, QualityReport& report) {
  const Json* rates = episode.info().row.find("source_fps");
  const Json::Object* cameras = rates ? rates->as_object() : nullptr;
  if (cameras == nullptr) return;
  const double nominal = episode.schema().fps.to_double();
  for (const auto& [camera, value] : *cameras) {
    const auto rate = value.as_double();
    if (!rate || !(*rate < options.source_rate_min_share * nominal)) continue;
    report.issues.push_back(
        {.code = "source_rate_low",
         .detail = fmt::format("the camera delivered {:.1f} Hz over the take; nominal {:.1f} Hz",
                               *rate, nominal),
         .count = episode.info().length,
         .first_frame = 0,
         .last_frame = episode.info().length - 1,
         .max = *rate,
         .stream = camera});
  }
}

void check_drops(const Episode& episode, QualityReport& report) {
  const Json* drops = episode.info().row.find("capture_drops");
  const Json::Object* streams = drops ? drops->as_object() : nullptr;
  if (streams == nullptr) return;
  for (const auto& [stream, causes] : *streams) {
    const Json::Object* counts = causes.as_object();
    if (counts == nullptr) continue;
    std::int64_t total = 0;
    std::string listed;
    for (const auto& [cause, value] : *counts) {
      const std::int64_t lost = value.as_int64().value_or(0);
      if (lost <= 0) continue;
      total += lost;
      listed += fmt::format("{}{} {}", listed.empty() ? "" : ", ", lost, cause);
    }
    if (total == 0) continue;
    QualityEntry issue{.code = "source_drop",
                       .detail = fmt::format("{} samples were lost: {}", total, listed),
                       .count = total,
                       .stream = stream};
    if (makes_red(episode, stream)) {
      report.issues.push_back(std::move(issue));
    } else {
      issue.severity = "warn";
      report.findings.push_back(std::move(issue));
    }
  }
}

}  // namespace

void check_row(const Episode& episode, const QualityOptions& options, QualityReport& report) {
  if (!episode.info().row.is_object()) return;
  check_skew(episode, report);
  check_gaps(episode, options, report);
  check_rates(episode, options, report);
  check_drops(episode, report);
}

}  // namespace ropewalk::quality
