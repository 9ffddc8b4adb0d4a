#pragma once
// What a Writer keeps: definitions by id, the open chunks, and what the end of the file needs.
#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ropewalk/format/mcap/writer.h"

namespace ropewalk::mcap {

/// Units: nanoseconds of a clock that never goes back.
std::int64_t clock_ns();

// A byte buffer that grows without clearing what the next line overwrites.
class GrowBuffer {
 public:
  std::uint8_t* extend(std::size_t count) {
    if (storage_.size() - used_ < count) {
      storage_.resize(std::max(used_ + count, storage_.size() + storage_.size() / 2));
    }
    std::uint8_t* at = storage_.data() + used_;
    used_ += count;
    return at;
  }
  void append(ByteSpan bytes) {
    if (!bytes.empty()) std::memcpy(extend(bytes.size()), bytes.data(), bytes.size());
  }
  void truncate(std::size_t used) { used_ = used; }
  std::size_t size() const { return used_; }
  MutableByteSpan span() { return {storage_.data(), used_}; }

 private:
  Bytes storage_;
  std::size_t used_ = 0;
};

struct SchemaState {
  Schema schema;
  Bytes record;  // as it stands in the file
  bool in_data = false;
  std::uint64_t checkpoint = 0;  // number of the first one that holds it; 0: none yet
  std::uint64_t last_chunk = 0;  // serial of the last chunk that holds a copy
};

struct OpenChunk;

struct ChannelState {
  Channel channel;
  Bytes record;
  SchemaState* schema = nullptr;
  OpenChunk* chunk = nullptr;                // the chunk of its group
  std::vector<MessageIndex::Entry> entries;  // of messages in the open chunk
  std::uint64_t messages = 0;
  std::uint64_t last_chunk = 0;
  bool in_data = false;
  std::uint64_t checkpoint = 0;  // number of the first one that holds it; 0: none yet
  std::uint32_t group = 0;
  bool compress = true;          // as the caller said
  std::uint32_t dull = 0;        // samples in a row that did not shrink
  std::uint32_t until_look = 0;  // messages until the next sample
};

struct OpenChunk {
  bool compress = true;
  GrowBuffer buffer;                    // the records
  std::vector<ChannelState*> channels;  // with messages in it
  std::uint64_t serial = 0;
  std::uint64_t messages = 0;
  std::uint64_t start_time = 0;
  std::uint64_t end_time = 0;
  std::int64_t opened_ns = 0;  // by the clock, at its first message
  bool close_pending = false;  // reached its size by reserve(): closes on the next call
};

// A chunk on its way into the file. Its head and its place are only known when its turn comes.
struct ClosedChunk {
  struct Count {
    ChannelState* channel = nullptr;
    std::uint64_t messages = 0;
  };
  GrowBuffer records;
  GrowBuffer compressed;
  Bytes index_records;  // MessageIndex records in a row
  std::vector<std::pair<std::uint16_t, std::uint64_t>> index_offsets;  // into index_records
  std::vector<Count> counts;
  ChunkHead head;
  bool compress = false;
  Compression codec = Compression::none;
  int level = 0;
  bool keep_compressed = false;
  bool with_crc = true;
  Status status;
  std::atomic<bool> ready{false};

  // CRC and compression: needs nothing but what is here.
  void pack();
  ByteSpan payload() { return head.compression.empty() ? records.span() : compressed.span(); }
};

// A message or attachment that is written in parts.
struct OpenParts {
  enum class Kind { none, message, attachment } kind = Kind::none;
  std::uint64_t size = 0;
  std::uint64_t written = 0;
  std::uint32_t crc = 0;
  std::optional<std::uint32_t> expected_crc;
  ChannelState* channel = nullptr;
  MessageHead head;
  std::uint64_t message_offset = 0;  // of the message in its chunk
  ChunkIndex chunk;
  AttachmentIndex attachment;
};

struct Writer::Impl {
  explicit Impl(WriterOptions o) : options(std::move(o)) {}

  WriterOptions options;
  Sink* sink = nullptr;  // null while no file is open
  Status failure;        // the first failed write of this file

  // Registered; stays from file to file. Ordered by id, the order of the summary.
  std::map<std::uint16_t, std::unique_ptr<SchemaState>> schemas;
  std::vector<std::unique_ptr<ChannelState>> channels;  // index is the id
  std::unordered_map<std::string, std::uint16_t> schema_ids;
  std::unordered_map<std::string, std::uint16_t> channel_ids;
  std::map<std::pair<std::uint32_t, bool>, std::unique_ptr<OpenChunk>> groups;
  std::uint32_t next_schema_id = 1;
  std::uint32_t next_channel_id = 1;

  // Of the open file.
  std::uint64_t offset = 0;
  std::uint32_t data_crc = 0;
  bool in_data_section = false;
  std::uint64_t chunk_serial = 0;
  Statistics statistics;
  std::vector<ChunkIndex> chunk_indexes;
  std::vector<AttachmentIndex> attachment_indexes;
  std::vector<MetadataIndex> metadata_indexes;
  OpenParts parts;
  Bytes scratch;

  // Chunks that are packed on the pool, oldest first, and used ones for the next.
  std::deque<std::unique_ptr<ClosedChunk>> pending;
  std::vector<std::unique_ptr<ClosedChunk>> spare;
  std::unique_ptr<TaskGroup> tasks;

  // Durability and recording.
  std::uint64_t sink_start = 0;  // size of the sink when the file was opened
  std::uint64_t synced_at = 0;   // offset
  std::int64_t synced_ns = 0;
  // Note [Checkpoints]: checkpoint number k holds the blocks after number k - (k & -k) and points
  // to that one, so that the chain from any of them is short. Number 0 is where the file was
  // opened.
  struct Block {
    std::uint64_t offset = 0;  // of the checkpoint that ends it
    std::size_t chunks = 0;    // indexes up to here
    std::size_t attachments = 0;
    std::size_t metadata = 0;
    std::size_t checkpoints = 0;
  };
  std::vector<Block> blocks;
  std::uint64_t checkpoint_end = 0;  // offset
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;

  bool has_clock() const { return options.max_chunk_age_ns != 0 || options.sync_interval_ns != 0; }

  Status ready() const {
    if (!failure.ok()) return failure;
    if (sink == nullptr) return failed_precondition("no MCAP file is open: call open() first");
    if (parts.kind != OpenParts::Kind::none) {
      return failed_precondition("a message or attachment in parts is not ended yet");
    }
    return ok_status();
  }

  Status emit(ByteSpan bytes) { return emit_parts({&bytes, 1}); }
  Status emit_parts(std::span<const ByteSpan> all);
  Status fail(Status status) {
    failure = status;
    return status;
  }

  void start_file(Sink& to);
  void start_chunk(OpenChunk& chunk) {
    chunk.serial = ++chunk_serial;
    chunk.buffer.truncate(0);
    chunk.channels.clear();
    chunk.messages = 0;
    chunk.close_pending = false;
  }

  // With several chunks open at a time the order of their definitions in the file is not known, so
  // each chunk carries its own.
  bool needs_definition(bool in_data, std::uint64_t last_chunk, std::uint64_t serial) const {
    const bool every = options.definitions_in_every_chunk || groups.size() > 1;
    return every ? last_chunk != serial : !in_data;
  }
  // Appends the definitions that `channel` needs in the chunk `serial` through `append`.
  template <typename Append>
  void define(ChannelState& channel, std::uint64_t serial, Append append) {
    if (channel.last_chunk == serial) return;
    if (SchemaState* schema = channel.schema;
        schema != nullptr && needs_definition(schema->in_data, schema->last_chunk, serial)) {
      append(ByteSpan(schema->record));
      schema->last_chunk = serial;
      schema->in_data = true;
    }
    if (needs_definition(channel.in_data, channel.last_chunk, serial)) {
      append(ByteSpan(channel.record));
      channel.in_data = true;
    }
    channel.last_chunk = serial;
  }

  // The same outside chunks: before the first use in the file.
  void define_loose(ChannelState& channel, Bytes& out) const {
    const auto append = [&](const Bytes& record) {
      out.insert(out.end(), record.begin(), record.end());
    };
    if (channel.in_data) return;
    if (channel.schema != nullptr && !channel.schema->in_data) {
      append(channel.schema->record);
      channel.schema->in_data = true;
    }
    append(channel.record);
    channel.in_data = true;
  }

  void count_messages(ChannelState& channel, std::uint64_t count, std::uint64_t start,
                      std::uint64_t end) {
    if (statistics.message_count == 0) {
      statistics.message_start_time = start;
      statistics.message_end_time = end;
    } else {
      statistics.message_start_time = std::min(statistics.message_start_time, start);
      statistics.message_end_time = std::max(statistics.message_end_time, end);
    }
    statistics.message_count += count;
    channel.messages += count;
  }

  Result<ChannelState*> channel_of(std::uint16_t id) {
    if (id >= channels.size() || channels[id] == nullptr) {
      return not_found(fmt::format("no channel {} is registered", id));
    }
    return channels[id].get();
  }

  bool compresses(const OpenChunk& chunk) const {
    return chunk.compress && options.compression != Compression::none;
  }
  bool is_large(std::uint64_t size) const {
    return size >= options.large_message_bytes || size >= options.chunk_bytes;
  }

  Status write_parts(const MessageHead& head, std::span<const ByteSpan> data);
  Status write_loose(ChannelState& channel, const MessageHead& head,
                     std::span<const ByteSpan> data);
  Result<std::uint8_t*> room(ChannelState& channel, const MessageHead& head, std::uint64_t size);
  // --- writer_chunks.cc
  Status close_chunk(OpenChunk& chunk);
  Status close_all();
  Status emit_chunk(ClosedChunk& chunk);
  Status emit_pending(bool wait);
  void index_messages(OpenChunk& chunk, ClosedChunk& closed);
  Status write_large(ChannelState& channel, const MessageHead& head, std::span<const ByteSpan> data,
                     std::uint64_t size);
  void append_sync_record(Bytes& out) const;
  Status after_chunk();
  Status write_checkpoint();
  Status sync_now(bool data_only);
  Status run_clock();
  Status look_at(ChannelState& channel, std::span<const ByteSpan> data);
  Status move_to_group(ChannelState& channel, bool compress);
  OpenChunk* group_of(std::uint32_t group, bool compress);

  Status begin_message(ChannelState& channel, const MessageHead& head, std::uint64_t size,
                       std::optional<std::uint32_t> crc);
  Status append_part(OpenParts::Kind kind, ByteSpan part);
  Status end_message();
  Status end_attachment();
  Status append_unused_definitions();
  Status finish();
  void finish_statistics();
};

}  // namespace ropewalk::mcap
