#include "ropewalk/engine/mcap/doctor.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/doctor_internal.h"
#include "ropewalk/engine/mcap/inspect.h"

namespace ropewalk {

void Doctor::error(std::uint64_t offset, std::string text) {
  ++report_.errors;
  if (report_.diagnoses.size() < kMaxDiagnoses) {
    report_.diagnoses.push_back({.error = true, .offset = offset, .text = std::move(text)});
  }
}

void Doctor::warning(std::uint64_t offset, std::string text) {
  ++report_.warnings;
  if (report_.diagnoses.size() < kMaxDiagnoses) {
    report_.diagnoses.push_back({.error = false, .offset = offset, .text = std::move(text)});
  }
}

void Doctor::on_schema(ByteSpan content, std::uint64_t offset) {
  const auto parsed_schema = mcap::parse_schema(content);
  const mcap::Schema* schema = parsed(parsed_schema, offset);
  if (schema == nullptr) return;
  if (schema->id == 0) {
    error(offset, fmt::format("Schema \"{}\" has the id 0, which means no schema", schema->name));
    return;
  }
  const auto [known, added] = schemas_.try_emplace(schema->id, *schema);
  if (!added && !(known->second == *schema)) {
    error(offset, fmt::format("Schema {} is \"{}\" and was \"{}\" or other bytes before",
                              schema->id, schema->name, known->second.name));
  }
  if (schema->encoding.empty() && !schema->data.empty()) {
    error(offset,
          fmt::format("Schema {} \"{}\" has data but no encoding", schema->id, schema->name));
  }
  if (schema->data.empty() && (schema->encoding == "ros1msg" || schema->encoding == "ros2msg") &&
      added) {
    warning(offset, fmt::format("Schema {} \"{}\" is empty", schema->id, schema->name));
  }
}

void Doctor::on_channel(ByteSpan content, std::uint64_t offset) {
  const auto parsed_channel = mcap::parse_channel(content);
  const mcap::Channel* channel = parsed(parsed_channel, offset);
  if (channel == nullptr) return;
  const auto [known, added] = channels_.try_emplace(channel->id, *channel);
  if (!added && !(known->second == *channel)) {
    error(offset, fmt::format("Channel {} is \"{}\" and was \"{}\" or had other fields before",
                              channel->id, channel->topic, known->second.topic));
  }
  if (!added) return;
  if (channel->schema_id != 0 && !schemas_.contains(channel->schema_id)) {
    error(offset, fmt::format("Channel {} \"{}\" names schema {}, which was not defined before",
                              channel->id, channel->topic, channel->schema_id));
  }
  if (const auto key = mcap::duplicate_key(channel->metadata)) {
    error(offset, fmt::format("Channel {} \"{}\" has the metadata key \"{}\" twice", channel->id,
                              channel->topic, *key));
  }
  if (valid_utf8(channel->topic) != channel->topic) {
    error(offset, fmt::format("the topic of channel {} is not UTF-8", channel->id));
  }
}

void Doctor::on_message(const mcap::Message& message, std::uint64_t offset) {
  ++report_.messages;
  if (!channels_.contains(message.channel_id) && unknown_.insert(message.channel_id).second) {
    error(offset,
          fmt::format("a message of channel {}, which was not defined before", message.channel_id));
  }
  ++counts_[message.channel_id];
  if (report_.messages == 1) first_time_ = last_time_ = message.log_time;
  first_time_ = std::min(first_time_, message.log_time);
  last_time_ = std::max(last_time_, message.log_time);
  auto [seen, added] = newest_.try_emplace(message.channel_id, message.log_time);
  const auto topic = [&] {
    const auto channel = channels_.find(message.channel_id);
    return channel == channels_.end() ? std::string("?") : channel->second.topic;
  };
  if (request_.strict_message_order && report_.messages > 1 && message.log_time < newest_of_all_) {
    error(offset, fmt::format("a message on \"{}\" is logged at {}, {} ns before an earlier one",
                              topic(), message.log_time, newest_of_all_ - message.log_time));
  }
  newest_of_all_ = std::max(newest_of_all_, message.log_time);
  if (added) return;
  if (message.log_time > seen->second) {
    if (message.log_time - seen->second > kJumpNs && jumped_.insert(message.channel_id).second) {
      warning(offset, fmt::format("the clock of \"{}\" jumps from {} to {}", topic(), seen->second,
                                  message.log_time));
    }
    seen->second = message.log_time;
  } else if (message.log_time < seen->second && !request_.strict_message_order &&
             unordered_.insert(message.channel_id).second) {
    warning(offset, fmt::format("messages of \"{}\" are not in the order of their log times: {} "
                                "after {}",
                                topic(), message.log_time, seen->second));
  }
}

void Doctor::on_chunk(const mcap::RecordHead& record, ByteSpan content) {
  ++report_.chunks;
  chunk_ = {};
  chunk_.offset = record.offset;
  chunk_.length = record.end() - record.offset;
  std::size_t at = 0;
  const auto parsed_head = mcap::parse_chunk_head(content, &at);
  const mcap::ChunkHead* head = parsed(parsed_head, record.offset);
  if (head == nullptr) return;
  chunk_.head = *head;
  chunk_.known = true;
  if (head->records_size > content.size() - at) {
    error(record.offset, fmt::format("Chunk says {} bytes of records and has {}",
                                     head->records_size, content.size() - at));
    return;
  }
  if (head->uncompressed_size == 0) warning(record.offset, "Chunk has no records");
  if (head->uncompressed_crc == 0 && head->uncompressed_size != 0) ++chunks_without_crc_;
  const auto decoded = mcap::decode_chunk(
      *head, content.subspan(at, static_cast<std::size_t>(head->records_size)), buffer_, Limits{});
  const ByteSpan* records = parsed(decoded, record.offset);
  if (records == nullptr) return;
  chunk_.decoded = true;
  mcap::ChunkWalker walker(*records);
  std::uint8_t opcode = 0;
  ByteSpan inner;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool any = false;
  for (std::size_t position = 0; walker.next(opcode, inner); position = walker.position()) {
    switch (static_cast<mcap::Opcode>(opcode)) {
      case mcap::Opcode::schema:
        on_schema(inner, record.offset);
        break;
      case mcap::Opcode::channel:
        on_channel(inner, record.offset);
        break;
      case mcap::Opcode::message: {
        const auto parsed_message = mcap::parse_message(inner);
        const mcap::Message* message = parsed(parsed_message, record.offset);
        if (message == nullptr) break;
        on_message(*message, record.offset);
        start = any ? std::min(start, message->log_time) : message->log_time;
        end = any ? std::max(end, message->log_time) : message->log_time;
        any = true;
        chunk_.messages[message->channel_id].emplace_back(message->log_time, position);
        break;
      }
      default:
        if (opcode < 0x80) {
          error(record.offset, fmt::format("{} inside a Chunk", mcap::opcode_name(opcode)));
        }
    }
  }
  if (const Status status = walker.status(); !status.ok()) {
    error(record.offset, std::string(status.message()));
  }
  if (!any && head->uncompressed_size != 0) {
    warning(record.offset, "Chunk has no messages");
  }
  if (any && (start != head->message_start_time || end != head->message_end_time)) {
    error(record.offset, fmt::format("Chunk says messages from {} to {} and has them from {} to {}",
                                     head->message_start_time, head->message_end_time, start, end));
  }
}

void Doctor::on_message_index(const mcap::RecordHead& record, ByteSpan content) {
  const auto parsed_index = mcap::parse_message_index(content);
  const mcap::MessageIndex* index = parsed(parsed_index, record.offset);
  if (index == nullptr) return;
  if (chunk_.length == 0 || chunk_.index_end != record.offset) {
    if (chunk_.length == 0 || chunk_.offset + chunk_.length != record.offset) {
      error(record.offset, "MessageIndex does not follow a Chunk");
      return;
    }
  }
  chunk_.index_end = record.end();
  chunk_.index_offsets.emplace_back(index->channel_id, record.offset);
  if (!chunk_.decoded) return;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> entries;
  for (const auto& entry : index->records) entries.emplace_back(entry.log_time, entry.offset);
  auto held = chunk_.messages[index->channel_id];
  std::ranges::sort(entries);
  std::ranges::sort(held);
  if (entries != held) {
    error(record.offset,
          fmt::format("MessageIndex of channel {} has {} entries that do not agree with the {} "
                      "messages of its Chunk",
                      index->channel_id, entries.size(), held.size()));
  }
}

// A chunk is over when something else than its indexes follows.
void Doctor::close_chunk() {
  if (chunk_.length == 0) return;
  if (chunk_.decoded && !chunk_.index_offsets.empty()) {
    std::set<std::uint16_t> indexed;
    for (const auto& [id, offset] : chunk_.index_offsets) {
      if (!indexed.insert(id).second) {
        error(offset, fmt::format("a second MessageIndex of channel {} for one Chunk", id));
      }
    }
    for (const auto& [id, messages] : chunk_.messages) {
      if (!indexed.contains(id) && !messages.empty()) {
        error(chunk_.offset, fmt::format("Chunk has no MessageIndex for channel {}", id));
      }
    }
  }
  chunk_.messages.clear();
  chunks_.emplace(chunk_.offset, std::move(chunk_));
  chunk_ = {};
}

void Doctor::on_attachment(const mcap::RecordHead& record, ByteSpan content) {
  const auto parsed_attachment = mcap::parse_attachment(content);
  const mcap::Attachment* attachment = parsed(parsed_attachment, record.offset);
  if (attachment == nullptr) return;
  attachments_[record.offset] = {record.end() - record.offset, attachment->name};
  if (attachment->crc != 0 && attachment->crc != attachment->computed_crc) {
    error(record.offset, fmt::format("Attachment \"{}\": CRC {:#010x} stored, {:#010x} computed",
                                     attachment->name, attachment->crc, attachment->computed_crc));
  }
}

void Doctor::on_data_record(const mcap::RecordHead& record, ByteSpan content) {
  switch (static_cast<mcap::Opcode>(record.opcode)) {
    case mcap::Opcode::header:
      if (report_.records != 1) error(record.offset, "a Header that is not the first record");
      if (const auto header = mcap::parse_header(content); parsed(header, record.offset)) {
        if (header->library.empty()) warning(record.offset, "Header names no library");
      }
      break;
    case mcap::Opcode::schema:
      on_schema(content, record.offset);
      break;
    case mcap::Opcode::channel:
      on_channel(content, record.offset);
      break;
    case mcap::Opcode::message:
      ++loose_messages_;
      if (const auto message = mcap::parse_message(content); parsed(message, record.offset)) {
        on_message(*message, record.offset);
      }
      break;
    case mcap::Opcode::chunk:
      on_chunk(record, content);
      break;
    case mcap::Opcode::message_index:
      on_message_index(record, content);
      break;
    case mcap::Opcode::attachment:
      on_attachment(record, content);
      break;
    case mcap::Opcode::metadata:
      if (const auto metadata = mcap::parse_metadata(content); parsed(metadata, record.offset)) {
        metadata_[record.offset] = {record.end() - record.offset, metadata->name};
        if (const auto key = mcap::duplicate_key(metadata->metadata)) {
          error(record.offset,
                fmt::format("Metadata \"{}\" has the key \"{}\" twice", metadata->name, *key));
        }
      }
      break;
    case mcap::Opcode::data_end:
      if (const auto end = mcap::parse_data_end(content); parsed(end, record.offset)) {
        data_end_ = record.end();
        stored_data_crc_ = end->data_section_crc;
        data_section_end_ = record.offset;
      }
      break;
    case mcap::Opcode::chunk_index:
    case mcap::Opcode::attachment_index:
    case mcap::Opcode::statistics:
    case mcap::Opcode::metadata_index:
    case mcap::Opcode::summary_offset:
      error(record.offset, mcap::opcode_name(record.opcode) + " before DataEnd");
      break;
    case mcap::Opcode::footer:
      break;
    default:
      if (record.opcode == 0) error(record.offset, "a record with opcode 0");
      if (record.opcode > 0 && record.opcode < 0x80) {
        warning(record.offset, mcap::opcode_name(record.opcode));
      }
  }
}

Status Doctor::run() {
  report_.size_bytes = source_.size();
  if (source_.size() == 0) {
    error(0, "the file is empty");
    return ok_status();
  }
  mcap::RecordReader reader(source_, 0, source_.size());
  bool finished = false;
  std::uint64_t reported = 0;
  while (!finished) {
    const auto next = reader.next();
    if (!next.ok()) {
      error(reader.position(), std::string(next.status().message()));
      break;
    }
    if (!next->has_value()) break;
    const mcap::RecordHead record = next->value();
    ++report_.records;
    if (report_.records == 1 && !record.is(mcap::Opcode::header)) {
      error(record.offset, "the first record is no Header");
    }
    if (record.opcode == 0) {
      error(record.offset, "zero bytes where a record should start");
      break;
    }
    const auto content = reader.content();
    if (!content.ok()) {
      error(record.offset, std::string(content.status().message()));
      continue;
    }
    if (!record.is(mcap::Opcode::message_index)) close_chunk();
    if (record.is(mcap::Opcode::footer)) {
      finished = true;
      if (const auto footer = mcap::parse_footer(*content); parsed(footer, record.offset)) {
        ROPEWALK_RETURN_IF_ERROR(check_footer(record, *footer));
      }
      ROPEWALK_RETURN_IF_ERROR(check_end(record.end()));
    } else if (data_end_.has_value()) {
      on_summary_record(record, *content);
    } else {
      on_data_record(record, *content);
    }
    if (record.end() - reported >= (4ULL << 20)) {
      reported = record.end();
      ROPEWALK_RETURN_IF_ERROR(context_.check_stop());
      context_.report({.phase = "examining",
                       .item = {},
                       .done = static_cast<std::int64_t>(report_.messages),
                       .unit = "messages",
                       .bytes_done = record.end(),
                       .bytes_total = source_.size()});
    }
  }
  close_chunk();
  if (!finished) error(source_.size(), "the file was not finished: it has no Footer");
  if (chunks_without_crc_ > 0) {
    warning(0, fmt::format("{} of {} chunks carry no CRC", chunks_without_crc_, report_.chunks));
  }
  return check_data_crc();
}

Result<DoctorReport> doctor_mcap(const DoctorRequest& request, const RunContext& context) {
  DoctorReport report;
  report.name = request.input == kStandardStream ? "standard input" : request.input;
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_stream(request.input));
  Doctor doctor(*source, request, context, report);
  ROPEWALK_RETURN_IF_ERROR(doctor.run());
  return report;
}

Json DoctorReport::to_json() const {
  Json json = Json::object();
  json.set("name", name);
  json.set("size_bytes", size_bytes);
  json.set("healthy", healthy());
  json.set("errors", errors);
  json.set("warnings", warnings);
  json.set("records", records);
  json.set("chunks", chunks);
  json.set("messages", messages);
  Json list = Json::array();
  for (const Diagnosis& diagnosis : diagnoses) {
    Json entry = Json::object();
    entry.set("severity", diagnosis.error ? "error" : "warning");
    entry.set("offset", diagnosis.offset);
    entry.set("text", valid_utf8(diagnosis.text));
    list.push_back(std::move(entry));
  }
  json.set("diagnoses", std::move(list));
  return json;
}

}  // namespace ropewalk
