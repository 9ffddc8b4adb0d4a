#pragma once
// VideoStreamWriter: encoded frames with times of their own, as a robot streams them, to an MP4
// file, without decoding. Byte streams (Annex B) and OBUs become what MP4 holds.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {

/// Not thread-safe. Frames come in the order of presentation: streams without B-frames.
/// A writer destroyed before finish() leaves an unfinished file.
class VideoStreamWriter {
 public:
  /// Creates `path`. `codec` is "h264", "hevc", "av1" or "vp9".
  /// Errors: invalid_argument for another codec; already_exists; those of the file system.
  static Result<VideoStreamWriter> create(const std::filesystem::path& path,
                                          const std::string& codec, Limits limits = {});
  VideoStreamWriter(VideoStreamWriter&&) noexcept;
  VideoStreamWriter& operator=(VideoStreamWriter&&) noexcept;
  ~VideoStreamWriter();

  /// Adds one frame. Units: ns, any epoch; the first frame stands at 0 of the file, whose clock
  /// ticks in microseconds. A frame that is not later than the one before is put one tick behind
  /// it. Frames before the first keyframe cannot be shown and are left out. Errors: data_loss when
  /// the first keyframe does not say the size of its pictures; resource_exhausted (Limits).
  Status append(ByteSpan frame, std::int64_t time_ns);
  /// Writes the index and makes the file durable.
  /// Errors: failed_precondition when no keyframe came.
  Status finish();

  std::int64_t frames() const;
  std::int64_t skipped() const;      ///< before the first keyframe
  std::int64_t moved_times() const;  ///< put behind the frame before
  int width() const;
  int height() const;

 private:
  struct Impl;
  explicit VideoStreamWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk
