#include "ropewalk/episode/statistics.h"

#include <cmath>
#include <limits>

#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/episode/quantile_sketch.h"

#include "tests/support/memory_episode.h"

namespace ropewalk {
namespace {

using test::scalar_column;
using test::vector_column;

Feature vector_feature(std::string name, std::int64_t width) {
  return {.name = std::move(name), .dtype = DType::float32, .shape = {width}};
}

/// observation.state of the golden fixture: state[d] = index + d / 8.
std::shared_ptr<arrow::Array> golden_state(std::int64_t first, std::int64_t rows) {
  return vector_column(rows, 6, [first](std::int64_t row, int d) {
    return static_cast<float>(first + row) + static_cast<float>(d) / 8.0F;
  });
}

void expect_element_zero(const FeatureStatistics& found, double low, double high, double mean,
                         double std, const std::array<double, 5>& quantiles) {
  EXPECT_EQ(found.min[0], low);
  EXPECT_EQ(found.max[0], high);
  EXPECT_EQ(found.mean[0], mean);
  EXPECT_DOUBLE_EQ(found.std[0], std);
  for (std::size_t i = 0; i < quantiles.size(); ++i) {
    EXPECT_DOUBLE_EQ(found.quantiles[i][0], quantiles[i]) << kQuantileNames[i];
  }
}

TEST(Statistics, GivesTheGoldenTableToTheDigit) {
  const Feature state = vector_feature("observation.state", 6);
  Schema schema;
  schema.features.push_back(state);
  const StatisticsOptions options{.quantiles = true, .fold_leading_dimensions = true};
  StatisticsPool pool;
  std::vector<FeatureStatistics> episodes;
  for (const auto& [first, rows] : {std::pair<std::int64_t, std::int64_t>{0, 90}, {90, 60}}) {
    const auto column = golden_state(first, rows);
    auto found = column_statistics(*column, state, options);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    const auto batch = arrow::RecordBatch::Make(
        arrow::schema({arrow::field("observation.state", column->type())}), rows, {column});
    ASSERT_TRUE(pool.add_values(*batch, schema, options).ok());
    pool.add({{"observation.state", *found}});
    episodes.push_back(*found);
  }
  expect_element_zero(episodes[0], 0, 89, 44.5, 25.979158313283875, {0.89, 8.9, 44.5, 80.1, 88.11});
  expect_element_zero(episodes[1], 90, 149, 119.5, 17.318102282486574,
                      {90.59, 95.9, 119.5, 143.1, 148.41});
  const FeatureStatistics all = pool.result().at("observation.state");
  expect_element_zero(all, 0, 149, 74.5, 43.300307928081374, {1.49, 14.9, 74.5, 134.1, 147.51});
  EXPECT_EQ(all.count, 150);
  EXPECT_EQ(all.shape, std::vector<std::int64_t>{6});
  EXPECT_EQ(all.max[5], 149.625);
}

TEST(Statistics, KeepsPrecisionUnderALargeOffset) {
  const auto column = scalar_column<arrow::DoubleBuilder>(
      1000, [](std::int64_t row) { return 1.7e9 + static_cast<double>(row % 2) * 1e-3; });
  const Feature feature{.name = "t", .dtype = DType::float64, .shape = {1}};
  const auto found = column_statistics(*column, feature, {});
  ASSERT_TRUE(found.ok());
  // The step itself is rounded to the spacing of doubles at this offset, 2.4e-7.
  EXPECT_NEAR(found->std[0], 5e-4, 1.2e-7);
  EXPECT_FALSE(found->has_quantiles());
}

TEST(Statistics, LeavesOutWhatIsNotFinite) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::array<double, 4> values{1.0, nan, 3.0, std::numeric_limits<double>::infinity()};
  const auto column = scalar_column<arrow::DoubleBuilder>(
      4, [&](std::int64_t row) { return values[static_cast<std::size_t>(row)]; });
  const Feature feature{.name = "x", .dtype = DType::float64, .shape = {1}};
  auto found = column_statistics(*column, feature, {.quantiles = true});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->min[0], 1.0);
  EXPECT_EQ(found->max[0], 3.0);
  EXPECT_EQ(found->mean[0], 2.0);
  EXPECT_EQ(found->std[0], 1.0);
  EXPECT_EQ(found->quantiles[2][0], 2.0);
  EXPECT_EQ(found->count, 4);
  const auto none = scalar_column<arrow::DoubleBuilder>(3, [&](std::int64_t) { return nan; });
  found = column_statistics(*none, feature, {.quantiles = true});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->mean[0], 0.0);
}

TEST(Statistics, ReadsBooleansIntegersAndRefusesStrings) {
  const auto flags =
      scalar_column<arrow::BooleanBuilder>(10, [](std::int64_t row) { return row == 9; });
  auto found = column_statistics(
      *flags, {.name = "next.done", .dtype = DType::boolean, .shape = {1}}, {.quantiles = true});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->max[0], 1.0);
  EXPECT_DOUBLE_EQ(found->mean[0], 0.1);
  EXPECT_DOUBLE_EQ(found->std[0], 0.3);
  EXPECT_NEAR(found->quantiles[3][0], 0.1, 1e-12);
  EXPECT_NEAR(found->quantiles[4][0], 0.91, 1e-12);
  const auto negative =
      scalar_column<arrow::Int64Builder>(3, [](std::int64_t row) { return -5 - row; });
  found = column_statistics(*negative, {.name = "n", .dtype = DType::int64, .shape = {1}}, {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->min[0], -7.0);
  EXPECT_EQ(found->max[0], -5.0);
  const auto text = scalar_column<arrow::StringBuilder>(2, [](std::int64_t) { return "a"; });
  EXPECT_EQ(column_statistics(*text, {.name = "s", .dtype = DType::string, .shape = {1}}, {})
                .status()
                .code(),
            StatusCode::invalid_argument);
}

TEST(Statistics, RefusesNullsByNameOfTheFeature) {
  arrow::DoubleBuilder builder;
  ASSERT_TRUE(builder.Append(1.0).ok());
  ASSERT_TRUE(builder.AppendNull().ok());
  const auto column = builder.Finish().ValueOrDie();
  const auto found =
      column_statistics(*column, {.name = "gap", .dtype = DType::float64, .shape = {1}}, {});
  EXPECT_EQ(found.status().code(), StatusCode::data_loss);
  EXPECT_NE(found.status().message().find("gap"), std::string_view::npos);
}

TEST(Statistics, FoldsLeadingDimensionsForVersionThreeOnly) {
  // Two rows of a [2, 3] array holding 0..11.
  const auto flat =
      scalar_column<arrow::FloatBuilder>(12, [](std::int64_t i) { return static_cast<float>(i); });
  const auto inner = arrow::FixedSizeListArray::FromArrays(flat, 3).ValueOrDie();
  const auto outer = arrow::FixedSizeListArray::FromArrays(inner, 2).ValueOrDie();
  const Feature feature{.name = "m", .dtype = DType::float32, .shape = {2, 3}};
  auto found = column_statistics(*outer, feature, {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(found->mean, (std::vector<double>{3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(found->count, 2);
  found = column_statistics(*outer, feature, {.quantiles = true, .fold_leading_dimensions = true});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{3}));
  EXPECT_EQ(found->mean, (std::vector<double>{4.5, 5.5, 6.5}));
  EXPECT_EQ(found->quantiles[2], (std::vector<double>{4.5, 5.5, 6.5}));
  EXPECT_EQ(found->count, 2);
}

TEST(Statistics, AgreesWithAPlainLoopOnEveryWidth) {
  for (const int width : {1, 2, 3, 7, 14, 63, 64, 65, 130}) {
    for (const std::int64_t rows : {1, 2, 5, 63, 64, 199}) {
      const auto value = [](std::int64_t row, int d) {
        return std::sin(static_cast<float>(row * 31 + d * 7)) * static_cast<float>(d + 1);
      };
      const auto column = vector_column(rows, width, value);
      const auto found =
          column_statistics(*column, vector_feature("v", width), {.quantiles = true});
      ASSERT_TRUE(found.ok());
      for (int d = 0; d < width; ++d) {
        std::vector<double> plain;
        double sum = 0;
        for (std::int64_t row = 0; row < rows; ++row) {
          plain.push_back(static_cast<double>(value(row, d)));
          sum += plain.back();
        }
        std::sort(plain.begin(), plain.end());
        const double mean = sum / static_cast<double>(rows);
        double squares = 0;
        for (const double one : plain) squares += (one - mean) * (one - mean);
        const auto at = static_cast<std::size_t>(d);
        EXPECT_EQ(found->min[at], plain.front());
        EXPECT_EQ(found->max[at], plain.back());
        EXPECT_NEAR(found->mean[at], mean, 1e-12);
        EXPECT_NEAR(found->std[at], std::sqrt(squares / static_cast<double>(rows)), 1e-12);
        const double rank = 0.9 * static_cast<double>(rows - 1);
        const auto lower = static_cast<std::size_t>(rank);
        const double high = lower + 1 < plain.size() ? plain[lower + 1] : plain[lower];
        EXPECT_NEAR(found->quantiles[3][at],
                    plain[lower] + (high - plain[lower]) * (rank - std::floor(rank)), 1e-12);
      }
    }
  }
}

// Statistics kept for fewer rows than there are describe something else than this episode.
TEST(Statistics, BelievesWhatASourceKeepsOnlyWhereItCoversTheEpisode) {
  const auto row_of = [](double mean, std::int64_t count) {
    Json out = Json::object();
    for (const char* name : {"min", "max", "mean", "std"}) {
      out.set(name, Json(Json::Array{Json(mean)}));
    }
    out.set("count", Json(Json::Array{Json(count)}));
    return out;
  };
  test::MemoryEpisode episode;
  episode.schema_value.features = {
      vector_feature("whole", 1),
      vector_feature("part", 1),
      vector_feature("unknown", 1),
      {.name = "top", .kind = FeatureKind::video, .shape = {4, 4, 3}},
      {.name = "side", .kind = FeatureKind::video, .shape = {4, 4, 3}}};
  const auto column = scalar_column<arrow::FloatBuilder>(
      4, [](std::int64_t row) { return static_cast<float>(row); });
  arrow::FieldVector fields;
  for (const char* name : {"whole", "part", "unknown"}) {
    fields.push_back(arrow::field(name, column->type()));
  }
  episode.table = arrow::RecordBatch::Make(arrow::schema(fields), 4, {column, column, column});
  episode.statistics_value.set("whole", row_of(100, 4));
  episode.statistics_value.set("part", row_of(100, 3));
  episode.statistics_value.set("top", row_of(0.5, 1));
  const auto found =
      known_or_computed_statistics(episode, *episode.table, episode.schema_value,
                                   {"whole", "part", "unknown", "top", "side", "in no schema"});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  ASSERT_EQ(found->size(), 4U);
  EXPECT_EQ(found->at("whole").mean[0], 100);
  EXPECT_EQ(found->at("part").mean[0], 1.5);
  EXPECT_EQ(found->at("unknown").mean[0], 1.5);
  EXPECT_EQ(found->at("top").mean[0], 0.5);
}

TEST(SampledFrames, FollowsTheRuleOfTheFormat) {
  EXPECT_EQ(sampled_frames(0), std::vector<std::int64_t>{});
  EXPECT_EQ(sampled_frames(1), std::vector<std::int64_t>{0});
  EXPECT_EQ(sampled_frames(90).size(), 90U);
  EXPECT_EQ(sampled_frames(90)[89], 89);
  EXPECT_EQ(sampled_frames(398).size(), 100U);
  EXPECT_EQ(sampled_frames(1000).size(), 177U);
  EXPECT_EQ(sampled_frames(2000).size(), 299U);
  EXPECT_EQ(sampled_frames(5000).size(), 594U);
  EXPECT_EQ(sampled_frames(10000).size(), 1000U);
  EXPECT_EQ(sampled_frames(20000).size(), 1681U);
  // 397 / 99 = 4.0101…: the 50th lies at 200.505 and is rounded up; 2.5 would go to 2.
  EXPECT_EQ(sampled_frames(398)[50], 201);
  EXPECT_EQ(sampled_frames(398).back(), 397);
}

TEST(CameraStatistics, CountsSampledAndDownsampledPixels) {
  test::MemoryEpisode episode;
  episode.info_value.length = 200;
  // 320 wide: stride 2. Odd columns hold 255 and must not be seen.
  episode.cameras["top"] = {
      {.height = 4, .width = 320, .channels = 3}, [](std::int64_t ordinal, MutableByteSpan out) {
        for (std::size_t i = 0; i < out.size(); ++i) {
          const std::size_t x = i / 3 % 320;
          out[i] = x % 2 == 1 ? 255 : i % 3 == 2 ? 51 : static_cast<std::uint8_t>(ordinal);
        }
      }};
  const auto found = camera_statistics(episode, "top", {.quantiles = true});
  ASSERT_TRUE(found.ok()) << found.status().to_string();
  EXPECT_EQ(found->count, 100);
  EXPECT_EQ(found->shape, (std::vector<std::int64_t>{3, 1, 1}));
  EXPECT_EQ(found->min[0], 0.0);
  EXPECT_EQ(found->max[0], 199.0 / 255.0);
  EXPECT_DOUBLE_EQ(found->max[2], 0.2);
  EXPECT_DOUBLE_EQ(found->mean[2], 0.2);
  EXPECT_DOUBLE_EQ(found->std[2], 0.0);
  double mean = 0;
  for (const std::int64_t frame : sampled_frames(200)) mean += static_cast<double>(frame) / 100.0;
  EXPECT_DOUBLE_EQ(found->mean[0], mean / 255.0);
  EXPECT_NEAR(found->quantiles[2][0] * 255.0, 99.5, 1.0);
}

TEST(CameraStatistics, TellsOneChannelAsThree) {
  test::MemoryEpisode episode;
  episode.info_value.length = 3;
  episode.cameras["gray"] = {
      {.height = 2, .width = 2, .channels = 1},
      [](std::int64_t, MutableByteSpan out) { std::fill(out.begin(), out.end(), 102); }};
  const auto found = camera_statistics(episode, "gray", {});
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(found->mean, (std::vector<double>{0.4, 0.4, 0.4}));
}

TEST(StatisticsPool, MergesHistogramsOfCamerasExactly) {
  std::vector<std::uint64_t> dark(256, 0);
  std::vector<std::uint64_t> bright(256, 0);
  dark[0] = 30;
  bright[255] = 10;
  StatisticsPool pool;
  pool.add({{"cam", histogram_statistics(dark, 256, 3, {.quantiles = true})}});
  pool.add({{"cam", histogram_statistics(bright, 256, 1, {.quantiles = true})}});
  const FeatureStatistics all = pool.result().at("cam");
  EXPECT_EQ(all.count, 4);
  EXPECT_DOUBLE_EQ(all.mean[0], 0.25);
  EXPECT_DOUBLE_EQ(all.std[0], std::sqrt(0.25 * 0.75));
  EXPECT_EQ(all.quantiles[2][0], 0.0);
  EXPECT_EQ(all.quantiles[3][0], 1.0);
}

TEST(StatisticsPool, LeavesOutFeaturesWhoseShapeChanges) {
  StatisticsPool pool;
  FeatureStatistics one{
      .shape = {1}, .min = {0}, .max = {1}, .mean = {0.5}, .std = {0.5}, .count = 2};
  FeatureStatistics two{
      .shape = {2}, .min = {0, 0}, .max = {1, 1}, .mean = {0, 0}, .std = {0, 0}, .count = 2};
  pool.add({{"a", one}, {"b", one}});
  pool.add({{"a", two}, {"b", one}});
  EXPECT_FALSE(pool.result().contains("a"));
  EXPECT_EQ(pool.result().at("b").count, 4);
}

TEST(StatisticsJson, GoesRoundInUpstreamsNesting) {
  FeatureStatistics camera{.shape = {3, 1, 1},
                           .min = {0, 0, 0},
                           .max = {1, 1, 1},
                           .mean = {0.25, 0.5, 0.75},
                           .std = {0.1, 0.2, 0.3},
                           .count = 100};
  const Json json = statistics_to_json(StatisticsMap{{"cam", camera}});
  EXPECT_EQ(json.find("cam")->find("mean")->dump(), "[[[0.25]],[[0.5]],[[0.75]]]");
  EXPECT_EQ(json.find("cam")->find("count")->dump(), "[100]");
  const FeatureStatistics back = statistics_from_json(json).at("cam");
  EXPECT_EQ(back.shape, camera.shape);
  EXPECT_EQ(back.std, camera.std);
  EXPECT_EQ(back.count, 100);
  EXPECT_FALSE(back.has_quantiles());
  EXPECT_EQ(statistics_to_json(camera, false).find("count"), nullptr);
}

TEST(StatisticsJson, ReadsScalarsBooleansAndTellsWhatItCannot) {
  const Json json = *parse_json(
      R"({"s":{"min":1,"max":3,"mean":2.0,"std":0.5,"count":4},
          "b":{"min":[false],"max":[true],"mean":[0.5],"std":[0.5],"count":[2]},
          "nan":{"min":[NaN],"max":[1],"mean":[1],"std":[1],"count":[1]},
          "short":{"min":[0],"max":[1,2],"mean":[1],"std":[1]}})");
  Findings findings;
  const StatisticsMap found = statistics_from_json(json, &findings);
  EXPECT_EQ(found.at("s").max, std::vector<double>{3.0});
  EXPECT_EQ(found.at("s").count, 4);
  EXPECT_EQ(found.at("b").max, std::vector<double>{1.0});
  EXPECT_EQ(found.size(), 2U);
  EXPECT_EQ(findings.count("statistics_unreadable"), 2);
}

TEST(QuantileSketch, IsExactWhileSmallAndCloseWhenLarge) {
  constexpr std::array<double, 5> levels = kQuantileLevels;
  QuantileSketch small;
  for (int i = 149; i >= 0; --i) small.add(i);
  EXPECT_TRUE(small.is_exact());
  EXPECT_DOUBLE_EQ(small.quantiles(levels)[0], 1.49);

  const std::uint64_t count = 2'000'000;
  QuantileSketch whole;
  QuantileSketch left;
  QuantileSketch right;
  std::uint64_t value = 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    value = value * 6364136223846793005U + 1442695040888963407U;
    const double x = static_cast<double>(value >> 11) * 0x1p-53;  // uniform in [0, 1)
    whole.add(x);
    (i % 2 == 0 ? left : right).add(x);
  }
  left.merge(right);
  EXPECT_EQ(left.count(), count);
  for (const QuantileSketch* sketch : {&whole, &left}) {
    EXPECT_FALSE(sketch->is_exact());
    const std::vector<double> found = sketch->quantiles(levels);
    for (std::size_t i = 0; i < levels.size(); ++i) EXPECT_NEAR(found[i], levels[i], 2e-3);
  }
  // Sorted input is the hard case of a deterministic sketch.
  QuantileSketch sorted;
  for (std::uint64_t i = 0; i < count; ++i) sorted.add(static_cast<double>(i));
  const std::vector<double> found = sorted.quantiles(levels);
  for (std::size_t i = 0; i < levels.size(); ++i) {
    EXPECT_NEAR(found[i] / static_cast<double>(count), levels[i], 2e-3);
  }
  EXPECT_EQ(QuantileSketch().quantiles(levels), std::vector<double>(5, 0.0));
}

}  // namespace
}  // namespace ropewalk
