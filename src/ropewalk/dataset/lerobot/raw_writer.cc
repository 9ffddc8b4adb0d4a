#include "ropewalk/dataset/lerobot/raw_writer.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/json_lines_internal.h"
#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/dataset/lerobot/raw_files_internal.h"
#include "ropewalk/dataset/lerobot/raw_lock.h"
#include "ropewalk/dataset/lerobot/raw_recovery.h"
#include "ropewalk/episode/side_files.h"

namespace ropewalk {
namespace {

using lerobot_internal::RawClip;
using lerobot_internal::RawLayout;
using lerobot_internal::RawNumbers;

constexpr std::string_view kDataPath =
    "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet";
constexpr std::string_view kVideoPath =
    "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4";

/// An episode whose files are written, not yet committed.
struct Prepared {
  RawNumbers numbers;
  std::int64_t length = 0;
  std::string task;
  Json row;
  std::vector<std::string> cameras;  ///< with pictures, in schema order
  StatisticsMap columns;
  std::map<std::string, FeatureStatistics> clips;
};

// The row with the keys that every row has in front.
Json finished_row(const Json& row, const RawQuality* quality) {
  Json out = Json::object();
  for (const char* key : {"episode_index", "tasks", "length"}) {
    if (const Json* value = row.find(key)) out.set(key, *value);
  }
  if (quality != nullptr && !quality->quality.empty()) {
    out.set("quality", quality->quality);
    out.set("quality_issues", quality->issues);
    if (quality->findings.size() > 0) out.set("quality_findings", quality->findings);
  }
  for (const auto& [key, value] : *row.as_object()) {
    if (out.find(key) == nullptr) out.set(key, value);
  }
  return out;
}

// "2026-01-01T08:00:06+00:00" as a time of the ledger; empty when it is no UTC time.
std::string ledger_time_of(const Json& row) {
  const std::string text = row.get_string("ended_at").value_or("");
  const std::size_t zone = text.size() == 25 ? text.find("+00:00", 19) : std::string::npos;
  return zone == 19 ? text.substr(0, 19) + ".000000Z" : std::string();
}

}  // namespace

struct RawWriter::Impl {
  std::filesystem::path root;
  RawLayout layout;
  std::filesystem::path staging;
  Findings findings;
  std::optional<FileLock> lock;

  std::vector<std::string> tasks;
  std::unordered_map<std::string, std::int64_t> task_indices;
  std::int64_t next_index = 0;
  std::int64_t rows = 0;
  std::int64_t frames = 0;
  std::int64_t videos = 0;
  StatisticsPool pool;
  Json kept_info;  ///< info.json as found, for the keys that are not ours
  std::string started_at;

  std::unique_ptr<Sink> rows_sink;  ///< bulk only
  std::unique_ptr<Sink> stats_sink;

  std::uint64_t ledger_end = 0;
  std::int64_t ledger_rev = 0;
  std::string ledger_at;

  std::filesystem::path meta(std::string_view name) const { return root / "meta" / name; }

  Status open();
  Status read_existing();
  Status read_existing_info();
  Status append_window(const std::vector<const Episode*>& episodes, const RunContext& context);
  Result<RawNumbers> numbers_of(const Episode& episode, std::int64_t ahead,
                                std::int64_t frames_ahead,
                                std::vector<std::string>& new_tasks) const;
  Status prepare(const Episode& episode, std::size_t part, Prepared& out,
                 const std::filesystem::path& base, std::stop_token stop, Findings& found) const;
  void complete(const Episode& episode, Prepared& prepared) const;
  Status commit(Prepared& prepared, const std::filesystem::path& base);
  Status commit_durably(const Prepared& prepared, const std::string& row, const std::string& stats,
                        const std::filesystem::path& base);
  std::string tasks_text() const;
  Json info_document() const;
  Json stats_document() const;
  LedgerLine saved_line(const Json& row);
  Status finish_bulk(const RunContext& context, const RawJudge& judge);
  Status write_rows_and_ledger(const std::vector<RawQuality>& qualities);
};

std::string RawWriter::Impl::tasks_text() const {
  std::string text;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Json line = Json::object();
    line.set("task_index", static_cast<std::int64_t>(i));
    line.set("task", tasks[i]);
    text += line.dump_spaced() + "\n";
  }
  return text;
}

Json RawWriter::Impl::info_document() const {
  const Schema declared = layout.table.declared(layout.schema);
  const bool has_video = !layout.table.videos().empty();
  Json features = Json::object();
  for (const Feature& feature : declared.features) {
    features.set(feature.name, feature_to_json(feature));
  }
  Json out = Json::object();
  out.set("codebase_version", "v2.1");
  out.set("robot_type", declared.robot_type);
  out.set("total_episodes", rows);
  out.set("total_frames", frames);
  out.set("total_tasks", static_cast<std::int64_t>(tasks.size()));
  out.set("total_videos", videos);
  out.set("total_chunks", (next_index + kEpisodesPerChunk - 1) / kEpisodesPerChunk);
  out.set("chunks_size", kEpisodesPerChunk);
  if (declared.fps.is_integral()) {
    out.set("fps", declared.fps.num);
  } else {
    out.set("fps", declared.fps.to_double());
  }
  out.set("splits", Json(Json::Object{{"train", Json(fmt::format("0:{}", rows))}}));
  out.set("data_path", kDataPath);
  out.set("video_path", has_video ? Json(kVideoPath) : Json());
  out.set("features", std::move(features));
  if (!started_at.empty()) out.set("collection_started_at", started_at);
  for (const Json* extra : {&kept_info, &layout.schema.extra}) {
    if (const auto* members = extra->as_object()) {
      for (const auto& [key, value] : *members) {
        if (out.find(key) == nullptr) out.set(key, value);
      }
    }
  }
  return out;
}

// Spec: review-export-upload 2.6: the recorded vectors alone, without counts.
Json RawWriter::Impl::stats_document() const {
  StatisticsMap out;
  for (auto& [name, statistics] : pool.result()) {
    if (is_default_column(name) || name == "capture_time" || name == "capture_time_ns") continue;
    const Feature* feature = layout.schema.find(name);
    if (feature == nullptr || feature->is_camera()) continue;
    out.emplace(name, statistics);
  }
  return statistics_to_json(out, false);
}

LedgerLine RawWriter::Impl::saved_line(const Json& row) {
  LedgerLine line;
  line.rev = ++ledger_rev;
  std::string at = layout.options.row_times ? ledger_time_of(row) : std::string();
  if (at <= ledger_at) at = next_ledger_time(ledger_at);
  ledger_at = at;
  line.at = at;
  line.actor = "system";
  line.client = "recorder";
  line.kind = LedgerKind::saved;
  line.episode_index = row.get_int64("episode_index");
  line.take_id = row.get_string("take_id").value_or("");
  line.after.set("length", row.get_int64("length").value_or(0));
  if (const Json* quality = row.find("quality")) line.after.set("quality", *quality);
  return line;
}

Status RawWriter::Impl::read_existing_info() {
  ROPEWALK_ASSIGN_OR_RETURN(const std::string info_text,
                            read_text_file(meta("info.json"), Limits().max_json_bytes));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(kept_info, parse_json(info_text), meta("info.json").string());
  started_at = kept_info.get_string("collection_started_at").value_or("");
  const Json expected = info_document();
  for (const char* key : {"codebase_version", "fps", "features"}) {
    const Json* found = kept_info.find(key);
    if (found == nullptr || !(*found == *expected.find(key))) {
      return failed_precondition(
          fmt::format("{}: `{}` is {}, a recording has {}; record into another dataset",
                      meta("info.json").string(), key, found != nullptr ? found->dump() : "absent",
                      expected.find(key)->dump()));
    }
  }
  return ok_status();
}

Status RawWriter::Impl::read_existing() {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info_file, file_info(meta("info.json")));
  if (!layout.options.durable) {
    if (!info_file) return ok_status();
    return already_exists(fmt::format("{}: there is a dataset", root.string()));
  }
  // What a crash left first; this also records in the ledger what other programs changed.
  ROPEWALK_ASSIGN_OR_RETURN(const Findings recovered,
                            recover_raw_locked(root, staging, {"system", "recorder"}));
  findings.append(recovered);
  if (info_file) ROPEWALK_RETURN_IF_ERROR(read_existing_info());
  const auto each_line = [&](const char* name, const std::function<Status(const Json&)>& body) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(meta(name)));
    if (!there) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(meta(name)));
    return lerobot::for_each_line(
        *source, {}, nullptr, [&](std::string_view text, lerobot::LinePlace) -> Status {
          if (text.empty()) return ok_status();
          ROPEWALK_ASSIGN_OR_RETURN_CTX(const Json line, parse_json(text), meta(name).string());
          return body(line);
        });
  };
  ROPEWALK_RETURN_IF_ERROR(each_line("tasks.jsonl", [&](const Json& line) -> Status {
    if (line.get_int64("task_index") != static_cast<std::int64_t>(tasks.size())) {
      return data_loss(fmt::format("{}: task_index of line {} is not {}",
                                   meta("tasks.jsonl").string(), tasks.size() + 1, tasks.size()));
    }
    task_indices.emplace(line.get_string("task").value_or(""),
                         static_cast<std::int64_t>(tasks.size()));
    tasks.push_back(line.get_string("task").value_or(""));
    return ok_status();
  }));
  ROPEWALK_RETURN_IF_ERROR(each_line("episodes.jsonl", [&](const Json& line) {
    ++rows;
    frames += line.get_int64("length").value_or(0);
    videos += line.get_int64("total_videos").value_or(0);
    next_index = std::max(next_index, 1 + line.get_int64("episode_index").value_or(-1));
    return ok_status();
  }));
  ROPEWALK_RETURN_IF_ERROR(each_line("episodes_stats.jsonl", [&](const Json& line) {
    if (const Json* stats = line.find("stats")) pool.add(statistics_from_json(*stats));
    return ok_status();
  }));
  // A number that a file or a ledger line has is never given again.
  for (const auto& folder : {root / "data", root / "videos", raw_orphans(root)}) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(folder));
    if (!there) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const auto files, list_tree(folder));
    for (const std::string& file : files) {
      next_index = std::max(next_index, 1 + lerobot_internal::raw_index_in_name("/" + file));
    }
  }
  return ok_status();
}

Status RawWriter::Impl::open() {
  ROPEWALK_RETURN_IF_ERROR(layout.options.encoder.validate());
  ROPEWALK_RETURN_IF_ERROR(make_directories(root / "meta"));
  layout.table = lerobot_internal::plan_table(layout.schema, nullptr, {}, findings);
  if (layout.options.durable) {
    ROPEWALK_ASSIGN_OR_RETURN(lock, lock_for_recording(root));
    staging = layout.options.staging.empty() ? raw_staging(root) : layout.options.staging;
  }
  ROPEWALK_RETURN_IF_ERROR(read_existing());
  if (layout.options.durable) return ok_status();
  ROPEWALK_ASSIGN_OR_RETURN(rows_sink, create_sink(meta("episodes.jsonl")));
  ROPEWALK_ASSIGN_OR_RETURN(stats_sink, create_sink(meta("episodes_stats.jsonl")));
  return ok_status();
}

Result<RawNumbers> RawWriter::Impl::numbers_of(const Episode& episode, std::int64_t ahead,
                                               std::int64_t frames_ahead,
                                               std::vector<std::string>& new_tasks) const {
  const EpisodeInfo& info = episode.info();
  if (info.tasks.size() != 1) {
    return invalid_argument(
        fmt::format("a recorded episode has one prompt, this one {}", info.tasks.size()));
  }
  if (info.length <= 0) return invalid_argument("an episode without frames is not saved");
  RawNumbers out{next_index + ahead, frames + frames_ahead, 0};
  if (const auto known = task_indices.find(info.tasks.front()); known != task_indices.end()) {
    out.task_index = known->second;
    return out;
  }
  auto at = std::ranges::find(new_tasks, info.tasks.front());
  if (at == new_tasks.end()) at = new_tasks.insert(new_tasks.end(), info.tasks.front());
  out.task_index = static_cast<std::int64_t>(tasks.size()) + (at - new_tasks.begin());
  return out;
}

// Part 0 is the table, with the pictures inside it; part k the k-th camera of kind video.
Status RawWriter::Impl::prepare(const Episode& episode, std::size_t part, Prepared& out,
                                const std::filesystem::path& base, std::stop_token stop,
                                Findings& found) const {
  const std::string place = fmt::format("episode {}", out.numbers.episode_index);
  if (part == 0) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        out.columns, lerobot_internal::write_raw_table(layout, episode, out.numbers, base, found),
        place);
    for (const Feature* feature : layout.schema.of_kind(FeatureKind::image)) {
      if (!episode.has_camera(feature->name)) continue;
      ROPEWALK_ASSIGN_OR_RETURN_CTX(
          out.columns[feature->name],
          lerobot_internal::inline_camera_statistics(episode, feature->name, stop), place);
    }
    return ok_status();
  }
  const std::string& camera = out.cameras[part - 1];
  ROPEWALK_ASSIGN_OR_RETURN_CTX(RawClip clip,
                                lerobot_internal::write_raw_clip(
                                    layout, episode, camera, out.numbers.episode_index, base, stop),
                                place);
  if (clip.padded_to_even) {
    found.add({.code = "padded_to_even",
               .severity = Severity::info,
               .episode = out.numbers.episode_index,
               .feature = camera,
               .decision = "the last row or column of pixels was repeated"});
  }
  out.clips.at(camera) = std::move(clip.statistics);
  return ok_status();
}

Status RawWriter::Impl::append_window(const std::vector<const Episode*>& episodes,
                                      const RunContext& context) {
  std::vector<Prepared> prepared(episodes.size());
  std::vector<std::string> new_tasks;
  struct Part {
    std::size_t episode;
    std::size_t part;
  };
  std::vector<Part> parts;
  std::int64_t frames_ahead = 0;
  for (std::size_t i = 0; i < episodes.size(); ++i) {
    const Episode& episode = *episodes[i];
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        prepared[i].numbers,
        numbers_of(episode, static_cast<std::int64_t>(i), frames_ahead, new_tasks),
        fmt::format("episode {}", episode.info().index));
    prepared[i].length = episode.info().length;
    prepared[i].task = episode.info().tasks.front();
    prepared[i].row = episode.info().row;
    frames_ahead += prepared[i].length;
    for (const lerobot_internal::OutputFeature* video : layout.table.videos()) {
      if (episode.has_camera(video->source)) {
        prepared[i].cameras.push_back(video->source);
        prepared[i].clips[video->source];
      } else if (!layout.options.faithful) {
        return data_loss(
            fmt::format("episode {}: camera {} is missing", episode.info().index, video->source));
      }
    }
    // Clips first, since they take longest.
    for (std::size_t part = prepared[i].cameras.size() + 1; part-- > 0;) parts.push_back({i, part});
  }
  const auto base_of = [&](const Prepared& one) {
    if (!layout.options.durable) return root;
    const std::string take = one.row.get_string("take_id").value_or("");
    return staging /
           (take.empty() ? fmt::format("episode-{:06}", one.numbers.episode_index) : take);
  };
  if (layout.options.durable) {
    for (const Prepared& one : prepared) ROPEWALK_RETURN_IF_ERROR(remove_tree(base_of(one)));
  }
  std::vector<Findings> found(parts.size());
  Status status = parallel_for(
      context.pool, static_cast<std::int64_t>(parts.size()), [&](std::int64_t at) -> Status {
        ROPEWALK_RETURN_IF_ERROR(context.check_stop());
        const Part& part = parts[static_cast<std::size_t>(at)];
        return prepare(*episodes[part.episode], part.part, prepared[part.episode],
                       base_of(prepared[part.episode]), context.stop,
                       found[static_cast<std::size_t>(at)]);
      });
  for (const Findings& some : found) findings.append(some);
  for (std::size_t i = 0; status.ok() && i < episodes.size(); ++i) {
    complete(*episodes[i], prepared[i]);
    status = commit(prepared[i], base_of(prepared[i]))
                 .with_context(fmt::format("episode {}", prepared[i].numbers.episode_index));
  }
  if (layout.options.durable) {
    for (const Prepared& one : prepared) {
      const Status removed = remove_tree(base_of(one));
      if (status.ok()) status = removed;
    }
  }
  return status;
}

// Puts numbers and the names of the files that are really there into the row.
void RawWriter::Impl::complete(const Episode& episode, Prepared& prepared) const {
  prepared.row.set("episode_index", prepared.numbers.episode_index);
  prepared.row.set("tasks", Json(Json::Array{Json(prepared.task)}));
  prepared.row.set("length", prepared.length);
  if (!layout.table.videos().empty()) {
    std::vector<std::string> keys = prepared.cameras;
    std::ranges::sort(keys);
    Json list = Json::array();
    for (const std::string& key : keys) list.push_back(key);
    prepared.row.set("video_keys", std::move(list));
    prepared.row.set("total_videos", static_cast<std::int64_t>(keys.size()));
  }
  const EpisodeInfo& info = episode.info();
  if (!info.quality.empty()) {
    prepared.row.set("quality", info.quality);
    prepared.row.set("quality_issues", info.issues.is_null() ? Json::array() : info.issues);
  }
}

Status RawWriter::Impl::commit(Prepared& prepared, const std::filesystem::path& base) {
  StatisticsMap statistics = std::move(prepared.columns);
  for (auto& [camera, clip] : prepared.clips) statistics[camera] = std::move(clip);
  Json stats = Json::object();
  stats.set("episode_index", prepared.numbers.episode_index);
  stats.set("stats", statistics_to_json(statistics));
  const std::string stats_line = stats.dump_spaced() + "\n";
  const std::string row_line = finished_row(prepared.row, nullptr).dump_spaced() + "\n";
  if (prepared.numbers.task_index == static_cast<std::int64_t>(tasks.size())) {
    task_indices.emplace(prepared.task, prepared.numbers.task_index);
    tasks.push_back(prepared.task);
  }
  if (started_at.empty() && rows == 0) {
    started_at = prepared.row.get_string("started_at").value_or("");
  }
  if (layout.options.durable) {
    ROPEWALK_RETURN_IF_ERROR(commit_durably(prepared, row_line, stats_line, base));
  } else {
    ROPEWALK_RETURN_IF_ERROR(stats_sink->append(as_bytes(stats_line)));
    ROPEWALK_RETURN_IF_ERROR(rows_sink->append(as_bytes(row_line)));
  }
  // A vector of another length than declared takes no part in the statistics of the whole.
  std::erase_if(statistics, [&](const auto& entry) {
    const Feature* feature = layout.schema.find(entry.first);
    return feature != nullptr && !feature->is_camera() && entry.second.shape != feature->shape;
  });
  pool.add(statistics);
  ++rows;
  next_index = prepared.numbers.episode_index + 1;
  frames += prepared.length;
  videos += static_cast<std::int64_t>(prepared.cameras.size());
  if (!layout.options.durable) return ok_status();
  // Derived files; recovery rebuilds them when they disagree.
  ROPEWALK_RETURN_IF_ERROR(
      replace_file(meta("info.json"), as_bytes(info_document().dump(2) + "\n")));
  return replace_file(meta("stats.json"), as_bytes(stats_document().dump(2) + "\n"));
}

// Spec: review-export-upload 3.5, steps 3 to 7.
Status RawWriter::Impl::commit_durably(const Prepared& prepared, const std::string& row,
                                       const std::string& stats,
                                       const std::filesystem::path& base) {
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock changing, lock_ledger(root));
  ROPEWALK_RETURN_IF_ERROR(replace_file(meta("tasks.jsonl"), as_bytes(tasks_text())));
  std::vector<std::string> files;
  for (const std::string& camera : prepared.cameras) {
    files.push_back(lerobot_internal::raw_video_path(camera, prepared.numbers.episode_index));
  }
  files.push_back(lerobot_internal::raw_table_path(prepared.numbers.episode_index));
  for (const std::string& file : files) {
    const std::filesystem::path target = root / file;
    ROPEWALK_RETURN_IF_ERROR(make_durable_directories(target.parent_path()));
    ROPEWALK_RETURN_IF_ERROR(rename_path(base / file, target));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent_path()));
  }
  ROPEWALK_RETURN_IF_ERROR(append_file_durably(meta("episodes_stats.jsonl"), as_bytes(stats)));
  ROPEWALK_RETURN_IF_ERROR(append_file_durably(meta("episodes.jsonl"), as_bytes(row)));
  // Others may have appended to the ledger since.
  ROPEWALK_ASSIGN_OR_RETURN(
      const LedgerScan scan,
      scan_ledger(meta("ledger.jsonl"), ledger_end, {}, findings, [&](LedgerLine&& line) {
        ledger_rev = line.rev;
        ledger_at = std::max(ledger_at, line.at);
      }));
  ROPEWALK_ASSIGN_OR_RETURN(const Json saved, parse_json(row));
  const std::string line = to_json(saved_line(saved)).dump() + "\n";
  ROPEWALK_RETURN_IF_ERROR(append_file_durably(meta("ledger.jsonl"), as_bytes(line)));
  ledger_end = scan.valid_end + line.size();
  return ok_status();
}

// Rewrites meta/episodes.jsonl with what the judge said, and writes the ledger that goes with it.
Status RawWriter::Impl::write_rows_and_ledger(const std::vector<RawQuality>& qualities) {
  const std::filesystem::path spool = meta("episodes.jsonl");
  const std::filesystem::path fresh = meta(".episodes.jsonl.new");
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(spool));
  ROPEWALK_ASSIGN_OR_RETURN(const auto rows_out, create_sink(fresh));
  ROPEWALK_ASSIGN_OR_RETURN(const auto ledger_out, create_sink(meta("ledger.jsonl")));
  Sha256 digest;
  std::size_t at = 0;
  const auto put_row = [&](std::string_view text, lerobot::LinePlace) -> Status {
    ROPEWALK_ASSIGN_OR_RETURN(const Json found, parse_json(text));
    const Json row = finished_row(found, at < qualities.size() ? &qualities[at] : nullptr);
    ++at;
    const std::string line = row.dump_spaced() + "\n";
    digest.update(as_bytes(line));
    ROPEWALK_RETURN_IF_ERROR(rows_out->append(as_bytes(line)));
    const std::string saved = to_json(saved_line(row)).dump() + "\n";
    return ledger_out->append(as_bytes(saved));
  };
  ROPEWALK_RETURN_IF_ERROR(lerobot::for_each_line(*source, {}, nullptr, put_row));
  ROPEWALK_RETURN_IF_ERROR(rows_out->close());
  ROPEWALK_RETURN_IF_ERROR(ledger_out->close());
  ROPEWALK_RETURN_IF_ERROR(rename_path(fresh, spool));
  Json state = Json::object();
  state.set("rev", ledger_rev);
  state.set("size", rows_out->size());
  state.set("sha256", digest.finish_hex());
  state.set("total_frames", frames);
  return write_new_file(meta("ledger_state.json"), as_bytes(state.dump() + "\n"));
}

Status RawWriter::Impl::finish_bulk(const RunContext& context, const RawJudge& judge) {
  if (rows_sink == nullptr) return failed_precondition("finish() was called before");
  ROPEWALK_RETURN_IF_ERROR(rows_sink->close());
  ROPEWALK_RETURN_IF_ERROR(stats_sink->close());
  rows_sink.reset();
  ROPEWALK_RETURN_IF_ERROR(write_new_file(meta("tasks.jsonl"), as_bytes(tasks_text())));
  ROPEWALK_RETURN_IF_ERROR(
      write_new_file(meta("info.json"), as_bytes(info_document().dump(2) + "\n")));
  ROPEWALK_RETURN_IF_ERROR(
      write_new_file(meta("stats.json"), as_bytes(stats_document().dump(2) + "\n")));
  std::vector<RawQuality> qualities;
  if (judge) {
    ROPEWALK_ASSIGN_OR_RETURN(qualities, judge(root));
    if (static_cast<std::int64_t>(qualities.size()) != rows) {
      return internal(fmt::format("{} episodes were judged of {}", qualities.size(), rows));
    }
  }
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  ROPEWALK_RETURN_IF_ERROR(write_rows_and_ledger(qualities));
  return sync_filesystem(root);
}

RawWriter::RawWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RawWriter::RawWriter(RawWriter&&) noexcept = default;
RawWriter& RawWriter::operator=(RawWriter&&) noexcept = default;
RawWriter::~RawWriter() = default;

Result<RawWriter> RawWriter::create(const std::filesystem::path& root, const Schema& schema,
                                    RawWriterOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->root = root.has_filename() ? root : root.parent_path();  // without a trailing slash
  impl->layout = {schema, {}, std::move(options)};
  ROPEWALK_RETURN_IF_ERROR(impl->open().with_context(root.string()));
  return RawWriter(std::move(impl));
}

Status RawWriter::append(const Episode& episode, const RunContext& context) {
  return impl_->append_window({&episode}, context);
}

Status RawWriter::append(const EpisodeSource& source, const RunContext& context) {
  const std::int64_t total = source.size();
  const std::int64_t threads = context.pool != nullptr ? context.pool->size() : 1;
  // A recorder commits one episode at a time; in bulk every thread has two at hand.
  const std::int64_t window = impl_->layout.options.durable ? 1 : 2 * threads;
  Progress progress{.phase = "writing", .total = total};
  context.report(progress);
  for (std::int64_t begin = 0; begin < total; begin += window) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    std::vector<std::unique_ptr<Episode>> opened;
    std::vector<const Episode*> episodes;
    for (std::int64_t i = begin; i < std::min(total, begin + window); ++i) {
      ROPEWALK_ASSIGN_OR_RETURN(auto episode, source.open(i));
      opened.push_back(std::move(episode));
      episodes.push_back(opened.back().get());
    }
    ROPEWALK_RETURN_IF_ERROR(impl_->append_window(episodes, context));
    progress.done = begin + static_cast<std::int64_t>(episodes.size());
    progress.item = fmt::format("episode {}", impl_->next_index - 1);
    context.report(progress);
  }
  return ok_status();
}

Status RawWriter::finish(const RunContext& context, const RawJudge& judge) {
  if (!impl_->layout.options.durable) return impl_->finish_bulk(context, judge);
  if (judge) return invalid_argument("a durable writer gets the quality with each episode");
  return ok_status();
}

std::int64_t RawWriter::episodes() const { return impl_->rows; }
std::int64_t RawWriter::frames() const { return impl_->frames; }
const Findings& RawWriter::findings() const { return impl_->findings; }

}  // namespace ropewalk
