#include "ropewalk/format/image/image.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

namespace ropewalk {
namespace {

FrameShape shape_of(int height, int width, int channels, int bytes_per_sample = 1) {
  return {
      .height = height, .width = width, .channels = channels, .bytes_per_sample = bytes_per_sample};
}

/// Smooth samples, so that lossy coding stays near them.
Bytes smooth(const FrameShape& shape) {
  Bytes pixels(shape.frame_bytes());
  for (std::size_t i = 0; i < pixels.size(); ++i) {
    const auto x = static_cast<double>(i % static_cast<std::size_t>(shape.width * shape.channels));
    pixels[i] = static_cast<std::uint8_t>(128 + 100 * std::sin(x / 90.0));
  }
  return pixels;
}

Bytes noise(const FrameShape& shape) {
  Bytes pixels(shape.frame_bytes());
  std::uint32_t state = 1;
  for (std::uint8_t& value : pixels) {
    state = state * 1664525U + 1013904223U;
    value = static_cast<std::uint8_t>(state >> 24);
  }
  return pixels;
}

TEST(Png, RoundTripsEveryShapeItWrites) {
  for (const int channels : {1, 3}) {
    for (const int sample_bytes : {1, 2}) {
      const FrameShape shape = shape_of(21, 17, channels, sample_bytes);
      const Bytes pixels = noise(shape);
      const auto png = encode_png(shape, pixels);
      ASSERT_TRUE(png.ok()) << png.status().to_string();
      const auto info = probe_image(*png);
      ASSERT_TRUE(info.ok());
      EXPECT_EQ(info->kind, ImageKind::png);
      EXPECT_EQ(info->width, 17);
      EXPECT_EQ(info->height, 21);
      EXPECT_EQ(info->channels, channels);
      EXPECT_EQ(info->bits_per_sample, sample_bytes * 8);
      const auto image = decode_image(*png);
      ASSERT_TRUE(image.ok()) << image.status().to_string();
      EXPECT_EQ(image->shape, shape);
      EXPECT_EQ(image->pixels, pixels);
    }
  }
}

TEST(Png, DropsAlphaAndKeepsColour) {
  const FrameShape shape = shape_of(5, 7, 4);
  const Bytes pixels = noise(shape);
  const auto image = decode_image(*encode_png(shape, pixels));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->shape, shape_of(5, 7, 3));
  for (std::size_t i = 0; i < 35; ++i) {
    for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(image->pixels[3 * i + c], pixels[4 * i + c]);
  }
}

TEST(Png, GivesRgbOrGrayOnRequest) {
  const FrameShape gray = shape_of(4, 4, 1, 2);
  Bytes deep(gray.frame_bytes());
  for (std::size_t i = 0; i < deep.size(); i += 2) {
    deep[i] = 0x34;
    deep[i + 1] = 0x12;  // 0x1234, little-endian
  }
  const auto png = encode_png(gray, deep);
  const auto rgb = decode_image(*png, {}, ImageChannels::rgb);
  ASSERT_TRUE(rgb.ok()) << rgb.status().to_string();
  EXPECT_EQ(rgb->shape, shape_of(4, 4, 3));
  EXPECT_EQ(rgb->pixels, Bytes(48, 0x12));
  const auto stored = decode_image(*png, {}, ImageChannels::gray);
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->pixels, deep);

  Bytes colours = {255, 0, 0, 0, 255, 0, 0, 0, 255, 255, 255, 255};
  const auto luma = decode_image(*encode_png(shape_of(1, 4, 3), colours), {}, ImageChannels::gray);
  ASSERT_TRUE(luma.ok());
  EXPECT_EQ(luma->pixels, (Bytes{76, 150, 29, 255}));
}

TEST(Png, ReportsDamage) {
  const FrameShape shape = shape_of(30, 30, 3);
  Bytes png = *encode_png(shape, noise(shape));
  Bytes cut(png.begin(), png.begin() + static_cast<std::ptrdiff_t>(png.size() / 2));
  EXPECT_EQ(decode_image(cut).status().code(), StatusCode::data_loss);
  png[png.size() / 2] ^= 1;
  EXPECT_EQ(decode_image(png).status().code(), StatusCode::data_loss);
}

TEST(Jpeg, ComesBackCloseToWhatWentIn) {
  for (const int channels : {1, 3}) {
    const FrameShape shape = shape_of(48, 64, channels);
    const Bytes pixels = smooth(shape);
    const auto jpeg = encode_jpeg(shape, pixels, 95);
    ASSERT_TRUE(jpeg.ok()) << jpeg.status().to_string();
    EXPECT_EQ(image_kind(*jpeg), ImageKind::jpeg);
    const auto info = probe_image(*jpeg);
    ASSERT_TRUE(info.ok()) << info.status().to_string();
    EXPECT_EQ(info->width, 64);
    EXPECT_EQ(info->height, 48);
    EXPECT_EQ(info->channels, channels);
    const auto image = decode_image(*jpeg);
    ASSERT_TRUE(image.ok());
    ASSERT_EQ(image->shape, shape);
    for (std::size_t i = 0; i < pixels.size(); ++i) EXPECT_NEAR(image->pixels[i], pixels[i], 8);
    const auto gray = decode_image(*jpeg, {}, ImageChannels::gray);
    ASSERT_TRUE(gray.ok());
    EXPECT_EQ(gray->shape.channels, 1);
    const auto rgb = decode_image(*jpeg, {}, ImageChannels::rgb);
    ASSERT_TRUE(rgb.ok());
    EXPECT_EQ(rgb->shape.channels, 3);
  }
}

TEST(Jpeg, ReportsCutDataInsteadOfGrayFill) {
  const FrameShape shape = shape_of(48, 64, 3);
  Bytes jpeg = *encode_jpeg(shape, noise(shape));
  jpeg.resize(jpeg.size() / 2);
  EXPECT_EQ(decode_image(jpeg).status().code(), StatusCode::data_loss);
}

TEST(Image, DecodesIntoGivenMemoryOfTheRightShape) {
  const FrameShape shape = shape_of(6, 8, 3);
  const Bytes pixels = noise(shape);
  const Bytes png = *encode_png(shape, pixels);
  Bytes out(shape.frame_bytes());
  ASSERT_TRUE(decode_image_into(png, shape, out).ok());
  EXPECT_EQ(out, pixels);
  EXPECT_EQ(decode_image_into(png, shape_of(8, 6, 3), out).code(), StatusCode::invalid_argument);
  EXPECT_EQ(decode_image_into(png, shape, MutableByteSpan(out).first(10)).code(),
            StatusCode::invalid_argument);
}

TEST(Image, KeepsToPixelLimitBeforeDecoding) {
  const FrameShape shape = shape_of(100, 100, 1);
  const Limits limits{.max_image_pixels = 9999};
  EXPECT_EQ(decode_image(*encode_png(shape, noise(shape)), limits).status().code(),
            StatusCode::resource_exhausted);
  EXPECT_EQ(decode_image(*encode_jpeg(shape, noise(shape)), limits).status().code(),
            StatusCode::resource_exhausted);
}

TEST(Image, TellsOtherKindsByNameAndSize) {
  const Bytes tiff = {'I', 'I', 42, 0, 8, 0, 0, 0, 2,  0,                     //
                      0,   1,   3,  0, 1, 0, 0, 0, 64, 0, 0, 0,               // width
                      1,   1,   4,  0, 1, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0};  // height
  const auto info = probe_image(tiff);
  ASSERT_TRUE(info.ok()) << info.status().to_string();
  EXPECT_EQ(info->kind, ImageKind::tiff);
  EXPECT_EQ(info->width, 64);
  EXPECT_EQ(info->height, 48);
  const auto decoded = decode_image(tiff);
  EXPECT_EQ(decoded.status().code(), StatusCode::unimplemented);
  EXPECT_NE(decoded.status().message().find("tiff"), std::string_view::npos);

  const Bytes webp = {'R', 'I', 'F', 'F', 30, 0, 0, 0, 'W', 'E', 'B', 'P', 'V', 'P', '8',
                      'X', 10,  0,   0,   0,  0, 0, 0, 0,   63,  0,   0,   47,  0,   0};
  const auto web = probe_image(webp);
  ASSERT_TRUE(web.ok()) << web.status().to_string();
  EXPECT_EQ(web->kind, ImageKind::webp);
  EXPECT_EQ(web->width, 64);
  EXPECT_EQ(web->height, 48);
}

TEST(Image, RefusesBytesOfNoKnownKind) {
  EXPECT_EQ(image_kind({}), ImageKind::unknown);
  EXPECT_EQ(probe_image({}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(decode_image(Bytes(100, 7)).status().code(), StatusCode::invalid_argument);
}

TEST(Image, RefusesFilesCutAnywhereInThePicture) {
  const FrameShape shape = shape_of(9, 9, 3);
  const Bytes png = *encode_png(shape, noise(shape));
  const Bytes jpeg = *encode_jpeg(shape, noise(shape));
  // A PNG that lacks only checksums and its end mark (20 bytes) still holds every pixel.
  for (std::size_t size = 0; size + 20 < png.size(); ++size) {
    EXPECT_FALSE(decode_image(ByteSpan(png).first(size)).ok()) << size;
  }
  for (std::size_t size = 0; size + 2 < jpeg.size(); ++size) {
    EXPECT_FALSE(decode_image(ByteSpan(jpeg).first(size)).ok()) << size;
  }
}

TEST(Image, RefusesShapesItCannotWrite) {
  const auto code = [](const auto& result) { return result.status().code(); };
  EXPECT_EQ(code(encode_jpeg(shape_of(4, 4, 4), Bytes(64))), StatusCode::invalid_argument);
  EXPECT_EQ(code(encode_jpeg(shape_of(4, 4, 3), Bytes(48), 0)), StatusCode::invalid_argument);
  EXPECT_EQ(code(encode_png(shape_of(4, 4, 2), Bytes(32))), StatusCode::invalid_argument);
  EXPECT_EQ(code(encode_png(shape_of(4, 4, 3), Bytes(47))), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace ropewalk
