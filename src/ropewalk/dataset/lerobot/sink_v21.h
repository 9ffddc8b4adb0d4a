#pragma once
// LerobotV21Sink: episodes to a LeRobot v2.1 dataset: one Parquet file and one MP4 per camera for
// each episode. Video that lies in a file of its own is copied byte for byte, other encoded video
// is remuxed, and only what has no encoded form is encoded.
// Spec: review-export-upload 5.4, 5.6, 7.1; lerobot-formats 2, 4.3.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/dataset/lerobot/prove.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/format/video/encoder.h"

namespace ropewalk {

struct LerobotV21Options {
  /// Declares the features of a dataset that receives no episode; else the first episode's counts.
  std::optional<Schema> schema = std::nullopt;
  /// The names in stats.json, as the source's has them. Empty: all numeric columns of the source
  /// but the five default ones.
  std::vector<std::string> statistics_names = {};
  std::vector<std::string> drop_features = {};  ///< left out, as named in the source
  /// Encode anew a clip that cannot be copied; off: such a clip is an error.
  bool repair_video = false;
  EncoderSettings encoder = {};                ///< for cameras without an encoded form
  std::string dataset_format = "lerobot_v21";  ///< info.dataset_format; empty: not written
};

/// Not thread-safe. Memory: the tables of at most 64 episodes or 128 MiB that are being written.
class LerobotV21Sink : public EpisodeSink {
 public:
  /// The clips written, sorted by path; complete after finish().
  virtual const std::vector<ClipRecord>& clips() const = 0;
};

/// Writes below `root`, which is a stage of the caller's: its directories are not fsynced here.
/// Errors: already_exists when there is a dataset; invalid_argument for the options.
Result<std::unique_ptr<LerobotV21Sink>> create_lerobot_v21_sink(const std::filesystem::path& root,
                                                                LerobotV21Options options = {});

}  // namespace ropewalk
