#pragma once
// Fixture: a small LeRobot dataset built in memory, changed by a test, and written to a directory.
// Its values follow the golden fixture of the format's specification: state[d] = index + d/8,
// action[d] = -(index + d/8), next.done on the last row, frame n shows n in eight bars.
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>

#include "ropewalk/base/core/json.h"

namespace ropewalk::test {

using Columns = std::vector<std::pair<std::string, std::shared_ptr<arrow::Array>>>;

/// One episode as it will lie in files.
struct FixtureEpisode {
  std::int64_t index = 0;
  Columns columns;
  std::int64_t frames = 0;  ///< of its videos
  bool has_table = true;
  bool has_videos = true;
  Json row;  ///< of episodes.jsonl
  Json statistics;
};

/// A dataset of format v2.1, or of v3.0 when written with write_v3.
struct Fixture {
  Json info;
  std::vector<FixtureEpisode> episodes;
  std::vector<std::pair<std::int64_t, std::string>> tasks;
  std::vector<std::string> cameras;  ///< of kind video
  double fps = 30;
  int width = 64;
  int height = 48;
  bool has_statistics = true;
  /// Whole files in place of what would be made, by path below the root; applied last.
  std::vector<std::pair<std::string, std::string>> files;
  std::vector<std::string> removed;

  FixtureEpisode& episode(std::size_t i) { return episodes[i]; }
  Json& feature(const std::string& name) { return *info.find("features")->find(name); }
  void add_feature(const std::string& name, const std::string& dtype, const Json& shape,
                   const Json& names = {});
  /// Adds or replaces a column of every episode.
  void set_column(const std::string& name,
                  const std::function<std::shared_ptr<arrow::Array>(const FixtureEpisode&)>& make);
  void remove_column(const std::string& name);

  void write_v21(const std::filesystem::path& root) const;
  /// One data file and one video file per camera hold all episodes.
  void write_v3(const std::filesystem::path& root) const;
};

/// Episodes of these lengths, numbered from 0, one task, one camera `observation.images.top`.
Fixture make_fixture(const std::vector<std::int64_t>& lengths = {9, 6});

std::shared_ptr<arrow::Array> int64_array(const std::vector<std::int64_t>& values);
std::shared_ptr<arrow::Array> float_array(const std::vector<float>& values);
std::shared_ptr<arrow::Array> double_array(const std::vector<double>& values);
std::shared_ptr<arrow::Array> bool_array(const std::vector<bool>& values);
/// nullopt stands for null.
std::shared_ptr<arrow::Array> string_array(const std::vector<std::optional<std::string>>& values);
std::shared_ptr<arrow::Array> binary_array(const std::vector<std::optional<std::string>>& values);
std::shared_ptr<arrow::Array> fixed_list(std::shared_ptr<arrow::Array> values, int each);
std::shared_ptr<arrow::Array> variable_list(const std::shared_ptr<arrow::Array>& values, int each);
std::shared_ptr<arrow::Array> large_list(const std::shared_ptr<arrow::Array>& values, int each);
/// struct<bytes, path>.
std::shared_ptr<arrow::Array> image_array(const std::vector<std::optional<std::string>>& bytes,
                                          const std::vector<std::optional<std::string>>& paths);
/// A PNG or JPEG of one colour that depends on `number`.
std::string png_bytes(int width, int height, int number);
std::string jpeg_bytes(int width, int height, int number);

/// Writes an H.264 clip, g = 2; frame k shows `first + k`.
void write_video(const std::filesystem::path& path, int width, int height, double fps,
                 std::int64_t first, std::int64_t frames);
void write_parquet(const std::filesystem::path& path, const Columns& columns,
                   const std::vector<std::int64_t>& group_rows = {});
/// Runs ffmpeg quietly; false when it is not there or fails.
bool run_ffmpeg(const std::string& arguments);

}  // namespace ropewalk::test
