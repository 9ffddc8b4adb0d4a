// A raw dataset is reviewed, split, exported in four formats, and proven.
#include "ropewalk/engine/convert.h"
#include "ropewalk/engine/info.h"
#include "ropewalk/engine/open.h"

#include "tests/e2e/e2e_fixture.h"

namespace ropewalk::test {
namespace {

class EveryFormat : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryFormat, SplitsByVerdictAndProvesEveryFrame) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(7, "some"));
  ThreadPool pool(2);
  const RunContext context{.pool = &pool};
  const auto list = review_list(raw);
  ASSERT_TRUE(list.ok()) << list.status().to_string();
  std::int64_t red = -1;
  std::int64_t green = -1;
  for (const ReviewEntry& entry : list->entries) {
    (entry.row.quality == "red" ? red : green) = entry.row.episode_index;
  }
  ASSERT_GE(red, 0);
  ASSERT_GE(green, 0);
  ASSERT_TRUE(review_mark(raw, {.episodes = {red}, .verdict = "pass"}, {"ada"}).ok());
  ASSERT_TRUE(
      review_mark(raw, {.episodes = {green}, .verdict = "fail", .note = "slipped"}, {"ada"}).ok());

  const auto report =
      export_dataset({.source = raw, .format = GetParam(), .prove_full = true}, context);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->counts.accepted_episodes + report->counts.rejected_episodes, 7);
  EXPECT_EQ(report->counts.accepted_episodes, list->accepted);  // one in, one out
  EXPECT_EQ(report->counts.overrides, 2);
  EXPECT_NE(std::ranges::find(report->accepted_episodes, red), report->accepted_episodes.end());
  EXPECT_NE(std::ranges::find(report->rejected_episodes, green), report->rejected_episodes.end());
  EXPECT_TRUE(hidden_beside(raw).empty());

  const auto verified = verify_path({.path = pair_of(raw, GetParam()), .full = true}, context);
  ASSERT_TRUE(verified.ok()) << verified.status().to_string();
  EXPECT_TRUE(verified->passed()) << verified->to_json().dump(2);
  EXPECT_TRUE(verified->recorded);
  EXPECT_TRUE(std::filesystem::exists(pair_of(raw, GetParam()) / "verify.json"));

  // The rows say what the ledger said.
  const auto rejected = open_dataset(pair_of(raw, GetParam()) / "rejected");
  ASSERT_TRUE(rejected.ok()) << rejected.status().to_string();
  bool found = false;
  for (std::int64_t i = 0; i < (*rejected)->size(); ++i) {
    const EpisodeInfo& info = (*rejected)->info(i);
    if (info.row.get_string("qc_note") == "slipped") {
      EXPECT_EQ(info.row.get_string("qc_verdict"), "fail");
      found = true;
    }
  }
  EXPECT_TRUE(found);
}

TEST_P(EveryFormat, PublishesAnEmptyHalf) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(1));
  for (const char* verdict : {"pass", "fail"}) {
    ASSERT_TRUE(review_mark(raw, {.episodes = {0}, .verdict = verdict}, {"ada"}).ok());
    const auto report = export_dataset({.source = raw, .format = GetParam()}, {});
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_EQ(report->counts.accepted_episodes, std::string(verdict) == "pass" ? 1 : 0);
    const auto verified = verify_path({.path = pair_of(raw, GetParam())}, {});
    ASSERT_TRUE(verified.ok()) << verified.status().to_string();
    EXPECT_TRUE(verified->passed()) << verified->to_json().dump(2);
  }
}

TEST_P(EveryFormat, ExportsTwelveHundredEpisodesAcrossTheChunkBoundary) {
  const TempDir dir;
  SimulatedOptions options = small_options(1200);
  options.seconds = 0.1;
  options.cameras = 1;
  options.width = 32;
  options.height = 32;
  const auto raw = make_raw(dir.path(), options);
  EXPECT_TRUE(std::filesystem::exists(raw / "data/chunk-001/episode_001199.parquet"));
  ThreadPool pool(2);
  ASSERT_TRUE(review_mark(raw, {.episodes = {17, 900}, .verdict = "fail"}, {"ada"}).ok());
  const auto report = export_dataset({.source = raw, .format = GetParam()}, {.pool = &pool});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->counts.accepted_episodes, 1198);
  EXPECT_EQ(report->counts.rejected_episodes, 2);
  const auto accepted = pair_of(raw, GetParam()) / "accepted";
  if (GetParam() != "lerobot_v3") {
    EXPECT_TRUE(std::filesystem::exists(accepted / "data/chunk-001"));
  }
  const auto verified = verify_path({.path = pair_of(raw, GetParam())}, {.pool = &pool});
  ASSERT_TRUE(verified.ok()) << verified.status().to_string();
  EXPECT_TRUE(verified->passed()) << verified->to_json().dump(2).substr(0, 4000);
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryFormat,
                         ::testing::Values("lerobot_v21", "lerobot_v3", "hdf5", "mcap"),
                         [](const auto& parameter) { return parameter.param; });

TEST(Export, ReplacesAPairAndRefusesWhenToldNotTo) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(3));
  const auto first = export_dataset({.source = raw, .format = "lerobot_v21"}, {});
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  const auto refused =
      export_dataset({.source = raw, .format = "lerobot_v21", .replace_existing = false}, {});
  EXPECT_EQ(refused.status().code(), StatusCode::already_exists);
  ASSERT_TRUE(review_mark(raw, {.episodes = {1}, .verdict = "fail"}, {"ada"}).ok());
  const auto second = export_dataset({.source = raw, .format = "lerobot_v21"}, {});
  ASSERT_TRUE(second.ok()) << second.status().to_string();
  EXPECT_EQ(second->publish_mode, "exchange");
  EXPECT_NE(second->export_id, first->export_id);
  EXPECT_EQ(second->rejected_episodes, std::vector<std::int64_t>{1});
  EXPECT_TRUE(hidden_beside(raw).empty());
}

TEST(Export, DryRunWritesNothing) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  const auto report = export_dataset({.source = raw, .format = "mcap", .dry_run = true}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->counts.accepted_episodes, 2);
  EXPECT_GT(report->estimated_bytes, 2u * 20 * 96 * 64 * 3);
  EXPECT_FALSE(std::filesystem::exists(raw.parent_path() / "export"));
}

TEST(Export, TakesExactlyTheEpisodesAskedFor) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(5));
  const auto report = export_dataset(
      {.source = raw, .format = "lerobot_v3", .episodes = std::vector<std::int64_t>{1, 4}}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->accepted_episodes, (std::vector<std::int64_t>{1, 4}));
  const auto unknown = export_dataset(
      {.source = raw, .format = "lerobot_v3", .episodes = std::vector<std::int64_t>{9}}, {});
  EXPECT_EQ(unknown.status().code(), StatusCode::invalid_argument);
}

TEST(Export, RefusesWhatIsNoRawV21AndNamesConvert) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  ASSERT_TRUE(export_dataset({.source = raw, .format = "lerobot_v3"}, {}).ok());
  const auto refused = export_dataset(
      {.source = pair_of(raw, "lerobot_v3") / "accepted", .format = "lerobot_v21"}, {});
  EXPECT_EQ(refused.status().reason(), "NOT_V21");
  EXPECT_NE(refused.status().message().find("ropewalk convert"), std::string_view::npos);
}

TEST(Export, SaysThatVerdictsCameWhileItRan) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(3));
  bool marked = false;
  RunContext context;
  context.progress = [&](const Progress& progress) {
    if (marked || progress.phase != "converting accepted") return;
    marked = true;
    ASSERT_TRUE(review_mark(raw, {.episodes = {2}, .verdict = "fail"}, {"ada"}).ok());
  };
  const auto report = export_dataset({.source = raw, .format = "lerobot_v21"}, context);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->counts.accepted_episodes, 3);  // the pair is that of the first revision
  ASSERT_EQ(report->warnings.size(), 1u);
  EXPECT_TRUE(report->warnings[0].starts_with("VERDICTS_CHANGED"));
}

TEST(Convert, BringsV3BackToV21WithEqualPacketsAndRows) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(4));
  ThreadPool pool(2);
  const RunContext context{.pool = &pool};
  const auto v3 =
      convert_dataset({.source = raw, .out = dir.path() / "v3", .format = "lerobot_v3"}, context);
  ASSERT_TRUE(v3.ok()) << v3.status().to_string();
  const auto back = convert_dataset(
      {.source = dir.path() / "v3", .out = dir.path() / "v21", .format = "lerobot_v21"}, context);
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  const auto original = open_dataset(raw);
  ASSERT_TRUE(original.ok());
  const auto proof = prove_content(dir.path() / "v21", **original, true, context);
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_TRUE(proof->findings.empty()) << proof->findings.to_json().dump(2);
  const auto copied = open_dataset(dir.path() / "v21");
  ASSERT_TRUE(copied.ok());
  for (std::int64_t i = 0; i < 4; ++i) {
    const auto a = (*original)->open(i);
    const auto b = (*copied)->open(i);
    ASSERT_TRUE(a.ok() && b.ok());
    for (const std::string& camera : (*original)->schema().cameras()) {
      auto left = (*a)->packets(camera);
      auto right = (*b)->packets(camera);
      ASSERT_TRUE(left.ok() && right.ok());
      ASSERT_EQ((*left)->count(), (*right)->count());
      for (std::int64_t k = 0; k < (*left)->count(); ++k) {
        const auto x = (*left)->next();
        const auto y = (*right)->next();
        ASSERT_TRUE(x.ok() && y.ok());
        ASSERT_TRUE(std::ranges::equal((*x)->data, (*y)->data)) << camera << " packet " << k;
      }
    }
  }
}

TEST(Convert, GoesThroughEveryFormatAndBack) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  const auto original = open_dataset(raw);
  ASSERT_TRUE(original.ok());
  std::filesystem::path from = raw;
  for (const std::string format : {"mcap", "hdf5"}) {
    const auto to = dir.path() / format;
    const auto report = convert_dataset({.source = from, .out = to, .format = format}, {});
    ASSERT_TRUE(report.ok()) << format << ": " << report.status().to_string();
    const auto proof = prove_content(to, **original, true, {});
    ASSERT_TRUE(proof.ok()) << proof.status().to_string();
    EXPECT_TRUE(proof->findings.empty()) << format << proof->findings.to_json().dump(2);
    from = to;
  }
  // Pictures without an encoded form are encoded anew, and the report says so.
  const auto video =
      convert_dataset({.source = from, .out = dir.path() / "v21", .format = "lerobot_v21"}, {});
  ASSERT_TRUE(video.ok()) << video.status().to_string();
  EXPECT_FALSE(video->findings.empty());
  EXPECT_EQ(video->episodes, 2);
  EXPECT_EQ(video->frames, (*original)->info(0).length + (*original)->info(1).length);
}

}  // namespace
}  // namespace ropewalk::test
