// Times, durations, sizes and topic expressions as people write them.
#include "ropewalk/engine/mcap/selection.h"

#include <gtest/gtest.h>

namespace ropewalk {
namespace {

TEST(McapSelection, ReadsTimesInNanosecondsAndRfc3339) {
  EXPECT_EQ(*parse_time("0"), 0U);
  EXPECT_EQ(*parse_time("18446744073709551615"), 18446744073709551615U);
  EXPECT_EQ(*parse_time("1970-01-01T00:00:00Z"), 0U);
  EXPECT_EQ(*parse_time("2026-01-31T12:00:00.25Z"), 1769860800250000000U);
  EXPECT_EQ(*parse_time("2026-01-31T14:00:00+02:00"), 1769860800000000000U);
  EXPECT_EQ(*parse_time("2026-01-31t10:30:00.000000001-01:30"), 1769860800000000001U);
  for (const char* bad :
       {"", "12x", "-1", "2026-02-30T00:00:00Z", "2026-01-31T25:00:00Z", "2026-01-31",
        "2026-01-31T12:00:00", "18446744073709551616", "1969-12-31T23:59:59Z"}) {
    EXPECT_EQ(parse_time(bad).status().code(), StatusCode::invalid_argument) << bad;
  }
}

TEST(McapSelection, PrintsTimesAsTheyAreRead) {
  EXPECT_EQ(format_time(1769860800250000000U, TimeFormat::automatic),
            "2026-01-31T12:00:00.250000000Z");
  EXPECT_EQ(format_time(12'500'000'000U, TimeFormat::automatic), "12.500000000");
  EXPECT_EQ(format_time(12'500'000'000U, TimeFormat::nanoseconds), "12500000000");
  EXPECT_EQ(format_time(0, TimeFormat::rfc3339), "1970-01-01T00:00:00.000000000Z");
  const std::uint64_t last = 18446744073709551615U;
  EXPECT_EQ(*parse_time(format_time(last, TimeFormat::rfc3339)), last);
  EXPECT_EQ(format_duration(3'723'500'000'000U), "1h 2m 3.5s");
  EXPECT_EQ(format_duration(1), "0.000000001s");
}

TEST(McapSelection, ReadsDurationsAndSizes) {
  EXPECT_EQ(*parse_duration("10"), 10'000'000'000U);
  EXPECT_EQ(*parse_duration("1.5min"), 90'000'000'000U);
  EXPECT_EQ(*parse_duration("250ms"), 250'000'000U);
  EXPECT_FALSE(parse_duration("10 parsecs").ok());
  EXPECT_FALSE(parse_duration("-1s").ok());
  EXPECT_EQ(*parse_byte_size("4MiB"), 4U << 20);
  EXPECT_EQ(*parse_byte_size("1.5 kB"), 1500U);
  EXPECT_EQ(*parse_byte_size("123"), 123U);
  EXPECT_FALSE(parse_byte_size("big").ok());
}

TEST(McapSelection, MatchesWholeTopicNames) {
  const auto filter = TopicFilter::create({"/camera/.*", "/imu"}, {});
  ASSERT_TRUE(filter.ok());
  EXPECT_TRUE(*filter->matches("/camera/left"));
  EXPECT_TRUE(*filter->matches("/imu"));
  EXPECT_FALSE(*filter->matches("/imu2"));
  EXPECT_FALSE(*filter->matches("x/imu"));
  EXPECT_EQ(TopicFilter::create({"("}, {}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(filter->matches(std::string(1 << 20, 'a')).status().code(),
            StatusCode::resource_exhausted);
}

TEST(McapSelection, RenamesThenPrefixes) {
  const McapSelection selection{.rename = {{"/a", "/b"}}, .topic_prefix = "/robot1"};
  EXPECT_EQ(selection.renamed("/a"), "/robot1/b");
  EXPECT_EQ(selection.renamed("/c"), "/robot1/c");
  EXPECT_FALSE((McapSelection{.include_topics = {"a"}, .exclude_topics = {"b"}}).validate().ok());
  EXPECT_FALSE((McapSelection{.begin_time = 5, .end_time = 5}).validate().ok());
}

}  // namespace
}  // namespace ropewalk
