#pragma once
// The task list: texts by the numbers they are stored under.
// Spec: lerobot-formats 2.5, 3.3, hard input H07.
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ropewalk/base/io/file.h"
#include "ropewalk/dataset/lerobot/finding_rules_internal.h"

namespace ropewalk::lerobot {

class TaskList {
 public:
  /// Reads meta/tasks.jsonl; an absent file is a finding. Errors: those of reading.
  static Result<TaskList> read_v2(const std::filesystem::path& root, const Limits& limits,
                                  FindingLog& log);
  /// The parser behind it.
  static Result<TaskList> parse_v2(const Source& source, const Limits& limits, FindingLog& log);
  /// Reads meta/tasks.parquet: pandas index named `task` or not, or plain columns; meta/tasks.jsonl
  /// where only that is there.
  static Result<TaskList> read_v3(const std::filesystem::path& root, const Limits& limits,
                                  FindingLog& log);

  /// Returns the text, or null when no task has that number.
  const std::string* find(std::int64_t index) const;
  /// Returns the first number of a text, or nullopt.
  std::optional<std::int64_t> index_of(std::string_view text) const;
  const std::vector<std::pair<std::int64_t, std::string>>& entries() const { return entries_; }

 private:
  void add(std::int64_t index, std::string text, const std::string& file, FindingLog& log);
  void note(const std::string& file, FindingLog& log) const;

  std::vector<std::pair<std::int64_t, std::string>> entries_;
  std::unordered_map<std::int64_t, std::size_t> by_index_;
};

}  // namespace ropewalk::lerobot
