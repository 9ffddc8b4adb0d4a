// Copies of generated files: what a selection keeps arrives unchanged, in the order asked for.
#include "ropewalk/engine/mcap/rewrite.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "ropewalk/engine/mcap/split.h"

#include "tests/support/mcap_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using mcap::TestMessage;

// Twelve messages on three topics, out of order in time, with metadata and an attachment.
std::vector<TestMessage> twelve() {
  std::vector<TestMessage> out;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const std::uint64_t time = 1000 + (i ^ 1U) * 10;
    out.push_back({.topic = i % 3 == 0   ? "/a"
                            : i % 3 == 1 ? "/b"
                                         : "/c",
                   .time = time,
                   .sequence = 100 + i,
                   .data = "payload " + std::to_string(i)});
  }
  return out;
}

Bytes sample(mcap::WriterOptions options = {.profile = "ros2", .chunk_bytes = 200}) {
  options.unused_definitions = true;
  return mcap::write_file(options, [](mcap::Writer& writer) {
    ASSERT_TRUE(
        writer.add_schema_with_id({.id = 7, .name = "Kept", .encoding = "text", .data = {1, 2, 3}})
            .ok());
    ASSERT_TRUE(writer
                    .add_channel_with_id({.id = 50,
                                          .schema_id = 7,
                                          .topic = "/never",
                                          .message_encoding = "raw",
                                          .metadata = {{"k", "v"}}})
                    .ok());
    ASSERT_TRUE(writer.write_metadata({.name = "info", .metadata = {{"robot", "one"}}}).ok());
    for (const TestMessage& m : twelve()) mcap::write_message(writer, m);
    ASSERT_TRUE(
        writer
            .write_attachment(
                {.log_time = 1050, .create_time = 3, .name = "map.png", .media_type = "image/png"},
                as_bytes("pixels"))
            .ok());
  });
}

class McapRewrite : public ::testing::Test {
 protected:
  std::string put(const std::string& name, const Bytes& bytes) {
    test::write_file(dir_ / name, as_text(bytes));
    return (dir_ / name).string();
  }
  std::string out(const std::string& name = "out.mcap") { return (dir_ / name).string(); }
  mcap::ReadBack read(const std::string& path,
                      const mcap::MessageQuery& query = {.order = mcap::Order::file}) {
    const auto input = open_mcap(path);
    EXPECT_TRUE(input.ok()) << input.status().to_string();
    if (!input.ok()) return {};
    EXPECT_TRUE(input->reader.problems().empty());
    EXPECT_TRUE(input->reader.has_summary());
    return mcap::read_all(input->reader, query);
  }
  std::vector<std::string> names() {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      out.push_back(entry.path().filename());
    }
    std::ranges::sort(out);
    return out;
  }

  test::TempDir dir_;
  RunContext context_;
};

TEST_F(McapRewrite, CopyIsLossless) {
  const auto report =
      rewrite_mcap({.inputs = {put("in.mcap", sample())}, .output = out()}, context_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->messages, 12U);
  EXPECT_FALSE(report->lossy());
  EXPECT_EQ(read(out()).messages, twelve());
  const auto copy = open_mcap(out());
  EXPECT_EQ(copy->reader.header().profile, "ros2");
  EXPECT_EQ(copy->reader.channels().at(50).topic, "/never");
  EXPECT_EQ(copy->reader.channels().at(50).metadata, (mcap::StringMap{{"k", "v"}}));
  EXPECT_EQ(copy->reader.schemas().at(7).data, (Bytes{1, 2, 3}));
  ASSERT_EQ(copy->reader.metadata().size(), 1U);
  EXPECT_EQ(copy->reader.read_metadata(copy->reader.metadata()[0])->metadata,
            (mcap::StringMap{{"robot", "one"}}));
  ASSERT_EQ(copy->reader.attachments().size(), 1U);
  EXPECT_EQ(copy->reader.attachments()[0].create_time, 3U);
  std::string data;
  ASSERT_TRUE(copy->reader
                  .read_attachment(copy->reader.attachments()[0],
                                   [&](ByteSpan bytes) {
                                     data += as_text(bytes);
                                     return ok_status();
                                   })
                  .ok());
  EXPECT_EQ(data, "pixels");
  EXPECT_EQ(copy->reader.statistics()->message_count, 12U);
  EXPECT_EQ(names(), (std::vector<std::string>{"in.mcap", "out.mcap"}));
}

TEST_F(McapRewrite, SelectsTopicsAndTimes) {
  const std::string in = put("in.mcap", sample());
  ASSERT_TRUE(
      rewrite_mcap(
          {.inputs = {in},
           .output = out(),
           .selection = {.include_topics = {"/[ab]"}, .begin_time = 1020, .end_time = 1070}},
          context_)
          .ok());
  std::vector<TestMessage> expected = twelve();
  std::erase_if(expected, [](const TestMessage& m) {
    return m.topic == "/c" || m.time < 1020 || m.time >= 1070;
  });
  ASSERT_EQ(expected.size(), 3U);
  EXPECT_EQ(read(out()).messages, expected);
  const auto copy = open_mcap(out());
  EXPECT_EQ(copy->reader.channels().size(),
            2U);  // a selection of topics drops the others' channels
  EXPECT_EQ(copy->reader.attachments().size(), 1U);  // logged at 1050

  ASSERT_TRUE(rewrite_mcap({.inputs = {in},
                            .output = out("b.mcap"),
                            .selection = {.exclude_topics = {"/[ab]"},
                                          .metadata = false,
                                          .attachments = false,
                                          .unused_definitions = false}},
                           context_)
                  .ok());
  EXPECT_EQ(read(out("b.mcap")).messages.size(), 4U);
  const auto other = open_mcap(out("b.mcap"));
  EXPECT_EQ(other->reader.channels().size(), 1U);
  EXPECT_TRUE(other->reader.metadata().empty());
  EXPECT_TRUE(other->reader.attachments().empty());

  // A selection that matches nothing gives nothing, not everything.
  ASSERT_TRUE(
      rewrite_mcap(
          {.inputs = {in}, .output = out("c.mcap"), .selection = {.include_topics = {"/nothing"}}},
          context_)
          .ok());
  EXPECT_TRUE(read(out("c.mcap")).messages.empty());
}

TEST_F(McapRewrite, KeepsTheLastMessageBeforeTheRange) {
  const auto report =
      rewrite_mcap({.inputs = {put("in.mcap", sample())},
                    .output = out(),
                    .selection = {.last_per_channel = {"/a", "/b"}, .begin_time = 1100}},
                   context_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto messages = read(out()).messages;
  ASSERT_EQ(messages.size(), 4U);  // times 1100 and 1110, and one each of /a and /b before
  // /a is written at i = 0, 3, 6, 9: times 1010, 1020, 1070, 1080; /b at 1, 4, 7, 10.
  EXPECT_EQ(messages[0].topic, "/b");
  EXPECT_EQ(messages[0].time, 1060U);
  EXPECT_EQ(messages[1].topic, "/a");
  EXPECT_EQ(messages[1].time, 1080U);
}

TEST_F(McapRewrite, SortsByTimeAndByTopic) {
  const std::string in = put("in.mcap", sample());
  ASSERT_TRUE(
      rewrite_mcap({.inputs = {in}, .output = out(), .order = McapOrder::log_time}, context_).ok());
  std::vector<TestMessage> expected = twelve();
  std::ranges::stable_sort(expected, {}, &TestMessage::time);
  EXPECT_EQ(read(out()).messages, expected);

  ASSERT_TRUE(
      rewrite_mcap({.inputs = {in}, .output = out("t.mcap"), .order = McapOrder::topic}, context_)
          .ok());
  std::ranges::stable_sort(expected, {}, &TestMessage::topic);
  EXPECT_EQ(read(out("t.mcap")).messages, expected);
  const auto by_topic = open_mcap(out("t.mcap"));
  for (const auto& chunk : by_topic->reader.chunks()) {
    EXPECT_EQ(chunk.message_index_offsets.size(), 1U);
  }
}

TEST_F(McapRewrite, CompressionIsKeptOrChanged) {
  std::vector<TestMessage> many;
  for (std::uint32_t i = 0; i < 300; ++i) {
    many.push_back({.topic = "/a", .time = i, .sequence = i, .data = std::string(100, 'x')});
  }
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd}) {
    const std::string name(compression_name(codec));
    const std::string in = put(
        name + ".mcap", mcap::write_messages({.chunk_bytes = 8000, .compression = codec}, many));
    ASSERT_TRUE(rewrite_mcap({.inputs = {in}, .output = out(name + "_kept.mcap")}, context_).ok());
    const auto kept = open_mcap(out(name + "_kept.mcap"));
    for (const auto& chunk : kept->reader.chunks()) {
      EXPECT_EQ(chunk.compression, codec == Compression::none ? "" : name);
    }
    ASSERT_TRUE(rewrite_mcap({.inputs = {in},
                              .output = out(name + "_zstd.mcap"),
                              .writing = {.compression = "zstd", .chunk_bytes = 4000}},
                             context_)
                    .ok());
    const auto changed = open_mcap(out(name + "_zstd.mcap"));
    EXPECT_EQ(changed->reader.chunks().size(), 10U);
    for (const auto& chunk : changed->reader.chunks()) EXPECT_EQ(chunk.compression, "zstd");
    EXPECT_EQ(read(out(name + "_zstd.mcap")).messages, many);
  }
  EXPECT_EQ(rewrite_mcap({.inputs = {put("x.mcap", sample())},
                          .output = out("y.mcap"),
                          .writing = {.compression = "brotli"}},
                         context_)
                .status()
                .code(),
            StatusCode::invalid_argument);
}

TEST_F(McapRewrite, RenamesTopics) {
  ASSERT_TRUE(rewrite_mcap({.inputs = {put("in.mcap", sample())},
                            .output = out(),
                            .selection = {.rename = {{"/a", "/x"}}, .topic_prefix = "/r"}},
                           context_)
                  .ok());
  std::vector<TestMessage> expected = twelve();
  for (TestMessage& m : expected) m.topic = "/r" + (m.topic == "/a" ? "/x" : m.topic);
  EXPECT_EQ(read(out()).messages, expected);
}

TEST_F(McapRewrite, MergesByTimeWithRightStatistics) {
  const std::string one = put(
      "one.mcap",
      mcap::write_messages({}, {{"/a", 10, 1, "a1"}, {"/a", 30, 2, "a2"}, {"/b", 50, 3, "b1"}}));
  const std::string two = put(
      "two.mcap",
      mcap::write_messages({}, {{"/b", 10, 4, "b2"}, {"/a", 20, 5, "a3"}, {"/c", 50, 6, "c1"}}));
  const auto report =
      rewrite_mcap({.inputs = {one, two}, .output = out(), .order = McapOrder::log_time}, context_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(read(out()).messages, (std::vector<TestMessage>{{"/a", 10, 1, "a1"},
                                                            {"/b", 10, 4, "b2"},
                                                            {"/a", 20, 5, "a3"},
                                                            {"/a", 30, 2, "a2"},
                                                            {"/b", 50, 3, "b1"},
                                                            {"/c", 50, 6, "c1"}}));
  const auto merged = open_mcap(out());
  EXPECT_EQ(merged->reader.channels().size(), 3U);
  EXPECT_EQ(merged->reader.schemas().size(), 1U);
  const auto& statistics = *merged->reader.statistics();
  EXPECT_EQ(statistics.message_count, 6U);
  EXPECT_EQ(statistics.channel_count, 3U);
  EXPECT_EQ(statistics.message_start_time, 10U);
  EXPECT_EQ(statistics.message_end_time, 50U);
  std::uint64_t counted = 0;
  for (const auto& [id, count] : statistics.channel_message_counts) counted += count;
  EXPECT_EQ(counted, 6U);
}

TEST_F(McapRewrite, CoalescesChannelsAsAsked) {
  const auto file = [&](const std::string& qos) {
    return mcap::write_file({}, [&](mcap::Writer& writer) {
      const auto schema = writer.add_schema("S", "text", as_bytes("x"));
      const auto id = writer.add_channel({.schema_id = *schema,
                                          .topic = "/a",
                                          .message_encoding = "raw",
                                          .metadata = {{"qos", qos}}});
      ASSERT_TRUE(writer.write({.channel_id = *id, .log_time = 1}, as_bytes("m")).ok());
    });
  };
  const std::string one = put("1.mcap", file("fast"));
  const std::string same = put("2.mcap", file("fast"));
  const std::string other = put("3.mcap", file("slow"));
  const auto channels = [&](ChannelCoalescing how) {
    EXPECT_TRUE(rewrite_mcap({.inputs = {one, same, other},
                              .output = out(),
                              .replace = true,
                              .order = McapOrder::log_time,
                              .coalescing = how},
                             context_)
                    .ok());
    EXPECT_EQ(read(out()).messages.size(), 3U);
    return open_mcap(out())->reader.channels().size();
  };
  EXPECT_EQ(channels(ChannelCoalescing::automatic), 2U);
  EXPECT_EQ(channels(ChannelCoalescing::force), 1U);
  EXPECT_EQ(channels(ChannelCoalescing::none), 3U);
}

TEST_F(McapRewrite, MetadataOfOneNameAreMergedOnceOrRefused) {
  const auto file = [&](const std::string& value) {
    return mcap::write_file({}, [&](mcap::Writer& writer) {
      ASSERT_TRUE(writer.write_metadata({.name = "n", .metadata = {{"k", value}}}).ok());
    });
  };
  const std::string one = put("1.mcap", file("x"));
  const std::string same = put("2.mcap", file("x"));
  const std::string other = put("3.mcap", file("y"));
  ASSERT_TRUE(rewrite_mcap({.inputs = {one, same}, .output = out()}, context_).ok());
  EXPECT_EQ(open_mcap(out())->reader.metadata().size(), 1U);
  RewriteRequest request{.inputs = {one, other}, .output = out("o.mcap")};
  EXPECT_EQ(rewrite_mcap(request, context_).status().code(), StatusCode::failed_precondition);
  request.allow_duplicate_metadata = true;
  ASSERT_TRUE(rewrite_mcap(request, context_).ok());
  EXPECT_EQ(open_mcap(out("o.mcap"))->reader.metadata().size(), 2U);
}

TEST_F(McapRewrite, DamageIsReportedAndTheRestCopied) {
  Bytes bytes = sample({.profile = "ros2", .chunk_bytes = 200, .compression = Compression::none});
  const auto whole = mcap::read_all(bytes, {.order = mcap::Order::file});
  const auto chunks = mcap::Reader::open(memory_source(bytes))->chunks();
  ASSERT_GE(chunks.size(), 3U);
  bytes[chunks[1].chunk_start_offset + chunks[1].chunk_length - 3] ^= 0x40;
  const auto report = rewrite_mcap({.inputs = {put("in.mcap", bytes)}, .output = out()}, context_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(report->lossy());
  ASSERT_EQ(report->problems.size(), 1U);
  EXPECT_EQ(report->problems[0].problem.kind, mcap::ProblemKind::chunk_crc);
  EXPECT_LT(report->messages, 12U);
  EXPECT_GT(report->messages, 0U);
  ASSERT_TRUE(
      rewrite_mcap({.inputs = {put("in.mcap", bytes)}, .output = out("l.mcap"), .lenient = true},
                   context_)
          .ok());
  EXPECT_EQ(read(out("l.mcap")).messages.size(), 12U);
}

TEST_F(McapRewrite, NothingIsOverwrittenOrLeftBehind) {
  const std::string in = put("in.mcap", sample());
  put("out.mcap", {1, 2, 3});
  EXPECT_EQ(rewrite_mcap({.inputs = {in}, .output = out()}, context_).status().code(),
            StatusCode::already_exists);
  EXPECT_EQ(test::read_file(dir_ / "out.mcap"), "\x01\x02\x03");
  std::stop_source stop;
  stop.request_stop();
  RunContext stopped;
  stopped.stop = stop.get_token();
  EXPECT_EQ(
      rewrite_mcap({.inputs = {in}, .output = out(), .replace = true}, stopped).status().code(),
      StatusCode::cancelled);
  EXPECT_EQ(test::read_file(dir_ / "out.mcap"), "\x01\x02\x03");
  EXPECT_EQ(names(), (std::vector<std::string>{"in.mcap", "out.mcap"}));
  // A file may replace itself.
  ASSERT_TRUE(
      rewrite_mcap({.inputs = {in}, .output = in, .replace = true, .order = McapOrder::log_time},
                   context_)
          .ok());
  EXPECT_EQ(read(in).messages.size(), 12U);
}

TEST_F(McapRewrite, SplitsByDurationCountSizeAndTopic) {
  const std::string in = put("in.mcap", sample());
  const auto split = [&](SplitRequest request, const std::string& name) {
    request.input = in;
    request.output = dir_ / name;
    auto report = split_mcap(request, context_);
    EXPECT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_EQ(report->messages, 12U);
    std::vector<std::size_t> counts;
    std::size_t attachments = 0;
    for (const SplitPart& part : report->parts) {
      counts.push_back(read(part.path).messages.size());
      EXPECT_EQ(counts.back(), part.messages);
      const auto opened = open_mcap(part.path);
      EXPECT_EQ(opened->reader.metadata().size(), 1U);
      attachments += opened->reader.attachments().size();
    }
    EXPECT_EQ(attachments, 1U);
    return counts;
  };
  // Times 1000 … 1110 in steps of 10.
  EXPECT_EQ(split({.duration_ns = 50}, "d"), (std::vector<std::size_t>{5, 5, 2}));
  EXPECT_EQ(open_mcap(out("d/in_0002.mcap"))->reader.attachments().size(), 1U);  // logged at 1050
  EXPECT_EQ(split({.count = 5}, "c"), (std::vector<std::size_t>{5, 5, 2}));
  EXPECT_EQ(split({.by_topic = true}, "t"), (std::vector<std::size_t>{4, 4, 4}));
  EXPECT_TRUE(std::filesystem::exists(dir_ / "t/in_b.mcap"));
  EXPECT_GE(split({.bytes = 500}, "s").size(), 2U);
  EXPECT_FALSE(split_mcap({.input = in, .output = dir_ / "x"}, context_).ok());
}

}  // namespace
}  // namespace ropewalk
