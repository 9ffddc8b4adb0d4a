#include "ropewalk/base/io/local_fs.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <regex>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/process.h"
#include "ropewalk/base/io/staged_directory.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;
using test::write_file;

#define ASSERT_OK(expr)                                     \
  do {                                                      \
    const ::ropewalk::Status ok_status_ = (expr);           \
    ASSERT_TRUE(ok_status_.ok()) << ok_status_.to_string(); \
  } while (false)

std::string long_text() {
  std::string text;
  for (int i = 0; i < 300'000; ++i) text += std::to_string(i) + ",";
  return text;
}

TEST(CopyFile, CopiesBytesAndNeverLinks) {
  const TempDir dir("copy");
  const std::string text = long_text();
  write_file(dir / "from", text);
  write_file(dir / "empty", "");
  ASSERT_OK(ropewalk::copy_file(dir / "from", dir / "plain"));
  std::string seen;
  ASSERT_OK(ropewalk::copy_file(dir / "from", dir / "hashed",
                                [&](ByteSpan bytes) { seen += as_text(bytes); }));
  ASSERT_OK(ropewalk::copy_file(dir / "empty", dir / "empty2"));
  EXPECT_TRUE(seen == text) << "every byte once, in order";
  EXPECT_TRUE(test::read_file(dir / "plain") == text);
  EXPECT_TRUE(test::read_file(dir / "hashed") == text);
  EXPECT_EQ(file_info(dir / "empty2")->value().size_bytes, 0U);
  const FileId source = file_info(dir / "from")->value().id;
  for (const char* copy : {"plain", "hashed"}) {
    EXPECT_NE(file_info(dir / copy)->value().id, source);
    struct stat s = {};
    ASSERT_EQ(::stat((dir / copy).c_str(), &s), 0);
    EXPECT_EQ(s.st_nlink, 1U);
  }
}

TEST(CopyFile, CrossesFileSystems) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no second file system at /dev/shm";
  const TempDir dir("copy");
  write_file(dir / "from", "bytes");
  const std::filesystem::path to = "/dev/shm/ropewalk-copy-" + random_uuid();
  const Status copied = ropewalk::copy_file(dir / "from", to);
  EXPECT_TRUE(copied.ok()) << copied.to_string();
  EXPECT_EQ(test::read_file(to), "bytes");
  std::filesystem::remove(to);
}

TEST(CopyFile, LeavesNothingBehindOnErrors) {
  const TempDir dir("copy");
  write_file(dir / "from", long_text());
  for (const char* point : {"io.copy", "io.create", "io.write", "io.fsync"}) {
    set_fault_hook([&](std::string_view reached) {
      return reached == point ? unavailable("injected") : ok_status();
    });
    const Status status = ropewalk::copy_file(dir / "from", dir / "to");
    set_fault_hook(nullptr);
    EXPECT_EQ(status.code(), StatusCode::unavailable) << point;
    EXPECT_FALSE(std::filesystem::exists(dir / "to")) << point;
  }
  std::stop_source stop;
  const Status stopped = ropewalk::copy_file(
      dir / "from", dir / "to", [&](ByteSpan) { stop.request_stop(); }, stop.get_token());
  EXPECT_EQ(stopped.code(), StatusCode::cancelled);
  EXPECT_FALSE(std::filesystem::exists(dir / "to"));
  write_file(dir / "to", "mine");
  EXPECT_EQ(ropewalk::copy_file(dir / "from", dir / "to").code(), StatusCode::already_exists);
  EXPECT_EQ(test::read_file(dir / "to"), "mine");
  EXPECT_EQ(ropewalk::copy_file(dir / "absent", dir / "x").code(), StatusCode::not_found);
}

TEST(Rename, ExchangesDirectoriesInPlace) {
  const TempDir dir("exchange");
  write_file(dir / "a/name", "A");
  write_file(dir / "b/name", "B");
  const FileId a = file_info(dir / "a")->value().id;
  const Status status = exchange_paths(dir / "a", dir / "b");
  if (status.code() == StatusCode::unimplemented) GTEST_SKIP() << status.to_string();
  ASSERT_OK(status);
  EXPECT_EQ(test::read_file(dir / "a/name"), "B");
  EXPECT_EQ(test::read_file(dir / "b/name"), "A");
  EXPECT_EQ(file_info(dir / "b")->value().id, a) << "the inode moves with the directory";
  EXPECT_EQ(exchange_paths(dir / "a", dir / "absent").code(), StatusCode::not_found);
}

TEST(Rename, RefusesToReplace) {
  const TempDir dir("noreplace");
  write_file(dir / "a/name", "A");
  std::filesystem::create_directory(dir / "b");
  const Status status = rename_no_replace(dir / "a", dir / "b");
  if (status.code() == StatusCode::unimplemented) GTEST_SKIP() << status.to_string();
  EXPECT_EQ(status.code(), StatusCode::already_exists);
  ASSERT_OK(rename_no_replace(dir / "a", dir / "c"));
  EXPECT_EQ(test::read_file(dir / "c/name"), "A");
}

TEST(RemoveTree, StaysInsideTheTree) {
  const TempDir dir("remove");
  write_file(dir / "outside/precious", "keep me");
  write_file(dir / "tree/deep/er/file", "x");
  std::filesystem::create_directory_symlink(dir / "outside", dir / "tree/link");
  ASSERT_OK(remove_tree(dir / "tree"));
  EXPECT_FALSE(std::filesystem::exists(dir / "tree"));
  EXPECT_EQ(test::read_file(dir / "outside/precious"), "keep me");
  ASSERT_OK(remove_tree(dir / "tree"));
  std::filesystem::create_directory_symlink(dir / "outside", dir / "link");
  ASSERT_OK(remove_tree(dir / "link"));
  EXPECT_EQ(test::read_file(dir / "outside/precious"), "keep me");
}

TEST(ListTree, SortsFilesAndRefusesLinks) {
  const TempDir dir("list");
  for (const char* name : {"b/2", "a", "b/1/x"}) write_file(dir / name, "");
  EXPECT_EQ(list_tree(dir.path()).value(), (std::vector<std::string>{"a", "b/1/x", "b/2"}));
  std::filesystem::create_symlink("a", dir / "b/link");
  EXPECT_EQ(list_tree(dir.path()).status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(list_tree(dir / "absent").status().code(), StatusCode::not_found);
}

TEST(MakeDirectories, AcceptsWhatExists) {
  const TempDir dir("mkdir");
  ASSERT_OK(make_directories(dir / "a/b/c"));
  ASSERT_OK(make_directories(dir / "a/b/c/"));
  EXPECT_TRUE(std::filesystem::is_directory(dir / "a/b/c"));
  write_file(dir / "file", "");
  EXPECT_FALSE(make_directories(dir / "file/below").ok());
  ASSERT_OK(sync_tree_directories(dir.path()));
}

TEST(FreeBytes, AgreesWithTheStandardLibrary) {
  const auto found = free_bytes("/");
  ASSERT_TRUE(found.ok());
  const double expected = static_cast<double>(std::filesystem::space("/").available);
  EXPECT_NEAR(static_cast<double>(*found), expected, expected * 0.05);
}

// Runs `body` in a child process that then waits to be killed; returns its id once body is done.
template <typename Body>
pid_t start_child(Body body) {
  int pipe_fds[2];
  if (::pipe(pipe_fds) != 0) return -1;
  const pid_t child = ::fork();
  if (child == 0) {
    body();
    std::ignore = ::write(pipe_fds[1], "x", 1);
    for (;;) ::pause();
  }
  char byte = 0;
  std::ignore = ::read(pipe_fds[0], &byte, 1);
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
  return child;
}

void kill_child(pid_t child) {
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(FileLock, NamesTheHolderInAnotherProcess) {
  const TempDir dir("lock");
  const auto path = dir / ".lock";
  const pid_t child = start_child([&] {
    static auto lock = FileLock::acquire(path, FileLock::Mode::exclusive);
    if (!lock.ok()) ::_exit(1);
  });
  for (const auto mode : {FileLock::Mode::exclusive, FileLock::Mode::shared}) {
    const auto refused = FileLock::acquire(path, mode);
    ASSERT_EQ(refused.status().code(), StatusCode::unavailable);
    EXPECT_EQ(refused.status().reason(), "LOCKED");
    const std::string message(refused.status().message());
    EXPECT_NE(message.find("process " + std::to_string(child) + " on " + this_process().host),
              std::string::npos)
        << message;
    EXPECT_TRUE(std::regex_search(message, std::regex("started 2[0-9]{3}-[0-9-]+T[0-9:]+Z")))
        << message;
  }
  kill_child(child);
  EXPECT_TRUE(FileLock::acquire(path, FileLock::Mode::exclusive).ok())
      << "the lock of a dead process is free";
}

TEST(FileLock, SharesAmongReaders) {
  const TempDir dir("lock");
  const auto path = dir / ".lock";
  auto one = FileLock::acquire(path, FileLock::Mode::shared);
  auto two = FileLock::acquire(path, FileLock::Mode::shared);
  ASSERT_TRUE(one.ok() && two.ok());
  const auto refused = FileLock::acquire(path, FileLock::Mode::exclusive);
  EXPECT_EQ(refused.status().code(), StatusCode::unavailable);
  EXPECT_NE(refused.status().message().find("which reads"), std::string::npos);
  { const FileLock moved = std::move(one).value(); }
  { const FileLock moved = std::move(two).value(); }
  EXPECT_TRUE(FileLock::acquire(path, FileLock::Mode::exclusive).ok());
}

TEST(Process, KnowsTheDeadFromTheLiving) {
  ProcessIdentity self = this_process();
  EXPECT_FALSE(is_gone(self));
  ProcessIdentity reused = self;
  reused.start_ticks += 1;
  EXPECT_TRUE(is_gone(reused)) << "same id, another process";
  ProcessIdentity rebooted = self;
  rebooted.boot_id = "another";
  EXPECT_TRUE(is_gone(rebooted));
  ProcessIdentity elsewhere = rebooted;
  elsewhere.host = "another-host";
  EXPECT_FALSE(is_gone(elsewhere));

  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  ProcessIdentity dead = self;
  dead.pid = child;
  EXPECT_TRUE(is_gone(dead));
}

TEST(StagedDirectory, AppearsAtOnce) {
  const TempDir dir("staged");
  {
    auto staged = StagedDirectory::create(dir / "out/target");
    ASSERT_TRUE(staged.ok()) << staged.status().to_string();
    ASSERT_OK(write_new_file(staged->path() / "f", as_bytes("x")));
    EXPECT_FALSE(std::filesystem::exists(dir / "out/target"));
    ASSERT_OK(staged->publish());
    EXPECT_EQ(staged->publish().code(), StatusCode::failed_precondition);
  }
  EXPECT_EQ(test::read_file(dir / "out/target/f"), "x");
  EXPECT_EQ(StagedDirectory::create(dir / "out/target").status().code(),
            StatusCode::already_exists);
  {
    auto abandoned = StagedDirectory::create(dir / "out/other");
    ASSERT_TRUE(abandoned.ok());
    ASSERT_OK(write_new_file(abandoned->path() / "f", as_bytes("x")));
  }
  EXPECT_EQ(list_directory(dir / "out").value(), std::vector<std::string>{"target"});
}

TEST(RandomUuid, IsVersionFourAndNew) {
  const std::regex form("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = random_uuid();
    EXPECT_TRUE(std::regex_match(id, form)) << id;
    EXPECT_TRUE(seen.insert(id).second);
  }
}

}  // namespace
}  // namespace ropewalk
