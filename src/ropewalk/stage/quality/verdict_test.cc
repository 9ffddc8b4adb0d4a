#include "ropewalk/stage/quality/verdict.h"

#include <string>

#include <gtest/gtest.h>

#include "ropewalk/stage/quality/split.h"

namespace ropewalk {
namespace {

TEST(Decide, FollowsPassFailRedGreenInThisOrder) {
  // Written out as a table, so that the test does not repeat the code it checks.
  const struct {
    const char* verdict;
    const char* quality;
    Decision expected;
  } table[] = {
      {"pass", "red", {Outcome::accepted, DecidedBy::pass, true}},
      {"pass", "green", {Outcome::accepted, DecidedBy::pass, false}},
      {"pass", "", {Outcome::accepted, DecidedBy::pass, false}},
      {"fail", "red", {Outcome::rejected, DecidedBy::fail, false}},
      {"fail", "green", {Outcome::rejected, DecidedBy::fail, true}},
      {"fail", "", {Outcome::rejected, DecidedBy::fail, true}},
      {"", "red", {Outcome::rejected, DecidedBy::red, false}},
      {"", "green", {Outcome::accepted, DecidedBy::clean, false}},
      {"", "", {Outcome::accepted, DecidedBy::clean, false}},
      {"unreviewed", "red", {Outcome::rejected, DecidedBy::red, false}},
      {"unreviewed", "green", {Outcome::accepted, DecidedBy::clean, false}},
      {"PASS", "RED", {Outcome::accepted, DecidedBy::pass, true}},
      {"Fail", "Green", {Outcome::rejected, DecidedBy::fail, true}},
      {"", "Red", {Outcome::rejected, DecidedBy::red, false}},
      {"passed", "redder", {Outcome::accepted, DecidedBy::clean, false}},
  };
  for (const auto& row : table) {
    EXPECT_EQ(decide(row.verdict, row.quality), row.expected)
        << row.verdict << " / " << row.quality;
  }
}

SplitRow row(std::int64_t index, std::string verdict, std::string quality,
             std::int64_t length = 10) {
  return {.episode_index = index,
          .length = length,
          .verdict = std::move(verdict),
          .quality = std::move(quality)};
}

TEST(SplitEpisodes, KeepsOrderAndCountsEachHalf) {
  std::vector<SplitRow> rows{row(4, "", "green", 5), row(0, "pass", "red", 7),
                             row(2, "fail", "green", 11), row(9, "", "red", 13), row(7, "", "")};
  rows.back().trashed = true;
  const Split split = *split_episodes(rows);
  EXPECT_EQ(split.accepted.positions, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(split.rejected.positions, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(split.accepted.frames, 12);
  EXPECT_EQ(split.rejected.frames, 24);
  EXPECT_EQ(split.accepted.overrides, 1);
  EXPECT_EQ(split.rejected.overrides, 1);
  EXPECT_EQ(split.trashed, 1);
  EXPECT_EQ(split.decisions[4], std::nullopt);
  EXPECT_EQ(split.decisions[3]->by, DecidedBy::red);
}

TEST(SplitEpisodes, TakesExactlyTheEpisodesAskedFor) {
  std::vector<SplitRow> rows{row(4, "", "green"), row(0, "", "red"), row(2, "", "green")};
  Split split = *split_episodes(rows, {.episodes = {{2, 0}}});
  EXPECT_EQ(split.accepted.positions, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(split.rejected.positions, (std::vector<std::int64_t>{1}));
  EXPECT_EQ(split.not_selected, 1);

  const auto unknown = split_episodes(rows, {.episodes = {{2, 77, 5}}});
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.status().code(), StatusCode::invalid_argument);
  EXPECT_NE(unknown.status().message().find("[5, 77]"), std::string_view::npos)
      << unknown.status().message();

  rows[2].trashed = true;
  EXPECT_EQ(split_episodes(rows, {.episodes = {{2}}}).status().code(),
            StatusCode::invalid_argument);
}

TEST(SplitEpisodes, RefusesDuplicatedIndices) {
  const std::vector<SplitRow> rows{row(1, "", ""), row(1, "", "")};
  EXPECT_EQ(split_episodes(rows).status().reason(), "DUPLICATE_EPISODE");
}

EpisodeInfo info(std::int64_t index, const char* json) {
  EpisodeInfo out{.index = index, .length = 1, .row = *parse_json(json)};
  return out;
}

TEST(LatestPerSlot, KeepsTheNewestAttemptOfEachSlotInOrderOfFirstAppearance) {
  std::vector<SplitRow> rows;
  rows.push_back(split_row(info(0, R"({"slot_id":"a"})")));
  rows.push_back(split_row(info(1, R"({"task_id":1,"scene_id":2,"scene_round":3})")));
  rows.push_back(split_row(info(2, R"({})")));  // no slot data: kept
  rows.push_back(split_row(info(3, R"({"slot_id":"a"})")));
  rows.push_back(split_row(info(4, R"({"task_id":1,"scene_id":2,"scene_round":3})")));
  rows.push_back(split_row(info(5, R"({})")));
  rows[3].verdict = "fail";  // the newest stays, whatever its verdict
  EXPECT_EQ(latest_per_slot(rows), (std::vector<std::int64_t>{3, 4, 2, 5}));
  rows[3].trashed = true;
  EXPECT_EQ(latest_per_slot(rows), (std::vector<std::int64_t>{0, 4, 2, 5}));
}

TEST(LatestPerSlot, MapsAnOlderKeyToAnExplicitSlotOnlyWhenItIsUnique) {
  const char* older = R"({"task_id":"t","scene_id":"s","scene_round":1})";
  std::vector<SplitRow> rows{
      split_row(info(0, older)),
      split_row(info(1, R"({"slot_id":"a","task_id":"t","scene_id":"s","scene_round":1})"))};
  EXPECT_EQ(latest_per_slot(rows), (std::vector<std::int64_t>{1}));
  rows.push_back(
      split_row(info(2, R"({"slot_id":"b","task_id":"t","scene_id":"s","scene_round":1})")));
  EXPECT_EQ(latest_per_slot(rows), (std::vector<std::int64_t>{0, 1, 2}));
}

}  // namespace
}  // namespace ropewalk
