#include <algorithm>
#include <unordered_set>

#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/json_lines_internal.h"
#include "ropewalk/dataset/lerobot/layout_internal.h"
#include "ropewalk/dataset/lerobot/tasks_internal.h"
#include "ropewalk/dataset/lerobot/values_internal.h"
#include "ropewalk/format/parquet/reader.h"

namespace ropewalk::lerobot {
namespace {

constexpr std::string_view kLinesFile = "meta/tasks.jsonl";
constexpr std::string_view kTableFile = "meta/tasks.parquet";

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t") == std::string_view::npos;
}

}  // namespace

void TaskList::add(std::int64_t index, std::string text, const std::string& file, FindingLog& log) {
  const auto [at, added] = by_index_.try_emplace(index, entries_.size());
  if (added) {
    entries_.emplace_back(index, std::move(text));
    return;
  }
  std::string& known = entries_[at->second].second;
  if (known != text) {
    log.add(
        "task_index_conflict",
        {.file = file, .declared = fmt::format("task_index {}: {}", index, known), .found = text});
    known = std::move(text);
  }
}

void TaskList::note(const std::string& file, FindingLog& log) const {
  std::unordered_set<std::string_view> texts;
  bool dense = true;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].first != static_cast<std::int64_t>(i)) dense = false;
    if (!texts.insert(entries_[i].second).second) {
      log.add("task_duplicate", {.file = file, .found = entries_[i].second});
    }
  }
  if (!dense) {
    std::string numbers;
    for (std::size_t i = 0; i < entries_.size() && i < 8; ++i) {
      numbers += fmt::format("{}{}", i > 0 ? ", " : "", entries_[i].first);
    }
    if (entries_.size() > 8) numbers += ", ...";
    log.add("tasks_not_dense", {.file = file,
                                .declared = fmt::format("{} tasks", entries_.size()),
                                .found = "task_index " + numbers});
  }
}

const std::string* TaskList::find(std::int64_t index) const {
  const auto at = by_index_.find(index);
  return at == by_index_.end() ? nullptr : &entries_[at->second].second;
}

std::optional<std::int64_t> TaskList::index_of(std::string_view text) const {
  for (const auto& [index, known] : entries_) {
    if (known == text) return index;
  }
  return std::nullopt;
}

Result<TaskList> TaskList::parse_v2(const Source& source, const Limits& limits, FindingLog& log) {
  TaskList out;
  const std::string file(kLinesFile);
  bool byte_order_mark = false;
  std::int64_t number = 0;
  const auto body = [&](std::string_view line, LinePlace place) -> Status {
    ++number;
    if (is_blank(line)) {
      log.add("blank_line", {.file = file});
      return ok_status();
    }
    JsonNotes notes;
    auto row = parse_json(line, limits, &notes);
    const auto index = row.ok() ? row->get_int64("task_index") : std::nullopt;
    auto text = row.ok() ? row->get_string("task") : std::nullopt;
    if (!index || !text) {
      log.add(
          place.terminated ? "malformed_line" : "torn_line",
          {.file = file,
           .found = fmt::format("line {}: {}", number,
                                row.ok() ? "no task_index or no task" : row.status().message())});
      return ok_status();
    }
    out.add(*index, std::move(*text), file, log);
    return ok_status();
  };
  ROPEWALK_RETURN_IF_ERROR(for_each_line(source, limits, &byte_order_mark, body));
  if (byte_order_mark) log.add("byte_order_mark", {.file = file});
  out.note(file, log);
  return out;
}

Result<TaskList> TaskList::read_v2(const std::filesystem::path& root, const Limits& limits,
                                   FindingLog& log) {
  auto source = open_source(root / kLinesFile);
  if (!source.ok()) {
    if (source.status().code() != StatusCode::not_found) return std::move(source).status();
    log.add("tasks_missing", {.file = std::string(kLinesFile)});
    return TaskList();
  }
  return parse_v2(**source, limits, log);
}

Result<TaskList> TaskList::read_v3(const std::filesystem::path& root, const Limits& limits,
                                   FindingLog& log) {
  const std::string file(kTableFile);
  auto reader = ParquetReader::open(root / kTableFile, limits);
  if (!reader.ok()) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto lines, file_info(root / kLinesFile));
    if (lines) return read_v2(root, limits, log);
    log.add("tasks_missing",
            {.file = file,
             .found = reader.status().code() == StatusCode::not_found
                          ? ""
                          : without_root(std::string(reader.status().message()), root)});
    return TaskList();
  }
  TaskList out;
  const std::string text_column = (*reader)->has_column("task") ? "task" : "__index_level_0__";
  if (!(*reader)->has_column(text_column) || !(*reader)->has_column("task_index")) {
    log.add("tasks_missing",
            {.file = file,
             .found = "columns " + fmt::format("{}", fmt::join((*reader)->columns(), ", "))});
    return out;
  }
  if (text_column != "task") log.add("tasks_index_unnamed", {.file = file, .found = text_column});
  const std::vector<std::string> columns{"task_index", text_column};
  ROPEWALK_ASSIGN_OR_RETURN(const auto batch, (*reader)->read_all(columns));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto indices, int64_values(*batch->column(0)), file);
  for (std::int64_t row = 0; row < batch->num_rows(); ++row) {
    const auto text = string_value(*batch->column(1), row);
    if (!text || indices[static_cast<std::size_t>(row)] == kNoValue) {
      log.add("malformed_line", {.file = file,
                                 .row = row,
                                 .found = "no task_index or no text",
                                 .decision = "the row is left out"});
      continue;
    }
    out.add(indices[static_cast<std::size_t>(row)], std::string(*text), file, log);
  }
  out.note(file, log);
  return out;
}

}  // namespace ropewalk::lerobot
