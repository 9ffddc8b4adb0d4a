#pragma once
// The golden fixture of the LeRobot formats as episodes in memory: 90 and 60 frames at 30 fps, one
// camera of 64 x 48 that shows the frame number in binary, state[d] = index + d / 8, action =
// -state. Spec: lerobot-formats 10.
#include <memory>

#include "tests/support/memory_episode.h"

namespace ropewalk::test {

inline constexpr const char* kGoldenCamera = "observation.images.top";

inline Schema golden_schema() {
  Schema schema;
  schema.fps = {30, 1};
  schema.robot_type = "golden";
  schema.features = {{.name = kGoldenCamera,
                      .kind = FeatureKind::video,
                      .dtype = DType::uint8,
                      .shape = {48, 64, 3}},
                     {.name = "observation.state", .dtype = DType::float32, .shape = {6}},
                     {.name = "action", .dtype = DType::float32, .shape = {6}},
                     {.name = "next.done", .dtype = DType::boolean, .shape = {1}}};
  for (const Feature& feature : default_features()) schema.features.push_back(feature);
  return schema;
}

/// Frame n as eight vertical bars of 8 x 48 pixels, most significant bit leftmost, white for 1.
inline void paint_number(std::int64_t number, MutableByteSpan out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t x = i / 3 % 64;
    out[i] = (number >> (7 - x / 8)) % 2 == 1 ? 255 : 0;
  }
}

/// An episode of `rows` frames whose first row is number `first` of the dataset.
inline std::unique_ptr<MemoryEpisode> golden_episode(std::int64_t index, std::int64_t first,
                                                     std::int64_t rows,
                                                     const std::string& task = "count") {
  auto out = std::make_unique<MemoryEpisode>();
  out->info_value = {.index = index, .length = rows, .tasks = {task}};
  out->info_value.row.set("episode_index", index);
  out->info_value.row.set("tasks", Json(Json::Array{Json(task)}));
  out->info_value.row.set("length", rows);
  out->schema_value = golden_schema();
  out->tasks = {{0, task}};
  const auto state = vector_column(rows, 6, [first](std::int64_t row, int d) {
    return static_cast<float>(first + row) + static_cast<float>(d) / 8.0F;
  });
  const auto action = vector_column(rows, 6, [first](std::int64_t row, int d) {
    return -static_cast<float>(first + row) - static_cast<float>(d) / 8.0F;
  });
  const auto done = scalar_column<arrow::BooleanBuilder>(
      rows, [rows](std::int64_t row) { return row + 1 == rows; });
  const auto times = scalar_column<arrow::FloatBuilder>(rows, [](std::int64_t row) {
    return frame_timestamp_f32(row, {30, 1});
  });
  const auto zero = scalar_column<arrow::Int64Builder>(rows, [](std::int64_t) { return 0; });
  out->table = arrow::RecordBatch::Make(
      arrow::schema(
          {arrow::field("observation.state", state->type()), arrow::field("action", action->type()),
           arrow::field("next.done", arrow::boolean()), arrow::field("timestamp", arrow::float32()),
           arrow::field("task_index", arrow::int64())}),
      rows, {state, action, done, times, zero});
  out->cameras[kGoldenCamera] = {{.height = 48, .width = 64, .channels = 3},
                                 [first](std::int64_t ordinal, MutableByteSpan pixels) {
                                   paint_number(first + ordinal, pixels);
                                 }};
  return out;
}

/// A source over episodes in memory.
class MemorySource : public EpisodeSource {
 public:
  std::vector<std::unique_ptr<MemoryEpisode>> episodes;
  Schema schema_value = golden_schema();

  const Schema& schema() const override { return schema_value; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "memory"; }
  std::int64_t size() const override { return static_cast<std::int64_t>(episodes.size()); }
  EpisodeInfo info(std::int64_t i) const override {
    return episodes[static_cast<std::size_t>(i)]->info();
  }
  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    return std::unique_ptr<Episode>(
        std::make_unique<MemoryEpisode>(*episodes[static_cast<std::size_t>(i)]));
  }

 private:
  std::string name_ = "memory";
};

/// Both episodes of the fixture.
inline MemorySource golden_source() {
  MemorySource source;
  source.episodes.push_back(golden_episode(0, 0, 90));
  source.episodes.push_back(golden_episode(1, 90, 60));
  return source;
}

}  // namespace ropewalk::test
