// Recordings: marks in the file, durability, the clock, and opening what a crash leaves.
#include <atomic>
#include <chrono>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "ropewalk/format/mcap/mcap.h"

#include "tests/support/mcap_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::mcap {
namespace {

std::vector<TestMessage> numbered(std::size_t count, std::size_t bytes = 100) {
  std::mt19937 random(5);
  std::vector<TestMessage> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string data(bytes, 'x');
    for (char& c : data) c = static_cast<char>('a' + random() % 16);
    out.push_back({.topic = "t" + std::to_string(i % 5),
                   .time = i * 10,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = std::move(data)});
  }
  return out;
}

WriterOptions recording_options() {
  WriterOptions options = WriterOptions::recording();
  options.max_chunk_age_ns = 0;  // the clock has no place in these
  options.sync_interval_ns = 0;
  options.chunk_bytes = 4000;
  options.checkpoint_bytes = 30'000;
  return options;
}

// Counts what is read through it.
class CountingSource final : public Source {
 public:
  explicit CountingSource(Bytes bytes) : inner_(memory_source(std::move(bytes))) {}
  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    bytes_read += out.size();
    ++reads;
    return inner_->read_at(offset, out);
  }
  mutable std::atomic<std::uint64_t> bytes_read{0};
  mutable std::atomic<std::uint64_t> reads{0};

 private:
  std::unique_ptr<Source> inner_;
};

// A sink that counts what reaches the system and the disk.
class WatchedSink final : public Sink {
 public:
  Status append(ByteSpan bytes) override {
    size_ += bytes.size();
    ++appends;
    return ok_status();
  }
  Status append_parts(std::span<const ByteSpan> parts) override {
    for (const ByteSpan part : parts) size_ += part.size();
    ++appends;
    return ok_status();
  }
  Status flush() override {
    flushed = size_;
    return ok_status();
  }
  Status sync() override {
    synced = size_;
    ++full_syncs;
    return ok_status();
  }
  Status sync_data() override {
    synced = size_;
    ++data_syncs;
    return ok_status();
  }
  Status close() override { return ok_status(); }
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  std::uint64_t appends = 0;
  std::uint64_t flushed = 0;
  std::uint64_t synced = 0;
  std::uint64_t full_syncs = 0;
  std::uint64_t data_syncs = 0;

 private:
  std::uint64_t size_ = 0;
  std::string name_ = "watched";
};

std::vector<std::uint64_t> offsets_of(const Bytes& file, std::uint8_t opcode) {
  std::vector<std::uint64_t> out;
  const auto source = view_source(file);
  RecordReader records(*source, 0, file.size());
  for (;;) {
    const auto head = records.next();
    EXPECT_TRUE(head.ok());
    if (!head.ok() || !head->has_value() || (*head)->is(Opcode::footer)) return out;
    if ((*head)->opcode == opcode) out.push_back((*head)->offset);
  }
}

TEST(McapRecording, MarksStandBeforeChunksAndAreSkippedByReaders) {
  const auto messages = numbered(2000);
  const Bytes file = write_file(recording_options(), [&](Writer& writer) {
    for (const auto& m : messages) write_message(writer, m);
    EXPECT_EQ(writer.write_private(kSyncOpcode, {}).code(), StatusCode::invalid_argument);
  });
  const auto chunks = offsets_of(file, 0x06);
  const auto syncs = offsets_of(file, kSyncOpcode);
  ASSERT_GT(chunks.size(), 10u);
  ASSERT_EQ(syncs.size(), chunks.size());
  std::uint64_t checkpoint = 0;
  std::uint64_t number = 0;
  const auto checkpoints = offsets_of(file, kCheckpointOpcode);
  EXPECT_GT(checkpoints.size(), 2u);
  for (std::size_t i = 0; i < syncs.size(); ++i) {
    EXPECT_EQ(syncs[i] + kSyncRecordBytes, chunks[i]);
    const auto sync = parse_sync(ByteSpan(file).subspan(syncs[i]), syncs[i]);
    ASSERT_TRUE(sync.has_value());
    for (const std::uint64_t c : checkpoints) {
      if (c < syncs[i]) checkpoint = c;
    }
    EXPECT_EQ(sync->checkpoint, checkpoint);
    EXPECT_EQ(sync->chunk, number++);
    EXPECT_FALSE(parse_sync(ByteSpan(file).subspan(syncs[i]), syncs[i] + 1).has_value());
  }
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages, messages);
  EXPECT_TRUE(back.problems.empty());
  EXPECT_TRUE(verify_file(view_source(file)).ok());
}

TEST(McapRecording, UnfinishedRecordingOpensByItsCheckpointsFromEveryCut) {
  const auto messages = numbered(1500);
  const Bytes file = write_file(recording_options(), [&](Writer& writer) {
    ASSERT_TRUE(writer.write_metadata({"m", {{"k", "v"}}}).ok());
    for (const auto& m : messages) write_message(writer, m);
    ASSERT_TRUE(
        writer
            .write_attachment(
                {.log_time = 1, .create_time = 2, .name = "a", .media_type = "t", .data_size = 0},
                as_bytes("data"))
            .ok());
  });
  std::size_t before = 0;
  for (std::size_t size = 100; size < file.size(); size += 997) {
    const Bytes cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
    const auto reader = Reader::open(std::make_shared<PlainSource>(cut));
    ASSERT_TRUE(reader.ok());
    const ReadBack back = read_all(*reader, {.order = Order::file});
    ASSERT_GE(back.messages.size(), before);
    before = back.messages.size();
    ASSERT_TRUE(std::equal(back.messages.begin(), back.messages.end(), messages.begin()));
    // The walk over everything must say the same: without the first checkpoint it is no recording.
    Bytes walked = cut;
    walked[offsets_of(file, kCheckpointOpcode)[0] + 20] ^= 1;
    ASSERT_EQ(read_all(walked, {.order = Order::file}).messages, back.messages) << size;
  }
  EXPECT_GT(before, messages.size() - 200);
}

TEST(McapRecording, CheckpointsSpareTheWalk) {
  const auto messages = numbered(60'000);
  WriterOptions options = recording_options();
  options.compression = Compression::none;
  options.checkpoint_bytes = 400'000;
  Bytes file = write_file(options, [&](Writer& writer) {
    for (const auto& m : messages) write_message(writer, m);
  });
  const auto data_end = offsets_of(file, 0x0F);
  Bytes finished = file;
  file.resize(data_end[0]);
  const auto source = std::make_shared<CountingSource>(file);
  const auto reader = Reader::open(source);
  ASSERT_TRUE(reader.ok());
  EXPECT_FALSE(reader->finished());
  EXPECT_LT(source->bytes_read, file.size() / 8);
  EXPECT_EQ(read_all(*reader).messages, messages);

  const auto whole = std::make_shared<CountingSource>(finished);
  ASSERT_TRUE(Reader::open(whole).ok());
  EXPECT_LT(whole->reads, 12u);  // no look at what stands before each chunk
}

TEST(McapRecording, DamagedCheckpointFallsBackToTheWalk) {
  const auto messages = numbered(1500);
  Bytes file = write_file(recording_options(), [&](Writer& writer) {
    for (const auto& m : messages) write_message(writer, m);
  });
  const auto checkpoints = offsets_of(file, kCheckpointOpcode);
  const std::uint64_t data_end = offsets_of(file, 0x0F)[0];
  file.resize(data_end);
  for (const std::uint64_t at : checkpoints) {
    Bytes damaged = file;
    damaged[at + 60] ^= 0x10;
    EXPECT_EQ(read_all(damaged, {.order = Order::file}).messages, messages);
  }
}

TEST(McapRecording, ChunkLeavesByOneAppendAndIsFlushedAtOnce) {
  WatchedSink sink;
  WriterOptions options = recording_options();
  options.sync_bytes = 20'000;
  auto writer = Writer::create(options);
  ASSERT_TRUE(writer->open(sink).ok());
  const std::uint64_t at_start = sink.appends;
  std::uint64_t chunks = 0;
  std::uint64_t checkpoints = 0;
  for (const auto& m : numbered(2000)) {
    write_message(*writer, m);
    if (writer->statistics().chunk_count != chunks) {
      ++chunks;
      EXPECT_EQ(sink.flushed, sink.size());
      EXPECT_LT(sink.size() - sink.synced, 25'000u);
    }
  }
  checkpoints = sink.appends - at_start - chunks;
  EXPECT_LT(checkpoints, chunks / 4);
  EXPECT_GT(sink.data_syncs, 3u);
  EXPECT_EQ(sink.full_syncs, 0u);
  ASSERT_TRUE(writer->sync().ok());
  EXPECT_EQ(sink.synced, sink.size());
  EXPECT_EQ(sink.full_syncs, 1u);
}

TEST(McapRecording, OldChunkClosesByTheClockThoughNothingComes) {
  WatchedSink sink;
  WriterOptions options = WriterOptions::recording();
  options.max_chunk_age_ns = 5'000'000;
  options.sync_interval_ns = 1'000'000;
  auto writer = Writer::create(options);
  ASSERT_TRUE(writer->open(sink).ok());
  write_message(*writer, {"slow", 1, 0, "x"});
  EXPECT_EQ(writer->statistics().chunk_count, 0u);
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  ASSERT_TRUE(writer->tick().ok());
  EXPECT_EQ(writer->statistics().chunk_count, 1u);
  EXPECT_EQ(sink.flushed, sink.size());
  EXPECT_EQ(sink.synced, sink.size());
  write_message(*writer, {"slow", 2, 1, "y"});
  std::this_thread::sleep_for(std::chrono::milliseconds(8));
  write_message(*writer, {"fast", 3, 0, "z"});  // of the same group: closes with what is old
  EXPECT_EQ(writer->statistics().chunk_count, 2u);
}

TEST(McapRecording, PoolChangesNoByte) {
  const auto messages = numbered(20'000);
  ThreadPool pool(3);
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd}) {
    WriterOptions options = recording_options();
    options.compression = codec;
    const auto body = [&](Writer& writer) {
      for (const auto& m : messages) write_message(writer, m);
      ASSERT_TRUE(writer.write_metadata({"m", {}}).ok());
      write_message(writer, messages[0]);
    };
    const Bytes serial = write_file(options, body);
    options.pool = &pool;
    EXPECT_EQ(write_file(options, body), serial) << compression_name(codec);
  }
}

TEST(McapRecording, IncompressibleTopicIsStoredAsItIs) {
  std::mt19937 random(1);
  const auto noise = [&](std::size_t size) {
    std::string out(size, 0);
    for (char& c : out) c = static_cast<char>(random());
    return out;
  };
  std::vector<TestMessage> messages;
  for (std::uint32_t i = 0; i < 40; ++i) {
    messages.push_back({"camera", i * 10, i, noise(20'000)});
    messages.push_back({"points", i * 10 + 1, i, std::string(20'000, static_cast<char>(i))});
  }
  const Bytes file = write_messages({.chunk_bytes = 100'000}, messages);
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages, messages);
  const auto reader = Reader::open(view_source(file));
  std::size_t plain = 0;
  for (const ChunkIndex& chunk : reader->chunks()) {
    if (!chunk.compression.empty()) continue;
    ++plain;
    ASSERT_EQ(chunk.message_index_offsets.size(), 1u);
    EXPECT_EQ(reader->channels().at(chunk.message_index_offsets[0].first).topic, "camera");
  }
  EXPECT_GE(plain, 6u);
  EXPECT_LT(file.size(), 40u * 20'000 + 100'000);
}

TEST(McapReader, ReadsOnlySummaryAndTouchedChunksOfAFilteredFile) {
  // Two hours of ten topics in chunks of their own group, ten seconds of one wanted.
  const Bytes file =
      write_file({.chunk_bytes = 20'000, .compression = Compression::none}, [&](Writer& writer) {
        for (std::uint64_t second = 0; second < 7200; second += 4) {
          for (std::uint32_t topic = 0; topic < 10; ++topic) {
            write_message(
                writer,
                {"t" + std::to_string(topic), second * 1'000'000'000, topic, std::string(150, 'x')},
                {.group = topic});
          }
        }
      });
  const auto source = std::make_shared<CountingSource>(file);
  const auto reader = Reader::open(source);
  ASSERT_TRUE(reader.ok());
  const std::uint64_t opened = source->bytes_read;
  const std::uint64_t begin = 3600ULL * 1'000'000'000;
  MessageReader messages = reader->messages(
      {.begin_time = begin, .last_time = begin + 10'000'000'000, .topics = {{"t3"}}});
  std::size_t count = 0;
  for (MessageView m; messages.next(m);) ++count;
  EXPECT_EQ(count, 3u);
  std::uint64_t touched = 0;
  for (const ChunkIndex& chunk : reader->chunks()) {
    const auto id = chunk.message_index_offsets[0].first;
    if (reader->channels().at(id).topic == "t3" &&
        chunk.message_start_time <= begin + 10'000'000'000 && chunk.message_end_time >= begin) {
      touched += chunk.chunk_length;
    }
  }
  EXPECT_GT(touched, 0u);
  EXPECT_LE(source->bytes_read - opened, touched * 12 / 10);
  std::uint64_t summary_start = 0;
  std::memcpy(&summary_start, file.data() + file.size() - 8 - 20, sizeof summary_start);
  EXPECT_LE(opened, (file.size() - summary_start) * 12 / 10 + 4096 + 8192);
}

}  // namespace
}  // namespace ropewalk::mcap
