#pragma once
// EpisodeRows: the rows of meta/episodes and meta/episodes.jsonl of a v3.0 dataset.
// All files of meta/episodes share one schema, which is known only after the last row: so the JSON
// rows go to episodes.jsonl and the numbers to a spool file as they come, and a second pass over
// both writes the Parquet files.
// Spec: review-export-upload 7.2; lerobot-formats 3.4.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/dataset/lerobot/sink_files_internal.h"
#include "ropewalk/dataset/lerobot/sink_v3_json_columns_internal.h"
#include "ropewalk/dataset/lerobot/video_shard_internal.h"
#include "ropewalk/episode/numbering.h"
#include "ropewalk/episode/statistics.h"

namespace ropewalk::lerobot_internal {

/// A feature with stats/* columns.
struct StatisticsColumn {
  std::string feature;
  std::size_t width = 1;  ///< elements; 3 for cameras
  bool camera = false;    ///< nested [3, 1, 1]
};

/// Numbers of one row. `videos` has one entry per video feature, null where the camera is missing.
struct EpisodeNumbers {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  FileNumber data_file;
  std::int64_t index_begin = 0;
  std::vector<std::optional<ClipPlace>> videos;
};

/// Not thread-safe.
class EpisodeRows {
 public:
  static Result<EpisodeRows> create(std::filesystem::path root);

  /// Call once before add().
  void begin(std::vector<std::string> videos, std::vector<StatisticsColumn> statistics,
             std::int64_t fps);
  /// `row` is the source's row as numbered. Features absent from `statistics` become nulls.
  Status add(const EpisodeNumbers& numbers, const Json& row, const StatisticsMap& statistics);
  /// Closes episodes.jsonl and, when there are rows, writes meta/episodes in files of at most
  /// `file_bytes`. Removes the spool.
  Status finish(std::uint64_t file_bytes, std::int64_t chunks_size, const RunContext& context,
                Written& written);

 private:
  struct Block;
  EpisodeRows(std::filesystem::path root, std::unique_ptr<HashingSink> lines,
              std::unique_ptr<Sink> spool)
      : root_(std::move(root)), lines_(std::move(lines)), spool_(std::move(spool)) {}
  std::size_t integers_per_row() const;
  std::size_t doubles_per_row() const;
  Status write_files(std::uint64_t file_bytes, std::int64_t chunks_size, const RunContext& context,
                     Written& written);
  arrow::FieldVector fields() const;
  Result<std::shared_ptr<arrow::RecordBatch>> build(
      const Block& block, FileNumber number, const std::shared_ptr<arrow::Schema>& schema) const;

  std::filesystem::path root_;
  std::unique_ptr<HashingSink> lines_;
  std::unique_ptr<Sink> spool_;
  std::vector<std::string> videos_;
  std::vector<StatisticsColumn> statistics_;
  std::int64_t fps_ = 1;
  std::int64_t rows_ = 0;
  JsonColumns columns_;
};

}  // namespace ropewalk::lerobot_internal
