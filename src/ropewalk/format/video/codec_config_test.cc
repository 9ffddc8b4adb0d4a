#include <gtest/gtest.h>

#include "ropewalk/format/video/bit_reader_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"

namespace ropewalk::video_internal {
namespace {

TEST(BitReader, ReadsExpGolombAndStopsAtTheEnd) {
  const Bytes bytes = {0b10100110, 0b01000010, 0b10000000};  // 1 010 011 00100 00101 0…
  BitReader in(bytes);
  EXPECT_EQ(in.ue(), 0U);
  EXPECT_EQ(in.ue(), 1U);
  EXPECT_EQ(in.ue(), 2U);
  EXPECT_EQ(in.ue(), 3U);
  EXPECT_EQ(in.se(), -2);
  EXPECT_FALSE(in.overrun());
  in.ue();
  EXPECT_TRUE(in.overrun());
}

TEST(CodecConfig, NamesPlanarFormats) {
  EXPECT_EQ(planar_format_name(1, 8), "yuv420p");
  EXPECT_EQ(planar_format_name(2, 10), "yuv422p10le");
  EXPECT_EQ(planar_format_name(0, 12), "gray12le");
  EXPECT_EQ(planar_format_name(3, 40), "");
}

TEST(CodecConfig, RemovesEmulationPrevention) {
  EXPECT_EQ(unescape_nal(Bytes{0, 0, 3, 1, 0, 0, 3, 0, 0, 3}), (Bytes{0, 0, 1, 0, 0, 0, 0}));
  EXPECT_EQ(unescape_nal(Bytes{3, 0, 3}), (Bytes{3, 0, 3}));
}

TEST(CodecConfig, SplitsByteStreamIntoUnits) {
  const Bytes stream = {0, 0, 0, 1, 7, 8, 0, 0, 1, 9, 0, 0, 0, 1, 10};
  const auto units = split_annexb(stream);
  ASSERT_EQ(units.size(), 3U);
  EXPECT_EQ(Bytes(units[0].begin(), units[0].end()), (Bytes{7, 8}));
  EXPECT_EQ(Bytes(units[1].begin(), units[1].end()), (Bytes{9}));
  EXPECT_EQ(Bytes(units[2].begin(), units[2].end()), (Bytes{10}));
  EXPECT_EQ(annexb_to_length_prefixed(stream),
            (Bytes{0, 0, 0, 2, 7, 8, 0, 0, 0, 1, 9, 0, 0, 0, 1, 10}));
}

TEST(CodecConfig, RefusesLengthsBeyondThePacket) {
  EXPECT_FALSE(split_length_prefixed(Bytes{0, 0, 0, 5, 1}, 4));
  EXPECT_FALSE(split_length_prefixed(Bytes{0, 0}, 4));
  const Bytes packet = {2, 7, 7, 1, 9};
  const auto units = split_length_prefixed(packet, 1);
  ASSERT_TRUE(units);
  EXPECT_EQ(units->size(), 2U);
}

TEST(CodecConfig, SurvivesEveryShortAndOddRecord) {
  Bytes bytes(64);
  for (int value = 0; value < 256; ++value) {
    std::fill(bytes.begin(), bytes.end(), static_cast<std::uint8_t>(value));
    bytes[0] = 1;
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      const ByteSpan record = ByteSpan(bytes).first(size);
      (void)parse_avcc(record);
      (void)parse_hvcc(record);
      (void)hvcc_is_complete(record);
      (void)parse_vpcc(record);
      (void)parse_h264_sps(record);
      (void)av1c_from_obus(record);
    }
  }
  EXPECT_FALSE(parse_avcc(Bytes{1, 100, 0, 30}));
  EXPECT_FALSE(parse_vpcc(Bytes(11)));
}

TEST(CodecConfig, ReadsAv1ConfigurationWithoutSequenceHeader) {
  const auto picture = parse_av1c(Bytes{0x81, 0x04, 0x4c, 0x00});
  ASSERT_TRUE(picture);
  EXPECT_EQ(picture->bit_depth, 10);
  EXPECT_EQ(picture->chroma_format, 1);
}

TEST(CodecConfig, DropsTemporalDelimiters) {
  const Bytes unit = {0x12, 0x00, 0x32, 0x02, 0xaa, 0xbb};
  EXPECT_EQ(strip_temporal_delimiters(unit), (Bytes{0x32, 0x02, 0xaa, 0xbb}));
  EXPECT_FALSE(strip_temporal_delimiters(Bytes{0x32, 0x09, 0xaa}));
}

}  // namespace
}  // namespace ropewalk::video_internal
