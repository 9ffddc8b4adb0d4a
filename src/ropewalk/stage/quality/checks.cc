#include "ropewalk/stage/quality/checks.h"

#include <algorithm>
#include <cmath>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/stage/quality/joint_traces_internal.h"
#include "ropewalk/stage/quality/picture_checks_internal.h"

namespace ropewalk {
namespace {

Json entries_to_json(const std::vector<QualityEntry>& entries) {
  Json out = Json::array();
  for (const QualityEntry& entry : entries) {
    Json object = Json::object();
    object.set("severity", entry.severity);
    object.set("code", entry.code);
    object.set("detail", entry.detail);
    object.set("count", entry.count);
    if (entry.first_frame) object.set("first_frame", *entry.first_frame);
    if (entry.last_frame) object.set("last_frame", *entry.last_frame);
    if (entry.max) object.set("max", *entry.max);
    if (!entry.stream.empty()) object.set("stream", entry.stream);
    out.push_back(std::move(object));
  }
  return out;
}

// The least length that the dataset itself asks for.
std::int64_t least_frames(const Schema& schema, const QualityOptions& options) {
  if (options.min_episode_frames > 0) return options.min_episode_frames;
  const Json* quality = schema.extra.find("quality");
  const Json* checks = quality ? quality->find("checks") : nullptr;
  return checks ? checks->get_int64("min_episode_frames").value_or(1) : 1;
}

template <typename Array>
void check_finite(const std::string& name, const Array& values, std::int64_t rows,
                  QualityReport& report) {
  const std::int64_t width = rows > 0 ? values.length() / rows : 0;
  if (width == 0) return;
  QualityEntry entry{.severity = "red", .code = "non_finite_value", .stream = name, .count = 0};
  for (std::int64_t row = 0; row < rows; ++row) {
    bool finite = true;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i) {
      finite = finite && std::isfinite(values.Value(i));
    }
    if (finite) continue;
    ++entry.count;
    if (!entry.first_frame) entry.first_frame = row;
    entry.last_frame = row;
  }
  if (entry.count == 0) return;
  entry.detail = fmt::format("NaN or infinity in {} rows", entry.count);
  report.issues.push_back(std::move(entry));
}

void check_columns(const Episode& episode, const arrow::RecordBatch& batch, QualityReport& report) {
  for (const Feature& feature : episode.schema().features) {
    if (feature.kind != FeatureKind::column) continue;
    const auto column = batch.GetColumnByName(feature.name);
    if (!column) {
      report.issues.push_back({.severity = "red",
                               .code = "missing_configured_column",
                               .detail = "the table lacks this column",
                               .stream = feature.name,
                               .count = batch.num_rows()});
      continue;
    }
    if (!dtype_is_float(feature.dtype)) continue;
    std::shared_ptr<arrow::Array> flat = column;
    while (flat->type_id() == arrow::Type::FIXED_SIZE_LIST ||
           flat->type_id() == arrow::Type::LIST) {
      flat = flat->type_id() == arrow::Type::LIST
                 ? static_cast<const arrow::ListArray&>(*flat).Flatten().ValueOr(nullptr)
                 : static_cast<const arrow::FixedSizeListArray&>(*flat).Flatten().ValueOr(nullptr);
      if (!flat) break;
    }
    if (const auto floats = std::dynamic_pointer_cast<arrow::FloatArray>(flat)) {
      check_finite(feature.name, *floats, batch.num_rows(), report);
    } else if (const auto doubles = std::dynamic_pointer_cast<arrow::DoubleArray>(flat)) {
      check_finite(feature.name, *doubles, batch.num_rows(), report);
    }
  }
  if (const auto column =
          std::dynamic_pointer_cast<arrow::FloatArray>(batch.GetColumnByName("timestamp"))) {
    QualityEntry entry{.severity = "red",
                       .code = "non_monotonic_timestamp",
                       .detail = "timestamp does not grow",
                       .stream = "timestamp",
                       .count = 0};
    for (std::int64_t row = 1; row < column->length(); ++row) {
      if (column->Value(row) > column->Value(row - 1)) continue;
      ++entry.count;
      if (!entry.first_frame) entry.first_frame = row;
      entry.last_frame = row;
    }
    if (entry.count > 0) report.issues.push_back(std::move(entry));
  }
}

void check_joints(const JointTraces& joints, double fps, const QualityOptions& options,
                  QualityReport& report) {
  const JointColumn& state = joints.state;
  const JointColumn& command = joints.command;
  if (state.width == 0 || state.rows < 2) return;
  const auto frames_of = [fps](double seconds) {
    return std::max<std::int64_t>(2, static_cast<std::int64_t>(std::llround(seconds * fps)));
  };
  const std::int64_t stuck_frames = frames_of(options.stuck_seconds);
  for (std::int64_t joint = 0; joint < state.width && command.width == state.width; ++joint) {
    for (std::int64_t begin = 0; begin < state.rows;) {
      std::int64_t end = begin + 1;
      while (end < state.rows && state.at(end, joint) == state.at(begin, joint)) ++end;
      if (end - begin >= stuck_frames) {
        float low = command.at(begin, joint);
        float high = low;
        for (std::int64_t row = begin; row < end; ++row) {
          low = std::min(low, command.at(row, joint));
          high = std::max(high, command.at(row, joint));
        }
        if (high - low >= options.stuck_command_rad) {
          const std::string name = state.joint_names.empty()
                                       ? fmt::format("{}[{}]", state.name, joint)
                                       : state.joint_names[static_cast<std::size_t>(joint)];
          report.issues.push_back({.severity = "red",
                                   .code = "stuck_joint",
                                   .detail = fmt::format("{} is constant while its command moves "
                                                         "{:.3f} rad",
                                                         name, high - low),
                                   .stream = name,
                                   .count = end - begin,
                                   .first_frame = begin,
                                   .last_frame = end - 1,
                                   .max = high - low});
          break;
        }
      }
      begin = end;
    }
  }

  // Idle: the longest spans in which every joint stays within idle_rad.
  const std::int64_t idle_frames = frames_of(options.idle_seconds);
  QualityEntry idle{.severity = "info", .code = "idle_span", .stream = state.name, .count = 0};
  for (std::int64_t begin = 0; begin + idle_frames <= state.rows;) {
    if (state.travel(begin, begin + idle_frames) > options.idle_rad) {
      // No span that begins before the middle of a moving window can be idle for long; step finely.
      begin += std::max<std::int64_t>(1, idle_frames / 16);
      continue;
    }
    std::int64_t end = begin + idle_frames;
    std::vector<float> low(static_cast<std::size_t>(state.width));
    std::vector<float> high(static_cast<std::size_t>(state.width));
    for (std::int64_t joint = 0; joint < state.width; ++joint) {
      const auto j = static_cast<std::size_t>(joint);
      low[j] = high[j] = state.at(begin, joint);
      for (std::int64_t row = begin; row < end; ++row) {
        low[j] = std::min(low[j], state.at(row, joint));
        high[j] = std::max(high[j], state.at(row, joint));
      }
    }
    for (; end < state.rows; ++end) {
      bool still = true;
      for (std::int64_t joint = 0; joint < state.width && still; ++joint) {
        const auto j = static_cast<std::size_t>(joint);
        if (state.is_gripper[j]) continue;
        low[j] = std::min(low[j], state.at(end, joint));
        high[j] = std::max(high[j], state.at(end, joint));
        still = high[j] - low[j] <= options.idle_rad;
      }
      if (!still) break;
    }
    idle.count += end - begin;
    if (!idle.first_frame) idle.first_frame = begin;
    idle.last_frame = end - 1;
    begin = end;
  }
  if (idle.count > 0) {
    idle.detail = fmt::format("no joint moves more than {} rad for {:.1f} s", options.idle_rad,
                              static_cast<double>(idle.count) / fps);
    report.findings.push_back(std::move(idle));
  }
}

// What the recorder noted about its source streams.
void check_alignment(const Episode& episode, double fps, const QualityOptions& options,
                     QualityReport& report) {
  const Json& row = episode.info().row;
  const Json* skews = row.find("alignment_image_max_skew_sec");
  const auto tolerance = row.get_double("alignment_image_skew_tolerance_sec");
  if (skews && skews->is_object() && tolerance) {
    for (const auto& [camera, skew] : *skews->as_object()) {
      const auto seconds = skew.as_double();
      if (!seconds || *seconds <= *tolerance) continue;
      report.issues.push_back(
          {.severity = "red",
           .code = "image_skew_exceeded",
           .detail = fmt::format("nearest image up to {:.1f} ms away, tolerance {:.1f} ms",
                                 *seconds * 1e3, *tolerance * 1e3),
           .stream = camera,
           .max = *seconds});
    }
  }
  const Json* streams = row.find("capture_stream_stats");
  if (!streams) streams = row.find("alignment_image_stream_stats");
  if (!streams || !streams->is_object()) return;
  for (const auto& [stream, stats] : *streams->as_object()) {
    const double median = 1.0 / std::max(1e-9, stats.get_double("estimated_hz").value_or(fps));
    const double limit = options.max_frame_dt_factor * std::max(1.0 / fps, median);
    const auto gap = stats.get_double("max_gap_sec");
    if (!gap || *gap <= limit) continue;
    report.issues.push_back(
        {.severity = "red",
         .code = "source_gap",
         .detail = fmt::format("a gap of {:.3f} s, limit {:.3f} s", *gap, limit),
         .stream = stream,
         .max = *gap});
  }
}

}  // namespace

Status QualityOptions::validate() const {
  const auto range = [](const char* name, double value, double low, double high) {
    return value >= low && value <= high
               ? ok_status()
               : invalid_argument(fmt::format("{} {}: expected {} to {}", name, value, low, high));
  };
  ROPEWALK_RETURN_IF_ERROR(
      range("min_episode_frames", static_cast<double>(min_episode_frames), 0, 1e9));
  ROPEWALK_RETURN_IF_ERROR(range("black_luma", black_luma, 0, 255));
  ROPEWALK_RETURN_IF_ERROR(range("overexposed_level", overexposed_level, 0, 255));
  ROPEWALK_RETURN_IF_ERROR(range("overexposed_share", overexposed_share, 0, 1));
  ROPEWALK_RETURN_IF_ERROR(range("sharpness_limit", sharpness_limit, 0, 1e9));
  ROPEWALK_RETURN_IF_ERROR(range("rate_share", rate_share, 0, 1));
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, double>>{
           {"dark_bright_seconds", dark_bright_seconds},
           {"stall_seconds", stall_seconds},
           {"stuck_seconds", stuck_seconds},
           {"idle_seconds", idle_seconds},
           {"rate_window_seconds", rate_window_seconds}}) {
    ROPEWALK_RETURN_IF_ERROR(range(name, value, 0.01, 3600));
  }
  return ok_status();
}

Json QualityReport::issues_json() const { return entries_to_json(issues); }
Json QualityReport::findings_json() const { return entries_to_json(findings); }

Result<QualityReport> check_episode(const Episode& episode, const QualityOptions& options,
                                    const RunContext& context) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  QualityReport report;
  const Schema& schema = episode.schema();
  const double fps = schema.fps.to_double();
  const std::int64_t length = episode.info().length;
  const std::int64_t least = least_frames(schema, options);
  if (length < least) {
    report.issues.push_back(
        {.severity = "red",
         .code = "episode_too_short",
         .detail = fmt::format("{} frames, at least {} asked for", length, least),
         .count = length});
  }
  check_alignment(episode, fps, options, report);

  JointTraces joints;
  const auto batch = episode.columns({0, length});
  if (batch.ok()) {
    check_columns(episode, **batch, report);
    ROPEWALK_ASSIGN_OR_RETURN(joints, trace_joints(episode, **batch));
    check_joints(joints, fps, options, report);
  } else if (batch.status().code() == StatusCode::cancelled) {
    return batch.status();
  } else {
    // A vector of another width than declared is told apart from a table that cannot be read.
    const bool shape = batch.status().reason() == "WRONG_SHAPE";
    report.issues.push_back({.severity = "red",
                             .code = shape ? "invalid_vector_dim" : "unreadable_table",
                             .detail = std::string(batch.status().message()),
                             .count = length});
  }

  const std::vector<std::string> cameras = schema.cameras();
  std::vector<QualityReport> parts(cameras.size());
  ROPEWALK_RETURN_IF_ERROR(parallel_for(
      context.pool, static_cast<std::int64_t>(cameras.size()), [&](std::int64_t i) -> Status {
        const std::string& camera = cameras[static_cast<std::size_t>(i)];
        QualityReport& part = parts[static_cast<std::size_t>(i)];
        if (!episode.has_camera(camera)) {
          part.issues.push_back({.severity = "red",
                                 .code = "missing_camera_stream",
                                 .detail = "the episode has no pictures of this camera",
                                 .stream = camera,
                                 .count = length});
          return ok_status();
        }
        const auto pictures = trace_pictures(episode, camera, options, context);
        if (pictures.ok()) {
          part.pictures = static_cast<std::int64_t>(pictures->size());
          check_pictures(*schema.find(camera), *pictures, joints, fps, options, part);
          return ok_status();
        }
        switch (pictures.status().code()) {
          case StatusCode::cancelled:
            return pictures.status();
          case StatusCode::failed_precondition:
            part.issues.push_back({.severity = "red",
                                   .code = "frame_count_mismatch",
                                   .detail = fmt::format("{} pictures for {} rows",
                                                         pictures.status().message(), length),
                                   .stream = camera});
            return ok_status();
          case StatusCode::unimplemented:
            part.findings.push_back({.severity = "info",
                                     .code = "pictures_not_judged",
                                     .detail = std::string(pictures.status().message()),
                                     .stream = camera});
            return ok_status();
          default:
            part.issues.push_back({.severity = "red",
                                   .code = "unreadable_video",
                                   .detail = std::string(pictures.status().message()),
                                   .stream = camera});
            return ok_status();
        }
      }));
  for (QualityReport& part : parts) {
    report.pictures += part.pictures;
    std::ranges::move(part.issues, std::back_inserter(report.issues));
    std::ranges::move(part.findings, std::back_inserter(report.findings));
  }
  return report;
}

}  // namespace ropewalk
