#pragma once
// The files of one raw episode: its table and its clips, written below a directory of the caller's.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/dataset/lerobot/raw_writer.h"
#include "ropewalk/dataset/lerobot/table_schema_internal.h"
#include "ropewalk/episode/statistics.h"

namespace ropewalk::lerobot_internal {

/// What is fixed for all episodes of a writer.
struct RawLayout {
  Schema schema;      ///< of the source
  OutputTable table;  ///< how its features are stored
  RawWriterOptions options;
};

/// The numbers an episode gets.
struct RawNumbers {
  std::int64_t episode_index = 0;
  std::int64_t index_begin = 0;
  std::int64_t task_index = 0;
};

/// "data/chunk-000/episode_000012.parquet".
std::string raw_table_path(std::int64_t episode_index);
/// The number in "…/episode_000012.parquet", or -1.
std::int64_t raw_index_in_name(std::string_view path);
std::string raw_video_path(const std::string& camera, std::int64_t episode_index);

/// Writes the table below `base`, unsynced unless durable, and returns the statistics of its
/// columns. Errors: see RawWriter::append.
Result<StatisticsMap> write_raw_table(const RawLayout& layout, const Episode& episode,
                                      const RawNumbers& numbers, const std::filesystem::path& base,
                                      Findings& findings);

struct RawClip {
  std::int64_t frames = 0;
  FeatureStatistics statistics;  ///< of the sampled frames
  bool padded_to_even = false;
};

/// Encodes a camera below `base` and proves the file: packets, rate, first time.
Result<RawClip> write_raw_clip(const RawLayout& layout, const Episode& episode,
                               const std::string& camera, std::int64_t episode_index,
                               const std::filesystem::path& base, std::stop_token stop);

/// Statistics of a camera whose pictures lie in the table.
Result<FeatureStatistics> inline_camera_statistics(const Episode& episode,
                                                   const std::string& camera, std::stop_token stop);

}  // namespace ropewalk::lerobot_internal
