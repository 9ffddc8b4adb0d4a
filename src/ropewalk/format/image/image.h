#pragma once
// Image: JPEG and PNG, bytes to pixels and back, bounded. Kinds of other files are told by name.
// Typical usage: `probe_image(bytes)` to learn kind and size, `decode_image(bytes, limits)` for
// pixels, `encode_png(view)` or `encode_jpeg(view)` to write.
// Limits: no picture of more than Limits.max_image_pixels is decoded; probing looks at headers
// only.
#include <cstdint>
#include <string_view>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/media.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {

enum class ImageKind { unknown, jpeg, png, tiff, webp, gif, bmp };

/// "jpeg", "png", …
std::string_view image_kind_name(ImageKind kind);

/// What the head of a file says.
struct ImageInfo {
  ImageKind kind = ImageKind::unknown;
  int width = 0;
  int height = 0;
  int channels = 0;  ///< as stored: 1 gray, 2 gray + alpha, 3, 4; 0 unknown
  int bits_per_sample = 0;
};

/// Pixels [height, width, channels], uint8 or uint16 (native order), contiguous.
struct Image {
  FrameShape shape;
  Bytes pixels;
};

enum class ImageChannels {
  stored,  ///< gray stays 1 channel; colour gives 3; alpha is dropped, palettes are resolved
  rgb,     ///< always 3, uint8
  gray     ///< always 1: stored gray samples, else luma of the colours
};

/// Returns the kind by magic bytes alone; unknown is a value, not an error.
ImageKind image_kind(ByteSpan bytes);

/// Reads kind, size and depth from the first bytes (64 KiB are plenty, except JPEG with long
/// metadata). Errors: invalid_argument for an unknown kind, data_loss for a damaged header.
Result<ImageInfo> probe_image(ByteSpan bytes);

/// Decodes JPEG or PNG. PNG of 16 bits gives uint16 unless `rgb` is asked; 1, 2, 4 bits give uint8.
/// Errors: data_loss, resource_exhausted (Limits), unimplemented (other kinds, by name),
/// invalid_argument (unknown kind).
Result<Image> decode_image(ByteSpan bytes, const Limits& limits = {},
                           ImageChannels channels = ImageChannels::stored);

/// Decodes into the caller's memory; `shape` must be what decode_image would give.
Status decode_image_into(ByteSpan bytes, const FrameShape& shape, MutableByteSpan out,
                         const Limits& limits = {}, ImageChannels channels = ImageChannels::stored);

/// Encodes 1 or 3 channels of uint8. Units: quality 1..100; 4:2:0 chroma.
Result<Bytes> encode_jpeg(const FrameShape& shape, ByteSpan pixels, int quality = 90);

/// Encodes 1, 3 or 4 channels of uint8 or uint16, lossless. Units: level 0..9 of deflate.
Result<Bytes> encode_png(const FrameShape& shape, ByteSpan pixels, int level = 3);

}  // namespace ropewalk
