#include <set>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/finding_rules_internal.h"

#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk::lerobot {
namespace {

TEST(FindingRules, AreDocumentedAsTheyAre) {
  const std::string page = test::read_file(test::source_dir() / "docs/findings.md");
  std::set<std::string_view> codes;
  for (const FindingRule& rule : finding_rules()) {
    EXPECT_TRUE(codes.insert(rule.code).second) << rule.code << " stands twice in the table";
    const std::size_t at = page.find(fmt::format("| `{}` |", rule.code));
    ASSERT_NE(at, std::string::npos) << rule.code << " is not in docs/findings.md";
    const std::string line = page.substr(at, page.find('\n', at) - at);
    EXPECT_TRUE(
        line.ends_with(fmt::format("| {} | {} | {} |", severity_name(rule.lenient), rule.decision,
                                   rule.strict_refuses ? "refused" : "same")))
        << line;
  }
}

TEST(FindingRules, StrictModeTurnsRepairsIntoErrors) {
  const Finding lenient = make_finding("duplicate_key", {.file = "meta/info.json"}, false);
  EXPECT_EQ(lenient.severity, Severity::warning);
  EXPECT_EQ(lenient.decision, "the last one wins");
  const Finding strict = make_finding("duplicate_key", {.file = "meta/info.json"}, true);
  EXPECT_EQ(strict.severity, Severity::error);
  EXPECT_EQ(strict.decision, "refused");
  EXPECT_EQ(make_finding("backup_file", {}, true).severity, Severity::info);
}

TEST(FindingLog, NamesTheFirstCodeAndEveryFinding) {
  FindingLog log(true);
  EXPECT_TRUE(log.refusal("set").ok());
  log.add("backup_file", {.file = "meta/info.json.bak"});
  EXPECT_TRUE(log.refusal("set").ok());
  for (int episode = 0; episode < 30; ++episode) log.add("files_missing", {.episode = episode});
  const Status refusal = log.refusal("set");
  EXPECT_EQ(refusal.reason(), "files_missing");
  EXPECT_THAT(std::string(refusal.message()), testing::HasSubstr("set: 30 findings refused"));
  EXPECT_THAT(std::string(refusal.message()), testing::HasSubstr("and 10 more"));
}

}  // namespace
}  // namespace ropewalk::lerobot
