#pragma once
// Messages and problems of a bag, as tests of format/bag compare them.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ropewalk/format/bag/bag.h"

namespace ropewalk::bag::test {

struct Got {
  std::string topic;
  std::int64_t time_ns = 0;
  std::string data;
  bool unverified = false;
  bool operator==(const Got&) const = default;
};

struct Back {
  std::vector<Got> messages;
  std::vector<Problem> problems;  ///< of opening, then of reading
  bool has(ProblemKind kind) const {
    for (const Problem& p : problems) {
      if (p.kind == kind) return true;
    }
    return false;
  }
  std::string lines() const {
    std::string out;
    for (const Problem& p : problems) out += to_line(p) + '\n';
    return out;
  }
};

inline Back read_all(const BagReader& bag, Query query = {}) {
  Back out;
  out.problems = bag.problems();
  MessageReader messages = bag.messages(std::move(query));
  for (MessageView m; messages.next(m);) {
    out.messages.push_back(
        {m.channel->topic, m.time_ns, std::string(as_text(m.data)), m.unverified});
  }
  EXPECT_TRUE(messages.status().ok()) << messages.status().to_string();
  out.problems.insert(out.problems.end(), messages.problems().begin(), messages.problems().end());
  return out;
}

inline BagReader open_bytes(ByteSpan bytes, ReaderOptions options = {}) {
  auto bag = BagReader::open(
      std::shared_ptr<const Source>(memory_source(Bytes(bytes.begin(), bytes.end()), "test.bag")),
      std::move(options));
  EXPECT_TRUE(bag.ok()) << bag.status().to_string();
  return std::move(bag).value();
}

inline Channel ros1_channel(std::string topic) {
  return {.topic = std::move(topic),
          .type = "std_msgs/String",
          .message_encoding = "ros1",
          .schema_encoding = "ros1msg",
          .schema = "string data\n"};
}

inline Channel ros2_channel(std::string topic) {
  return {.topic = std::move(topic),
          .type = "std_msgs/msg/String",
          .message_encoding = "cdr",
          .schema_encoding = "ros2msg",
          .schema = "string data\n",
          .offered_qos_profiles = "- history: keep_last\n  depth: 5\n  reliability: reliable",
          .type_hash = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"};
}

}  // namespace ropewalk::bag::test
