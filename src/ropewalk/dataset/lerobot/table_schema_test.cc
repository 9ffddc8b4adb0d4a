#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/table_schema_internal.h"

#include "tests/support/memory_episode.h"

namespace ropewalk::lerobot_internal {
namespace {

Schema schema_of(std::vector<Feature> features) {
  Schema out;
  out.features = std::move(features);
  return out;
}

TEST(TableSchema, DeclaresArraysTheWayTheDatasetsLibraryDoes) {
  Findings findings;
  const OutputTable table =
      plan_table(schema_of({{.name = "grid", .dtype = DType::float32, .shape = {4, 2}},
                            {.name = "deep", .dtype = DType::int16, .shape = {1, 2, 1, 1, 3, 1}},
                            {.name = "one", .dtype = DType::float64, .shape = {}},
                            {.name = "text", .dtype = DType::string, .shape = {1}}}),
                 nullptr, {}, findings);
  const auto grid = table.schema->GetFieldByName("grid");
  EXPECT_EQ(grid->type()->ToString(), "list<item: list<item: float>>");
  EXPECT_EQ(*grid->metadata()->Get("ARROW:extension:name"),
            "datasets.features.features.Array2DExtensionType");
  EXPECT_EQ(*grid->metadata()->Get("ARROW:extension:metadata"), R"([[4, 2], "float32"])");
  EXPECT_EQ(table.schema->GetFieldByName("deep")->type()->ToString(),
            "fixed_size_list<item: int16>[6]");
  EXPECT_EQ(table.features[1].feature.extra.find("original_shape")->dump(), "[1,2,1,1,3,1]");
  EXPECT_EQ(findings.count("feature_flattened"), 1);
  EXPECT_EQ(table.schema->GetFieldByName("one")->type()->ToString(), "double");
  EXPECT_EQ(table.schema->num_fields(), 9) << "the default five are added";
  const Json metadata = *parse_json(huggingface_metadata(table));
  const Json* features = metadata.find("info")->find("features");
  EXPECT_EQ(features->find("grid")->dump(),
            R"({"shape":[4,2],"dtype":"float32","_type":"Array2D"})");
  EXPECT_EQ(features->find("text")->dump(), R"({"dtype":"string","_type":"Value"})");
}

TEST(TableSchema, GivesValuesTheDeclaredTypeAndNesting) {
  Findings findings;
  const OutputTable table =
      plan_table(schema_of({{.name = "grid", .dtype = DType::float32, .shape = {2, 2}},
                            {.name = "state", .dtype = DType::float32, .shape = {2}},
                            {.name = "scalar", .dtype = DType::int64, .shape = {1}}}),
                 nullptr, {}, findings);
  const auto leaves = test::scalar_column<arrow::DoubleBuilder>(
      8, [](std::int64_t i) { return static_cast<double>(i); });
  const auto pairs = arrow::FixedSizeListArray::FromArrays(leaves, 2).ValueOrDie();
  const auto grids = arrow::FixedSizeListArray::FromArrays(pairs, 2).ValueOrDie();
  const auto state = arrow::FixedSizeListArray::FromArrays(leaves->Slice(4), 2).ValueOrDie();
  const auto ones = test::scalar_column<arrow::Int32Builder>(
      2, [](std::int64_t i) { return static_cast<std::int32_t>(i); });
  const auto boxed = arrow::FixedSizeListArray::FromArrays(ones, 1).ValueOrDie();
  const auto zero = test::scalar_column<arrow::Int64Builder>(2, [](std::int64_t) { return 0; });
  auto batch = arrow::RecordBatch::Make(
      arrow::schema(
          {arrow::field("scalar", boxed->type()), arrow::field("state", state->type()),
           arrow::field("grid", grids->type()), arrow::field("frame_index", arrow::int64()),
           arrow::field("episode_index", arrow::int64()), arrow::field("index", arrow::int64()),
           arrow::field("task_index", arrow::int64())}),
      2, {boxed, state, grids, zero, zero, zero, zero});
  const auto found = conform(table, *batch, {30, 1}, 3, findings);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ((*found)->column(0)->GetScalar(1).ValueOrDie()->ToString(),
            "list<item: list<item: float>>[list<item: float>[4, 5], list<item: float>[6, 7]]");
  EXPECT_EQ((*found)->column(1)->type()->ToString(), "fixed_size_list<item: float>[2]");
  EXPECT_EQ((*found)->column(2)->type()->ToString(), "int64");
  EXPECT_TRUE((*found)->ValidateFull().ok());

  batch = batch->RemoveColumn(1).ValueOrDie();
  const Status missing = conform(table, *batch, {30, 1}, 3, findings).status();
  EXPECT_EQ(missing.code(), StatusCode::data_loss);
  EXPECT_NE(missing.message().find("state"), std::string_view::npos);
}

TEST(TableSchema, KeepsInlineImagesAndTakesDirectoriesOffTheirPaths) {
  Findings findings;
  arrow::BinaryBuilder bytes;
  arrow::StringBuilder paths;
  ASSERT_TRUE(bytes.Append("png").ok() && paths.Append("images/cam/frame_000000.png").ok());
  const auto pictures =
      arrow::StructArray::Make({bytes.Finish().ValueOrDie(), paths.Finish().ValueOrDie()},
                               std::vector<std::string>{"bytes", "path"})
          .ValueOrDie();
  const auto zero = test::scalar_column<arrow::Int64Builder>(1, [](std::int64_t) { return 0; });
  const auto batch = arrow::RecordBatch::Make(
      arrow::schema(
          {arrow::field("cam", pictures->type()), arrow::field("frame_index", arrow::int64()),
           arrow::field("episode_index", arrow::int64()), arrow::field("index", arrow::int64()),
           arrow::field("task_index", arrow::int64())}),
      1, {pictures, zero, zero, zero, zero});
  const Schema schema = schema_of(
      {{.name = "cam", .kind = FeatureKind::image, .dtype = DType::uint8, .shape = {2, 2, 3}},
       {.name = "other", .kind = FeatureKind::image, .dtype = DType::uint8, .shape = {2, 2, 3}}});
  const OutputTable table = plan_table(schema, batch.get(), {}, findings);
  EXPECT_EQ(table.features[0].storage, Storage::inline_image);
  EXPECT_EQ(table.features[1].storage, Storage::video) << "there is no column of it";
  const auto found = conform(table, *batch, {30, 1}, 0, findings);
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ((*found)->column(0)->GetScalar(0).ValueOrDie()->ToString(),
            "{bytes:binary = png, path:string = frame_000000.png}");
}

TEST(TableSchema, KnowsTheLongestEpisodeThatUpstreamTakes) {
  // Spec: lerobot-formats 2.6.
  const std::vector<std::pair<std::int64_t, std::int64_t>> limits{
      {10, 20482}, {15, 15364}, {20, 40963},  {25, 51204},
      {30, 30728}, {50, 51204}, {60, 122882}, {100, 102407}};
  for (const auto& [fps, rows] : limits) {
    const auto times = test::scalar_column<arrow::FloatBuilder>(
        rows + 1,
        [rate = Rational{fps, 1}](std::int64_t row) { return frame_timestamp_f32(row, rate); });
    const auto batch = arrow::RecordBatch::Make(
        arrow::schema({arrow::field("timestamp", arrow::float32())}), rows + 1, {times});
    EXPECT_EQ(first_bad_step(*batch->Slice(0, rows), {fps, 1}), std::nullopt) << fps;
    EXPECT_EQ(first_bad_step(*batch, {fps, 1}), rows - 1) << fps;
  }
}

}  // namespace
}  // namespace ropewalk::lerobot_internal
