#include "ropewalk/format/mcap/record_writer.h"

#include <array>
#include <limits>

#include <fmt/format.h>

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kMaxU32 = std::numeric_limits<std::uint32_t>::max();

// Writes one record: the head first, its length patched by finish(). What does not fit the format
// is kept as the first error, and the bytes written so far are taken back.
class RecordOut {
 public:
  RecordOut(Bytes& out, Opcode opcode) : out_(out), writer_(out), start_(out.size()) {
    writer_.write_le(static_cast<std::uint8_t>(opcode));
    writer_.write_le(std::uint64_t{0});
  }
  template <typename T>
  RecordOut& integer(T value) {
    writer_.write_le(value);
    return *this;
  }
  RecordOut& sized(std::string_view field, ByteSpan bytes) {
    length(field, bytes.size());
    writer_.write(bytes);
    return *this;
  }
  RecordOut& text(std::string_view field, std::string_view value) {
    return sized(field, as_bytes(value));
  }
  RecordOut& string_map(std::string_view field, const StringMap& map) {
    if (auto key = duplicate_key(map)) {
      fail(invalid_argument(fmt::format("{}: the key \"{}\" occurs twice", field, *key)));
      return *this;
    }
    std::uint64_t size = 0;
    for (const auto& [key, value] : map) size += 8 + key.size() + value.size();
    length(field, size);
    for (const auto& [key, value] : map) text(field, key).text(field, value);
    return *this;
  }
  RecordOut& id_map(std::string_view field,
                    const std::vector<std::pair<std::uint16_t, std::uint64_t>>& map) {
    length(field, map.size() * 10);
    for (const auto& [id, value] : map) integer(id).integer(value);
    return *this;
  }
  void length(std::string_view field, std::uint64_t size) {
    if (size > kMaxU32) {
      fail(invalid_argument(
          fmt::format("{}: {} bytes is more than a record can hold (4 GiB - 1)", field, size)));
    }
    writer_.write_le(static_cast<std::uint32_t>(size));
  }
  /// `trailing` bytes of the content follow later, written by the caller.
  Status finish(std::uint64_t trailing = 0) {
    if (!status_.ok()) {
      out_.resize(start_);
      return std::move(status_);
    }
    const std::uint64_t content = out_.size() - start_ - kRecordHeadBytes + trailing;
    std::memcpy(out_.data() + start_ + 1, &content, sizeof content);
    return ok_status();
  }

 private:
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  Bytes& out_;
  ByteWriter writer_;
  std::size_t start_;
  Status status_;
};

using Gf2Matrix = std::array<std::uint32_t, 32>;

std::uint32_t times(const Gf2Matrix& matrix, std::uint32_t vector) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; vector != 0; ++i, vector >>= 1) {
    if ((vector & 1) != 0) sum ^= matrix[i];
  }
  return sum;
}

Gf2Matrix square(const Gf2Matrix& matrix) {
  Gf2Matrix out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = times(matrix, matrix[i]);
  return out;
}

}  // namespace

Status append_record(Bytes& out, const Header& record) {
  return RecordOut(out, Opcode::header)
      .text("Header.profile", record.profile)
      .text("Header.library", record.library)
      .finish();
}

Status append_record(Bytes& out, const Footer& record) {
  return RecordOut(out, Opcode::footer)
      .integer(record.summary_start)
      .integer(record.summary_offset_start)
      .integer(record.summary_crc)
      .finish();
}

Status append_record(Bytes& out, const Schema& record) {
  return RecordOut(out, Opcode::schema)
      .integer(record.id)
      .text("Schema.name", record.name)
      .text("Schema.encoding", record.encoding)
      .sized("Schema.data", record.data)
      .finish();
}

Status append_record(Bytes& out, const Channel& record) {
  return RecordOut(out, Opcode::channel)
      .integer(record.id)
      .integer(record.schema_id)
      .text("Channel.topic", record.topic)
      .text("Channel.message_encoding", record.message_encoding)
      .string_map("Channel.metadata", record.metadata)
      .finish();
}

Status append_record(Bytes& out, const Message& record) {
  append_message_head(out, record, record.data.size());
  out.insert(out.end(), record.data.begin(), record.data.end());
  return ok_status();
}

Status append_record(Bytes& out, const MessageIndex& record) {
  RecordOut fields(out, Opcode::message_index);
  fields.integer(record.channel_id);
  fields.length("MessageIndex.records", record.records.size() * 16);
  for (const MessageIndex::Entry& entry : record.records) {
    fields.integer(entry.log_time).integer(entry.offset);
  }
  return fields.finish();
}

Status append_record(Bytes& out, const ChunkIndex& record) {
  return RecordOut(out, Opcode::chunk_index)
      .integer(record.message_start_time)
      .integer(record.message_end_time)
      .integer(record.chunk_start_offset)
      .integer(record.chunk_length)
      .id_map("ChunkIndex.message_index_offsets", record.message_index_offsets)
      .integer(record.message_index_length)
      .text("ChunkIndex.compression", record.compression)
      .integer(record.compressed_size)
      .integer(record.uncompressed_size)
      .finish();
}

Status append_record(Bytes& out, const AttachmentIndex& record) {
  return RecordOut(out, Opcode::attachment_index)
      .integer(record.offset)
      .integer(record.length)
      .integer(record.log_time)
      .integer(record.create_time)
      .integer(record.data_size)
      .text("AttachmentIndex.name", record.name)
      .text("AttachmentIndex.media_type", record.media_type)
      .finish();
}

Status append_record(Bytes& out, const Statistics& record) {
  return RecordOut(out, Opcode::statistics)
      .integer(record.message_count)
      .integer(record.schema_count)
      .integer(record.channel_count)
      .integer(record.attachment_count)
      .integer(record.metadata_count)
      .integer(record.chunk_count)
      .integer(record.message_start_time)
      .integer(record.message_end_time)
      .id_map("Statistics.channel_message_counts", record.channel_message_counts)
      .finish();
}

Status append_record(Bytes& out, const Metadata& record) {
  return RecordOut(out, Opcode::metadata)
      .text("Metadata.name", record.name)
      .string_map("Metadata.metadata", record.metadata)
      .finish();
}

Status append_record(Bytes& out, const MetadataIndex& record) {
  return RecordOut(out, Opcode::metadata_index)
      .integer(record.offset)
      .integer(record.length)
      .text("MetadataIndex.name", record.name)
      .finish();
}

Status append_record(Bytes& out, const SummaryOffset& record) {
  return RecordOut(out, Opcode::summary_offset)
      .integer(record.group_opcode)
      .integer(record.group_start)
      .integer(record.group_length)
      .finish();
}

Status append_record(Bytes& out, const DataEnd& record) {
  return RecordOut(out, Opcode::data_end).integer(record.data_section_crc).finish();
}

Status append_chunk_head(Bytes& out, const ChunkHead& head) {
  return RecordOut(out, Opcode::chunk)
      .integer(head.message_start_time)
      .integer(head.message_end_time)
      .integer(head.uncompressed_size)
      .integer(head.uncompressed_crc)
      .text("Chunk.compression", head.compression)
      .integer(head.records_size)
      .finish(head.records_size);
}

Status append_attachment_head(Bytes& out, const AttachmentHead& head) {
  if (head.data_size > std::numeric_limits<std::uint64_t>::max() / 2) {
    return invalid_argument(fmt::format("Attachment.data: {} bytes", head.data_size));
  }
  return RecordOut(out, Opcode::attachment)
      .integer(head.log_time)
      .integer(head.create_time)
      .text("Attachment.name", head.name)
      .text("Attachment.media_type", head.media_type)
      .integer(head.data_size)
      .finish(head.data_size + sizeof(std::uint32_t));
}

void append_message_head(Bytes& out, const MessageHead& head, std::uint64_t data_size) {
  ByteWriter writer(out);
  writer.write_le(static_cast<std::uint8_t>(Opcode::message));
  writer.write_le(data_size + kMessageHeadBytes);
  writer.write_le(head.channel_id);
  writer.write_le(head.sequence);
  writer.write_le(head.log_time);
  writer.write_le(head.publish_time);
}

void append_raw_record(Bytes& out, std::uint8_t opcode, ByteSpan content) {
  ByteWriter writer(out);
  writer.write_le(opcode);
  writer.write_le(static_cast<std::uint64_t>(content.size()));
  writer.write(content);
}

// Appending n zero bytes to a message multiplies its CRC register by a fixed matrix over GF(2), n
// times; squaring the matrix doubles n.
std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b) {
  Gf2Matrix shift;  // one zero bit
  shift[0] = 0xEDB88320U;
  for (std::size_t i = 1; i < shift.size(); ++i) shift[i] = 1U << (i - 1);
  shift = square(square(square(shift)));  // one zero byte
  for (; length_b != 0; length_b >>= 1) {
    if ((length_b & 1) != 0) crc_a = times(shift, crc_a);
    shift = square(shift);
  }
  return crc_a ^ crc_b;
}

}  // namespace ropewalk::mcap
