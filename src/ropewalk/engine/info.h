#pragma once
// info: what a path is and what it holds, from metadata alone.
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ropewalk/engine/open.h"

namespace ropewalk {

struct DatasetSummary {
  std::int64_t episodes = 0;
  std::int64_t frames = 0;
  std::map<std::string, std::int64_t> tasks;      ///< episodes by task text
  std::map<std::string, std::int64_t> qualities;  ///< episodes by "green", "red", "unchecked"
  std::map<std::string, std::int64_t> verdicts;   ///< episodes by "pass", "fail", "undecided"
  std::int64_t accepted = 0;                      ///< by the verdict rule
  std::int64_t rejected = 0;
  std::int64_t revision = 0;  ///< of the ledger; 0 without one
};

struct InfoReport {
  PathKind kind = PathKind::lerobot_v21;
  std::filesystem::path path;
  Schema schema;
  DatasetSummary summary;
  Findings findings;
  std::vector<InfoReport> halves;  ///< of a pair: accepted, then rejected
  Json marker;                     ///< of a half, or null
  Json to_json() const;
};

/// Errors: those of identify() and open_dataset().
Result<InfoReport> dataset_info(const std::filesystem::path& path);

}  // namespace ropewalk
