#include "ropewalk/episode/side_files_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kInfo = R"({"codebase_version": "hdf5", "dataset_format": "hdf5",
  "robot_type": "arm", "fps": 20.0, "chunks_size": 1000, "total_videos": 0, "eval": {"n": 1},
  "features": {"observation.state": {"dtype": "float32", "shape": [2], "names": ["a", "b"]},
               "top": {"dtype": "image", "shape": [4, 6, 3], "names": null, "note": "x"}}})";

void put(const test::TempDir& dir, const char* info, const char* rows) {
  test::write_file(dir / "meta/info.json", info);
  test::write_file(dir / "meta/episodes.jsonl", rows);
  test::write_file(dir / "meta/tasks.jsonl", "{\"task_index\": 0, \"task\": \"pour\"}");
}

TEST(SideFilesReader, ReadsSchemaRowsAndTasks) {
  const test::TempDir dir("side");
  put(dir, kInfo,
      "{\"episode_index\": 0, \"tasks\": [\"pour\"], \"length\": 7, \"quality\": \"RED\", "
      "\"qc_verdict\": \"Pass\", \"qc_note\": \"n\", \"other\": 1}\n");
  const auto read = read_side_files(dir.path());
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(read->dataset_format, "hdf5");
  EXPECT_EQ(read->schema.fps, (Rational{20, 1}));
  EXPECT_EQ(read->schema.robot_type, "arm");
  EXPECT_EQ(read->schema.extra.dump(), R"({"eval":{"n":1}})");
  EXPECT_THAT(read->schema.cameras(), ElementsAre("top"));
  EXPECT_EQ(read->schema.find("top")->extra.dump(), R"({"note":"x"})");
  EXPECT_THAT(read->schema.find("observation.state")->shape, ElementsAre(2));
  ASSERT_EQ(read->size(), 1);
  EXPECT_EQ(read->episode(0).length, 7);
  EXPECT_EQ(read->episode(0).quality, "red");
  EXPECT_EQ(read->episode(0).verdict, "pass");
  EXPECT_EQ(read->episode(0).row.get_int64("other"), 1);
  EXPECT_THAT(read->tasks, ElementsAre("pour"));
  EXPECT_TRUE(read->statistics.is_null());
}

TEST(SideFilesReader, NamesFileAndLineOfWhatIsWrong) {
  const test::TempDir dir("side");
  EXPECT_EQ(read_side_files(dir.path()).status().code(), StatusCode::not_found);
  put(dir, kInfo, "{\"episode_index\": 0, \"length\": 7}\n{\"episode_index\": 2, \"length\": 7}\n");
  EXPECT_THAT(std::string(read_side_files(dir.path()).status().message()),
              HasSubstr("episodes.jsonl: line 2: episode_index: expected 1, found 2"));
  put(dir, kInfo, "{\"episode_index\": 0, \"length\": -7}\n");
  EXPECT_EQ(read_side_files(dir.path()).status().code(), StatusCode::data_loss);
  put(dir, "{\"fps\": 20, \"features\": {\"x\": {\"dtype\": \"complex\", \"shape\": [1]}}}", "");
  EXPECT_THAT(std::string(read_side_files(dir.path()).status().message()),
              HasSubstr("info.json: feature x: dtype"));
  put(dir, "[]", "");
  EXPECT_EQ(read_side_files(dir.path()).status().code(), StatusCode::data_loss);
}

}  // namespace
}  // namespace ropewalk
