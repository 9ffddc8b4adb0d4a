#include "tests/hard_inputs/fixture.h"

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include <fmt/format.h>

#include "ropewalk/base/core/rational.h"
#include "ropewalk/format/image/image.h"
#include "ropewalk/format/parquet/parquet.h"
#include "ropewalk/format/video/encoder.h"

#include "tests/support/temp_dir.h"

namespace ropewalk::test {
namespace {

constexpr int kDims = 6;

void require(const Status& status) {
  if (!status.ok()) throw std::runtime_error(status.to_string());
}
template <typename T>
T require(Result<T> result) {
  require(result.status());
  return std::move(*result);
}
template <typename T>
T must(arrow::Result<T> result) {
  if (!result.ok()) throw std::runtime_error(result.status().ToString());
  return *result;
}
void must(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

template <typename Builder, typename Values>
std::shared_ptr<arrow::Array> built(const Values& values) {
  Builder builder;
  for (const auto& value : values) must(builder.Append(value));
  return must(builder.Finish());
}
template <typename Builder>
std::shared_ptr<arrow::Array> built_optional(
    const std::vector<std::optional<std::string>>& values) {
  Builder builder;
  for (const auto& value : values) {
    must(value ? builder.Append(*value) : builder.AppendNull());
  }
  return must(builder.Finish());
}

std::vector<std::int64_t> counting(std::int64_t first, std::int64_t count, std::int64_t step = 1) {
  std::vector<std::int64_t> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back(first + i * step);
  return out;
}

std::shared_ptr<arrow::Array> state_column(std::int64_t first, std::int64_t rows, float sign) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (int d = 0; d < kDims; ++d) {
      values.push_back(sign * (static_cast<float>(first + i) + static_cast<float>(d) / 8.0F));
    }
  }
  return fixed_list(float_array(values), kDims);
}

Json numbers(std::initializer_list<std::int64_t> values) {
  Json out = Json::array();
  for (const std::int64_t value : values) out.push_back(value);
  return out;
}

Json names(std::initializer_list<const char*> values) {
  Json out = Json::array();
  for (const char* value : values) out.push_back(value);
  return out;
}

Json entry(const std::string& dtype, const Json& shape, const Json& feature_names) {
  Json out = Json::object();
  out.set("dtype", dtype);
  out.set("shape", shape);
  out.set("names", feature_names);
  return out;
}

/// Statistics of the right shape for every numeric feature.
Json some_statistics(const Fixture& fixture) {
  Json out = Json::object();
  const Json* features = fixture.info.find("features");
  if (features == nullptr) return out;
  for (const auto& [name, feature] : *features->as_object()) {
    const std::string dtype = feature.get_string("dtype").value_or("");
    if (dtype == "string") continue;
    Json value = Json::array();
    if (dtype == "video" || dtype == "image") {
      Json one = Json::array();
      one.push_back(0.5);
      Json channel = Json::array();
      channel.push_back(one);
      for (int c = 0; c < 3; ++c) value.push_back(channel);
    } else {
      std::int64_t elements = 1;
      if (const Json* shape = feature.find("shape"); shape != nullptr && shape->as_array()) {
        for (const Json& extent : *shape->as_array()) elements *= extent.as_int64().value_or(1);
      }
      for (std::int64_t i = 0; i < std::min<std::int64_t>(elements, 64); ++i) value.push_back(0.5);
    }
    Json stats = Json::object();
    for (const char* part : {"min", "max", "mean", "std"}) stats.set(part, value);
    stats.set("count", numbers({9}));
    out.set(name, stats);
  }
  return out;
}

void apply_files(const Fixture& fixture, const std::filesystem::path& root) {
  for (const auto& [path, text] : fixture.files) write_file(root / path, text);
  for (const std::string& path : fixture.removed) std::filesystem::remove_all(root / path);
}

}  // namespace

std::shared_ptr<arrow::Array> int64_array(const std::vector<std::int64_t>& values) {
  return built<arrow::Int64Builder>(values);
}
std::shared_ptr<arrow::Array> float_array(const std::vector<float>& values) {
  return built<arrow::FloatBuilder>(values);
}
std::shared_ptr<arrow::Array> double_array(const std::vector<double>& values) {
  return built<arrow::DoubleBuilder>(values);
}
std::shared_ptr<arrow::Array> bool_array(const std::vector<bool>& values) {
  return built<arrow::BooleanBuilder>(values);
}
std::shared_ptr<arrow::Array> string_array(const std::vector<std::optional<std::string>>& values) {
  return built_optional<arrow::StringBuilder>(values);
}
std::shared_ptr<arrow::Array> binary_array(const std::vector<std::optional<std::string>>& values) {
  return built_optional<arrow::BinaryBuilder>(values);
}
std::shared_ptr<arrow::Array> fixed_list(std::shared_ptr<arrow::Array> values, int each) {
  return std::make_shared<arrow::FixedSizeListArray>(arrow::fixed_size_list(values->type(), each),
                                                     values->length() / each, values);
}
std::shared_ptr<arrow::Array> variable_list(const std::shared_ptr<arrow::Array>& values, int each) {
  arrow::Int32Builder offsets;
  for (std::int64_t i = 0; i <= values->length(); i += each) {
    must(offsets.Append(static_cast<std::int32_t>(i)));
  }
  return must(arrow::ListArray::FromArrays(*must(offsets.Finish()), *values));
}
std::shared_ptr<arrow::Array> large_list(const std::shared_ptr<arrow::Array>& values, int each) {
  return must(arrow::LargeListArray::FromArrays(
      *int64_array(counting(0, values->length() / each + 1, each)), *values));
}
std::shared_ptr<arrow::Array> image_array(const std::vector<std::optional<std::string>>& bytes,
                                          const std::vector<std::optional<std::string>>& paths) {
  return must(arrow::StructArray::Make({binary_array(bytes), string_array(paths)},
                                       std::vector<std::string>{"bytes", "path"}));
}

std::string png_bytes(int width, int height, int number) {
  const FrameShape shape{.height = height, .width = width, .channels = 3, .bytes_per_sample = 1};
  const Bytes pixels(shape.frame_bytes(), static_cast<std::uint8_t>(number * 7 % 256));
  const Bytes out = require(encode_png(shape, pixels));
  return {out.begin(), out.end()};
}
std::string jpeg_bytes(int width, int height, int number) {
  const FrameShape shape{.height = height, .width = width, .channels = 3, .bytes_per_sample = 1};
  const Bytes pixels(shape.frame_bytes(), static_cast<std::uint8_t>(number * 7 % 256));
  const Bytes out = require(encode_jpeg(shape, pixels));
  return {out.begin(), out.end()};
}

void write_video(const std::filesystem::path& path, int width, int height, double fps,
                 std::int64_t first, std::int64_t frames) {
  std::filesystem::create_directories(path.parent_path());
  const auto sink = require(create_sink(path));
  auto encoder = require(VideoEncoder::create(
      *sink, width, height, require(rational_from_rate(fps)), {.preset = "ultrafast", .gop = 2}));
  Bytes pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  for (std::int64_t k = 0; k < frames; ++k) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const int bit = 7 - x * 8 / width;
        const bool on = ((first + k) >> bit & 1) != 0;
        for (int c = 0; c < 3; ++c) {
          pixels[static_cast<std::size_t>((y * width + x) * 3 + c)] = on ? 255 : 0;
        }
      }
    }
    require(encoder->write(pixels));
  }
  require(encoder->finish());
  require(sink->close());
}

void write_parquet(const std::filesystem::path& path, const Columns& columns,
                   const std::vector<std::int64_t>& group_rows) {
  std::filesystem::create_directories(path.parent_path());
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& [name, array] : columns) {
    fields.push_back(arrow::field(name, array->type()));
    arrays.push_back(array);
  }
  const std::int64_t rows = arrays.empty() ? 0 : arrays.front()->length();
  const auto schema = arrow::schema(fields);
  auto writer = require(ParquetWriter::create(path, schema));
  const auto batch = arrow::RecordBatch::Make(schema, rows, arrays);
  std::int64_t at = 0;
  for (const std::int64_t group : group_rows) {
    require(writer->write_row_group(*batch->Slice(at, group)));
    at += group;
  }
  if (at < rows || group_rows.empty()) require(writer->write_row_group(*batch->Slice(at)));
  require(writer->close());
}

bool run_ffmpeg(const std::string& arguments) {
  const std::string command = "ffmpeg -hide_banner -loglevel error -nostdin -y " + arguments;
  return std::system(command.c_str()) == 0;  // NOLINT(cert-env33-c): a test's own arguments
}

Fixture make_fixture(const std::vector<std::int64_t>& lengths) {
  Fixture out;
  out.tasks = {{0, "Put the bar into the box."}};
  out.cameras = {"observation.images.top"};
  std::int64_t frames = 0;
  for (const std::int64_t length : lengths) frames += length;
  const auto count = static_cast<std::int64_t>(lengths.size());
  Json info = Json::object();
  info.set("codebase_version", "v2.1");
  info.set("robot_type", "g1");
  info.set("total_episodes", count);
  info.set("total_frames", frames);
  info.set("total_tasks", 1);
  info.set("total_videos", count);
  info.set("total_chunks", 1);
  info.set("chunks_size", 1000);
  info.set("fps", 30);
  info.set("splits", Json(Json::Object{{"train", Json(fmt::format("0:{}", count))}}));
  info.set("data_path", "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet");
  info.set("video_path",
           "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4");
  info.set("features", Json::object());
  out.info = info;
  const Json motors = names({"a", "b", "c", "d", "e", "f"});
  out.add_feature("observation.state", "float32", numbers({kDims}), motors);
  out.add_feature("action", "float32", numbers({kDims}), motors);
  out.add_feature("next.done", "bool", numbers({1}));
  out.add_feature("observation.images.top", "video", numbers({48, 64, 3}),
                  names({"height", "width", "channels"}));
  out.add_feature("timestamp", "float32", numbers({1}));
  for (const char* name : {"frame_index", "episode_index", "index", "task_index"}) {
    out.add_feature(name, "int64", numbers({1}));
  }

  std::int64_t first = 0;
  for (std::int64_t e = 0; e < count; ++e) {
    const std::int64_t rows = lengths[static_cast<std::size_t>(e)];
    FixtureEpisode episode;
    episode.index = e;
    episode.frames = rows;
    std::vector<float> stamps;
    std::vector<bool> done;
    for (std::int64_t i = 0; i < rows; ++i) {
      stamps.push_back(frame_timestamp_f32(i, {30, 1}));
      done.push_back(i + 1 == rows);
    }
    const std::vector<std::int64_t> zeros(static_cast<std::size_t>(rows), 0);
    episode.columns = {{"observation.state", state_column(first, rows, 1)},
                       {"action", state_column(first, rows, -1)},
                       {"next.done", bool_array(done)},
                       {"timestamp", float_array(stamps)},
                       {"frame_index", int64_array(counting(0, rows))},
                       {"episode_index", int64_array(counting(e, rows, 0))},
                       {"index", int64_array(counting(first, rows))},
                       {"task_index", int64_array(zeros)}};
    episode.row.set("episode_index", e);
    episode.row.set("tasks", Json(Json::Array{Json(out.tasks[0].second)}));
    episode.row.set("length", rows);
    out.episodes.push_back(std::move(episode));
    first += rows;
  }
  return out;
}

void Fixture::add_feature(const std::string& name, const std::string& dtype, const Json& shape,
                          const Json& feature_names) {
  info.find("features")->set(name, entry(dtype, shape, feature_names));
}

void Fixture::set_column(
    const std::string& name,
    const std::function<std::shared_ptr<arrow::Array>(const FixtureEpisode&)>& make) {
  for (FixtureEpisode& episode : episodes) {
    auto column = make(episode);
    bool replaced = false;
    for (auto& [known, array] : episode.columns) {
      if (known != name) continue;
      array = column;
      replaced = true;
    }
    if (!replaced) episode.columns.emplace_back(name, column);
  }
}

void Fixture::remove_column(const std::string& name) {
  for (FixtureEpisode& episode : episodes) {
    std::erase_if(episode.columns, [&](const auto& column) { return column.first == name; });
  }
}

void Fixture::write_v21(const std::filesystem::path& root) const {
  write_file(root / "meta/info.json", info.dump(4));
  std::string task_lines;
  for (const auto& [index, text] : tasks) {
    Json line = Json::object();
    line.set("task_index", index);
    line.set("task", text);
    task_lines += line.dump() + "\n";
  }
  write_file(root / "meta/tasks.jsonl", task_lines);
  std::string rows;
  std::string statistics;
  const Json some = some_statistics(*this);
  const std::int64_t given = info.get_int64("chunks_size").value_or(1000);
  const std::int64_t chunk_size = given > 0 ? given : 1000;
  for (const FixtureEpisode& episode : episodes) {
    rows += episode.row.dump() + "\n";
    Json line = Json::object();
    line.set("episode_index", episode.index);
    line.set("stats", episode.statistics.is_null() ? some : episode.statistics);
    statistics += line.dump() + "\n";
    const std::int64_t chunk = episode.index / chunk_size;
    if (episode.has_table) {
      write_parquet(
          root / fmt::format("data/chunk-{:03}/episode_{:06}.parquet", chunk, episode.index),
          episode.columns);
    }
    if (episode.has_videos && episode.frames > 0) {
      for (const std::string& camera : cameras) {
        write_video(root / fmt::format("videos/chunk-{:03}/{}/episode_{:06}.mp4", chunk, camera,
                                       episode.index),
                    width, height, fps, 0, episode.frames);
      }
    }
  }
  write_file(root / "meta/episodes.jsonl", rows);
  if (has_statistics) write_file(root / "meta/episodes_stats.jsonl", statistics);
  apply_files(*this, root);
}

void Fixture::write_v3(const std::filesystem::path& root) const {
  Json document = info;
  if (document.get_string("codebase_version") == "v2.1") document.set("codebase_version", "v3.0");
  document.erase("total_chunks");
  document.erase("total_videos");
  document.set("data_files_size_in_mb", 100);
  document.set("video_files_size_in_mb", 200);
  document.set("data_path", "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet");
  document.set("video_path",
               "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4");
  write_file(root / "meta/info.json", document.dump(4));
  std::vector<std::int64_t> task_numbers;
  std::vector<std::optional<std::string>> task_texts;
  for (const auto& [index, text] : tasks) {
    task_numbers.push_back(index);
    task_texts.emplace_back(text);
  }
  write_parquet(root / "meta/tasks.parquet",
                {{"task_index", int64_array(task_numbers)}, {"task", string_array(task_texts)}});

  std::vector<std::int64_t> index, length, from, to, group_rows;
  std::vector<double> from_s, to_s;
  std::vector<std::optional<std::string>> texts;
  std::int64_t row = 0;
  std::int64_t frame = 0;
  arrow::ArrayVector parts;
  Columns data;
  for (const FixtureEpisode& episode : episodes) {
    const std::int64_t rows = episode.columns.front().second->length();
    index.push_back(episode.index);
    length.push_back(rows);
    from.push_back(row);
    to.push_back(row + rows);
    from_s.push_back(static_cast<double>(frame) / fps);
    to_s.push_back(static_cast<double>(frame + episode.frames) / fps);
    texts.emplace_back(tasks.empty() ? "" : tasks.front().second);
    row += rows;
    frame += episode.frames;
    if (episode.has_table) group_rows.push_back(rows);
  }
  for (const auto& [name, array] : episodes.front().columns) {
    arrow::ArrayVector pieces;
    for (const FixtureEpisode& episode : episodes) {
      if (!episode.has_table) continue;
      for (const auto& [other, column] : episode.columns) {
        if (other == name) pieces.push_back(column);
      }
    }
    if (!pieces.empty()) data.emplace_back(name, must(arrow::Concatenate(pieces)));
  }
  if (!data.empty()) write_parquet(root / "data/chunk-000/file-000.parquet", data, group_rows);
  const std::vector<std::int64_t> zeros(episodes.size(), 0);
  Columns meta = {
      {"episode_index", int64_array(index)},   {"tasks", variable_list(string_array(texts), 1)},
      {"length", int64_array(length)},         {"data/chunk_index", int64_array(zeros)},
      {"data/file_index", int64_array(zeros)}, {"dataset_from_index", int64_array(from)},
      {"dataset_to_index", int64_array(to)}};
  for (const std::string& camera : cameras) {
    meta.emplace_back("videos/" + camera + "/chunk_index", int64_array(zeros));
    meta.emplace_back("videos/" + camera + "/file_index", int64_array(zeros));
    meta.emplace_back("videos/" + camera + "/from_timestamp", double_array(from_s));
    meta.emplace_back("videos/" + camera + "/to_timestamp", double_array(to_s));
    write_video(root / ("videos/" + camera + "/chunk-000/file-000.mp4"), width, height, fps, 0,
                frame);
  }
  if (has_statistics) {
    const Json some = some_statistics(*this);
    Json global = Json::object();
    for (const auto& [name, stats] : *some.as_object()) {
      const bool camera = stats.find("min")->as_array()->front().is_array();
      Json entry_json = stats;
      for (const char* part : {"q01", "q10", "q50", "q90", "q99"}) {
        entry_json.set(part, *stats.find("mean"));
      }
      global.set(name, entry_json);
      if (camera) {
        for (const char* part : {"min", "max", "mean", "std"}) {
          const std::vector<double> values(episodes.size() * 3, 0.5);
          meta.emplace_back(
              fmt::format("stats/{}/{}", name, part),
              variable_list(variable_list(variable_list(double_array(values), 1), 1), 3));
        }
      } else {
        const auto each = static_cast<int>(stats.find("min")->size());
        const std::vector<double> values(episodes.size() * static_cast<std::size_t>(each), 0.5);
        for (const char* part : {"min", "max", "mean", "std", "q01", "q10", "q50", "q90", "q99"}) {
          meta.emplace_back(fmt::format("stats/{}/{}", name, part),
                            variable_list(double_array(values), each));
        }
      }
      meta.emplace_back(fmt::format("stats/{}/count", name), variable_list(int64_array(length), 1));
    }
    write_file(root / "meta/stats.json", global.dump(4));
  }
  meta.emplace_back("meta/episodes/chunk_index", int64_array(zeros));
  meta.emplace_back("meta/episodes/file_index", int64_array(zeros));
  write_parquet(root / "meta/episodes/chunk-000/file-000.parquet", meta);
  apply_files(*this, root);
}

}  // namespace ropewalk::test
