#include "ropewalk/engine/contact_sheet.h"

#include <algorithm>
#include <array>
#include <bit>

#include <gtest/gtest.h>

#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/engine/contact_sheet_font_internal.h"
#include "ropewalk/engine/contact_sheet_internal.h"
#include "ropewalk/engine/simulate.h"
#include "ropewalk/format/image/image.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + word.size())) {
    ++count;
  }
  return count;
}

// Three episodes; the second is failed by hand with a note that would break careless HTML.
void make_dataset(const std::filesystem::path& root) {
  SimulateRequest request;
  request.out = root;
  request.options.episodes = 3;
  request.options.seconds = 1.0;
  request.options.cameras = 2;
  request.options.width = 64;
  request.options.height = 48;
  const auto made = simulate(request, {});
  ASSERT_TRUE(made.ok()) << made.status().to_string();
  auto ledger = Ledger::open_for_write(root, {"anna"});
  ASSERT_TRUE(ledger.ok());
  ASSERT_TRUE(ledger
                  ->mark({.episodes = {1},
                          .verdict = "fail",
                          .note = "</p><script>alert(\"x\")</script> & so on"})
                  .ok());
}

TEST(ContactSheet, ShowsEveryEpisodeWithItsOutcomeInOneHtmlFile) {
  const test::TempDir dir("sheet");
  ASSERT_NO_FATAL_FAILURE(make_dataset(dir / "raw"));
  const auto report = write_contact_sheet({.path = dir / "raw", .out = dir / "sheet.html"}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->episodes, 3);
  EXPECT_EQ(report->rejected, 1);
  EXPECT_EQ(report->accepted, 2);
  EXPECT_EQ(report->pictures, 3 * 2 * 6);
  const std::string html = test::read_file(dir / "sheet.html");
  EXPECT_EQ(report->bytes, html.size());
  EXPECT_EQ(count_of(html, "<article"), 3u);
  EXPECT_EQ(count_of(html, "<article class=\"card rej\" id=\"e1\""), 1u);
  EXPECT_EQ(count_of(html, "<article class=\"card acc\" id=\"e0\""), 1u);
  EXPECT_EQ(count_of(html, "src=\"data:image/jpeg;base64,/9j/"), 6u);  // a strip per camera
  EXPECT_EQ(count_of(html, "<svg"), 6u);                               // state and command
  EXPECT_EQ(count_of(html, "<script>"), 1u);                           // ours alone
  EXPECT_NE(html.find("&lt;script&gt;alert(&quot;x&quot;)"), std::string::npos);
  EXPECT_NE(html.find("rejected: fail over green"), std::string::npos);
  EXPECT_EQ(count_of(html, "http"), 0u);  // nothing is loaded from elsewhere
}

TEST(ContactSheet, DrawsAPngWithABarInTheColourOfTheOutcome) {
  const test::TempDir dir("sheet");
  ASSERT_NO_FATAL_FAILURE(make_dataset(dir / "raw"));
  const auto report = write_contact_sheet(
      {.path = dir / "raw", .out = dir / "sheet.png", .episodes = {{1, 2}}}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->episodes, 2);
  const std::string png = test::read_file(dir / "sheet.png");
  const auto image = decode_image(as_bytes(png));
  ASSERT_TRUE(image.ok()) << image.status().to_string();
  EXPECT_EQ(image->shape.width, 1440);
  // Down the left edge: first the bar of the failed episode, then that of the accepted one.
  std::vector<std::array<int, 3>> bars;
  for (int y = 0; y < image->shape.height; ++y) {
    const std::uint8_t* at =
        image->pixels.data() +
        (static_cast<std::size_t>(y) * static_cast<std::size_t>(image->shape.width) + 26) * 3;
    const std::array<int, 3> colour{at[0], at[1], at[2]};
    if (bars.empty() || bars.back() != colour) bars.push_back(colour);
  }
  const std::array<int, 3> rejected{184, 64, 14};
  const std::array<int, 3> accepted{11, 122, 99};
  const auto first = std::ranges::find(bars, rejected);
  ASSERT_NE(first, bars.end());
  EXPECT_NE(std::find(first, bars.end(), accepted), bars.end());
}

TEST(ContactSheet, RefusesOtherEndingsAndUnknownEpisodes) {
  const test::TempDir dir("sheet");
  ASSERT_NO_FATAL_FAILURE(make_dataset(dir / "raw"));
  EXPECT_EQ(
      write_contact_sheet({.path = dir / "raw", .out = dir / "sheet.gif"}, {}).status().code(),
      StatusCode::invalid_argument);
  const auto unknown = write_contact_sheet(
      {.path = dir / "raw", .out = dir / "sheet.html", .episodes = {{0, 9}}}, {});
  EXPECT_EQ(unknown.status().code(), StatusCode::not_found);
  EXPECT_FALSE(std::filesystem::exists(dir / "sheet.html"));
}

TEST(ContactSheet, PlacesIssuesAlongTheTimeLine) {
  QualityEntry issue{.code = "x"};
  EXPECT_EQ(sheet::marks_of(issue, 100), (std::vector<std::array<double, 2>>{{0.0, 1.0}}));
  issue.first_frame = 25;
  issue.last_frame = 49;
  EXPECT_EQ(sheet::marks_of(issue, 100), (std::vector<std::array<double, 2>>{{0.25, 0.5}}));
  issue.spans = {{0, 10}, {90, 400}};
  EXPECT_EQ(sheet::marks_of(issue, 100),
            (std::vector<std::array<double, 2>>{{0.0, 0.1}, {0.9, 1.0}}));
}

TEST(ContactSheet, HasAGlyphForEveryLetter) {
  for (char c = '!'; c <= '~'; ++c) {
    int dots = 0;
    for (const std::uint8_t row : sheet::glyph_of(c)) {
      EXPECT_LT(row, 32) << c;
      dots += std::popcount(row);
    }
    EXPECT_GT(dots, 1) << c;
    for (char other = '!'; other < c; ++other) {
      EXPECT_NE(sheet::glyph_of(c), sheet::glyph_of(other)) << c << other;
    }
  }
}

}  // namespace
}  // namespace ropewalk
