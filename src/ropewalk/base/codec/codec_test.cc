#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/codec/compression.h"
#include "ropewalk/base/codec/stream.h"

namespace ropewalk {
namespace {

Bytes sample(std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>((i * i) >> 5);
  return out;
}

constexpr Compression kAll[] = {Compression::none, Compression::lz4_frame, Compression::zstd,
                                Compression::gzip, Compression::zlib,      Compression::bzip2};

TEST(Compression, RoundTripsEveryCodec) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{300'000}}) {
    const Bytes input = sample(size);
    for (const Compression codec : kAll) {
      Bytes packed{7};
      ASSERT_TRUE(compress(codec, input, 0, packed).ok());
      const ByteSpan frame = ByteSpan(packed).subspan(1);
      Bytes out(size);
      EXPECT_TRUE(decompress_exact(codec, frame, out).ok()) << compression_name(codec) << size;
      EXPECT_EQ(out, input);
      const auto grown = decompress(codec, frame, 1 << 20);
      ASSERT_TRUE(grown.ok()) << grown.status().to_string();
      EXPECT_EQ(*grown, input);
      EXPECT_EQ(compression_from_name(compression_name(codec)), codec);
    }
  }
}

TEST(Compression, RefusesWrongSizesDamageAndBombs) {
  const Bytes input(1 << 20, 0);
  for (const Compression codec : kAll) {
    Bytes packed;
    ASSERT_TRUE(compress(codec, input, 0, packed).ok());
    Bytes smaller(input.size() - 1);
    Bytes larger(input.size() + 1);
    EXPECT_FALSE(decompress_exact(codec, packed, smaller).ok()) << compression_name(codec);
    EXPECT_FALSE(decompress_exact(codec, packed, larger).ok()) << compression_name(codec);
    EXPECT_EQ(decompress(codec, packed, 1000).status().code(), StatusCode::resource_exhausted);
    if (codec == Compression::none) continue;
    Bytes out(input.size());
    packed.resize(packed.size() / 2);
    EXPECT_FALSE(decompress_exact(codec, packed, out).ok()) << compression_name(codec);
    EXPECT_FALSE(decompress(codec, packed, 1 << 22).ok()) << compression_name(codec);
  }
}

TEST(Compression, StreamsDecodePieceByPieceOverSeveralFrames) {
  const Bytes input = sample(300'000);
  for (const Compression codec : {Compression::lz4_frame, Compression::zstd, Compression::bzip2}) {
    Bytes packed;
    ASSERT_TRUE(compress(codec, input, 0, packed).ok());
    ASSERT_TRUE(compress(codec, input, 0, packed).ok());
    std::size_t at = 0;
    Bytes out;
    const Status status = decompress_stream(
        codec,
        [&]() -> Result<ByteSpan> {
          const std::size_t part = std::min<std::size_t>(777, packed.size() - at);
          at += part;
          return ByteSpan(packed).subspan(at - part, part);
        },
        [&](ByteSpan piece) {
          out.insert(out.end(), piece.begin(), piece.end());
          return ok_status();
        });
    EXPECT_TRUE(status.ok()) << compression_name(codec) << ": " << status.to_string();
    ASSERT_EQ(out.size(), 2 * input.size()) << compression_name(codec);
    EXPECT_TRUE(std::equal(input.begin(), input.end(), out.begin()));
    EXPECT_TRUE(std::equal(input.begin(), input.end(),
                           out.begin() + static_cast<std::ptrdiff_t>(input.size())));
  }
  EXPECT_EQ(
      decompress_stream(Compression::gzip, read_once({}), [](ByteSpan) { return ok_status(); })
          .code(),
      StatusCode::unimplemented);
}

TEST(Compression, PrefixOfACutFrameIsAPrefixOfTheContent) {
  Bytes input(2'500'000);
  std::uint32_t state = 1;
  for (std::uint8_t& byte : input) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>(state >> 29);
  }
  for (const Compression codec : {Compression::lz4_frame, Compression::zstd, Compression::bzip2}) {
    Bytes packed;
    ASSERT_TRUE(compress(codec, input, 0, packed).ok());
    const Bytes whole = decompress_prefix(codec, packed, input.size());
    EXPECT_EQ(whole, input) << compression_name(codec);
    const Bytes half =
        decompress_prefix(codec, ByteSpan(packed).first(packed.size() / 2), input.size());
    EXPECT_GT(half.size(), 100'000u) << compression_name(codec);
    ASSERT_LT(half.size(), input.size());
    EXPECT_TRUE(std::equal(half.begin(), half.end(), input.begin())) << compression_name(codec);
    EXPECT_EQ(decompress_prefix(codec, packed, 1000).size(), 1000u);
    EXPECT_TRUE(decompress_prefix(codec, as_bytes("no frame at all"), 1000).empty());
  }
  EXPECT_EQ(decompress_prefix(Compression::none, ByteSpan(input).first(9), 5).size(), 5u);
}

TEST(Compression, CutAndDamagedFramesGiveTheirWholeBlocks) {
  Bytes input(1'000'000);
  std::uint32_t state = 1;
  for (auto& byte : input) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<std::uint8_t>((state >> 24) & 0x3F);
  }
  for (const Compression codec : {Compression::zstd, Compression::lz4_frame}) {
    Bytes packed;
    ASSERT_TRUE(compress(codec, input, 0, packed).ok());
    EXPECT_EQ(decompress_prefix(codec, packed, 1 << 30), input);
    std::size_t before = 0;
    for (const std::size_t percent : {1u, 25u, 50u, 75u, 99u}) {
      const Bytes prefix =
          decompress_prefix(codec, ByteSpan(packed).first(packed.size() * percent / 100), 1 << 30);
      EXPECT_GE(prefix.size(), before);
      EXPECT_LT(prefix.size(), input.size());
      EXPECT_GE(prefix.size() + (128 << 10) + (64 << 10), input.size() * percent / 100);
      EXPECT_TRUE(std::ranges::equal(prefix, ByteSpan(input).first(prefix.size())));
      before = prefix.size();
    }
    EXPECT_GT(before, input.size() / 2);
    EXPECT_EQ(decompress_prefix(codec, packed, 1000).size(), 1000u);
    for (std::size_t i = 0; i < 64; ++i) packed[packed.size() / 2 + i] ^= 0x5A;
    const Bytes prefix = decompress_prefix(codec, packed, 1 << 30);
    EXPECT_GT(prefix.size(), input.size() / 4) << compression_name(codec);
    EXPECT_TRUE(decompress_prefix(codec, as_bytes("not a frame at all"), 1 << 30).empty());
  }
}

TEST(Compression, CheckedLz4FrameHasTheFlagsThatRos1Takes) {
  const Bytes input = sample(300'000);
  Bytes packed;
  ASSERT_TRUE(compress_lz4_checked(input, packed).ok());
  ASSERT_GT(packed.size(), 7u);
  EXPECT_EQ(to_hex(ByteSpan(packed).first(5)), "04224d1864");  // magic, then the flags
  Bytes out(input.size());
  EXPECT_TRUE(decompress_exact(Compression::lz4_frame, packed, out).ok());
  EXPECT_EQ(out, input);
}

TEST(Checksum, Md5MatchesTheSpecification) {
  EXPECT_EQ(md5_hex({}), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(md5_hex(as_bytes("message digest")), "f96b697d7cb7938d525a2f31aaf161d0");
}

TEST(Checksum, MatchesPublishedCheckValues) {
  const ByteSpan digits = as_bytes("123456789");
  EXPECT_EQ(crc32(0, digits), 0xCBF43926u);
  EXPECT_EQ(crc32c(0, digits), 0xE3069283u);
  EXPECT_EQ(crc32(crc32(0, digits.first(4)), digits.subspan(4)), 0xCBF43926u);
  EXPECT_EQ(crc32c(crc32c(0, digits.first(4)), digits.subspan(4)), 0xE3069283u);
  EXPECT_EQ(crc32(0, {}), 0u);
}

TEST(Sha256, MatchesTheStandardsVectorAndStartsAnew) {
  Sha256 hash;
  for (int i = 0; i < 2; ++i) {
    hash.update(as_bytes("a"));
    hash.update(as_bytes("bc"));
    EXPECT_EQ(hash.finish_hex(),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  }
}

}  // namespace
}  // namespace ropewalk
