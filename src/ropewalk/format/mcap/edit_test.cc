#include "ropewalk/format/mcap/edit.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/mcap/recover.h"

#include "tests/support/mcap_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::mcap {
namespace {

std::vector<TestMessage> numbered(std::size_t first, std::size_t count) {
  std::vector<TestMessage> out;
  for (std::size_t i = first; i < first + count; ++i) {
    out.push_back({.topic = i % 2 == 0 ? "a" : "b",
                   .time = i * 10,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = std::string(50, static_cast<char>('a' + i % 26))});
  }
  return out;
}

Bytes file_of(const std::filesystem::path& path) {
  auto bytes = read_file(path, 1ULL << 30);
  EXPECT_TRUE(bytes.ok()) << bytes.status().to_string();
  return bytes.ok() ? *bytes : Bytes();
}

void put(const std::filesystem::path& path, const Bytes& bytes) {
  std::filesystem::remove(path);
  ASSERT_TRUE(write_new_file(path, bytes).ok());
}

std::string attachment_of(const Reader& reader, std::size_t index) {
  std::string out;
  EXPECT_TRUE(reader
                  .read_attachment(reader.attachments()[index],
                                   [&](ByteSpan part) {
                                     out += as_text(part);
                                     return ok_status();
                                   })
                  .ok());
  return out;
}

std::size_t files_in(const std::filesystem::path& dir) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(dir),
                                                std::filesystem::directory_iterator()));
}

TEST(McapEdit, AddsAttachmentsAndMetadataToEveryKindOfFinishedFile) {
  const test::TempDir dir("mcap-edit");
  const auto path = dir / "f.mcap";
  const auto messages = numbered(0, 300);
  WriterOptions marked = WriterOptions::recording();
  marked.max_chunk_age_ns = 0;
  for (WriterOptions options :
       {WriterOptions{}, WriterOptions{.chunked = false}, WriterOptions{.data_crc = true},
        WriterOptions{.repeat_channels = false, .statistics = false}, marked}) {
    options.chunk_bytes = 2000;
    options.checkpoint_bytes = 3000;
    put(path, write_messages(options, messages));
    const std::string big(3'000'000, 'z');
    ASSERT_TRUE(add_attachment(path,
                               {.log_time = 5,
                                .create_time = 6,
                                .name = "big",
                                .media_type = "text/plain",
                                .data_size = 0},
                               *view_source(as_bytes(big)))
                    .ok());
    ASSERT_TRUE(add_metadata(path, {.name = "m", .metadata = {{"k", "v"}}}).ok());
    ASSERT_TRUE(add_metadata(path, {.name = "m", .metadata = {{"k", "w"}}}).ok());
    const Bytes file = file_of(path);
    const Status verified = verify_file(view_source(file));
    EXPECT_TRUE(verified.ok()) << verified.to_string();
    const auto reader = Reader::open(view_source(file));
    EXPECT_EQ(attachment_of(*reader, 0), big);
    ASSERT_EQ(reader->metadata().size(), 2u);
    EXPECT_EQ(reader->read_metadata(reader->metadata()[1])->metadata, (StringMap{{"k", "w"}}));
    EXPECT_EQ(reader->statistics()->message_count, 300u);
    EXPECT_EQ(reader->statistics()->attachment_count, 1u);
    EXPECT_EQ(reader->statistics()->metadata_count, 2u);
    EXPECT_EQ(read_all(*reader).messages, messages);
    EXPECT_EQ(files_in(dir.path()), 1u);
  }
}

TEST(McapEdit, UnfinishedFileIsNotEditedButAppendedTo) {
  const test::TempDir dir("mcap-edit");
  const auto path = dir / "f.mcap";
  const auto messages = numbered(0, 4000);
  for (const Compression codec : {Compression::none, Compression::zstd, Compression::lz4_frame}) {
    Bytes file = write_messages({.chunk_bytes = 100'000, .compression = codec}, messages);
    const auto chunks = Reader::open(view_source(file))->chunks();
    file.resize(chunks[1].chunk_start_offset + chunks[1].chunk_length * 9 / 10);
    put(path, file);
    EXPECT_EQ(add_metadata(path, {}).code(), StatusCode::failed_precondition);
    const auto before = read_all(file).messages;
    ASSERT_GT(before.size(), 500u);
    auto appender = Appender::open(path, {.compression = codec});
    ASSERT_TRUE(appender.ok()) << appender.status().to_string();
    auto expected = before;
    for (const TestMessage& m : numbered(10'000, 100)) {
      write_message(appender->writer(), m);
      expected.push_back(m);
    }
    ASSERT_TRUE(appender->finish().ok());
    const Bytes after = file_of(path);
    const Status verified = verify_file(view_source(after));
    EXPECT_TRUE(verified.ok()) << verified.to_string();
    EXPECT_EQ(read_all(after).messages, expected);
    EXPECT_EQ(files_in(dir.path()), 1u);
  }
}

TEST(McapEdit, FinishedFileGoesOnWithItsIdsAndCounts) {
  const test::TempDir dir("mcap-edit");
  const auto path = dir / "f.mcap";
  WriterOptions marked = WriterOptions::recording();
  marked.max_chunk_age_ns = 0;
  for (WriterOptions options : {WriterOptions{.data_crc = true}, WriterOptions{.chunked = false},
                                WriterOptions{.statistics = false}, marked}) {
    options.chunk_bytes = 2000;
    options.checkpoint_bytes = 3000;
    const auto first = numbered(0, 300);
    put(path, write_messages(options, first));
    const auto before = Reader::open(memory_source(file_of(path)))->channels();
    auto expected = first;
    for (int round = 0; round < 2; ++round) {
      auto appender = Appender::open(path, options);
      ASSERT_TRUE(appender.ok()) << appender.status().to_string();
      for (const TestMessage& m : numbered(1000 * static_cast<std::size_t>(round + 1), 100)) {
        write_message(appender->writer(), m);
        expected.push_back(m);
      }
      ASSERT_TRUE(appender->finish().ok());
    }
    const Bytes file = file_of(path);
    const Reader reader = *Reader::open(view_source(file));
    EXPECT_EQ(reader.channels(), before);
    EXPECT_EQ(read_all(file).messages, expected);
    if (options.statistics) {
      const Status verified = verify_file(view_source(file));
      EXPECT_TRUE(verified.ok()) << verified.to_string();
    }
    // What a crash would leave of it opens as well.
    Bytes unfinished = file;
    unfinished.resize(file.size() - 50);
    EXPECT_EQ(read_all(unfinished).messages, expected);
  }
}

// Fails the n-th call for every n, once as an error and once as a power loss; then the next open
// must find the old file or the new one.
TEST(McapEdit, InterruptedEditLeavesTheOldOrTheNewFile) {
  const auto messages = numbered(0, 100);
  const Bytes old_file = write_messages({.chunk_bytes = 2000}, messages);
  const std::string data(2'500'000, 'q');
  for (const bool power_loss : {false, true}) {
    int old_ones = 0;
    int new_ones = 0;
    bool done = false;
    for (int n = 0; !done; ++n) {
      ASSERT_LT(n, 200);
      const test::TempDir dir("mcap-edit");
      const test::TempDir graveyard("mcap-grave");
      const auto path = dir / "f.mcap";
      put(path, old_file);
      ASSERT_TRUE(sync_directory(dir.path()).ok());
      if (power_loss) UnsyncedTracker::arm(graveyard.path());
      int left = n;
      set_fault_hook([&](std::string_view) {
        return left-- > 0 ? ok_status() : unavailable("pulled the plug");
      });
      const Status status = add_attachment(
          path, {.log_time = 1, .create_time = 1, .name = "q", .media_type = "", .data_size = 0},
          *view_source(as_bytes(data)));
      set_fault_hook({});
      if (power_loss) {
        UnsyncedTracker::drop_unsynced();
        UnsyncedTracker::disarm();
      }
      done = status.ok();
      const auto completed = complete_edit(path);
      ASSERT_TRUE(completed.ok()) << n << completed.status().to_string();
      const Bytes file = file_of(path);
      EXPECT_EQ(read_all(file).messages, messages) << n;
      if (file == old_file) {
        ++old_ones;
        ASSERT_FALSE(done);
      } else {
        ++new_ones;
        ASSERT_TRUE(verify_file(view_source(file)).ok()) << n;
        EXPECT_EQ(attachment_of(*Reader::open(view_source(file)), 0), data);
      }
      EXPECT_EQ(files_in(dir.path()), 1u);
    }
    EXPECT_GT(old_ones, 3);
    EXPECT_GT(new_ones, 3);
  }
}

TEST(McapEdit, InterruptedAppendLosesNoMessageThatWasThere) {
  const auto messages = numbered(0, 2000);
  Bytes old_file = write_messages({.chunk_bytes = 60'000}, messages);
  const auto chunks = Reader::open(view_source(old_file))->chunks();
  old_file.resize(chunks.back().chunk_start_offset + chunks.back().chunk_length - 100);
  const auto before = read_all(old_file).messages;
  bool done = false;
  for (int n = 0; !done; ++n) {
    ASSERT_LT(n, 200);
    const test::TempDir dir("mcap-edit");
    const auto path = dir / "f.mcap";
    put(path, old_file);
    int left = n;
    set_fault_hook([&](std::string_view) {
      return left-- > 0 ? ok_status() : unavailable("pulled the plug");
    });
    {
      auto appender = Appender::open(path, {.chunk_bytes = 2000});
      if (appender.ok()) {
        for (const TestMessage& m : numbered(5000, 60)) {
          static_cast<void>(appender->writer().add_schema("S", "text", as_bytes("schema text")));
          const auto id = appender->writer().add_channel({.id = 0,
                                                          .schema_id = 1,
                                                          .topic = m.topic,
                                                          .message_encoding = "raw",
                                                          .metadata = {}});
          static_cast<void>(appender->writer().write({.channel_id = *id,
                                                      .sequence = m.sequence,
                                                      .log_time = m.time,
                                                      .publish_time = m.time},
                                                     as_bytes(m.data)));
        }
        done = appender->finish().ok();
      }
    }
    set_fault_hook({});
    ASSERT_TRUE(complete_edit(path).ok());
    const auto after = read_all(file_of(path)).messages;
    ASSERT_GE(after.size(), before.size()) << n;
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin())) << n;
    EXPECT_EQ(files_in(dir.path()), 1u);
  }
}

}  // namespace
}  // namespace ropewalk::mcap
