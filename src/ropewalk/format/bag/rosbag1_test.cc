#include <algorithm>
#include <set>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/format/bag/rosbag1_internal.h"

#include "tests/support/bag_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::bag {
namespace {

using namespace ropewalk::bag::test;
using ropewalk::test::read_file;
using ropewalk::test::TempDir;

constexpr std::int64_t kStart = 1'700'000'000'123'456'789;
constexpr Compression kCodecs[] = {Compression::none, Compression::lz4_frame, Compression::bzip2};

std::string payload(int i) { return "payload " + std::to_string(i) + std::string(40, 'x'); }

// 60 messages on two topics, several chunks.
std::string make_bag(const TempDir& dir, Compression codec, bool finished = true,
                     std::uint64_t chunk_bytes = 1500) {
  const auto path = dir / "made.bag";
  auto writer = Rosbag1Writer::create(path, {.compression = codec, .chunk_bytes = chunk_bytes});
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  const std::uint32_t a = *writer->add_channel(ros1_channel("/a"));
  const std::uint32_t b = *writer->add_channel(ros1_channel("/b"));
  for (int i = 0; i < 60; ++i) {
    EXPECT_TRUE(writer->write(i % 3 == 0 ? b : a, kStart + i * 1000, as_bytes(payload(i))).ok());
  }
  if (finished) {
    EXPECT_TRUE(writer->finish().ok());
    return read_file(path);
  }
  { const Rosbag1Writer abandoned = std::move(*writer); }
  return read_file(path.string() + ".active");
}

void expect_all(const Back& back, int count = 60) {
  ASSERT_EQ(back.messages.size(), static_cast<std::size_t>(count)) << back.lines();
  for (int i = 0; i < count; ++i) {
    const Got& got = back.messages[static_cast<std::size_t>(i)];
    EXPECT_EQ(got.topic, i % 3 == 0 ? "/b" : "/a");
    EXPECT_EQ(got.time_ns, kStart + i * 1000);
    EXPECT_EQ(got.data, payload(i));
  }
}

TEST(Rosbag1, ReadsBackWhatItWritesInEveryCodec) {
  for (const Compression codec : kCodecs) {
    const TempDir dir("bag");
    const BagReader bag = open_bytes(as_bytes(make_bag(dir, codec)));
    EXPECT_EQ(bag.kind(), BagKind::rosbag1);
    EXPECT_TRUE(bag.problems().empty()) << to_line(bag.problems()[0]);
    EXPECT_EQ(bag.message_count(), 60U);
    EXPECT_EQ(bag.time_range()->first_ns, kStart);
    EXPECT_EQ(bag.time_range()->last_ns, kStart + 59'000);
    ASSERT_EQ(bag.channels().size(), 2U);
    EXPECT_EQ(bag.channels()[0].md5sum, "992ce8a1687cec8c8bd883ec73ca41d1");
    EXPECT_EQ(bag.channels()[0].schema, "string data\n");
    EXPECT_EQ(bag.channels()[0].schema_encoding, "ros1msg");
    EXPECT_EQ(bag.channels()[0].message_count, 40U);
    EXPECT_EQ(bag.channels()[1].message_count, 20U);
    const Back back = read_all(bag);
    EXPECT_TRUE(back.problems.empty());
    expect_all(back);
    expect_all(read_all(bag, {.order = Order::file}));
    EXPECT_FALSE(std::filesystem::exists(dir / "made.bag.active"));
  }
}

TEST(Rosbag1, KeepsCallerAndLatching) {
  const TempDir dir("bag");
  auto writer = Rosbag1Writer::create(dir / "x.bag");
  Channel channel = ros1_channel("/t");
  channel.callerid = "/node";
  channel.latching = true;
  channel.md5sum = "0123456789abcdef0123456789abcdef";
  const std::uint32_t id = *writer->add_channel(channel);
  ASSERT_TRUE(writer->write(id, 5, as_bytes("x")).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto bag = BagReader::open(dir / "x.bag");
  ASSERT_TRUE(bag.ok());
  EXPECT_EQ(bag->channels()[0].callerid, "/node");
  EXPECT_TRUE(bag->channels()[0].latching);
  EXPECT_EQ(bag->channels()[0].md5sum, channel.md5sum);
}

TEST(Rosbag1, FiltersByTopicAndTimeInclusively) {
  const TempDir dir("bag");
  const BagReader bag = open_bytes(as_bytes(make_bag(dir, Compression::none)));
  const Back back = read_all(bag, {.begin_time_ns = kStart + 3000,
                                   .last_time_ns = kStart + 9000,
                                   .topics = {{"/b", "/other"}}});
  ASSERT_EQ(back.messages.size(), 3U);
  EXPECT_EQ(back.messages[0].data, payload(3));
  EXPECT_EQ(back.messages[2].data, payload(9));
  EXPECT_TRUE(read_all(bag, {.topics = std::vector<std::string>()}).messages.empty());
  EXPECT_TRUE(read_all(bag, {.topics = {{"/c"}}}).messages.empty());
}

TEST(Rosbag1, OverlappingChunksComeInTimeOrderWithinAnyBudget) {
  const TempDir dir("bag");
  auto writer = Rosbag1Writer::create(dir / "x.bag",
                                      {.compression = Compression::lz4_frame, .chunk_bytes = 1000});
  const std::uint32_t id = *writer->add_channel(ros1_channel("/t"));
  // Every chunk spans nearly all of the time; every tenth time stands in each.
  for (int i = 0; i < 500; ++i) {
    ASSERT_TRUE(writer->write(id, (i * 37) % 100, as_bytes(payload(i))).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  std::vector<int> expected(500);
  for (int i = 0; i < 500; ++i) expected[static_cast<std::size_t>(i)] = i;
  std::ranges::stable_sort(expected, {}, [](int i) { return (i * 37) % 100; });
  for (const std::uint64_t cache : {std::uint64_t{1}, std::uint64_t{1} << 20}) {
    const auto bag = BagReader::open(dir / "x.bag", {.cache_bytes = cache});
    const Back back = read_all(*bag);
    ASSERT_EQ(back.messages.size(), 500U);
    for (std::size_t i = 0; i < 500; ++i) {
      EXPECT_EQ(back.messages[i].data, payload(expected[i])) << i;
    }
    EXPECT_TRUE(back.problems.empty());
  }
}

TEST(Rosbag1, UnfinishedBagIsScanned) {
  for (const Compression codec : kCodecs) {
    const TempDir dir("bag");
    const BagReader bag = open_bytes(as_bytes(make_bag(dir, codec, false)));
    const Back back = read_all(bag);
    EXPECT_TRUE(back.has(ProblemKind::unfinished));
    // The last chunk was still in memory when the writer was abandoned.
    ASSERT_GE(back.messages.size(), 45U);
    expect_all(back, static_cast<int>(back.messages.size()));
    EXPECT_EQ(bag.message_count(), back.messages.size());
    EXPECT_EQ(bag.time_range()->first_ns, kStart);
  }
}

TEST(Rosbag1, ChunkThatWasGrowingIsReadAsFarAsItGoes) {
  // What rosbag leaves when it dies inside of a chunk: a chunk without sizes, then its bytes.
  for (const Compression codec : kCodecs) {
    const TempDir dir("bag");
    const std::string whole = make_bag(dir, codec, true, 1 << 20);
    const auto source = view_source(as_bytes(whole));
    Window at(*source);
    const auto head = read_head(at, kRosbag1DataBegin);
    ASSERT_TRUE(head.ok());
    ASSERT_EQ(head->op, Op::chunk);
    const auto data_at = static_cast<std::size_t>(head->data_offset);
    std::string cut = whole.substr(0, data_at + static_cast<std::size_t>(head->data_size));
    std::memset(cut.data() + data_at - 4, 0, 4);
    const std::size_t size_at = cut.find("size=", kRosbag1DataBegin) + 5;
    std::memset(cut.data() + size_at, 0, 4);
    const std::size_t index_at = cut.find("index_pos=") + 10;
    std::memset(cut.data() + index_at, 0, 8);
    const Back back = read_all(open_bytes(as_bytes(cut)));
    EXPECT_TRUE(back.has(ProblemKind::unfinished));
    expect_all(back);
  }
}

TEST(Rosbag1, CutAtEveryByteNeverLosesWhatAnEarlierCutHad) {
  for (const Compression codec : kCodecs) {
    const TempDir dir("bag");
    const std::string whole = make_bag(dir, codec);
    const std::string reference = make_bag(TempDir("bag"), codec);
    ASSERT_EQ(whole, reference);
    std::size_t before = 0;
    for (std::size_t size = 0; size <= whole.size();
         size += size < kRosbag1DataBegin - 10 ? 97 : 1) {
      const auto bag = BagReader::open(
          std::shared_ptr<const Source>(view_source(ByteSpan(as_bytes(whole)).first(size), "cut")));
      if (!bag.ok()) {
        ASSERT_LT(size, 14U) << bag.status().to_string();
        continue;
      }
      const Back back = read_all(*bag);
      ASSERT_GE(back.messages.size(), before) << "cut at " << size << "\n" << back.lines();
      before = back.messages.size();
      if (size < whole.size()) {
        ASSERT_FALSE(back.problems.empty()) << size;
      }
      for (std::size_t i = 0; i < before; ++i) {
        ASSERT_EQ(back.messages[i].data, payload(static_cast<int>(i))) << "cut at " << size;
      }
    }
    EXPECT_EQ(before, 60U);
  }
}

TEST(Rosbag1, FlippedBitCostsAtMostItsChunkAndIsTold) {
  for (const Compression codec : {Compression::lz4_frame, Compression::bzip2}) {
    const TempDir dir("bag");
    const std::string whole = make_bag(dir, codec);
    std::set<std::string> known;
    for (int i = 0; i < 60; ++i) known.insert(payload(i));
    for (std::size_t at = kRosbag1DataBegin; at < whole.size(); at += 3) {
      std::string flipped = whole;
      flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
      const auto bag =
          BagReader::open(std::shared_ptr<const Source>(view_source(as_bytes(flipped), "flipped")));
      ASSERT_TRUE(bag.ok()) << at;
      const Back back = read_all(*bag);
      ASSERT_LE(back.messages.size(), 60U) << at << "\n" << back.lines();
      if (back.messages.size() < 60) {
        ASSERT_FALSE(back.problems.empty()) << at;
      }
      for (const Got& got : back.messages) {
        if (!got.unverified) {
          ASSERT_TRUE(known.contains(got.data)) << "flip at " << at;
        }
      }
    }
  }
}

TEST(Rosbag1, DamagedChunkIsSkippedOrDeliveredOnRequest) {
  const TempDir dir("bag");
  std::string bytes = make_bag(dir, Compression::lz4_frame, true, 1500);
  const auto source = view_source(as_bytes(bytes));
  Window window(*source);
  const auto head = read_head(window, kRosbag1DataBegin);
  ASSERT_TRUE(head.ok());
  // The checksum at the end of the frame.
  bytes[static_cast<std::size_t>(head->end()) - 1] ^= 1;
  const Back strict = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(strict.has(ProblemKind::chunk_damaged));
  EXPECT_LT(strict.messages.size(), 60U);
  EXPECT_GT(strict.messages.size(), 30U);
  const Back lenient = read_all(open_bytes(as_bytes(bytes), {.lenient = true}));
  EXPECT_TRUE(lenient.has(ProblemKind::chunk_damaged));
  expect_all(lenient);
  EXPECT_TRUE(lenient.messages[0].unverified);
  EXPECT_FALSE(lenient.messages[59].unverified);
}

TEST(Rosbag1, LyingIndexIsToldAndCostsNothing) {
  const TempDir dir("bag");
  const std::string whole = make_bag(dir, Compression::none);
  // A chunk info that points elsewhere, one that counts wrong, a wrong number of chunks.
  const std::size_t info = whole.rfind("chunk_pos=") + 10;
  std::string bytes = whole;
  bytes[info] = static_cast<char>(bytes[info] ^ 0x40);
  Back back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::index_mismatch)) << back.lines();
  expect_all(back);
  bytes = whole;
  bytes[bytes.size() - 4] = static_cast<char>(bytes[bytes.size() - 4] + 1);
  back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::index_mismatch)) << back.lines();
  expect_all(back);
  bytes = whole;
  const std::size_t count = whole.find("chunk_count=") + 12;
  bytes[count] = static_cast<char>(bytes[count] + 1);
  back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::bad_index)) << back.lines();
  expect_all(back);
  bytes = whole;
  const std::size_t position = whole.find("index_pos=") + 10;
  bytes[position + 3] = 1;
  back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::truncated)) << back.lines();
  expect_all(back);
}

TEST(Rosbag1, LostChunkHeadIsFoundAgainAtTheNext) {
  const TempDir dir("bag");
  std::string bytes = make_bag(dir, Compression::lz4_frame);
  // Both the index and the head of the second chunk are gone.
  const std::size_t first = bytes.find("compression=");
  const std::size_t second = bytes.find("compression=", first + 1);
  std::memset(bytes.data() + second - 20, 0xff, 30);
  std::memset(bytes.data() + bytes.find("index_pos=") + 10, 0, 8);
  const Back back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::lost_range)) << back.lines();
  EXPECT_GT(back.messages.size(), 40U);
  EXPECT_LT(back.messages.size(), 60U);
  EXPECT_EQ(back.messages.back().data, payload(59));
}

TEST(Rosbag1, MessagesOfUndefinedConnectionsAreCounted) {
  const TempDir dir("bag");
  std::string bytes = make_bag(dir, Compression::none);
  for (std::size_t at = bytes.find("conn=\x01"); at != std::string::npos;
       at = bytes.find(std::string("conn=\x01\0\0\0", 9), at + 1)) {
    // Only in messages: their op follows with value 2 in the same header.
    const std::string_view header(bytes.data() + at - 40, 60);
    if (header.find(std::string_view("op=\x02", 4)) != std::string_view::npos) bytes[at + 5] = 9;
  }
  const Back back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::unknown_channel)) << back.lines();
  EXPECT_LT(back.messages.size(), 60U);
  EXPECT_GE(back.messages.size(), 40U);
}

TEST(Rosbag1, RefusesWhatItIsNotByName) {
  const auto open = [](std::string_view text) {
    return BagReader::open(std::shared_ptr<const Source>(view_source(as_bytes(text), "x")))
        .status();
  };
  EXPECT_EQ(open("").code(), StatusCode::data_loss);
  EXPECT_NE(open("").message().find("empty"), std::string_view::npos);
  EXPECT_EQ(open("not a bag at all, only text").code(), StatusCode::data_loss);
  EXPECT_EQ(open("#ROSBAG V1.2\n........").code(), StatusCode::unimplemented);
  EXPECT_NE(open("#ROSBAG V1.2\n........").message().find("V1.2"), std::string_view::npos);
}

TEST(Rosbag1, LimitsHoldForChunksAndLiesAboutSizes) {
  const TempDir dir("bag");
  std::string bytes = make_bag(dir, Compression::lz4_frame);
  Limits small;
  small.max_chunk_bytes = 100;
  Back back = read_all(open_bytes(as_bytes(bytes), {.limits = small}));
  EXPECT_TRUE(back.has(ProblemKind::limit));
  EXPECT_TRUE(back.messages.empty());
  // Every chunk claims 1 GiB.
  for (std::size_t at = bytes.find("size="); at != std::string::npos;
       at = bytes.find("size=", at + 1)) {
    std::memcpy(bytes.data() + at + 5, "\x00\x00\x00\x40", 4);
  }
  back = read_all(open_bytes(as_bytes(bytes)));
  EXPECT_TRUE(back.has(ProblemKind::chunk_damaged));
  EXPECT_TRUE(back.messages.empty());
}

TEST(Rosbag1Writer, RefusesWhatRos1CannotSay) {
  const TempDir dir("bag");
  EXPECT_EQ(
      Rosbag1Writer::create(dir / "x.bag", {.compression = Compression::zstd}).status().code(),
      StatusCode::invalid_argument);
  auto writer = Rosbag1Writer::create(dir / "x.bag");
  EXPECT_EQ(Rosbag1Writer::create(dir / "x.bag").status().code(), StatusCode::already_exists);
  EXPECT_EQ(writer->add_channel(ros2_channel("/t")).status().code(),
            StatusCode::failed_precondition);
  Channel incomplete = ros1_channel("/t");
  incomplete.schema = "other_msgs/Thing thing\n";
  EXPECT_EQ(writer->add_channel(incomplete).status().code(), StatusCode::not_found);
  const std::uint32_t id = *writer->add_channel(ros1_channel("/t"));
  EXPECT_EQ(writer->write(id, -1, {}).code(), StatusCode::out_of_range);
  EXPECT_EQ(writer->write(id, (1LL << 32) * 1'000'000'000, {}).code(), StatusCode::out_of_range);
  EXPECT_EQ(writer->write(id + 1, 0, {}).code(), StatusCode::not_found);
  EXPECT_TRUE(writer->write(id, ((1LL << 32) - 1) * 1'000'000'000 + 999'999'999, {}).ok());
  EXPECT_TRUE(writer->finish().ok());
  EXPECT_EQ(writer->write(id, 0, {}).code(), StatusCode::failed_precondition);
  const auto bag = BagReader::open(dir / "x.bag");
  EXPECT_EQ(bag->time_range()->last_ns, ((1LL << 32) - 1) * 1'000'000'000 + 999'999'999);
  EXPECT_EQ(Rosbag1Writer::create(dir / "x.bag").status().code(), StatusCode::already_exists);
}

}  // namespace
}  // namespace ropewalk::bag
