#include "ropewalk/stage/publish/recover.h"

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/stage/publish/debris_internal.h"

#include "tests/support/pair_fixture.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::codes;
using test::generation_at;
using test::hidden_names;
using test::publish_generation;
using test::TempDir;

PairTarget target_in(const TempDir& dir) {
  return derive_target(dir / "raw", "lerobot_v21").value();
}

// Publishes `generation` in a child process that dies at the fault point.
void die_at(const PairTarget& target, const std::string& generation, std::string_view point,
            std::optional<PublishMode> mode = {}) {
  const pid_t child = ::fork();
  if (child == 0) {
    set_fault_hook([&](std::string_view reached) {
      if (reached == point) ::kill(::getpid(), SIGKILL);
      return ok_status();
    });
    std::ignore = publish_generation(target, generation, {.mode = mode});
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << point << " was never reached";
}

RecoveryReport recover_one(const std::filesystem::path& directory, bool restore = false) {
  auto reports = recover(directory, {.restore_backup = restore});
  EXPECT_TRUE(reports.ok()) << reports.status().to_string();
  EXPECT_EQ(reports->size(), 1U);
  return reports->front();
}

TEST(Recover, KeepsTheOldPairBeforeTheSwitchAndTheNewOneAfter) {
  struct Case {
    const char* point;
    const char* expected;
    const char* findings;
  };
  for (const Case& c : {
           Case{"publish.stage_created", "g1", "stage_removed"},
           Case{"publish.stage_proven", "g1", "stage_removed"},
           Case{"publish.staged_durable", "g1", "publish_rolled_back"},
           Case{"publish.switching_durable", "g1", "publish_rolled_back"},
           Case{"publish.switched", "g2", "publish_completed"},
           Case{"publish.published_durable", "g2", "publish_completed"},
           Case{"publish.old_deleted", "g2", "publish_completed"},
       }) {
    const TempDir dir("recover");
    const PairTarget target = target_in(dir);
    ASSERT_TRUE(publish_generation(target, "g1").ok());
    die_at(target, "g2", c.point);
    const RecoveryReport report = recover_one(target.directory());
    EXPECT_EQ(generation_at(target.directory()), c.expected) << c.point;
    EXPECT_EQ(codes(report.findings), c.findings) << c.point;
    EXPECT_TRUE(report.acted);
    EXPECT_FALSE(report.blocked);
    EXPECT_EQ(hidden_names(target), "") << c.point;
    const RecoveryReport again = recover_one(target.directory());
    EXPECT_FALSE(again.acted) << c.point;
    EXPECT_TRUE(again.findings.empty()) << codes(again.findings);
  }
}

TEST(Recover, FinishesTheSecondRenameOrPutsTheOldPairBack) {
  for (const bool stage_is_whole : {true, false}) {
    const TempDir dir("recover");
    const PairTarget target = target_in(dir);
    ASSERT_TRUE(publish_generation(target, "g1").ok());
    die_at(target, "g2", "publish.old_renamed", PublishMode::renames);
    ASSERT_FALSE(std::filesystem::exists(target.directory()));
    if (!stage_is_whole) {
      const Journal journal = read_journal(target)->value();
      test::write_file(target.stage(journal.export_id) / "rejected/data/chunk-000/part", "torn");
    }
    // The target itself is absent, and still its path means this pair.
    const RecoveryReport report = recover_one(target.directory());
    EXPECT_EQ(generation_at(target.directory()), stage_is_whole ? "g2" : "g1");
    EXPECT_EQ(codes(report.findings), stage_is_whole ? "publish_completed" : "publish_rolled_back");
    EXPECT_EQ(hidden_names(target), "");
  }
}

TEST(Recover, GoesBackToTheOldPairWhenTheNewOneIsDamaged) {
  for (const auto mode : {PublishMode::exchange, PublishMode::renames}) {
    for (const char* point : {"publish.switched", "publish.published_durable"}) {
      const TempDir dir("recover");
      const PairTarget target = target_in(dir);
      ASSERT_TRUE(publish_generation(target, "g1").ok());
      die_at(target, "g2", point, mode);
      test::write_file(target.accepted() / "data/chunk-000/part", "lost");
      const RecoveryReport report = recover_one(target.directory());
      EXPECT_EQ(generation_at(target.directory()), "g1") << point;
      EXPECT_EQ(report.findings.count("new_pair_damaged"), 2) << codes(report.findings);
      EXPECT_EQ(hidden_names(target), "");
      EXPECT_TRUE(report.findings.has_errors());
      EXPECT_TRUE(publish_generation(target, "g3").ok());
    }
  }
}

TEST(Recover, TakesForeignEntriesBackToTheOldPair) {
  for (const auto mode : {PublishMode::exchange, PublishMode::renames}) {
    const TempDir dir("recover");
    const PairTarget target = target_in(dir);
    ASSERT_TRUE(publish_generation(target, "g1").ok());
    test::write_file(target.directory() / "NOTES.md", "by hand");
    die_at(target, "g2", "publish.carried_over", mode);
    test::write_file(target.accepted() / "data/chunk-000/part", "lost");
    const RecoveryReport report = recover_one(target.directory());
    EXPECT_EQ(generation_at(target.directory()), "g1");
    EXPECT_EQ(report.findings.count("foreign_carried_over"), 1) << codes(report.findings);
    ASSERT_TRUE(std::filesystem::exists(target.directory() / "NOTES.md"));
    EXPECT_EQ(test::read_file(target.directory() / "NOTES.md"), "by hand");
  }
}

TEST(Recover, KeepsForeignEntriesWhenItDiesWhileGoingBack) {
  for (int n = 1;; ++n) {
    const TempDir dir("recover");
    const PairTarget target = target_in(dir);
    ASSERT_TRUE(publish_generation(target, "g1").ok());
    test::write_file(target.directory() / "NOTES.md", "by hand");
    die_at(target, "g2", "publish.carried_over");
    test::write_file(target.accepted() / "data/chunk-000/part", "lost");
    const pid_t child = ::fork();
    if (child == 0) {
      int calls = 0;
      set_fault_hook([&](std::string_view) {
        if (++calls == n) ::kill(::getpid(), SIGKILL);
        return ok_status();
      });
      std::ignore = recover(target.directory());
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    recover_one(target.directory());
    const std::string where = "recovery killed at call " + std::to_string(n);
    EXPECT_EQ(generation_at(target.directory()), "g1") << where;
    ASSERT_TRUE(std::filesystem::exists(target.directory() / "NOTES.md")) << where;
    EXPECT_EQ(hidden_names(target), "") << where;
    if (!WIFSIGNALED(status)) {
      EXPECT_GT(n, 15);
      break;
    }
  }
}

TEST(Recover, TouchesNothingWhenNothingVerifies) {
  const TempDir dir("recover");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  die_at(target, "g2", "publish.switched");
  const std::string export_id = read_journal(target)->value().export_id;
  const auto old_part = target.stage(export_id) / "rejected/data/chunk-000/part";
  test::write_file(target.accepted() / "data/chunk-000/part", "lost");
  test::write_file(old_part, "lost too");
  const RecoveryReport report = recover_one(target.directory());
  EXPECT_TRUE(report.blocked);
  EXPECT_FALSE(report.acted);
  EXPECT_EQ(test::read_file(target.accepted() / "data/chunk-000/part"), "lost");
  EXPECT_EQ(test::read_file(old_part), "lost too");
  const auto refused = publish_generation(target, "g3");
  EXPECT_EQ(refused.status().reason(), "RECOVERY_NEEDED");
  EXPECT_NE(refused.status().message().find(target.stage(export_id).string()), std::string::npos)
      << refused.status().to_string();
}

TEST(Recover, TouchesNothingWhenTheInodesMatchNothing) {
  const TempDir dir("recover");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  die_at(target, "g2", "publish.switching_durable");
  // Somebody puts a copy in the place of the target: same content, another inode.
  std::filesystem::rename(target.directory(), dir / "moved");
  std::filesystem::copy(dir / "moved", target.directory(),
                        std::filesystem::copy_options::recursive);
  const std::string hidden = hidden_names(target);
  const RecoveryReport report = recover_one(target.directory());
  EXPECT_TRUE(report.blocked);
  EXPECT_EQ(codes(report.findings), "publish_undecided");
  EXPECT_EQ(hidden_names(target), hidden);
  EXPECT_EQ(generation_at(target.directory()), "g1");
}

TEST(Recover, TouchesNothingWhenTheJournalIsTorn) {
  const TempDir dir("recover");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  die_at(target, "g2", "publish.switched");
  const std::string journal = test::read_file(target.journal());
  for (const std::string& torn : {journal.substr(0, journal.size() / 2), std::string("{}"),
                                  std::string(), std::string(100, '\0')}) {
    test::write_file(target.journal(), torn);
    const std::string hidden = hidden_names(target);
    EXPECT_TRUE(recover_one(target.directory()).blocked);
    EXPECT_EQ(hidden_names(target), hidden);
  }
}

TEST(Recover, LeavesTheStageOfALivingProcess) {
  const TempDir dir("recover");
  const PairTarget target = target_in(dir);
  std::filesystem::create_directories(target.parent);
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const std::string id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
  const pid_t child = ::fork();
  if (child == 0) {
    test::write_file(target.stage(id) / ".owner.json", to_json(this_process()).dump());
    std::ignore = ::write(pipe_fds[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe_fds[0], &byte, 1), 1);
  EXPECT_EQ(codes(recover_one(target.parent).findings), "stage_in_use");
  EXPECT_TRUE(std::filesystem::exists(target.stage(id)));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(codes(recover_one(target.parent).findings), "stage_removed");
  EXPECT_EQ(hidden_names(target), "");
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST(Recover, NeverDeletesAPairThatNobodyAccountsFor) {
  const TempDir dir("recover");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  for (const auto& hidden : {target.stage("7c9e6679-7425-40de-944b-e07fc1f90ae7"),
                             target.previous("7c9e6679-7425-40de-944b-e07fc1f90ae7")}) {
    std::filesystem::copy(target.directory(), hidden, std::filesystem::copy_options::recursive);
    const RecoveryReport report = recover_one(target.directory());
    EXPECT_TRUE(report.blocked);
    EXPECT_EQ(codes(report.findings), "unknown_left_over");
    EXPECT_EQ(generation_at(hidden), "g1");
    std::filesystem::remove_all(hidden);
  }
}

TEST(Recover, FindsPairsByDatasetByParentAndByThemselves) {
  const TempDir dir("recover");
  test::write_file(dir / "demo/raw/meta/info.json", "{}");
  for (const char* format : {"lerobot_v21", "hdf5"}) {
    const PairTarget target = derive_target(dir / "demo/raw", format).value();
    ASSERT_TRUE(publish_generation(target, "g1").ok());
  }
  const PairTarget hdf5 = derive_target(dir / "demo/raw", "hdf5").value();
  die_at(hdf5, "g2", "publish.old_renamed", PublishMode::renames);
  for (const char* place : {"demo/raw", "demo/export"}) {
    const auto found = find_targets(dir / place);
    ASSERT_TRUE(found.ok()) << found.status().to_string();
    ASSERT_EQ(found->size(), 2U) << place;
    EXPECT_EQ(found->front().directory(), hdf5.directory());
  }
  EXPECT_EQ(find_targets(hdf5.directory())->size(), 1U);
  EXPECT_EQ(find_targets(dir / "demo/export/mcap").status().code(), StatusCode::not_found);
  EXPECT_EQ(find_targets(dir.path()).status().code(), StatusCode::not_found);
  EXPECT_EQ(recover(dir / "demo/raw")->size(), 2U);
  EXPECT_EQ(generation_at(hdf5.directory()), "g2");
}

TEST(ParseHiddenName, TakesOnlyOurOwnNames) {
  const std::string id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
  EXPECT_EQ(parse_hidden_name(".stage.a.b." + id)->pair_name, "a.b");
  EXPECT_EQ(parse_hidden_name(".stage.a.b." + id)->export_id, id);
  EXPECT_EQ(parse_hidden_name(".previous.x." + id)->kind, HiddenKind::previous);
  EXPECT_EQ(parse_hidden_name(".publish.x.json")->pair_name, "x");
  EXPECT_EQ(parse_hidden_name(".publish.x.json.tmp")->pair_name, "x");
  EXPECT_EQ(parse_hidden_name(".x.lock")->kind, HiddenKind::lock);
  const std::vector<std::string> foreign = {
      ".stage." + id, ".stage.x." + id + "0",  ".stage.x.7c9e6679", "stage.x", ".publish.json",
      ".lock",        ".accepted.previous.abc"};
  for (const std::string& name : foreign) {
    EXPECT_FALSE(parse_hidden_name(name)) << name;
  }
}

// The states that a dead run of the reference system leaves: R-PUB-6.
class ReferenceDebris : public testing::Test {
 protected:
  void write_half(const std::filesystem::path& path, std::string_view subset, int episode) {
    test::write_file(path / kMarkerPath, test::marker_text("", subset, episode));
    test::write_file(path / "data", "bytes");
  }
  std::string recover_codes(bool restore = false) {
    return codes(recover_one(target_.directory(), restore).findings);
  }
  TempDir dir_{"debris"};
  PairTarget target_{derive_target(dir_ / "raw", "lerobot_v21").value()};
};

TEST_F(ReferenceDebris, IsReportedAndKept) {
  write_half(target_.accepted(), "accepted", 0);
  write_half(target_.rejected(), "rejected", 1);
  write_half(target_.directory() / ".accepted.previous.k2/accepted", "accepted", 0);
  test::write_file(target_.directory() / ".rejected.q9/part", "x");
  test::write_file(target_.directory() / ".conversion.native.z/accepted/part", "x");
  test::write_file(target_.parent / ".conversion.accepted.z/dataset/part", "x");
  const RecoveryReport report = recover_one(target_.directory(), true);
  EXPECT_EQ(report.findings.count("foreign_debris"), 4);
  EXPECT_FALSE(report.acted);
  for (const char* kept : {".accepted.previous.k2/accepted/data", ".rejected.q9/part",
                           ".conversion.native.z/accepted/part"}) {
    EXPECT_TRUE(std::filesystem::exists(target_.directory() / kept)) << kept;
  }
}

TEST_F(ReferenceDebris, RestoresASingleBackupOnlyWhenAsked) {
  write_half(target_.accepted(), "accepted", 0);
  write_half(target_.directory() / ".rejected.previous.k2/rejected", "rejected", 1);
  EXPECT_EQ(recover_codes(), "backup_found foreign_debris pair_incomplete");
  EXPECT_FALSE(std::filesystem::exists(target_.rejected()));
  EXPECT_EQ(recover_codes(true), "backup_restored");
  EXPECT_EQ(test::read_file(target_.rejected() / "data"), "bytes");
  EXPECT_TRUE(verify_pair(target_.directory()).ok());
  EXPECT_EQ(recover_codes(true), "");
}

TEST_F(ReferenceDebris, DoesNotChooseAmongSeveralBackups) {
  write_half(target_.accepted(), "accepted", 0);
  write_half(target_.directory() / ".rejected.previous.k2/rejected", "rejected", 1);
  write_half(target_.directory() / ".rejected.previous.m4/rejected", "rejected", 2);
  EXPECT_EQ(recover_codes(true), "backup_found foreign_debris foreign_debris pair_incomplete");
  EXPECT_FALSE(std::filesystem::exists(target_.rejected()));
}

TEST_F(ReferenceDebris, TellsThatARestoredPairIsMixed) {
  // Accepted was switched already, rejected was not: episode 1 is in both after restoring.
  write_half(target_.accepted(), "accepted", 1);
  write_half(target_.directory() / ".rejected.previous.k2/rejected", "rejected", 1);
  EXPECT_EQ(recover_codes(true), "backup_restored pair_mixed");
}

}  // namespace
}  // namespace ropewalk
