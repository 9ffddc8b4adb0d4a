#pragma once
// The inside of LerobotSource, shared by opening, survey, episodes and checks.
#include <atomic>
#include <mutex>
#include <optional>
#include <unordered_map>

#include <arrow/type_fwd.h>

#include "ropewalk/dataset/lerobot/episodes_internal.h"
#include "ropewalk/dataset/lerobot/files_internal.h"
#include "ropewalk/dataset/lerobot/kept_rows_internal.h"
#include "ropewalk/dataset/lerobot/source.h"
#include "ropewalk/dataset/lerobot/values_internal.h"

namespace ropewalk {

namespace lerobot {

/// Rows of one episode in the data files of a v3.0 dataset, found by reading them.
struct DataPlace {
  std::string file;
  RowRange rows;
};

/// Everything a survey of v3.0 data files gives: by episode index, in global row order.
struct DataMap {
  struct File {
    std::string path;
    std::int64_t first_row = 0;  ///< in the dataset
    Status status;               ///< why it cannot be read
  };
  std::vector<File> files;
  std::unordered_map<std::int64_t, std::vector<DataPlace>> places;
  std::unordered_map<std::int64_t, std::int64_t> first_row;  ///< in the dataset, by episode
};

/// What reading columns had to repair.
struct ReadNotes {
  bool sorted = false;                  ///< rows were put in the order of frame_index
  std::int64_t timestamps_rebuilt = 0;  ///< rows
};

}  // namespace lerobot

struct LerobotSource::Impl {
  Impl(std::filesystem::path where, LerobotOptions given)
      : root(std::move(where)),
        name(root.string()),
        options(std::move(given)),
        log(options.strict),
        clips(options.index_cache_bytes, 128),
        tables(32ULL << 20, 32) {}

  std::filesystem::path root;
  std::string name;
  LerobotOptions options;
  lerobot::FindingLog log;
  lerobot::Info info;
  lerobot::TaskList tasks;
  std::optional<lerobot::EpisodesV2> v2;
  std::optional<lerobot::EpisodesV3> v3;
  mutable std::once_flag kept_once;
  mutable lerobot::KeptRows kept_rows;  ///< of v3.0, read on the first request

  // By position: the row of the metadata, and the length after repairs.
  std::vector<std::uint32_t> rows;
  std::vector<std::int64_t> lengths;
  /// By row of the metadata, when there was a survey: rows of the table.
  std::vector<std::int64_t> table_rows;
  /// v3.0, by camera key and row of the metadata: first frame in the file, where counted.
  std::unordered_map<std::string, std::vector<std::int64_t>> video_begin;
  std::size_t listed = 0;  ///< rows of the metadata

  mutable lerobot::FileCache<lerobot::Clip> clips;
  mutable lerobot::FileCache<lerobot::DataFile> tables;
  mutable std::once_flag map_once;
  mutable std::unique_ptr<lerobot::DataMap> map;
  mutable std::atomic<bool> map_ready = false;
  mutable std::once_flag statistics_once;
  mutable lerobot::EpisodeStatisticsV2 statistics_v2;

  bool is_v3() const { return v3.has_value(); }
  std::int64_t index_of_row(std::size_t row) const { return v3 ? v3->index(row) : v2->index(row); }
  std::int64_t length_of_row(std::size_t row) const {
    return v3 ? v3->length(row) : v2->length(row);
  }
  /// Reads a whole row of the metadata. Errors: data_loss.
  Result<EpisodeInfo> read_row(std::size_t row) const;
  /// The same by position, with the length after repairs.
  Result<EpisodeInfo> read_info(std::int64_t position) const;

  std::string data_path(std::size_t row) const;
  std::string video_path(std::size_t row, const std::string& key) const;
  /// Whether the row says that the episode has this camera (by `video_keys` or locators).
  bool has_camera(std::size_t row, const std::string& key, const Json& values) const;
  /// First frame of the episode in its video file. Errors: data_loss.
  Result<std::int64_t> first_frame(std::size_t row, const std::string& key,
                                   const Mp4Index& index) const;
  Result<std::shared_ptr<const lerobot::Clip>> clip(const std::string& path) const;
  Result<std::shared_ptr<const lerobot::DataFile>> table(const std::string& path) const;
  /// Where the rows of an episode lie. Errors: not_found, data_loss.
  Result<std::vector<lerobot::DataPlace>> places(std::size_t row) const;
  /// v3.0: reads episode_index of all data files, once.
  const lerobot::DataMap& data_map() const;
  std::string data_directory() const;
  Json episode_statistics(std::size_t row) const;

  /// Reads features `wanted` (names of the schema; all of kind column and image when empty).
  Result<std::shared_ptr<arrow::RecordBatch>> read(std::size_t row, std::int64_t length,
                                                   FrameRange range,
                                                   const std::vector<std::string>& wanted,
                                                   lerobot::ReadNotes* notes) const;
};

/// Opens step by step; what was found so far stays readable when a step fails.
struct LerobotOpener {
  static std::unique_ptr<LerobotSource::Impl> begin(const std::filesystem::path& root,
                                                    const LerobotOptions& options);
  static Status run(LerobotSource::Impl& impl);
  static std::unique_ptr<LerobotSource> finish(std::unique_ptr<LerobotSource::Impl> impl);
};

namespace lerobot {

/// Looks into every file of the dataset, decides which episodes can be read whole, and writes what
/// it found into the log. Errors: cancelled, and those that stop an opening.
Status survey(LerobotSource::Impl& impl);
/// Compares cameras with the first pictures there are.
void settle_cameras(LerobotSource::Impl& impl);
/// Returns the message of an error without the names that its finding says already.
std::string message_without_place(const LerobotSource::Impl& impl, const Status& status,
                                  const std::string& file, const std::string& feature = {});
void note_statistics(LerobotSource::Impl& impl);
void note_leftovers(LerobotSource::Impl& impl);

std::unique_ptr<Episode> make_episode(const LerobotSource& source, std::int64_t position,
                                      EpisodeInfo info);
/// Decodes pictures stored in the table.
Result<std::unique_ptr<FrameReader>> image_frames(const LerobotSource::Impl& impl, std::size_t row,
                                                  std::int64_t length, const std::string& camera,
                                                  FrameRange range, const FrameForm& form);
/// Replaces pictures kept as paths by the bytes of these files.
Result<std::shared_ptr<arrow::Array>> embed_images(const LerobotSource::Impl& impl,
                                                   std::int64_t episode, const Feature& feature,
                                                   const std::shared_ptr<arrow::Array>& column,
                                                   std::int64_t first_row);

}  // namespace lerobot
}  // namespace ropewalk
