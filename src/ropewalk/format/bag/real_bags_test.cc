// Bags of other programs: counts, times and payloads as PyPI's rosbags reads them.
#include <algorithm>

#include "ropewalk/base/codec/checksum.h"

#include "tests/support/bag_files.h"
#include "tests/support/testdata.h"

namespace ropewalk::bag {
namespace {

using namespace ropewalk::bag::test;

struct Expected {
  const char* path;
  std::int64_t first_ns;
  std::int64_t last_ns;
  std::vector<std::uint64_t> counts;  ///< of the channels that have messages
  const char* digest;
};

// SHA-256 over the hexadecimal SHA-256 of each channel with messages, that over the time (8 bytes,
// little-endian) and the data of each message.
std::string digest_of(const BagReader& bag, const Query& query) {
  std::vector<Sha256> hashes(bag.channels().size());
  std::vector<bool> used(hashes.size());
  MessageReader messages = bag.messages(query);
  for (MessageView m; messages.next(m);) {
    Bytes time;
    ByteWriter(time).write_le(m.time_ns);
    hashes[m.channel_index].update(time);
    hashes[m.channel_index].update(m.data);
    used[m.channel_index] = true;
  }
  EXPECT_TRUE(messages.status().ok()) << messages.status().to_string();
  EXPECT_TRUE(messages.problems().empty());
  std::string all;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (used[i]) all += hashes[i].finish_hex();
  }
  return sha256_hex(as_bytes(all));
}

void expect_bag(const std::filesystem::path& root, const Expected& expected) {
  const auto bag = BagReader::open(root / expected.path);
  ASSERT_TRUE(bag.ok()) << bag.status().to_string();
  ASSERT_TRUE(bag->time_range().has_value()) << expected.path;
  EXPECT_EQ(bag->time_range()->first_ns, expected.first_ns) << expected.path;
  EXPECT_EQ(bag->time_range()->last_ns, expected.last_ns) << expected.path;
  std::vector<std::uint64_t> counts;
  for (const Channel& channel : bag->channels()) {
    if (channel.message_count.value() > 0) counts.push_back(*channel.message_count);
  }
  EXPECT_EQ(counts, expected.counts) << expected.path;
  EXPECT_EQ(digest_of(*bag, {}), expected.digest) << expected.path;
  EXPECT_EQ(digest_of(*bag, {.order = Order::file}), expected.digest) << expected.path;
}

TEST(RealBags, Rosbag1OfEveryCodec) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag1");
  for (const Expected& expected : {
           Expected{"example.bag",
                    1396293887844783943,
                    1396293909544870199,
                    {8, 1351, 1, 1, 1, 1344, 1344, 1344, 1344, 1344, 208, 357},
                    "4ba98093d625a95be967fc3914e2cfc13e69b2882ff88bb71077a87cbf7f5c58"},
           Expected{"example-lz4.bag",
                    1396293887844783943,
                    1396293909544870199,
                    {10, 1351, 1, 1344, 1344, 1344, 2688, 208, 357},
                    "69d322beb2b2d99591d1909a213b51c33665f82a7c2c44af33cacc817d2d9acf"},
           Expected{"example-bz2.bag",
                    1396293887844783943,
                    1396293909544870199,
                    {10, 1351, 1, 1344, 1344, 1344, 2688, 208, 357},
                    "69d322beb2b2d99591d1909a213b51c33665f82a7c2c44af33cacc817d2d9acf"},
       }) {
    expect_bag(root, expected);
    const auto bag = BagReader::open(root / expected.path);
    EXPECT_TRUE(bag->problems().empty()) << to_line(bag->problems()[0]);
    // What ROS computed for every type is what we compute from its text.
    for (const Channel& channel : bag->channels()) {
      const auto md5 = ros1_md5(channel.type, channel.schema);
      ASSERT_TRUE(md5.ok()) << md5.status().to_string();
      EXPECT_EQ(*md5, channel.md5sum) << channel.type;
    }
  }
  const auto empty = BagReader::open(root / "no-messages.bag");
  ASSERT_TRUE(empty.ok());
  EXPECT_EQ(empty->message_count(), 0U);
  EXPECT_TRUE(empty->problems().empty());
  EXPECT_EQ(BagReader::open(root / "empty-file.bag").status().code(), StatusCode::data_loss);
}

TEST(RealBags, Rosbag1WithoutItsIndexGivesTheSame) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag1");
  for (const char* name : {"example.bag", "example-lz4.bag", "example-bz2.bag"}) {
    Bytes bytes = *ropewalk::read_file(root / name, 1 << 24);
    const std::size_t at = as_text(bytes).find("index_pos=") + 10;
    std::memset(bytes.data() + at, 0, 8);
    const BagReader scanned = open_bytes(bytes);
    const auto whole = BagReader::open(root / name);
    EXPECT_EQ(scanned.problems().size(), 1U);
    EXPECT_EQ(scanned.message_count(), whole->message_count());
    EXPECT_EQ(scanned.time_range()->last_ns, whole->time_range()->last_ns);
    EXPECT_EQ(scanned.channels().size(), whole->channels().size());
    const Back a = read_all(scanned);
    const Back b = read_all(*whole);
    EXPECT_EQ(a.messages, b.messages) << name;
  }
}

TEST(RealBags, Rosbag1CutAnywhereKeepsItsBeginning) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag1");
  for (const char* name : {"example.bag", "example-lz4.bag", "example-bz2.bag"}) {
    const Bytes bytes = *ropewalk::read_file(root / name, 1 << 24);
    const Back whole = read_all(open_bytes(bytes), {.order = Order::file});
    std::size_t before = 0;
    for (std::size_t size = 100; size < bytes.size(); size += bytes.size() / 17) {
      const Back cut = read_all(open_bytes(ByteSpan(bytes).first(size)), {.order = Order::file});
      EXPECT_FALSE(cut.problems.empty());
      ASSERT_GE(cut.messages.size(), before) << name << " cut at " << size;
      before = cut.messages.size();
      for (std::size_t i = 0; i < before; ++i) {
        ASSERT_EQ(cut.messages[i].data, whole.messages[i].data) << name << " cut at " << size;
      }
    }
    EXPECT_GT(before, 4000U) << name;
  }
}

TEST(RealBags, DatabasesOfEveryDistribution) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag2");
  for (const Expected& expected : {
           Expected{"rosbag2_cpp/topics_and_services.db3",
                    1697522387465250790,
                    1697522388973342699,
                    {7, 6},
                    "ee86fbec0fbfb8dab29e957d5dff628c1523f6cd4c489932376163fab4cedd46"},
           Expected{"rosbag2_py/sqlite3/convert_a/rewriter_a_0.db3",
                    0,
                    100000000,
                    {100, 50},
                    "c6776c338816550000cc609b0b28f6d2ca29a33c61ab2153613a5d9d8fdac686"},
           Expected{"rosbag2_py/sqlite3/convert_b/rewriter_b_0.db3",
                    0,
                    222000000,
                    {25, 50},
                    "27ccc08763252edfc0437b86ae38e399358d7822187310ccda16bf616d380832"},
           Expected{"rosbag2_py/sqlite3/talker/talker.db3",
                    1585866235112411371,
                    1585866239643508139,
                    {10, 10},
                    "448bf7d30ddde12671a572ef81f7e8bfe6a0bd071151505cc3e844ae6d2d0f15"},
           Expected{"rosbag2_py/sqlite3/wbag/wbag_4.db3",
                    2623,
                    2998,
                    {151, 150, 126, 150, 136, 127, 138, 130},
                    "63b0871cba861a6217c5b268a406b7db1f1aa7b446f0ddecbd8ec7239d24cbc3"},
           Expected{"rosbag2_tests/sqlite3/bag_with_topics_and_service_events/"
                    "bag_with_topics_and_service_events.db3",
                    1699345836023194036,
                    1699345836093827766,
                    {1, 1, 4, 4},
                    "aef7e6db8f3e601d5d2b659509374bfba05b02ac55df67e0ca948c1b1a17c4c6"},
           Expected{"rosbag2_tests/sqlite3/cdr_test/cdr_test_0.db3",
                    1586406456763032325,
                    1586406456914169506,
                    {3, 4},
                    "a10bdf13df0404a4302451696f661bf1e637e337463d2a312163d1bd6a7c0fae"},
           Expected{"rosbag2_tests/sqlite3/wrong_rmw_test/wrong_rmw_test_0.db3",
                    1586406456763032325,
                    1586406456914169506,
                    {4, 3},
                    "d6a93dcfaf73b7ed1265a2eed61e473ce786d1dcc2547c2ca39bae64b3f3dc26"},
       }) {
    expect_bag(root, expected);
  }
  // The encoding that metadata.yaml claims is not the one in the database.
  const auto wrong = BagReader::open(root / "rosbag2_tests/sqlite3/wrong_rmw_test");
  EXPECT_EQ(wrong->metadata()->topics[0].serialization_format, "wrong_format");
  EXPECT_EQ(wrong->channels()[0].message_encoding, "cdr");
}

TEST(RealBags, ServiceEventsCarryTheDefinitionOfTheirService) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag2");
  const auto bag = BagReader::open(root / "rosbag2_cpp/topics_and_services.db3");
  ASSERT_TRUE(bag.ok());
  const auto channel = std::ranges::find(
      bag->channels(), std::string("example_interfaces/srv/AddTwoInts_Event"), &Channel::type);
  ASSERT_NE(channel, bag->channels().end());
  EXPECT_EQ(channel->schema, "int64 a\nint64 b\n---\nint64 sum\n");
  EXPECT_EQ(channel->schema_encoding, "ros2msg");
  EXPECT_EQ(bag->metadata()->version, 8);
}

TEST(RealBags, DirectoriesOfSeveralFiles) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag2");
  const auto bag = BagReader::open(root / "rosbag2_py/sqlite3/wbag");
  ASSERT_TRUE(bag.ok()) << bag.status().to_string();
  EXPECT_EQ(bag->message_count(), 6074U);
  EXPECT_EQ(bag->time_range()->first_ns, 1000);
  EXPECT_EQ(bag->time_range()->last_ns, 2998);
  EXPECT_EQ(bag->channels().size(), 8U);
  const Back back = read_all(*bag);
  ASSERT_EQ(back.messages.size(), 6074U);
  EXPECT_TRUE(std::ranges::is_sorted(back.messages, {}, &Got::time_ns));
  const auto bare = BagReader::open(root / "rosbag2_py/sqlite3/reindex_test_bags/multiple_files");
  ASSERT_TRUE(bare.ok()) << bare.status().to_string();
  EXPECT_EQ(bare->message_count(), 1324U + 1324U + 529U);
  EXPECT_TRUE(read_all(*bare).has(ProblemKind::metadata_mismatch));
  EXPECT_EQ(BagReader::open(root / "rosbag2_py/mcap/wbag").status().reason(), "MCAP_STORAGE");
}

TEST(RealBags, EveryMetadataYamlIsRead) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag2");
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (entry.path().filename() != "metadata.yaml") continue;
    const auto metadata = read_bag_metadata(entry.path().parent_path());
    ASSERT_TRUE(metadata.ok()) << metadata.status().to_string();
    EXPECT_FALSE(metadata->files.empty());
    std::uint64_t sum = 0;
    for (const TopicMetadata& topic : metadata->topics) sum += topic.message_count;
    EXPECT_EQ(sum, metadata->message_count) << entry.path();
    const auto again = parse_bag_metadata(to_yaml(*metadata));
    ASSERT_TRUE(again.ok()) << again.status().to_string();
    EXPECT_EQ(to_yaml(*again), to_yaml(*metadata));
    ++read;
  }
  EXPECT_EQ(read, 14);
}

}  // namespace
}  // namespace ropewalk::bag
