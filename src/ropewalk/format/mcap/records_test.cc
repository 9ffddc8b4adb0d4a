#include "ropewalk/format/mcap/records.h"

#include <random>

#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/record_reader.h"
#include "ropewalk/format/mcap/record_writer.h"

namespace ropewalk::mcap {
namespace {

template <typename Record>
Bytes content_of(const Record& record) {
  Bytes out;
  EXPECT_TRUE(append_record(out, record).ok());
  std::uint64_t length = 0;
  std::memcpy(&length, out.data() + 1, sizeof length);
  EXPECT_EQ(length, out.size() - kRecordHeadBytes);
  return Bytes(out.begin() + kRecordHeadBytes, out.end());
}

TEST(McapRecords, SchemaAndChannelReadBackEqual) {
  const Schema schema{.id = 7, .name = "pkg/T", .encoding = "ros2msg", .data = {1, 2, 3}};
  const auto schema_back = parse_schema(content_of(schema));
  ASSERT_TRUE(schema_back.ok());
  EXPECT_EQ(*schema_back, schema);
  const Channel channel{.id = 0,
                        .schema_id = 7,
                        .topic = "/joints",
                        .message_encoding = "cdr",
                        .metadata = {{"b", "2"}, {"a", ""}}};
  const auto channel_back = parse_channel(content_of(channel));
  ASSERT_TRUE(channel_back.ok());
  EXPECT_EQ(*channel_back, channel);
}

TEST(McapRecords, IndexRecordsReadBackEqual) {
  ChunkIndex chunk{.message_start_time = 5,
                   .message_end_time = ~std::uint64_t{0},
                   .chunk_start_offset = 100,
                   .chunk_length = 200,
                   .message_index_offsets = {{3, 300}, {1, 350}},
                   .message_index_length = 99,
                   .compression = "zstd",
                   .compressed_size = 150,
                   .uncompressed_size = 1000};
  const auto back = parse_chunk_index(content_of(chunk));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->message_index_offsets, chunk.message_index_offsets);
  EXPECT_EQ(back->message_end_time, ~std::uint64_t{0});
  EXPECT_EQ(back->compression, "zstd");
  EXPECT_EQ(back->uncompressed_size, 1000u);

  const MessageIndex index{.channel_id = 9, .records = {{5, 0}, {4, 31}}};
  const auto index_back = parse_message_index(content_of(index));
  ASSERT_TRUE(index_back.ok());
  ASSERT_EQ(index_back->records.size(), 2u);
  EXPECT_EQ(index_back->records[1].log_time, 4u);
  EXPECT_EQ(index_back->records[1].offset, 31u);

  const Statistics stats{.message_count = 3,
                         .schema_count = 1,
                         .channel_count = 2,
                         .attachment_count = 4,
                         .metadata_count = 5,
                         .chunk_count = 6,
                         .message_start_time = 7,
                         .message_end_time = 8,
                         .channel_message_counts = {{0, 1}, {2, 2}}};
  const auto stats_back = parse_statistics(content_of(stats));
  ASSERT_TRUE(stats_back.ok());
  EXPECT_EQ(stats_back->channel_message_counts, stats.channel_message_counts);
  EXPECT_EQ(stats_back->metadata_count, 5u);
}

TEST(McapRecords, TrailingBytesAreIgnoredExceptWhereARecordNeverGrows) {
  Bytes header = content_of(Header{.profile = "p", .library = "l"});
  header.insert(header.end(), {1, 0xFF, 0xFF});
  const auto padded = parse_header(header);
  ASSERT_TRUE(padded.ok());
  EXPECT_EQ(padded->library, "l");
  Bytes footer =
      content_of(Footer{.summary_start = 1, .summary_offset_start = 2, .summary_crc = 3});
  EXPECT_TRUE(parse_footer(footer).ok());
  footer.push_back(0);
  EXPECT_EQ(parse_footer(footer).status().code(), StatusCode::data_loss);
}

TEST(McapRecords, LengthBombsAreRefusedByFieldName) {
  Bytes schema = content_of(Schema{.id = 1, .name = "abc", .encoding = "e", .data = {}});
  for (std::size_t i = 2; i < 6; ++i) schema[i] = 0xFF;  // length of the name
  const auto refused = parse_schema(schema);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::data_loss);
  EXPECT_NE(refused.status().message().find("Schema.name"), std::string_view::npos);

  Bytes index = content_of(MessageIndex{.channel_id = 1, .records = {{1, 1}}});
  index[2] = 15;  // not a multiple of 16
  EXPECT_EQ(parse_message_index(index).status().code(), StatusCode::data_loss);
}

TEST(McapRecords, EveryPrefixOfEveryRecordIsRefusedOrReadWithoutOverrun) {
  const Bytes channel = content_of(Channel{
      .id = 1, .schema_id = 2, .topic = "t", .message_encoding = "m", .metadata = {{"k", "v"}}});
  for (std::size_t size = 0; size < channel.size(); ++size) {
    const Bytes cut(channel.begin(), channel.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(parse_channel(cut).ok()) << size;
  }
}

TEST(McapRecords, DuplicateKeysAreReadAndNeverWritten) {
  Channel channel{.id = 1,
                  .schema_id = 0,
                  .topic = "t",
                  .message_encoding = "m",
                  .metadata = {{"k", "1"}, {"k", "2"}}};
  Bytes out{42};
  const Status status = append_record(out, channel);
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_EQ(out, Bytes{42});
  EXPECT_EQ(duplicate_key(channel.metadata), "k");
}

TEST(McapRecords, Crc32CombineEqualsTheCrcOfTheWhole) {
  std::mt19937 random(7);
  Bytes bytes(5000);
  for (auto& b : bytes) b = static_cast<std::uint8_t>(random());
  const ByteSpan all(bytes);
  for (const std::size_t cut : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, bytes.size()}) {
    EXPECT_EQ(
        crc32_combine(crc32(0, all.first(cut)), crc32(0, all.subspan(cut)), bytes.size() - cut),
        crc32(0, all))
        << cut;
  }
}

TEST(McapRecords, OpcodesHaveNames) {
  EXPECT_EQ(opcode_name(0x07), "MessageIndex");
  EXPECT_EQ(opcode_name(0x0F), "DataEnd");
  EXPECT_EQ(opcode_name(0x7E), "unknown record 0x7e");
  EXPECT_EQ(opcode_name(0x80), "private record 0x80");
}

TEST(McapChunk, UncompressedSizeLieIsRefused) {
  const Bytes records(100, 0);
  Bytes buffer;
  ChunkHead head{.uncompressed_size = 1000, .records_size = 100};
  EXPECT_EQ(decode_chunk(head, records, buffer, {}).status().code(), StatusCode::data_loss);
  head.uncompressed_size = 1ULL << 62;
  EXPECT_EQ(decode_chunk(head, records, buffer, {}).status().code(),
            StatusCode::resource_exhausted);
  EXPECT_TRUE(buffer.empty());
}

TEST(McapChunk, ExpansionBeyondAnyCodecIsRefusedBeforeDecoding) {
  const Bytes records(8192, 0);
  Bytes buffer;
  const ChunkHead head{
      .uncompressed_size = 256ULL << 20, .compression = "zstd", .records_size = 8192};
  EXPECT_EQ(decode_chunk(head, records, buffer, {}).status().code(),
            StatusCode::resource_exhausted);
  EXPECT_TRUE(buffer.empty());
}

TEST(McapChunk, UnknownCodecIsNamed) {
  const Bytes records(10, 0);
  Bytes buffer;
  const ChunkHead head{.uncompressed_size = 10, .compression = "brotli", .records_size = 10};
  const auto refused = decode_chunk(head, records, buffer, {});
  EXPECT_EQ(refused.status().code(), StatusCode::unimplemented);
  EXPECT_NE(refused.status().message().find("brotli"), std::string_view::npos);
}

}  // namespace
}  // namespace ropewalk::mcap
