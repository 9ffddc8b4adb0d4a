#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/format/video/pixels_internal.h"

namespace ropewalk::video_internal {
namespace {

constexpr std::size_t kRowPadding = 64;

std::size_t padded_stride(std::size_t row_bytes) {
  return (row_bytes + 63) / 64 * 64 + kRowPadding;
}

bool is_full_range(const AVFrame& frame) {
  switch (frame.format) {
    case AV_PIX_FMT_YUVJ420P:
    case AV_PIX_FMT_YUVJ422P:
    case AV_PIX_FMT_YUVJ444P:
    case AV_PIX_FMT_YUVJ440P:
    case AV_PIX_FMT_YUVJ411P:
      return true;
    default:
      return frame.color_range == AVCOL_RANGE_JPEG;
  }
}

int bits_of(int format) {
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(format));
  return description == nullptr ? 8 : description->comp[0].depth;
}

}  // namespace

Result<PixelConverter> PixelConverter::create(const VideoParams& params, const FrameForm& form,
                                              const Limits& limits) {
  PixelConverter out;
  out.form_ = form;
  out.stored_width_ = params.width;
  out.stored_height_ = params.height;
  const auto pixels = [](int width, int height) {
    return static_cast<std::uint64_t>(width) * static_cast<std::uint64_t>(height);
  };
  if (form.width < 0 || form.height < 0 || form.crop_x < 0 || form.crop_y < 0 ||
      form.crop_width < 0 || form.crop_height < 0) {
    return invalid_argument("frame form: negative sizes");
  }
  FrameForm& f = out.form_;
  if (f.crop_width == 0) f.crop_width = params.width - f.crop_x;
  if (f.crop_height == 0) f.crop_height = params.height - f.crop_y;
  if (f.crop_width <= 0 || f.crop_height <= 0 || f.crop_x > params.width - f.crop_width ||
      f.crop_y > params.height - f.crop_height) {
    return invalid_argument(
        fmt::format("frame form: crop of {}x{} at ({}, {}) lies outside the picture of {}x{}",
                    f.crop_width, f.crop_height, f.crop_x, f.crop_y, params.width, params.height));
  }
  if (f.width == 0) f.width = f.crop_width;
  if (f.height == 0) f.height = f.crop_height;
  for (const std::uint64_t count :
       {pixels(params.width, params.height), pixels(f.width, f.height)}) {
    if (count > limits.max_image_pixels) {
      return resource_exhausted(
          fmt::format("picture of {} pixels, the limit is {} "
                      "(max_image_pixels)",
                      count, limits.max_image_pixels));
    }
  }
  out.scales_ = f.width != f.crop_width || f.height != f.crop_height;
  out.shape_ = {.height = f.height, .width = f.width};
  if (f.layout == FrameLayout::luma) {
    out.shape_.channels = 1;
    const AVPixelFormat format = av_get_pix_fmt(params.pix_fmt.c_str());
    out.shape_.bytes_per_sample = format != AV_PIX_FMT_NONE && bits_of(format) > 8 ? 2 : 1;
  }
  return out;
}

Status PixelConverter::prepare(const AVFrame& frame, AVPixelFormat target, int width, int height,
                               int target_width, int target_height) {
  Key key{frame.format, target, frame.colorspace, is_full_range(frame) ? 1 : 0,
          width,        height, target_width,     target_height};
  if (sws_ && key == key_) return ok_status();
  // Without scaling, swscale's direct converters are what FFmpeg's own tools and PyAV use.
  const bool scales = width != target_width || height != target_height;
  const int flags = scales ? SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT : SWS_BICUBIC;
  sws_.reset(sws_getContext(width, height, static_cast<AVPixelFormat>(frame.format), target_width,
                            target_height, target, flags, nullptr, nullptr, nullptr));
  if (!sws_) {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format));
    return unimplemented(fmt::format("pixel format {} cannot be converted to {}",
                                     name == nullptr ? "unknown" : name,
                                     av_get_pix_fmt_name(target)));
  }
  int* inverse = nullptr;
  int* table = nullptr;
  int source_range = 0, target_range = 0, brightness = 0, contrast = 0, saturation = 0;
  if (sws_getColorspaceDetails(sws_.get(), &inverse, &source_range, &table, &target_range,
                               &brightness, &contrast, &saturation) >= 0) {
    const int* matrix = sws_getCoefficients(
        frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : frame.colorspace);
    sws_setColorspaceDetails(sws_.get(), matrix, key.range, table, target_range, brightness,
                             contrast, saturation);
  }
  key_ = key;
  return ok_status();
}

Status PixelConverter::rgb_rows(const AVFrame& frame, int x, int y, int width, int height,
                                int target_width, int target_height, std::uint8_t* out,
                                int stride) {
  ROPEWALK_RETURN_IF_ERROR(
      prepare(frame, AV_PIX_FMT_RGB24, width, height, target_width, target_height));
  const AVPixFmtDescriptor* description =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  std::array<const std::uint8_t*, 4> planes{};
  std::array<int, 4> strides{};
  for (std::size_t plane = 0; plane < 4 && frame.data[plane] != nullptr; ++plane) {
    const bool chroma = plane == 1 || plane == 2;
    const int shift_y = chroma ? description->log2_chroma_h : 0;
    const int shift_x = chroma ? description->log2_chroma_w : 0;
    int step = 0;
    for (int c = 0; c < description->nb_components; ++c) {
      if (description->comp[c].plane == static_cast<int>(plane)) step = description->comp[c].step;
    }
    planes[plane] = frame.data[plane];
    if (x != 0 || y != 0) {
      planes[plane] += static_cast<std::ptrdiff_t>(y >> shift_y) * frame.linesize[plane] +
                       static_cast<std::ptrdiff_t>(x >> shift_x) * step;
    }
    strides[plane] = frame.linesize[plane];
  }
  std::array<std::uint8_t*, 4> targets = {out, nullptr, nullptr, nullptr};
  const std::array<int, 4> target_strides = {stride, 0, 0, 0};
  const int rows = sws_scale(sws_.get(), planes.data(), strides.data(), 0, height, targets.data(),
                             target_strides.data());
  if (rows != target_height) {
    return internal(fmt::format("conversion gave {} of {} rows", rows, target_height));
  }
  return ok_status();
}

void PixelConverter::deliver_rgb(const std::uint8_t* rows, std::size_t stride,
                                 MutableByteSpan out) const {
  const auto width = static_cast<std::size_t>(shape_.width);
  const auto height = static_cast<std::size_t>(shape_.height);
  if (form_.layout == FrameLayout::hwc) {
    for (std::size_t y = 0; y < height; ++y) {
      std::memcpy(out.data() + y * width * 3, rows + y * stride, width * 3);
    }
    return;
  }
  std::uint8_t* red = out.data();
  std::uint8_t* green = red + width * height;
  std::uint8_t* blue = green + width * height;
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* pixel = rows + y * stride;
    for (std::size_t x = 0; x < width; ++x, pixel += 3) {
      red[x] = pixel[0];
      green[x] = pixel[1];
      blue[x] = pixel[2];
    }
    red += width;
    green += width;
    blue += width;
  }
}

Status PixelConverter::convert_rgb(const AVFrame& frame, MutableByteSpan out) {
  const AVPixFmtDescriptor* description =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  if (description == nullptr) return internal("picture of unknown pixel format");
  const bool packed_bits =
      (description->flags & (AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_PAL)) != 0;
  const bool aligned = form_.crop_x % (1 << description->log2_chroma_w) == 0 &&
                       form_.crop_y % (1 << description->log2_chroma_h) == 0 && !packed_bits;
  if (scales_ && aligned) {
    const std::size_t stride = padded_stride(static_cast<std::size_t>(shape_.width) * 3);
    scratch_.resize(stride * static_cast<std::size_t>(shape_.height) + kRowPadding);
    ROPEWALK_RETURN_IF_ERROR(rgb_rows(frame, form_.crop_x, form_.crop_y, form_.crop_width,
                                      form_.crop_height, shape_.width, shape_.height,
                                      scratch_.data(), static_cast<int>(stride)));
    deliver_rgb(scratch_.data(), stride, out);
    return ok_status();
  }
  const bool whole = form_.crop_width == stored_width_ && form_.crop_height == stored_height_;
  if (whole && !scales_ && form_.layout == FrameLayout::hwc && stored_width_ % 32 == 0) {
    return rgb_rows(frame, 0, 0, stored_width_, stored_height_, stored_width_, stored_height_,
                    out.data(), stored_width_ * 3);
  }
  const std::size_t stride = padded_stride(static_cast<std::size_t>(stored_width_) * 3);
  scratch_.resize(stride * static_cast<std::size_t>(stored_height_) + kRowPadding);
  ROPEWALK_RETURN_IF_ERROR(rgb_rows(frame, 0, 0, stored_width_, stored_height_, stored_width_,
                                    stored_height_, scratch_.data(), static_cast<int>(stride)));
  const std::uint8_t* corner = scratch_.data() + static_cast<std::size_t>(form_.crop_y) * stride +
                               static_cast<std::size_t>(form_.crop_x) * 3;
  if (!scales_) {
    deliver_rgb(corner, stride, out);
    return ok_status();
  }
  // A crop off the chroma grid, then a scale: pixels are cropped exactly and scaled as RGB.
  const std::size_t scaled_stride = padded_stride(static_cast<std::size_t>(shape_.width) * 3);
  Bytes scaled(scaled_stride * static_cast<std::size_t>(shape_.height) + kRowPadding);
  const SwsPtr scaler(sws_getContext(
      form_.crop_width, form_.crop_height, AV_PIX_FMT_RGB24, shape_.width, shape_.height,
      AV_PIX_FMT_RGB24, SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP,
      nullptr, nullptr, nullptr));
  if (!scaler) return internal("no scaler for RGB");
  const std::array<const std::uint8_t*, 4> planes = {corner, nullptr, nullptr, nullptr};
  const std::array<int, 4> strides = {static_cast<int>(stride), 0, 0, 0};
  const std::array<std::uint8_t*, 4> targets = {scaled.data(), nullptr, nullptr, nullptr};
  const std::array<int, 4> target_strides = {static_cast<int>(scaled_stride), 0, 0, 0};
  sws_scale(scaler.get(), planes.data(), strides.data(), 0, form_.crop_height, targets.data(),
            target_strides.data());
  deliver_rgb(scaled.data(), scaled_stride, out);
  return ok_status();
}

Status PixelConverter::scale_luma(const std::uint8_t* plane, int stride, MutableByteSpan out) {
  const AVPixelFormat format =
      shape_.bytes_per_sample == 2 ? AV_PIX_FMT_GRAY16LE : AV_PIX_FMT_GRAY8;
  if (!sws_) {
    sws_.reset(sws_getContext(form_.crop_width, form_.crop_height, format, shape_.width,
                              shape_.height, format, SWS_BILINEAR | SWS_ACCURATE_RND, nullptr,
                              nullptr, nullptr));
  }
  if (!sws_) return internal("no scaler for luma");
  const std::size_t row_bytes =
      static_cast<std::size_t>(shape_.width) * static_cast<std::size_t>(shape_.bytes_per_sample);
  const std::size_t target_stride = padded_stride(row_bytes);
  scratch_.resize(target_stride * static_cast<std::size_t>(shape_.height) + kRowPadding);
  const std::array<const std::uint8_t*, 4> planes = {plane, nullptr, nullptr, nullptr};
  const std::array<int, 4> strides = {stride, 0, 0, 0};
  const std::array<std::uint8_t*, 4> targets = {scratch_.data(), nullptr, nullptr, nullptr};
  const std::array<int, 4> target_strides = {static_cast<int>(target_stride), 0, 0, 0};
  sws_scale(sws_.get(), planes.data(), strides.data(), 0, form_.crop_height, targets.data(),
            target_strides.data());
  for (std::size_t y = 0; y < static_cast<std::size_t>(shape_.height); ++y) {
    std::memcpy(out.data() + y * row_bytes, scratch_.data() + y * target_stride, row_bytes);
  }
  return ok_status();
}

Status PixelConverter::convert_luma(const AVFrame& frame, MutableByteSpan out) {
  const AVPixFmtDescriptor* description =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  constexpr std::uint64_t kOtherKinds = AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL |
                                        AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BE |
                                        AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_FLOAT;
  const int sample_bytes = shape_.bytes_per_sample;
  if (description == nullptr || (description->flags & kOtherKinds) != 0 ||
      description->comp[0].step != sample_bytes || description->comp[0].shift != 0) {
    const char* name = av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format));
    return unimplemented(fmt::format("pixel format {} has no luma plane of {} bytes per sample",
                                     name == nullptr ? "unknown" : name, sample_bytes));
  }
  const int stride = frame.linesize[0];
  const std::uint8_t* corner = frame.data[0] + static_cast<std::ptrdiff_t>(form_.crop_y) * stride +
                               static_cast<std::ptrdiff_t>(form_.crop_x) * sample_bytes;
  if (scales_) return scale_luma(corner, stride, out);
  const std::size_t row_bytes =
      static_cast<std::size_t>(shape_.width) * static_cast<std::size_t>(sample_bytes);
  for (int y = 0; y < shape_.height; ++y) {
    std::memcpy(out.data() + static_cast<std::size_t>(y) * row_bytes,
                corner + static_cast<std::ptrdiff_t>(y) * stride, row_bytes);
  }
  return ok_status();
}

Status PixelConverter::convert(const AVFrame& frame, MutableByteSpan out) {
  if (frame.width != stored_width_ || frame.height != stored_height_) {
    return data_loss(fmt::format("the picture is {}x{}, the container says {}x{}", frame.width,
                                 frame.height, stored_width_, stored_height_));
  }
  return form_.layout == FrameLayout::luma ? convert_luma(frame, out) : convert_rgb(frame, out);
}

}  // namespace ropewalk::video_internal
