#include "ropewalk/dataset/lerobot/sink_v21.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/dataset/lerobot/source.h"
#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/video/probe.h"

#include "tests/support/golden_episodes.h"
#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

using test::golden_episode;
using test::golden_source;
using test::kGoldenCamera;
using test::MemorySource;
using test::TempDir;

#define ASSERT_OK(expression)                         \
  do {                                                \
    const Status status_ = (expression);              \
    ASSERT_TRUE(status_.ok()) << status_.to_string(); \
  } while (false)

Json json_at(const TempDir& dir, const std::string& path) {
  return *parse_json(test::read_file(dir / path));
}

std::vector<Json> lines_at(const TempDir& dir, const std::string& path) {
  std::vector<Json> out;
  std::istringstream text(test::read_file(dir / path));
  for (std::string line; std::getline(text, line);) out.push_back(*parse_json(line));
  return out;
}

void expect_files_as_told(const TempDir& dir, const EpisodeSink& sink) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
    if (entry.is_regular_file()) ++found;
  }
  EXPECT_EQ(sink.files().size(), found);
  for (const WrittenFile& file : sink.files()) {
    const std::string bytes = test::read_file(dir / file.path);
    EXPECT_EQ(bytes.size(), file.size_bytes) << file.path;
    EXPECT_EQ(sha256_hex(as_bytes(bytes)), file.sha256) << file.path;
  }
}

TEST(LerobotV21Sink, WritesTheGoldenFixture) {
  const TempDir dir("v21");
  auto sink = create_lerobot_v21_sink(dir.path(), {.encoder = {.gop = 2}});
  ASSERT_TRUE(sink.ok()) << sink.status().to_string();
  ASSERT_OK(copy(golden_source(), **sink, {}));
  expect_files_as_told(dir, **sink);
  const auto proof = prove_v21(dir.path(), (*sink)->clips(), {});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->rows, 150);
  EXPECT_EQ(proof->packets, 150);

  const auto reader = ParquetReader::open(dir / "data/chunk-000/episode_000001.parquet");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ((*reader)->row_groups().size(), 1U);
  EXPECT_EQ((*reader)->schema()->ToString(),
            "observation.state: fixed_size_list<element: float>[6]\n"
            "action: fixed_size_list<element: float>[6]\n"
            "next.done: bool\ntimestamp: float\nframe_index: int64\nepisode_index: int64\n"
            "index: int64\ntask_index: int64");
  EXPECT_EQ(
      (*reader)->metadata("huggingface"),
      R"({"info": {"features": {"observation.state": {"feature": {"dtype": "float32", "_type": )"
      R"("Value"}, "length": 6, "_type": "Sequence"}, "action": {"feature": {"dtype": "float32", )"
      R"("_type": "Value"}, "length": 6, "_type": "Sequence"}, "next.done": {"dtype": "bool", )"
      R"("_type": "Value"}, "timestamp": {"dtype": "float32", "_type": "Value"}, "frame_index": )"
      R"({"dtype": "int64", "_type": "Value"}, "episode_index": {"dtype": "int64", "_type": )"
      R"("Value"}, "index": {"dtype": "int64", "_type": "Value"}, "task_index": {"dtype": )"
      R"("int64", "_type": "Value"}}}})");

  const Json info = json_at(dir, "meta/info.json");
  EXPECT_EQ(info.get_string("codebase_version"), "v2.1");
  EXPECT_EQ(info.get_int64("total_videos"), 2);
  const Json* camera = info.find("features")->find(kGoldenCamera);
  EXPECT_EQ(camera->find("names")->dump(), R"(["height","width","channels"])");
  EXPECT_EQ(camera->find("info")->dump(),
            R"({"video.height":48,"video.width":64,"video.codec":"h264","video.pix_fmt":"yuv420p",)"
            R"("video.is_depth_map":false,"video.fps":30,"video.channels":3,"has_audio":false})");

  const auto lines = lines_at(dir, "meta/episodes_stats.jsonl");
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[1].get_int64("episode_index"), 1);
  const Json* stats = lines[1].find("stats");
  EXPECT_EQ(stats->find("index")->find("min")->dump(), "[90.0]");
  EXPECT_EQ(stats->find("index")->find("max")->dump(), "[149.0]");
  EXPECT_EQ(stats->find("episode_index")->find("mean")->dump(), "[1.0]");
  EXPECT_EQ(stats->find("observation.state")->find("count")->dump(), "[60]");
  EXPECT_EQ(stats->find("observation.state")->find("q50"), nullptr);
  EXPECT_EQ(stats->find(kGoldenCamera)->find("count")->dump(), "[60]");
  EXPECT_EQ(stats->find(kGoldenCamera)->find("min")->dump(), "[[[0.0]],[[0.0]],[[0.0]]]");
  EXPECT_EQ(stats->find(kGoldenCamera)->find("max")->dump(), "[[[1.0]],[[1.0]],[[1.0]]]");
  const Json pooled = json_at(dir, "meta/stats.json");
  std::vector<std::string> names;
  for (const auto& [name, value] : *pooled.as_object()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"observation.state", "action", "next.done"}));
  EXPECT_EQ(pooled.find("observation.state")->find("count"), nullptr);
  EXPECT_DOUBLE_EQ(*pooled.find("observation.state")->find("std")->as_array()->front().as_double(),
                   43.300307928081374);
}

TEST(LerobotV21Sink, CopiesVideoBytesAndKeepsGivenStatistics) {
  ROPEWALK_REQUIRE_TESTDATA(real, "agilex_dataset");
  const auto source = open_lerobot(real);
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  const TempDir dir("v21");
  ThreadPool pool(2);
  auto sink = create_lerobot_v21_sink(dir.path(), {.statistics_names = {"action"}});
  ASSERT_TRUE(sink.ok());
  ASSERT_OK(copy(**source, **sink, {.pool = &pool}));
  expect_files_as_told(dir, **sink);
  const auto proof = prove_v21(dir.path(), (*sink)->clips(), {.pool = &pool});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->packets, 3 * 398);
  ASSERT_EQ((*sink)->clips().size(), 3U);
  for (const ClipRecord& clip : (*sink)->clips()) {
    EXPECT_TRUE(clip.whole_file);
    EXPECT_EQ(test::read_file(dir / clip.path), test::read_file(real / clip.path)) << clip.path;
  }
  // Rows of user columns as they were; the tasks that nobody uses are gone.
  const auto before = ParquetReader::open(real / "data/chunk-000/episode_000000.parquet");
  const auto after = ParquetReader::open(dir / "data/chunk-000/episode_000000.parquet");
  ASSERT_TRUE(before.ok() && after.ok());
  for (const char* name :
       {"observation.qpos", "action", "action_eef", "base_action", "timestamp"}) {
    const std::vector<std::string> columns{name};
    const auto a = (*before)->read_all(columns);
    const auto b = (*after)->read_all(columns);
    ASSERT_TRUE(a.ok() && b.ok()) << name;
    EXPECT_TRUE((*a)->column(0)->Equals((*b)->column(0))) << name;
  }
  EXPECT_EQ(lines_at(dir, "meta/tasks.jsonl").size(), 1U);
  const Json given = *parse_json(test::read_file(real / "meta/episodes_stats.jsonl"));
  const Json kept = lines_at(dir, "meta/episodes_stats.jsonl").front();
  EXPECT_EQ(*kept.find("stats")->find("action"), *given.find("stats")->find("action"));
  EXPECT_EQ(kept.find("stats")->find("index")->find("max")->dump(), "[397.0]")
      << "the source has none for the default features";
  EXPECT_EQ(json_at(dir, "meta/stats.json").size(), 1U);
}

TEST(LerobotV21Sink, RenumbersPartOfADataset) {
  ROPEWALK_REQUIRE_TESTDATA(real, "g1_partial");
  const auto source = open_lerobot(real);
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  const TempDir dir("v21");
  auto sink = create_lerobot_v21_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  for (const std::int64_t index : {4, 1}) {
    const auto at = (*source)->position_of(index);
    ASSERT_TRUE(at);
    const auto episode = (*source)->open(*at);
    ASSERT_TRUE(episode.ok());
    ASSERT_OK((*sink)->write(**episode, {}));
  }
  ASSERT_OK((*sink)->finish({}));
  const auto proof = prove_v21(dir.path(), (*sink)->clips(), {});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_EQ(proof->rows, 357 + 393);
  const auto lines = lines_at(dir, "meta/episodes_stats.jsonl");
  EXPECT_EQ(lines[1].find("stats")->find("index")->find("min")->dump(), "[357.0]");
  EXPECT_EQ(lines[1].find("stats")->find("episode_index")->find("max")->dump(), "[1.0]");
}

TEST(LerobotV21Sink, PutsTheThousandAndFirstEpisodeIntoTheNextChunk) {
  const TempDir dir("v21");
  ThreadPool pool(2);
  auto sink = create_lerobot_v21_sink(dir.path(), {.drop_features = {kGoldenCamera}});
  ASSERT_TRUE(sink.ok());
  for (std::int64_t i = 0; i < 1001; ++i) {
    ASSERT_OK((*sink)->write(*golden_episode(i, i * 2, 2), {.pool = &pool}));
  }
  ASSERT_OK((*sink)->finish({.pool = &pool}));
  const auto proof = prove_v21(dir.path(), (*sink)->clips(), {.pool = &pool});
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_TRUE(std::filesystem::exists(dir / "data/chunk-001/episode_001000.parquet"));
  const Json info = json_at(dir, "meta/info.json");
  EXPECT_EQ(info.get_int64("total_chunks"), 2);
  EXPECT_TRUE(info.find("video_path")->is_null());
  EXPECT_EQ(info.find("features")->find(kGoldenCamera), nullptr);
}

TEST(LerobotV21Sink, ReportsWhatItDropsRenamesAndMisses) {
  const TempDir dir("v21");
  auto episode = golden_episode(5, 0, 4);
  auto& features = episode->schema_value.features;
  features.push_back({.name = "cloud", .kind = FeatureKind::points, .shape = {-1, 3}});
  features.push_back({.name = "task", .dtype = DType::float32, .shape = {1}});
  features.push_back({.name = "a/b", .dtype = DType::float32, .shape = {1}});
  features.push_back({.name = "empty", .dtype = DType::float32, .shape = {0}});
  const auto value = test::scalar_column<arrow::FloatBuilder>(
      4, [](std::int64_t row) { return static_cast<float>(row); });
  for (const char* name : {"task", "a/b"}) {
    episode->table =
        episode->table->AddColumn(episode->table->num_columns(), name, value).ValueOrDie();
  }
  episode->cameras.clear();
  auto sink = create_lerobot_v21_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->write(*episode, {}));
  ASSERT_OK((*sink)->finish({}));
  const Findings& findings = (*sink)->findings();
  EXPECT_EQ(findings.count("feature_dropped"), 2);
  EXPECT_EQ(findings.count("feature_renamed"), 2);
  EXPECT_EQ(findings.count("camera_missing"), 1);
  const auto reader = ParquetReader::open(dir / "data/chunk-000/episode_000000.parquet");
  ASSERT_TRUE(reader.ok());
  EXPECT_TRUE((*reader)->has_column("task_"));
  EXPECT_TRUE((*reader)->has_column("a_b"));
  EXPECT_FALSE((*reader)->has_column("empty"));
}

TEST(LerobotV21Sink, WarnsOfAnEpisodeThatUpstreamWouldRefuse) {
  // At 50 fps the step of float32 exceeds the tolerance from row 51,204 on.
  for (const auto& [rows, expected] : {std::pair<std::int64_t, int>{51204, 0}, {51300, 1}}) {
    const TempDir dir("v21");
    auto episode = golden_episode(0, 0, rows);
    episode->schema_value.fps = {50, 1};
    episode->table = episode->table->RemoveColumn(3).ValueOrDie();
    auto sink = create_lerobot_v21_sink(dir.path(), {.drop_features = {kGoldenCamera}});
    ASSERT_TRUE(sink.ok());
    ASSERT_OK((*sink)->write(*episode, {}));
    ASSERT_OK((*sink)->finish({}));
    EXPECT_EQ((*sink)->findings().count("timestamp_float32_step"), expected) << rows;
  }
}

TEST(LerobotV21Sink, RewritesTimesThatAreNoFrameTimes) {
  const TempDir dir("v21");
  auto episode = golden_episode(0, 0, 4);
  const auto epoch = test::scalar_column<arrow::FloatBuilder>(
      4, [](std::int64_t row) { return 1.7e9F + static_cast<float>(row) * 128.0F; });
  episode->table =
      episode->table->SetColumn(3, arrow::field("timestamp", arrow::float32()), epoch).ValueOrDie();
  auto sink = create_lerobot_v21_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->write(*episode, {}));
  ASSERT_OK((*sink)->finish({}));
  EXPECT_EQ((*sink)->findings().count("timestamp_rewritten"), 4);
  EXPECT_TRUE(prove_v21(dir.path(), (*sink)->clips(), {}).ok());
}

TEST(LerobotV21Sink, WritesAnEmptyHalf) {
  const TempDir dir("v21");
  auto sink = create_lerobot_v21_sink(dir.path(), {.schema = test::golden_schema()});
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->finish({}));
  EXPECT_FALSE(std::filesystem::exists(dir / "data"));
  const Json info = json_at(dir, "meta/info.json");
  EXPECT_EQ(info.find("splits")->get_string("train"), "0:0");
  EXPECT_NE(info.find("features")->find(kGoldenCamera), nullptr);
  EXPECT_EQ(test::read_file(dir / "meta/episodes_stats.jsonl"), "");
  const auto proof = prove_v21(dir.path(), (*sink)->clips(), {});
  EXPECT_TRUE(proof.ok()) << proof.status().to_string();
}

TEST(ProveV21, FindsWhatWasChangedAfterwards) {
  const TempDir dir("v21");
  auto sink = create_lerobot_v21_sink(dir.path());
  ASSERT_TRUE(sink.ok());
  ASSERT_OK(copy(golden_source(), **sink, {}));
  const std::string video =
      std::string("videos/chunk-000/") + kGoldenCamera + "/episode_000001.mp4";
  const std::string good = test::read_file(dir / video);
  std::string bad = good;
  bad[bad.size() - 20] = static_cast<char>(bad[bad.size() - 20] ^ 1);
  test::write_file(dir / video, bad);
  Status status = prove_v21(dir.path(), (*sink)->clips(), {}).status();
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("episode_000001.mp4"), std::string_view::npos);
  test::write_file(dir / video, good);
  EXPECT_TRUE(prove_v21(dir.path(), (*sink)->clips(), {}).ok());
  std::filesystem::rename(dir / "data/chunk-000/episode_000000.parquet", dir / "swap");
  std::filesystem::rename(dir / "data/chunk-000/episode_000001.parquet",
                          dir / "data/chunk-000/episode_000000.parquet");
  std::filesystem::rename(dir / "swap", dir / "data/chunk-000/episode_000001.parquet");
  status = prove_v21(dir.path(), (*sink)->clips(), {}).status();
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("rows"), std::string_view::npos) << status.to_string();
}

}  // namespace
}  // namespace ropewalk
