#include "ropewalk/format/mcap/merged_reader.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/support/mcap_files.h"

namespace ropewalk::mcap {
namespace {

std::vector<TestMessage> part(const std::string& topic, std::uint64_t first, std::uint64_t step,
                              const std::string& mark) {
  std::vector<TestMessage> out;
  for (std::uint64_t i = 0; i < 200; ++i) {
    out.push_back({.topic = topic,
                   .time = first + i * step,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = mark + std::to_string(i)});
  }
  return out;
}

MergedReader merged_of(const std::vector<Bytes>& files, MergeOptions options = {}) {
  std::vector<std::shared_ptr<const Source>> sources;
  for (const Bytes& file : files) sources.push_back(memory_source(file));
  auto merged = MergedReader::open(std::move(sources), options);
  EXPECT_TRUE(merged.ok()) << merged.status().to_string();
  return std::move(*merged);
}

std::vector<TestMessage> all_of(const MergedReader& merged, const MessageQuery& query = {}) {
  std::vector<TestMessage> out;
  MergedMessages messages = merged.messages(query);
  for (MergedView m; messages.next(m);) {
    EXPECT_EQ(m.channel_id, m.channel->id);
    EXPECT_EQ(merged.channels().at(m.channel_id), *m.channel);
    out.push_back({.topic = m.channel->topic,
                   .time = m.log_time,
                   .sequence = m.sequence,
                   .data = std::string(as_text(m.data))});
  }
  EXPECT_TRUE(messages.status().ok()) << messages.status().to_string();
  return out;
}

TEST(McapMergedReader, MessagesComeInTimeOrderAndTiesInTheOrderOfTheFiles) {
  // The same times three times over, in files whose channel ids collide.
  const std::vector<std::vector<TestMessage>> parts{
      part("a", 100, 10, "one "), part("b", 100, 10, "two "), part("a", 50, 7, "three ")};
  std::vector<Bytes> files;
  std::vector<TestMessage> expected;
  for (const auto& messages : parts) {
    files.push_back(write_messages({.chunk_bytes = 700}, messages));
    expected.insert(expected.end(), messages.begin(), messages.end());
  }
  const std::vector<TestMessage> in_file_order = expected;
  std::ranges::stable_sort(expected, {}, &TestMessage::time);
  const MergedReader merged = merged_of(files);
  EXPECT_EQ(all_of(merged), expected);
  std::ranges::reverse(expected);
  EXPECT_EQ(all_of(merged, {.order = Order::reverse_log_time}), expected);
  EXPECT_EQ(all_of(merged, {.order = Order::file}), in_file_order);
  std::vector<TestMessage> only_b;
  for (const TestMessage& m : parts[1]) {
    if (m.time >= 200 && m.time <= 400) only_b.push_back(m);
  }
  EXPECT_EQ(all_of(merged, {.begin_time = 200, .last_time = 400, .topics = {{"b"}}}), only_b);
}

Bytes with_metadata(const std::string& topic, const StringMap& metadata, std::string_view schema) {
  return write_file({}, [&](Writer& writer) {
    const auto id = writer.add_schema("S", "text", as_bytes(schema));
    const auto channel = writer.add_channel({.id = 0,
                                             .schema_id = *id,
                                             .topic = topic,
                                             .message_encoding = "raw",
                                             .metadata = metadata});
    ASSERT_TRUE(writer.write({.channel_id = *channel, .log_time = 1}, as_bytes("x")).ok());
  });
}

TEST(McapMergedReader, EqualChannelsShareAnIdAndOthersDoNot) {
  const std::vector<Bytes> files{
      with_metadata("t", {{"k", "v"}}, "1"), with_metadata("t", {{"k", "v"}}, "1"),
      with_metadata("t", {{"k", "w"}}, "1"), with_metadata("t", {{"k", "v"}}, "2"),
      with_metadata("u", {{"k", "v"}}, "1")};
  const auto ids = [&](Coalesce coalesce) {
    MergeOptions options;
    options.coalesce = coalesce;
    const MergedReader merged = merged_of(files, options);
    std::vector<std::uint16_t> out;
    MergedMessages messages = merged.messages();
    for (MergedView m; messages.next(m);) {
      EXPECT_EQ(m.schema->id, m.channel->schema_id);
      out.push_back(m.channel_id);
    }
    EXPECT_EQ(merged.schemas().size(), 2u);
    return out;
  };
  EXPECT_EQ(ids(Coalesce::equal), (std::vector<std::uint16_t>{1, 1, 2, 3, 4}));
  EXPECT_EQ(ids(Coalesce::ignore_metadata), (std::vector<std::uint16_t>{1, 1, 1, 2, 3}));
  EXPECT_EQ(ids(Coalesce::none), (std::vector<std::uint16_t>{1, 2, 3, 4, 5}));
}

TEST(McapMergedReader, NamesTheFileThatCannotBeOpened) {
  std::vector<std::shared_ptr<const Source>> sources;
  sources.push_back(memory_source(write_messages({}, part("a", 1, 1, ""))));
  sources.push_back(memory_source(Bytes(40, 'x'), "other.mcap"));
  const auto merged = MergedReader::open(std::move(sources));
  EXPECT_EQ(merged.status().code(), StatusCode::data_loss);
  EXPECT_NE(merged.status().message().find("other.mcap"), std::string_view::npos);
}

}  // namespace
}  // namespace ropewalk::mcap
