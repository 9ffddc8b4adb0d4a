#pragma once
// Open files shared by the episodes of a dataset, kept within a budget: tables with the rows of
// each episode, videos with their packet index.
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk::lerobot {

/// The least recently used files are closed first; users that still hold one keep it alive.
/// Threads: safe; a file may be opened twice when two threads ask for it at once.
template <typename File>
class FileCache {
 public:
  FileCache(std::uint64_t max_bytes, std::size_t max_files)
      : max_bytes_(max_bytes), max_files_(max_files) {}

  Result<std::shared_ptr<const File>> get(
      const std::string& path, const std::function<Result<std::shared_ptr<const File>>()>& load) {
    {
      const std::lock_guard lock(mutex_);
      if (const auto at = by_path_.find(path); at != by_path_.end()) {
        entries_.splice(entries_.begin(), entries_, at->second);
        return at->second->file;
      }
    }
    ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const File> file, load());
    const std::lock_guard lock(mutex_);
    if (const auto at = by_path_.find(path); at != by_path_.end()) return at->second->file;
    entries_.push_front({path, file, file->memory_bytes()});
    by_path_[path] = entries_.begin();
    bytes_ += entries_.front().bytes;
    while (entries_.size() > 1 && (bytes_ > max_bytes_ || entries_.size() > max_files_)) {
      bytes_ -= entries_.back().bytes;
      by_path_.erase(entries_.back().path);
      entries_.pop_back();
    }
    return file;
  }

 private:
  struct Entry {
    std::string path;
    std::shared_ptr<const File> file;
    std::uint64_t bytes = 0;
  };
  std::uint64_t max_bytes_;
  std::size_t max_files_;
  std::mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_map<std::string, typename std::list<Entry>::iterator> by_path_;
  std::uint64_t bytes_ = 0;
};

/// A video with its index.
struct Clip {
  std::shared_ptr<const Mp4Index> index;
  std::shared_ptr<const Source> source;
  std::uint64_t memory_bytes() const {
    return 1024 + index->packets.size() * (sizeof(Mp4Packet) + sizeof(std::uint32_t)) +
           index->seek_points.size() * sizeof(SeekPoint);
  }
};

/// Errors: those of open_source and probe_mp4.
Result<std::shared_ptr<const Clip>> open_clip(const std::filesystem::path& path,
                                              const Limits& limits);

/// Rows of one episode that stand together in a table.
struct EpisodeRun {
  std::int64_t episode = 0;
  RowRange rows;
};

/// A table with, for packed files, the rows of each episode by its column episode_index.
struct DataFile {
  std::unique_ptr<ParquetReader> reader;
  std::vector<EpisodeRun> runs;  ///< in file order; empty for files of one episode
  std::uint64_t memory_bytes() const {
    return 4096 + runs.size() * sizeof(EpisodeRun) + reader->row_groups().size() * 512;
  }
  std::vector<RowRange> rows_of(std::int64_t episode) const;
};

/// Errors: those of ParquetReader; data_loss when a packed file lacks the column episode_index.
Result<std::shared_ptr<const DataFile>> open_data_file(const std::filesystem::path& path,
                                                       bool packed, const Limits& limits);

}  // namespace ropewalk::lerobot
