#pragma once
// LerobotV3Sink: episodes to a LeRobot v3.0 dataset: tables and videos of many episodes packed into
// shards. Encoded video is remuxed packet by packet and never encoded anew; the index of each shard
// is planned first and stands in front.
// Spec: review-export-upload 5.6, 7.2; lerobot-formats 3, 4.4, 6.3.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/dataset/lerobot/prove.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/format/video/encoder.h"

namespace ropewalk {

struct LerobotV3Options {
  /// Declares the features of a dataset that receives no episode; else the first episode's counts.
  std::optional<Schema> schema = std::nullopt;
  std::uint64_t data_file_bytes = 100ULL << 20;   ///< of data and meta/episodes files
  std::uint64_t video_file_bytes = 200ULL << 20;  ///< of MP4 files
  /// Above 1024 s upstream's float32 time comparison can miss frames.
  std::int64_t video_file_seconds = 1000;
  std::int64_t chunks_size = 1000;  ///< files per chunk directory
  /// Decode the sampled frames of every camera, so that cameras have quantiles.
  bool camera_quantiles = false;
  std::vector<std::string> drop_features = {};  ///< left out, as named in the source
  /// Encode anew a clip that cannot be copied; off: such a clip is an error.
  bool repair_video = false;
  EncoderSettings encoder = {};               ///< for cameras without an encoded form
  std::string dataset_format = "lerobot_v3";  ///< info.dataset_format; empty: not written

  /// Errors: invalid_argument naming the field.
  Status validate() const;
};

/// Not thread-safe. Memory: packet tables of the open shards (52 bytes a frame), one row group, the
/// statistics sketches, and the shape of the episode rows; rows themselves are spooled.
class LerobotV3Sink : public EpisodeSink {
 public:
  /// The clips written, sorted by path and place; complete after finish().
  virtual const std::vector<ClipRecord>& clips() const = 0;
};

/// Writes below `root`, which is a stage of the caller's: its directories are not fsynced here.
/// Errors: already_exists when there is a dataset; invalid_argument for the options. write() gives
/// failed_precondition for a rate that is no integer.
Result<std::unique_ptr<LerobotV3Sink>> create_lerobot_v3_sink(const std::filesystem::path& root,
                                                              LerobotV3Options options = {});

}  // namespace ropewalk
