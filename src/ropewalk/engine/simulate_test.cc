#include "ropewalk/engine/simulate.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/lerobot.h"
#include "ropewalk/engine/review.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;

SimulateRequest request(const std::filesystem::path& out, std::vector<SimulatedFault> faults) {
  SimulateRequest made;
  made.out = out;
  made.options.episodes = 12;
  made.options.seconds = 3.0;
  made.options.width = 96;
  made.options.height = 64;
  made.options.faults = std::move(faults);
  return made;
}

std::set<std::string> codes(const std::vector<QualityEntry>& entries) {
  std::set<std::string> out;
  for (const QualityEntry& entry : entries) out.insert(entry.code);
  return out;
}

TEST(Simulate, InjectsFaultsThatTheChecksFind) {
  const TempDir dir("simulate");
  ThreadPool pool(2);
  const RunContext context{.pool = &pool};
  const auto report = simulate(request(dir / "set" / "raw", all_faults()), context);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  using enum SimulatedFault;
  const std::map<SimulatedFault, std::set<std::string>> expected{
      {camera_loss, {"missing_camera_stream"}},
      {frozen_camera, {"frozen_camera"}},
      {late_images, {"image_skew_exceeded"}},
      {short_episode, {"episode_too_short"}},
      {non_finite, {"non_finite_value"}},
      {missing_column, {"missing_configured_column"}},
      {wrong_shape, {"invalid_vector_dim"}},
      {length_mismatch, {"frame_count_mismatch"}},
      {idle_span, {}},
      {slow_camera, {"source_gap", "source_rate_low"}}};
  std::size_t faulty = 0;
  for (const SimulatedEpisode& episode : report->episodes) {
    SCOPED_TRACE(episode.episode_index);
    if (episode.faults.empty()) {
      EXPECT_EQ(episode.quality.quality(), "green");
      EXPECT_EQ(codes(episode.quality.issues), std::set<std::string>{});
      EXPECT_EQ(codes(episode.quality.findings), std::set<std::string>{});
      continue;
    }
    ASSERT_EQ(episode.faults.size(), 1U);
    const SimulatedFault fault = episode.faults.front();
    SCOPED_TRACE(simulated_fault_name(fault));
    ++faulty;
    const std::set<std::string> found = codes(episode.quality.issues);
    for (const std::string& code : expected.at(fault)) EXPECT_TRUE(found.contains(code)) << code;
    // A slow camera may also count as stalled; a late one repeats its first picture for a moment.
    if (fault != slow_camera && fault != late_images) {
      EXPECT_EQ(found, expected.at(fault));
    }
    EXPECT_EQ(codes(episode.quality.findings).contains("idle_span"), fault == idle_span);
    EXPECT_EQ(episode.quality.quality(), fault == idle_span ? "green" : "red");
  }
  EXPECT_EQ(faulty, all_faults().size());
  EXPECT_EQ(report->red, 9);

  // A later scan comes to the same result: nothing is left to record.
  ScanRequest scan;
  scan.path = report->out;
  scan.write = true;
  const auto again = review_scan(scan, context);
  ASSERT_TRUE(again.ok()) << again.status().to_string();
  EXPECT_EQ(again->recorded, 0);
  EXPECT_EQ(again->red, 9);
  EXPECT_EQ(again->revision, 12) << "one `saved` line per episode";
  const auto ledger = Ledger::open_for_read(report->out);
  ASSERT_TRUE(ledger.ok());
  for (const SimulatedEpisode& episode : report->episodes) {
    const ReviewRow* row = ledger->find(episode.episode_index);
    ASSERT_NE(row, nullptr);
    EXPECT_EQ(row->quality, episode.quality.quality());
    EXPECT_EQ(row->issues, episode.quality.issues_json());
  }
}

// Pictures inside the table: a camera that gave none leaves no column, and is no damaged one.
TEST(Simulate, TellsALostInlineCameraAsMissing) {
  const TempDir dir("simulate");
  SimulateRequest asked = request(dir / "set" / "raw", {SimulatedFault::camera_loss});
  asked.options.inline_images = true;
  const auto report = simulate(asked, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  std::size_t faulty = 0;
  for (const SimulatedEpisode& episode : report->episodes) {
    if (episode.faults.empty()) continue;
    ++faulty;
    EXPECT_EQ(codes(episode.quality.issues), std::set<std::string>{"missing_camera_stream"});
  }
  EXPECT_GE(faulty, 1U);
}

TEST(Simulate, GivesTheSameBytesForTheSameSeed) {
  const TempDir dir("simulate");
  SimulateRequest one = request(dir / "one", some_faults());
  one.options.episodes = 7;
  one.options.seconds = 1.0;
  SimulateRequest two = one;
  two.out = dir / "two";
  ThreadPool pool(3);
  ASSERT_TRUE(simulate(one, {}).ok());
  ASSERT_TRUE(simulate(two, {.pool = &pool}).ok());
  const auto files = list_tree(one.out);
  ASSERT_TRUE(files.ok());
  EXPECT_EQ(*files, list_tree(two.out).value());
  EXPECT_EQ(files->size(), 7U * 4 + 7);
  for (const std::string& file : *files) {
    EXPECT_EQ(test::read_file(one.out / file), test::read_file(two.out / file)) << file;
  }
}

TEST(Simulate, StaysGreenWithoutFaultsOnOtherScenes) {
  const TempDir dir("simulate");
  int number = 0;
  for (const std::uint64_t seed : {11ULL, 12ULL}) {
    for (const bool inline_images : {false, true}) {
      SimulateRequest made = request(dir / std::to_string(number++), {});
      made.options.seed = seed;
      made.options.episodes = 3;
      made.options.cameras = 4;
      made.options.inline_images = inline_images;
      const auto report = simulate(made, {});
      ASSERT_TRUE(report.ok()) << report.status().to_string();
      for (const SimulatedEpisode& episode : report->episodes) {
        EXPECT_EQ(codes(episode.quality.issues), std::set<std::string>{})
            << "seed " << seed << ", episode " << episode.episode_index;
      }
      EXPECT_EQ(report->red, 0);
    }
  }
}

TEST(Simulate, BeginsASecondChunkAfterAThousandEpisodes) {
  const TempDir dir("simulate");
  SimulateRequest made = request(dir / "raw", {});
  made.options.episodes = 1003;
  made.options.seconds = 0.2;
  made.options.fps = 10;
  made.options.cameras = 1;
  made.options.width = 32;
  made.options.height = 24;
  made.scan = false;
  ThreadPool pool(2);
  const auto report = simulate(made, {.pool = &pool});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(std::filesystem::exists(dir / "raw/data/chunk-001/episode_001002.parquet"));
  EXPECT_TRUE(std::filesystem::exists(
      dir / "raw/videos/chunk-001/observation.images.top/episode_001002.mp4"));
  const auto source = open_lerobot(report->out, {.strict = true});
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EXPECT_EQ((*source)->size(), 1003);
  EXPECT_EQ((*source)->info_document().get_int64("total_chunks"), 2);
  EXPECT_EQ((*source)->info_document().get_int64("total_frames"), report->frames);
  const auto last = (*source)->open(1002);
  ASSERT_TRUE(last.ok());
  EXPECT_TRUE((*last)->columns({0, (*last)->info().length}).ok());
}

TEST(Simulate, LeavesWhatIsThereAlone) {
  const TempDir dir("simulate");
  SimulateRequest made = request(dir / "raw", {});
  made.options.episodes = 1;
  made.options.seconds = 0.2;
  test::write_file(dir / "raw" / "thesis.txt", "mine");
  const auto refused = simulate(made, {});
  EXPECT_EQ(refused.status().code(), StatusCode::already_exists);
  EXPECT_NE(refused.status().message().find("thesis.txt"), std::string_view::npos);
  EXPECT_EQ(test::read_file(dir / "raw" / "thesis.txt"), "mine");
  made.out = dir / "empty" / "";
  std::filesystem::create_directories(made.out);
  const auto report = simulate(made, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_TRUE(std::filesystem::exists(dir / "empty/meta/info.json"));
}

TEST(Simulate, LeavesNothingBehindWhenStopped) {
  const TempDir dir("simulate");
  std::stop_source stop;
  RunContext context{.stop = stop.get_token()};
  context.progress = [&](const Progress& progress) {
    if (progress.done >= 2) stop.request_stop();
  };
  const auto report = simulate(request(dir / "set" / "raw", {}), context);
  EXPECT_EQ(report.status().code(), StatusCode::cancelled);
  EXPECT_EQ(list_directory(dir / "set").value(), std::vector<std::string>{});
}

}  // namespace
}  // namespace ropewalk
