#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/dataset/lerobot/episodes_internal.h"

namespace ropewalk::lerobot {
namespace {

/// "20, 37-39", at most eight runs.
std::string runs_text(const std::vector<std::int64_t>& sorted) {
  std::string out;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t end = i + 1;
    while (end < sorted.size() && sorted[end] == sorted[end - 1] + 1) ++end;
    if (shown == 8) return out + ", ...";
    if (shown++ > 0) out += ", ";
    out += end - i == 1 ? fmt::format("{}", sorted[i])
                        : fmt::format("{}-{}", sorted[i], sorted[end - 1]);
    i = end;
  }
  return out;
}

std::vector<std::string> task_texts(const Json& value, const TaskList& tasks) {
  std::vector<std::string> out;
  const auto add = [&](const Json& item) {
    if (const std::string* text = item.as_string()) {
      out.push_back(*text);
    } else if (const auto index = item.as_int64()) {
      // Some writers put numbers of the task list here.
      if (const std::string* known = tasks.find(*index)) out.push_back(*known);
    }
  };
  if (const Json::Array* list = value.as_array()) {
    for (const Json& item : *list) add(item);
  } else {
    add(value);
  }
  return out;
}

}  // namespace

void note_numbering(const std::vector<std::int64_t>& indices, const std::string& file,
                    FindingLog& log) {
  std::vector<std::int64_t> sorted = indices;
  const bool ordered = std::ranges::is_sorted(sorted);
  if (!ordered) {
    std::ranges::sort(sorted);
    log.add("episode_order", {.file = file});
  }
  std::vector<std::int64_t> gaps;
  std::int64_t missing = 0;
  std::int64_t next = 0;
  for (const std::int64_t index : sorted) {
    if (index > next) {
      missing += index - next;
      for (std::int64_t gap = next; gap < index && gaps.size() < 1000; ++gap) gaps.push_back(gap);
    }
    next = index + 1;
  }
  if (missing > 0) {
    log.add("episode_index_gap",
            {.file = file, .count = missing, .found = "no " + runs_text(gaps)});
  }
}

void read_row_members(EpisodeInfo& info, const TaskList& tasks) {
  const auto text = [&](std::string_view key) {
    const Json* value = info.row.find(key);
    const std::string* found = value != nullptr ? value->as_string() : nullptr;
    return found != nullptr ? *found : std::string();
  };
  if (const Json* listed = info.row.find("tasks")) info.tasks = task_texts(*listed, tasks);
  info.quality = text("quality");
  if (const Json* issues = info.row.find("quality_issues")) info.issues = *issues;
  info.verdict = text("qc_verdict");
  info.note = text("qc_note");
}

Result<EpisodesV2> EpisodesV2::read(const std::filesystem::path& root, const Limits& limits,
                                    FindingLog& log) {
  auto source = open_source(root / kFile);
  if (!source.ok()) {
    if (source.status().code() == StatusCode::not_found) {
      return not_found(
          fmt::format("{}: {} is not there: the list of episodes", root.string(), kFile));
    }
    return std::move(source).status();
  }
  return parse(std::shared_ptr<const Source>(std::move(*source)), limits, log);
}

Result<EpisodesV2> EpisodesV2::parse(std::shared_ptr<const Source> file, const Limits& limits,
                                     FindingLog& log) {
  EpisodesV2 out;
  out.file_ = std::move(file);
  const std::string name(kFile);
  bool byte_order_mark = false;
  std::int64_t number = 0;
  const auto body = [&](std::string_view line, LinePlace place) -> Status {
    ++number;
    if (line.find_first_not_of(" \t") == std::string_view::npos || line == "null") {
      log.add("blank_line", {.file = name});
      return ok_status();
    }
    if (out.rows_.size() >= limits.max_episodes) {
      return resource_exhausted(
          fmt::format("{}: more than {} episodes", name, limits.max_episodes));
    }
    RowScan scan = scan_row(line);
    std::string why = "no episode_index";
    if (!scan.complete || scan.repeated > 0) {
      const auto row = parse_json(line, limits);
      if (row.ok()) {
        scan.complete = row->is_object();
        scan.episode_index = row->get_int64("episode_index");
        scan.length = row->get_int64("length");
      } else {
        scan.complete = false;
        why = row.status().message();
      }
    }
    if (!scan.complete || !scan.episode_index || *scan.episode_index < 0 ||
        *scan.episode_index > INT32_MAX) {
      log.add(place.terminated ? "malformed_line" : "torn_line",
              {.file = name, .found = fmt::format("line {}: {}", number, why)});
      return ok_status();
    }
    out.rows_.push_back({*scan.episode_index, scan.length && *scan.length >= 0 ? *scan.length : -1,
                         place, crc32c(0, as_bytes(line))});
    return ok_status();
  };
  ROPEWALK_RETURN_IF_ERROR(for_each_line(*out.file_, limits, &byte_order_mark, body));
  if (byte_order_mark) log.add("byte_order_mark", {.file = name});
  ROPEWALK_RETURN_IF_ERROR(out.drop_duplicates(limits, log));
  std::vector<std::int64_t> indices;
  indices.reserve(out.rows_.size());
  for (const Row& row : out.rows_) indices.push_back(row.index);
  note_numbering(indices, name, log);
  return out;
}

Result<std::string> EpisodesV2::text_of(const Row& row) const {
  ROPEWALK_ASSIGN_OR_RETURN(std::string line, read_line(*file_, row.line));
  if (crc32c(0, as_bytes(line)) != row.checksum) {
    return failed_precondition(
               fmt::format(
                   "{}: the row of episode {} at byte {} was written over since the dataset "
                   "was opened; run it again",
                   kFile, row.index, row.line.offset))
        .with_reason("SOURCE_CHANGED");
  }
  return line;
}

Status EpisodesV2::drop_duplicates(const Limits& limits, FindingLog& log) {
  std::unordered_map<std::int64_t, std::size_t> seen;
  std::vector<bool> dropped(rows_.size(), false);
  bool any = false;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const auto [at, added] = seen.try_emplace(rows_[i].index, i);
    if (added) continue;
    const Row& before = rows_[at->second];
    ROPEWALK_ASSIGN_OR_RETURN(const std::string left, text_of(before));
    ROPEWALK_ASSIGN_OR_RETURN(const std::string right, text_of(rows_[i]));
    if (left != right) {
      const auto a = parse_json(left, limits);
      const auto b = parse_json(right, limits);
      if (!a.ok() || !b.ok() || a->dump_canonical() != b->dump_canonical()) {
        return log.fatal(
            "duplicate_episode_conflict",
            {.file = std::string(kFile),
             .episode = rows_[i].index,
             .declared = fmt::format("length {}", before.length),
             .found = fmt::format("length {}", rows_[i].length)},
            data_loss(fmt::format("{}: episode {} has two rows that differ; remove one of them",
                                  kFile, rows_[i].index)));
      }
    }
    log.add("duplicate_episode", {.file = std::string(kFile), .episode = rows_[i].index});
    dropped[i] = true;  // the rows are equal: the first place is kept
    any = true;
  }
  if (!any) return ok_status();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    if (!dropped[i]) rows_[kept++] = rows_[i];
  }
  rows_.resize(kept);
  return ok_status();
}

Result<EpisodeInfo> EpisodesV2::info(std::size_t row, const TaskList& tasks,
                                     const Limits& limits) const {
  EpisodeInfo out;
  out.index = rows_[row].index;
  out.length = rows_[row].length;
  ROPEWALK_ASSIGN_OR_RETURN(const std::string line, text_of(rows_[row]));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(out.row, parse_json(line, limits),
                                fmt::format("{}: row at byte {}", kFile, rows_[row].line.offset));
  if (!out.row.is_object()) {
    return data_loss(
        fmt::format("{}: row at byte {}: expected an object", kFile, rows_[row].line.offset));
  }
  read_row_members(out, tasks);
  return out;
}

Status EpisodesV2::note_oddities(const Limits& limits, FindingLog& log) const {
  for (const Row& row : rows_) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::string line, text_of(row));
    JsonNotes notes;
    const auto parsed = parse_json(line, limits, &notes);
    if (!parsed.ok()) {
      log.add("malformed_line", {.file = std::string(kFile),
                                 .episode = row.index,
                                 .found = std::string(parsed.status().message()),
                                 .decision = "only number and length of the episode are read"});
      continue;
    }
    if (notes.non_finite_literals > 0) {
      log.add(
          "non_finite_literal",
          {.file = std::string(kFile), .episode = row.index, .count = notes.non_finite_literals});
    }
    for (const std::string& key : notes.duplicate_keys) {
      log.add("duplicate_key", {.file = std::string(kFile), .episode = row.index, .declared = key});
    }
    if (row.length < 0) {
      log.add("length_missing", {.file = std::string(kFile), .episode = row.index});
    }
  }
  return ok_status();
}

Result<EpisodeStatisticsV2> EpisodeStatisticsV2::read(const std::filesystem::path& root,
                                                      const Limits& limits) {
  auto source = open_source(root / kFile);
  if (!source.ok()) {
    if (source.status().code() == StatusCode::not_found) return EpisodeStatisticsV2();
    return std::move(source).status();
  }
  return parse(std::shared_ptr<const Source>(std::move(*source)), limits);
}

Result<EpisodeStatisticsV2> EpisodeStatisticsV2::parse(std::shared_ptr<const Source> file,
                                                       const Limits& limits) {
  EpisodeStatisticsV2 out;
  out.file_ = std::move(file);
  const auto body = [&](std::string_view line, LinePlace place) -> Status {
    RowScan scan = scan_row(line);
    if (!scan.complete) {
      const auto row = parse_json(line, limits);
      if (row.ok()) scan.episode_index = row->get_int64("episode_index");
    }
    if (scan.episode_index) out.lines_.emplace_back(*scan.episode_index, place);
    return ok_status();
  };
  ROPEWALK_RETURN_IF_ERROR(for_each_line(*out.file_, limits, nullptr, body));
  std::ranges::stable_sort(out.lines_, {}, [](const auto& entry) { return entry.first; });
  return out;
}

Json EpisodeStatisticsV2::find(std::int64_t episode_index, const Limits& limits) const {
  // Of equal numbers the last line counts, as for upstream.
  const auto at = std::ranges::upper_bound(lines_, episode_index, {},
                                           [](const auto& entry) { return entry.first; });
  if (at == lines_.begin() || std::prev(at)->first != episode_index) return {};
  const auto line = read_line(*file_, std::prev(at)->second);
  if (!line.ok()) return {};
  auto row = parse_json(*line, limits);
  if (!row.ok()) return {};
  const Json* statistics = row->find("stats");
  return statistics != nullptr ? *statistics : Json();
}

}  // namespace ropewalk::lerobot
