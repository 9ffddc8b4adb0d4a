#include "ropewalk/format/mcap/records.h"

#include <algorithm>
#include <unordered_set>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"

namespace ropewalk::mcap {
namespace {

// Reads the fields of one record in a row and keeps the first error, so that a parser reads like
// the table of the specification.
class Fields {
 public:
  Fields(std::string_view record, ByteSpan content) : record_(record), cursor_(content) {}

  template <typename T>
  void integer(std::string_view field, T& out) {
    if (!status_.ok()) return;
    auto value = cursor_.read_le<T>();
    if (value.ok()) {
      out = *value;
    } else {
      fail(field, value.status());
    }
  }
  ByteSpan view(std::string_view field, std::uint64_t size) {
    if (!status_.ok()) return {};
    auto value = cursor_.take(size);
    if (value.ok()) return *value;
    fail(field, value.status());
    return {};
  }
  /// A u32 length and that many bytes.
  ByteSpan sized(std::string_view field) {
    std::uint32_t size = 0;
    integer(field, size);
    return view(field, size);
  }
  void text(std::string_view field, std::string& out) { out.assign(as_text(sized(field))); }
  void string_map(std::string_view field, StringMap& out) {
    Fields inner(record_, sized(field));
    while (status_.ok() && !inner.cursor_.at_end()) {
      std::pair<std::string, std::string> entry;
      inner.text(field, entry.first);
      inner.text(field, entry.second);
      if (!inner.status_.ok()) {
        status_ = inner.status_;
        return;
      }
      out.push_back(std::move(entry));
    }
  }
  void id_map(std::string_view field, std::vector<std::pair<std::uint16_t, std::uint64_t>>& out) {
    const ByteSpan bytes = sized(field);
    if (status_.ok() && bytes.size() % 10 != 0) {
      status_ = data_loss(
          fmt::format("{}.{}: {} bytes is not a multiple of 10", record_, field, bytes.size()));
    }
    if (!status_.ok()) return;
    out.reserve(bytes.size() / 10);
    ByteCursor cursor(bytes);
    while (!cursor.at_end()) {
      const std::uint16_t id = *cursor.read_le<std::uint16_t>();
      out.emplace_back(id, *cursor.read_le<std::uint64_t>());
    }
  }
  std::size_t offset() const { return cursor_.offset(); }
  std::size_t remaining() const { return cursor_.remaining(); }
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  Status take_status() { return std::move(status_); }

 private:
  void fail(std::string_view field, const Status& status) {
    status_ = data_loss(fmt::format("{}.{}: {}", record_, field, status.message()));
  }

  std::string_view record_;
  ByteCursor cursor_;
  Status status_;
};

// A record that never grows must end where its fields end.
void require_end(Fields& fields, std::string_view record) {
  if (fields.remaining() != 0) {
    fields.fail(
        data_loss(fmt::format("{}: {} bytes after the last field of a record that never grows",
                              record, fields.remaining())));
  }
}

template <typename T>
Result<T> finished(Fields& fields, T&& record) {
  Status status = fields.take_status();
  if (!status.ok()) return status;
  return std::forward<T>(record);
}

}  // namespace

std::string opcode_name(std::uint8_t opcode) {
  constexpr std::array<std::string_view, 16> kNames{
      "",         "Header",        "Footer",        "Schema",     "Channel",         "Message",
      "Chunk",    "MessageIndex",  "ChunkIndex",    "Attachment", "AttachmentIndex", "Statistics",
      "Metadata", "MetadataIndex", "SummaryOffset", "DataEnd"};
  if (opcode > 0 && opcode < kNames.size()) return std::string(kNames[opcode]);
  if (opcode == 0) return "invalid record 0x00";
  return fmt::format("{} record {:#04x}", opcode >= 0x80 ? "private" : "unknown", opcode);
}

std::optional<std::string> duplicate_key(const StringMap& map) {
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : map) {
    if (!seen.insert(key).second) return key;
  }
  return std::nullopt;
}

Result<Header> parse_header(ByteSpan content) {
  Fields fields("Header", content);
  Header out;
  fields.text("profile", out.profile);
  fields.text("library", out.library);
  return finished(fields, std::move(out));
}

Result<Footer> parse_footer(ByteSpan content) {
  Fields fields("Footer", content);
  Footer out;
  fields.integer("summary_start", out.summary_start);
  fields.integer("summary_offset_start", out.summary_offset_start);
  fields.integer("summary_crc", out.summary_crc);
  require_end(fields, "Footer");
  return finished(fields, std::move(out));
}

Result<Schema> parse_schema(ByteSpan content) {
  Fields fields("Schema", content);
  Schema out;
  fields.integer("id", out.id);
  fields.text("name", out.name);
  fields.text("encoding", out.encoding);
  const ByteSpan data = fields.sized("data");
  out.data.assign(data.begin(), data.end());
  return finished(fields, std::move(out));
}

Result<Channel> parse_channel(ByteSpan content) {
  Fields fields("Channel", content);
  Channel out;
  fields.integer("id", out.id);
  fields.integer("schema_id", out.schema_id);
  fields.text("topic", out.topic);
  fields.text("message_encoding", out.message_encoding);
  fields.string_map("metadata", out.metadata);
  return finished(fields, std::move(out));
}

Result<Message> parse_message(ByteSpan content) {
  Fields fields("Message", content);
  Message out;
  fields.integer("channel_id", out.channel_id);
  fields.integer("sequence", out.sequence);
  fields.integer("log_time", out.log_time);
  fields.integer("publish_time", out.publish_time);
  out.data = fields.view("data", fields.remaining());
  return finished(fields, std::move(out));
}

Result<ChunkHead> parse_chunk_head(ByteSpan content, std::size_t* records_offset) {
  Fields fields("Chunk", content);
  ChunkHead out;
  fields.integer("message_start_time", out.message_start_time);
  fields.integer("message_end_time", out.message_end_time);
  fields.integer("uncompressed_size", out.uncompressed_size);
  fields.integer("uncompressed_crc", out.uncompressed_crc);
  fields.text("compression", out.compression);
  fields.integer("records", out.records_size);
  *records_offset = fields.offset();
  return finished(fields, std::move(out));
}

Result<MessageIndex> parse_message_index(ByteSpan content) {
  Fields fields("MessageIndex", content);
  MessageIndex out;
  fields.integer("channel_id", out.channel_id);
  const ByteSpan bytes = fields.sized("records");
  if (bytes.size() % 16 != 0) {
    fields.fail(data_loss(
        fmt::format("MessageIndex.records: {} bytes is not a multiple of 16", bytes.size())));
    return finished(fields, std::move(out));
  }
  out.records.reserve(bytes.size() / 16);
  ByteCursor cursor(bytes);
  while (!cursor.at_end()) {
    MessageIndex::Entry entry;
    entry.log_time = *cursor.read_le<std::uint64_t>();
    entry.offset = *cursor.read_le<std::uint64_t>();
    out.records.push_back(entry);
  }
  return finished(fields, std::move(out));
}

Result<ChunkIndex> parse_chunk_index(ByteSpan content) {
  Fields fields("ChunkIndex", content);
  ChunkIndex out;
  fields.integer("message_start_time", out.message_start_time);
  fields.integer("message_end_time", out.message_end_time);
  fields.integer("chunk_start_offset", out.chunk_start_offset);
  fields.integer("chunk_length", out.chunk_length);
  fields.id_map("message_index_offsets", out.message_index_offsets);
  fields.integer("message_index_length", out.message_index_length);
  fields.text("compression", out.compression);
  fields.integer("compressed_size", out.compressed_size);
  fields.integer("uncompressed_size", out.uncompressed_size);
  return finished(fields, std::move(out));
}

Result<AttachmentHead> parse_attachment_head(ByteSpan content, std::size_t* data_offset) {
  Fields fields("Attachment", content);
  AttachmentHead out;
  fields.integer("log_time", out.log_time);
  fields.integer("create_time", out.create_time);
  fields.text("name", out.name);
  fields.text("media_type", out.media_type);
  fields.integer("data", out.data_size);
  *data_offset = fields.offset();
  return finished(fields, std::move(out));
}

Result<Attachment> parse_attachment(ByteSpan content) {
  std::size_t data_offset = 0;
  ROPEWALK_ASSIGN_OR_RETURN(AttachmentHead head, parse_attachment_head(content, &data_offset));
  Attachment out;
  static_cast<AttachmentHead&>(out) = std::move(head);
  Fields fields("Attachment", content.subspan(data_offset));
  out.data = fields.view("data", out.data_size);
  const std::size_t covered = data_offset + fields.offset();
  fields.integer("crc", out.crc);
  ROPEWALK_RETURN_IF_ERROR(fields.take_status());
  out.computed_crc = crc32(0, content.first(covered));
  return out;
}

Result<AttachmentIndex> parse_attachment_index(ByteSpan content) {
  Fields fields("AttachmentIndex", content);
  AttachmentIndex out;
  fields.integer("offset", out.offset);
  fields.integer("length", out.length);
  fields.integer("log_time", out.log_time);
  fields.integer("create_time", out.create_time);
  fields.integer("data_size", out.data_size);
  fields.text("name", out.name);
  fields.text("media_type", out.media_type);
  return finished(fields, std::move(out));
}

Result<Statistics> parse_statistics(ByteSpan content) {
  Fields fields("Statistics", content);
  Statistics out;
  fields.integer("message_count", out.message_count);
  fields.integer("schema_count", out.schema_count);
  fields.integer("channel_count", out.channel_count);
  fields.integer("attachment_count", out.attachment_count);
  fields.integer("metadata_count", out.metadata_count);
  fields.integer("chunk_count", out.chunk_count);
  fields.integer("message_start_time", out.message_start_time);
  fields.integer("message_end_time", out.message_end_time);
  fields.id_map("channel_message_counts", out.channel_message_counts);
  return finished(fields, std::move(out));
}

Result<Metadata> parse_metadata(ByteSpan content) {
  Fields fields("Metadata", content);
  Metadata out;
  fields.text("name", out.name);
  fields.string_map("metadata", out.metadata);
  return finished(fields, std::move(out));
}

Result<MetadataIndex> parse_metadata_index(ByteSpan content) {
  Fields fields("MetadataIndex", content);
  MetadataIndex out;
  fields.integer("offset", out.offset);
  fields.integer("length", out.length);
  fields.text("name", out.name);
  return finished(fields, std::move(out));
}

Result<SummaryOffset> parse_summary_offset(ByteSpan content) {
  Fields fields("SummaryOffset", content);
  SummaryOffset out;
  fields.integer("group_opcode", out.group_opcode);
  fields.integer("group_start", out.group_start);
  fields.integer("group_length", out.group_length);
  return finished(fields, std::move(out));
}

Result<DataEnd> parse_data_end(ByteSpan content) {
  Fields fields("DataEnd", content);
  DataEnd out;
  fields.integer("data_section_crc", out.data_section_crc);
  require_end(fields, "DataEnd");
  return finished(fields, std::move(out));
}

}  // namespace ropewalk::mcap
