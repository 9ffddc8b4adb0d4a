#pragma once
// Reads back what SideFiles writes: the files under meta/ of an HDF5 or MCAP export, ours or EVA's.
// (A LeRobot dataset as found in the field needs the tolerant reader of dataset/lerobot.)
// Spec: review-export-upload 2.2, 2.4, 7.0.
#include <filesystem>
#include <string>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk {

struct SideFileContents {
  std::string codebase_version;
  std::string dataset_format;  ///< empty when absent
  Schema schema;               ///< cameras are of kind video: frames are served, no picture files
  std::vector<std::string> tasks;  ///< by task_index
  Json info;                       ///< info.json as it stands
  Json statistics;                 ///< stats.json, or null when absent
  Findings findings;

  std::int64_t size() const { return static_cast<std::int64_t>(rows.size()); }
  /// Parses the row of an episode, which was seen to be valid.
  EpisodeInfo episode(std::int64_t i) const;

  /// meta/episodes.jsonl and its rows in it: a tree per row would be many times as large.
  struct Row {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  std::string row_text;
  std::vector<Row> rows;
};

/// Reads `root`/meta. Episode rows must be numbered 0, 1, 2 … in order.
/// Errors: not_found naming the file; data_loss naming file, line, expected and found;
/// resource_exhausted (Limits).
Result<SideFileContents> read_side_files(const std::filesystem::path& root,
                                         const Limits& limits = {});

}  // namespace ropewalk
