#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/codec/compression.h"

namespace ropewalk {
namespace {

Bytes sample(std::size_t size) {
  Bytes out(size);
  for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>((i * i) >> 5);
  return out;
}

constexpr Compression kAll[] = {Compression::none, Compression::lz4_frame, Compression::zstd,
                                Compression::gzip, Compression::zlib};

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
