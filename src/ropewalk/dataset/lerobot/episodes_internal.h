#pragma once
// The rows of episodes: meta/episodes.jsonl of v2.x, meta/episodes/**.parquet of v3.0. Opening
// reads what is needed to number and find episodes; the rest of a row is read when it is asked for.
// Spec: lerobot-formats 2.5, 3.4, hard inputs H08, H18.
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/dataset/lerobot/info_internal.h"
#include "ropewalk/dataset/lerobot/json_lines_internal.h"
#include "ropewalk/dataset/lerobot/tasks_internal.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/format/parquet/reader.h"

namespace ropewalk::lerobot {

/// meta/episodes.jsonl. Memory: 48 bytes per row; texts stay in the file.
class EpisodesV2 {
 public:
  static constexpr std::string_view kFile = "meta/episodes.jsonl";

  static Result<EpisodesV2> read(const std::filesystem::path& root, const Limits& limits,
                                 FindingLog& log);
  /// The parser behind it.
  static Result<EpisodesV2> parse(std::shared_ptr<const Source> file, const Limits& limits,
                                  FindingLog& log);

  std::size_t size() const { return rows_.size(); }
  std::int64_t index(std::size_t row) const { return rows_[row].index; }
  /// -1 when the row does not say.
  std::int64_t length(std::size_t row) const { return rows_[row].length; }
  /// Parses the whole row. Errors: data_loss naming the line's place.
  Result<EpisodeInfo> info(std::size_t row, const TaskList& tasks, const Limits& limits) const;
  /// Parses all rows and reports what plain JSON does not have.
  Status note_oddities(const Limits& limits, FindingLog& log) const;

 private:
  struct Row {
    std::int64_t index = 0;
    std::int64_t length = -1;
    LinePlace line;
    std::uint32_t checksum = 0;  ///< of the line, so that what is read later is what was there
  };
  /// Reads the line again. Errors: those of Source; failed_precondition with reason SOURCE_CHANGED.
  Result<std::string> text_of(const Row& row) const;
  Status drop_duplicates(const Limits& limits, FindingLog& log);

  std::shared_ptr<const Source> file_;
  std::vector<Row> rows_;
};

/// Reports gaps and disorder among the numbers of episodes.
void note_numbering(const std::vector<std::int64_t>& indices, const std::string& file,
                    FindingLog& log);
/// Fills the members of EpisodeInfo that come out of its row.
void read_row_members(EpisodeInfo& info, const TaskList& tasks);

/// Statistics of v2.1, one line per episode, found on the first request.
class EpisodeStatisticsV2 {
 public:
  static constexpr std::string_view kFile = "meta/episodes_stats.jsonl";
  /// An absent file gives an empty list. Lines that cannot be read are left out.
  static Result<EpisodeStatisticsV2> read(const std::filesystem::path& root, const Limits& limits);
  static Result<EpisodeStatisticsV2> parse(std::shared_ptr<const Source> file,
                                           const Limits& limits);
  bool present() const { return file_ != nullptr; }
  std::size_t size() const { return lines_.size(); }
  /// Returns `stats` of the line, or null.
  Json find(std::int64_t episode_index, const Limits& limits) const;

 private:
  std::shared_ptr<const Source> file_;
  std::vector<std::pair<std::int64_t, LinePlace>> lines_;  // sorted by episode
};

/// meta/episodes of v3.0, kept as columns.
class EpisodesV3 {
 public:
  struct Camera {
    std::vector<std::int64_t> chunk, file;  ///< kNoValue where the episode lacks the camera
    std::vector<double> from_s, to_s;       ///< seconds in that file
  };

  /// `cameras` are the keys of video features as they stand in column names.
  static Result<EpisodesV3> read(const std::filesystem::path& root,
                                 const std::vector<std::string>& cameras, const Limits& limits,
                                 FindingLog& log);

  std::size_t size() const { return index_.size(); }
  std::int64_t index(std::size_t row) const { return index_[row]; }
  std::int64_t length(std::size_t row) const { return length_[row]; }
  std::int64_t data_chunk(std::size_t row) const { return data_chunk_[row]; }
  std::int64_t data_file(std::size_t row) const { return data_file_[row]; }
  std::int64_t from(std::size_t row) const { return from_[row]; }
  std::int64_t to(std::size_t row) const { return to_[row]; }
  const Camera* camera(std::string_view key) const;
  /// Reads the columns a user added, many rows ahead. Errors: those of reading.
  /// Only index, length and row are filled.
  Result<EpisodeInfo> info(std::size_t row) const;
  /// Reads the columns `stats/*` of one row as {feature: {statistic: value}}, or null.
  Json statistics(std::size_t row) const;
  bool has_statistics() const;

 private:
  struct Shard {
    std::string file;
    std::unique_ptr<ParquetReader> reader;
    std::size_t first_row = 0;
    std::size_t rows = 0;
    std::shared_ptr<arrow::Array> tasks;  // null when the column is absent
    std::vector<std::string> extra;       // columns beyond locators and statistics
    std::vector<std::string> statistics;
  };
  struct Place {
    std::uint32_t shard = 0;
    std::uint32_t row = 0;
  };
  Status read_shard(Shard shard, const std::vector<std::string>& cameras);
  Status drop_duplicates(FindingLog& log);
  void remove_row(std::size_t row);
  void note_columns(FindingLog& log) const;
  /// Rows of the added columns read at once, kept until others are asked for.
  struct Block {
    std::uint32_t shard = 0;
    RowRange rows;
    std::shared_ptr<arrow::RecordBatch> batch;
  };
  struct Recent {
    std::mutex mutex;
    std::shared_ptr<const Block> block;
  };
  Result<std::shared_ptr<const Block>> block_around(Place place) const;

  std::vector<Shard> shards_;
  std::vector<Place> places_;
  std::vector<std::int64_t> index_, length_, data_chunk_, data_file_, from_, to_;
  std::vector<std::string> camera_keys_;
  std::vector<Camera> cameras_;
  std::unique_ptr<Recent> recent_ = std::make_unique<Recent>();
};

}  // namespace ropewalk::lerobot
