// Every hard input, read in every order, strictly and leniently, and recovered.
#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "tests/support/mcap_hard_inputs.h"

namespace ropewalk::mcap {
namespace {

class HardInputs : public testing::TestWithParam<HardInput> {};

std::vector<TestMessage> by_time(std::vector<TestMessage> messages) {
  std::ranges::stable_sort(messages, {}, &TestMessage::time);
  return messages;
}

TEST_P(HardInputs, DeliversWhatItOwes) {
  const HardInput& input = GetParam();
  const auto reader = Reader::open(view_source(input.file));
  ASSERT_EQ(reader.ok(), input.opens) << reader.status().to_string();
  if (!input.opens) {
    EXPECT_EQ(reader.status().code(), StatusCode::data_loss);
    return;
  }
  for (const Order order : {Order::file, Order::log_time, Order::reverse_log_time}) {
    const ReadBack back = read_all(*reader, {.order = order});
    auto found = back.messages;
    if (order == Order::reverse_log_time) std::ranges::reverse(found);
    if (order == Order::file) {
      ASSERT_GE(found.size(), input.messages.size());
      if (input.prefix) found.resize(input.messages.size());
      EXPECT_EQ(found, input.messages);
    } else if (!input.prefix) {
      EXPECT_EQ(found, by_time(input.messages));
    }
    for (const ExpectedProblem& expected : input.problems) {
      // File order looks at no index.
      if (order == Order::file && expected.kind == ProblemKind::index_mismatch) continue;
      EXPECT_TRUE(std::ranges::any_of(back.problems,
                                      [&](const Problem& p) {
                                        return p.kind == expected.kind &&
                                               p.offset == expected.offset.value_or(p.offset) &&
                                               p.length == expected.length.value_or(p.length);
                                      }))
          << problem_kind_name(expected.kind)
          << " is not told; told: " << (back.problems.empty() ? "nothing" : [&] {
               static std::string all;
               all.clear();
               for (const Problem& p : back.problems) all += to_line(p) + "; ";
               return all.c_str();
             }());
    }
  }
  // Unmapped, and by topic: the same.
  const auto plain = Reader::open(std::make_shared<PlainSource>(input.file));
  ASSERT_TRUE(plain.ok());
  const auto whole = read_all(*reader, {.order = Order::file}).messages;
  EXPECT_EQ(read_all(*plain, {.order = Order::file}).messages, whole);
  std::set<std::string> topics;
  for (const TestMessage& m : whole) topics.insert(m.topic);
  for (const std::string& topic : topics) {
    std::vector<TestMessage> expected;
    for (const TestMessage& m : by_time(whole)) {
      if (m.topic == topic) expected.push_back(m);
    }
    EXPECT_EQ(read_all(*reader, {.topics = {{topic}}}).messages, expected) << topic;
  }
}

TEST_P(HardInputs, LenientReadingDeliversAtLeastAsMuch) {
  const HardInput& input = GetParam();
  ReaderOptions lenient;
  lenient.lenient = true;
  const auto reader = Reader::open(view_source(input.file), lenient);
  if (!input.opens) {
    EXPECT_FALSE(reader.ok());
    return;
  }
  ASSERT_TRUE(reader.ok());
  const auto file_order = read_all(*reader, {.order = Order::file}).messages;
  EXPECT_GE(file_order.size(), input.messages.size());
  EXPECT_EQ(read_all(*reader).messages, by_time(file_order));
}

TEST_P(HardInputs, RecoversToAWholeFile) {
  const HardInput& input = GetParam();
  Bytes out;
  const auto sink = memory_sink(out);
  const auto report = recover(view_source(input.file), *sink);
  ASSERT_EQ(report.ok(), input.recovers) << report.status().to_string();
  if (!input.recovers) return;
  const Status verified = verify_file(view_source(out));
  EXPECT_TRUE(verified.ok()) << verified.to_string();
  const auto found = read_all(out, {.order = Order::file}).messages;
  EXPECT_EQ(report->written.message_count, found.size());
  EXPECT_GE(found.size(), input.messages.size());
  // What strict reading delivers is there, in the same order, with what it skipped in between.
  auto at = found.begin();
  for (const TestMessage& m : input.messages) {
    at = std::find(at, found.end(), m);
    ASSERT_NE(at, found.end()) << m.topic << " " << m.time;
    ++at;
  }
  EXPECT_EQ(report->has_loss(), input.loses)
      << (report->problems.empty() ? "no problem" : to_line(report->problems.front()));
}

INSTANTIATE_TEST_SUITE_P(All, HardInputs, testing::ValuesIn(mcap_hard_inputs()),
                         [](const testing::TestParamInfo<HardInput>& parameter) {
                           std::string name = parameter.param.name;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST(HardInputs, ReachAllTwentyGroups) {
  std::set<int> groups;
  for (const HardInput& input : mcap_hard_inputs()) groups.insert(input.group);
  EXPECT_EQ(groups.size(), 20u);
}

// H19: a file of 5 GiB that is not there: one attachment of zeros, and messages behind it.
class HugeSource final : public Source {
 public:
  HugeSource(Bytes front, std::uint64_t zeros, Bytes back)
      : front_(std::move(front)), zeros_(zeros), back_(std::move(back)) {}
  std::uint64_t size() const override { return front_.size() + zeros_ + back_.size(); }
  const std::string& name() const override { return name_; }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    for (std::size_t i = 0; i < out.size();) {
      const std::uint64_t at = offset + i;
      const std::uint64_t back_at = front_.size() + zeros_;
      std::size_t step = out.size() - i;
      if (at < front_.size()) {
        step = std::min(step, front_.size() - static_cast<std::size_t>(at));
        std::copy_n(front_.begin() + static_cast<std::ptrdiff_t>(at), step,
                    out.begin() + static_cast<std::ptrdiff_t>(i));
      } else if (at < back_at) {
        step = static_cast<std::size_t>(std::min<std::uint64_t>(step, back_at - at));
        std::fill_n(out.begin() + static_cast<std::ptrdiff_t>(i), step, std::uint8_t{0});
      } else {
        step = std::min(step, back_.size() - static_cast<std::size_t>(at - back_at));
        std::copy_n(back_.begin() + static_cast<std::ptrdiff_t>(at - back_at), step,
                    out.begin() + static_cast<std::ptrdiff_t>(i));
      }
      i += step;
    }
    return ok_status();
  }

 private:
  Bytes front_;
  std::uint64_t zeros_;
  Bytes back_;
  std::string name_ = "huge";
};

// Keeps what a writer writes, but for the long run of zeros in the middle.
class HugeSink final : public Sink {
 public:
  Status append(ByteSpan bytes) override {
    size_ += bytes.size();
    if (skipping && bytes.size() == kZeros.size()) {
      skipped += bytes.size();
      return ok_status();
    }
    Bytes& to = skipped == 0 ? front : back;
    to.insert(to.end(), bytes.begin(), bytes.end());
    return ok_status();
  }
  Status sync() override { return ok_status(); }
  Status close() override { return ok_status(); }
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  static inline const Bytes kZeros = Bytes(std::size_t{16} << 20, 0);
  Bytes front;
  Bytes back;
  std::uint64_t skipped = 0;
  bool skipping = false;

 private:
  std::uint64_t size_ = 0;
  std::string name_ = "huge";
};

TEST(McapHuge, AttachmentBeyondFourGibIsStreamedInBothDirections) {
  constexpr std::uint64_t kParts = 320;  // of 16 MiB: 5 GiB
  HugeSink sink;
  auto writer = Writer::create({});
  ASSERT_TRUE(writer->open(sink).ok());
  write_message(*writer, {"t", 1, 0, "before"});
  ASSERT_TRUE(writer->flush().ok());
  const std::uint64_t size = kParts * HugeSink::kZeros.size();
  ASSERT_TRUE(writer
                  ->begin_attachment({.log_time = 1,
                                      .create_time = 1,
                                      .name = "disk image",
                                      .media_type = "application/octet-stream",
                                      .data_size = size})
                  .ok());
  sink.skipping = true;
  for (std::uint64_t i = 0; i < kParts; ++i) {
    ASSERT_TRUE(writer->append_attachment(HugeSink::kZeros).ok());
  }
  sink.skipping = false;
  ASSERT_TRUE(writer->end_attachment().ok());
  write_message(*writer, {"t", 2, 1, "behind"});
  ASSERT_TRUE(writer->finish().ok());
  for (const bool finished : {true, false}) {
    Bytes back = sink.back;
    if (!finished) back.resize(back.size() - 30);
    const auto reader =
        Reader::open(std::make_shared<HugeSource>(sink.front, sink.skipped, std::move(back)));
    ASSERT_TRUE(reader.ok()) << reader.status().to_string();
    ASSERT_EQ(reader->attachments().size(), 1u);
    EXPECT_EQ(reader->attachments()[0].data_size, size);
    EXPECT_EQ(read_all(*reader).messages.size(), 2u);
    if (!finished) continue;
    std::uint64_t taken = 0;
    const Status read = reader->read_attachment(reader->attachments()[0], [&](ByteSpan part) {
      taken += part.size();
      return ok_status();
    });
    EXPECT_TRUE(read.ok()) << read.to_string();
    EXPECT_EQ(taken, size);
  }
}

}  // namespace
}  // namespace ropewalk::mcap
