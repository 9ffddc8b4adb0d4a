// The way of a chunk of a Writer into the file: closed, packed (here or on the pool), written in
// order with its indexes by one append; and what follows from a chunk that is written: checkpoints
// and durability.
#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/private_records.h"
#include "ropewalk/format/mcap/record_writer.h"
#include "ropewalk/format/mcap/writer_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kMinCompressedBytes = 1024;

// Samples of messages, to see whether they shrink.
constexpr std::uint32_t kDullSamples = 4;       // in a row, to call a topic incompressible
constexpr std::uint32_t kMessagesToLook = 256;  // between two samples of one that is known
constexpr std::size_t kSampleBytes = std::size_t{16} << 10;

}  // namespace

std::int64_t clock_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status Writer::Impl::emit_parts(std::span<const ByteSpan> all) {
  Status status = sink->append_parts(all);
  if (!status.ok()) {
    // Some parts may have left: what counts is what the sink has.
    offset = sink->size() - sink_start;
    return fail(std::move(status));
  }
  for (const ByteSpan part : all) {
    offset += part.size();
    if (options.data_crc && in_data_section) data_crc = crc32(data_crc, part);
  }
  return ok_status();
}

// --- from open to closed

OpenChunk* Writer::Impl::group_of(std::uint32_t group, bool compress) {
  auto& chunk = groups[{group, compress}];
  if (chunk == nullptr) {
    chunk = std::make_unique<OpenChunk>();
    chunk->compress = compress;
    start_chunk(*chunk);
  }
  return chunk.get();
}

// Serialises one MessageIndex per channel, in the order of ids.
void Writer::Impl::index_messages(OpenChunk& chunk, ClosedChunk& closed) {
  std::sort(
      chunk.channels.begin(), chunk.channels.end(),
      [](const ChannelState* a, const ChannelState* b) { return a->channel.id < b->channel.id; });
  closed.index_records.clear();
  closed.index_offsets.clear();
  closed.counts.clear();
  for (ChannelState* channel : chunk.channels) {
    static_assert(sizeof(MessageIndex::Entry) == 16);
    closed.counts.push_back({.channel = channel, .messages = channel->entries.size()});
    if (options.message_index) {
      const std::size_t entry_bytes = channel->entries.size() * sizeof(MessageIndex::Entry);
      closed.index_offsets.emplace_back(channel->channel.id, closed.index_records.size());
      ByteWriter writer(closed.index_records);
      writer.write_le(static_cast<std::uint8_t>(Opcode::message_index));
      writer.write_le(static_cast<std::uint64_t>(6 + entry_bytes));
      writer.write_le(channel->channel.id);
      writer.write_le(static_cast<std::uint32_t>(entry_bytes));
      writer.write(
          ByteSpan(reinterpret_cast<const std::uint8_t*>(channel->entries.data()), entry_bytes));
    }
    channel->entries.clear();
  }
}

void ClosedChunk::pack() {
  const ByteSpan bytes = records.span();
  head.uncompressed_size = bytes.size();
  head.uncompressed_crc = with_crc ? crc32(0, bytes) : 0;
  head.compression.clear();
  head.records_size = bytes.size();
  if (!compress || (!keep_compressed && bytes.size() < kMinCompressedBytes)) return;
  compressed.truncate(0);
  const std::size_t room = compress_bound(codec, bytes.size());
  std::uint8_t* out = compressed.extend(room);
  const auto size = compress_into(codec, bytes, level, {out, room});
  if (!size.ok()) {
    status = size.status();
    return;
  }
  compressed.truncate(*size);
  if (keep_compressed || *size <= bytes.size() - bytes.size() / 50) {
    head.compression = std::string(compression_name(codec));
    head.records_size = *size;
  }
}

Status Writer::Impl::close_chunk(OpenChunk& chunk) {
  if (chunk.messages == 0) return ok_status();
  std::unique_ptr<ClosedChunk> closed;
  if (spare.empty()) {
    closed = std::make_unique<ClosedChunk>();
  } else {
    closed = std::move(spare.back());
    spare.pop_back();
  }
  std::swap(closed->records, chunk.buffer);
  closed->head.message_start_time = chunk.start_time;
  closed->head.message_end_time = chunk.end_time;
  closed->compress = compresses(chunk);
  closed->codec = options.compression;
  closed->level = options.level;
  closed->keep_compressed = options.force_compression;
  closed->with_crc = options.chunk_crc;
  closed->status = ok_status();
  closed->ready = false;
  index_messages(chunk, *closed);
  start_chunk(chunk);
  if (options.pool == nullptr) {
    closed->pack();
    Status status = emit_chunk(*closed);
    spare.push_back(std::move(closed));
    return status;
  }
  if (tasks == nullptr) tasks = std::make_unique<TaskGroup>(options.pool);
  tasks->run([work = closed.get()] {
    work->pack();
    work->ready.store(true, std::memory_order_release);
    work->ready.notify_all();
    return ok_status();
  });
  pending.push_back(std::move(closed));
  return emit_pending(false);
}

// Writes the chunks that are packed, in order; all of them when `wait`, and otherwise as many as it
// takes to keep few under way.
Status Writer::Impl::emit_pending(bool wait) {
  const std::size_t most = options.pool == nullptr ? 0 : std::size_t{2} * options.pool->size();
  while (!pending.empty()) {
    ClosedChunk& first = *pending.front();
    if (!first.ready.load(std::memory_order_acquire)) {
      if (!wait && pending.size() <= most) return ok_status();
      // The calling thread helps instead of waiting idly.
      while (!first.ready.load(std::memory_order_acquire)) {
        if (!options.pool->run_one()) first.ready.wait(false, std::memory_order_acquire);
      }
    }
    Status status = emit_chunk(first);
    spare.push_back(std::move(pending.front()));
    pending.pop_front();
    ROPEWALK_RETURN_IF_ERROR(std::move(status));
  }
  return ok_status();
}

Status Writer::Impl::close_all() {
  for (auto& [key, chunk] : groups) {
    ROPEWALK_RETURN_IF_ERROR(close_chunk(*chunk));
  }
  return emit_pending(true);
}

// --- into the file

void Writer::Impl::append_sync_record(Bytes& out) const {
  if (!options.recording_marks) return;
  append_sync(
      out, {.offset = offset, .checkpoint = blocks.back().offset, .chunk = statistics.chunk_count});
}

Status Writer::Impl::emit_chunk(ClosedChunk& chunk) {
  if (!chunk.status.ok()) return fail(chunk.status);
  scratch.clear();
  append_sync_record(scratch);
  const std::size_t sync_bytes = scratch.size();
  ROPEWALK_RETURN_IF_ERROR(append_chunk_head(scratch, chunk.head));
  const std::uint64_t start = offset + sync_bytes;
  ChunkIndex index{.message_start_time = chunk.head.message_start_time,
                   .message_end_time = chunk.head.message_end_time,
                   .chunk_start_offset = start,
                   .chunk_length = scratch.size() - sync_bytes + chunk.head.records_size,
                   .message_index_offsets = chunk.index_offsets,
                   .message_index_length = chunk.index_records.size(),
                   .compression = chunk.head.compression,
                   .compressed_size = chunk.head.records_size,
                   .uncompressed_size = chunk.head.uncompressed_size};
  for (auto& [id, place] : index.message_index_offsets) place += start + index.chunk_length;
  const ByteSpan all[] = {scratch, chunk.payload(), chunk.index_records};
  ROPEWALK_RETURN_IF_ERROR(emit_parts(all));
  for (const ClosedChunk::Count& count : chunk.counts) {
    count_messages(*count.channel, count.messages, chunk.head.message_start_time,
                   chunk.head.message_end_time);
  }
  ++statistics.chunk_count;
  if (options.chunk_index) chunk_indexes.push_back(std::move(index));
  return after_chunk();
}

// A message alone in an uncompressed chunk, from where it lies to the sink.
Status Writer::Impl::write_large(ChannelState& channel, const MessageHead& head,
                                 std::span<const ByteSpan> data, std::uint64_t size) {
  ROPEWALK_RETURN_IF_ERROR(close_chunk(*channel.chunk));
  ROPEWALK_RETURN_IF_ERROR(emit_pending(true));
  Bytes front;
  define(channel, channel.chunk->serial,
         [&](ByteSpan record) { front.insert(front.end(), record.begin(), record.end()); });
  start_chunk(*channel.chunk);
  const std::uint64_t message_offset = front.size();
  append_message_head(front, head, size);
  ChunkHead chunk{.message_start_time = head.log_time,
                  .message_end_time = head.log_time,
                  .uncompressed_size = front.size() + size,
                  .uncompressed_crc = 0,
                  .compression = "",
                  .records_size = front.size() + size};
  if (options.chunk_crc) {
    chunk.uncompressed_crc = crc32(0, front);
    for (const ByteSpan part : data) chunk.uncompressed_crc = crc32(chunk.uncompressed_crc, part);
  }
  scratch.clear();
  append_sync_record(scratch);
  const std::size_t sync_bytes = scratch.size();
  ROPEWALK_RETURN_IF_ERROR(append_chunk_head(scratch, chunk));
  ChunkIndex index{.message_start_time = head.log_time,
                   .message_end_time = head.log_time,
                   .chunk_start_offset = offset + sync_bytes,
                   .chunk_length = scratch.size() - sync_bytes + chunk.records_size,
                   .message_index_offsets = {},
                   .message_index_length = 0,
                   .compression = "",
                   .compressed_size = chunk.records_size,
                   .uncompressed_size = chunk.uncompressed_size};
  Bytes index_record;
  if (options.message_index) {
    ROPEWALK_RETURN_IF_ERROR(append_record(
        index_record,
        MessageIndex{.channel_id = channel.channel.id,
                     .records = {{.log_time = head.log_time, .offset = message_offset}}}));
    index.message_index_offsets.emplace_back(channel.channel.id,
                                             index.chunk_start_offset + index.chunk_length);
    index.message_index_length = index_record.size();
  }
  std::vector<ByteSpan> all{scratch, front};
  all.insert(all.end(), data.begin(), data.end());
  all.emplace_back(index_record);
  ROPEWALK_RETURN_IF_ERROR(emit_parts(all));
  count_messages(channel, 1, head.log_time, head.log_time);
  ++statistics.chunk_count;
  if (options.chunk_index) chunk_indexes.push_back(std::move(index));
  return after_chunk();
}

// --- what follows a record of the data section

Status Writer::Impl::after_chunk() {
  if (options.recording_marks && offset - checkpoint_end >= options.checkpoint_bytes) {
    ROPEWALK_RETURN_IF_ERROR(write_checkpoint());
  }
  if (options.flush_chunks) {
    if (Status status = sink->flush(); !status.ok()) return fail(std::move(status));
  }
  if (options.sync_bytes != 0 && offset - synced_at >= options.sync_bytes) return sync_now(true);
  return ok_status();
}

Status Writer::Impl::write_checkpoint() {
  const std::uint64_t number = blocks.size();
  const std::uint64_t base = number == 0 ? 0 : number - (number & (~number + 1));
  const Block since = number == 0 ? Block{} : blocks[base];
  Bytes records;
  const auto define = [&](auto& state) {
    if (!state.in_data) return;
    if (state.checkpoint == 0) state.checkpoint = number;
    if (state.checkpoint > base) {
      records.insert(records.end(), state.record.begin(), state.record.end());
    }
  };
  for (auto& [id, schema] : schemas) define(*schema);
  for (auto& channel : channels) {
    if (channel != nullptr) define(*channel);
  }
  for (std::size_t i = since.chunks; i < chunk_indexes.size(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(append_record(records, chunk_indexes[i]));
  }
  for (std::size_t i = since.attachments; i < attachment_indexes.size(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(append_record(records, attachment_indexes[i]));
  }
  for (std::size_t i = since.metadata; i < metadata_indexes.size(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(append_record(records, metadata_indexes[i]));
  }
  append_recording(records, {.sync_length = static_cast<std::uint32_t>(kSyncRecordBytes),
                             .checkpoints = {checkpoints.begin() +
                                                 static_cast<std::ptrdiff_t>(since.checkpoints),
                                             checkpoints.end()}});
  scratch.clear();
  append_checkpoint(scratch, offset, since.offset, records);
  checkpoints.emplace_back(offset, scratch.size());
  blocks.push_back({.offset = offset,
                    .chunks = chunk_indexes.size(),
                    .attachments = attachment_indexes.size(),
                    .metadata = metadata_indexes.size(),
                    .checkpoints = checkpoints.size()});
  ROPEWALK_RETURN_IF_ERROR(emit(scratch));
  checkpoint_end = offset;
  return ok_status();
}

Status Writer::Impl::sync_now(bool data_only) {
  Status status = data_only ? sink->sync_data() : sink->sync();
  if (!status.ok()) return fail(std::move(status));
  synced_at = offset;
  if (has_clock()) synced_ns = clock_ns();
  return ok_status();
}

Status Writer::Impl::run_clock() {
  const std::int64_t now = clock_ns();
  if (options.max_chunk_age_ns != 0) {
    const auto oldest = now - static_cast<std::int64_t>(options.max_chunk_age_ns);
    for (auto& [key, chunk] : groups) {
      if (chunk->messages > 0 && chunk->opened_ns <= oldest) {
        ROPEWALK_RETURN_IF_ERROR(close_chunk(*chunk));
      }
    }
  }
  ROPEWALK_RETURN_IF_ERROR(emit_pending(false));
  if (options.sync_interval_ns != 0 && offset > synced_at &&
      now - synced_ns >= static_cast<std::int64_t>(options.sync_interval_ns)) {
    return sync_now(true);
  }
  return ok_status();
}

// --- topics that do not shrink

Status Writer::Impl::move_to_group(ChannelState& channel, bool compress) {
  if (channel.chunk->compress == compress) return ok_status();
  // The entries of a channel belong to one open chunk.
  ROPEWALK_RETURN_IF_ERROR(close_chunk(*channel.chunk));
  channel.chunk = group_of(channel.group, compress);
  return ok_status();
}

Status Writer::Impl::look_at(ChannelState& channel, std::span<const ByteSpan> data) {
  if (options.force_compression) return ok_status();
  if (channel.until_look > 0) {
    --channel.until_look;
    return ok_status();
  }
  // From the middle: headers shrink where the rest does not.
  ByteSpan largest;
  for (const ByteSpan part : data) {
    if (part.size() > largest.size()) largest = part;
  }
  const std::size_t size = std::min(largest.size(), kSampleBytes);
  const ByteSpan sample = largest.subspan((largest.size() - size) / 2, size);
  GrowBuffer out;
  const std::size_t room = compress_bound(options.compression, size);
  const auto packed = compress_into(options.compression, sample, 0, {out.extend(room), room});
  if (!packed.ok()) return fail(packed.status());
  const bool dull = *packed > size - size / 32;
  channel.dull = dull ? channel.dull + 1 : 0;
  const bool known = channel.dull >= kDullSamples;
  if (known || !dull) channel.until_look = kMessagesToLook;
  return move_to_group(channel, !known);
}

}  // namespace ropewalk::mcap
