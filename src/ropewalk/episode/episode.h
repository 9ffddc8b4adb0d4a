#pragma once
// The waist: every producer of episodes fills these classes and every consumer reads them.
// An Episode is a table of columns on a fixed grid, plus cameras that can be read as encoded
// packets or as pixels. A frame is (episode, ordinal); seconds in floating point exist only at a
// format's edge.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/base/core/media.h"
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/episode/schema.h"

namespace ropewalk {

/// What is known of an episode without opening its data.
struct EpisodeInfo {
  std::int64_t index = 0;          ///< as numbered in the source
  std::int64_t length = 0;         ///< grid frames
  std::vector<std::string> tasks;  ///< in order of first use
  std::string quality;             ///< "green", "red", or empty
  Json issues;                     ///< `quality_issues` as found: an array or null
  std::string verdict;             ///< effective: "pass", "fail", or empty
  std::string note;
  Json row = Json::object();  ///< the whole row of the source, every key kept
};

/// Half-open range of times [begin, end), int64 nanoseconds on a stream's own clock.
struct TimeRange {
  std::int64_t begin_ns = INT64_MIN;
  std::int64_t end_ns = INT64_MAX;
};

/// The encoded pictures of one camera of one episode, in decode order.
class PacketReader {
 public:
  virtual ~PacketReader() = default;
  virtual const VideoParams& params() const = 0;
  /// Number of packets; equals the number of frames.
  virtual std::int64_t count() const = 0;
  /// Size, keyframe flag and presentation rank of packet `i` in decode order, known before reading.
  struct PacketEntry {
    std::uint32_t size_bytes = 0;
    bool keyframe = false;
    std::int64_t ordinal = 0;
  };
  virtual PacketEntry entry(std::int64_t i) const = 0;
  /// Returns the next packet in decode order, or nullopt at the end.
  /// Errors: data_loss naming the file, the packet and its place.
  virtual Result<std::optional<VideoPacket>> next() = 0;
  /// The MP4 file that holds exactly this clip and nothing else, when there is one: a sink of the
  /// same layout copies it byte for byte.
  virtual std::optional<std::filesystem::path> whole_file() const { return std::nullopt; }
};

/// Decoded pictures of one camera, in presentation order. Not thread-safe; use one per thread.
class FrameReader {
 public:
  virtual ~FrameReader() = default;
  virtual FrameShape shape() const = 0;
  /// Decodes the next frame into `out`, which holds shape().frame_bytes(). Returns false at the end
  /// of the range. Errors: data_loss naming the frame; never fewer frames than asked for without
  /// one.
  virtual Result<bool> next(MutableByteSpan out) = 0;
};

/// One episode, opened. Threads: const members may run concurrently.
class Episode {
 public:
  virtual ~Episode() = default;
  virtual const EpisodeInfo& info() const = 0;
  virtual const Schema& schema() const = 0;

  /// Returns the columns of the grid for `range` as one batch: one column per feature of kind
  /// column and image, in schema order, cast to the declared types: scalars for shape [1],
  /// fixed_size_list for [N], nested lists for N-D, struct<bytes, path> for images. Errors:
  /// data_loss with the row of a null in a fixed vector; out_of_range.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const = 0;
  /// Returns only the columns named, in schema order; pictures that nobody asked for are not read.
  /// Errors: as columns(), but of these columns alone; not_found for a name that is no column.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> columns_of(
      const std::vector<std::string>& names, FrameRange range) const;
  /// Returns the rows of a feature with its own timeline: int64 `time_ns` beside its values.
  virtual Result<std::shared_ptr<arrow::RecordBatch>> stream(std::string_view feature,
                                                             TimeRange range) const;
  /// Errors: failed_precondition when the camera has no encoded form; not_found naming the file.
  virtual Result<std::unique_ptr<PacketReader>> packets(std::string_view camera) const;
  /// Frames decoded on demand, uint8 or uint16. Inline images are decoded the same way.
  virtual Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                                      FrameForm form = {}) const = 0;
  /// The smallest range around `frame` that decodes on its own: a GOP, or one picture.
  virtual FrameRange decode_unit(std::string_view camera, std::int64_t frame) const;
  /// Returns the text behind a value of the task_index column.
  /// Errors: data_loss naming the index that is in no task list.
  virtual Result<std::string> task_text(std::int64_t task_index) const = 0;
  /// Whether this episode has that camera (a recorded episode may lack one).
  virtual bool has_camera(std::string_view camera) const = 0;
  /// Statistics as the source keeps them, {feature: {min, max, mean, std, count}}, or null.
  virtual Json statistics() const { return {}; }
};

/// Threads: const members may run concurrently.
class EpisodeSource {
 public:
  virtual ~EpisodeSource() = default;
  virtual const Schema& schema() const = 0;
  /// The name for messages: a path or URL.
  virtual const std::string& name() const = 0;
  /// Short name of the format: "lerobot_v21", "lerobot_v3", "hdf5", "mcap", "simulated".
  virtual std::string_view format() const = 0;
  virtual std::int64_t size() const = 0;
  /// `i` is the position 0..size()-1, not the index stored in the source. Sources may build the
  /// answer at every call, so that a large dataset is never held as a whole: ask once.
  virtual EpisodeInfo info(std::int64_t i) const = 0;
  virtual Result<std::unique_ptr<Episode>> open(std::int64_t i) const = 0;
  /// What was repaired or noticed while opening.
  virtual const Findings& findings() const;
  /// How many episodes that the dataset lists or holds are none of these, since they cannot be
  /// read.
  virtual std::int64_t left_out() const { return 0; }
  /// Dataset-wide statistics as found (`stats.json`), or null.
  virtual Json statistics() const { return {}; }
};

/// A file that a sink wrote, for manifests. Path: relative to the root, '/'-separated.
struct WrittenFile {
  std::string path;
  std::uint64_t size_bytes = 0;
  std::string sha256;
};

/// Receives episodes in order and writes a dataset. The sink numbers episodes 0, 1, 2 …, rows and
/// tasks densely (numbering.h), whatever the numbers in the source. Nothing counts before finish()
/// is OK; the directory it writes into is a stage of its caller's.
class EpisodeSink {
 public:
  virtual ~EpisodeSink() = default;
  virtual std::string_view format() const = 0;
  /// Errors: unimplemented naming the feature and kind it cannot hold; data_loss from the source;
  /// resource_exhausted for a full disk; cancelled.
  virtual Status write(const Episode& episode, const RunContext& context) = 0;
  /// Writes metadata. Every file is fsynced; directories are the caller's.
  virtual Status finish(const RunContext& context) = 0;
  /// Every file written, complete after finish().
  virtual const std::vector<WrittenFile>& files() const = 0;
  /// What was dropped, re-encoded or repaired.
  virtual const Findings& findings() const = 0;
};

/// Writes every episode of `source` to `sink` and finishes it.
Status copy(const EpisodeSource& source, EpisodeSink& sink, const RunContext& context);

}  // namespace ropewalk
