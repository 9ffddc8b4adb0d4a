#include "ropewalk/dataset/lerobot/source.h"

#include <arrow/api.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/check.h"

#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

std::unique_ptr<LerobotSource> open_or_fail(const std::filesystem::path& root,
                                            const LerobotOptions& options = {}) {
  auto source = open_lerobot(root, options);
  EXPECT_TRUE(source.ok()) << source.status().to_string();
  return source.ok() ? std::move(*source) : nullptr;
}

std::vector<std::pair<std::string, std::int64_t>> codes(const Findings& findings) {
  std::vector<std::pair<std::string, std::int64_t>> out;
  for (const Finding& entry : findings.entries()) {
    const auto at = std::ranges::find(out, entry.code, [](const auto& item) { return item.first; });
    if (at == out.end()) {
      out.emplace_back(entry.code, entry.count);
    } else {
      at->second += entry.count;
    }
  }
  return out;
}

using testing::ElementsAre;
using testing::Pair;

TEST(LerobotSource, ReadsARealV21DatasetWithBFrames) {
  ROPEWALK_REQUIRE_TESTDATA(root, "agilex_dataset");
  const auto source = open_or_fail(root);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->format(), "lerobot_v21");
  EXPECT_EQ(source->schema().fps, (Rational{30, 1}));
  EXPECT_EQ(source->schema().robot_type, "agile_x");
  ASSERT_EQ(source->size(), 1);
  EXPECT_EQ(source->info(0).length, 398);
  EXPECT_EQ(source->info(0).tasks.size(), 1U);
  EXPECT_EQ(source->tasks().size(), 10U);
  const auto episode = *source->open(0);
  const auto batch = episode->columns({0, 398});
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  EXPECT_EQ((*batch)->num_rows(), 398);
  EXPECT_TRUE((*batch)->GetColumnByName("action")->type()->Equals(
      arrow::fixed_size_list(arrow::float32(), 14)));
  const auto packets = episode->packets("observation.images.cam_high");
  ASSERT_TRUE(packets.ok()) << packets.status().to_string();
  EXPECT_EQ((*packets)->count(), 398);
  EXPECT_EQ((*packets)->params().codec, "h264");
  EXPECT_EQ((*packets)->whole_file(),
            root / "videos/chunk-000/observation.images.cam_high/episode_000000.mp4");
  EXPECT_EQ(episode->decode_unit("observation.images.cam_high", 300), (FrameRange{226, 398}));
  const auto reader = episode->frames("observation.images.cam_left_wrist", {200, 203}, {});
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  EXPECT_EQ((*reader)->shape().width, 640);
  Bytes pixels((*reader)->shape().frame_bytes());
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(*(*reader)->next(pixels));
  EXPECT_FALSE(*(*reader)->next(pixels));
  EXPECT_NE(episode->statistics().find("action"), nullptr);
  EXPECT_EQ(*episode->task_text(0), source->info(0).tasks.front());
  EXPECT_EQ(episode->task_text(10).status().code(), StatusCode::data_loss);
  EXPECT_EQ(source->episode_files(0)->size(), 4U);
}

TEST(LerobotSource, ListsEveryRowOfAPartialDatasetAndOpensWhatIsThere) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_partial");
  const auto source = open_or_fail(root);
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->size(), 100);
  EXPECT_EQ(source->info(1).length, 393);
  EXPECT_TRUE((*source->open(1))->columns({0, 393}).ok());
  const auto missing = (*source->open(0))->columns({0, 1});
  EXPECT_EQ(missing.status().code(), StatusCode::not_found);
  EXPECT_THAT(std::string(missing.status().message()),
              testing::HasSubstr("episode_000000.parquet"));
  const auto names = flat_names(source->schema().find("action")->names, 26);
  ASSERT_TRUE(names.has_value());
  EXPECT_EQ(names->front(), "kLeftShoulderPitch");
}

/// Metadata of a v2.1 dataset whose data files are not there.
void write_metadata(const std::filesystem::path& root, std::int64_t episodes,
                    const std::string& features) {
  std::string rows;
  for (std::int64_t i = 0; i < episodes; ++i) {
    rows += fmt::format("{{\"episode_index\": {}, \"tasks\": [\"t\"], \"length\": 5}}\n", i);
  }
  test::write_file(root / "meta/episodes.jsonl", rows);
  test::write_file(root / "meta/episodes_stats.jsonl", "");
  test::write_file(root / "meta/tasks.jsonl", "{\"task_index\": 0, \"task\": \"t\"}\n");
  test::write_file(
      root / "meta/info.json",
      fmt::format("{{\"codebase_version\": \"v2.1\", \"fps\": 30, \"chunks_size\": 1000,"
                  " \"total_episodes\": {}, \"data_path\":"
                  " \"data/chunk-{{episode_chunk:03d}}/episode_{{episode_index:06d}}.parquet\","
                  " \"video_path\": \"videos/chunk-{{episode_chunk:03d}}/{{video_key}}/"
                  "episode_{{episode_index:06d}}.mp4\", \"features\": {}}}",
                  episodes, features));
}

TEST(LerobotSource, FollowsChunksAndLooksIntoTheFirstOneSecond) {
  test::TempDir dir;
  write_metadata(dir.path(), 1001,
                 R"({"top": {"dtype": "video", "shape": [8, 8, 3], "names": null}})");
  const auto source = open_or_fail(dir.path());
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->size(), 1001);
  EXPECT_THAT(source->episode_paths(999), ElementsAre("data/chunk-000/episode_000999.parquet",
                                                      "videos/chunk-000/top/episode_000999.mp4"));
  EXPECT_THAT(source->episode_paths(1000), ElementsAre("data/chunk-001/episode_001000.parquet",
                                                       "videos/chunk-001/top/episode_001000.mp4"));
  test::write_file(dir / "videos/chunk-000/top/episode_001000.mp4", "xyz");
  EXPECT_THAT(source->episode_paths(1000), ElementsAre("data/chunk-001/episode_001000.parquet",
                                                       "videos/chunk-000/top/episode_001000.mp4"));
  const auto files = *source->episode_files(1000);
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].size_bytes, 3U);
  EXPECT_GT(files[0].modified_ns, 0);
  EXPECT_EQ(source->position_of(1000), 1000);
  EXPECT_EQ(source->position_of(1001), std::nullopt);
  EXPECT_EQ(source->open(1001).status().code(), StatusCode::out_of_range);
}

TEST(LerobotSource, KeepsWholeRowsAndUnknownKeys) {
  test::TempDir dir;
  write_metadata(dir.path(), 1,
                 R"({"capture_time": {"dtype": "float32", "shape": [1], "unit": "s"}})");
  test::write_file(dir / "meta/episodes.jsonl",
                   R"({"episode_index": 0, "tasks": ["t"], "length": 5, "quality": "red",)"
                   R"( "quality_issues": [{"code": "source_gap"}], "qc_verdict": "pass",)"
                   R"( "qc_note": "fine", "own": {"deep": [1, 2.5]}})");
  const auto source = open_or_fail(dir.path());
  ASSERT_NE(source, nullptr);
  const EpisodeInfo& info = source->info(0);
  EXPECT_EQ(info.quality, "red");
  EXPECT_EQ(info.verdict, "pass");
  EXPECT_EQ(info.note, "fine");
  EXPECT_EQ(info.issues.size(), 1U);
  EXPECT_EQ(info.row.find("own")->dump(), R"({"deep":[1,2.5]})");
  const Feature* feature = source->schema().find("capture_time");
  EXPECT_EQ(feature->dtype, DType::float64);
  EXPECT_EQ(feature->extra.get_string("unit"), "s");
  EXPECT_EQ(source->findings().count("capture_time_narrow"), 1);
}

TEST(ProbeLerobot, NamesWhatItDoesNotRead) {
  test::TempDir dir;
  EXPECT_EQ(probe_lerobot(dir / "none").status().code(), StatusCode::not_found);
  EXPECT_EQ(probe_lerobot(dir.path()).status().code(), StatusCode::not_found);
  test::write_file(dir / "sub/meta/info.json", "{}");
  EXPECT_THAT(std::string(probe_lerobot(dir.path()).status().message()),
              testing::HasSubstr("the directory sub in it holds a dataset"));
  test::write_file(dir / "v1/meta_data/info.json", "{}");
  EXPECT_EQ(probe_lerobot(dir / "v1").status().reason(), "LEROBOT_V1");
  test::write_file(dir / "lance/meta/info.json",
                   R"({"codebase_version": "v3.0", "storage_format": "lance"})");
  EXPECT_EQ(open_lerobot(dir / "lance").status().reason(), "LANCE");
  test::write_file(dir / "hdf5/meta/info.json",
                   R"({"codebase_version": "v2.1", "dataset_format": "hdf5"})");
  EXPECT_EQ(probe_lerobot(dir / "hdf5").status().reason(), "OTHER_FORMAT");
  const auto real = probe_lerobot(dir / "sub");
  ASSERT_TRUE(real.ok());
  EXPECT_EQ(real->generation, LerobotGeneration::v21);
}

TEST(LerobotSource, SurveyLeavesOutWhatIsMissing) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_partial");
  const auto source = open_or_fail(root, {.survey = true});
  ASSERT_NE(source, nullptr);
  ASSERT_EQ(source->size(), 3);
  EXPECT_EQ(source->index_of(2), 4);
  EXPECT_EQ(source->position_of(4), 2);
  EXPECT_EQ(source->findings().count("files_missing"), 97);
}

TEST(LerobotSource, StrictRefusesAPartialDatasetNamingEveryEpisode) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_partial");
  const auto source = open_lerobot(root, {.strict = true, .survey = true});
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(source.status().reason(), "files_missing");
  EXPECT_THAT(std::string(source.status().message()), testing::HasSubstr("97 findings"));
}

TEST(LerobotSource, V3EpisodesEqualTheV21OnesTheyWereMadeFrom) {
  ROPEWALK_REQUIRE_TESTDATA(v21_root, "g1_partial");
  ROPEWALK_REQUIRE_TESTDATA(v3_root, "g1_v3");
  const auto v21 = open_or_fail(v21_root, {.survey = true});
  const auto v3 = open_or_fail(v3_root);
  ASSERT_NE(v21, nullptr);
  ASSERT_NE(v3, nullptr);
  EXPECT_EQ(v3->format(), "lerobot_v3");
  ASSERT_EQ(v3->size(), 3);
  ASSERT_EQ(v21->size(), 3);
  const std::string camera = "observation.images.cam_high";
  for (std::int64_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    const auto a = *v21->open(i);
    const auto b = *v3->open(i);
    ASSERT_EQ(a->info().length, b->info().length);
    EXPECT_EQ(a->info().tasks, b->info().tasks);
    const FrameRange all{0, a->info().length};
    const auto left = a->columns(all);
    const auto right = b->columns(all);
    ASSERT_TRUE(left.ok()) << left.status().to_string();
    ASSERT_TRUE(right.ok()) << right.status().to_string();
    for (const char* column : {"observation.state", "action", "timestamp", "frame_index"}) {
      EXPECT_TRUE((*left)->GetColumnByName(column)->Equals((*right)->GetColumnByName(column)))
          << column;
    }
    auto p = a->packets(camera);
    auto q = b->packets(camera);
    ASSERT_TRUE(p.ok()) << p.status().to_string();
    ASSERT_TRUE(q.ok()) << q.status().to_string();
    ASSERT_EQ((*p)->count(), (*q)->count());
    EXPECT_FALSE((*q)->whole_file().has_value());
    for (std::int64_t k = 0; k < (*p)->count(); ++k) {
      const auto x = (*p)->next();
      const auto y = (*q)->next();
      ASSERT_TRUE(x.ok() && *x && y.ok() && *y);
      ASSERT_TRUE(std::ranges::equal((*x)->data, (*y)->data)) << "packet " << k;
      EXPECT_EQ((*x)->ordinal, (*y)->ordinal);
      EXPECT_EQ((*x)->keyframe, (*y)->keyframe);
    }
    EXPECT_FALSE((*(*q)->next()).has_value());
    auto f = a->frames(camera, {100, 101}, {});
    auto g = b->frames(camera, {100, 101}, {});
    ASSERT_TRUE(f.ok() && g.ok());
    Bytes x((*f)->shape().frame_bytes());
    Bytes y((*g)->shape().frame_bytes());
    ASSERT_TRUE(*(*f)->next(x));
    ASSERT_TRUE(*(*g)->next(y));
    EXPECT_EQ(x, y);
    EXPECT_NE(b->statistics().find("observation.state"), nullptr);
  }
}

TEST(LerobotSource, SurveyOfTheConvertersOutputReportsDriftAndTypes) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_v3");
  const auto source = open_or_fail(root, {.survey = true});
  ASSERT_NE(source, nullptr);
  EXPECT_EQ(source->size(), 3);
  EXPECT_THAT(codes(source->findings()),
              ElementsAre(Pair("names_not_a_list", 2), Pair("tasks_index_unnamed", 1),
                          Pair("statistics_incomplete", 1), Pair("video_offset_drift", 1)));
}

TEST(LerobotCheck, ReportsRealDatasets) {
  ROPEWALK_REQUIRE_TESTDATA(agilex, "agilex_dataset");
  ROPEWALK_REQUIRE_TESTDATA(partial, "g1_partial");
  const auto a = check_dataset(agilex, {}, {});
  ASSERT_TRUE(a.ok());
  EXPECT_EQ(a->frames, 398);
  EXPECT_THAT(codes(a->findings), ElementsAre(Pair("statistics_incomplete", 5)));
  EXPECT_TRUE(a->ok());
  const auto b = check_dataset(partial, {}, {});
  ASSERT_TRUE(b.ok());
  EXPECT_EQ(b->listed, 100);
  EXPECT_EQ(b->episodes, 3);
  EXPECT_EQ(b->frames, 1093);
  EXPECT_THAT(codes(b->findings),
              ElementsAre(Pair("names_not_a_list", 2), Pair("files_missing", 97)));
  const auto c = check_dataset(partial, {.strict = true}, {});
  ASSERT_TRUE(c.ok());
  EXPECT_FALSE(c->ok());
  EXPECT_EQ(c->findings.count("files_missing"), 97);
}

TEST(LerobotCheck, DecodesEveryFrame) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_v3");
  const auto report = check_dataset(root, {.decode = true}, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->decoded, 1093);
  EXPECT_EQ(report->findings.count("frame_unreadable"), 0);
}

TEST(LerobotValidate, ListsEveryReasonAgainstAnExport) {
  ROPEWALK_REQUIRE_TESTDATA(partial, "g1_partial");
  const auto source = open_or_fail(partial);
  ASSERT_NE(source, nullptr);
  const auto all = validate_for_export(*source, {}, {});
  ASSERT_TRUE(all.ok());
  EXPECT_EQ(all->count("files_missing"), 97 * 2);
  const std::vector<std::int64_t> there{1, 2, 4};
  const auto some = validate_for_export(*source, there, {});
  ASSERT_TRUE(some.ok());
  EXPECT_TRUE(some->empty()) << some->to_json().dump(1);
}

TEST(LerobotValidate, RefusesOtherVersions) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_v3");
  const auto source = open_or_fail(root);
  const auto findings = validate_for_export(*source, {}, {});
  ASSERT_TRUE(findings.ok());
  EXPECT_EQ(findings->count("source_not_v21"), 1);
}

}  // namespace
}  // namespace ropewalk
