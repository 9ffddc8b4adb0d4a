#include "ropewalk/episode/side_files.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"

#include "tests/support/memory_episode.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

test::MemoryEpisode small_episode(const std::string& task) {
  test::MemoryEpisode out;
  out.info_value = {.index = 3, .length = 2, .tasks = {task}};
  out.info_value.row =
      *parse_json(R"({"episode_index":3,"video_keys":["cam"],"total_videos":1,"note":"größe"})");
  const auto value = test::scalar_column<arrow::DoubleBuilder>(2, [](std::int64_t) { return 1.0; });
  out.table =
      arrow::RecordBatch::Make(arrow::schema({arrow::field("v", arrow::float64())}), 2, {value});
  return out;
}

Schema small_schema() {
  Schema schema;
  schema.fps = {30, 1};
  schema.features = default_features();
  schema.features.push_back({.name = "cam",
                             .kind = FeatureKind::video,
                             .dtype = DType::uint8,
                             .shape = {48, 64, 3},
                             .names = *parse_json(R"(["height","width","channel"])"),
                             .info = *parse_json(R"({"video.codec":"h264"})")});
  schema.extra = *parse_json(R"({"collection_started_at":"2026-01-02","total_videos":99})");
  return schema;
}

TEST(SideFiles, WritesTheFourFilesOfTheLayout) {
  const test::TempDir dir("side_files");
  SideFileOptions options{.data_path = "data/{episode_index}", .video_path = "videos/{video_key}"};
  auto files = SideFiles::create(dir.path(), options);
  ASSERT_TRUE(files.ok()) << files.status().to_string();
  Numbering numbering;
  for (const char* task : {"wischen", "größer"}) {
    const auto numbered = numbering.number(small_episode(task));
    ASSERT_TRUE(numbered.ok());
    ASSERT_TRUE(files->add(*numbered, 1).ok());
  }
  ASSERT_TRUE(files->finish(small_schema(), numbering, *parse_json(R"({"v":{"min":[1.0]}})")).ok());

  EXPECT_EQ(test::read_file(dir / "meta/tasks.jsonl"),
            "{\"task_index\": 0, \"task\": \"wischen\"}\n"
            "{\"task_index\": 1, \"task\": \"größer\"}\n");
  EXPECT_EQ(test::read_file(dir / "meta/episodes.jsonl"),
            "{\"episode_index\": 0, \"video_keys\": [\"cam\"], \"total_videos\": 1, "
            "\"note\": \"größe\", \"tasks\": [\"wischen\"], \"length\": 2}\n"
            "{\"episode_index\": 1, \"video_keys\": [\"cam\"], \"total_videos\": 1, "
            "\"note\": \"größe\", \"tasks\": [\"größer\"], \"length\": 2}\n");
  const Json info = *parse_json(test::read_file(dir / "meta/info.json"));
  std::vector<std::string> keys;
  for (const auto& [key, value] : *info.as_object()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{
                      "codebase_version", "robot_type", "total_episodes", "total_frames",
                      "total_tasks", "total_videos", "total_chunks", "chunks_size", "fps", "splits",
                      "data_path", "video_path", "features", "collection_started_at"}));
  EXPECT_TRUE(info.find("robot_type")->is_null());
  EXPECT_EQ(info.get_int64("total_episodes"), 2);
  EXPECT_EQ(info.get_int64("total_frames"), 4);
  EXPECT_EQ(info.get_int64("total_videos"), 2);
  EXPECT_EQ(info.get_int64("total_chunks"), 1);
  EXPECT_EQ(info.get_int64("chunks_size"), 1000);
  EXPECT_TRUE(info.find("fps")->is_integer());
  EXPECT_EQ(info.find("splits")->get_string("train"), "0:2");
  EXPECT_EQ(info.find("features")->find("cam")->dump(),
            R"({"dtype":"video","shape":[48,64,3],"names":["height","width","channels"],)"
            R"("info":{"video.codec":"h264"}})");
  EXPECT_EQ(info.find("features")->find("timestamp")->dump(),
            R"({"dtype":"float32","shape":[1],"names":null})");
  for (const WrittenFile& file : files->files()) {
    const std::string bytes = test::read_file(dir / file.path);
    EXPECT_EQ(file.size_bytes, bytes.size()) << file.path;
    EXPECT_EQ(file.sha256, sha256_hex(as_bytes(bytes))) << file.path;
  }
  EXPECT_EQ(files->files().size(), 4U);
}

TEST(SideFiles, SaysOfAnEmptyHalfThatNothingIsThere) {
  const test::TempDir dir("side_files");
  auto files = SideFiles::create(dir.path(), {.data_path = "data"});
  ASSERT_TRUE(files.ok());
  ASSERT_TRUE(files->finish(small_schema(), Numbering(), Json()).ok());
  EXPECT_EQ(test::read_file(dir / "meta/tasks.jsonl"), "");
  EXPECT_EQ(test::read_file(dir / "meta/episodes.jsonl"), "");
  EXPECT_EQ(test::read_file(dir / "meta/stats.json"), "{}\n");
  const Json info = *parse_json(test::read_file(dir / "meta/info.json"));
  EXPECT_EQ(info.get_int64("total_chunks"), 0);
  EXPECT_EQ(info.find("splits")->get_string("train"), "0:0");
  EXPECT_TRUE(info.find("video_path")->is_null());
}

TEST(SideFiles, DropsVideoKeysWhereCamerasLieInTheFile) {
  const test::TempDir dir("side_files");
  auto files = SideFiles::create(dir.path(), {.codebase_version = "hdf5", .embedded_images = true});
  ASSERT_TRUE(files.ok());
  Numbering numbering;
  const auto numbered = numbering.number(small_episode("a"));
  ASSERT_TRUE(numbered.ok());
  ASSERT_TRUE(files->add(*numbered, 0).ok());
  ASSERT_TRUE(files->finish(small_schema(), numbering, Json()).ok());
  EXPECT_EQ(test::read_file(dir / "meta/episodes.jsonl").find("video"), std::string::npos);
  const Json info = *parse_json(test::read_file(dir / "meta/info.json"));
  EXPECT_EQ(info.find("video_path"), nullptr);
  EXPECT_EQ(info.get_int64("total_videos"), 0);
  EXPECT_EQ(info.find("features")->find("cam")->get_string("dtype"), "image");
}

TEST(SideFiles, RefusesADirectoryThatIsInUse) {
  const test::TempDir dir("side_files");
  test::write_file(dir / "meta/episodes.jsonl", "{}\n");
  EXPECT_EQ(SideFiles::create(dir.path(), {}).status().code(), StatusCode::already_exists);
}

}  // namespace
}  // namespace ropewalk
