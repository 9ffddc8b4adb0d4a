// The main job on real datasets that other programs wrote.
#include "ropewalk/engine/compare.h"
#include "ropewalk/engine/convert.h"
#include "ropewalk/engine/open.h"

#include "tests/e2e/e2e_fixture.h"
#include "tests/support/testdata.h"

namespace ropewalk::test {
namespace {

TEST(RealData, AgilexIsExportedInEveryFormatAndEqualInEveryFrame) {
  ROPEWALK_REQUIRE_TESTDATA(root, "agilex_dataset");
  const TempDir dir;
  ThreadPool pool(2);
  const RunContext context{.pool = &pool};
  for (const std::string& format : export_formats()) {
    const auto out = dir.path() / format;
    const auto report = export_dataset({.source = root, .format = format, .out = out}, context);
    ASSERT_TRUE(report.ok()) << format << ": " << report.status().to_string();
    EXPECT_EQ(report->counts.accepted_episodes, 1);
    EXPECT_EQ(report->counts.accepted_frames, 398);
    const auto verified = verify_path({.path = out, .full = format == "lerobot_v3"}, context);
    ASSERT_TRUE(verified.ok()) << verified.status().to_string();
    EXPECT_TRUE(verified->passed()) << verified->to_json().dump(2);
    // Ten tasks are listed and one is used.
    const auto half = open_dataset(out / "accepted");
    ASSERT_TRUE(half.ok());
    EXPECT_EQ((*half)->info(0).tasks.size(), 1u);
    std::filesystem::remove_all(out);
  }
}

TEST(RealData, AgilexIsGreen) {
  ROPEWALK_REQUIRE_TESTDATA(root, "agilex_dataset");
  ThreadPool pool(2);
  const auto report = review_scan({.path = root}, {.pool = &pool});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->red, 0) << report->to_json().dump(2);
  EXPECT_EQ(report->pictures, 3 * 398);
}

TEST(RealData, G1PartialNamesItsMissingEpisodesAndExportsTheOthers) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_partial");
  ROPEWALK_REQUIRE_TESTDATA(upstream, "g1_v3");
  const TempDir dir;
  ThreadPool pool(2);
  const RunContext context{.pool = &pool};
  const auto whole =
      export_dataset({.source = root, .format = "lerobot_v3", .out = dir.path() / "all"}, context);
  EXPECT_EQ(whole.status().reason(), "INVALID_SOURCE");
  EXPECT_NE(whole.status().message().find("episode_000099"), std::string_view::npos);
  EXPECT_FALSE(std::filesystem::exists(dir.path() / "all"));

  const auto present = export_dataset({.source = root,
                                       .format = "lerobot_v3",
                                       .out = dir.path() / "three",
                                       .episodes = std::vector<std::int64_t>{1, 2, 4}},
                                      context);
  ASSERT_TRUE(present.ok()) << present.status().to_string();
  EXPECT_EQ(present->counts.accepted_frames, 393 + 343 + 357);
  // Equal to what upstream's own converter made of the same three, row by row and frame by frame.
  const auto theirs = open_dataset(upstream);
  ASSERT_TRUE(theirs.ok()) << theirs.status().to_string();
  const auto proof = prove_content(dir.path() / "three/accepted", **theirs, true, context);
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_TRUE(proof->findings.empty()) << proof->findings.to_json().dump(2);
  EXPECT_EQ(proof->frames, 393 + 343 + 357);
}

// In bright motion every second picture of this camera equals the one before to the bit: it
// delivered 15 Hz for stretches, while the dataset says 30.
TEST(RealData, G1ScanFindsTheCameraThatDropsToHalfItsRate) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_v3");
  ThreadPool pool(2);
  const auto report = review_scan({.path = root}, {.pool = &pool});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  ASSERT_EQ(report->episodes.size(), 3u);
  for (const ScannedEpisode& episode : report->episodes) {
    ASSERT_EQ(episode.quality.issues.size(), 1u) << report->to_json().dump(2);
    EXPECT_EQ(episode.quality.issues[0].code, "source_rate_low");
    EXPECT_EQ(episode.quality.issues[0].stream, "observation.images.cam_high");
  }
}

TEST(RealData, UpstreamsV3GoesBackToV21) {
  ROPEWALK_REQUIRE_TESTDATA(root, "g1_v3");
  const TempDir dir;
  ThreadPool pool(2);
  const RunContext context{.pool = &pool};
  const auto report = convert_dataset(
      {.source = root, .out = dir.path() / "v21", .format = "lerobot_v21"}, context);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  const auto original = open_dataset(root);
  ASSERT_TRUE(original.ok());
  const auto proof = prove_content(dir.path() / "v21", **original, true, context);
  ASSERT_TRUE(proof.ok()) << proof.status().to_string();
  EXPECT_TRUE(proof->findings.empty()) << proof->findings.to_json().dump(2);
}

}  // namespace
}  // namespace ropewalk::test
