// Bad input, full disks, second processes and sudden death: one clear error, nothing published,
// nothing of the source changed.
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/engine/recover.h"

#include "tests/e2e/e2e_fixture.h"

namespace ropewalk::test {
namespace {

namespace fs = std::filesystem;

// Path, size and time of every file: what "nothing of the source changed" means.
std::string state_of(const fs::path& root) {
  std::string out;
  const auto names = list_tree(root);
  for (const std::string& name : *names) {
    const auto info = file_info(root / name);
    out += name + " " + std::to_string((*info)->size_bytes) + " " +
           std::to_string((*info)->modified_ns) + "\n";
  }
  return out;
}

Status export_status(const fs::path& raw, const std::string& format = "lerobot_v3") {
  return export_dataset({.source = raw, .format = format}, {}).status();
}

fs::path first_video(const fs::path& raw) {
  return raw / "videos/chunk-000/observation.images.top/episode_000001.mp4";
}

struct Damage {
  const char* name;
  void (*apply)(const fs::path& raw);
  const char* expected;  // a part of the message
};

const Damage kDamages[] = {
    {"MissingVideo", [](const fs::path& raw) { fs::remove(first_video(raw)); },
     "episode_000001.mp4"},
    {"TruncatedVideo",
     [](const fs::path& raw) {
       fs::resize_file(first_video(raw), fs::file_size(first_video(raw)) / 2);
     },
     "episode_000001.mp4"},
    {"VideoIsAPointerFile",
     [](const fs::path& raw) {
       std::ofstream(first_video(raw), std::ios::trunc)
           << "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
     },
     "episode_000001.mp4"},
    {"TableIsAPointerFile",
     [](const fs::path& raw) {
       std::ofstream(raw / "data/chunk-000/episode_000001.parquet", std::ios::trunc)
           << "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n";
     },
     "episode_000001.parquet"},
    {"MissingTable",
     [](const fs::path& raw) { fs::remove(raw / "data/chunk-000/episode_000001.parquet"); },
     "episode_000001.parquet"},
    {"VideoOfAnotherEpisode",
     [](const fs::path& raw) {
       fs::copy_file(raw / "videos/chunk-000/observation.images.top/episode_000002.mp4",
                     first_video(raw), fs::copy_options::overwrite_existing);
     },
     "episode_000001.mp4"},
    {"TemplateLeavesTheRoot",
     [](const fs::path& raw) {
       std::string text = *read_text_file(raw / "meta/info.json", 1 << 20);
       const std::size_t at = text.find("data/chunk-");
       text.replace(at, 4, "../../data");
       std::ofstream(raw / "meta/info.json", std::ios::trunc) << text;
     },
     "root"},
};

class DamagedSource : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedSource, IsRefusedWithNothingPublished) {
  const TempDir dir;
  SimulatedOptions options = small_options(3);
  options.seconds = 1.0;
  const auto raw = make_raw(dir.path(), options);
  GetParam().apply(raw);
  const std::string before = state_of(raw);
  const Status status = export_status(raw);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.message().find(GetParam().expected), std::string_view::npos)
      << status.to_string();
  EXPECT_FALSE(fs::exists(pair_of(raw, "lerobot_v3")));
  EXPECT_TRUE(hidden_beside(raw).empty());
  EXPECT_EQ(state_of(raw), before);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DamagedSource, ::testing::ValuesIn(kDamages),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(Faults, EverythingThatForbidsAnExportIsListedAtOnce) {
  const TempDir dir;
  const auto raw =
      make_raw(dir.path(), small_options(5, "missing_column,wrong_shape,length_mismatch"));
  const Status status = export_status(raw, "hdf5");
  EXPECT_EQ(status.reason(), "INVALID_SOURCE") << status.to_string();
  for (const char* what : {"observations.state.eef", "action.qpos", "22 frames"}) {
    EXPECT_NE(status.message().find(what), std::string_view::npos) << status.message();
  }
  EXPECT_FALSE(fs::exists(raw.parent_path() / "export" / "hdf5"));
}

TEST(Faults, ASourceThatChangesMeanwhileIsNotPublished) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(3));
  bool touched = false;
  RunContext context;
  context.progress = [&](const Progress& progress) {
    if (touched || progress.phase != "proving") return;
    touched = true;
    fs::last_write_time(first_video(raw), fs::file_time_type::clock::now());
  };
  const auto report = export_dataset({.source = raw, .format = "lerobot_v21"}, context);
  EXPECT_EQ(report.status().reason(), "SOURCE_CHANGED") << report.status().to_string();
  EXPECT_FALSE(fs::exists(pair_of(raw, "lerobot_v21")));
  EXPECT_TRUE(hidden_beside(raw).empty());
}

TEST(Faults, ACancelledExportLeavesTheOldPair) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(3));
  const auto first = export_dataset({.source = raw, .format = "hdf5"}, {});
  ASSERT_TRUE(first.ok()) << first.status().to_string();
  for (const char* phase : {"converting accepted", "proving"}) {
    std::stop_source stop;
    RunContext context{.stop = stop.get_token()};
    context.progress = [&](const Progress& progress) {
      if (progress.phase == phase) stop.request_stop();
    };
    const auto report = export_dataset({.source = raw, .format = "hdf5"}, context);
    EXPECT_EQ(report.status().code(), StatusCode::cancelled) << report.status().to_string();
    EXPECT_TRUE(hidden_beside(raw).empty());
    EXPECT_EQ(read_marker(pair_of(raw, "hdf5") / "accepted")->export_id, first->export_id);
  }
}

TEST(Faults, TwoExportsOfOnePairDoNotMix) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  const auto target = derive_target(raw, "mcap");
  ASSERT_TRUE(target.ok());
  fs::create_directories(target->parent);
  const auto held = lock_pair(*target, FileLock::Mode::exclusive);
  ASSERT_TRUE(held.ok());
  const Status status = export_status(raw, "mcap");
  EXPECT_EQ(status.code(), StatusCode::unavailable);
  EXPECT_EQ(status.reason(), "PAIR_LOCKED");
}

TEST(Faults, AFullDiskPublishesNothing) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(6));
  const fs::path disk = dir.path() / "disk";
  fs::create_directories(disk);
  if (::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=1m") != 0) {
    GTEST_SKIP() << "mounting a small disk needs root";
  }
  // Refused before the first byte, with both numbers.
  const auto refused = export_dataset({.source = raw, .format = "hdf5", .out = disk / "pair"}, {});
  EXPECT_EQ(refused.status().code(), StatusCode::resource_exhausted)
      << refused.status().to_string();
  EXPECT_TRUE(fs::is_empty(disk) || !fs::exists(disk / "pair"));
  ::umount(disk.c_str());
}

TEST(Faults, AForeignDirectoryIsNotMoved) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  const fs::path out = dir.path() / "papers";
  fs::create_directories(out);
  std::ofstream(out / "thesis.txt") << "mine";
  const auto report = export_dataset({.source = raw, .format = "lerobot_v21", .out = out}, {});
  EXPECT_EQ(report.status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(*read_text_file(out / "thesis.txt", 100), "mine");
}

// Kills a process that exports in a loop, at random moments; afterwards recovery leaves one whole
// pair.
TEST(Faults, AKilledExportLeavesTheOldPairOrTheNewOne) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(3));
  ASSERT_TRUE(export_dataset({.source = raw, .format = "lerobot_v3"}, {}).ok());
  std::mt19937 random(42);
  for (int round = 0; round < 15; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (int i = 0; i < 1000; ++i) {
        if (!export_dataset({.source = raw, .format = "lerobot_v3"}, {}).ok()) ::_exit(1);
      }
      ::_exit(0);
    }
    std::this_thread::sleep_for(
        std::chrono::milliseconds(std::uniform_int_distribution<>(5, 160)(random)));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status))
        << "the exporting process ended by itself: " << WEXITSTATUS(status);
    const auto recovered = recover_path(raw, {});
    ASSERT_TRUE(recovered.ok()) << recovered.status().to_string();
    EXPECT_FALSE(recovered->blocked) << recovered->to_json().dump(2);
    EXPECT_TRUE(verify_pair(pair_of(raw, "lerobot_v3")).ok());
    EXPECT_TRUE(hidden_beside(raw).empty());
  }
  const auto verified = verify_path({.path = pair_of(raw, "lerobot_v3"), .full = true}, {});
  ASSERT_TRUE(verified.ok());
  EXPECT_TRUE(verified->passed()) << verified->to_json().dump(2);
}

TEST(Verify, NamesAFlippedByteAndAForeignHalf) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  ASSERT_TRUE(export_dataset({.source = raw, .format = "mcap"}, {}).ok());
  const fs::path file = pair_of(raw, "mcap") / "accepted/data/chunk-000/episode_000001.mcap";
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekg(200000);
  const char byte = static_cast<char>(stream.get());
  stream.seekp(200000);
  stream.put(static_cast<char>(byte ^ 1));
  stream.close();
  const auto report = verify_path({.path = pair_of(raw, "mcap")}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_FALSE(report->passed());
  EXPECT_NE(report->to_json().dump().find("episode_000001.mcap"), std::string::npos);
}

TEST(Verify, RecordsNothingWithoutItsSource) {
  const TempDir dir;
  const auto raw = make_raw(dir.path(), small_options(2));
  ASSERT_TRUE(export_dataset({.source = raw, .format = "lerobot_v21"}, {}).ok());
  fs::rename(raw, dir.path() / "moved");
  const auto report = verify_path({.path = pair_of(raw, "lerobot_v21")}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_FALSE(report->recorded);
  const auto again =
      verify_path({.path = pair_of(raw, "lerobot_v21"), .against = dir.path() / "moved"}, {});
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->passed() && again->recorded);
}

}  // namespace
}  // namespace ropewalk::test
