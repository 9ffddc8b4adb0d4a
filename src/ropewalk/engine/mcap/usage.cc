// du: bytes by kind of record and by topic.
#include <algorithm>

#include "ropewalk/engine/mcap/inspect.h"

namespace ropewalk {
namespace {

class UsageWalk {
 public:
  UsageWalk(const McapInput& input, UsageReport& report, const RunContext& context)
      : input_(input), report_(report), context_(context) {}

  Status run();

 private:
  Status on_chunk(mcap::RecordReader& reader, const mcap::RecordHead& head);
  void on_chunk_records(ByteSpan records, std::uint64_t stored);
  void flush_index();
  const std::string& topic_of(std::uint16_t id);

  const McapInput& input_;
  UsageReport& report_;
  const RunContext& context_;
  std::map<std::uint16_t, std::string> topics_;
  // The message indexes behind the last chunk, with approximate sizes.
  std::vector<std::pair<std::uint64_t, std::uint16_t>> offsets_;
  std::uint64_t chunk_size_ = 0;
  std::uint64_t chunk_stored_ = 0;
};

const std::string& UsageWalk::topic_of(std::uint16_t id) {
  const auto known = topics_.find(id);
  if (known != topics_.end()) return known->second;
  const auto channel = input_.reader.channels().find(id);
  return topics_
      .emplace(id, channel == input_.reader.channels().end() ? "unknown/" + std::to_string(id)
                                                             : valid_utf8(channel->second.topic))
      .first->second;
}

void UsageWalk::on_chunk_records(ByteSpan records, std::uint64_t stored) {
  mcap::ChunkWalker walker(records);
  std::uint8_t opcode = 0;
  ByteSpan content;
  std::map<std::uint16_t, UsageReport::TopicUse> here;
  std::uint64_t in_messages = 0;
  while (walker.next(opcode, content)) {
    const std::uint64_t bytes = mcap::kRecordHeadBytes + content.size();
    UsageReport::Use& use = report_.chunk_records[mcap::opcode_name(opcode)];
    ++use.records;
    use.bytes += bytes;
    if (opcode == static_cast<std::uint8_t>(mcap::Opcode::channel)) {
      if (const auto channel = mcap::parse_channel(content); channel.ok()) {
        topics_[channel->id] = valid_utf8(channel->topic);
      }
    }
    if (opcode != static_cast<std::uint8_t>(mcap::Opcode::message)) continue;
    const auto message = mcap::parse_message(content);
    if (!message.ok()) continue;
    UsageReport::TopicUse& topic = here[message->channel_id];
    ++topic.messages;
    topic.bytes += bytes;
    in_messages += bytes;
  }
  for (const auto& [id, use] : here) {
    UsageReport::TopicUse& topic = report_.topics[topic_of(id)];
    topic.messages += use.messages;
    topic.bytes += use.bytes;
    topic.stored_bytes +=
        static_cast<std::uint64_t>(static_cast<double>(stored) * static_cast<double>(use.bytes) /
                                   static_cast<double>(std::max<std::uint64_t>(in_messages, 1)));
  }
}

Status UsageWalk::on_chunk(mcap::RecordReader& reader, const mcap::RecordHead& record) {
  std::size_t at = 0;
  if (report_.approximate) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan prefix, reader.content_prefix(std::min<std::uint64_t>(
                                                         record.content_size, 4096)));
    const auto head = mcap::parse_chunk_head(prefix, &at);
    if (!head.ok()) return ok_status();
    chunk_size_ = head->uncompressed_size;
    chunk_stored_ = head->records_size;
    return ok_status();
  }
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, reader.content());
  const auto note = [&](mcap::ProblemKind kind, const Status& status) {
    report_.problems.push_back({.file = input_.name,
                                .problem = {.kind = kind,
                                            .offset = record.offset,
                                            .length = record.end() - record.offset,
                                            .detail = std::string(status.message())}});
    return ok_status();
  };
  const auto head = mcap::parse_chunk_head(content, &at);
  if (!head.ok()) return note(mcap::ProblemKind::chunk_damaged, head.status());
  if (head->records_size > content.size() - at) {
    return note(mcap::ProblemKind::chunk_damaged, data_loss("its records reach past its end"));
  }
  Bytes buffer;
  const auto records = mcap::decode_chunk(
      *head, content.subspan(at, static_cast<std::size_t>(head->records_size)), buffer, Limits{});
  if (!records.ok()) return note(mcap::ProblemKind::chunk_damaged, records.status());
  on_chunk_records(*records, head->records_size);
  return ok_status();
}

// A message ends where the next one starts; the last one at the end of its chunk.
void UsageWalk::flush_index() {
  std::ranges::sort(offsets_);
  for (std::size_t i = 0; i < offsets_.size(); ++i) {
    const std::uint64_t end = i + 1 < offsets_.size() ? offsets_[i + 1].first : chunk_size_;
    const std::uint64_t bytes = std::max(end, offsets_[i].first) - offsets_[i].first;
    UsageReport::TopicUse& topic = report_.topics[topic_of(offsets_[i].second)];
    ++topic.messages;
    topic.bytes += bytes;
    topic.stored_bytes +=
        static_cast<std::uint64_t>(static_cast<double>(chunk_stored_) * static_cast<double>(bytes) /
                                   static_cast<double>(std::max<std::uint64_t>(chunk_size_, 1)));
  }
  offsets_.clear();
}

Status UsageWalk::run() {
  const Source& source = *input_.source;
  mcap::RecordReader reader(source, 0, source.size(), report_.approximate ? 4096 : 1ULL << 20);
  report_.records["Magic"] = {.records = 1, .bytes = mcap::kMagic.size()};
  std::uint64_t reported = 0;
  while (true) {
    auto next = reader.next();
    if (!next.ok()) {
      if (reader.position() + mcap::kMagic.size() == source.size()) break;  // the closing magic
      report_.records["not readable"] = {.records = 1, .bytes = source.size() - reader.position()};
      report_.problems.push_back({.file = input_.name,
                                  .problem = {.kind = mcap::ProblemKind::truncated,
                                              .offset = reader.position(),
                                              .length = source.size() - reader.position(),
                                              .detail = std::string(next.status().message())}});
      break;
    }
    if (!next->has_value()) break;
    const mcap::RecordHead head = next->value();
    UsageReport::Use& use = report_.records[mcap::opcode_name(head.opcode)];
    ++use.records;
    use.bytes += head.end() - head.offset;
    if (!head.is(mcap::Opcode::message_index)) flush_index();
    if (head.is(mcap::Opcode::chunk)) {
      ROPEWALK_RETURN_IF_ERROR(on_chunk(reader, head));
    } else if (head.is(mcap::Opcode::message_index) && report_.approximate) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content, reader.content());
      if (const auto index = mcap::parse_message_index(content); index.ok()) {
        for (const auto& entry : index->records) {
          offsets_.emplace_back(entry.offset, index->channel_id);
        }
      }
    } else if (head.is(mcap::Opcode::message)) {
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan content,
                                reader.content_prefix(std::min<std::uint64_t>(
                                    head.content_size, mcap::kMessageHeadBytes)));
      if (const auto message = mcap::parse_message(content); message.ok()) {
        UsageReport::TopicUse& topic = report_.topics[topic_of(message->channel_id)];
        ++topic.messages;
        topic.bytes += head.end() - head.offset;
        topic.stored_bytes += head.end() - head.offset;
      }
    }
    if (head.is(mcap::Opcode::footer)) {
      if (source.size() - head.end() >= mcap::kMagic.size()) {
        report_.records["Magic"] = {.records = 2, .bytes = 2 * mcap::kMagic.size()};
        const std::uint64_t rest = source.size() - head.end() - mcap::kMagic.size();
        if (rest > 0) report_.records["after the end"] = {.records = 1, .bytes = rest};
      }
      break;
    }
    if (head.end() - reported >= (4ULL << 20)) {
      reported = head.end();
      ROPEWALK_RETURN_IF_ERROR(context_.check_stop());
      context_.report({.phase = "measuring",
                       .item = {},
                       .done = 0,
                       .unit = "messages",
                       .bytes_done = head.end(),
                       .bytes_total = source.size()});
    }
  }
  flush_index();
  return ok_status();
}

}  // namespace

bool UsageReport::lossy() const {
  return std::ranges::any_of(problems,
                             [](const FileProblem& p) { return is_copy_loss(p.problem.kind); });
}

Result<UsageReport> mcap_usage(const UsageRequest& request, const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN(const McapInput input, open_mcap(request.input));
  UsageReport report;
  report.name = input.name;
  report.approximate = request.approximate;
  report.size_bytes = input.source->size();
  UsageWalk walk(input, report, context);
  ROPEWALK_RETURN_IF_ERROR(walk.run());
  return report;
}

Json UsageReport::to_json() const {
  Json json = Json::object();
  json.set("name", name);
  json.set("approximate", approximate);
  json.set("size_bytes", size_bytes);
  const auto kinds = [](const std::map<std::string, Use>& uses) {
    Json out = Json::object();
    for (const auto& [kind, use] : uses) {
      Json entry = Json::object();
      entry.set("records", use.records);
      entry.set("bytes", use.bytes);
      out.set(kind, std::move(entry));
    }
    return out;
  };
  json.set("records", kinds(records));
  json.set("chunk_records", kinds(chunk_records));
  Json per_topic = Json::object();
  for (const auto& [topic, use] : topics) {
    Json entry = Json::object();
    entry.set("messages", use.messages);
    entry.set("bytes", use.bytes);
    entry.set("stored_bytes", use.stored_bytes);
    per_topic.set(topic, std::move(entry));
  }
  json.set("topics", std::move(per_topic));
  json.set("problems", ropewalk::to_json(problems));
  return json;
}

}  // namespace ropewalk
