#include "ropewalk/dataset/lerobot/sink_v3.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/sink_v21.h"
#include "ropewalk/dataset/lerobot/source.h"
#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/video/packets.h"
#include "ropewalk/format/video/probe.h"

#include "tests/support/golden_episodes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

using test::golden_episode;
using test::golden_source;
using test::kGoldenCamera;
using test::TempDir;

#define ASSERT_OK(expression)                         \
  do {                                                \
    const Status status_ = (expression);              \
    ASSERT_TRUE(status_.ok()) << status_.to_string(); \
  } while (false)

Json json_at(const TempDir& dir, const std::string& path) {
  return *parse_json(test::read_file(dir / path));
}

std::shared_ptr<arrow::RecordBatch> table_at(const std::filesystem::path& path) {
  const auto reader = ParquetReader::open(path);
  EXPECT_TRUE(reader.ok()) << reader.status().to_string();
  const auto batch = (*reader)->read_all();
  EXPECT_TRUE(batch.ok()) << batch.status().to_string();
  return *batch;
}

/// The value at (column, row) as Arrow prints it.
std::string cell(const arrow::RecordBatch& batch, const std::string& column, std::int64_t row) {
  const auto found = batch.GetColumnByName(column);
  if (found == nullptr) return "no column " + column;
  return found->GetScalar(row).ValueOrDie()->ToString();
}

double double_at(const arrow::RecordBatch& batch, const std::string& column, std::int64_t row) {
  return static_cast<const arrow::DoubleArray&>(*batch.GetColumnByName(column)).Value(row);
}

/// The first element of a list cell.
double first_of(const arrow::RecordBatch& batch, const std::string& column, std::int64_t row) {
  const auto& lists = static_cast<const arrow::ListArray&>(*batch.GetColumnByName(column));
  return static_cast<const arrow::DoubleArray&>(*lists.value_slice(row)).Value(0);
}

TEST(LerobotV3Sink, WritesTheGoldenFixture) {
  // By way of v2.1, so that the packed video is a remux.
  const TempDir v21("v21");
  auto first = create_lerobot_v21_sink(v21.path(), {.encoder = {.gop = 2}});
  ASSERT_TRUE(first.ok());
  ASSERT_OK(copy(golden_source(), **first, {}));
  const auto source = open_lerobot(v21.path());
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path());
  ASSERT_TRUE(sink.ok()) << sink.status().to_string();
  ASSERT_OK(copy(**source, **sink, {}));
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->rows, 150);
  EXPECT_EQ(proof->packets, 150);
  EXPECT_EQ(proof->clips, 2);

  std::vector<std::string> paths;
  for (const WrittenFile& file : (*sink)->files()) {
    paths.push_back(file.path);
    EXPECT_EQ(sha256_hex(as_bytes(test::read_file(dir / file.path))), file.sha256) << file.path;
  }
  EXPECT_EQ(paths,
            (std::vector<std::string>{"data/chunk-000/file-000.parquet", "meta/episodes.jsonl",
                                      "meta/episodes/chunk-000/file-000.parquet", "meta/info.json",
                                      "meta/stats.json", "meta/tasks.jsonl", "meta/tasks.parquet",
                                      "videos/observation.images.top/chunk-000/file-000.mp4"}));
  EXPECT_EQ(*list_tree(dir.path()), paths) << "nothing else is left behind";

  const auto index = probe_mp4(dir / paths.back());
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->timescale, 15360U);
  EXPECT_EQ(index->packets[97].pts, 97 * 512);
  EXPECT_EQ(index->fps, (Rational{30, 1}));
  EXPECT_FALSE(index->has_edit_list);

  const auto rows = table_at(dir / "meta/episodes/chunk-000/file-000.parquet");
  std::vector<std::string> expected{"episode_index",    "tasks",           "length",
                                    "data/chunk_index", "data/file_index", "dataset_from_index",
                                    "dataset_to_index"};
  const std::string video = std::string("videos/") + kGoldenCamera + "/";
  for (const char* name : {"chunk_index", "file_index", "from_timestamp", "to_timestamp"}) {
    expected.push_back(video + name);
  }
  for (const Feature& feature : test::golden_schema().features) {
    for (const char* name :
         {"min", "max", "mean", "std", "count", "q01", "q10", "q50", "q90", "q99"}) {
      expected.push_back("stats/" + feature.name + "/" + name);
    }
  }
  expected.insert(expected.end(), {"meta/episodes/chunk_index", "meta/episodes/file_index"});
  EXPECT_EQ(rows->schema()->field_names(), expected);
  EXPECT_EQ(cell(*rows, "dataset_from_index", 1), "90");
  EXPECT_EQ(cell(*rows, "dataset_to_index", 1), "150");
  EXPECT_EQ(double_at(*rows, video + "from_timestamp", 1), 3.0);
  EXPECT_EQ(double_at(*rows, video + "to_timestamp", 1), 5.0);
  const std::array<std::pair<const char*, std::array<double, 2>>, 9> golden{
      {{"min", {0, 90}},
       {"max", {89, 149}},
       {"mean", {44.5, 119.5}},
       {"std", {25.979158313283875, 17.318102282486574}},
       {"q01", {0.89, 90.59}},
       {"q10", {8.9, 95.9}},
       {"q50", {44.5, 119.5}},
       {"q90", {80.1, 143.1}},
       {"q99", {88.11, 148.41}}}};
  for (const auto& [name, values] : golden) {
    const std::string column = std::string("stats/observation.state/") + name;
    EXPECT_DOUBLE_EQ(first_of(*rows, column, 0), values[0]) << name;
    EXPECT_DOUBLE_EQ(first_of(*rows, column, 1), values[1]) << name;
  }
  EXPECT_EQ(rows->GetColumnByName("stats/observation.images.top/mean")->type()->ToString(),
            "list<element: list<element: list<element: double>>>");
  EXPECT_TRUE(rows->GetColumnByName("stats/observation.images.top/q50")->IsNull(0))
      << "an export does not decode";

  const Json info = json_at(dir, "meta/info.json");
  std::vector<std::string> keys;
  for (const auto& [key, value] : *info.as_object()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"codebase_version", "robot_type", "total_episodes",
                                            "total_frames", "total_tasks", "chunks_size",
                                            "data_files_size_in_mb", "video_files_size_in_mb",
                                            "fps", "splits", "data_path", "video_path", "features",
                                            "total_videos", "total_chunks", "dataset_format"}));
  EXPECT_EQ(info.get_int64("video_files_size_in_mb"), 200);

  const Json stats = json_at(dir, "meta/stats.json");
  EXPECT_DOUBLE_EQ(*stats.find("observation.state")->find("q99")->as_array()->front().as_double(),
                   147.51);
  EXPECT_EQ(stats.find("index")->find("max")->dump(), "[149.0]");
  EXPECT_EQ(stats.find(kGoldenCamera)->find("q50"), nullptr);

  const auto tasks = ParquetReader::open(dir / "meta/tasks.parquet");
  ASSERT_TRUE(tasks.ok());
  EXPECT_EQ((*tasks)->columns(), (std::vector<std::string>{"task_index", "task"}));
  const Json pandas = *parse_json((*tasks)->metadata("pandas").value_or(""));
  EXPECT_EQ(pandas.find("index_columns")->dump(), R"(["task"])");

  const auto data = ParquetReader::open(dir / "data/chunk-000/file-000.parquet");
  ASSERT_TRUE(data.ok());
  ASSERT_EQ((*data)->row_groups().size(), 2U);
  EXPECT_EQ((*data)->row_groups()[1].first_row, 90);
}

TEST(LerobotV3Sink, KeepsEveryPacketOfRealClips) {
  ROPEWALK_REQUIRE_TESTDATA(real, "agilex_dataset");
  const auto source = open_lerobot(real);
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  const TempDir dir("v3");
  ThreadPool pool(2);
  auto sink = create_lerobot_v3_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  // The same episode three times: B-frames and long GOPs, one behind the other.
  for (int i = 0; i < 3; ++i) {
    const auto episode = (*source)->open(0);
    ASSERT_TRUE(episode.ok());
    ASSERT_OK((*sink)->write(**episode, {.pool = &pool}));
  }
  ASSERT_OK((*sink)->finish({.pool = &pool}));
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {.pool = &pool});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->packets, 9 * 398);
  for (const std::string camera : {"cam_high", "cam_left_wrist", "cam_right_wrist"}) {
    const std::string key = "observation.images." + camera;
    const auto path = real / "videos/chunk-000" / key / "episode_000000.mp4";
    const auto file = open_source(path);
    const auto before = probe_mp4(path);
    const auto after = probe_mp4(dir / ("videos/" + key + "/chunk-000/file-000.mp4"));
    ASSERT_TRUE(file.ok() && before.ok() && after.ok());
    const auto hash = packet_sha256(*before, **file, {0, before->packets.size()});
    ASSERT_TRUE(hash.ok());
    int found = 0;
    for (const ClipRecord& clip : (*sink)->clips()) {
      if (clip.camera != key) continue;
      EXPECT_EQ(clip.sha256, *hash);
      EXPECT_EQ(clip.first_frame, 398 * found++);
    }
    EXPECT_EQ(found, 3);
    EXPECT_EQ(after->first_pts, 0);
    EXPECT_FALSE(after->has_edit_list);
    EXPECT_EQ(after->fps, (Rational{30, 1}));
    for (std::size_t rank = 0; rank < after->order.size(); ++rank) {
      ASSERT_EQ(after->packets[after->order[rank]].pts, static_cast<std::int64_t>(rank) * 512);
    }
  }
  const auto rows = table_at(dir / "meta/episodes/chunk-000/file-000.parquet");
  EXPECT_EQ(double_at(*rows, "videos/observation.images.cam_high/from_timestamp", 2), 796 / 30.0);
}

TEST(LerobotV3Sink, AgreesWithTheConverterOfOthers) {
  ROPEWALK_REQUIRE_TESTDATA(real, "g1_partial");
  ROPEWALK_REQUIRE_TESTDATA(theirs, "g1_v3");
  const auto source = open_lerobot(real, {.survey = true});
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  ASSERT_OK(copy(**source, **sink, {}));
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->rows, 1093);
  const auto before = table_at(theirs / "data/chunk-000/file-000.parquet");
  const auto after = table_at(dir / "data/chunk-000/file-000.parquet");
  ASSERT_EQ(after->num_rows(), before->num_rows());
  for (const char* name : {"timestamp", "frame_index", "episode_index", "index", "task_index"}) {
    EXPECT_TRUE(after->GetColumnByName(name)->Equals(before->GetColumnByName(name))) << name;
  }
  const auto rows = table_at(dir / "meta/episodes/chunk-000/file-000.parquet");
  const std::string video = "videos/observation.images.cam_high/";
  EXPECT_EQ(double_at(*rows, video + "from_timestamp", 1), 393 / 30.0);
  EXPECT_EQ(double_at(*rows, video + "to_timestamp", 1), 736 / 30.0) << "no drift";
}

TEST(LerobotV3Sink, RollsFilesByTheSameRuleEverywhere) {
  const TempDir dir("v3");
  ThreadPool pool(2);
  const TempDir clips("v21");
  auto first = create_lerobot_v21_sink(clips.path(), {.encoder = {.gop = 2}});
  ASSERT_TRUE(first.ok());
  constexpr std::int64_t kEpisodes = 60;
  for (std::int64_t i = 0; i < kEpisodes; ++i) {
    auto episode = golden_episode(i, i * 20, 20);
    episode->info_value.row.set("note", i % 7 == 0 ? Json("seven") : Json());
    ASSERT_OK((*first)->write(*episode, {.pool = &pool}));
  }
  ASSERT_OK((*first)->finish({}));
  const auto source = open_lerobot(clips.path());
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  auto sink = create_lerobot_v3_sink(dir.path(), {.data_file_bytes = 64 << 10,
                                                  .video_file_bytes = 64 << 10,
                                                  .video_file_seconds = 10,
                                                  .chunks_size = 2});
  ASSERT_TRUE(sink.ok());
  ASSERT_OK(copy(**source, **sink, {.pool = &pool}));
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {.pool = &pool});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->clips, kEpisodes);
  std::map<std::string, int> files;
  for (const WrittenFile& file : (*sink)->files()) {
    const std::string kind = file.path.substr(0, file.path.find("/chunk"));
    if (file.path.find("/chunk") != std::string::npos) {
      ++files[kind];
      // Of the episode rows a file holds one row group, whatever its footer adds.
      const std::uint64_t limit = kind == "meta/episodes" ? 96U << 10 : 64U << 10;
      EXPECT_LE(file.size_bytes, limit) << file.path;
    }
  }
  EXPECT_GT(files["data"], 2);
  EXPECT_EQ(files["meta/episodes"], 2);
  EXPECT_GE(files[std::string("videos/") + kGoldenCamera], 4) << "1,200 frames at 300 a file";
  EXPECT_TRUE(std::filesystem::exists(dir / "data/chunk-001/file-000.parquet"));
  EXPECT_FALSE(std::filesystem::exists(dir / "data/chunk-000/file-002.parquet"));
}

TEST(LerobotV3Sink, HoldsManyTinyEpisodes) {
  const TempDir dir("v3");
  ThreadPool pool(2);
  auto sink = create_lerobot_v3_sink(
      dir.path(), {.data_file_bytes = 256 << 10, .drop_features = {kGoldenCamera}});
  ASSERT_TRUE(sink.ok());
  for (std::int64_t i = 0; i < 1200; ++i) {
    ASSERT_OK((*sink)->write(*golden_episode(i, i * 3, 3, i < 600 ? "one" : "two"), {}));
  }
  ASSERT_OK((*sink)->finish({}));
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {.pool = &pool});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->rows, 3600);
  EXPECT_TRUE(json_at(dir, "meta/info.json").find("video_path")->is_null());
  const auto tasks = table_at(dir / "meta/tasks.parquet");
  EXPECT_EQ(tasks->num_rows(), 2);
  const Json stats = json_at(dir, "meta/stats.json");
  EXPECT_DOUBLE_EQ(*stats.find("index")->find("q50")->as_array()->front().as_double(), 1799.5);
}

TEST(LerobotV3Sink, SpoolsOneSchemaForRowsThatDiffer) {
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path(), {.drop_features = {kGoldenCamera}});
  ASSERT_TRUE(sink.ok());
  const std::array<const char*, 3> extras{
      R"({"quality":"green","quality_issues":[],"fps":30,"slot":{},"mixed":1,"skew":{"a":0.5}})",
      R"({"quality":"red","quality_issues":[{"severity":"red","code":"x","detail":"d","count":3}],
          "fps":29.9,"mixed":"text","skew":{"b":1},"late":[1,2],"videos/old/file_index":7})",
      R"({"qc_verdict":"pass","empty_list":[],"nothing":null})"};
  for (std::int64_t i = 0; i < 3; ++i) {
    auto episode = golden_episode(i, i * 5, 5);
    const Json extra = *parse_json(extras[static_cast<std::size_t>(i)]);
    for (const auto& [key, value] : *extra.as_object()) episode->info_value.row.set(key, value);
    ASSERT_OK((*sink)->write(*episode, {}));
  }
  ASSERT_OK((*sink)->finish({}));
  const auto rows = table_at(dir / "meta/episodes/chunk-000/file-000.parquet");
  const auto type = [&](const char* name) {
    const auto field = rows->schema()->GetFieldByName(name);
    return field == nullptr ? std::string("none") : field->type()->ToString();
  };
  EXPECT_EQ(type("quality"), "string");
  EXPECT_EQ(type("fps"), "double");
  EXPECT_EQ(type("slot"), "none");
  EXPECT_EQ(type("mixed"), "string");
  EXPECT_EQ(type("skew"), "struct<a: double, b: int64>");
  EXPECT_EQ(type("late"), "list<element: int64>");
  EXPECT_EQ(type("empty_list"), "list<element: string>");
  EXPECT_EQ(type("quality_issues"),
            "list<element: struct<severity: string, code: string, detail: string, count: int64>>");
  EXPECT_EQ(type("videos/old/file_index"), "none");
  EXPECT_EQ(cell(*rows, "mixed", 0), "1");
  EXPECT_EQ(cell(*rows, "mixed", 1), "\"text\"");
  EXPECT_EQ(cell(*rows, "qc_verdict", 0), "null");
  EXPECT_EQ(cell(*rows, "qc_verdict", 2), "pass");
  EXPECT_NE(test::read_file(dir / "meta/episodes.jsonl").find("\"mixed\": \"text\""),
            std::string::npos);
}

TEST(LerobotV3Sink, WritesNullLocatorsForACameraThatIsMissing) {
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->write(*golden_episode(0, 0, 5), {}));
  auto blind = golden_episode(1, 5, 5);
  blind->cameras.clear();
  ASSERT_OK((*sink)->write(*blind, {}));
  ASSERT_OK((*sink)->write(*golden_episode(2, 10, 5), {}));
  ASSERT_OK((*sink)->finish({}));
  EXPECT_EQ((*sink)->findings().count("camera_missing"), 1);
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  const auto rows = table_at(dir / "meta/episodes/chunk-000/file-000.parquet");
  const std::string key = std::string("videos/") + kGoldenCamera + "/";
  EXPECT_EQ(cell(*rows, key + "file_index", 1), "null");
  EXPECT_EQ(cell(*rows, key + "from_timestamp", 1), "null");
  EXPECT_EQ(double_at(*rows, key + "from_timestamp", 2), 5 / 30.0);
  EXPECT_EQ(cell(*rows, std::string("stats/") + kGoldenCamera + "/mean", 1), "null");
  EXPECT_EQ(json_at(dir, "meta/info.json").get_int64("total_videos"), 2);
}

TEST(LerobotV3Sink, GivesCamerasQuantilesWhenAsked) {
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path(), {.camera_quantiles = true});
  ASSERT_TRUE(sink.ok());
  ASSERT_OK(copy(golden_source(), **sink, {}));
  const Json stats = json_at(dir, "meta/stats.json");
  EXPECT_EQ(stats.find(kGoldenCamera)->find("q01")->dump(), "[[[0.0]],[[0.0]],[[0.0]]]");
  EXPECT_EQ(stats.find(kGoldenCamera)->find("q99")->dump(), "[[[1.0]],[[1.0]],[[1.0]]]");
}

TEST(LerobotV3Sink, RefusesARateThatIsNoInteger) {
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  auto episode = golden_episode(0, 0, 5);
  episode->schema_value.fps = {30000, 1001};
  const Status status = (*sink)->write(*episode, {});
  EXPECT_EQ(status.code(), StatusCode::failed_precondition);
  EXPECT_EQ(status.reason(), "FPS_NOT_INTEGRAL");
  EXPECT_NE(status.message().find("30000/1001"), std::string_view::npos);
}

TEST(LerobotV3Sink, WritesAnEmptyHalfWithoutTables) {
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path(), {.schema = test::golden_schema()});
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->finish({}));
  EXPECT_EQ(*list_tree(dir.path()),
            (std::vector<std::string>{"meta/episodes.jsonl", "meta/info.json", "meta/stats.json",
                                      "meta/tasks.jsonl"}));
  EXPECT_EQ(test::read_file(dir / "meta/stats.json"), "{}\n");
  const auto proof = prove_v3(dir.path(), (*sink)->clips(), {});
  EXPECT_TRUE(proof.ok()) << proof.status().to_string();
}

TEST(LerobotV3Sink, TurnsBackIntoVersionTwoWithEqualRowsAndPackets) {
  const TempDir first_dir("v21");
  const TempDir packed("v3");
  const TempDir second_dir("v21");
  auto first = create_lerobot_v21_sink(first_dir.path(), {.encoder = {.gop = 2}});
  ASSERT_TRUE(first.ok());
  ASSERT_OK(copy(golden_source(), **first, {}));
  auto one = open_lerobot(first_dir.path());
  ASSERT_TRUE(one.ok()) << one.status().to_string();
  auto middle = create_lerobot_v3_sink(packed.path());
  ASSERT_TRUE(middle.ok());
  ASSERT_OK(copy(**one, **middle, {}));
  auto two = open_lerobot(packed.path());
  ASSERT_TRUE(two.ok()) << two.status().to_string();
  auto second = create_lerobot_v21_sink(second_dir.path());
  ASSERT_TRUE(second.ok());
  ASSERT_OK(copy(**two, **second, {}));
  const auto proof = prove_v21(second_dir.path(), (*second)->clips(), {});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  ASSERT_EQ((*second)->clips().size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ((*second)->clips()[i].sha256, (*first)->clips()[i].sha256);
    EXPECT_FALSE((*second)->clips()[i].encoded);
    const std::string path = "data/chunk-000/episode_00000" + std::to_string(i) + ".parquet";
    EXPECT_TRUE(table_at(first_dir / path)->Equals(*table_at(second_dir / path)));
  }
  for (const char* path : {"meta/info.json", "meta/episodes.jsonl", "meta/tasks.jsonl"}) {
    EXPECT_EQ(test::read_file(first_dir / path), test::read_file(second_dir / path)) << path;
  }
}

TEST(ProveV3, FindsAChangedPacketAndALocatorThatLies) {
  const TempDir dir("v3");
  auto sink = create_lerobot_v3_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  ASSERT_OK(copy(golden_source(), **sink, {}));
  ASSERT_TRUE(prove_v3(dir.path(), (*sink)->clips(), {}).ok());
  std::vector<ClipRecord> lying = (*sink)->clips();
  lying[1].first_frame = 89;
  EXPECT_EQ(prove_v3(dir.path(), lying, {}).status().code(), StatusCode::data_loss);
  lying = (*sink)->clips();
  lying.pop_back();
  EXPECT_EQ(prove_v3(dir.path(), lying, {}).status().code(), StatusCode::data_loss);
  const std::string video = (*sink)->clips()[1].path;
  std::string bytes = test::read_file(dir / video);
  bytes[bytes.size() - 10] = static_cast<char>(bytes[bytes.size() - 10] ^ 1);
  test::write_file(dir / video, bytes);
  const Status status = prove_v3(dir.path(), (*sink)->clips(), {}).status();
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("episode 1: packets: SHA-256"), std::string_view::npos)
      << status.to_string();
}

}  // namespace
}  // namespace ropewalk
