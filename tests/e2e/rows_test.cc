// The rows of episodes through formats that cannot hold all of them, and what `ropewalk convert`
// says when episodes stay behind.
#include <sys/wait.h>

#include <cstdlib>

#include <fmt/format.h>

#include "ropewalk/engine/convert.h"
#include "ropewalk/engine/open.h"

#include "tests/e2e/e2e_fixture.h"

namespace ropewalk::test {
namespace {

std::vector<Json> rows_below(const std::filesystem::path& root) {
  std::vector<Json> out;
  const std::string text = read_file(root / "meta" / "episodes.jsonl");
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    auto row = parse_json(std::string_view(text).substr(at, end - at));
    EXPECT_TRUE(row.ok()) << row.status().to_string();
    if (row.ok()) out.push_back(std::move(*row));
    at = end + 1;
  }
  return out;
}

/// Gives every row members that typed columns cannot hold, each row another selection.
void add_odd_members(const std::filesystem::path& root) {
  constexpr const char* kOdd[] = {
      R"({"slot": {"id": "a", "round": null, "deep": {"none": null, "list": [null, 1]}},
          "rate": 30, "mixed": 17, "nothing": null, "empty": {}, "none": []})",
      R"({"slot": {"id": null}, "rate": 29.97, "mixed": "17", "nothing": {"a": null},
          "grüße": "läuft 🙂\u2028\"quoted\"", "list": [{"a": 1}, {"b": [1.5, null]}, {}]})",
      R"({"slot": null, "rate": -0.0, "mixed": {"k": true}, "big": 9007199254740993,
          "tiny": 1e-300, "huge": 18446744073709551615})",
  };
  std::string text;
  std::size_t at = 0;
  for (Json row : rows_below(root)) {
    const auto odd = parse_json(kOdd[at++ % 3]);
    ASSERT_TRUE(odd.ok()) << odd.status().to_string();
    for (const auto& [key, value] : *odd->as_object()) row.set(key, value);
    text += row.dump_spaced() + "\n";
  }
  write_file(root / "meta" / "episodes.jsonl", text);
}

TEST(Rows, SurviveTheWayThroughV3ByteForByte) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(4));
  add_odd_members(raw);
  const auto text = read_file(raw / "meta" / "episodes.jsonl");
  const auto v3 = convert_dataset({.source = raw, .out = dir / "v3", .format = "lerobot_v3"}, {});
  ASSERT_TRUE(v3.ok()) << v3.status().to_string();
  const auto back =
      convert_dataset({.source = dir / "v3", .out = dir / "v21", .format = "lerobot_v21"}, {});
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_EQ(read_file(dir / "v21" / "meta" / "episodes.jsonl"), text);
}

// The table of a v3.0 dataset is what other programs change; a text beside it that says otherwise
// is old.
TEST(Rows, OfV3AreThoseOfTheTable) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  ASSERT_TRUE(convert_dataset({.source = raw, .out = dir / "v3", .format = "lerobot_v3"}, {}).ok());
  std::string text;
  for (Json row : rows_below(dir / "v3")) {
    row.set("quality", "purple");
    row.set("nothing", Json());
    text += row.dump_spaced() + "\n";
  }
  write_file(dir / "v3" / "meta" / "episodes.jsonl", text);
  const auto source = open_dataset(dir / "v3");
  ASSERT_TRUE(source.ok());
  const EpisodeInfo info = (*source)->info(0);
  EXPECT_EQ(info.quality, "green");
  EXPECT_EQ(info.row.get_string("quality"), "green");
  ASSERT_NE(info.row.find("nothing"), nullptr);
  // Without the text the row is what the columns say.
  std::filesystem::remove(dir / "v3" / "meta" / "episodes.jsonl");
  const auto bare = open_dataset(dir / "v3");
  ASSERT_TRUE(bare.ok());
  EXPECT_EQ((*bare)->info(0).quality, "green");
  EXPECT_EQ((*bare)->info(0).row.find("nothing"), nullptr);
}

int exit_code_of(const std::string& arguments) {
  const std::string command =
      fmt::format("'{}' {} >/dev/null 2>/dev/null", ROPEWALK_PROGRAM, arguments);
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Convert, ExitsWithThreeWhenEpisodesAreLeftOut) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(3));
  const auto convert = [&](const std::string& out) {
    return exit_code_of(
        fmt::format("convert '{}' '{}' --to lerobot_v3", raw.string(), (dir / out).string()));
  };
  EXPECT_EQ(convert("whole"), 0);
  std::filesystem::remove(raw / "data" / "chunk-000" / "episode_000001.parquet");
  const auto report = convert_dataset({.source = raw, .out = dir / "api", .format = "hdf5"}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->episodes, 2);
  EXPECT_EQ(report->episodes_left_out, 1);
  EXPECT_EQ(convert("without"), 3);
  EXPECT_EQ(rows_below(dir / "without").size(), 2U);
  // An error is told once by the name of its episode.
  EXPECT_EQ(exit_code_of("convert '" + raw.string() + "' '" + (dir / "strict").string() +
                         "' --to lerobot_v3 --strict"),
            8);
}

}  // namespace
}  // namespace ropewalk::test
