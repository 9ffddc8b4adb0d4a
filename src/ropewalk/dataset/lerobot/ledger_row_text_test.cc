#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/ledger_row_text_internal.h"

namespace ropewalk {
namespace {

std::string edited(std::string_view line, std::string_view key, std::optional<Json> value) {
  return edit_row(line, {{std::string(key), std::move(value)}});
}

TEST(EditRow, LeavesEverythingElseAsItIs) {
  const std::string row =
      R"({"episode_index": 3, "x": 1.50, "n": NaN, "s": "a \"}\", b", "l": [1,{"qc_verdict":2}]})";
  EXPECT_EQ(edited(row, "qc_verdict", "pass"),
            row.substr(0, row.size() - 1) + R"(, "qc_verdict": "pass"})");
  EXPECT_EQ(
      edited(row, "x", 2),
      R"({"episode_index": 3, "x": 2, "n": NaN, "s": "a \"}\", b", "l": [1,{"qc_verdict":2}]})");
}

TEST(EditRow, RemovesAMemberWithItsComma) {
  EXPECT_EQ(edited(R"({"a": 1, "b": 2, "c": 3})", "a", std::nullopt), R"({"b": 2, "c": 3})");
  EXPECT_EQ(edited(R"({"a": 1, "b": 2, "c": 3})", "b", std::nullopt), R"({"a": 1, "c": 3})");
  EXPECT_EQ(edited(R"({"a": 1, "b": 2, "c": 3})", "c", std::nullopt), R"({"a": 1, "b": 2})");
  EXPECT_EQ(edited(R"({"a": 1})", "a", std::nullopt), "{}");
  EXPECT_EQ(edited(R"({"a":1,"b":2,"a":3})", "a", std::nullopt), R"({"b":2})");
}

TEST(EditRow, FollowsTheSpacingOfTheLine) {
  EXPECT_EQ(edited(R"({"a":1})", "b", "x"), R"({"a":1,"b":"x"})");
  EXPECT_EQ(edited(R"({"a": 1})", "b", "x"), R"({"a": 1, "b": "x"})");
  EXPECT_EQ(edited("{}", "b", "x"), R"({"b": "x"})");
  EXPECT_EQ(edited("\xEF\xBB\xBF{\"a\": 1}\r", "b", "x"), "\xEF\xBB\xBF{\"a\": 1, \"b\": \"x\"}\r");
}

TEST(EditRow, KeepsTheSpellingOfAnEqualValue) {
  const std::string row = R"({"a":  "\u0070ass" , "b":1})";
  EXPECT_EQ(edited(row, "a", "pass"), row);
}

TEST(EditRow, MakesSeveralEditsAtOnce) {
  EXPECT_EQ(edit_row(R"({"a": 1, "b": 2})", {{"a", std::nullopt}, {"c", Json(3)}, {"b", Json(4)}}),
            R"({"b": 4, "c": 3})");
}

TEST(ScanRow, RefusesWhatIsNoObject) {
  for (const char* text : {"", "{", "[1]", R"({"a")", R"({"a":)", R"({"a":1)", R"({"a":1,)",
                           R"({"a":1} x)", R"({"a":"b)", "{a:1}", R"({"a":[1})", R"({"a":})"}) {
    EXPECT_FALSE(scan_row(text).has_value()) << text;
  }
  EXPECT_EQ(scan_row(R"({"a":1,"b":{"c":"}"}})")->size(), 2u);
}

TEST(RowValue, TakesTheLastOfDuplicatesAndDecodesKeys) {
  const std::string row = R"({"a":1,"\u0061":2})";
  EXPECT_EQ(row_value(row, *scan_row(row), "a"), Json(2));
  EXPECT_TRUE(row_value(row, *scan_row(row), "b").is_null());
}

}  // namespace
}  // namespace ropewalk
