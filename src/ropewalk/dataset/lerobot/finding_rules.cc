#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/finding_rules_internal.h"

namespace ropewalk::lerobot {
namespace {

using enum Severity;

constexpr std::string_view kLeftOut = "the episode is left out";

constexpr FindingRule kRules[] = {
    // --- info.json ---
    {"byte_order_mark", warning, true, "skipped"},
    {"non_finite_literal", warning, true, "read as null"},
    {"duplicate_key", warning, true, "the last one wins"},
    {"version_missing", warning, true, "taken from the files that are there"},
    {"version_mismatch", warning, true, "taken from the files that are there"},
    {"info_key_missing", warning, true, "the default is taken"},
    {"info_key_invalid", warning, true, "the default is taken"},
    {"template_invalid", warning, true, "the default is taken"},
    {"path_escapes_root", error, true, "refused"},
    {"total_mismatch", warning, true, "counted instead"},
    {"splits_invalid", warning, true, "rebuilt from the number of episodes"},
    {"fps_not_integral", info, false, "kept as a fraction"},
    {"fps_mismatch", warning, true, "the declared rate is kept, frames are taken by their number"},
    // --- features ---
    {"names_not_a_list", info, false, "kept as found"},
    {"feature_renamed", warning, true, "renamed"},
    {"feature_shape_invalid", warning, true, "read as [1]"},
    {"feature_flattened", warning, true, "read as one dimension, the shape is kept beside it"},
    {"feature_dropped", warning, true, "the feature is left out"},
    {"capture_time_narrow", info, false, "read as float64"},
    {"default_feature_missing", info, false, "appended"},
    {"camera_shape_order", info, false, "read as [height, width, channels]"},
    {"camera_shape_mismatch", warning, true, "the shape of the pictures is taken"},
    {"codec_mismatch", info, false, "the codec of the stream is taken"},
    {"column_missing", warning, true, "the feature is left out"},
    {"column_not_declared", warning, true, "the column is left out"},
    {"column_type_differs", info, false, "cast to the declared type"},
    // --- rows of episodes ---
    {"malformed_line", error, true, "the line is left out"},
    {"torn_line", warning, true, "the last line is left out"},
    {"blank_line", warning, true, "skipped"},
    {"episode_index_gap", warning, true, "writers number densely, the original number is kept"},
    {"episode_order", info, false, "kept in the order of the file"},
    {"duplicate_episode", warning, true, "the rows are equal, one is taken"},
    {"duplicate_episode_conflict", error, true, "refused"},
    {"episode_empty", warning, true, kLeftOut},
    {"length_missing", warning, true, "taken from the table"},
    // --- tasks ---
    {"tasks_missing", warning, true, "texts are taken from the episodes"},
    {"tasks_not_dense", warning, true, "writers number densely"},
    {"task_duplicate", warning, true, "joined by writers"},
    {"task_index_conflict", error, true, "the last text is taken"},
    {"tasks_index_unnamed", info, false, "read by place"},
    {"task_index_unknown", error, true, "give the index a line in the task list", true},
    // --- statistics ---
    {"statistics_missing", warning, true, "recomputed by writers"},
    {"statistics_incomplete", warning, true, "recomputed by writers"},
    // --- files ---
    {"files_missing", error, true, kLeftOut},
    {"lfs_pointer", error, true, "the episode is left out; fetch it with `git lfs pull`"},
    {"table_unreadable", error, true, kLeftOut},
    {"video_unreadable", error, true, kLeftOut},
    {"row_count_mismatch", warning, true, "the table decides"},
    {"frame_count_mismatch", error, true, kLeftOut},
    {"video_first_frame_late", info, false, "frames are taken by their number"},
    {"video_rate_variable", warning, true, "frames are taken by their number"},
    {"video_frames_hidden", warning, true, "frames that the edit list hides are not counted"},
    {"video_trailing_bytes", warning, true, "ignored"},
    {"audio_not_read", info, false, "the audio track is not read"},
    {"leftover_files", warning, true, "ignored"},
    {"backup_file", info, false, "ignored"},
    {"nested_dataset", warning, true, "ignored; open it by its own path"},
    // --- format v3.0 ---
    {"meta_file_unreadable", error, true, "its episodes are left out"},
    {"meta_columns_differ", info, false, "absent values are null"},
    {"data_file_unreadable", error, true, "its episodes are left out"},
    {"data_location_stale", warning, true, "found by the rows of the data files"},
    {"dataset_range_wrong", warning, true, "counted from the rows of the data files"},
    {"video_offset_drift", info, false, "taken as the nearest frame"},
    {"video_offset_wrong", warning, true, "counted from the lengths of the episodes"},
    {"rows_out_of_order", warning, true, "sorted by frame_index"},
    {"episode_not_in_data", error, true, kLeftOut},
    {"episode_not_in_meta", error, true, "its rows are left out"},
    // --- content ---
    {"value_missing", error, true, "give the value, or leave the episode out", true},
    {"value_invalid", error, true, "the column cannot be read as declared", true},
    {"value_not_finite", warning, true, "kept as it is"},
    {"timestamp_broken", warning, true, "rebuilt from frame_index"},
    {"timestamp_off_grid", warning, true, "kept as it is"},
    {"timestamp_tolerance", info, false,
     "upstream's float32 check refuses the episode; split it, or read it elsewhere"},
    {"frame_index_broken", warning, true, "rewritten by writers"},
    {"episode_index_broken", warning, true, "rewritten by writers"},
    {"index_not_contiguous", warning, true, "rewritten by writers"},
    {"image_unreadable", error, true, "replace the picture, or leave the episode out", true},
    {"frame_unreadable", error, true, "replace the video, or leave the episode out", true},
    // --- export ---
    {"source_not_v21", error, true, "convert the dataset first: ropewalk convert", true},
    {"no_episodes", error, true, "record or choose an episode", true},
    // --- the dataset as a whole ---
    {"not_readable", error, true, "refused"},
};

}  // namespace

std::span<const FindingRule> finding_rules() { return kRules; }

const FindingRule& finding_rule(std::string_view code) {
  const auto* const at = std::ranges::find(kRules, code, &FindingRule::code);
  assert(at != std::end(kRules));
  return *at;
}

Finding make_finding(std::string_view code, FindingPlace place, bool strict) {
  const FindingRule& rule = finding_rule(code);
  const bool refused = strict && rule.strict_refuses;
  Finding out;
  out.code = code;
  out.severity = refused ? Severity::error : place.severity.value_or(rule.lenient);
  out.file = std::move(place.file);
  out.episode = place.episode;
  out.feature = std::move(place.feature);
  out.row = place.row;
  out.count = place.count;
  out.declared = std::move(place.declared);
  out.found = std::move(place.found);
  if (refused && !rule.advice) {
    out.decision = "refused";
  } else {
    out.decision = place.decision.empty() ? std::string(rule.decision) : std::move(place.decision);
  }
  return out;
}

Status FindingLog::fatal(std::string_view code, FindingPlace place, const Status& status) {
  Finding entry = make_finding(code, std::move(place), strict_);
  entry.severity = Severity::error;
  findings_.add(std::move(entry));
  return status.reason().empty() ? status.with_reason(code) : status;
}

Status FindingLog::refusal(const std::string& dataset) const {
  if (!findings_.has_errors()) return ok_status();
  std::string text;
  std::string_view reason;
  std::int64_t shown = 0;
  std::int64_t total = 0;
  for (const Finding& entry : findings_.entries()) {
    if (entry.severity != Severity::error) continue;
    if (reason.empty()) reason = entry.code;
    ++total;
    if (shown < 20) {
      text += "\n  " + to_line(entry);
      ++shown;
    }
  }
  if (total > shown) text += fmt::format("\n  and {} more", total - shown);
  return failed_precondition(fmt::format("{}: {} finding{} refused:{}", dataset, total,
                                         total == 1 ? "" : "s", text))
      .with_reason(reason);
}

}  // namespace ropewalk::lerobot
