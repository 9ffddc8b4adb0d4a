#pragma once
// VideoShards: the clips of one camera, packed into MP4 files by packet remux.
// A shard is planned first: clips are collected until the file is full, and written in one pass
// when it closes, with its index in front. Until then a clip is kept as what it takes to copy it
// later: the path and packet table of its file, or a PacketReader, which may outlive its Episode.
// Spec: review-export-upload 7.2 steps 1 to 6; lerobot-formats 6.3.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/dataset/lerobot/sink_files_internal.h"

namespace ropewalk::lerobot_internal {

/// Numbers files as v3.0 does: file 0, 1 … chunks_size - 1, then the next chunk.
struct FileNumber {
  std::int64_t chunk = 0;
  std::int64_t file = -1;  ///< -1: none yet

  void advance(std::int64_t chunks_size);
  /// "chunk-000/file-000"
  std::string text() const;
};

/// What one column of one row group adds to the footer of a Parquet file, at least roughly: counted
/// in before a file is closed, since with short episodes footers outweigh the data.
inline constexpr std::uint64_t kFooterBytesPerColumn = 200;

/// Where a clip went.
struct ClipPlace {
  FileNumber file;
  std::int64_t first_frame = 0;  ///< frames before it in that file
};

struct ShardLimits {
  std::uint64_t file_bytes = 0;
  std::int64_t file_frames = 0;
  std::int64_t chunks_size = 0;
};

/// Checks that `clip` may be copied into a shard at a constant rate, reading its packet table.
/// Errors: failed_precondition with reason NOT_REMUXABLE naming the fault; those of reading.
Status check_copyable(Clip& clip);

/// Not thread-safe.
class VideoShards {
 public:
  VideoShards(std::filesystem::path root, std::string camera, Rational fps, ShardLimits limits)
      : root_(std::move(root)), camera_(std::move(camera)), fps_(fps), limits_(limits) {}

  /// Appends a clip that check_copyable() let pass. A full shard is written as a job of `jobs`.
  Result<ClipPlace> add(Clip clip, std::int64_t episode_index, const RunContext& context,
                        JobWindow& jobs, Written& written);
  /// Writes the open shard, if any.
  Status close(const RunContext& context, JobWindow& jobs, Written& written);

 private:
  struct Entry {
    Clip clip;
    std::int64_t episode_index = 0;
    std::int64_t first_frame = 0;
  };
  struct Shard {
    Mp4Plan plan;
    std::vector<Entry> clips;
    std::uint64_t bytes = 0;
    std::int64_t frames = 0;
    std::string path;
  };
  static Status write_shard(const std::filesystem::path& root, const std::string& camera,
                            Shard& shard, std::stop_token stop, Written& written);

  std::filesystem::path root_;
  std::string camera_;
  Rational fps_;
  ShardLimits limits_;
  FileNumber number_;
  std::unique_ptr<Shard> open_;
};

}  // namespace ropewalk::lerobot_internal
