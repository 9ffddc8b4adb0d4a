#pragma once
// Media: how encoded and decoded pictures are described, independent of any container or library.
#include <cstdint>
#include <string>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/rational.h"

namespace ropewalk {

/// Parameters of one encoded video stream. Two clips may share a file when all of these agree.
struct VideoParams {
  std::string codec;    ///< canonical decoder name: "h264", "hevc", "av1", "vp9", "mpeg4", …
  std::string pix_fmt;  ///< FFmpeg name such as "yuv420p"
  int width = 0;        ///< coded for display, pixels
  int height = 0;
  Bytes extradata;      ///< avcC, hvcC or av1C bytes
  int color_range = 0;  ///< code points of ISO/IEC 23091-2; 0 range unspecified, 1 limited, 2 full
  int color_primaries = 2;
  int color_transfer = 2;
  int color_matrix = 2;

  bool operator==(const VideoParams&) const = default;
};

/// One encoded picture. Lifetime: `data` lives until the next call on the reader that gave it.
struct VideoPacket {
  ByteSpan data;
  std::int64_t ordinal = 0;  ///< rank in presentation order within the episode, 0-based
  bool keyframe = false;
};

/// How pixels lie in memory. The first two have shape [H, W, C] and [C, H, W]; luma is [H, W].
enum class FrameLayout { hwc, chw, luma };

/// What a caller asks of a frame reader. Zero width and height mean the stored size.
/// Crop is taken first, then the result is scaled to width x height.
struct FrameForm {
  FrameLayout layout = FrameLayout::hwc;
  int width = 0;
  int height = 0;
  int crop_x = 0;
  int crop_y = 0;
  int crop_width = 0;
  int crop_height = 0;
};

/// Shape and element size of the frames a reader delivers.
struct FrameShape {
  int height = 0;
  int width = 0;
  int channels = 3;
  int bytes_per_sample = 1;  ///< 1 uint8, 2 uint16

  std::size_t frame_bytes() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width) *
           static_cast<std::size_t>(channels) * static_cast<std::size_t>(bytes_per_sample);
  }
  bool operator==(const FrameShape&) const = default;
};

/// Half-open range of frame ordinals [begin, end).
struct FrameRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool operator==(const FrameRange&) const = default;
};

}  // namespace ropewalk
