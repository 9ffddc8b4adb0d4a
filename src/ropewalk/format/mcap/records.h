#pragma once
// The fifteen MCAP records: their fields in order on disk, parsed from and written to bytes.
// Parsers take the content of a record, without opcode and length, and never trust a length in it:
// every one is compared with the bytes that remain before anything is allocated. Bytes after the
// last known field are ignored, except in Message, DataEnd and Footer, which never grow.
// Spec: mcap.dev/spec, Records; Ropewalk's MCAP page, section 2.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk::mcap {

inline constexpr std::array<std::uint8_t, 8> kMagic{0x89, 'M', 'C', 'A', 'P', '0', '\r', '\n'};
inline constexpr std::size_t kRecordHeadBytes = 9;    ///< opcode and content length
inline constexpr std::size_t kMessageHeadBytes = 22;  ///< content of a Message before its data
inline constexpr std::size_t kFooterContentBytes = 20;

/// 0x80 to 0xFF are private, 0x00 is invalid; both and unassigned values may stand in a file.
enum class Opcode : std::uint8_t {
  header = 0x01,
  footer = 0x02,
  schema = 0x03,
  channel = 0x04,
  message = 0x05,
  chunk = 0x06,
  message_index = 0x07,
  chunk_index = 0x08,
  attachment = 0x09,
  attachment_index = 0x0A,
  statistics = 0x0B,
  metadata = 0x0C,
  metadata_index = 0x0D,
  summary_offset = 0x0E,
  data_end = 0x0F,
};

/// "Chunk", "MessageIndex", …, "private record 0x80", "unknown record 0x7e".
std::string opcode_name(std::uint8_t opcode);

/// Keys in the order of the file; duplicates are kept (undefined by the format, see duplicate_key).
using StringMap = std::vector<std::pair<std::string, std::string>>;
/// Returns the first key that occurs twice, or nullopt.
std::optional<std::string> duplicate_key(const StringMap& map);

struct Header {
  std::string profile;
  std::string library;
};
struct Footer {
  std::uint64_t summary_start = 0;
  std::uint64_t summary_offset_start = 0;
  std::uint32_t summary_crc = 0;
};
struct Schema {
  std::uint16_t id = 0;  ///< never 0 in a file
  std::string name;
  std::string encoding;
  Bytes data;
  bool operator==(const Schema&) const = default;
};
struct Channel {
  std::uint16_t id = 0;
  std::uint16_t schema_id = 0;  ///< 0: no schema
  std::string topic;
  std::string message_encoding;
  StringMap metadata;
  bool operator==(const Channel&) const = default;
};
/// Units: times in nanoseconds of an epoch that only the user knows; the full range is legal.
struct MessageHead {
  std::uint16_t channel_id = 0;
  std::uint32_t sequence = 0;
  std::uint64_t log_time = 0;
  std::uint64_t publish_time = 0;
};
/// Lifetime: `data` is a view into what was parsed.
struct Message : MessageHead {
  ByteSpan data;
};
/// A Chunk without its `records` bytes.
struct ChunkHead {
  std::uint64_t message_start_time = 0;
  std::uint64_t message_end_time = 0;
  std::uint64_t uncompressed_size = 0;
  std::uint32_t uncompressed_crc = 0;
  std::string compression;  ///< "", "lz4", "zstd"; others are kept as text
  std::uint64_t records_size = 0;
};
struct MessageIndex {
  struct Entry {
    std::uint64_t log_time = 0;
    std::uint64_t offset = 0;  ///< into the uncompressed records
  };
  std::uint16_t channel_id = 0;
  std::vector<Entry> records;
};
struct ChunkIndex {
  std::uint64_t message_start_time = 0;
  std::uint64_t message_end_time = 0;
  std::uint64_t chunk_start_offset = 0;
  std::uint64_t chunk_length = 0;  ///< with the 9 bytes of the record head
  std::vector<std::pair<std::uint16_t, std::uint64_t>> message_index_offsets;
  std::uint64_t message_index_length = 0;
  std::string compression;
  std::uint64_t compressed_size = 0;
  std::uint64_t uncompressed_size = 0;
};
/// An Attachment without its data.
struct AttachmentHead {
  std::uint64_t log_time = 0;
  std::uint64_t create_time = 0;
  std::string name;
  std::string media_type;
  std::uint64_t data_size = 0;
};
/// Lifetime: `data` is a view into what was parsed.
struct Attachment : AttachmentHead {
  ByteSpan data;
  std::uint32_t crc = 0;           ///< as stored; 0 means not computed
  std::uint32_t computed_crc = 0;  ///< over every byte before the field
};
struct AttachmentIndex {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< with the 9 bytes of the record head
  std::uint64_t log_time = 0;
  std::uint64_t create_time = 0;
  std::uint64_t data_size = 0;
  std::string name;
  std::string media_type;
};
struct Statistics {
  std::uint64_t message_count = 0;
  std::uint16_t schema_count = 0;
  std::uint32_t channel_count = 0;
  std::uint32_t attachment_count = 0;
  std::uint32_t metadata_count = 0;
  std::uint32_t chunk_count = 0;
  std::uint64_t message_start_time = 0;
  std::uint64_t message_end_time = 0;
  std::vector<std::pair<std::uint16_t, std::uint64_t>> channel_message_counts;
};
struct Metadata {
  std::string name;
  StringMap metadata;
};
struct MetadataIndex {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< with the 9 bytes of the record head
  std::string name;
};
struct SummaryOffset {
  std::uint8_t group_opcode = 0;
  std::uint64_t group_start = 0;
  std::uint64_t group_length = 0;
};
struct DataEnd {
  std::uint32_t data_section_crc = 0;
};

// Parsers. Errors: data_loss naming the record, the field, the bytes needed and the bytes left.
Result<Header> parse_header(ByteSpan content);
Result<Footer> parse_footer(ByteSpan content);
Result<Schema> parse_schema(ByteSpan content);
Result<Channel> parse_channel(ByteSpan content);
Result<Message> parse_message(ByteSpan content);
/// Parses up to the `records` bytes, which start at `*records_offset` of the content. Needs only
/// the beginning of the record, so that a chunk cut by the end of the file is still described.
Result<ChunkHead> parse_chunk_head(ByteSpan content, std::size_t* records_offset);
Result<MessageIndex> parse_message_index(ByteSpan content);
Result<ChunkIndex> parse_chunk_index(ByteSpan content);
/// Parses up to the data, which starts at `*data_offset` of the content.
Result<AttachmentHead> parse_attachment_head(ByteSpan content, std::size_t* data_offset);
Result<Attachment> parse_attachment(ByteSpan content);
Result<AttachmentIndex> parse_attachment_index(ByteSpan content);
Result<Statistics> parse_statistics(ByteSpan content);
Result<Metadata> parse_metadata(ByteSpan content);
Result<MetadataIndex> parse_metadata_index(ByteSpan content);
Result<SummaryOffset> parse_summary_offset(ByteSpan content);
Result<DataEnd> parse_data_end(ByteSpan content);

}  // namespace ropewalk::mcap
