#include "ropewalk/episode/numbering.h"

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "tests/support/memory_episode.h"

namespace ropewalk {
namespace {

using test::MemoryEpisode;
using test::scalar_column;

/// An episode numbered 7 in its source whose rows carry `task_of(row)` as task_index.
MemoryEpisode episode_with(std::int64_t rows, std::vector<std::string> tasks,
                           const std::function<std::int64_t(std::int64_t)>& task_of) {
  MemoryEpisode out;
  out.info_value = {.index = 7, .length = rows, .tasks = std::move(tasks)};
  out.info_value.row = *parse_json(
      R"({"episode_index":7,"quality":"green","tasks":["x"],"length":1,"custom":{"a":1}})");
  const auto index =
      scalar_column<arrow::Int64Builder>(rows, [](std::int64_t row) { return 1000 + row; });
  const auto task = scalar_column<arrow::Int64Builder>(rows, task_of);
  const auto value = scalar_column<arrow::FloatBuilder>(
      rows, [](std::int64_t row) { return static_cast<float>(row) / 2.0F; });
  out.table = arrow::RecordBatch::Make(
      arrow::schema({arrow::field("value", arrow::float32()), arrow::field("index", arrow::int64()),
                     arrow::field("task_index", arrow::int64())}),
      rows, {value, index, task});
  return out;
}

std::vector<std::int64_t> values_of(const NumberedEpisode& episode, const std::string& column) {
  const auto found = episode.columns->GetColumnByName(column);
  const auto& array = static_cast<const arrow::Int64Array&>(*found);
  return {array.raw_values(), array.raw_values() + array.length()};
}

TEST(Numbering, NumbersRowsOverAllEpisodes) {
  Numbering numbering;
  for (std::int64_t i = 0; i < 2; ++i) {
    MemoryEpisode episode = episode_with(3, {"pick"}, [](std::int64_t) { return 4; });
    episode.tasks = {{4, "pick"}};
    const auto found = numbering.number(episode);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    EXPECT_EQ(found->episode_index, i);
    EXPECT_EQ(found->index_begin, i * 3);
    EXPECT_EQ(values_of(*found, "index"), (std::vector<std::int64_t>{i * 3, i * 3 + 1, i * 3 + 2}));
    EXPECT_EQ(values_of(*found, "frame_index"), (std::vector<std::int64_t>{0, 1, 2}));
    EXPECT_EQ(values_of(*found, "episode_index"), (std::vector<std::int64_t>{i, i, i}));
    EXPECT_EQ(found->columns->column_name(0), "value") << "other columns keep their place";
    EXPECT_EQ(found->columns->column_name(1), "index");
    const auto& kept =
        static_cast<const arrow::FloatArray&>(*found->columns->GetColumnByName("value"));
    EXPECT_EQ(kept.Value(2), 1.0F);
  }
  EXPECT_EQ(numbering.episodes(), 2);
  EXPECT_EQ(numbering.frames(), 6);
}

TEST(Numbering, RegistersTasksOfTheRowBeforeThoseOfTheFrames) {
  Numbering numbering;
  MemoryEpisode episode =
      episode_with(4, {"second", "first"}, [](std::int64_t row) { return row < 2 ? 9 : 3; });
  episode.tasks = {{9, "third"}, {3, "first"}};
  const auto found = numbering.number(episode);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(numbering.tasks(), (std::vector<std::string>{"second", "first", "third"}));
  EXPECT_EQ(found->tasks, (std::vector<std::string>{"second", "first", "third"}));
  EXPECT_EQ(values_of(*found, "task_index"), (std::vector<std::int64_t>{2, 2, 1, 1}));
  EXPECT_EQ(found->row.dump(),
            R"({"episode_index":0,"quality":"green","tasks":["second","first","third"],"length":4,)"
            R"("custom":{"a":1}})");
}

TEST(Numbering, GivesTheEmptyTaskWhereThereIsNone) {
  Numbering numbering;
  MemoryEpisode episode = episode_with(2, {}, [](std::int64_t) { return 0; });
  episode.table = episode.table->RemoveColumn(2).ValueOrDie();
  const auto found = numbering.number(episode);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(numbering.tasks(), std::vector<std::string>{""});
  EXPECT_EQ(values_of(*found, "task_index"), (std::vector<std::int64_t>{0, 0}));
}

TEST(Numbering, RefusesATaskWithoutTextAndAWrongLength) {
  Numbering numbering;
  MemoryEpisode episode = episode_with(2, {"pick"}, [](std::int64_t row) { return row; });
  episode.tasks = {{0, "pick"}};
  Status status = numbering.number(episode).status();
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("episode 7: row 1"), std::string_view::npos)
      << status.to_string();
  episode = episode_with(2, {"pick"}, [](std::int64_t) { return 0; });
  episode.info_value.length = 2;
  episode.table = episode.table->Slice(0, 1);
  EXPECT_EQ(numbering.number(episode).status().code(), StatusCode::data_loss);
}

}  // namespace
}  // namespace ropewalk
