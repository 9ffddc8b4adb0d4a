#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/kept_rows_internal.h"

#include "tests/support/temp_dir.h"

namespace ropewalk::lerobot {
namespace {

Json json(std::string_view text) {
  auto parsed = parse_json(text);
  EXPECT_TRUE(parsed.ok()) << parsed.status().to_string();
  return std::move(parsed).value();
}

TEST(KeptRows, RestoreWhatColumnsCannotHold) {
  // As a table gives it: doubles for integers, no nulls in objects, text where types differ.
  const Json table = json(
      R"({"episode_index": 0, "tasks": ["lift"], "length": 3, "rate": 30.0, "slot": {"id": "a"},)"
      R"( "mixed": "17", "said": "\"17\"", "list": [{"a": 1.0}, {}]})");
  const Json kept =
      json(R"({"episode_index": 0, "tasks": ["lift"], "length": 3, "nothing": null, "rate": 30,)"
           R"( "slot": {"id": "a", "round": null, "more": {}}, "empty": {}, "mixed": 17,)"
           R"( "said": "17", "list": [{"a": 1, "b": null}, {"a": null}]})");
  EXPECT_EQ(restore_row(table, kept), kept);
}

TEST(KeptRows, BelieveTheTableWhereBothDiffer) {
  const Json table =
      json(R"({"episode_index": 0, "tasks": ["turn"], "length": 3, "qc_verdict": "fail", "new": 1,)"
           R"( "slot": {"id": "b"}, "list": [1, 2]})");
  const Json kept = json(
      R"({"episode_index": 0, "tasks": ["lift"], "length": 3, "qc_verdict": "pass", "gone": 5,)"
      R"( "slot": {"id": "a", "round": null}, "list": [1]})");
  EXPECT_EQ(restore_row(table, kept),
            json(R"({"episode_index": 0, "tasks": ["turn"], "length": 3, "qc_verdict": "fail",)"
                 R"( "slot": {"id": "b"}, "list": [1, 2], "new": 1})"));
}

TEST(KeptRows, AreOfAnotherEpisodeWhenTheLengthDiffers) {
  const Json table = json(R"({"episode_index": 0, "length": 3, "a": 1.0})");
  EXPECT_EQ(restore_row(table, json(R"({"episode_index": 0, "length": 4, "a": 1, "b": null})")),
            table);
}

TEST(KeptRows, AreNoneWithoutAFile) {
  const test::TempDir dir("kept");
  const KeptRows rows = KeptRows::read(dir.path(), {});
  const Json table = json(R"({"episode_index": 0, "length": 3})");
  EXPECT_EQ(rows.restore(0, table), table);
}

}  // namespace
}  // namespace ropewalk::lerobot
