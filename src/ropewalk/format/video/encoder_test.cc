#include "ropewalk/format/video/encoder.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

#include "ropewalk/format/video/decoder.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

/// A smooth picture that moves with its number.
Bytes picture(int width, int height, int number) {
  Bytes pixels;
  pixels.reserve(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double phase = 0.05 * (x + 2 * number);
      pixels.push_back(static_cast<std::uint8_t>(128 + 80 * std::sin(phase)));
      pixels.push_back(static_cast<std::uint8_t>(128 + 80 * std::cos(0.04 * y)));
      pixels.push_back(static_cast<std::uint8_t>(40 + 5 * number));
    }
  }
  return pixels;
}

struct Encoded {
  Bytes file;
  Result<EncodedVideo> report = internal("not run");
};

Encoded encode(int width, int height, int frames, Rational fps, const EncoderSettings& settings) {
  Encoded out;
  const auto sink = memory_sink(out.file, "out.mp4");
  auto encoder = VideoEncoder::create(*sink, width, height, fps, settings);
  if (!encoder.ok()) {
    out.report = encoder.status();
    return out;
  }
  for (int i = 0; i < frames; ++i) {
    if (const Status status = (*encoder)->write(picture(width, height, i)); !status.ok()) {
      out.report = status;
      return out;
    }
  }
  out.report = (*encoder)->finish();
  return out;
}

double mean_difference(ByteSpan a, ByteSpan b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::abs(int{a[i]} - int{b[i]});
  return sum / static_cast<double>(a.size());
}

TEST(Encoder, WritesTheContractsDefaults) {
  const Encoded encoded = encode(160, 120, 25, {30, 1}, {});
  ASSERT_TRUE(encoded.report.ok()) << encoded.report.status().to_string();
  EXPECT_EQ(encoded.report->frames, 25);
  EXPECT_EQ(encoded.report->file_bytes, encoded.file.size());
  EXPECT_FALSE(encoded.report->padded_to_even);
  const auto index = probe_mp4(*view_source(encoded.file));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->params, encoded.report->params);
  EXPECT_EQ(index->params.codec, "h264");
  EXPECT_EQ(index->params.pix_fmt, "yuv420p");
  EXPECT_EQ(index->params.color_range, 1);
  EXPECT_EQ(index->params.color_matrix, 6);
  EXPECT_EQ(index->timescale, 15360U);
  EXPECT_EQ(index->fps, (Rational{30, 1}));
  EXPECT_EQ(index->reorder_delay, 0);
  EXPECT_FALSE(index->has_edit_list);
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_EQ(index->packets[i].keyframe, i % 10 == 0) << i;
    EXPECT_EQ(index->packets[i].pts, static_cast<std::int64_t>(i) * 512);
  }
  for (const std::size_t begin : {0U, 10U, 20U}) {
    EXPECT_TRUE(check_remuxable(*index, *view_source(encoded.file), {begin, 25}).ok());
  }
}

TEST(Encoder, GivesBackThePicturesItWasGiven) {
  for (const Rational fps : {Rational{30, 1}, Rational{30000, 1001}}) {
    const Encoded encoded = encode(160, 120, 25, fps, {.crf = 12});
    ASSERT_TRUE(encoded.report.ok());
    const std::shared_ptr<const Source> source = view_source(encoded.file);
    const auto index = std::make_shared<const Mp4Index>(*probe_mp4(*source));
    EXPECT_EQ(index->fps, fps);
    auto decoder = VideoDecoder::open(index, source);
    ASSERT_TRUE(decoder.ok());
    Bytes pixels((*decoder)->frame_shape().frame_bytes());
    for (int i = 0; i < 25; ++i) {
      ASSERT_TRUE((*decoder)->read({i, i + 1}, pixels).ok());
      EXPECT_LT(mean_difference(pixels, picture(160, 120, i)), 2.0) << i;
    }
  }
}

TEST(Encoder, IsDeterministic) {
  const Encoded first = encode(160, 120, 25, {30, 1}, {});
  const Encoded second = encode(160, 120, 25, {30, 1}, {});
  ASSERT_TRUE(first.report.ok() && second.report.ok());
  EXPECT_EQ(first.file, second.file);
  EXPECT_EQ(first.report->packet_sha256, second.report->packet_sha256);
}

TEST(Encoder, PadsOddSizesByRepeatingTheLastRowAndColumn) {
  const Encoded encoded = encode(61, 43, 3, {10, 1}, {.crf = 5});
  ASSERT_TRUE(encoded.report.ok()) << encoded.report.status().to_string();
  EXPECT_TRUE(encoded.report->padded_to_even);
  EXPECT_EQ(encoded.report->source_width, 61);
  EXPECT_EQ(encoded.report->source_height, 43);
  EXPECT_EQ(encoded.report->params.width, 62);
  EXPECT_EQ(encoded.report->params.height, 44);
  const std::shared_ptr<const Source> source = view_source(encoded.file);
  const auto index = std::make_shared<const Mp4Index>(*probe_mp4(*source));
  auto decoder = VideoDecoder::open(index, source);
  ASSERT_TRUE(decoder.ok());
  Bytes pixels((*decoder)->frame_shape().frame_bytes());
  ASSERT_TRUE((*decoder)->read({2, 3}, pixels).ok());
  const auto at = [&](int x, int y, int c) {
    return int{pixels[static_cast<std::size_t>((y * 62 + x) * 3 + c)]};
  };
  for (int y = 0; y < 44; ++y) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(at(61, y, c), at(60, y, c), 6);
  }
  for (int x = 0; x < 62; ++x) {
    for (int c = 0; c < 3; ++c) EXPECT_NEAR(at(x, 43, c), at(x, 42, c), 6);
  }
}

TEST(Encoder, SpillsPacketsToTheFileNamedAndRemovesIt) {
  test::TempDir temp;
  const auto spill = temp.path() / "packets";
  const Encoded in_memory = encode(160, 120, 25, {30, 1}, {});
  const Encoded spilled =
      encode(160, 120, 25, {30, 1}, {.max_buffer_bytes = 1000, .spill_path = spill});
  ASSERT_TRUE(spilled.report.ok()) << spilled.report.status().to_string();
  EXPECT_EQ(spilled.file, in_memory.file);
  EXPECT_FALSE(std::filesystem::exists(spill));
  const Encoded refused = encode(160, 120, 25, {30, 1}, {.max_buffer_bytes = 1000});
  EXPECT_EQ(refused.report.status().code(), StatusCode::resource_exhausted);
}

TEST(Encoder, RefusesWrongInput) {
  Bytes out;
  const auto sink = memory_sink(out);
  const auto code = [&](int width, int height, Rational fps, const EncoderSettings& settings) {
    return VideoEncoder::create(*sink, width, height, fps, settings).status().code();
  };
  EXPECT_EQ(code(1, 100, {30, 1}, {}), StatusCode::invalid_argument);
  EXPECT_EQ(code(64, 64, {0, 1}, {}), StatusCode::invalid_argument);
  EXPECT_EQ(code(64, 64, {30, 1}, {.crf = 52}), StatusCode::invalid_argument);
  EXPECT_EQ(code(64, 64, {30, 1}, {.gop = 0}), StatusCode::invalid_argument);
  EXPECT_EQ(code(64, 64, {30, 1}, {.preset = "warp"}), StatusCode::invalid_argument);
  EXPECT_EQ(code(32, 64, {30, 1}, {.codec = VideoCodec::av1}), StatusCode::unimplemented);
  auto encoder = VideoEncoder::create(*sink, 64, 64, {30, 1});
  ASSERT_TRUE(encoder.ok());
  EXPECT_EQ((*encoder)->write(Bytes(10)).code(), StatusCode::invalid_argument);
  EXPECT_EQ((*encoder)->finish().status().code(), StatusCode::failed_precondition);
  EXPECT_TRUE(out.empty());
}

TEST(Encoder, EncodesAv1) {
  const Encoded encoded = encode(128, 96, 25, {30, 1}, {.codec = VideoCodec::av1, .crf = 20});
  if (encoded.report.status().code() == StatusCode::unimplemented) {
    GTEST_SKIP() << encoded.report.status().message();
  }
  ASSERT_TRUE(encoded.report.ok()) << encoded.report.status().to_string();
  const std::shared_ptr<const Source> source = view_source(encoded.file);
  const auto index = std::make_shared<const Mp4Index>(*probe_mp4(*source));
  EXPECT_EQ(index->params, encoded.report->params);
  EXPECT_EQ(index->params.codec, "av1");
  EXPECT_EQ(index->reorder_delay, 0);
  for (std::size_t i = 0; i < 25; ++i) EXPECT_EQ(index->packets[i].keyframe, i % 10 == 0) << i;
  auto decoder = VideoDecoder::open(index, source);
  ASSERT_TRUE(decoder.ok());
  Bytes pixels((*decoder)->frame_shape().frame_bytes());
  for (const int i : {0, 13, 24}) {
    ASSERT_TRUE((*decoder)->read({i, i + 1}, pixels).ok());
    EXPECT_LT(mean_difference(pixels, picture(128, 96, i)), 4.0) << i;
  }
}

}  // namespace
}  // namespace ropewalk
