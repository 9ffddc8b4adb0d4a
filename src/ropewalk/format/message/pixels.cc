#include "ropewalk/format/message/pixels.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace ropewalk::message {
namespace {

enum class Layout : std::uint8_t { packed, grey8, grey16, yuyv, uyvy, nv12, bayer };

struct Encoding {
  std::string_view name;
  Layout layout = Layout::packed;
  std::uint32_t pixel_bytes = 1;
  // Packed: the places of red, green, blue. Bayer: the colours (0 red, 1 green, 2 blue) of the
  // pixels (0, 0), (0, 1), (1, 0), (1, 1) by row and column.
  std::array<std::uint8_t, 4> places{};
};

constexpr Encoding kEncodings[] = {
    {"rgb8", Layout::packed, 3, {0, 1, 2, 0}},
    {"rgba8", Layout::packed, 4, {0, 1, 2, 0}},
    {"bgr8", Layout::packed, 3, {2, 1, 0, 0}},
    {"8UC3", Layout::packed, 3, {2, 1, 0, 0}},
    {"bgra8", Layout::packed, 4, {2, 1, 0, 0}},
    {"8UC4", Layout::packed, 4, {2, 1, 0, 0}},
    {"mono8", Layout::grey8, 1, {}},
    {"8UC1", Layout::grey8, 1, {}},
    {"mono16", Layout::grey16, 2, {}},
    {"16UC1", Layout::grey16, 2, {}},
    {"yuyv", Layout::yuyv, 2, {}},
    {"yuv422_yuy2", Layout::yuyv, 2, {}},
    {"uyvy", Layout::uyvy, 2, {}},
    {"yuv422", Layout::uyvy, 2, {}},
    {"nv12", Layout::nv12, 1, {}},
    {"bayer_rggb8", Layout::bayer, 1, {0, 1, 1, 2}},
    {"bayer_bggr8", Layout::bayer, 1, {2, 1, 1, 0}},
    {"bayer_gbrg8", Layout::bayer, 1, {1, 2, 0, 1}},
    {"bayer_grbg8", Layout::bayer, 1, {1, 0, 2, 1}},
};

// Checks that `rows` rows of `row_bytes` lie in the data; the last one may end without padding.
Status check_rows(const RawImage& image, std::uint64_t row_bytes, std::uint64_t rows,
                  const Limits& limits) {
  if (std::uint64_t{image.width} * image.height > limits.max_image_pixels) {
    return resource_exhausted(fmt::format("a picture of {} x {}, at most {} pixels are read",
                                          image.width, image.height, limits.max_image_pixels));
  }
  if (rows == 0 || row_bytes == 0) return ok_status();
  if (image.step < row_bytes) {
    return data_loss(fmt::format("step: {} bytes for {} pixels of {}, at least {} expected",
                                 image.step, image.width, image.encoding, row_bytes));
  }
  if (image.step * (rows - 1) + row_bytes > image.data.size()) {
    return data_loss(
        fmt::format("data: {} bytes for {} rows of {} bytes", image.data.size(), rows, image.step));
  }
  return ok_status();
}

std::uint8_t clamp8(int value) { return static_cast<std::uint8_t>(std::clamp(value, 0, 255)); }

// BT.601, video range, in 8.8 fixed point.
void put_yuv(int y, int u, int v, std::uint8_t* rgb) {
  const int luma = 298 * (y - 16) + 128;
  rgb[0] = clamp8((luma + 409 * (v - 128)) >> 8);
  rgb[1] = clamp8((luma - 100 * (u - 128) - 208 * (v - 128)) >> 8);
  rgb[2] = clamp8((luma + 516 * (u - 128)) >> 8);
}

void convert_422(const std::uint8_t* row, std::uint32_t width, bool luma_first, std::uint8_t* rgb) {
  const std::size_t y = luma_first ? 0 : 1;
  const std::size_t chroma = luma_first ? 1 : 0;
  for (std::uint32_t x = 0; x < width; ++x) {
    const std::uint8_t* pair = row + std::size_t{x / 2} * 4;
    put_yuv(pair[y + 2 * (x % 2)], pair[chroma], pair[chroma + 2], rgb + std::size_t{x} * 3);
  }
}

// A coordinate mirrored at the edge, which keeps its place in the pattern.
std::uint32_t mirror(std::int64_t at, std::uint32_t size) {
  if (at < 0) at = -at;
  if (at >= size) at = 2 * std::int64_t{size} - 2 - at;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(at, 0, size - 1));
}

// Bilinear: what a pixel lacks is the mean of the neighbours that have it.
void convert_bayer(const RawImage& image, const Encoding& encoding, MutableByteSpan rgb) {
  for (std::uint32_t y = 0; y < image.height; ++y) {
    for (std::uint32_t x = 0; x < image.width; ++x) {
      std::array<std::uint32_t, 3> sum{};
      std::array<std::uint32_t, 3> count{};
      const std::uint8_t own = encoding.places[(y % 2) * 2 + x % 2];
      for (int dy = -1; dy <= 1; ++dy) {
        for (int dx = -1; dx <= 1; ++dx) {
          const std::uint32_t at_y = mirror(std::int64_t{y} + dy, image.height);
          const std::uint32_t at_x = mirror(std::int64_t{x} + dx, image.width);
          const std::uint8_t colour = encoding.places[(at_y % 2) * 2 + at_x % 2];
          if (colour == own && (dx != 0 || dy != 0)) continue;
          sum[colour] += image.data[std::size_t{at_y} * image.step + at_x];
          ++count[colour];
        }
      }
      std::uint8_t* out = rgb.data() + (std::size_t{y} * image.width + x) * 3;
      for (std::size_t colour = 0; colour < 3; ++colour) {
        const std::uint32_t parts = std::max(count[colour], 1U);
        out[colour] = static_cast<std::uint8_t>((sum[colour] + parts / 2) / parts);
      }
    }
  }
}

}  // namespace

Status to_rgb8(const RawImage& image, MutableByteSpan rgb, const Limits& limits) {
  const auto* encoding = std::ranges::find(kEncodings, image.encoding, &Encoding::name);
  if (encoding == std::end(kEncodings)) {
    return unimplemented(fmt::format("pixels of encoding '{}' are not read", image.encoding));
  }
  const Layout layout = encoding->layout;
  // Two pixels share their colours: a row of odd width ends in a whole pair.
  const std::uint64_t even_width = std::uint64_t{image.width} + image.width % 2;
  const bool pairs = layout == Layout::yuyv || layout == Layout::uyvy || layout == Layout::nv12;
  const std::uint64_t row_bytes = (pairs ? even_width : image.width) * encoding->pixel_bytes;
  const std::uint64_t rows =
      layout == Layout::nv12 ? image.height + (std::uint64_t{image.height} + 1) / 2 : image.height;
  ROPEWALK_RETURN_IF_ERROR(check_rows(image, row_bytes, rows, limits));
  if (rgb.size() != std::size_t{image.width} * image.height * 3) {
    return invalid_argument(fmt::format("{} bytes of memory for {} x {} pixels of RGB", rgb.size(),
                                        image.width, image.height));
  }
  if (layout == Layout::bayer) {
    convert_bayer(image, *encoding, rgb);
    return ok_status();
  }
  for (std::uint32_t y = 0; y < image.height; ++y) {
    const std::uint8_t* row = image.data.data() + std::size_t{y} * image.step;
    std::uint8_t* out = rgb.data() + std::size_t{y} * image.width * 3;
    switch (layout) {
      case Layout::packed:
        for (std::uint32_t x = 0; x < image.width; ++x) {
          const std::uint8_t* pixel = row + std::size_t{x} * encoding->pixel_bytes;
          for (std::size_t i = 0; i < 3; ++i)
            out[std::size_t{x} * 3 + i] = pixel[encoding->places[i]];
        }
        break;
      case Layout::grey8:
      case Layout::grey16: {
        const std::size_t upper = layout == Layout::grey16 && !image.is_big_endian ? 1 : 0;
        for (std::uint32_t x = 0; x < image.width; ++x) {
          std::fill_n(out + std::size_t{x} * 3, 3,
                      row[std::size_t{x} * encoding->pixel_bytes + upper]);
        }
        break;
      }
      case Layout::yuyv:
      case Layout::uyvy:
        convert_422(row, image.width, layout == Layout::yuyv, out);
        break;
      case Layout::nv12: {
        const std::uint8_t* colours =
            image.data.data() + (std::size_t{image.height} + y / 2) * image.step;
        for (std::uint32_t x = 0; x < image.width; ++x) {
          const std::uint8_t* pair = colours + std::size_t{x / 2} * 2;
          put_yuv(row[x], pair[0], pair[1], out + std::size_t{x} * 3);
        }
        break;
      }
      case Layout::bayer:
        break;
    }
  }
  return ok_status();
}

Status to_depth_m(const RawImage& image, std::span<float> depth, const Limits& limits) {
  const bool millimetres = image.encoding == "16UC1" || image.encoding == "mono16";
  if (!millimetres && image.encoding != "32FC1") {
    return unimplemented(fmt::format("depth of encoding '{}' is not read", image.encoding));
  }
  const std::size_t size = millimetres ? 2 : 4;
  ROPEWALK_RETURN_IF_ERROR(
      check_rows(image, std::uint64_t{image.width} * size, image.height, limits));
  if (depth.size() != std::size_t{image.width} * image.height) {
    return invalid_argument(fmt::format("memory for {} numbers for {} x {} pixels", depth.size(),
                                        image.width, image.height));
  }
  for (std::size_t i = 0; i < depth.size(); ++i) {
    const std::uint8_t* at =
        image.data.data() + i / image.width * image.step + i % image.width * size;
    std::array<std::uint8_t, 4> bytes{};
    std::copy_n(at, size, bytes.begin());
    if (image.is_big_endian) std::reverse(bytes.begin(), bytes.begin() + static_cast<int>(size));
    if (millimetres) {
      std::uint16_t value = 0;
      std::memcpy(&value, bytes.data(), 2);
      depth[i] = static_cast<float>(value) / 1000.0F;
    } else {
      std::memcpy(&depth[i], bytes.data(), 4);
    }
  }
  return ok_status();
}

}  // namespace ropewalk::message
