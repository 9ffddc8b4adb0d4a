// Every hard input is written, checked in both modes, and its whole report compared with the one in
// expected/. With ROPEWALK_WRITE_EXPECTED set the reports are written instead: read them before
// they are committed.
#include <cstdlib>
#include <regex>

#include <arrow/api.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/dataset/lerobot/check.h"

#include "tests/hard_inputs/fixture.h"
#include "tests/hard_inputs/reports.h"
#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk::test {
namespace {

std::vector<HardInput> all_inputs() {
  std::vector<HardInput> out;
  for (auto part : {metadata_inputs(), content_inputs(), file_inputs()}) {
    for (HardInput& input : part) out.push_back(std::move(input));
  }
  return out;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.replace(at, what.size(), by);
  }
  return text;
}

std::string report_text(const std::filesystem::path& root, bool strict) {
  const auto report = check_dataset(root, {.strict = strict, .decode = true}, {});
  if (!report.ok()) return report.status().to_string() + "\n";
  std::string out = fmt::format(
      "{} mode: {}, {} of {} episodes, {} frames, {} pictures decoded, {}\n",
      strict ? "strict" : "lenient", report->format.empty() ? "no format" : report->format,
      report->episodes, report->listed, report->frames, report->decoded,
      report->ok() ? "accepted" : "refused");
  for (const Finding& finding : report->findings.entries()) out += "  " + to_line(finding) + "\n";
  // Sizes depend on the versions of encoders and of Arrow.
  out = std::regex_replace(out, std::regex("[0-9,]+ bytes"), "<n> bytes");
  out = std::regex_replace(out, std::regex("byte [0-9,]+"), "byte <n>");
  return replaced(out, root.string(), "<root>");
}

class HardInputs : public testing::TestWithParam<HardInput> {};

TEST_P(HardInputs, GiveTheExpectedReportInBothModes) {
  TempDir dir;
  const std::filesystem::path root = dir / "set";
  if (!GetParam().write(root)) GTEST_SKIP() << "needs ffmpeg with the encoder of this case";
  const std::string found = report_text(root, false) + report_text(root, true);
  const std::filesystem::path path =
      source_dir() / "tests/hard_inputs/expected" / (GetParam().name + ".txt");
  if (std::getenv("ROPEWALK_WRITE_EXPECTED") != nullptr) {
    write_file(path, found);
    return;
  }
  EXPECT_EQ(found, read_file(path));
}

/// Whatever the report says, what can be opened can be read whole, and no input crashes a reader.
TEST_P(HardInputs, ReadWhatTheSurveyKept) {
  TempDir dir;
  const std::filesystem::path root = dir / "set";
  if (!GetParam().write(root)) GTEST_SKIP() << "needs ffmpeg with the encoder of this case";
  const auto report = check_dataset(root, {.decode = true}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto source = open_lerobot(root, {.survey = true});
  if (!source.ok()) {
    EXPECT_FALSE(report->ok());
    return;
  }
  bool clean = true;
  for (const char* code :
       {"value_missing", "value_invalid", "image_unreadable", "path_escapes_root"}) {
    clean = clean && report->findings.count(code) == 0;
  }
  for (std::int64_t i = 0; i < (*source)->size(); ++i) {
    const auto episode = (*source)->open(i);
    ASSERT_TRUE(episode.ok()) << episode.status().to_string();
    const std::int64_t length = (*episode)->info().length;
    const auto columns = (*episode)->columns({0, length});
    if (clean) {
      ASSERT_TRUE(columns.ok()) << columns.status().to_string();
    }
    if (!columns.ok()) continue;
    EXPECT_EQ((*columns)->num_rows(), length);
    EXPECT_TRUE((*columns)->ValidateFull().ok());
    for (const std::string& camera : (*source)->schema().cameras()) {
      if (!(*episode)->has_camera(camera)) continue;
      const auto reader = (*episode)->frames(camera, {0, length}, {});
      if (clean) {
        EXPECT_TRUE(reader.ok()) << reader.status().to_string();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, HardInputs, testing::ValuesIn(all_inputs()),
                         [](const auto& item) { return item.param.name; });

const arrow::Array& column_of(const arrow::RecordBatch& batch, const std::string& name) {
  const auto column = batch.GetColumnByName(name);
  if (column == nullptr) throw std::runtime_error("no column " + name);
  return *column;
}

std::unique_ptr<LerobotSource> surveyed(const std::filesystem::path& root) {
  auto source = open_lerobot(root, {.survey = true});
  if (!source.ok()) throw std::runtime_error(source.status().to_string());
  return std::move(*source);
}

TEST(HardInputRepairs, RebuildTimestampsFromTheGrid) {
  TempDir dir;
  Fixture f = make_fixture();
  f.set_column("timestamp", [](const FixtureEpisode& e) {
    return float_array(std::vector<float>(static_cast<std::size_t>(e.frames), 1.7e9F));
  });
  f.write_v21(dir / "set");
  const auto source = surveyed(dir / "set");
  const auto batch = *(*source->open(0))->columns({2, 5});
  const auto& stamps = static_cast<const arrow::FloatArray&>(column_of(*batch, "timestamp"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stamps.Value(i), frame_timestamp_f32(2 + i, {30, 1}));
}

TEST(HardInputRepairs, SortRowsByFrameIndex) {
  TempDir dir;
  Fixture f = make_fixture();
  for (FixtureEpisode& e : f.episodes) {
    const auto order =
        int64_array(e.index == 0 ? std::vector<std::int64_t>{3, 1, 0, 2, 8, 7, 6, 5, 4}
                                 : std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
    for (auto& [name, column] : e.columns) {
      arrow::ArrayVector parts;
      for (std::int64_t i = 0; i < order->length(); ++i) {
        parts.push_back(column->Slice(static_cast<const arrow::Int64Array&>(*order).Value(i), 1));
      }
      column = *arrow::Concatenate(parts);
    }
  }
  f.write_v21(dir / "set");
  const auto source = surveyed(dir / "set");
  const auto batch = *(*source->open(0))->columns({1, 8});
  const auto& index = static_cast<const arrow::Int64Array&>(column_of(*batch, "index"));
  for (int i = 0; i < 7; ++i) EXPECT_EQ(index.Value(i), 1 + i);
  const auto& state =
      static_cast<const arrow::FixedSizeListArray&>(column_of(*batch, "observation.state"));
  const auto& values = static_cast<const arrow::FloatArray&>(*state.values());
  EXPECT_EQ(values.Value(state.value_offset(6) + 1), 7.125F);
  const auto strict = open_lerobot(dir / "set", {.strict = true, .survey = true});
  ASSERT_TRUE(strict.ok()) << strict.status().to_string();
  EXPECT_EQ((*(*strict)->open(0))->columns({0, 9}).status().reason(), "rows_out_of_order");
}

TEST(HardInputRepairs, CutAnEpisodeToItsShortestPart) {
  TempDir dir;
  Fixture f = make_fixture();
  --f.episode(0).frames;
  f.write_v21(dir / "set");
  const auto source = surveyed(dir / "set");
  ASSERT_EQ(source->size(), 2);
  EXPECT_EQ(source->info(0).length, 8);
  const auto episode = *source->open(0);
  EXPECT_EQ((*episode->columns({0, 8}))->num_rows(), 8);
  EXPECT_EQ(episode->columns({0, 9}).status().code(), StatusCode::out_of_range);
  EXPECT_EQ((*episode->packets("observation.images.top"))->count(), 8);
  // Without a survey nothing is cut: both counts are named instead.
  const auto listed = *open_lerobot(dir / "set");
  const auto packets = (*listed->open(0))->packets("observation.images.top");
  EXPECT_EQ(packets.status().reason(), "frame_count_mismatch");
  const auto findings = *validate_for_export(*listed, {}, {});
  ASSERT_EQ(findings.entries().size(), 1U);
  EXPECT_EQ(findings.entries()[0].code, "frame_count_mismatch");
  EXPECT_EQ(findings.entries()[0].declared, "9 rows");
  EXPECT_EQ(findings.entries()[0].found, "8 frames");
}

TEST(HardInputRepairs, FindEpisodesByTheRowsOfTheDataFiles) {
  TempDir dir;
  for (const HardInput& input : file_inputs()) {
    if (input.name == "h18_stale_file_index") input.write(dir / "set");
  }
  // The locator of the second episode names a file that is not there; no survey told so before.
  const auto source = *open_lerobot(dir / "set");
  for (std::int64_t i = 0; i < 2; ++i) {
    const auto batch = (*source->open(i))->columns({0, source->length_of(i)});
    ASSERT_TRUE(batch.ok()) << batch.status().to_string();
    const auto& index = static_cast<const arrow::Int64Array&>(column_of(**batch, "index"));
    EXPECT_EQ(index.Value(0), i == 0 ? 0 : 9);
  }
}

TEST(HardInputRepairs, ReadAllShapesOfColumnsByValue) {
  TempDir dir;
  for (const HardInput& input : content_inputs()) {
    if (input.name == "h13_kinds_of_columns") input.write(dir / "set");
  }
  const auto source = surveyed(dir / "set");
  const Schema& schema = source->schema();
  EXPECT_EQ(schema.find("empty"), nullptr);
  EXPECT_EQ(schema.find("complex"), nullptr);
  EXPECT_EQ(schema.find("bare")->shape, std::vector<std::int64_t>{1});
  EXPECT_EQ(schema.find("deep")->shape, std::vector<std::int64_t>{8});
  EXPECT_EQ(schema.find("deep")->extra.find("original_shape")->dump(), "[1,2,1,2,1,2]");
  const auto batch = *(*source->open(1))->columns({0, 6});
  EXPECT_TRUE(column_of(*batch, "grid").type()->Equals(arrow::list(arrow::list(arrow::int8()))));
  EXPECT_TRUE(
      column_of(*batch, "deep").type()->Equals(arrow::fixed_size_list(arrow::float32(), 8)));
  EXPECT_EQ((*column_of(*batch, "note").GetScalar(0))->ToString(), "a\nb");
  const auto& depth = static_cast<const arrow::ListArray&>(column_of(*batch, "depth"));
  const auto rows = std::static_pointer_cast<arrow::ListArray>(depth.value_slice(1));
  const auto last = std::static_pointer_cast<arrow::UInt16Array>(rows->value_slice(3));
  EXPECT_EQ(last->Value(4), 39 * 3);
}

TEST(HardInputRepairs, EmbedPicturesKeptAsPaths) {
  TempDir dir;
  for (const HardInput& input : content_inputs()) {
    if (input.name == "h12_path_only") input.write(dir / "set");
  }
  const auto source = surveyed(dir / "set");
  const auto episode = *source->open(1);
  const auto batch = *episode->columns({0, 6});
  const auto& pictures = static_cast<const arrow::StructArray&>(column_of(*batch, "wrist"));
  EXPECT_EQ(static_cast<const arrow::BinaryArray&>(*pictures.field(0)).GetView(3),
            png_bytes(12, 8, 3));
  const auto reader = *episode->frames("wrist", {3, 5}, {.layout = FrameLayout::chw, .width = 6});
  EXPECT_EQ(reader->shape().width, 6);
  EXPECT_EQ(reader->shape().height, 8);
  Bytes pixels(reader->shape().frame_bytes());
  ASSERT_TRUE(*reader->next(pixels));
  EXPECT_EQ(pixels[0], 21);
  ASSERT_TRUE(*reader->next(pixels));
  EXPECT_EQ(pixels.back(), 28);
  EXPECT_FALSE(*reader->next(pixels));
}

TEST(HardInputNumbers, ChunksAreListedByNumber) {
  TempDir dir;
  Fixture f = make_fixture({3, 2});
  f.write_v3(dir / "set");
  // The same rows, the second episode in chunk-1000: as text that comes before chunk-999.
  const auto root = dir / "set";
  std::filesystem::rename(root / "data/chunk-000", root / "data/chunk-999");
  Columns second;
  for (const auto& [name, column] : f.episode(1).columns) {
    second.emplace_back(name, name == "episode_index" ? int64_array({2, 2}) : column);
  }
  write_parquet(root / "data/chunk-1000/file-000.parquet", second);
  const auto report = *check_dataset(root, {}, {});
  EXPECT_EQ(report.findings.count("data_location_stale"), 2);
  EXPECT_EQ(report.findings.count("dataset_range_wrong"), 0);
  EXPECT_EQ(report.findings.count("episode_not_in_meta"), 1);
}

}  // namespace
}  // namespace ropewalk::test
