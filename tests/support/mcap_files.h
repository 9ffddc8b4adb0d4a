#pragma once
// Small MCAP files, written and read back, for tests.
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ropewalk/format/mcap/mcap.h"

namespace ropewalk::mcap {

struct TestMessage {
  std::string topic;
  std::uint64_t time = 0;
  std::uint32_t sequence = 0;
  std::string data;
  bool operator==(const TestMessage&) const = default;
};

inline void PrintTo(const TestMessage& m, std::ostream* out) {
  *out << m.topic << "@" << m.time << "#" << m.sequence << " " << m.data.size() << " bytes";
}

/// Runs `body` with an open writer and returns the file. A topic is a channel "topic" with a
/// schema.
inline Bytes write_file(const WriterOptions& options, const std::function<void(Writer&)>& body) {
  Bytes out;
  const auto sink = memory_sink(out);
  auto writer = Writer::create(options);
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  EXPECT_TRUE(writer->open(*sink).ok());
  body(*writer);
  const Status finished = writer->finish();
  EXPECT_TRUE(finished.ok()) << finished.to_string();
  return out;
}

inline std::uint16_t channel_id(Writer& writer, const std::string& topic,
                                ChannelOptions options = {}) {
  const auto schema = writer.add_schema("S", "text", as_bytes("schema text"));
  const auto id = writer.add_channel(
      {.id = 0, .schema_id = *schema, .topic = topic, .message_encoding = "raw", .metadata = {}},
      options);
  EXPECT_TRUE(id.ok());
  return *id;
}

inline void write_message(Writer& writer, const TestMessage& m, ChannelOptions options = {}) {
  const Status status = writer.write({.channel_id = channel_id(writer, m.topic, options),
                                      .sequence = m.sequence,
                                      .log_time = m.time,
                                      .publish_time = m.time},
                                     as_bytes(m.data));
  EXPECT_TRUE(status.ok()) << status.to_string();
}

inline Bytes write_messages(const WriterOptions& options,
                            const std::vector<TestMessage>& messages) {
  return write_file(options, [&](Writer& writer) {
    for (const TestMessage& m : messages) write_message(writer, m);
  });
}

struct ReadBack {
  std::vector<TestMessage> messages;
  std::vector<Problem> problems;  // of opening and of reading
  std::vector<Verified> verified;

  bool has(ProblemKind kind) const {
    for (const Problem& p : problems) {
      if (p.kind == kind) return true;
    }
    return false;
  }
};

inline ReadBack read_all(const Reader& reader, const MessageQuery& query = {}) {
  ReadBack out;
  out.problems = reader.problems();
  MessageReader messages = reader.messages(query);
  for (MessageView m; messages.next(m);) {
    out.messages.push_back({.topic = m.channel->topic,
                            .time = m.log_time,
                            .sequence = m.sequence,
                            .data = std::string(as_text(m.data))});
    out.verified.push_back(m.verified);
  }
  EXPECT_TRUE(messages.status().ok()) << messages.status().to_string();
  out.problems.insert(out.problems.end(), messages.problems().begin(), messages.problems().end());
  return out;
}

/// Opens `file`, once mapped and once not, and checks that both deliver the same. Mapped, the
/// indexes of chunks are all looked at, so that more may be told.
inline ReadBack read_all(const Bytes& file, const MessageQuery& query = {},
                         const ReaderOptions& options = {});

/// A source that is not mapped, so that every byte goes through read_at.
class PlainSource final : public Source {
 public:
  explicit PlainSource(Bytes bytes) : inner_(memory_source(std::move(bytes))) {}
  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    return inner_->read_at(offset, out);
  }

 private:
  std::unique_ptr<Source> inner_;
};

inline ReadBack read_all(const Bytes& file, const MessageQuery& query,
                         const ReaderOptions& options) {
  const auto mapped = Reader::open(memory_source(file), options);
  const auto plain = Reader::open(std::make_unique<PlainSource>(file), options);
  EXPECT_EQ(mapped.ok(), plain.ok());
  if (!mapped.ok() || !plain.ok()) return {};
  ReadBack from_map = read_all(*mapped, query);
  const ReadBack from_reads = read_all(*plain, query);
  EXPECT_EQ(from_map.messages, from_reads.messages);
  EXPECT_GE(from_map.problems.size(), from_reads.problems.size());
  return from_map;
}

}  // namespace ropewalk::mcap
