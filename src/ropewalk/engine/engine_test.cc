#include <gtest/gtest.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/engine/marker.h"
#include "ropewalk/engine/open.h"
#include "ropewalk/engine/sinks.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

TEST(SplitMarker, KeepsEveryMemberAndReadsMarkersOfOthers) {
  const SplitMarker marker{.source_dir = "/data/raw",
                           .subset = "accepted",
                           .dataset_format = "mcap",
                           .rule = "r",
                           .source_episode_indices = {0, 3},
                           .episode_selection = "latest_per_slot",
                           .export_id = "id",
                           .source_revision = 7,
                           .source_digest = "d",
                           .exported_at = "t",
                           .generator = "g",
                           .counts = {2, 1, 40, 20, 1}};
  const auto read = split_marker_from_json(to_json(marker));
  ASSERT_TRUE(read.ok()) << read.status().to_string();
  EXPECT_EQ(to_json(*read), to_json(marker));

  const auto old = split_marker_from_json(*parse_json(
      R"({"source_dir":"/x","subset":"rejected","dataset_format":"hdf5","rule":"quality == red OR qc_verdict == fail","source_episode_indices":[5]})"));
  ASSERT_TRUE(old.ok()) << old.status().to_string();
  EXPECT_TRUE(old->export_id.empty());
  EXPECT_EQ(old->source_revision, std::nullopt);
  EXPECT_FALSE(split_marker_from_json(*parse_json(R"({"subset":"both"})")).ok());
}

TEST(SinkOptions, NamesWhatAFormatHas) {
  EXPECT_TRUE(validate_sink_options("hdf5", {.compression = "gzip:9"}).ok());
  EXPECT_TRUE(validate_sink_options("mcap", {.compression = "zstd"}).ok());
  EXPECT_TRUE(validate_sink_options("lerobot_v3", {.compression = "none"}).ok());
  for (const auto& [format, compression] :
       std::initializer_list<std::pair<const char*, const char*>>{{"hdf5", "gzip:10"},
                                                                  {"hdf5", "zstd"},
                                                                  {"mcap", "gzip"},
                                                                  {"lerobot_v3", "zstd"},
                                                                  {"lerobot_v2", "none"}}) {
    EXPECT_EQ(validate_sink_options(format, {.compression = compression}).code(),
              StatusCode::invalid_argument)
        << format << " " << compression;
  }
}

TEST(Identify, SaysWhatWasLookedFor) {
  const test::TempDir dir;
  EXPECT_EQ(identify(dir.path() / "nothing").status().code(), StatusCode::not_found);
  ASSERT_TRUE(write_new_file(dir.path() / "note.txt", as_bytes("hello, world")).ok());
  EXPECT_EQ(identify(dir.path() / "note.txt").status().code(), StatusCode::failed_precondition);
  ASSERT_TRUE(
      write_new_file(dir.path() / "episode.mcap", as_bytes(std::string_view("\x89MCAP0\r\n", 8)))
          .ok());
  EXPECT_EQ(*identify(dir.path() / "episode.mcap"), PathKind::mcap_episode);
  ASSERT_TRUE(make_directories(dir.path() / "a/accepted/meta").ok());
  ASSERT_TRUE(make_directories(dir.path() / "a/rejected/meta").ok());
  EXPECT_EQ(*identify(dir.path() / "a"), PathKind::export_pair);
  EXPECT_EQ(open_dataset(dir.path() / "a").status().code(), StatusCode::failed_precondition);
  ASSERT_TRUE(make_directories(dir.path() / "h/meta").ok());
  ASSERT_TRUE(write_new_file(dir.path() / "h/meta/info.json",
                             as_bytes(R"({"codebase_version":"hdf5","dataset_format":"hdf5"})"))
                  .ok());
  EXPECT_EQ(*identify(dir.path() / "h"), PathKind::hdf5_dataset);
}

}  // namespace
}  // namespace ropewalk
