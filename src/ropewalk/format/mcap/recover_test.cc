#include "ropewalk/format/mcap/recover.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/mcap_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::mcap {
namespace {

std::vector<TestMessage> numbered(std::size_t count, std::size_t bytes = 60) {
  std::mt19937 random(5);
  std::vector<TestMessage> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string data(bytes, 'x');
    for (char& c : data) c = static_cast<char>('a' + random() % 16);
    out.push_back({.topic = "t" + std::to_string(i % 3),
                   .time = i * 10,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = std::move(data)});
  }
  return out;
}

struct Recovered {
  RecoverReport report;
  ReadBack content;
  Bytes file;
};

// Recovers, and checks what holds for every recovery: the result is whole and says what it says.
Recovered recovered(const Bytes& file, const RecoverOptions& options = {}) {
  Recovered out;
  const auto sink = memory_sink(out.file);
  auto report = recover(std::make_shared<PlainSource>(file), *sink, options);
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  if (!report.ok()) return out;
  out.report = std::move(*report);
  const Status verified = verify_file(memory_source(out.file));
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  out.content = read_all(out.file, {.order = Order::file});
  EXPECT_TRUE(out.content.problems.empty());
  std::uint64_t messages = 0;
  for (const RecoveredTopic& t : out.report.topics) messages += t.messages;
  EXPECT_EQ(messages, out.content.messages.size());
  EXPECT_EQ(out.report.written.message_count, messages);
  return out;
}

std::size_t find_record(const Bytes& file, Opcode opcode, int number = 0) {
  const auto source = memory_source(file);
  RecordReader records(*source, 0, file.size());
  for (;;) {
    const auto head = records.next();
    EXPECT_TRUE(head.ok() && head->has_value());
    if (!head.ok() || !head->has_value()) return 0;
    if ((*head)->is(opcode) && number-- == 0) return static_cast<std::size_t>((*head)->offset);
  }
}

Bytes cut(const Bytes& file, std::size_t size) {
  return Bytes(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size));
}

TEST(McapRecover, WholeFileComesBackAsItIs) {
  const auto messages = numbered(400);
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd}) {
    const Bytes file =
        write_file({.profile = "p", .chunk_bytes = 3000, .compression = codec, .data_crc = true},
                   [&](Writer& writer) {
                     ASSERT_TRUE(writer.write_metadata({"m", {{"k", "v"}}}).ok());
                     for (const auto& m : messages) write_message(writer, m);
                     ASSERT_TRUE(writer
                                     .write_attachment({.log_time = 1,
                                                        .create_time = 2,
                                                        .name = "a",
                                                        .media_type = "t",
                                                        .data_size = 0},
                                                       as_bytes("data"))
                                     .ok());
                     ASSERT_TRUE(writer.write_private(0x90, as_bytes("own")).ok());
                   });
    const Recovered out = recovered(file);
    EXPECT_EQ(out.content.messages, messages);
    EXPECT_FALSE(out.report.has_loss());
    EXPECT_TRUE(out.report.problems.empty());
    const auto reader = Reader::open(memory_source(out.file));
    EXPECT_EQ(reader->header().profile, "p");
    EXPECT_EQ(reader->chunks().front().compression,
              codec == Compression::none ? "" : compression_name(codec));
    ASSERT_EQ(reader->metadata().size(), 1u);
    EXPECT_LT(reader->metadata()[0].offset, reader->chunks()[0].chunk_start_offset);
    ASSERT_EQ(reader->attachments().size(), 1u);
    EXPECT_EQ(reader->attachments()[0].name, "a");
    ASSERT_EQ(reader->private_records().size(), 1u);
    EXPECT_EQ(*reader->read_private(reader->private_records()[0]), Bytes({'o', 'w', 'n'}));
  }
}

TEST(McapRecover, MissingFooterLosesNothing) {
  const auto messages = numbered(400);
  const Bytes file = write_messages({.chunk_bytes = 3000}, messages);
  const Recovered out = recovered(cut(file, find_record(file, Opcode::data_end)));
  EXPECT_EQ(out.content.messages, messages);
  EXPECT_FALSE(out.report.has_loss());
}

TEST(McapRecover, CutChunkGivesItsWholeBlocks) {
  const auto messages = numbered(12'000, 80);
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd}) {
    const Bytes file = write_messages({.chunk_bytes = 1 << 20, .compression = codec}, messages);
    const std::size_t chunk = find_record(file, Opcode::chunk, 0);
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + chunk + 1, sizeof length);
    std::size_t before = 0;
    for (const std::size_t percent : {25u, 50u, 75u, 95u}) {
      const Recovered out = recovered(cut(file, chunk + length * percent / 100));
      EXPECT_TRUE(out.report.has_loss());
      ASSERT_LT(out.content.messages.size(), messages.size());
      EXPECT_TRUE(
          std::equal(out.content.messages.begin(), out.content.messages.end(), messages.begin()));
      EXPECT_GT(out.content.messages.size(), before) << compression_name(codec) << percent;
      EXPECT_GT(out.report.unverified_messages, 0u);
      before = out.content.messages.size();
      ASSERT_FALSE(out.report.lost_ranges.empty());
      EXPECT_EQ(out.report.lost_ranges.back().offset, chunk);
      EXPECT_EQ(out.report.lost_ranges.back().length, length * percent / 100);
    }
  }
}

TEST(McapRecover, DamagedChunkGivesWhatStandsBeforeTheDamageAndCountsTheRest) {
  const auto messages = numbered(9'000, 100);
  for (const Compression codec : {Compression::lz4_frame, Compression::zstd}) {
    Bytes file = write_messages({.chunk_bytes = 400'000, .compression = codec}, messages);
    const std::size_t chunk = find_record(file, Opcode::chunk, 1);
    std::uint64_t length = 0;
    std::memcpy(&length, file.data() + chunk + 1, sizeof length);
    for (std::size_t i = 0; i < 40; ++i) file[chunk + length * 7 / 10 + i] ^= 0x3C;
    const Recovered out = recovered(file);
    // Damage in lz4 may show in payloads alone.
    if (codec == Compression::zstd) {
      EXPECT_LT(out.content.messages.size(), messages.size());
    }
    EXPECT_GT(out.report.unverified_messages, 100u);
    EXPECT_EQ(out.report.lost_messages + out.content.messages.size(), messages.size());
    for (const RecoveredTopic& t : out.report.topics) EXPECT_EQ(t.lost + t.messages, 3000u);
    ASSERT_EQ(out.report.lost_ranges.size(), 1u);
    EXPECT_EQ(out.report.lost_ranges[0].offset, chunk);
  }
}

TEST(McapRecover, HoleInAnUncompressedChunkCostsOnlyWhatLayInIt) {
  const auto messages = numbered(5000, 100);
  Bytes file = write_messages({.chunk_bytes = 200'000, .compression = Compression::none}, messages);
  const std::size_t chunk = find_record(file, Opcode::chunk, 1);
  std::fill_n(file.begin() + static_cast<std::ptrdiff_t>(chunk) + 50'000, 4096, 0);
  const Recovered out = recovered(file);
  // A page holds about 31 messages.
  EXPECT_GE(out.content.messages.size(), messages.size() - 34);
  EXPECT_LT(out.content.messages.size(), messages.size());
  EXPECT_EQ(out.report.lost_messages + out.content.messages.size(), messages.size());
  std::size_t changed = 0;
  for (const TestMessage& m : out.content.messages) {
    if (!(m == messages[m.sequence])) ++changed;
  }
  EXPECT_LE(changed, 1u);  // the message that the hole begins in
  // Strict reading treats it as a chunk with a wrong CRC.
  const ReadBack strict = read_all(file);
  EXPECT_LT(strict.messages.size(), messages.size() - 1000);
}

TEST(McapRecover, OverwrittenRangeCostsItsChunks) {
  const auto messages = numbered(2000, 100);
  const Bytes whole = write_messages({.chunk_bytes = 10'000}, messages);
  for (const bool finished : {true, false}) {
    Bytes file = finished ? whole : cut(whole, find_record(whole, Opcode::data_end));
    const std::size_t begin = find_record(file, Opcode::chunk, 3) + 20;
    const std::size_t end = find_record(file, Opcode::chunk, 5) + 4;
    for (std::size_t i = begin; i < end; ++i) file[i] = static_cast<std::uint8_t>(i * 7);
    const Recovered out = recovered(file);
    EXPECT_TRUE(out.report.has_loss());
    EXPECT_GT(out.content.messages.size(), messages.size() - 400);
    for (const TestMessage& m : out.content.messages) EXPECT_EQ(m, messages[m.sequence]);
    if (finished) {
      EXPECT_EQ(out.report.lost_messages + out.content.messages.size(), messages.size());
    }
  }
}

TEST(McapRecover, DamagedBeginningIsSkipped) {
  const auto messages = numbered(2000, 100);
  Bytes file = write_messages({.chunk_bytes = 10'000}, messages);
  file.resize(find_record(file, Opcode::data_end));
  std::fill_n(file.begin(), 4096, 0);
  EXPECT_EQ(Reader::open(memory_source(file)).status().code(), StatusCode::data_loss);
  const Recovered out = recovered(file);
  EXPECT_GT(out.content.messages.size(), messages.size() - 300);
  EXPECT_EQ(out.report.lost_ranges.front().offset, 0u);
}

TEST(McapRecover, LooseMessagesGoOnBehindDamage) {
  const auto messages = numbered(500, 40);
  Bytes file = write_messages({.chunked = false}, messages);
  const std::size_t at = find_record(file, Opcode::message, 100);
  file.resize(find_record(file, Opcode::data_end));
  std::memset(file.data() + at, 0xEE, 30);
  const Recovered out = recovered(file);
  EXPECT_EQ(out.content.messages.size(), messages.size() - 1);
  EXPECT_EQ(out.report.lost_ranges.size(), 1u);
  EXPECT_EQ(out.report.lost_ranges[0].offset, at);
}

TEST(McapRecover, FilesBehindEachOtherKeepTheirOwnIds) {
  const std::vector<TestMessage> first{{"a", 1, 0, "first"}};
  const std::vector<TestMessage> second{{"b", 2, 0, "second"}, {"a", 3, 1, "third"}};
  const Bytes one = write_messages({}, first);
  const Bytes two = write_messages({}, second);
  for (const bool finished : {true, false}) {
    Bytes file = finished ? one : cut(one, find_record(one, Opcode::data_end));
    file.insert(file.end(), two.begin(), two.end());
    const Recovered out = recovered(file);
    EXPECT_EQ(out.report.files, 2u);
    ASSERT_EQ(out.content.messages.size(), 3u);
    EXPECT_EQ(out.content.messages[0], first[0]);
    EXPECT_EQ(out.content.messages[1], second[0]);
    EXPECT_EQ(out.content.messages[2], second[1]);
  }
}

TEST(McapRecover, AttachmentWithAWrongCrcIsKeptAndReported) {
  Bytes file = write_file({}, [](Writer& writer) {
    ASSERT_TRUE(
        writer
            .write_attachment(
                {.log_time = 1, .create_time = 2, .name = "a", .media_type = "t", .data_size = 0},
                as_bytes("content"))
            .ok());
    write_message(writer, {"t", 1, 0, "x"});
  });
  const std::string_view wanted = "content";
  *std::search(file.begin(), file.end(), wanted.begin(), wanted.end()) = 'C';
  const Recovered out = recovered(file);
  EXPECT_TRUE(out.report.has_loss());
  ASSERT_EQ(out.report.problems.size(), 1u);
  EXPECT_EQ(out.report.problems[0].kind, ProblemKind::attachment_crc);
  EXPECT_EQ(out.content.messages.size(), 1u);
}

TEST(McapRecover, NothingToRecoverIsSaidPlainly) {
  Bytes file;
  const auto sink = memory_sink(file);
  const auto empty = recover(memory_source({}), *sink);
  EXPECT_NE(empty.status().message().find("empty"), std::string_view::npos);
  const auto magic = recover(memory_source(Bytes(kMagic.begin(), kMagic.end())), *sink);
  EXPECT_NE(magic.status().message().find("no records"), std::string_view::npos);
  const Bytes whole = write_messages({.profile = "x"}, {});
  const Recovered header = recovered(cut(whole, find_record(whole, Opcode::data_end)));
  EXPECT_TRUE(header.content.messages.empty());
  EXPECT_FALSE(header.report.has_loss());
}

TEST(McapRecover, FileAppearsOnlyWhole) {
  const test::TempDir dir("mcap-recover");
  const auto messages = numbered(300);
  const Bytes file = write_messages({.chunk_bytes = 2000}, messages);
  ASSERT_TRUE(write_new_file(dir / "in.mcap", file).ok());
  const auto report = recover_file(dir / "in.mcap", dir / "out.mcap");
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->written.message_count, 300u);
  EXPECT_EQ(recover_file(dir / "in.mcap", dir / "out.mcap").status().code(),
            StatusCode::already_exists);
  EXPECT_TRUE(recover_file(dir / "out.mcap", dir / "out.mcap", {.replace = true}).ok());
  ASSERT_TRUE(write_new_file(dir / "bad", as_bytes("nothing of the kind, but long enough")).ok());
  EXPECT_FALSE(recover_file(dir / "bad", dir / "bad.mcap").ok());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    static_cast<void>(entry);
    ++files;
  }
  EXPECT_EQ(files, 3u);
}

}  // namespace
}  // namespace ropewalk::mcap
