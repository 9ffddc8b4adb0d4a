#include "ropewalk/format/mcap/reader.h"

#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"

#include "tests/support/mcap_files.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kMaxTime = std::numeric_limits<std::uint64_t>::max();

std::vector<TestMessage> random_times(std::size_t count, std::uint64_t spread) {
  std::mt19937 random(11);
  std::vector<TestMessage> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string data(20 + random() % 60, static_cast<char>('a' + i % 26));
    out.push_back({.topic = "t" + std::to_string(random() % 4),
                   .time = random() % spread,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = std::move(data)});
  }
  return out;
}

std::vector<TestMessage> by_time(std::vector<TestMessage> messages) {
  std::ranges::stable_sort(messages, {}, &TestMessage::time);
  return messages;
}

// Keeps the first `size` bytes.
Bytes cut(const Bytes& file, std::size_t size) {
  return Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
}

std::size_t find_record(const Bytes& file, Opcode opcode, int number = 0) {
  const auto source = memory_source(file);
  RecordReader records(*source, 0, file.size());
  for (;;) {
    const auto head = records.next();
    EXPECT_TRUE(head.ok() && head->has_value());
    if ((*head)->is(opcode) && number-- == 0) return static_cast<std::size_t>((*head)->offset);
  }
}

// Takes the summary away: what a crash leaves right after the last chunk.
Bytes without_end(const Bytes& file) { return cut(file, find_record(file, Opcode::data_end)); }

TEST(McapReader, LogTimeOrderIsExactWithOverlappingChunks) {
  const auto messages = random_times(2000, 500);
  for (const Compression codec : {Compression::none, Compression::zstd}) {
    const Bytes file = write_messages({.chunk_bytes = 3000, .compression = codec}, messages);
    for (const std::uint64_t budget :
         {std::uint64_t{0}, std::uint64_t{20'000}, std::uint64_t{64} << 20}) {
      ReaderOptions options;
      options.cache_bytes = budget;
      const ReadBack back = read_all(file, {}, options);
      EXPECT_EQ(back.messages, by_time(messages)) << budget;
      EXPECT_TRUE(back.problems.empty());
      auto reversed = by_time(messages);
      std::ranges::reverse(reversed);
      EXPECT_EQ(read_all(file, {.order = Order::reverse_log_time}, options).messages, reversed);
    }
    EXPECT_EQ(read_all(file, {.order = Order::file}).messages, messages);
  }
}

TEST(McapReader, PoolAndBudgetChangeNeitherOrderNorProblems) {
  const auto messages = random_times(4000, 3000);
  Bytes file = write_messages({.chunk_bytes = 6000, .compression = Compression::zstd}, messages);
  file[find_record(file, Opcode::chunk, 7) + 100] ^= 0x40;
  ThreadPool pool(3);
  for (const Order order : {Order::file, Order::log_time, Order::reverse_log_time}) {
    const ReadBack serial = read_all(file, {.order = order});
    for (const std::uint64_t budget :
         {std::uint64_t{0}, std::uint64_t{30'000}, std::uint64_t{1} << 26}) {
      ReaderOptions options;
      options.cache_bytes = budget;
      for (ThreadPool* with : {static_cast<ThreadPool*>(nullptr), &pool}) {
        options.pool = with;
        const ReadBack back = read_all(file, {.order = order}, options);
        EXPECT_EQ(back.messages, serial.messages) << budget;
        ASSERT_EQ(back.problems.size(), serial.problems.size());
        for (std::size_t i = 0; i < back.problems.size(); ++i) {
          EXPECT_EQ(to_line(back.problems[i]), to_line(serial.problems[i]));
        }
      }
    }
  }
  // A reader that is dropped half way leaves nothing behind.
  ReaderOptions options;
  options.pool = &pool;
  const auto reader = Reader::open(memory_source(file), options);
  for (int i = 0; i < 50; ++i) {
    MessageReader half = reader->messages();
    MessageView m;
    ASSERT_TRUE(half.next(m));
  }
}

TEST(McapReader, TimeRangeIsInclusiveUpToTheLastTime) {
  std::vector<TestMessage> messages{{"t", 0, 0, "zero"},
                                    {"t", kMaxTime, 1, "max"},
                                    {"t", 5, 2, "five"},
                                    {"t", kMaxTime - 1, 3, "almost"}};
  const Bytes file = write_messages({}, messages);
  EXPECT_EQ(read_all(file).messages, by_time(messages));
  EXPECT_EQ(read_all(file).messages.back().data, "max");
  const auto range = read_all(file, {.begin_time = 5, .last_time = kMaxTime - 1}).messages;
  ASSERT_EQ(range.size(), 2u);
  EXPECT_EQ(range[0].data, "five");
  EXPECT_EQ(range[1].data, "almost");
  EXPECT_EQ(read_all(file, {.order = Order::reverse_log_time}).messages.front().data, "max");
  EXPECT_EQ(read_all(file, {.order = Order::file, .begin_time = kMaxTime}).messages.size(), 1u);
}

TEST(McapReader, TopicFilterSelectsAndAnEmptyFilterSelectsNothing) {
  const auto messages = random_times(500, 10'000);
  const Bytes file = write_messages({.chunk_bytes = 2000}, messages);
  for (const Order order : {Order::log_time, Order::file}) {
    std::vector<TestMessage> expected;
    for (const auto& m : order == Order::file ? messages : by_time(messages)) {
      if (m.topic == "t1") expected.push_back(m);
    }
    EXPECT_EQ(read_all(file, {.order = order, .topics = {{"t1"}}}).messages, expected);
    EXPECT_TRUE(read_all(file, {.order = order, .topics = {{"none"}}}).messages.empty());
    EXPECT_TRUE(
        read_all(file, {.order = order, .topics = std::vector<std::string>{}}).messages.empty());
  }
}

TEST(McapReader, EverySwitchOfTheWriterLeavesAReadableFile) {
  const auto messages = random_times(300, 400);
  for (int bits = 0; bits < 128; ++bits) {
    WriterOptions options{.chunk_bytes = 2000, .compression = Compression::none};
    options.chunk_crc = (bits & 1) != 0;
    options.message_index = (bits & 2) != 0;
    options.chunk_index = (bits & 4) != 0;
    options.repeat_channels = (bits & 8) != 0;
    options.repeat_schemas = (bits & 16) != 0;
    options.statistics = (bits & 32) != 0;
    options.definitions_in_every_chunk = (bits & 64) != 0;
    const Bytes file = write_messages(options, messages);
    const ReadBack back = read_all(file);
    ASSERT_EQ(back.messages, by_time(messages)) << bits;
    ASSERT_TRUE(back.problems.empty()) << bits << ": " << to_line(back.problems.front());
  }
}

TEST(McapReader, UnfinishedFileDeliversAllWholeChunksInTimeOrder) {
  const auto messages = random_times(400, 100);
  for (const bool message_index : {true, false}) {
    const Bytes file = without_end(
        write_messages({.chunk_bytes = 2000, .message_index = message_index}, messages));
    const ReadBack back = read_all(file);
    EXPECT_EQ(back.messages, by_time(messages));
    EXPECT_TRUE(back.has(ProblemKind::unfinished));
    const auto t2 = read_all(file, {.topics = {{"t2"}}}).messages;
    EXPECT_EQ(static_cast<std::ptrdiff_t>(t2.size()),
              std::ranges::count(messages, "t2", &TestMessage::topic));
  }
}

TEST(McapReader, CutAtEveryByteNeverLosesWhatAnEarlierCutHad) {
  const auto messages = random_times(60, 1000);
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd}) {
    const Bytes file = write_messages(
        {.chunk_bytes = 1500, .compression = codec, .force_compression = true}, messages);
    std::size_t delivered = 0;
    for (std::size_t size = 0; size <= file.size(); ++size) {
      const auto reader = Reader::open(memory_source(cut(file, size)));
      if (!reader.ok()) {
        EXPECT_EQ(reader.status().code(), StatusCode::data_loss);
        EXPECT_LT(size, 8u);
        continue;
      }
      const std::size_t now = read_all(*reader).messages.size();
      ASSERT_GE(now, delivered) << size;
      delivered = now;
    }
    EXPECT_EQ(delivered, messages.size());
  }
}

TEST(McapReader, FlippedBitNeverLetsAChangedMessageLeave) {
  const auto messages = random_times(40, 1000);
  WriterOptions options{.chunk_bytes = 1500, .compression = Compression::none};
  const Bytes file = write_messages(options, messages);
  std::mt19937 random(3);
  for (std::size_t at = 0; at < file.size(); ++at) {
    Bytes flipped = file;
    flipped[at] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    const auto reader = Reader::open(memory_source(flipped));
    if (!reader.ok()) continue;
    for (const Order order : {Order::log_time, Order::file}) {
      for (const TestMessage& m : read_all(*reader, {.order = order}).messages) {
        // The topic comes from a Channel record, which in the summary has its own CRC.
        ASSERT_NE(std::ranges::find(messages, m), messages.end()) << at;
      }
    }
  }
}

TEST(McapReader, ChunkWithWrongCrcIsSkippedOrDeliveredMarked) {
  const auto messages = random_times(300, 1000);
  Bytes file = write_messages({.chunk_bytes = 4000, .compression = Compression::none}, messages);
  const std::size_t chunk = find_record(file, Opcode::chunk, 1);
  // A payload byte: the last byte before the next record.
  std::uint64_t length = 0;
  std::memcpy(&length, file.data() + chunk + 1, sizeof length);
  file[chunk + kRecordHeadBytes + length - 1] ^= 0x20;
  const ReadBack strict = read_all(file);
  EXPECT_LT(strict.messages.size(), messages.size());
  ASSERT_EQ(strict.problems.size(), 1u);
  EXPECT_EQ(strict.problems[0].kind, ProblemKind::chunk_crc);
  EXPECT_EQ(strict.problems[0].offset, chunk);
  EXPECT_EQ(strict.problems[0].length, length + kRecordHeadBytes);
  ReaderOptions lenient;
  lenient.lenient = true;
  const ReadBack all = read_all(file, {}, lenient);
  EXPECT_EQ(all.messages.size(), messages.size());
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(all.verified, Verified::unverified)),
            messages.size() - strict.messages.size());
}

TEST(McapReader, BadSummaryFallsBackToTheRecords) {
  const auto messages = random_times(300, 1000);
  Bytes file = write_messages({.chunk_bytes = 2000}, messages);
  file[file.size() - 60] ^= 1;
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages, by_time(messages));
  EXPECT_TRUE(back.has(ProblemKind::bad_summary));

  // The footer points into a chunk.
  Bytes lying = write_messages({.chunk_bytes = 2000, .summary_crc = false}, messages);
  const std::size_t footer = lying.size() - 8 - 29;
  const std::uint64_t inside = 200;
  std::memcpy(lying.data() + footer + 9, &inside, sizeof inside);
  const ReadBack found = read_all(lying);
  EXPECT_EQ(found.messages, by_time(messages));
  EXPECT_FALSE(found.problems.empty());
}

// Rewrites one u64 of the n-th ChunkIndex in a file without summary CRC.
Bytes with_chunk_index(Bytes file, int number, std::size_t field, std::uint64_t value) {
  const std::size_t at = find_record(file, Opcode::chunk_index, number);
  std::memcpy(file.data() + at + kRecordHeadBytes + field, &value, sizeof value);
  return file;
}

TEST(McapReader, LyingChunkIndexCostsNoMessageAndNoOrder) {
  const auto messages = random_times(300, 1000);
  const Bytes file = write_messages({.chunk_bytes = 2000, .summary_crc = false}, messages);
  struct Lie {
    std::size_t field;
    std::uint64_t value;
  };
  for (const Lie lie : {Lie{0, 900}, Lie{8, 1}, Lie{16, 3}, Lie{16, kMaxTime}, Lie{24, 7},
                        Lie{24, kMaxTime}, Lie{0, kMaxTime}}) {
    const Bytes lying = with_chunk_index(file, 2, lie.field, lie.value);
    const ReadBack back = read_all(lying);
    ASSERT_EQ(back.messages, by_time(messages)) << lie.field << " " << lie.value;
    ASSERT_FALSE(back.problems.empty());
    const auto range = read_all(lying, {.begin_time = 100, .last_time = 200}).messages;
    std::vector<TestMessage> expected;
    for (const auto& m : by_time(messages)) {
      if (m.time >= 100 && m.time <= 200) expected.push_back(m);
    }
    ASSERT_EQ(range, expected);
  }
}

TEST(McapReader, LyingMessageIndexIsNotBelieved) {
  const auto messages = random_times(300, 1000);
  const Bytes file = write_messages({.chunk_bytes = 2000}, messages);
  const std::size_t index = find_record(file, Opcode::message_index, 3);
  for (const std::uint64_t offset : {std::uint64_t{1}, std::uint64_t{1} << 40}) {
    Bytes lying = file;
    std::memcpy(lying.data() + index + kRecordHeadBytes + 6 + 8, &offset, sizeof offset);
    const ReadBack back = read_all(lying);
    EXPECT_EQ(back.messages, by_time(messages));
  }
  Bytes wrong_channel = file;
  wrong_channel[index + kRecordHeadBytes] ^= 0x40;
  EXPECT_EQ(read_all(wrong_channel, {.topics = {{"t0", "t1", "t2", "t3"}}}).messages,
            by_time(messages));
  const ReadBack back = read_all(wrong_channel);
  EXPECT_EQ(back.messages, by_time(messages));
  EXPECT_TRUE(back.has(ProblemKind::index_mismatch));
}

TEST(McapReader, LooseMessagesBetweenChunksAreFound) {
  // A chunked file, cut before its end, and the data section of an unchunked one behind it.
  const auto chunked_messages = random_times(100, 1000);
  std::vector<TestMessage> loose_messages = random_times(50, 1000);
  for (auto& m : loose_messages) m.data += "loose";
  Bytes file = without_end(write_messages({.chunk_bytes = 2000}, chunked_messages));
  const Bytes loose = without_end(write_messages({.chunked = false}, loose_messages));
  const std::size_t header_end = 8 + 9 + 4 + 4 + 8;  // magic, head, "", "ropewalk"
  file.insert(file.end(), loose.begin() + header_end, loose.end());
  std::vector<TestMessage> expected = chunked_messages;
  expected.insert(expected.end(), loose_messages.begin(), loose_messages.end());
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages, by_time(expected));
  EXPECT_EQ(read_all(file, {.order = Order::file}).messages, expected);
}

TEST(McapReader, ZeroTailIsTheEndOfValidData) {
  const auto messages = random_times(100, 1000);
  Bytes file = without_end(write_messages({.chunk_bytes = 2000}, messages));
  const std::size_t valid = file.size();
  file.resize(valid + 100'003, 0);
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages, by_time(messages));
  const auto zeros = std::ranges::find(back.problems, ProblemKind::zero_run, &Problem::kind);
  ASSERT_NE(zeros, back.problems.end());
  EXPECT_EQ(zeros->offset, valid);
  EXPECT_EQ(zeros->length, 100'003u);
}

TEST(McapReader, LostPageCostsOneChunk) {
  const auto messages = random_times(400, 1000);
  Bytes file = without_end(
      write_messages({.chunk_bytes = 2000, .compression = Compression::none}, messages));
  const std::size_t second = find_record(file, Opcode::chunk, 1);
  const std::size_t third = find_record(file, Opcode::chunk, 2);
  const std::size_t fourth = find_record(file, Opcode::chunk, 3);
  std::fill(file.begin() + static_cast<std::ptrdiff_t>(second),
            file.begin() + static_cast<std::ptrdiff_t>(third + 20), 0);
  const ReadBack back = read_all(file);
  EXPECT_TRUE(back.has(ProblemKind::zero_run));
  EXPECT_TRUE(back.has(ProblemKind::lost_range));
  EXPECT_GT(back.messages.size(), messages.size() / 2);
  EXPECT_LT(back.messages.size(), messages.size());
  for (const Problem& p : back.problems) {
    if (p.kind == ProblemKind::lost_range) {
      EXPECT_EQ(p.offset + p.length, fourth);
    }
  }
}

TEST(McapReader, CutUncompressedChunkDeliversItsBeginningMarked) {
  const auto messages = random_times(100, 1000);
  const Bytes file =
      write_messages({.chunk_bytes = 1 << 20, .compression = Compression::none}, messages);
  const std::size_t chunk = find_record(file, Opcode::chunk);
  const ReadBack back = read_all(cut(file, chunk + 4000));
  EXPECT_GT(back.messages.size(), 30u);
  EXPECT_LT(back.messages.size(), 100u);
  EXPECT_TRUE(back.has(ProblemKind::chunk_cut));
  for (const Verified v : back.verified) EXPECT_EQ(v, Verified::unverified);
}

TEST(McapReader, LengthsOfAllOnesAreReadAsAnUnfinishedChunk) {
  Bytes file = write_messages({.compression = Compression::none}, random_times(100, 1000));
  const std::size_t chunk = find_record(file, Opcode::chunk);
  file.resize(find_record(file, Opcode::message_index));
  std::memset(file.data() + chunk + 1, 0xFF, 8);
  const ReadBack back = read_all(file);
  EXPECT_EQ(back.messages.size(), 100u);
}

TEST(McapReader, SecondFileBehindTheFirstIsReported) {
  const auto messages = random_times(100, 1000);
  const Bytes one = write_messages({}, messages);
  Bytes two = one;
  two.insert(two.end(), one.begin(), one.end());
  const ReadBack back = read_all(two);
  EXPECT_EQ(back.messages, by_time(messages));
  const auto tail = std::ranges::find(back.problems, ProblemKind::trailing_data, &Problem::kind);
  ASSERT_NE(tail, back.problems.end());
  EXPECT_EQ(tail->offset, one.size());
  EXPECT_EQ(tail->length, one.size());
}

TEST(McapReader, ChannelIdWithTwoMeaningsIsBoundByPlace) {
  const auto part = [](const std::string& topic, std::uint64_t time) {
    return without_end(write_messages({}, {{topic, time, 0, topic + " data"}}));
  };
  Bytes file = part("first", 10);
  const Bytes second = part("second", 5);  // the same channel id
  file.insert(file.end(), second.begin() + 8 + 25, second.end());
  for (const Order order : {Order::file, Order::log_time}) {
    const ReadBack back = read_all(file, {.order = order});
    ASSERT_EQ(back.messages.size(), 2u);
    for (const TestMessage& m : back.messages) EXPECT_EQ(m.data, m.topic + " data");
    EXPECT_TRUE(back.has(ProblemKind::conflicting_definition));
  }
}

TEST(McapReader, MessageOfAnUnknownChannelIsDeliveredUnderAPlaceholder) {
  Bytes file(kMagic.begin(), kMagic.end());
  ASSERT_TRUE(append_record(file, Header{}).ok());
  Message message;
  message.channel_id = 42;
  message.log_time = 7;
  const Bytes data{1, 2, 3};
  message.data = data;
  ASSERT_TRUE(append_record(file, message).ok());
  const ReadBack back = read_all(file);
  ASSERT_EQ(back.messages.size(), 1u);
  EXPECT_EQ(back.messages[0].topic, "unknown/42");
  EXPECT_TRUE(back.has(ProblemKind::unknown_channel));
}

TEST(McapReader, NothingAndNotMcapAreToldApart) {
  EXPECT_EQ(Reader::open(memory_source({})).status().code(), StatusCode::data_loss);
  EXPECT_NE(Reader::open(memory_source({})).status().message().find("empty"),
            std::string_view::npos);
  const auto other = Reader::open(memory_source(Bytes(100, 'x')));
  EXPECT_NE(other.status().message().find("not an MCAP file"), std::string_view::npos);
  const auto magic_only = Reader::open(memory_source(Bytes(kMagic.begin(), kMagic.end())));
  ASSERT_TRUE(magic_only.ok());
  EXPECT_FALSE(magic_only->finished());
  Bytes newer(kMagic.begin(), kMagic.end());
  newer[5] = '1';
  EXPECT_NE(Reader::open(memory_source(newer)).status().message().find("version"),
            std::string_view::npos);
}

TEST(McapReader, LocatedMessagesLoadOneByOne) {
  const auto messages = random_times(500, 10'000);
  for (const bool message_index : {true, false}) {
    const Bytes file =
        write_messages({.chunk_bytes = 2000, .message_index = message_index}, messages);
    const auto reader = Reader::open(std::make_unique<PlainSource>(file));
    ASSERT_TRUE(reader.ok());
    const auto refs = reader->locate("t3");
    ASSERT_TRUE(refs.ok());
    std::vector<TestMessage> expected;
    for (const auto& m : by_time(messages)) {
      if (m.topic == "t3") expected.push_back(m);
    }
    ASSERT_EQ(refs->size(), expected.size());
    MessageLoader loader = reader->loader();
    for (std::size_t i = refs->size(); i-- > 0;) {
      const auto message = loader.load((*refs)[i]);
      ASSERT_TRUE(message.ok()) << message.status().to_string();
      EXPECT_EQ(as_text(message->data), expected[i].data);
      EXPECT_EQ(message->channel->topic, "t3");
    }
  }
}

TEST(McapReader, StoredDataIsWhereTheMessageLies) {
  const auto messages = by_time(random_times(100, 10'000));
  for (const Compression codec : {Compression::none, Compression::zstd}) {
    Bytes file = write_messages({.chunk_bytes = 3000, .compression = codec}, messages);
    const auto reader = Reader::open(std::make_unique<PlainSource>(file));
    const auto refs = *reader->locate("t1");
    MessageLoader loader = reader->loader();
    for (const MessageRef& ref : refs) {
      const auto stored = reader->stored_data(ref);
      ASSERT_TRUE(stored.ok()) << stored.status().to_string();
      ASSERT_EQ(stored->has_value(), codec == Compression::none);
      if (!stored->has_value()) continue;
      const auto message = loader.load(ref);
      EXPECT_EQ(as_text(ByteSpan(file).subspan((*stored)->offset, (*stored)->size)),
                as_text(message->data));
    }
    if (codec == Compression::zstd) continue;
    MessageRef other = refs[0];
    other.log_time += 1;
    EXPECT_EQ(reader->stored_data(other).status().code(), StatusCode::data_loss);
    file[find_record(file, Opcode::chunk) + 100] ^= 1;
    const auto damaged = Reader::open(memory_source(file));
    EXPECT_EQ(damaged->stored_data(refs[0]).status().code(), StatusCode::data_loss);
  }
}

TEST(McapReader, LoaderRefusesAMessageThatIsNotWhereTheIndexSays) {
  const auto messages = random_times(100, 1000);
  Bytes file = write_messages({.chunk_bytes = 1 << 20}, messages);
  const auto reader = Reader::open(memory_source(file));
  auto refs = *reader->locate("t0");
  refs[0].offset += 1;
  MessageLoader loader = reader->loader();
  EXPECT_EQ(loader.load(refs[0]).status().code(), StatusCode::data_loss);
  refs[0].segment = 1000;
  EXPECT_EQ(loader.load(refs[0]).status().code(), StatusCode::out_of_range);
}

}  // namespace
}  // namespace ropewalk::mcap
