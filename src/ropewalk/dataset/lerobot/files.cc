#include <arrow/array.h>
#include <arrow/record_batch.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/files_internal.h"
#include "ropewalk/dataset/lerobot/values_internal.h"

namespace ropewalk::lerobot {

Result<std::shared_ptr<const Clip>> open_clip(const std::filesystem::path& path,
                                              const Limits& limits) {
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path));
  ROPEWALK_ASSIGN_OR_RETURN(auto index, probe_mp4(*source, {.limits = limits}));
  auto clip = std::make_shared<Clip>();
  clip->index = std::make_shared<const Mp4Index>(std::move(index));
  clip->source = std::move(source);
  return std::shared_ptr<const Clip>(std::move(clip));
}

std::vector<RowRange> DataFile::rows_of(std::int64_t episode) const {
  std::vector<RowRange> out;
  for (const EpisodeRun& run : runs) {
    if (run.episode == episode) out.push_back(run.rows);
  }
  return out;
}

Result<std::shared_ptr<const DataFile>> open_data_file(const std::filesystem::path& path,
                                                       bool packed, const Limits& limits) {
  auto file = std::make_shared<DataFile>();
  ROPEWALK_ASSIGN_OR_RETURN(file->reader, ParquetReader::open(path, limits));
  if (!packed) return std::shared_ptr<const DataFile>(std::move(file));
  const std::vector<std::string> columns{"episode_index"};
  if (!file->reader->has_column(columns[0])) {
    return data_loss(
        fmt::format("{}: no column episode_index: whose rows are these?", path.string()));
  }
  for (const ParquetRowGroup& group : file->reader->row_groups()) {
    ROPEWALK_ASSIGN_OR_RETURN(
        const auto batch,
        file->reader->read({group.first_row, group.first_row + group.rows}, columns));
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto episodes, int64_values(*batch->column(0)),
                                  path.string() + ": episode_index");
    for (std::size_t i = 0; i < episodes.size(); ++i) {
      const std::int64_t row = group.first_row + static_cast<std::int64_t>(i);
      if (!file->runs.empty() && file->runs.back().episode == episodes[i]) {
        file->runs.back().rows.end = row + 1;
      } else {
        file->runs.push_back({episodes[i], {row, row + 1}});
      }
    }
  }
  return std::shared_ptr<const DataFile>(std::move(file));
}

}  // namespace ropewalk::lerobot
