#include "ropewalk/format/image/image.h"

#include <fmt/format.h>

#include "ropewalk/format/image/image_internal.h"

namespace ropewalk {
namespace image_internal {

void luma_of_rgb(ByteSpan rgb, MutableByteSpan out) {
  // 0.299 R + 0.587 G + 0.114 B in 16-bit fixed point.
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint32_t sum =
        19595U * rgb[3 * i] + 38470U * rgb[3 * i + 1] + 7471U * rgb[3 * i + 2];
    out[i] = static_cast<std::uint8_t>((sum + 32768U) >> 16);
  }
}

namespace {

Result<FrameShape> checked_shape(ByteSpan bytes, const Limits& limits, ImageChannels channels) {
  // The head is read by our own parser first, so that no library sees a picture beyond the limits.
  ROPEWALK_ASSIGN_OR_RETURN(const ImageInfo info, probe_image(bytes));
  const std::uint64_t pixels =
      static_cast<std::uint64_t>(info.width) * static_cast<std::uint64_t>(info.height);
  if (pixels > limits.max_image_pixels) {
    return resource_exhausted(fmt::format("{}: {}x{} pixels, the limit is {} (max_image_pixels)",
                                          image_kind_name(info.kind), info.width, info.height,
                                          limits.max_image_pixels));
  }
  FrameShape shape;
  if (info.kind == ImageKind::jpeg) {
    ROPEWALK_ASSIGN_OR_RETURN(shape, jpeg_shape(bytes, channels));
  } else if (info.kind == ImageKind::png) {
    ROPEWALK_ASSIGN_OR_RETURN(shape, png_shape(bytes, channels));
  } else {
    return unimplemented(
        fmt::format("{} pictures are not decoded (jpeg and png are)", image_kind_name(info.kind)));
  }
  if (shape.width != info.width || shape.height != info.height) {
    return data_loss(fmt::format("{}: two sizes, {}x{} and {}x{}", image_kind_name(info.kind),
                                 info.width, info.height, shape.width, shape.height));
  }
  return shape;
}

Status decode_checked(ByteSpan bytes, ImageChannels channels, const FrameShape& shape,
                      MutableByteSpan out) {
  return image_kind(bytes) == ImageKind::jpeg ? decode_jpeg(bytes, shape, out)
                                              : decode_png(bytes, channels, shape, out);
}

}  // namespace
}  // namespace image_internal

Result<Image> decode_image(ByteSpan bytes, const Limits& limits, ImageChannels channels) {
  Image image;
  ROPEWALK_ASSIGN_OR_RETURN(image.shape, image_internal::checked_shape(bytes, limits, channels));
  image.pixels.resize(image.shape.frame_bytes());
  ROPEWALK_RETURN_IF_ERROR(
      image_internal::decode_checked(bytes, channels, image.shape, image.pixels));
  return image;
}

Status decode_image_into(ByteSpan bytes, const FrameShape& shape, MutableByteSpan out,
                         const Limits& limits, ImageChannels channels) {
  ROPEWALK_ASSIGN_OR_RETURN(const FrameShape found,
                            image_internal::checked_shape(bytes, limits, channels));
  if (found != shape) {
    return invalid_argument(
        fmt::format("the picture is {}x{} with {} channels of {} bytes, expected {}x{}, {} and {}",
                    found.width, found.height, found.channels, found.bytes_per_sample, shape.width,
                    shape.height, shape.channels, shape.bytes_per_sample));
  }
  if (out.size() != shape.frame_bytes()) {
    return invalid_argument(
        fmt::format("{} bytes for a picture of {}", out.size(), shape.frame_bytes()));
  }
  return image_internal::decode_checked(bytes, channels, shape, out);
}

}  // namespace ropewalk
