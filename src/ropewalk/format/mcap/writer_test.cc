#include "ropewalk/format/mcap/writer.h"

#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"

#include "tests/support/mcap_files.h"

namespace ropewalk::mcap {
namespace {

std::vector<TestMessage> numbered(std::size_t count, std::size_t bytes) {
  std::vector<TestMessage> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string data(bytes, static_cast<char>('a' + i % 26));
    out.push_back({.topic = i % 3 == 0 ? "even" : "odd",
                   .time = 1000 + i * 10,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = std::move(data)});
  }
  return out;
}

Reader open(const Bytes& file) {
  auto reader = Reader::open(memory_source(file));
  EXPECT_TRUE(reader.ok()) << reader.status().to_string();
  return std::move(*reader);
}

// A sink that fails from the n-th append on.
class FailingSink final : public Sink {
 public:
  explicit FailingSink(int good) : good_(good) {}
  Status append(ByteSpan bytes) override {
    if (good_-- <= 0) return resource_exhausted("no space left");
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return ok_status();
  }
  Status sync() override { return ok_status(); }
  Status close() override { return ok_status(); }
  std::uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  const Bytes& bytes() const { return bytes_; }

 private:
  int good_;
  Bytes bytes_;
  std::string name_ = "failing";
};

TEST(McapWriter, MessagesReadBackEqualInEveryCodec) {
  const auto messages = numbered(500, 100);
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd}) {
    for (const bool chunked : {true, false}) {
      const Bytes file =
          write_messages({.chunked = chunked, .chunk_bytes = 5000, .compression = codec}, messages);
      const ReadBack back = read_all(file);
      EXPECT_EQ(back.messages, messages);
      EXPECT_TRUE(back.problems.empty()) << to_line(back.problems.front());
      const Reader reader = open(file);
      EXPECT_EQ(reader.chunks().size() > 5, chunked);
      if (chunked) {
        EXPECT_EQ(reader.chunks().front().compression,
                  codec == Compression::none ? "" : compression_name(codec));
      }
    }
  }
}

TEST(McapWriter, ChunkClosesAfterTheMessageThatReachesItsSize) {
  const auto messages = numbered(10, 100);
  const Bytes file = write_messages({.chunk_bytes = 1, .compression = Compression::none}, messages);
  EXPECT_EQ(open(file).chunks().size(), 10u);
}

TEST(McapWriter, EveryChunkDefinesItsChannelsByItself) {
  const auto messages = numbered(60, 100);
  const Bytes file =
      write_messages({.chunk_bytes = 1000, .compression = Compression::none}, messages);
  const auto source = memory_source(file);
  RecordReader records(*source, 0, file.size());
  int chunks = 0;
  for (;;) {
    const auto head = records.next();
    ASSERT_TRUE(head.ok());
    if (!head->has_value()) break;
    if ((*head)->is(Opcode::footer)) break;
    if (!(*head)->is(Opcode::chunk)) continue;
    ++chunks;
    const auto content = records.content();
    std::size_t at = 0;
    const auto chunk = parse_chunk_head(*content, &at);
    ASSERT_TRUE(chunk.ok());
    std::vector<bool> defined(10, false);
    ChunkWalker walker(content->subspan(at));
    std::uint8_t opcode = 0;
    ByteSpan inner;
    int messages_here = 0;
    while (walker.next(opcode, inner)) {
      if (opcode == 4) defined[parse_channel(inner)->id] = true;
      if (opcode == 5) {
        EXPECT_TRUE(defined[parse_message(inner)->channel_id]);
        ++messages_here;
      }
    }
    EXPECT_GT(messages_here, 0);
  }
  EXPECT_GT(chunks, 3);
}

TEST(McapWriter, MinimalFilesDefineAChannelOnce) {
  const auto messages = numbered(60, 100);
  WriterOptions options{.chunk_bytes = 1000, .compression = Compression::none};
  const Bytes repeated = write_messages(options, messages);
  options.definitions_in_every_chunk = false;
  const Bytes minimal = write_messages(options, messages);
  EXPECT_LT(minimal.size(), repeated.size());
  EXPECT_EQ(read_all(minimal).messages, messages);
}

TEST(McapWriter, LargeMessageStandsAloneInAChunk) {
  for (const Compression codec : {Compression::none, Compression::zstd}) {
    std::vector<TestMessage> messages = numbered(3, 100);
    messages[1].data.assign(300'000, 'x');
    const Bytes file = write_messages({.compression = codec}, messages);
    const Reader reader = open(file);
    ASSERT_EQ(reader.chunks().size(), 3u);
    EXPECT_EQ(reader.chunks()[1].message_start_time, messages[1].time);
    EXPECT_EQ(reader.chunks()[1].message_end_time, messages[1].time);
    const ReadBack back = read_all(file);
    EXPECT_EQ(back.messages, messages);
    for (const Verified v : back.verified) EXPECT_EQ(v, Verified::checked);
  }
}

TEST(McapWriter, MessageInPartsCarriesTheCrcOfItsChunk) {
  const std::string data(100'000, 'q');
  const Bytes file = write_file({.compression = Compression::zstd}, [&](Writer& writer) {
    write_message(writer, {.topic = "a", .time = 1, .sequence = 0, .data = "first"});
    const std::uint16_t id = channel_id(writer, "big");
    ASSERT_TRUE(
        writer
            .begin_message({.channel_id = id, .sequence = 5, .log_time = 2, .publish_time = 2},
                           data.size(), crc32(0, as_bytes(data)))
            .ok());
    EXPECT_EQ(writer.write({.channel_id = id}, ByteSpan()).code(), StatusCode::failed_precondition);
    for (std::size_t at = 0; at < data.size(); at += 10'000) {
      ASSERT_TRUE(writer.append_message(as_bytes(data).subspan(at, 10'000)).ok());
    }
    ASSERT_TRUE(writer.end_message().ok());
    write_message(writer, {.topic = "a", .time = 3, .sequence = 1, .data = "last"});
  });
  const ReadBack back = read_all(file);
  ASSERT_EQ(back.messages.size(), 3u);
  EXPECT_EQ(back.messages[1].data, data);
  EXPECT_EQ(back.messages[1].sequence, 5u);
  EXPECT_EQ(back.verified[1], Verified::checked);
  EXPECT_TRUE(back.problems.empty());
}

TEST(McapWriter, MessageInPartsWithoutCrcIsDeliveredAsSuch) {
  const Bytes file = write_file({}, [&](Writer& writer) {
    const std::uint16_t id = channel_id(writer, "big");
    ASSERT_TRUE(writer.begin_message({.channel_id = id}, 4).ok());
    ASSERT_TRUE(writer.append_message(as_bytes("abcd")).ok());
    ASSERT_TRUE(writer.end_message().ok());
  });
  const ReadBack back = read_all(file);
  ASSERT_EQ(back.messages.size(), 1u);
  EXPECT_EQ(back.verified[0], Verified::no_crc);
}

TEST(McapWriter, MessageInPartsThatDiffersFromItsAnnouncementFailsTheFile) {
  Bytes out;
  const auto sink = memory_sink(out);
  auto writer = Writer::create({});
  ASSERT_TRUE(writer->open(*sink).ok());
  const std::uint16_t id = channel_id(*writer, "big");
  ASSERT_TRUE(writer->begin_message({.channel_id = id}, 4, crc32(0, as_bytes("abcd"))).ok());
  ASSERT_TRUE(writer->append_message(as_bytes("abcX")).ok());
  EXPECT_EQ(writer->end_message().code(), StatusCode::failed_precondition);
  EXPECT_EQ(writer->finish().code(), StatusCode::failed_precondition);

  ASSERT_TRUE(writer->open(*sink).ok());
  ASSERT_TRUE(writer->begin_message({.channel_id = id}, 4).ok());
  EXPECT_EQ(writer->append_message(as_bytes("abcde")).code(), StatusCode::failed_precondition);
}

TEST(McapWriter, ReservedRoomIsFilledByTheCaller) {
  std::vector<TestMessage> expected;
  const Bytes file = write_file({.chunk_bytes = 500}, [&](Writer& writer) {
    const std::uint16_t id = channel_id(writer, "t");
    for (std::uint32_t i = 0; i < 50; ++i) {
      auto room = writer.reserve({.channel_id = id, .sequence = i, .log_time = i}, 40);
      ASSERT_TRUE(room.ok());
      ASSERT_EQ(room->size(), 40u);
      std::memset(room->data(), static_cast<int>('a' + i % 26), room->size());
      expected.push_back({"t", i, i, std::string(40, static_cast<char>('a' + i % 26))});
    }
  });
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages, expected);
  EXPECT_GT(open(file).chunks().size(), 3u);
}

TEST(McapWriter, UnusedDefinitionsAreWrittenOnRequestOnly) {
  for (const bool wanted : {false, true}) {
    const Bytes file = write_file({.unused_definitions = wanted}, [&](Writer& writer) {
      channel_id(writer, "never");
      write_message(writer, {.topic = "used", .time = 1, .sequence = 0, .data = "x"});
    });
    const Reader reader = open(file);
    EXPECT_EQ(reader.channels().size(), wanted ? 2u : 1u);
    ASSERT_TRUE(reader.statistics().has_value());
    EXPECT_EQ(reader.statistics()->channel_count, wanted ? 2u : 1u);
    EXPECT_EQ(reader.statistics()->chunk_count, 1u);
  }
}

TEST(McapWriter, FileWithoutMessagesHasNoChunk) {
  const Bytes file = write_file({}, [](Writer&) {});
  const Reader reader = open(file);
  EXPECT_TRUE(reader.chunks().empty());
  EXPECT_TRUE(reader.finished());
  EXPECT_EQ(reader.statistics()->message_count, 0u);
}

TEST(McapWriter, DefinitionsAreFoundAgainByContent) {
  auto writer = Writer::create({});
  const auto a = writer->add_schema("n", "e", as_bytes("1"));
  const auto b = writer->add_schema("n", "e", as_bytes("2"));
  EXPECT_NE(*a, *b);
  EXPECT_EQ(*writer->add_schema("n", "e", as_bytes("1")), *a);
  const Channel channel{
      .id = 0, .schema_id = *a, .topic = "t", .message_encoding = "m", .metadata = {}};
  const auto first = writer->add_channel(channel);
  EXPECT_EQ(*writer->add_channel(channel), *first);
  Channel other = channel;
  other.metadata = {{"k", "v"}};
  EXPECT_NE(*writer->add_channel(other), *first);
  other.schema_id = 99;
  EXPECT_EQ(writer->add_channel(other).status().code(), StatusCode::not_found);
  other.schema_id = *a;
  other.id = *first;
  EXPECT_EQ(writer->add_channel_with_id(other).code(), StatusCode::already_exists);
}

TEST(McapWriter, RunningOutOfIdsIsAnError) {
  auto writer = Writer::create({});
  for (int i = 1; i <= 65535; ++i) {
    ASSERT_TRUE(writer->add_channel({.topic = std::to_string(i)}).ok()) << i;
  }
  EXPECT_EQ(writer->add_channel({.topic = "one more"}).status().code(),
            StatusCode::resource_exhausted);
  EXPECT_TRUE(writer->add_channel_with_id({.id = 0, .topic = "zero"}).ok());
}

TEST(McapWriter, GroupsKeepTopicsInChunksOfTheirOwn) {
  const auto messages = numbered(300, 100);
  const Bytes file = write_file({.chunk_bytes = 2000}, [&](Writer& writer) {
    for (const TestMessage& m : messages) {
      write_message(writer, m,
                    {.group = m.topic == "even" ? 1U : 2U, .compress = m.topic == "odd"});
    }
  });
  const Reader reader = open(file);
  for (const ChunkIndex& chunk : reader.chunks()) {
    EXPECT_EQ(chunk.message_index_offsets.size(), 1u);
  }
  EXPECT_EQ(read_all(file).messages, messages);
}

TEST(McapWriter, AttachmentsAndMetadataReadBack) {
  const Bytes file = write_file({}, [](Writer& writer) {
    ASSERT_TRUE(writer.write_metadata({.name = "m", .metadata = {{"k", "v"}}}).ok());
    ASSERT_TRUE(
        writer
            .write_attachment(
                {.log_time = 1, .create_time = 2, .name = "a", .media_type = "t", .data_size = 0},
                as_bytes("hello"))
            .ok());
    EXPECT_EQ(writer.write_private(0x7F, {}).code(), StatusCode::invalid_argument);
    ASSERT_TRUE(writer.write_private(0x90, as_bytes("mine")).ok());
  });
  const Reader reader = open(file);
  ASSERT_EQ(reader.metadata().size(), 1u);
  const auto metadata = reader.read_metadata(reader.metadata()[0]);
  ASSERT_TRUE(metadata.ok());
  EXPECT_EQ(metadata->metadata, (StringMap{{"k", "v"}}));
  ASSERT_EQ(reader.attachments().size(), 1u);
  std::string data;
  const auto take = [&](ByteSpan part) {
    data += as_text(part);
    return ok_status();
  };
  ASSERT_TRUE(reader.read_attachment(reader.attachments()[0], take).ok());
  EXPECT_EQ(data, "hello");
  Bytes damaged = file;
  const auto at = std::search(damaged.begin(), damaged.end(), data.begin(), data.end());
  *at ^= 1;
  const Reader broken = open(damaged);
  EXPECT_EQ(broken.read_attachment(broken.attachments()[0], take).code(), StatusCode::data_loss);
}

TEST(McapWriter, SameWriterWritesSeveralFiles) {
  auto writer = Writer::create({});
  Bytes files[2];
  for (Bytes& file : files) {
    const auto sink = memory_sink(file);
    ASSERT_TRUE(writer->open(*sink).ok());
    write_message(*writer, {.topic = "t", .time = 5, .sequence = 1, .data = "d"});
    ASSERT_TRUE(writer->finish().ok());
  }
  EXPECT_EQ(files[0], files[1]);
  EXPECT_EQ(writer->write({.channel_id = 1}, ByteSpan()).code(), StatusCode::failed_precondition);
}

TEST(McapWriter, FailedWriteIsReturnedFromThenOn) {
  const auto messages = numbered(60, 100);
  bool finished = false;
  for (int good = 0; !finished; ++good) {
    ASSERT_LT(good, 100);
    FailingSink sink(good);
    auto writer = Writer::create({.chunk_bytes = 1000, .compression = Compression::none});
    Status status = writer->open(sink);
    for (const TestMessage& m : messages) {
      const Status written = writer->write(
          {.channel_id = channel_id(*writer, m.topic), .log_time = m.time}, as_bytes(m.data));
      if (!status.ok()) {
        EXPECT_EQ(written.code(), StatusCode::resource_exhausted);
      }
      if (status.ok()) status = written;
    }
    const Status end = writer->finish();
    finished = end.ok();
    if (finished) continue;
    EXPECT_EQ(end.code(), StatusCode::resource_exhausted);
    EXPECT_EQ(writer->bytes_written(), sink.size());
    // What is there reads up to the last whole chunk.
    if (sink.size() == 0) continue;
    const ReadBack back = read_all(sink.bytes());
    EXPECT_TRUE(back.has(ProblemKind::unfinished));
    for (std::size_t i = 0; i < back.messages.size(); ++i) {
      EXPECT_EQ(back.messages[i].data, messages[i].data);
    }
  }
}

TEST(McapWriter, OptionsAreValidated) {
  EXPECT_EQ(Writer::create({.compression = Compression::gzip}).status().code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(Writer::create({.chunk_bytes = 0}).status().code(), StatusCode::invalid_argument);
}

}  // namespace
}  // namespace ropewalk::mcap
