// Messages of a Writer: into open chunks, outside chunks, or in parts; and attachments in parts.
#include <algorithm>
#include <limits>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/record_writer.h"
#include "ropewalk/format/mcap/writer_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kLookedAtBytes = 4096;

}  // namespace

Status Writer::write(const MessageHead& head, ByteSpan data) {
  return impl_->write_parts(head, std::span<const ByteSpan>(&data, 1));
}
Status Writer::write(const MessageHead& head, std::span<const ByteSpan> parts) {
  return impl_->write_parts(head, parts);
}

Status Writer::Impl::write_parts(const MessageHead& head, std::span<const ByteSpan> data) {
  ROPEWALK_RETURN_IF_ERROR(ready());
  ROPEWALK_ASSIGN_OR_RETURN(ChannelState * channel, channel_of(head.channel_id));
  if (!options.chunked) return write_loose(*channel, head, data);
  std::uint64_t size = 0;
  for (const ByteSpan part : data) size += part.size();
  if (options.detect_incompressible && size >= kLookedAtBytes && channel->compress &&
      options.compression != Compression::none) {
    ROPEWALK_RETURN_IF_ERROR(look_at(*channel, data));
  }
  if (is_large(size) && !compresses(*channel->chunk))
    return write_large(*channel, head, data, size);
  ROPEWALK_ASSIGN_OR_RETURN(std::uint8_t * to, room(*channel, head, size));
  for (const ByteSpan part : data) {
    if (part.empty()) continue;
    std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  OpenChunk& chunk = *channel->chunk;
  if (chunk.close_pending) ROPEWALK_RETURN_IF_ERROR(close_chunk(chunk));
  return has_clock() ? run_clock() : ok_status();
}

Status Writer::Impl::write_loose(ChannelState& channel, const MessageHead& head,
                                 std::span<const ByteSpan> data) {
  std::uint64_t size = 0;
  for (const ByteSpan part : data) size += part.size();
  scratch.clear();
  define_loose(channel, scratch);
  append_message_head(scratch, head, size);
  std::vector<ByteSpan> all{scratch};
  all.insert(all.end(), data.begin(), data.end());
  ROPEWALK_RETURN_IF_ERROR(emit_parts(all));
  count_messages(channel, 1, head.log_time, head.log_time);
  return after_chunk();
}

// Makes room for the data of one message in the chunk of its group, with everything that stands in
// front of it. Sets close_pending when the chunk is full with it.
Result<std::uint8_t*> Writer::Impl::room(ChannelState& channel, const MessageHead& head,
                                         std::uint64_t size) {
  if (size > (1ULL << 40)) {
    return invalid_argument(fmt::format("message of {} bytes: write it in parts", size));
  }
  OpenChunk& chunk = *channel.chunk;
  if (chunk.messages > 0) {
    const std::uint64_t start = std::min(chunk.start_time, head.log_time);
    const std::uint64_t end = std::max(chunk.end_time, head.log_time);
    if (chunk.close_pending || is_large(size) ||
        (options.max_chunk_span_ns != 0 && end - start > options.max_chunk_span_ns)) {
      ROPEWALK_RETURN_IF_ERROR(close_chunk(chunk));
    }
  }
  define(channel, chunk.serial, [&](ByteSpan record) { chunk.buffer.append(record); });
  const std::uint64_t at = chunk.buffer.size();
  std::uint8_t* to =
      chunk.buffer.extend(kRecordHeadBytes + kMessageHeadBytes + static_cast<std::size_t>(size));
  const auto put = [&to](auto value) {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
  };
  put(static_cast<std::uint8_t>(Opcode::message));
  put(std::uint64_t{kMessageHeadBytes + size});
  put(head.channel_id);
  put(head.sequence);
  put(head.log_time);
  put(head.publish_time);

  if (channel.entries.empty()) chunk.channels.push_back(&channel);
  channel.entries.push_back({.log_time = head.log_time, .offset = at});
  if (chunk.messages++ == 0) {
    chunk.start_time = chunk.end_time = head.log_time;
    if (options.max_chunk_age_ns != 0) chunk.opened_ns = clock_ns();
  } else {
    chunk.start_time = std::min(chunk.start_time, head.log_time);
    chunk.end_time = std::max(chunk.end_time, head.log_time);
  }
  chunk.close_pending = is_large(size) || chunk.buffer.size() >= options.chunk_bytes;
  return to;
}

Result<MutableByteSpan> Writer::reserve(const MessageHead& head, std::uint64_t size) {
  Impl& w = *impl_;
  ROPEWALK_RETURN_IF_ERROR(w.ready());
  if (!w.options.chunked) return failed_precondition("reserve() needs chunks: use write()");
  ROPEWALK_ASSIGN_OR_RETURN(ChannelState * channel, w.channel_of(head.channel_id));
  if (w.has_clock()) ROPEWALK_RETURN_IF_ERROR(w.run_clock());
  ROPEWALK_ASSIGN_OR_RETURN(std::uint8_t * to, w.room(*channel, head, size));
  return MutableByteSpan(to, static_cast<std::size_t>(size));
}

// --- messages and attachments in parts

Status Writer::begin_message(const MessageHead& head, std::uint64_t size,
                             std::optional<std::uint32_t> data_crc) {
  Impl& w = *impl_;
  ROPEWALK_RETURN_IF_ERROR(w.ready());
  ROPEWALK_ASSIGN_OR_RETURN(ChannelState * channel, w.channel_of(head.channel_id));
  return w.begin_message(*channel, head, size, data_crc);
}

Status Writer::Impl::begin_message(ChannelState& channel, const MessageHead& head,
                                   std::uint64_t size, std::optional<std::uint32_t> crc) {
  if (size > std::numeric_limits<std::uint64_t>::max() / 2) {
    return invalid_argument(fmt::format("message of {} bytes", size));
  }
  Bytes front;  // what stands in the chunk before the data
  if (options.chunked) {
    ROPEWALK_RETURN_IF_ERROR(close_chunk(*channel.chunk));
    ROPEWALK_RETURN_IF_ERROR(emit_pending(true));
    define(channel, channel.chunk->serial,
           [&](ByteSpan record) { front.insert(front.end(), record.begin(), record.end()); });
    // The open chunk is another one from here on: its definitions are its own.
    start_chunk(*channel.chunk);
  } else {
    define_loose(channel, front);
  }
  parts = {};
  parts.kind = OpenParts::Kind::message;
  parts.size = size;
  parts.expected_crc = crc;
  parts.channel = &channel;
  parts.head = head;
  parts.message_offset = front.size();
  append_message_head(front, head, size);

  scratch.clear();
  if (options.chunked) {
    append_sync_record(scratch);
    const std::uint64_t sync_bytes = scratch.size();
    const ChunkHead chunk{.message_start_time = head.log_time,
                          .message_end_time = head.log_time,
                          .uncompressed_size = front.size() + size,
                          .uncompressed_crc = options.chunk_crc && crc.has_value()
                                                  ? crc32_combine(crc32(0, front), *crc, size)
                                                  : 0,
                          .compression = "",
                          .records_size = front.size() + size};
    ROPEWALK_RETURN_IF_ERROR(append_chunk_head(scratch, chunk));
    parts.chunk = {.message_start_time = head.log_time,
                   .message_end_time = head.log_time,
                   .chunk_start_offset = offset + sync_bytes,
                   .chunk_length = scratch.size() - sync_bytes + front.size() + size,
                   .message_index_offsets = {},
                   .message_index_length = 0,
                   .compression = "",
                   .compressed_size = chunk.records_size,
                   .uncompressed_size = chunk.uncompressed_size};
  }
  scratch.insert(scratch.end(), front.begin(), front.end());
  return emit(scratch);
}

Status Writer::Impl::append_part(OpenParts::Kind kind, ByteSpan part) {
  if (!failure.ok()) return failure;
  if (parts.kind != kind) return failed_precondition("nothing in parts of this kind was begun");
  if (part.size() > parts.size - parts.written) {
    return fail(failed_precondition(fmt::format("more than the {} bytes announced", parts.size)));
  }
  if (kind == OpenParts::Kind::attachment || parts.expected_crc.has_value()) {
    parts.crc = crc32(parts.crc, part);
  }
  parts.written += part.size();
  return emit(part);
}

Status Writer::append_message(ByteSpan part) {
  return impl_->append_part(OpenParts::Kind::message, part);
}

Status Writer::end_message() {
  if (!impl_->failure.ok()) return impl_->failure;
  if (impl_->parts.kind != OpenParts::Kind::message) {
    return failed_precondition("end_message() without begin_message()");
  }
  return impl_->end_message();
}

Status Writer::Impl::end_message() {
  if (parts.written != parts.size) {
    return fail(failed_precondition(
        fmt::format("message in parts: {} of {} bytes announced", parts.written, parts.size)));
  }
  if (parts.expected_crc.has_value() && *parts.expected_crc != parts.crc) {
    return fail(failed_precondition(fmt::format(
        "message in parts: its CRC {:#010x} differs from the announced {:#010x}: the data changed "
        "between the two passes",
        parts.crc, *parts.expected_crc)));
  }
  parts.kind = OpenParts::Kind::none;
  ChannelState& channel = *parts.channel;
  if (options.chunked) {
    scratch.clear();
    if (options.message_index) {
      parts.chunk.message_index_offsets.emplace_back(channel.channel.id, offset);
      MessageIndex index{.channel_id = channel.channel.id, .records = {}};
      index.records.push_back({.log_time = parts.head.log_time, .offset = parts.message_offset});
      ROPEWALK_RETURN_IF_ERROR(append_record(scratch, index));
    }
    parts.chunk.message_index_length = scratch.size();
    ROPEWALK_RETURN_IF_ERROR(emit(scratch));
    ++statistics.chunk_count;
    if (options.chunk_index) chunk_indexes.push_back(std::move(parts.chunk));
  }
  count_messages(channel, 1, parts.head.log_time, parts.head.log_time);
  return after_chunk();
}

Status Writer::begin_attachment(const AttachmentHead& head) {
  Impl& w = *impl_;
  ROPEWALK_RETURN_IF_ERROR(w.ready());
  ROPEWALK_RETURN_IF_ERROR(w.emit_pending(true));
  w.scratch.clear();
  ROPEWALK_RETURN_IF_ERROR(append_attachment_head(w.scratch, head));
  w.parts = {};
  w.parts.kind = OpenParts::Kind::attachment;
  w.parts.size = head.data_size;
  w.parts.crc = crc32(0, ByteSpan(w.scratch).subspan(kRecordHeadBytes));
  w.parts.attachment = {.offset = w.offset,
                        .length = w.scratch.size() + head.data_size + sizeof(std::uint32_t),
                        .log_time = head.log_time,
                        .create_time = head.create_time,
                        .data_size = head.data_size,
                        .name = head.name,
                        .media_type = head.media_type};
  return w.emit(w.scratch);
}

Status Writer::append_attachment(ByteSpan part) {
  return impl_->append_part(OpenParts::Kind::attachment, part);
}

Status Writer::end_attachment() {
  if (!impl_->failure.ok()) return impl_->failure;
  if (impl_->parts.kind != OpenParts::Kind::attachment) {
    return failed_precondition("end_attachment() without begin_attachment()");
  }
  return impl_->end_attachment();
}

Status Writer::Impl::end_attachment() {
  if (parts.written != parts.size) {
    return fail(failed_precondition(
        fmt::format("attachment: {} of {} bytes announced", parts.written, parts.size)));
  }
  parts.kind = OpenParts::Kind::none;
  scratch.clear();
  ByteWriter(scratch).write_le(options.attachment_crc ? parts.crc : 0U);
  ROPEWALK_RETURN_IF_ERROR(emit(scratch));
  ++statistics.attachment_count;
  if (options.attachment_index) attachment_indexes.push_back(std::move(parts.attachment));
  return after_chunk();
}

Status Writer::write_attachment(const AttachmentHead& head, ByteSpan data) {
  AttachmentHead whole = head;
  whole.data_size = data.size();
  ROPEWALK_RETURN_IF_ERROR(begin_attachment(whole));
  ROPEWALK_RETURN_IF_ERROR(append_attachment(data));
  return end_attachment();
}

}  // namespace ropewalk::mcap
