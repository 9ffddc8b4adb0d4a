#pragma once
// Raw pictures of robots to RGB: packed colours, grey, YUV 4:2:2 and 4:2:0, Bayer; and depth as
// numbers. Spec: mcap 5.4; the encodings of sensor_msgs/image_encodings.
#include <span>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/format/message/robot_messages.h"

namespace ropewalk::message {

/// Fills `rgb`. Shape: height x width x 3 bytes, no padding. Encodings: rgb8, rgba8, bgr8, bgra8,
/// 8UC3 and 8UC4 (as bgr), mono8, 8UC1, mono16 and 16UC1 (the upper byte), uyvy, yuv422, yuyv,
/// yuv422_yuy2, nv12, bayer_{rggb,bggr,gbrg,grbg}8. YUV is BT.601 in video range.
/// Errors: unimplemented for another encoding, by name; data_loss when the bytes are fewer than
/// step and height say, or a step is shorter than a row; invalid_argument for a wrong size of
/// `rgb`; resource_exhausted (Limits::max_image_pixels).
Status to_rgb8(const RawImage& image, MutableByteSpan rgb, const Limits& limits = {});

/// Fills `depth` (Shape: height x width) from 16UC1 or mono16 (Units: mm) or 32FC1 (Units: m) in
/// metres; 0 stays 0, which means no measurement.
/// Errors: as to_rgb8.
Status to_depth_m(const RawImage& image, std::span<float> depth, const Limits& limits = {});

}  // namespace ropewalk::message
