#include <algorithm>

#include <sqlite3.h>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/base/io/local_fs.h"

#include "tests/support/bag_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::bag {
namespace {

using namespace ropewalk::bag::test;
using ropewalk::test::read_file;
using ropewalk::test::TempDir;
using ropewalk::test::write_file;

constexpr std::int64_t kStart = 1'700'000'000'123'456'789;

std::string payload(int i) {
  return std::string("\x00\x01\x00\x00", 4) + std::to_string(i) + std::string(100, 'x');
}

// 300 messages on two topics in the directory `bag`; returns it.
std::filesystem::path make_bag(const TempDir& dir, std::uint64_t max_file_bytes = 0) {
  auto writer =
      Rosbag2Writer::create(dir / "bag", {.max_file_bytes = max_file_bytes, .ros_distro = "jazzy"});
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
  const std::uint32_t b = *writer->add_channel(ros2_channel("/b"));
  EXPECT_EQ(*writer->add_channel(ros2_channel("/a")), a);
  for (int i = 0; i < 300; ++i) {
    EXPECT_TRUE(writer->write(i % 3 == 0 ? b : a, kStart + i * 1000, as_bytes(payload(i))).ok());
  }
  EXPECT_FALSE(std::filesystem::exists(dir / "bag"));
  const Status finished = writer->finish();
  EXPECT_TRUE(finished.ok()) << finished.to_string();
  return dir / "bag";
}

void expect_all(const Back& back, int count = 300) {
  ASSERT_EQ(back.messages.size(), static_cast<std::size_t>(count)) << back.lines();
  for (int i = 0; i < count; ++i) {
    const Got& got = back.messages[static_cast<std::size_t>(i)];
    ASSERT_EQ(got.topic, i % 3 == 0 ? "/b" : "/a");
    ASSERT_EQ(got.time_ns, kStart + i * 1000);
    ASSERT_EQ(got.data, payload(i));
  }
}

// Runs statements on a file, as somebody else's program would.
void run_sql(const std::filesystem::path& path, const std::string& sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_free(error);
  sqlite3_close(db);
}

std::string hex_literal(ByteSpan bytes) { return "x'" + to_hex(bytes) + "'"; }

TEST(Rosbag2, ReadsBackWhatItWrites) {
  const TempDir dir("bag");
  const auto path = make_bag(dir);
  for (const auto& opened : {path, path / "bag_0.db3"}) {
    const auto bag = BagReader::open(opened);
    ASSERT_TRUE(bag.ok()) << bag.status().to_string();
    EXPECT_EQ(bag->kind(), BagKind::sqlite3);
    EXPECT_EQ(bag->message_count(), 300U);
    EXPECT_EQ(bag->time_range()->first_ns, kStart);
    EXPECT_EQ(bag->time_range()->last_ns, kStart + 299'000);
    ASSERT_EQ(bag->channels().size(), 2U);
    const Channel& channel = bag->channels()[0];
    EXPECT_EQ(channel.message_count, 200U);
    EXPECT_EQ(channel.message_encoding, "cdr");
    EXPECT_EQ(channel.schema_encoding, "ros2msg");
    EXPECT_EQ(channel.schema, "string data\n");
    EXPECT_EQ(channel.type_hash, ros2_channel("").type_hash);
    EXPECT_EQ(channel.offered_qos_profiles, "- history: 1\n  depth: 5\n  reliability: 1");
    ASSERT_TRUE(bag->metadata().has_value());
    EXPECT_EQ(bag->metadata()->message_count, 300U);
    EXPECT_EQ(bag->metadata()->ros_distro, "jazzy");
    const Back back = read_all(*bag);
    EXPECT_TRUE(back.problems.empty()) << back.lines();
    expect_all(back);
    expect_all(read_all(*bag, {.order = Order::file}));
    EXPECT_EQ(read_all(*bag, {.begin_time_ns = kStart + 3000,
                              .last_time_ns = kStart + 9000,
                              .topics = {{"/b"}}})
                  .messages.size(),
              3U);
  }
}

TEST(Rosbag2, SplitFilesAreOneBagInOrder) {
  const TempDir dir("bag");
  auto writer = Rosbag2Writer::create(dir / "bag", {.max_file_bytes = 86016});
  const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
  const std::string large(4000, 'y');
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(writer->write(a, i, as_bytes(large)).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto bag = BagReader::open(dir / "bag");
  ASSERT_TRUE(bag.ok()) << bag.status().to_string();
  EXPECT_EQ(bag->metadata()->files.size(), 14U);
  EXPECT_EQ(bag->metadata()->file_details[1].message_count, 22U);
  EXPECT_EQ(bag->channels().size(), 1U);
  for (const Order order : {Order::time, Order::file}) {
    const Back back = read_all(*bag, {.order = order});
    EXPECT_TRUE(back.problems.empty()) << back.lines();
    ASSERT_EQ(back.messages.size(), 300U);
    for (int i = 0; i < 300; ++i) EXPECT_EQ(back.messages[static_cast<std::size_t>(i)].time_ns, i);
  }
  // Without metadata.yaml the names tell the order: _10 behind _9.
  std::filesystem::remove(dir / "bag" / "metadata.yaml");
  const auto bare = BagReader::open(dir / "bag");
  ASSERT_TRUE(bare.ok());
  const Back back = read_all(*bare, {.order = Order::file});
  EXPECT_TRUE(back.has(ProblemKind::metadata_mismatch));
  ASSERT_EQ(back.messages.size(), 300U);
  EXPECT_EQ(back.messages[250].time_ns, 250);
}

TEST(Rosbag2, MissingFileOfADirectoryIsTold) {
  const TempDir dir("bag");
  auto writer = Rosbag2Writer::create(dir / "bag", {.max_file_bytes = 86016});
  const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
  const std::string large(4000, 'y');
  for (int i = 0; i < 60; ++i) ASSERT_TRUE(writer->write(a, i, as_bytes(large)).ok());
  ASSERT_TRUE(writer->finish().ok());
  std::filesystem::remove(dir / "bag" / "bag_1.db3");
  const auto bag = BagReader::open(dir / "bag");
  ASSERT_TRUE(bag.ok());
  const Back back = read_all(*bag);
  EXPECT_TRUE(back.has(ProblemKind::missing_file));
  EXPECT_TRUE(back.has(ProblemKind::metadata_mismatch));
  EXPECT_EQ(back.messages.size(), 38U);
}

TEST(Rosbag2, OverlappingFilesComeInTimeOrder) {
  const TempDir dir("bag");
  auto writer = Rosbag2Writer::create(dir / "bag", {.max_file_bytes = 86016});
  const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
  const std::string large(4000, 'y');
  for (int i = 0; i < 90; ++i) ASSERT_TRUE(writer->write(a, (i * 37) % 90, as_bytes(large)).ok());
  ASSERT_TRUE(writer->finish().ok());
  const auto bag = BagReader::open(dir / "bag");
  const Back back = read_all(*bag);
  ASSERT_EQ(back.messages.size(), 90U);
  for (int i = 0; i < 90; ++i) EXPECT_EQ(back.messages[static_cast<std::size_t>(i)].time_ns, i);
  const Back by_file = read_all(*bag, {.order = Order::file});
  EXPECT_EQ(by_file.messages[1].time_ns, 37);
}

TEST(Rosbag2, SchemaVersionsAreToldByTheirColumns) {
  const std::string messages =
      "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,timestamp INTEGER "
      "NOT NULL, data BLOB NOT NULL);"
      "INSERT INTO messages VALUES(1,7,20,x'01'),(2,7,10,x'02');";
  const std::string crystal =
      "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
      "serialization_format TEXT NOT NULL);INSERT INTO topics VALUES(7,'/t','p/msg/T','cdr');";
  const std::string foxy =
      "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
      "serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL);"
      "INSERT INTO topics VALUES(7,'/t','p/msg/T','cdr','- history: 1');";
  const TempDir dir("bag");
  write_file(dir / "types/p/msg/T.msg", "int32 x\n");
  int number = 0;
  for (const std::string& topics : {crystal, foxy}) {
    const auto path = dir / ("v" + std::to_string(++number) + ".db3");
    run_sql(path, topics + messages);
    const auto bag = BagReader::open(path);
    ASSERT_TRUE(bag.ok()) << bag.status().to_string();
    EXPECT_EQ(bag->channels()[0].offered_qos_profiles, number == 1 ? "" : "- history: 1");
    EXPECT_FALSE(bag->metadata().has_value());
    const Back back = read_all(*bag);
    EXPECT_TRUE(back.has(ProblemKind::missing_schema));
    // There is no index of times here: rows are sorted.
    ASSERT_EQ(back.messages.size(), 2U);
    EXPECT_EQ(back.messages[0].time_ns, 10);
    EXPECT_EQ(back.messages[0].data, "\x02");
    const auto defined = BagReader::open(path, {.definitions = dir / "types"});
    EXPECT_TRUE(defined->problems().empty());
    EXPECT_EQ(defined->channels()[0].schema, "int32 x\n");
    EXPECT_EQ(defined->channels()[0].schema_encoding, "ros2msg");
  }
}

TEST(Rosbag2, CompressedMessagesAndFilesAreUnpacked) {
  const TempDir dir("bag");
  const auto path = make_bag(dir);
  Bytes packed;
  for (int round = 0; round < 2; ++round) {
    // The whole file, as `--compression-mode file` leaves it.
    const std::string bytes = read_file(path / "bag_0.db3");
    packed.clear();
    ASSERT_TRUE(compress(Compression::zstd, as_bytes(bytes), 0, packed).ok());
  }
  write_file(dir / "one.db3.zstd", as_text(packed));
  const auto file = BagReader::open(dir / "one.db3.zstd", {.temp_directory = dir.path()});
  ASSERT_TRUE(file.ok()) << file.status().to_string();
  expect_all(read_all(*file));
  // The unpacked file has no name any more.
  EXPECT_EQ(list_directory(dir.path())->size(), 2U);

  write_file(dir / "folder/bag_0.db3.zstd", as_text(packed));
  BagMetadata metadata = *read_bag_metadata(path);
  metadata.files = {"bag_0.db3.zstd"};
  metadata.compression_format = "zstd";
  metadata.compression_mode = "FILE";
  write_file(dir / "folder/metadata.yaml", to_yaml(metadata));
  const auto folder = BagReader::open(dir / "folder", {.temp_directory = dir.path()});
  ASSERT_TRUE(folder.ok()) << folder.status().to_string();
  expect_all(read_all(*folder));

  auto writer = Rosbag2Writer::create(dir / "messages");
  const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
  for (int i = 0; i < 3; ++i) {
    packed.clear();
    ASSERT_TRUE(compress(Compression::zstd, as_bytes(payload(i)), 0, packed).ok());
    if (i == 1) packed.resize(packed.size() / 2);
    ASSERT_TRUE(writer->write(a, i, packed).ok());
  }
  ASSERT_TRUE(writer->finish().ok());
  const Back back = read_all(*BagReader::open(dir / "messages"));
  ASSERT_EQ(back.messages.size(), 2U);
  EXPECT_EQ(back.messages[1].data, payload(2));
  EXPECT_TRUE(back.has(ProblemKind::message_damaged));
}

TEST(Rosbag2, WriteAheadLogIsReadToo) {
  const TempDir dir("bag");
  const auto path = make_bag(dir);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open((path / "bag_0.db3").c_str(), &db), SQLITE_OK);
  const std::string sql =
      "PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0;"
      "INSERT INTO messages(topic_id,timestamp,data) VALUES(2," +
      std::to_string(kStart + 300'000) + "," + hex_literal(as_bytes(payload(300))) + ");";
  ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  // A copy of both while the recorder is at work is what a crash leaves.
  std::filesystem::create_directory(dir / "crashed");
  for (const char* end : {"", "-wal"}) {
    std::filesystem::copy_file(path / ("bag_0.db3" + std::string(end)),
                               dir / ("crashed/x.db3" + std::string(end)));
  }
  sqlite3_close(db);
  ASSERT_GT(std::filesystem::file_size(dir / "crashed/x.db3-wal"), 0U);
  const auto bag = BagReader::open(dir / "crashed/x.db3", {.temp_directory = dir.path()});
  ASSERT_TRUE(bag.ok()) << bag.status().to_string();
  const Back back = read_all(*bag);
  EXPECT_TRUE(back.has(ProblemKind::unfinished));
  expect_all(back, 301);
  EXPECT_EQ(list_directory(dir.path())->size(), 2U);
  EXPECT_EQ(list_directory(dir / "crashed")->size(), 2U);
}

TEST(Rosbag2, CutFilesGiveTheRowsThatAreThere) {
  const TempDir dir("bag");
  const std::string whole = read_file(make_bag(dir) / "bag_0.db3");
  std::size_t most = 0;
  for (std::size_t size = 0; size < whole.size(); size += 1000) {
    const auto bag = BagReader::open(std::shared_ptr<const Source>(
        view_source(ByteSpan(as_bytes(whole)).first(size), "cut.db3")));
    if (!bag.ok()) continue;
    const Back back = read_all(*bag);
    ASSERT_FALSE(back.problems.empty()) << size;
    for (const Got& got : back.messages) {
      const auto i = static_cast<int>((got.time_ns - kStart) / 1000);
      ASSERT_EQ(got.data, payload(i)) << "cut at " << size;
    }
    most = std::max(most, back.messages.size());
  }
  EXPECT_GT(most, 200U);
  EXPECT_LT(most, 300U + 1);
}

TEST(Rosbag2, LostPagesCostOnlyTheirRows) {
  const TempDir dir("bag");
  const std::string whole = read_file(make_bag(dir) / "bag_0.db3");
  std::size_t told = 0;
  for (std::size_t page = 1; page < whole.size() / 4096; ++page) {
    std::string bytes = whole;
    std::memset(bytes.data() + page * 4096, 0xa5, 4096);
    const auto bag =
        BagReader::open(std::shared_ptr<const Source>(view_source(as_bytes(bytes), "damaged.db3")));
    if (!bag.ok()) continue;
    const Back back = read_all(*bag);
    for (const Got& got : back.messages) {
      const auto i = static_cast<int>((got.time_ns - kStart) / 1000);
      ASSERT_EQ(got.data, payload(i)) << "page " << page;
    }
    if (back.messages.size() < 300) {
      ASSERT_FALSE(back.problems.empty()) << page;
    }
    if (back.has(ProblemKind::rows_lost)) {
      // Behind the root of the table is everything, behind any other page a few rows.
      EXPECT_TRUE(back.messages.empty() || back.messages.size() > 240U) << page << back.lines();
      if (!back.messages.empty()) ++told;
    }
  }
  EXPECT_GT(told, 5U);
}

TEST(Rosbag2, IndexThatListsLessIsNotBelieved) {
  const TempDir dir("bag");
  const auto path = make_bag(dir) / "bag_0.db3";
  // An index over nothing takes the place of the true one in the schema.
  run_sql(path,
          "DROP INDEX timestamp_idx; CREATE TABLE other(timestamp INTEGER);"
          "CREATE INDEX timestamp_idx ON other(timestamp);"
          "PRAGMA writable_schema=ON;"
          "UPDATE sqlite_master SET tbl_name='messages', sql='CREATE INDEX timestamp_idx ON "
          "messages (timestamp ASC)' WHERE name='timestamp_idx';");
  const auto bag = BagReader::open(path);
  ASSERT_TRUE(bag.ok()) << bag.status().to_string();
  const Back back = read_all(*bag);
  EXPECT_TRUE(back.has(ProblemKind::bad_index)) << back.lines();
  expect_all(back);
}

TEST(Rosbag2, ViewsAndVirtualTablesAreNoBags) {
  const TempDir dir("bag");
  run_sql(dir / "view.db3",
          "CREATE TABLE topics(id INTEGER PRIMARY KEY,name,type,serialization_format);"
          "CREATE VIEW messages AS SELECT 1 AS id, 1 AS topic_id, 1 AS timestamp, x'00' AS data;");
  run_sql(dir / "other.db3", "CREATE TABLE x(y);");
  for (const char* name : {"view.db3", "other.db3"}) {
    EXPECT_EQ(BagReader::open(dir / name).status().code(), StatusCode::data_loss) << name;
  }
}

TEST(Rosbag2, RowsOfUnknownTopicsAndWithoutTimeAreCounted) {
  const TempDir dir("bag");
  const auto path = make_bag(dir) / "bag_0.db3";
  run_sql(path,
          "INSERT INTO messages(topic_id,timestamp,data) VALUES(9,1,x'00'),(9,2,x'00'),"
          "(1,'noon',x'00');");
  const Back back = read_all(*BagReader::open(path));
  EXPECT_TRUE(back.has(ProblemKind::unknown_channel));
  EXPECT_TRUE(back.has(ProblemKind::bad_record));
  EXPECT_NE(back.lines().find("2 messages of topic 9"), std::string::npos);
  expect_all(back);
}

TEST(Rosbag2, McapStorageIsNamed) {
  const TempDir dir("bag");
  BagMetadata metadata{.storage_identifier = "mcap", .files = {"a_0.mcap", "a_1.mcap"}};
  write_file(dir / "m/metadata.yaml", to_yaml(metadata));
  const auto bag = BagReader::open(dir / "m");
  EXPECT_EQ(bag.status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(bag.status().reason(), "MCAP_STORAGE");
  EXPECT_NE(bag.status().message().find("a_0.mcap, a_1.mcap"), std::string_view::npos);
  write_file(dir / "n/b_2.mcap", "x");
  write_file(dir / "n/b_10.mcap", "x");
  EXPECT_NE(BagReader::open(dir / "n").status().message().find("b_2.mcap, b_10.mcap"),
            std::string_view::npos);
  EXPECT_EQ(BagReader::open(dir / "none").status().code(), StatusCode::not_found);
}

TEST(Rosbag2Writer, LeavesNothingWithoutFinish) {
  const TempDir dir("bag");
  {
    auto writer = Rosbag2Writer::create(dir / "bag");
    const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
    ASSERT_TRUE(writer->write(a, 1, as_bytes("x")).ok());
    EXPECT_EQ(writer->write(7, 1, {}).code(), StatusCode::not_found);
  }
  EXPECT_TRUE(list_directory(dir.path())->empty());
  EXPECT_EQ(Rosbag2Writer::create(dir.path()).status().code(), StatusCode::already_exists);
  EXPECT_EQ(Rosbag2Writer::create(dir / "x", {.max_file_bytes = 5}).status().code(),
            StatusCode::invalid_argument);
}

TEST(Rosbag2Writer, EmptyBagAndEmptyMessagesAreFine) {
  const TempDir dir("bag");
  auto empty = Rosbag2Writer::create(dir / "empty");
  ASSERT_TRUE(empty->finish().ok());
  const auto bag = BagReader::open(dir / "empty");
  ASSERT_TRUE(bag.ok()) << bag.status().to_string();
  EXPECT_EQ(bag->message_count(), 0U);
  EXPECT_FALSE(bag->time_range().has_value());
  EXPECT_TRUE(bag->problems().empty());
  auto writer = Rosbag2Writer::create(dir / "bag");
  const std::uint32_t a = *writer->add_channel(ros2_channel("/a"));
  ASSERT_TRUE(writer->write(a, -5, {}).ok());
  ASSERT_TRUE(writer->finish().ok());
  const Back back = read_all(*BagReader::open(dir / "bag"));
  ASSERT_EQ(back.messages.size(), 1U);
  EXPECT_EQ(back.messages[0].time_ns, -5);
  EXPECT_EQ(back.messages[0].data, "");
}

TEST(BagMetadata, RoundTripsAndReadsTheTreeOfVersion9) {
  BagMetadata metadata{.storage_identifier = "sqlite3",
                       .files = {"a \"b\"_0.db3"},
                       .file_details = {{.path = "a \"b\"_0.db3", .message_count = 3}},
                       .starting_time_ns = 5,
                       .duration_ns = 7,
                       .message_count = 3,
                       .custom_data = {{"key: x", "va\nlue"}},
                       .ros_distro = "iron"};
  metadata.topics.push_back({.name = "/t",
                             .type = "p/msg/T",
                             .serialization_format = "cdr",
                             .offered_qos_profiles = "- history: 1\n  depth: 5",
                             .type_hash = "RIHS01_x",
                             .message_count = 3});
  for (const bool outermost : {true, false}) {
    const auto back = parse_bag_metadata(to_yaml(metadata, outermost));
    ASSERT_TRUE(back.ok()) << back.status().to_string();
    EXPECT_EQ(to_yaml(*back), to_yaml(metadata));
    EXPECT_EQ(back->topics[0].offered_qos_profiles, "- history: 1\n  depth: 5");
    EXPECT_EQ(back->custom_data.at("key: x"), "va\nlue");
  }
  const auto tree = parse_bag_metadata(
      "rosbag2_bagfile_information:\n  version: 9\n  storage_identifier: mcap\n"
      "  duration: {nanoseconds: 1}\n  starting_time: {nanoseconds_since_epoch: 2}\n"
      "  message_count: 4\n  relative_file_paths: [dir/a.mcap]\n"
      "  topics_with_message_count:\n    - topic_metadata:\n        name: /t\n"
      "        type: p/msg/T\n        serialization_format: cdr\n        offered_qos_profiles:\n"
      "          - history: keep_last\n            depth: 10\n            deadline:\n"
      "              sec: 1\n              nsec: 2\n      message_count: 4\n");
  ASSERT_TRUE(tree.ok()) << tree.status().to_string();
  EXPECT_EQ(tree->files, std::vector<std::string>{"a.mcap"});
  EXPECT_EQ(tree->topics[0].offered_qos_profiles,
            "- history: keep_last\n  depth: 10\n  deadline:\n    sec: 1\n    nsec: 2");
  EXPECT_EQ(qos_with_numbers(tree->topics[0].offered_qos_profiles),
            "- history: 1\n  depth: 10\n  deadline:\n    sec: 1\n    nsec: 2");
}

TEST(BagMetadata, FaultsAreNamed) {
  const auto missing = parse_bag_metadata("rosbag2_bagfile_information:\n  version: 5\n");
  EXPECT_EQ(missing.status().code(), StatusCode::data_loss);
  EXPECT_NE(missing.status().message().find("starting_time"), std::string_view::npos);
  const auto broken = parse_bag_metadata("a: [1, 2\nb: 3\n");
  EXPECT_EQ(broken.status().code(), StatusCode::data_loss);
  EXPECT_NE(broken.status().message().find("line 2"), std::string_view::npos)
      << broken.status().message();
  EXPECT_EQ(parse_bag_metadata(std::string(100, '[')).status().code(),
            StatusCode::resource_exhausted);
  EXPECT_EQ(parse_bag_metadata("a: &x 1\nb: *x\n").status().code(), StatusCode::unimplemented);
  EXPECT_FALSE(parse_bag_metadata("").ok());
  BagMetadata outside{.files = {".."}};
  EXPECT_FALSE(parse_bag_metadata(to_yaml(outside)).ok());
}

}  // namespace
}  // namespace ropewalk::bag
