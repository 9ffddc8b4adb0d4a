#include "ropewalk/stage/quality/checks.h"

#include <algorithm>
#include <array>

#include <arrow/record_batch.h>
#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/stage/quality/signals_internal.h"

namespace ropewalk {
namespace {

// Codes whose absence after a scan clears what the row says; every other issue of the row was seen
// by the recorder alone (values it replaced, streams it never saved) and is kept.
constexpr std::array<std::string_view, 10> kDecidedByScan{
    "frozen_camera",        "camera_stalled",    "black_frames",
    "overexposed_frames",   "stuck_joint",       "idle_span",
    "resolution_changed",   "episode_too_short", "blurred_frames",
    "missing_camera_stream"};
// The most entries that are kept of a list with one entry per frame, as older recorders wrote.
constexpr std::size_t kMostKept = 64;

// Aggregates one entry per frame, as AGX wrote them, into one per (code, camera or column).
void keep_recorded(const Json& recorded, std::vector<QualityEntry>& issues) {
  const Json::Array* list = recorded.as_array();
  if (list == nullptr) return;
  std::vector<QualityEntry> kept;
  for (const Json& entry : *list) {
    QualityEntry issue = issue_from_json(entry);
    if (issue.code.empty() ||
        std::ranges::find(kDecidedByScan, issue.code) != kDecidedByScan.end()) {
      continue;
    }
    const auto same = [&](const QualityEntry& other) {
      return other.code == issue.code && other.stream == issue.stream;
    };
    if (std::ranges::any_of(issues, same)) continue;
    const auto earlier = std::ranges::find_if(kept, same);
    if (earlier != kept.end()) {
      earlier->count =
          std::max<std::int64_t>(earlier->count, 1) + std::max<std::int64_t>(issue.count, 1);
      continue;
    }
    if (kept.size() < kMostKept) kept.push_back(std::move(issue));
  }
  issues.insert(issues.end(), std::make_move_iterator(kept.begin()),
                std::make_move_iterator(kept.end()));
}

std::int64_t min_frames(const Schema& schema, const QualityOptions& options) {
  if (options.min_episode_frames > 0) return options.min_episode_frames;
  const Json* quality = schema.extra.find("quality");
  const Json* checks = quality ? quality->find("checks") : nullptr;
  const auto declared = checks ? checks->get_int64("min_episode_frames") : std::nullopt;
  return std::max<std::int64_t>(1, declared.value_or(1));
}

void check_length(const Episode& episode, const QualityOptions& options, QualityReport& report) {
  const std::int64_t length = episode.info().length;
  const std::int64_t least = min_frames(episode.schema(), options);
  if (length >= least) return;
  report.issues.push_back(
      {.code = "episode_too_short",
       .detail = fmt::format("{} frames; at least {} are asked for", length, least),
       .count = length});
}

// The grid cannot go back, but the times a recorder keeps beside it can.
Status check_times(const Episode& episode, QualityReport& report) {
  for (const char* name : {"capture_time_ns", "capture_time"}) {
    const Feature* feature = episode.schema().find(name);
    if (feature == nullptr || feature->kind != FeatureKind::column) continue;
    const auto batch = episode.columns_of({name}, {0, episode.info().length});
    if (!batch.ok()) {
      return batch.status().code() == StatusCode::cancelled ? batch.status() : ok_status();
    }
    if ((*batch)->num_columns() != 1) continue;
    const auto column = dense_column(*(*batch)->column(0));
    if (!column.ok()) return ok_status();
    quality::Spans spans;
    const auto compare = [&]<typename T>(T) {
      const std::size_t count = column->data.size() / sizeof(T);
      std::vector<T> values(count);
      std::copy_n(column->data.data(), count * sizeof(T),
                  reinterpret_cast<std::uint8_t*>(values.data()));
      for (std::size_t i = 1; i < count; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        if (!(values[i] > values[i - 1])) spans.add({at, at + 1});
      }
    };
    if (column->dtype == DType::int64) {
      compare(std::int64_t{});
    } else if (column->dtype == DType::float64) {
      compare(double{});
    } else {
      return ok_status();  // float32 cannot hold a time of day
    }
    if (spans.empty()) return ok_status();
    QualityEntry issue{.code = "non_monotonic_timestamp", .stream = name};
    spans.put(issue);
    issue.detail = fmt::format("time does not go on in {} frames, first in frame {}", issue.count,
                               *issue.first_frame);
    report.issues.push_back(std::move(issue));
    return ok_status();
  }
  return ok_status();
}

}  // namespace

Result<QualityReport> check_episode(const Episode& episode, const QualityOptions& options,
                                    const RunContext& context) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  QualityReport report;
  check_length(episode, options, report);
  ROPEWALK_ASSIGN_OR_RETURN(const quality::Signals signals, quality::read_signals(episode, report));
  if (episode.info().length > 0) ROPEWALK_RETURN_IF_ERROR(check_times(episode, report));
  quality::check_joints(signals, options, report);
  quality::check_row(episode, options, report);

  const std::vector<std::string> cameras = episode.schema().cameras();
  std::vector<QualityReport> parts(cameras.size());
  for (QualityReport& part : parts) part.issues = report.issues;  // to see what the row said
  const std::size_t before = report.issues.size();
  ROPEWALK_RETURN_IF_ERROR(parallel_for(
      context.pool, static_cast<std::int64_t>(cameras.size()), [&](std::int64_t i) -> Status {
        const auto at = static_cast<std::size_t>(i);
        return quality::check_camera(episode, cameras[at], signals, options, context, parts[at]);
      }));
  for (QualityReport& part : parts) {
    report.issues.insert(report.issues.end(),
                         part.issues.begin() + static_cast<std::ptrdiff_t>(before),
                         part.issues.end());
    report.findings.insert(report.findings.end(), part.findings.begin(), part.findings.end());
    report.pictures += part.pictures;
  }
  keep_recorded(episode.info().issues, report.issues);
  return report;
}

}  // namespace ropewalk
