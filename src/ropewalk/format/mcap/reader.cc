#include "ropewalk/format/mcap/reader.h"

#include <algorithm>
#include <list>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {

Result<Reader> Reader::open(std::shared_ptr<const Source> source, ReaderOptions options) {
  auto map = std::make_shared<FileMap>();
  map->source = std::move(source);
  map->options = options;
  if (Status status = open_file_map(*map); !status.ok()) {
    return status.with_context(map->source->name());
  }
  return Reader(std::move(map));
}

const FileMap& file_map_of(const Reader& reader) { return *reader.map_; }

const Header& Reader::header() const { return map_->header; }
bool Reader::finished() const { return map_->finished; }
bool Reader::has_summary() const { return map_->has_summary; }
const std::map<std::uint16_t, Schema>& Reader::schemas() const { return map_->schemas; }
const std::map<std::uint16_t, Channel>& Reader::channels() const { return map_->channels; }
const std::optional<Statistics>& Reader::statistics() const { return map_->statistics; }
const std::vector<AttachmentIndex>& Reader::attachments() const { return map_->attachments; }
const std::vector<MetadataIndex>& Reader::metadata() const { return map_->metadata; }
const std::vector<PrivateRecord>& Reader::private_records() const { return map_->private_records; }
const std::vector<Problem>& Reader::problems() const { return map_->problems; }

std::vector<ChunkIndex> Reader::chunks() const {
  std::vector<ChunkIndex> out;
  for (const Segment& segment : map_->segments) {
    if (segment.is_chunk) out.push_back(segment.index);
  }
  return out;
}

std::vector<const Channel*> Reader::channels_of(std::string_view topic) const {
  std::vector<const Channel*> out;
  for (const auto& [id, channel] : map_->channels) {
    if (channel.topic == topic) out.push_back(&channel);
  }
  return out;
}

Result<std::vector<MessageRef>> Reader::locate(std::string_view topic) const {
  std::vector<bool> wanted;
  for (const Channel* channel : channels_of(topic)) {
    if (wanted.size() <= channel->id) wanted.resize(channel->id + std::size_t{1});
    wanted[channel->id] = true;
  }
  const auto is_wanted = [&](std::uint16_t id) { return id < wanted.size() && wanted[id]; };
  std::vector<MessageRef> out;
  ProblemList ignored;  // told by whoever reads the messages
  LoadedSegment loaded;
  for (std::size_t i = 0; i < map_->segments.size(); ++i) {
    const Segment& segment = map_->segments[i];
    const auto number = static_cast<std::uint32_t>(i);
    ROPEWALK_ASSIGN_OR_RETURN(auto indexes, read_message_indexes(*map_, segment, ignored));
    if (indexes.has_value()) {
      for (const MessageIndex& index : *indexes) {
        if (!is_wanted(index.channel_id)) continue;
        for (const MessageIndex::Entry& entry : index.records) {
          out.push_back({.log_time = entry.log_time,
                         .offset = entry.offset,
                         .segment = number,
                         .channel_id = index.channel_id});
        }
      }
      continue;
    }
    ROPEWALK_RETURN_IF_ERROR(load_segment(*map_, segment, loaded, ignored));
    ChunkWalker walker(loaded.records);
    std::uint8_t opcode = 0;
    ByteSpan content;
    for (std::uint64_t offset = 0; walker.next(opcode, content); offset = walker.position()) {
      Message message;
      if (!message_at(loaded.records, offset, message) || !is_wanted(message.channel_id)) continue;
      out.push_back({.log_time = message.log_time,
                     .offset = offset,
                     .segment = number,
                     .channel_id = message.channel_id});
    }
  }
  std::ranges::stable_sort(out, [](const MessageRef& a, const MessageRef& b) {
    if (a.log_time != b.log_time) return a.log_time < b.log_time;
    if (a.segment != b.segment) return a.segment < b.segment;
    return a.offset < b.offset;
  });
  return out;
}

// --- single messages

struct MessageLoader::Impl {
  struct Slot {
    std::uint32_t segment = 0;
    LoadedSegment loaded;
  };
  std::shared_ptr<const FileMap> map;
  std::list<Slot> slots;  // the most recently used first
  std::uint64_t held_bytes = 0;

  Result<Slot*> slot_of(std::uint32_t number);
};

MessageLoader::MessageLoader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageLoader::MessageLoader(MessageLoader&&) noexcept = default;
MessageLoader& MessageLoader::operator=(MessageLoader&&) noexcept = default;
MessageLoader::~MessageLoader() = default;

MessageLoader Reader::loader() const {
  auto impl = std::make_unique<MessageLoader::Impl>();
  impl->map = map_;
  return MessageLoader(std::move(impl));
}

Result<MessageLoader::Impl::Slot*> MessageLoader::Impl::slot_of(std::uint32_t number) {
  for (auto it = slots.begin(); it != slots.end(); ++it) {
    if (it->segment != number) continue;
    slots.splice(slots.begin(), slots, it);
    return &slots.front();
  }
  const Segment& segment = map->segments[number];
  const std::uint64_t expected = segment.index.uncompressed_size + segment.end - segment.offset;
  LoadedSegment buffers;
  while (!slots.empty() && held_bytes + expected > map->options.cache_bytes) {
    held_bytes -= slots.back().loaded.bytes_held();
    buffers = std::move(slots.back().loaded);  // its memory serves the next chunk
    slots.pop_back();
  }
  ProblemList problems;
  ROPEWALK_RETURN_IF_ERROR(load_segment(*map, segment, buffers, problems));
  if (buffers.records.empty() && !problems.empty()) {
    return data_loss(fmt::format("{}: {}", map->source->name(), to_line(problems.front())));
  }
  held_bytes += buffers.bytes_held();
  slots.push_front({.segment = number, .loaded = std::move(buffers)});
  return &slots.front();
}

Result<MessageView> MessageLoader::load(const MessageRef& ref) {
  Impl& l = *impl_;
  if (ref.segment >= l.map->segments.size()) {
    return out_of_range(fmt::format("{}: segment {} of {}", l.map->source->name(), ref.segment,
                                    l.map->segments.size()));
  }
  ROPEWALK_ASSIGN_OR_RETURN(Impl::Slot * slot, l.slot_of(ref.segment));
  MessageView out;
  if (!message_at(slot->loaded.records, ref.offset, out) || out.channel_id != ref.channel_id ||
      out.log_time != ref.log_time) {
    return data_loss(fmt::format(
        "{}: byte {}: the message index says channel {} at time {} at byte {} of the chunk, where "
        "there is another record",
        l.map->source->name(), l.map->segments[ref.segment].offset, ref.channel_id, ref.log_time,
        ref.offset));
  }
  out.verified = slot->loaded.verified;
  if (const auto channel = l.map->channels.find(out.channel_id); channel != l.map->channels.end()) {
    out.channel = &channel->second;
    const auto schema = l.map->schemas.find(channel->second.schema_id);
    if (schema != l.map->schemas.end()) out.schema = &schema->second;
  }
  return out;
}

Result<std::optional<StoredData>> Reader::stored_data(const MessageRef& ref) const {
  constexpr std::uint64_t kPart = 1ULL << 20;
  if (ref.segment >= map_->segments.size()) {
    return out_of_range(fmt::format("{}: segment {} of {}", map_->source->name(), ref.segment,
                                    map_->segments.size()));
  }
  const Segment& segment = map_->segments[ref.segment];
  const std::string context = fmt::format("{}: byte {}", map_->source->name(), segment.offset);
  SourceWindow window(*map_->source);
  std::uint64_t begin = segment.offset;  // of the records
  std::uint64_t size = segment.end - segment.offset;
  if (segment.is_chunk) {
    if (segment.cut) return data_loss(context + ": the chunk is cut by the end of the file");
    const std::uint64_t prefix =
        std::min(size, kRecordHeadBytes + 64 + segment.index.compression.size());
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan bytes, window.view(begin, prefix), context);
    std::uint64_t content_size = 0;
    if (bytes.size() >= kRecordHeadBytes) {
      std::memcpy(&content_size, bytes.data() + 1, sizeof content_size);
    }
    if (bytes.size() < kRecordHeadBytes || bytes[0] != static_cast<std::uint8_t>(Opcode::chunk) ||
        content_size != size - kRecordHeadBytes) {
      return data_loss(context + ": no chunk of the length that its index gives stands here");
    }
    std::size_t records_offset = 0;
    ROPEWALK_ASSIGN_OR_RETURN_CTX(
        const ChunkHead head, parse_chunk_head(bytes.subspan(kRecordHeadBytes), &records_offset),
        context);
    if (!head.compression.empty()) return std::optional<StoredData>();
    if (head.records_size > content_size - records_offset ||
        head.records_size != head.uncompressed_size) {
      return data_loss(fmt::format("{}: {} bytes of records stated, {} stored", context,
                                   head.uncompressed_size, content_size - records_offset));
    }
    begin += kRecordHeadBytes + records_offset;
    size = head.records_size;
    std::uint32_t crc = 0;
    for (std::uint64_t at = 0; head.uncompressed_crc != 0 && at < size; at += kPart) {
      ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan part,
                                    window.view(begin + at, std::min(kPart, size - at)), context);
      crc = crc32(crc, part);
    }
    if (head.uncompressed_crc != crc) {
      return data_loss(fmt::format("{}: chunk: CRC {:#010x} stored, {:#010x} computed", context,
                                   head.uncompressed_crc, crc));
    }
  }
  const std::uint64_t head_bytes = kRecordHeadBytes + kMessageHeadBytes;
  const auto lies = [&] {
    return data_loss(
        fmt::format("{}: no message of channel {} at time {} stands at byte {} of the chunk",
                    context, ref.channel_id, ref.log_time, ref.offset));
  };
  if (size < head_bytes || ref.offset > size - head_bytes) return lies();
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan bytes, window.view(begin + ref.offset, head_bytes),
                                context);
  std::uint64_t content_size = 0;
  std::memcpy(&content_size, bytes.data() + 1, sizeof content_size);
  if (bytes[0] != static_cast<std::uint8_t>(Opcode::message) || content_size < kMessageHeadBytes ||
      content_size > size - ref.offset - kRecordHeadBytes) {
    return lies();
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const Message message,
                                parse_message(bytes.subspan(kRecordHeadBytes)), context);
  if (message.channel_id != ref.channel_id || message.log_time != ref.log_time) return lies();
  return std::optional<StoredData>(StoredData{.offset = begin + ref.offset + head_bytes,
                                              .size = content_size - kMessageHeadBytes});
}

// --- metadata, attachments

Result<Metadata> Reader::read_metadata(const MetadataIndex& index) const {
  const auto context = [&] {
    return fmt::format("{}: byte {}", map_->source->name(), index.offset);
  };
  if (index.length < kRecordHeadBytes || index.length > map_->options.limits.max_record_bytes) {
    return data_loss(fmt::format("{}: Metadata of {} bytes", context(), index.length));
  }
  SourceWindow window(*map_->source);
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan bytes, window.view(index.offset, index.length),
                                context());
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data() + 1, sizeof size);
  if (bytes[0] != static_cast<std::uint8_t>(Opcode::metadata) ||
      size != bytes.size() - kRecordHeadBytes) {
    return data_loss(fmt::format("{}: Metadata of {} bytes expected, {} found", context(),
                                 index.length, opcode_name(bytes[0])));
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Metadata out, parse_metadata(bytes.subspan(kRecordHeadBytes)),
                                context());
  return out;
}

Result<Bytes> Reader::read_private(const PrivateRecord& record) const {
  const auto context = [&] {
    return fmt::format("{}: byte {}", map_->source->name(), record.offset);
  };
  if (record.length < kRecordHeadBytes || record.length > map_->options.limits.max_record_bytes) {
    return resource_exhausted(fmt::format("{}: a record of {} bytes", context(), record.length));
  }
  SourceWindow window(*map_->source);
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan bytes, window.view(record.offset, record.length),
                                context());
  const ByteSpan content = bytes.subspan(kRecordHeadBytes);
  return Bytes(content.begin(), content.end());
}

Result<std::optional<Problem>> Reader::check_data_crc() const {
  constexpr std::uint64_t kPart = 1ULL << 20;
  if (!map_->data_end_offset.has_value()) return std::optional<Problem>();
  const std::uint64_t end = *map_->data_end_offset;
  SourceWindow window(*map_->source);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan record, window.view(end, kRecordHeadBytes + 4));
  std::uint32_t stored = 0;
  std::memcpy(&stored, record.data() + kRecordHeadBytes, sizeof stored);
  if (stored == 0) return std::optional<Problem>();
  std::uint32_t computed = 0;
  for (std::uint64_t at = 0; at < end; at += kPart) {
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan part, window.view(at, std::min(kPart, end - at)));
    computed = crc32(computed, part);
  }
  if (computed == stored) return std::optional<Problem>();
  return std::optional<Problem>(Problem{
      .kind = ProblemKind::data_crc,
      .offset = 0,
      .length = end,
      .detail =
          fmt::format("data section: CRC {:#010x} stored, {:#010x} computed", stored, computed)});
}

Status Reader::read_attachment(const AttachmentIndex& index,
                               const std::function<Status(ByteSpan)>& take) const {
  constexpr std::uint64_t kPart = 1ULL << 20;
  const std::string context = fmt::format("{}: byte {}", map_->source->name(), index.offset);
  SourceWindow window(*map_->source);
  const std::uint64_t head_bytes =
      std::min(index.length, kRecordHeadBytes + 32 + index.name.size() + index.media_type.size());
  ROPEWALK_ASSIGN_OR_RETURN_CTX(ByteSpan bytes, window.view(index.offset, head_bytes), context);
  std::uint64_t size = 0;
  if (bytes.size() >= kRecordHeadBytes) std::memcpy(&size, bytes.data() + 1, sizeof size);
  if (bytes.size() < kRecordHeadBytes ||
      bytes[0] != static_cast<std::uint8_t>(Opcode::attachment) ||
      size != index.length - kRecordHeadBytes) {
    return data_loss(
        fmt::format("{}: no Attachment of {} bytes stands here", context, index.length));
  }
  std::size_t data_offset = 0;
  const ByteSpan content = bytes.subspan(kRecordHeadBytes);
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const AttachmentHead head,
                                parse_attachment_head(content, &data_offset), context);
  if (size - data_offset < 4 || head.data_size > size - data_offset - 4) {
    return data_loss(fmt::format("{}: Attachment.data: {} bytes stated, {} left", context,
                                 head.data_size, size - data_offset));
  }
  std::uint32_t crc = crc32(0, content.first(data_offset));
  std::uint64_t at = index.offset + kRecordHeadBytes + data_offset;
  for (std::uint64_t left = head.data_size; left > 0;) {
    const std::uint64_t part = std::min(left, kPart);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan data, window.view(at, part), context);
    crc = crc32(crc, data);
    ROPEWALK_RETURN_IF_ERROR(take(data));
    at += part;
    left -= part;
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan stored, window.view(at, 4), context);
  std::uint32_t expected = 0;
  std::memcpy(&expected, stored.data(), sizeof expected);
  if (expected != 0 && expected != crc) {
    return data_loss(fmt::format("{}: attachment \"{}\": CRC {:#010x} stored, {:#010x} computed",
                                 context, head.name, expected, crc))
        .with_reason("attachment_crc");
  }
  return ok_status();
}

}  // namespace ropewalk::mcap
