#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/info_internal.h"
#include "ropewalk/dataset/lerobot/json_lines_internal.h"
#include "ropewalk/dataset/lerobot/layout_internal.h"

#include "tests/support/temp_dir.h"

namespace ropewalk::lerobot {
namespace {

TEST(PathTemplate, FormatsAsPythonDoes) {
  const auto data = *PathTemplate::parse(kDataPathV2);
  EXPECT_EQ(data.format({.episode_chunk = 1, .episode_index = 1234}),
            "data/chunk-001/episode_001234.parquet");
  EXPECT_EQ(data.format({.episode_chunk = 1000, .episode_index = 1'000'000}),
            "data/chunk-1000/episode_1000000.parquet");
  const auto video = *PathTemplate::parse(kVideoPathV3);
  EXPECT_EQ(video.format({.chunk_index = 2, .file_index = 3, .video_key = "a.b"}),
            "videos/a.b/chunk-002/file-003.mp4");
  EXPECT_EQ(PathTemplate::parse("{{{file_index}}}-{file_index:d}")->format({.file_index = 7}),
            "{7}-7");
  EXPECT_TRUE(video.uses("video_key"));
  EXPECT_FALSE(data.uses("video_key"));
}

TEST(PathTemplate, RefusesWhatItCannotFill) {
  for (const char* text : {"", "{", "a{b", "}", "{shard}", "{file_index:03x}",
                           "{file_index:99999999999d}", "{file_index:.3f}"}) {
    EXPECT_EQ(PathTemplate::parse(text).status().code(), StatusCode::invalid_argument) << text;
  }
}

TEST(CheckInsideRoot, RefusesEveryWayOut) {
  for (const char* path : {"", "/etc/passwd", "..", "a/../../b", "../a", "a/.."}) {
    EXPECT_EQ(check_inside_root(path).code(), StatusCode::permission_denied) << path;
  }
  EXPECT_FALSE(check_inside_root(std::string_view("a\0b", 3)).ok());
  for (const char* path : {"a", "a/b", "..a/b..", "a/.../b", "./a"}) {
    EXPECT_TRUE(check_inside_root(path).ok()) << path;
  }
}

TEST(ListChunkFiles, SortsByNumber) {
  test::TempDir dir;
  for (const char* path : {"data/chunk-1000/file-000.parquet", "data/chunk-101/file-010.parquet",
                           "data/chunk-101/file-9.parquet", "data/chunk-101/.hidden.parquet",
                           "data/chunk-101/file-1.txt"}) {
    test::write_file(dir / path, "x");
  }
  EXPECT_THAT(
      list_chunk_files(dir.path(), "data", ".parquet"),
      testing::ElementsAre("data/chunk-101/file-9.parquet", "data/chunk-101/file-010.parquet",
                           "data/chunk-1000/file-000.parquet"));
  EXPECT_TRUE(list_chunk_files(dir.path(), "none", ".parquet").empty());
}

TEST(ScanRow, FindsTheNumbersWithoutParsing) {
  const auto row = scan_row(R"({"tasks": ["a \" } , \\"], "x": {"length": 4, "y": [1, {"z": 2}]},)"
                            R"( "length": 12 , "episode_index":7})");
  EXPECT_TRUE(row.complete);
  EXPECT_EQ(row.length, 12);
  EXPECT_EQ(row.episode_index, 7);
  EXPECT_FALSE(scan_row(R"({"episode_index": 7, "len)").complete);
  EXPECT_FALSE(scan_row(R"({"episode_index": 7.5, "length": 1})").complete);
  EXPECT_FALSE(scan_row(R"({"\u006cength": 1})").complete);
  EXPECT_FALSE(scan_row(R"({"length": 1} x)").complete);
  EXPECT_FALSE(scan_row("").complete);
  EXPECT_EQ(scan_row(R"({"length": 1, "length": 2})").repeated, 1);
}

TEST(ForEachLine, SplitsAtLineFeedsAlone) {
  const std::string text =
      "\xEF\xBB\xBF"
      "a\xE2\x80\xA8"
      "b\x0b\r\n\nlast";
  const auto source = view_source(as_bytes(text));
  std::vector<std::string> lines;
  std::vector<LinePlace> places;
  bool mark = false;
  ASSERT_TRUE(for_each_line(*source, {}, &mark, [&](std::string_view line, LinePlace place) {
                lines.emplace_back(line);
                places.push_back(place);
                return ok_status();
              }).ok());
  EXPECT_TRUE(mark);
  EXPECT_THAT(lines, testing::ElementsAre("a\xE2\x80\xA8"
                                          "b\x0b",
                                          "", "last"));
  EXPECT_TRUE(places[1].terminated);
  EXPECT_FALSE(places[2].terminated);
  EXPECT_EQ(*read_line(*source, places[0]), lines[0]);
  EXPECT_EQ(*read_line(*source, places[2]), "last");
  Limits limits;
  limits.max_json_line_bytes = 3;
  const auto refused = for_each_line(*source, limits, nullptr,
                                     [](std::string_view, LinePlace) { return ok_status(); });
  EXPECT_EQ(refused.code(), StatusCode::resource_exhausted);
}

TEST(InterpretCameraShape, FindsHeightAndWidth) {
  const auto names = [](const std::string& text) { return *parse_json(text); };
  const auto shape = [](CameraShape s) { return std::vector{s.height, s.width, s.channels}; };
  using Extents = std::vector<std::int64_t>;
  EXPECT_EQ(shape(interpret_camera_shape({480, 640, 3}, {})), (Extents{480, 640, 3}));
  EXPECT_EQ(shape(interpret_camera_shape({3, 480, 640}, {})), (Extents{480, 640, 3}));
  EXPECT_TRUE(interpret_camera_shape({3, 480, 640}, {}).reordered);
  EXPECT_EQ(shape(interpret_camera_shape({640, 480, 3}, names(R"(["width","height","channel"])"))),
            (Extents{480, 640, 3}));
  EXPECT_EQ(shape(interpret_camera_shape({120, 160, 3}, names(R"(["channels","height","width"])"))),
            (Extents{120, 160, 3}));
  EXPECT_EQ(shape(interpret_camera_shape({480, 640, 1}, {})), (Extents{480, 640, 1}));
  EXPECT_EQ(shape(interpret_camera_shape({330, 415}, {})), (Extents{330, 415, 3}));
  EXPECT_FALSE(interpret_camera_shape({}, {}).valid);
  EXPECT_FALSE(interpret_camera_shape({0, 640, 3}, {}).valid);
}

}  // namespace
}  // namespace ropewalk::lerobot
