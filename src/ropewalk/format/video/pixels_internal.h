#pragma once
// PixelConverter: decoded pictures to the form a caller asked for.
#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/media.h"
#include "ropewalk/base/core/result.h"
#include "ropewalk/format/video/av_internal.h"

namespace ropewalk::video_internal {

/// Not thread-safe. Keeps one scaling context, made anew when the pictures' format changes.
class PixelConverter {
 public:
  /// Errors: invalid_argument for a crop or size that does not fit, resource_exhausted (Limits).
  static Result<PixelConverter> create(const VideoParams& params, const FrameForm& form,
                                       const Limits& limits);

  const FrameShape& shape() const { return shape_; }

  /// Writes `frame` into `out`, which has shape().frame_bytes() bytes.
  /// Errors: data_loss when the picture is not of the size or depth the container declares.
  Status convert(const AVFrame& frame, MutableByteSpan out);

 private:
  PixelConverter() = default;

  Status prepare(const AVFrame& frame, AVPixelFormat target, int width, int height,
                 int target_width, int target_height);
  Status convert_rgb(const AVFrame& frame, MutableByteSpan out);
  Status convert_luma(const AVFrame& frame, MutableByteSpan out);
  Status scale_luma(const std::uint8_t* plane, int stride, MutableByteSpan out);
  Status rgb_rows(const AVFrame& frame, int x, int y, int width, int height, int target_width,
                  int target_height, std::uint8_t* out, int stride);
  void deliver_rgb(const std::uint8_t* rows, std::size_t stride, MutableByteSpan out) const;

  FrameForm form_;
  FrameShape shape_;
  int stored_width_ = 0;
  int stored_height_ = 0;
  bool scales_ = false;
  SwsPtr sws_;
  struct Key {
    int format = -1, target = -1, matrix = 0, range = 0;
    int width = 0, height = 0, target_width = 0, target_height = 0;
    bool operator==(const Key&) const = default;
  } key_;
  Bytes scratch_;  // padded rows, since swscale may write past the end of a row
};

}  // namespace ropewalk::video_internal
