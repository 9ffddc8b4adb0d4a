// A publication is killed at every fault point, its own and those of every system call below it, in
// every mode, with and without the loss of unsynced data; and every point is made to fail. After
// recovery the whole old pair or the whole new one is there. R-PUB-1, R-PUB-2.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/stage/publish/publish.h"

#include "tests/support/pair_fixture.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::codes;
using test::generation_at;
using test::hidden_names;
using test::publish_generation;
using test::TempDir;

// Thousands of publications with dozens of fsyncs each: in memory where that is possible, since the
// loss of unsynced data is emulated anyway. An explicit TMPDIR is respected.
const bool kInMemory = ::access("/dev/shm", W_OK) == 0 && ::setenv("TMPDIR", "/dev/shm", 0) == 0;

struct Scene {
  const char* name;
  bool has_old;
  std::optional<PublishMode> mode;
};
constexpr std::array<Scene, 4> kScenes{{
    {"exchange", true, PublishMode::exchange},
    {"noreplace", false, PublishMode::noreplace},
    {"renames", true, PublishMode::renames},
    {"renames without an old pair", false, PublishMode::renames},
}};

struct Stage {
  explicit Stage(const Scene& scene)
      : target(derive_target(dir / "data/raw", "mcap").value()), mode(scene.mode) {
    std::filesystem::create_directory(dir / "graveyard");
    if (!scene.has_old) return;
    const auto old = publish_generation(target, "old");
    EXPECT_TRUE(old.ok()) << old.status().to_string();
    test::write_file(target.directory() / "NOTES.md", "by hand");  // to be carried over
  }
  TempDir dir{"crash"};
  PairTarget target;
  std::optional<PublishMode> mode;
};

[[noreturn]] void die(bool drop_unsynced) {
  if (drop_unsynced) UnsyncedTracker::drop_unsynced();
  ::kill(::getpid(), SIGKILL);
  for (;;) ::pause();
}

// Runs `body` in a child that dies at its n-th fault point. Returns whether it got that far; the
// name of the point is told through a pipe.
template <typename Body>
bool dies_at(int n, bool drop_unsynced, const std::filesystem::path& graveyard, std::string& point,
             Body body) {
  std::array<int, 2> pipe_fds{};
  EXPECT_EQ(::pipe(pipe_fds.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    if (drop_unsynced) UnsyncedTracker::arm(graveyard);
    std::atomic<int> left{n};
    set_fault_hook([&](std::string_view reached) {
      if (--left == 0) {
        std::ignore = ::write(pipe_fds[1], reached.data(), reached.size());
        die(drop_unsynced);
      }
      return ok_status();
    });
    body();
    ::_exit(0);
  }
  ::close(pipe_fds[1]);
  int status = 0;
  ::waitpid(child, &status, 0);
  std::array<char, 128> name{};
  const ssize_t got = ::read(pipe_fds[0], name.data(), name.size());
  ::close(pipe_fds[0]);
  point.assign(name.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  if (WIFSIGNALED(status)) {
    EXPECT_EQ(WTERMSIG(status), SIGKILL) << "the child crashed by itself after point " << point;
    return true;
  }
  EXPECT_EQ(WEXITSTATUS(status), 0);
  return false;
}

// What must hold after any crash and one recovery.
void expect_whole_pair(const Stage& stage, bool has_old, const std::string& where) {
  const auto reports = recover(stage.target.directory());
  if (!reports.ok()) {
    // Killed before anything of this pair existed, not even its lock.
    ASSERT_EQ(reports.status().code(), StatusCode::not_found)
        << where << ": " << reports.status().to_string();
  } else {
    ASSERT_EQ(reports->size(), 1U);
    EXPECT_FALSE(reports->front().blocked) << where << ": " << codes(reports->front().findings);
  }
  const std::string generation = generation_at(stage.target.directory());
  EXPECT_TRUE(generation == "new" || generation == (has_old ? "old" : ""))
      << where << ": found \"" << generation << "\"";
  if (std::filesystem::exists(stage.target.parent)) {
    EXPECT_EQ(hidden_names(stage.target), "") << where;
  }
  if (has_old) {
    EXPECT_EQ(test::read_file(stage.target.directory() / "NOTES.md"), "by hand") << where;
  }
  if (reports.ok()) {
    const auto again = recover(stage.target.directory());
    ASSERT_TRUE(again.ok()) << where;
    EXPECT_FALSE(again->front().acted) << where << ": a second recovery still found work";
  }
  // Nothing in the way of the next export, and no lock of the dead process.
  const auto next = publish_generation(stage.target, "next");
  EXPECT_TRUE(next.ok()) << where << ": " << next.status().to_string();
}

class PublishCrash : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  const Scene& scene() const { return kScenes[static_cast<std::size_t>(std::get<0>(GetParam()))]; }
  bool drop_unsynced() const { return std::get<1>(GetParam()); }
};

TEST_P(PublishCrash, AtEveryFaultPointLeavesOneWholePair) {
  std::set<std::string> points;
  int n = 1;
  for (;; ++n) {
    const Stage stage(scene());
    std::string point;
    const bool died = dies_at(n, drop_unsynced(), stage.dir / "graveyard", point, [&] {
      const auto report = publish_generation(stage.target, "new", {.mode = stage.mode});
      if (!report.ok()) ::_exit(1);
    });
    if (!died) {
      EXPECT_EQ(generation_at(stage.target.directory()), "new");
      break;
    }
    points.insert(point);
    expect_whole_pair(stage, scene().has_old, "killed at call " + std::to_string(n) + ", " + point);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(n, 40) << "a publication has more fault points than that";
  for (const char* point :
       {"publish.stage_created", "publish.manifests_written", "publish.stage_synced",
        "publish.stage_proven", "publish.staged_durable", "publish.owner_removed",
        "publish.switching_durable", "publish.switch", "publish.switched", "publish.verify",
        "publish.published_durable", "publish.remove_journal", "publish.done"}) {
    EXPECT_TRUE(points.contains(point)) << point << " was never reached";
  }
  if (scene().has_old) {
    for (const char* point : {"publish.carry_over", "publish.carried_over", "publish.delete_old",
                              "publish.old_deleted"}) {
      EXPECT_TRUE(points.contains(point)) << point << " was never reached";
    }
    if (scene().mode == PublishMode::renames) {
      EXPECT_TRUE(points.contains("publish.old_renamed"));
    }
  }
  std::printf("%s%s: killed at %d calls\n", scene().name, drop_unsynced() ? ", unsynced lost" : "",
              n - 1);
}

// Recovery itself is killed at every call, after a crash at each step where there is work to do.
TEST_P(PublishCrash, DuringRecoveryLeavesOneWholePair) {
  for (const std::string_view first_point :
       {"publish.stage_proven", "publish.staged_durable", "publish.switching_durable",
        "publish.old_renamed", "publish.switched", "publish.published_durable",
        "publish.carried_over"}) {
    for (int n = 1;; ++n) {
      const Stage stage(scene());
      const pid_t child = ::fork();
      if (child == 0) {
        set_fault_hook([&](std::string_view reached) {
          if (reached == first_point) die(false);
          return ok_status();
        });
        std::ignore = publish_generation(stage.target, "new", {.mode = stage.mode});
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      if (!WIFSIGNALED(status)) break;  // this mode has no such point
      std::string point;
      const bool died = dies_at(n, drop_unsynced(), stage.dir / "graveyard", point,
                                [&] { std::ignore = recover(stage.target.directory()); });
      expect_whole_pair(stage, scene().has_old,
                        std::string(first_point) + ", then recovery killed at call " +
                            std::to_string(n) + ", " + point);
      if (!died || HasFatalFailure() || HasNonfatalFailure()) break;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PublishCrash,
                         testing::Combine(testing::Range(0, 4), testing::Bool()),
                         [](const testing::TestParamInfo<std::tuple<int, bool>>& run) {
                           std::string name =
                               kScenes[static_cast<std::size_t>(std::get<0>(run.param))].name;
                           std::ranges::replace(name, ' ', '_');
                           return name + (std::get<1>(run.param) ? "_unsynced_lost" : "_killed");
                         });

// Failure, not death: one call fails, everything else works.
class PublishFailure : public testing::TestWithParam<int> {
 protected:
  const Scene& scene() const { return kScenes[static_cast<std::size_t>(GetParam())]; }
};

TEST_P(PublishFailure, OfAnyCallPublishesOrLeavesTheOldPairUntouched) {
  int failures = 0;
  for (int n = 1;; ++n) {
    const Stage stage(scene());
    const auto before = file_info(stage.target.directory()).value();
    std::string point;
    std::atomic<int> left{n};
    set_fault_hook([&](std::string_view reached) {
      if (--left != 0) return ok_status();
      point = reached;
      return resource_exhausted("injected: no space left on device");
    });
    const auto report = publish_generation(stage.target, "new", {.mode = stage.mode});
    set_fault_hook(nullptr);
    const std::string where = "call " + std::to_string(n) + ", " + point;
    if (point.empty()) break;
    if (report.ok()) {
      EXPECT_EQ(generation_at(stage.target.directory()), "new") << where;
      // Looking at the old pair may fail without harm; everything else is told.
      if (point != "io.open") {
        EXPECT_EQ(report->findings.count("publish_unfinished"), 1) << where;
      }
    } else {
      ++failures;
      EXPECT_NE(report.status().message().find("injected"), std::string::npos)
          << where << ": " << report.status().to_string();
      EXPECT_EQ(generation_at(stage.target.directory()), scene().has_old ? "old" : "") << where;
      const auto after = file_info(stage.target.directory()).value();
      EXPECT_EQ(after.has_value(), before.has_value()) << where;
      if (before && after) {
        EXPECT_EQ(after->id, before->id) << where << ": another inode";
      }
      if (std::filesystem::exists(stage.target.parent)) {
        EXPECT_EQ(hidden_names(stage.target), "") << where << ": a failure left something";
      }
    }
    expect_whole_pair(stage, scene().has_old, where);
    if (HasFatalFailure() || HasNonfatalFailure()) return;
  }
  EXPECT_GT(failures, 30);
}

INSTANTIATE_TEST_SUITE_P(Modes, PublishFailure, testing::Range(0, 4));

// The journal already says `published` on disk when its fsync fails, so the switch is undone; then
// the process dies while it undoes.
TEST(PublishFailureThenCrash, WhileUndoingLeavesOneWholePair) {
  for (const Scene& scene : kScenes) {
    int n = 1;
    for (;; ++n) {
      const Stage stage(scene);
      const pid_t child = ::fork();
      if (child == 0) {
        bool verifying = false;
        bool failed = false;
        int calls = 0;
        set_fault_hook([&](std::string_view reached) {
          if (failed && ++calls == n) die(false);
          verifying |= reached == "publish.verify";
          if (!verifying || failed || reached != "io.fsync_dir") return ok_status();
          failed = true;
          return unavailable("injected");
        });
        std::ignore = publish_generation(stage.target, "new", {.mode = scene.mode});
        ::_exit(failed ? 0 : 1);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      expect_whole_pair(
          stage, scene.has_old,
          std::string(scene.name) + ", killed at call " + std::to_string(n) + " of undoing");
      if (testing::Test::HasFailure()) return;
      if (!WIFSIGNALED(status)) {
        ASSERT_EQ(WEXITSTATUS(status), 0) << "the failure was never reached";
        break;
      }
    }
    EXPECT_GT(n, 15) << scene.name;
  }
}

// Every directory below `parent` that is a whole pair, hidden ones included.
std::set<std::string> whole_pairs(const std::filesystem::path& parent) {
  std::set<std::string> found;
  const auto names = list_directory(parent).value();
  for (const std::string& name : names) {
    const auto info = file_info(parent / name).value();
    if (!info || !info->is_directory) continue;
    const std::string generation = generation_at(parent / name);
    if (generation == "old" || generation == "new") found.insert((parent / name).string());
  }
  return found;
}

// R-PUB-2: switch, undo and removal fail in every combination, and keep failing.
TEST(PublishFailures, InEveryCombinationKeepAWholePairAndNameIt) {
  constexpr std::array<std::string_view, 9> kPoints{
      "publish.switch",       "publish.switched",   "publish.verify",
      "publish.undo",         "publish.undone",     "publish.remove_stage",
      "publish.carried_over", "publish.delete_old", "io.remove"};
  int undo_failed = 0;
  for (const Scene& scene : {kScenes[0], kScenes[1], kScenes[2]}) {
    for (unsigned set = 1; set < (1U << kPoints.size()); ++set) {
      const Stage stage(scene);
      bool switching = false;
      set_fault_hook([&](std::string_view reached) {
        switching |= reached == "publish.switching_durable";
        for (std::size_t i = 0; switching && i < kPoints.size(); ++i) {
          if ((set & (1U << i)) != 0 && reached == kPoints[i]) return unavailable("injected");
        }
        return ok_status();
      });
      const auto report = publish_generation(stage.target, "new", {.mode = scene.mode});
      set_fault_hook(nullptr);
      const std::string where = std::string(scene.name) + ", set " + std::to_string(set);
      const auto pairs = whole_pairs(stage.target.parent);
      const std::string at_target = generation_at(stage.target.directory());
      EXPECT_FALSE(at_target.starts_with("BROKEN")) << where << ": " << at_target;
      if (scene.has_old || report.ok()) {
        EXPECT_FALSE(pairs.empty()) << where;
      }
      if (report.ok()) {
        EXPECT_EQ(at_target, "new") << where;
      } else if (report.status().reason() == "UNDO_FAILED") {
        ++undo_failed;
        const std::string message(report.status().message());
        bool is_named = pairs.empty();
        for (const std::string& pair : pairs) {
          is_named |= message.find(pair) != std::string::npos;
        }
        EXPECT_TRUE(is_named) << where << ": " << message;
      } else {
        EXPECT_EQ(at_target, scene.has_old ? "old" : "") << where;
      }
      expect_whole_pair(stage, scene.has_old, where);
      if (testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(undo_failed, 100);
}

// Reads both markers through one open directory, so that both are of one moment.
std::string ids_at(const std::filesystem::path& directory) {
  const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return "absent";
  std::string ids;
  for (const char* half : {"accepted", "rejected"}) {
    const auto marker = read_marker("/proc/self/fd/" + std::to_string(fd) + "/" + half);
    // A pair that is deleted while it is read was replaced, which is no mix.
    ids += (marker.ok() ? marker->export_id : "gone") + " ";
  }
  ::close(fd);
  return ids;
}

TEST(PublishReader, NeverSeesHalvesOfDifferentExports) {
  for (const auto mode : {PublishMode::exchange, PublishMode::renames}) {
    const Stage stage({"", true, mode});
    std::atomic<bool> done{false};
    std::atomic<int> reads{0};
    std::atomic<int> absent{0};
    std::string mixed;
    std::thread reader([&] {
      while (!done) {
        const std::string ids = ids_at(stage.target.directory());
        ++reads;
        if (ids == "absent") {
          ++absent;
        } else if (ids.find("gone") == std::string::npos && ids.substr(0, 37) != ids.substr(37)) {
          mixed = ids;
        }
      }
    });
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(publish_generation(stage.target, "g" + std::to_string(i), {.mode = mode}).ok());
    }
    done = true;
    reader.join();
    EXPECT_EQ(mixed, "");
    EXPECT_GT(reads, 20);
    if (mode == PublishMode::exchange) {
      EXPECT_EQ(absent, 0) << "an exchange leaves no moment without a pair";
    }
  }
}

TEST(PublishCrashAtRandomTimes, LeavesOneWholePair) {
  std::mt19937 random(20260101);
  std::uniform_int_distribution<int> wait_us(200, 60'000);
  int recovered = 0;
  for (const auto mode : {PublishMode::exchange, PublishMode::renames}) {
    const Stage stage({"", true, mode});
    for (int round = 0; round < 40; ++round) {
      const pid_t child = ::fork();
      if (child == 0) {
        for (;;) {
          if (!publish_generation(stage.target, "new", {.mode = mode}).ok()) ::_exit(1);
        }
      }
      std::this_thread::sleep_for(std::chrono::microseconds(wait_us(random)));
      ::kill(child, SIGKILL);
      int status = 0;
      ::waitpid(child, &status, 0);
      ASSERT_TRUE(WIFSIGNALED(status)) << "the child failed by itself";
      const auto reports = recover(stage.target.directory());
      ASSERT_TRUE(reports.ok()) << reports.status().to_string();
      recovered += reports->front().acted ? 1 : 0;
      const std::string generation = generation_at(stage.target.directory());
      ASSERT_TRUE(generation == "new" || generation == "old") << generation;
      ASSERT_EQ(hidden_names(stage.target), "");
      ASSERT_EQ(test::read_file(stage.target.directory() / "NOTES.md"), "by hand");
    }
  }
  EXPECT_GT(recovered, 10) << "the kills hit nothing";
}

}  // namespace
}  // namespace ropewalk
