#include "tests/conformance/mcap_conformance.h"

#include <algorithm>
#include <charconv>
#include <string>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"

namespace ropewalk::test {
namespace {

using namespace mcap;

template <typename T>
Json number(T value) {
  return Json(fmt::to_string(value));
}
Json bytes_json(ByteSpan bytes) {
  Json out = Json::array();
  for (const std::uint8_t byte : bytes) out.push_back(number(byte));
  return out;
}
Json map_json(const StringMap& map) {
  Json out = Json::object();
  for (const auto& [key, value] : map) out.set(key, Json(value));
  return out;
}
Json map_json(const std::vector<std::pair<std::uint16_t, std::uint64_t>>& map) {
  Json out = Json::object();
  for (const auto& [key, value] : map) out.set(fmt::to_string(key), number(value));
  return out;
}

// One record object; the fields are given in the order of their names.
Json record_json(std::string_view type, std::vector<std::pair<std::string, Json>> fields) {
  Json list = Json::array();
  for (auto& [name, value] : fields) {
    Json field = Json::array();
    field.push_back(Json(name));
    field.push_back(std::move(value));
    list.push_back(std::move(field));
  }
  Json out = Json::object();
  out.set("type", Json(type));
  out.set("fields", std::move(list));
  return out;
}

Json to_json(const Schema& s) {
  return record_json("Schema", {{"data", bytes_json(s.data)},
                                {"encoding", Json(s.encoding)},
                                {"id", number(s.id)},
                                {"name", Json(s.name)}});
}
Json to_json(const Channel& c) {
  return record_json("Channel", {{"id", number(c.id)},
                                 {"message_encoding", Json(c.message_encoding)},
                                 {"metadata", map_json(c.metadata)},
                                 {"schema_id", number(c.schema_id)},
                                 {"topic", Json(c.topic)}});
}
Json to_json(const Message& m) {
  return record_json("Message", {{"channel_id", number(m.channel_id)},
                                 {"data", bytes_json(m.data)},
                                 {"log_time", number(m.log_time)},
                                 {"publish_time", number(m.publish_time)},
                                 {"sequence", number(m.sequence)}});
}
Json to_json(const Statistics& s) {
  return record_json("Statistics", {{"attachment_count", number(s.attachment_count)},
                                    {"channel_count", number(s.channel_count)},
                                    {"channel_message_counts", map_json(s.channel_message_counts)},
                                    {"chunk_count", number(s.chunk_count)},
                                    {"message_count", number(s.message_count)},
                                    {"message_end_time", number(s.message_end_time)},
                                    {"message_start_time", number(s.message_start_time)},
                                    {"metadata_count", number(s.metadata_count)},
                                    {"schema_count", number(s.schema_count)}});
}

// What the walk over a file needs beyond one record, to check its CRCs.
struct StreamState {
  std::uint32_t data_crc = 0;
  std::uint32_t summary_crc = 0;
  bool in_data = true;
};

Status append_parsed(Json& out, std::uint8_t opcode, ByteSpan content);

Status append_chunk(Json& out, ByteSpan content) {
  std::size_t records_offset = 0;
  ROPEWALK_ASSIGN_OR_RETURN(const ChunkHead head, parse_chunk_head(content, &records_offset));
  Bytes buffer;
  ROPEWALK_ASSIGN_OR_RETURN(
      const ByteSpan records,
      decode_chunk(head, content.subspan(records_offset, head.records_size), buffer, Limits{}));
  ChunkWalker walker(records);
  std::uint8_t opcode = 0;
  ByteSpan inner;
  while (walker.next(opcode, inner)) {
    ROPEWALK_RETURN_IF_ERROR(append_parsed(out, opcode, inner));
  }
  return walker.status();
}

Status append_parsed(Json& out, std::uint8_t opcode, ByteSpan content) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::header: {
      ROPEWALK_ASSIGN_OR_RETURN(const Header h, parse_header(content));
      out.push_back(
          record_json("Header", {{"library", Json(h.library)}, {"profile", Json(h.profile)}}));
      break;
    }
    case Opcode::footer: {
      ROPEWALK_ASSIGN_OR_RETURN(const Footer f, parse_footer(content));
      out.push_back(record_json("Footer", {{"summary_crc", number(f.summary_crc)},
                                           {"summary_offset_start", number(f.summary_offset_start)},
                                           {"summary_start", number(f.summary_start)}}));
      break;
    }
    case Opcode::schema: {
      ROPEWALK_ASSIGN_OR_RETURN(const Schema s, parse_schema(content));
      out.push_back(to_json(s));
      break;
    }
    case Opcode::channel: {
      ROPEWALK_ASSIGN_OR_RETURN(const Channel c, parse_channel(content));
      out.push_back(to_json(c));
      break;
    }
    case Opcode::message: {
      ROPEWALK_ASSIGN_OR_RETURN(const Message m, parse_message(content));
      out.push_back(to_json(m));
      break;
    }
    case Opcode::chunk:
      return append_chunk(out, content);
    case Opcode::message_index:
      return parse_message_index(content).ok() ? ok_status() : data_loss("MessageIndex");
    case Opcode::chunk_index: {
      ROPEWALK_ASSIGN_OR_RETURN(const ChunkIndex c, parse_chunk_index(content));
      out.push_back(
          record_json("ChunkIndex", {{"chunk_length", number(c.chunk_length)},
                                     {"chunk_start_offset", number(c.chunk_start_offset)},
                                     {"compressed_size", number(c.compressed_size)},
                                     {"compression", Json(c.compression)},
                                     {"message_end_time", number(c.message_end_time)},
                                     {"message_index_length", number(c.message_index_length)},
                                     {"message_index_offsets", map_json(c.message_index_offsets)},
                                     {"message_start_time", number(c.message_start_time)},
                                     {"uncompressed_size", number(c.uncompressed_size)}}));
      break;
    }
    case Opcode::attachment: {
      ROPEWALK_ASSIGN_OR_RETURN(const Attachment a, parse_attachment(content));
      if (a.crc != 0 && a.crc != a.computed_crc) return data_loss("attachment CRC");
      out.push_back(record_json("Attachment", {{"create_time", number(a.create_time)},
                                               {"data", bytes_json(a.data)},
                                               {"log_time", number(a.log_time)},
                                               {"media_type", Json(a.media_type)},
                                               {"name", Json(a.name)}}));
      break;
    }
    case Opcode::attachment_index: {
      ROPEWALK_ASSIGN_OR_RETURN(const AttachmentIndex a, parse_attachment_index(content));
      out.push_back(record_json("AttachmentIndex", {{"create_time", number(a.create_time)},
                                                    {"data_size", number(a.data_size)},
                                                    {"length", number(a.length)},
                                                    {"log_time", number(a.log_time)},
                                                    {"media_type", Json(a.media_type)},
                                                    {"name", Json(a.name)},
                                                    {"offset", number(a.offset)}}));
      break;
    }
    case Opcode::statistics: {
      ROPEWALK_ASSIGN_OR_RETURN(const Statistics s, parse_statistics(content));
      out.push_back(to_json(s));
      break;
    }
    case Opcode::metadata: {
      ROPEWALK_ASSIGN_OR_RETURN(const Metadata m, parse_metadata(content));
      out.push_back(
          record_json("Metadata", {{"metadata", map_json(m.metadata)}, {"name", Json(m.name)}}));
      break;
    }
    case Opcode::metadata_index: {
      ROPEWALK_ASSIGN_OR_RETURN(const MetadataIndex m, parse_metadata_index(content));
      out.push_back(record_json(
          "MetadataIndex",
          {{"length", number(m.length)}, {"name", Json(m.name)}, {"offset", number(m.offset)}}));
      break;
    }
    case Opcode::summary_offset: {
      ROPEWALK_ASSIGN_OR_RETURN(const SummaryOffset s, parse_summary_offset(content));
      out.push_back(record_json("SummaryOffset", {{"group_length", number(s.group_length)},
                                                  {"group_opcode", number(s.group_opcode)},
                                                  {"group_start", number(s.group_start)}}));
      break;
    }
    case Opcode::data_end: {
      ROPEWALK_ASSIGN_OR_RETURN(const DataEnd d, parse_data_end(content));
      out.push_back(record_json("DataEnd", {{"data_section_crc", number(d.data_section_crc)}}));
      break;
    }
  }
  return ok_status();
}

// CRC of the data section and of the summary, as far as the record at `head` ends them.
Status check_crcs(StreamState& state, const RecordHead& head, ByteSpan record) {
  const ByteSpan content = record.subspan(kRecordHeadBytes);
  if (head.is(Opcode::data_end)) {
    ROPEWALK_ASSIGN_OR_RETURN(const DataEnd end, parse_data_end(content));
    state.in_data = false;
    if (end.data_section_crc != 0 && end.data_section_crc != state.data_crc) {
      return data_loss(fmt::format("data CRC {:#x} stored, {:#x} computed", end.data_section_crc,
                                   state.data_crc));
    }
    return ok_status();
  }
  if (head.is(Opcode::footer)) {
    ROPEWALK_ASSIGN_OR_RETURN(const Footer footer, parse_footer(content));
    const std::uint32_t crc = crc32(state.summary_crc, record.first(record.size() - 4));
    if (footer.summary_crc != 0 && footer.summary_crc != crc) {
      return data_loss(
          fmt::format("summary CRC {:#x} stored, {:#x} computed", footer.summary_crc, crc));
    }
    return ok_status();
  }
  (state.in_data ? state.data_crc : state.summary_crc) =
      crc32(state.in_data ? state.data_crc : state.summary_crc, record);
  return ok_status();
}

std::uint64_t as_number(const Json& value) {
  std::uint64_t out = 0;
  const std::string& text = *value.as_string();
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// The fields of one record object by name.
class FieldsOf {
 public:
  explicit FieldsOf(const Json& record) : fields_(record.find("fields")) {}
  const Json& at(std::string_view name) const {
    static const Json kNull;
    for (const Json& field : *fields_->as_array()) {
      if (*(*field.as_array())[0].as_string() == name) return (*field.as_array())[1];
    }
    return kNull;
  }
  std::string text(std::string_view name) const { return *at(name).as_string(); }
  template <typename T>
  T number(std::string_view name) const {
    return static_cast<T>(as_number(at(name)));
  }
  Bytes bytes(std::string_view name) const {
    Bytes out;
    for (const Json& byte : *at(name).as_array()) {
      out.push_back(static_cast<std::uint8_t>(as_number(byte)));
    }
    return out;
  }
  StringMap map(std::string_view name) const {
    StringMap out;
    for (const auto& [key, value] : *at(name).as_object()) {
      out.emplace_back(key, *value.as_string());
    }
    return out;
  }

 private:
  const Json* fields_;
};

WriterOptions options_of(const Json& document, std::string profile, std::string library) {
  const Json* meta = document.find("meta");
  const Json* variant = meta == nullptr ? nullptr : meta->find("variant");
  const Json* features = variant == nullptr ? nullptr : variant->find("features");
  const auto has = [&](std::string_view feature) {
    return features != nullptr && std::ranges::any_of(*features->as_array(), [&](const Json& f) {
             return *f.as_string() == feature;
           });
  };
  WriterOptions out;
  out.profile = std::move(profile);
  out.library = std::move(library);
  out.compression = Compression::none;
  out.data_crc = true;
  out.definitions_in_every_chunk = false;
  out.unused_definitions = true;
  out.chunked = has("ch");
  out.message_index = has("mx");
  out.statistics = has("st");
  out.repeat_schemas = has("rsh");
  out.repeat_channels = has("rch");
  out.attachment_index = has("ax");
  out.metadata_index = has("mdx");
  out.chunk_index = has("chx");
  out.summary_offsets = has("sum");
  return out;
}

}  // namespace

Result<Json> read_json_file(const std::filesystem::path& file) {
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(file, 1ULL << 20));
  return parse_json(text);
}

Result<Json> streamed_records(const std::filesystem::path& file) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(file));
  RecordReader reader(*source, 0, source->size());
  SourceWindow window(*source);
  Json records = Json::array();
  StreamState state;
  bool magic_counted = false;
  for (;;) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto head, reader.next());
    if (!head.has_value()) return data_loss("no Footer");
    if (!magic_counted) state.data_crc = crc32(0, kMagic);
    magic_counted = true;
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan record,
                              window.view(head->offset, head->end() - head->offset));
    ROPEWALK_RETURN_IF_ERROR(check_crcs(state, *head, record));
    ROPEWALK_RETURN_IF_ERROR(
        append_parsed(records, head->opcode, record.subspan(kRecordHeadBytes)));
    if (!head->is(Opcode::footer)) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan magic, window.view(head->end(), kMagic.size()));
    if (!std::ranges::equal(magic, kMagic)) return data_loss("no closing magic");
    Json out = Json::object();
    out.set("records", std::move(records));
    return out;
  }
}

Result<Json> indexed_records(const std::filesystem::path& file) {
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(file));
  ROPEWALK_ASSIGN_OR_RETURN(const Reader reader, Reader::open(std::move(source)));
  if (!reader.problems().empty()) return data_loss(to_line(reader.problems().front()));
  Json schemas = Json::array();
  Json channels = Json::array();
  Json messages = Json::array();
  Json statistics = Json::array();
  for (const auto& [id, schema] : reader.schemas()) schemas.push_back(to_json(schema));
  for (const auto& [id, channel] : reader.channels()) channels.push_back(to_json(channel));
  MessageReader in_time_order = reader.messages();
  for (MessageView m; in_time_order.next(m);) messages.push_back(to_json(m));
  ROPEWALK_RETURN_IF_ERROR(Status(in_time_order.status()));
  if (!in_time_order.problems().empty()) {
    return data_loss(to_line(in_time_order.problems().front()));
  }
  if (reader.statistics().has_value()) statistics.push_back(to_json(*reader.statistics()));
  Json out = Json::object();
  out.set("schemas", std::move(schemas));
  out.set("channels", std::move(channels));
  out.set("messages", std::move(messages));
  out.set("statistics", std::move(statistics));
  return out;
}

Result<Bytes> write_records(const Json& document) {
  const Json* records = document.find("records");
  if (records == nullptr || records->as_array() == nullptr) return invalid_argument("no records");
  Bytes out;
  const auto sink = memory_sink(out);
  std::optional<Writer> writer;
  for (const Json& record : *records->as_array()) {
    const std::string type = *record.find("type")->as_string();
    const FieldsOf fields(record);
    if (type == "Header") {
      ROPEWALK_ASSIGN_OR_RETURN(writer, Writer::create(options_of(document, fields.text("profile"),
                                                                  fields.text("library"))));
      ROPEWALK_RETURN_IF_ERROR(writer->open(*sink));
    } else if (type == "Schema") {
      ROPEWALK_RETURN_IF_ERROR(writer->add_schema_with_id({.id = fields.number<std::uint16_t>("id"),
                                                           .name = fields.text("name"),
                                                           .encoding = fields.text("encoding"),
                                                           .data = fields.bytes("data")}));
    } else if (type == "Channel") {
      ROPEWALK_RETURN_IF_ERROR(
          writer->add_channel_with_id({.id = fields.number<std::uint16_t>("id"),
                                       .schema_id = fields.number<std::uint16_t>("schema_id"),
                                       .topic = fields.text("topic"),
                                       .message_encoding = fields.text("message_encoding"),
                                       .metadata = fields.map("metadata")}));
    } else if (type == "Message") {
      ROPEWALK_RETURN_IF_ERROR(
          writer->write({.channel_id = fields.number<std::uint16_t>("channel_id"),
                         .sequence = fields.number<std::uint32_t>("sequence"),
                         .log_time = fields.number<std::uint64_t>("log_time"),
                         .publish_time = fields.number<std::uint64_t>("publish_time")},
                        fields.bytes("data")));
    } else if (type == "Attachment") {
      ROPEWALK_RETURN_IF_ERROR(
          writer->write_attachment({.log_time = fields.number<std::uint64_t>("log_time"),
                                    .create_time = fields.number<std::uint64_t>("create_time"),
                                    .name = fields.text("name"),
                                    .media_type = fields.text("media_type"),
                                    .data_size = 0},
                                   fields.bytes("data")));
    } else if (type == "Metadata") {
      ROPEWALK_RETURN_IF_ERROR(writer->write_metadata(
          {.name = fields.text("name"), .metadata = fields.map("metadata")}));
    } else if (type == "DataEnd") {
      ROPEWALK_RETURN_IF_ERROR(writer->finish());
      return out;
    }
  }
  return invalid_argument("no DataEnd");
}

}  // namespace ropewalk::test
