#include "ropewalk/base/io/file.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <numeric>

#include <gtest/gtest.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/local_fs.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;

Bytes pattern(std::size_t size) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>((i * 2654435761U) >> 7);
  return bytes;
}

#define ASSERT_OK(expr)                                     \
  do {                                                      \
    const ::ropewalk::Status ok_status_ = (expr);           \
    ASSERT_TRUE(ok_status_.ok()) << ok_status_.to_string(); \
  } while (false)

TEST(Sink, WritesAppendsOfEverySizeInOrder) {
  const TempDir dir("sink");
  const Bytes all = pattern(5'000'000);
  auto sink = create_sink(dir / "f");
  ASSERT_TRUE(sink.ok()) << sink.status().to_string();
  std::size_t at = 0;
  for (std::size_t part = 1; at < all.size(); part = part * 3 + 1) {
    const std::size_t length = std::min(part, all.size() - at);
    ASSERT_OK((*sink)->append(ByteSpan(all).subspan(at, length)));
    at += length;
    EXPECT_EQ((*sink)->size(), at);
  }
  ASSERT_OK((*sink)->sync());
  ASSERT_OK((*sink)->close());
  ASSERT_OK((*sink)->close());
  EXPECT_EQ((*sink)->append(as_bytes("x")).code(), StatusCode::failed_precondition);
  auto back = read_file(dir / "f", 1 << 30);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(*back == all);
}

TEST(Sink, RefusesAnExistingFile) {
  const TempDir dir("sink");
  test::write_file(dir / "f", "here");
  EXPECT_EQ(create_sink(dir / "f").status().code(), StatusCode::already_exists);
  EXPECT_EQ(test::read_file(dir / "f"), "here");
}

TEST(Sink, NamesPathAndOffsetWhenTheDiskIsFull) {
  const TempDir dir("full");
  std::filesystem::create_directory(dir / "mnt");
  const std::string mount_point = (dir / "mnt").string();
  if (::mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=2m") != 0) {
    GTEST_SKIP() << "cannot mount a small tmpfs here (needs root)";
  }
  {
    auto sink = create_sink(dir / "mnt/f");
    ASSERT_TRUE(sink.ok());
    const Bytes block = pattern(1 << 20);
    Status status;
    for (int i = 0; i < 4 && status.ok(); ++i) status = (*sink)->append(block);
    EXPECT_EQ(status.code(), StatusCode::resource_exhausted) << status.to_string();
    const std::string message(status.message());
    EXPECT_NE(message.find(mount_point + "/f"), std::string::npos) << message;
    EXPECT_NE(message.find("offset"), std::string::npos) << message;
    // The first error stays: closing must not look like success.
    EXPECT_EQ((*sink)->close().code(), StatusCode::resource_exhausted);
    EXPECT_EQ(ropewalk::copy_file(dir / "mnt/f", dir / "mnt/g").code(),
              StatusCode::resource_exhausted);
    EXPECT_FALSE(std::filesystem::exists(dir / "mnt/g"));
  }
  EXPECT_EQ(::umount(mount_point.c_str()), 0);
}

TEST(Sink, ReportsTheOffsetOnAFullDevice) {
  // /dev/full answers every write with ENOSPC, so no right to mount is needed.
  const Status status = append_file_durably("/dev/full", as_bytes("x"));
  EXPECT_EQ(status.code(), StatusCode::resource_exhausted) << status.to_string();
  EXPECT_NE(status.message().find("/dev/full: write of 1 bytes at offset 0"), std::string::npos)
      << status.to_string();
}

TEST(Source, ReadsAnyRangeMappedOrNot) {
  const TempDir dir("source");
  const Bytes all = pattern(100'000);
  ASSERT_OK(write_new_file(dir / "f", all));
  for (const bool map : {false, true}) {
    auto source = open_source(dir / "f", {.map = map});
    ASSERT_TRUE(source.ok());
    EXPECT_EQ((*source)->size(), all.size());
    EXPECT_EQ((*source)->mapped().size(), map ? all.size() : 0U);
    Bytes part(1000);
    ASSERT_OK((*source)->read_at(99'000, part));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.end() - 1000));
    EXPECT_EQ((*source)->read_at(99'001, part).code(), StatusCode::out_of_range);
    EXPECT_EQ((*source)->read_at(~std::uint64_t{0}, part).code(), StatusCode::out_of_range);
    ASSERT_OK((*source)->read_at(all.size(), {}));
  }
}

TEST(Source, TellsAFileThatShrank) {
  const TempDir dir("source");
  test::write_file(dir / "f", "0123456789");
  auto source = open_source(dir / "f");
  ASSERT_TRUE(source.ok());
  ASSERT_EQ(::truncate((dir / "f").c_str(), 4), 0);
  Bytes out(10);
  EXPECT_EQ((*source)->read_at(0, out).code(), StatusCode::data_loss);
}

TEST(Source, RefusesWhatIsNoRegularFile) {
  const TempDir dir("source");
  EXPECT_EQ(open_source(dir.path()).status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(open_source(dir / "absent").status().code(), StatusCode::not_found);
  ASSERT_EQ(::mkfifo((dir / "fifo").c_str(), 0600), 0);
  EXPECT_EQ(open_source(dir / "fifo").status().code(), StatusCode::failed_precondition);
}

TEST(Source, ReadsBytesInMemory) {
  const Bytes all = pattern(64);
  const auto owned = memory_source(all, "owned");
  const auto view = view_source(all, "view");
  Bytes part(4);
  for (const Source* source : {owned.get(), view.get()}) {
    ASSERT_OK(source->read_at(60, part));
    EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin() + 60));
    EXPECT_EQ(source->read_at(61, part).code(), StatusCode::out_of_range);
    EXPECT_TRUE(std::ranges::equal(source->mapped(), all));
  }
  EXPECT_EQ(owned->name(), "owned");
}

TEST(ReadFile, RefusesFilesAboveTheLimit) {
  const TempDir dir("read");
  test::write_file(dir / "f", "0123456789");
  EXPECT_EQ(read_file(dir / "f", 9).status().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(read_text_file(dir / "f", 10).value(), "0123456789");
}

TEST(ReplaceFile, KeepsTheOldFileWhenAnyStepFails) {
  const TempDir dir("replace");
  for (const char* point : {"io.create", "io.write", "io.fsync", "io.rename"}) {
    test::write_file(dir / "f", "old");
    set_fault_hook([&](std::string_view reached) {
      return reached == point ? resource_exhausted("injected") : ok_status();
    });
    const Status status = replace_file(dir / "f", as_bytes("new"));
    set_fault_hook(nullptr);
    EXPECT_EQ(status.code(), StatusCode::resource_exhausted) << point;
    EXPECT_EQ(test::read_file(dir / "f"), "old") << point;
    EXPECT_EQ(list_directory(dir.path())->size(), 1U) << point << " left something behind";
  }
  ASSERT_OK(replace_file(dir / "f", as_bytes("new")));
  EXPECT_EQ(test::read_file(dir / "f"), "new");
}

TEST(File, OverwritesOnlyWhatIsThere) {
  const test::TempDir dir;
  test::write_file(dir / "head", "0123456789");
  ASSERT_OK(overwrite_durably(dir / "head", 2, as_bytes("abc")));
  EXPECT_EQ(test::read_file(dir / "head"), "01abc56789");
  EXPECT_EQ(overwrite_durably(dir / "head", 8, as_bytes("xyz")).code(), StatusCode::out_of_range);
  EXPECT_EQ(test::read_file(dir / "head"), "01abc56789");
  EXPECT_EQ(overwrite_durably(dir / "none", 0, as_bytes("x")).code(), StatusCode::not_found);
}

TEST(AppendFileDurably, CreatesThenAppends) {
  const TempDir dir("append");
  ASSERT_OK(append_file_durably(dir / "log", as_bytes("one\n")));
  ASSERT_OK(append_file_durably(dir / "log", as_bytes("two\n")));
  EXPECT_EQ(test::read_file(dir / "log"), "one\ntwo\n");
}

TEST(MemorySink, AppendsToTheCallersBytes) {
  Bytes out = {1};
  const auto sink = memory_sink(out, "m");
  ASSERT_OK(sink->append(Bytes{2, 3}));
  EXPECT_EQ(sink->size(), 2U);
  EXPECT_EQ(out, (Bytes{1, 2, 3}));
}

TEST(UnsyncedTracker, DropsBytesAndNamesThatWereNotSynced) {
  const TempDir dir("unsynced");
  const TempDir graveyard("graveyard");
  test::write_file(dir / "kept", "kept");
  test::write_file(dir / "log", "line 1\n");
  test::write_file(dir / "a/value", "A");
  test::write_file(dir / "b/value", "B");
  test::write_file(dir / "removed/deep/value", "R");
  UnsyncedTracker::arm(graveyard.path());

  ASSERT_OK(append_file_durably(dir / "log", as_bytes("line 2\n")));  // durable: stays
  auto sink = create_sink(dir / "fresh");
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->append(as_bytes("synced;")));
  ASSERT_OK((*sink)->sync());
  ASSERT_OK(sync_directory(dir.path()));
  ASSERT_OK((*sink)->append(as_bytes("not synced")));
  ASSERT_OK((*sink)->close());

  test::write_file(dir / "replacement", "new");
  ASSERT_OK(rename_path(dir / "replacement", dir / "kept"));
  ASSERT_OK(exchange_paths(dir / "a", dir / "b"));
  ASSERT_OK(remove_tree(dir / "removed"));
  ASSERT_OK(make_directories(dir / "made/below"));
  ASSERT_OK(write_new_file(dir / "made/below/f", as_bytes("x")));
  EXPECT_EQ(test::read_file(dir / "a/value"), "B");
  EXPECT_FALSE(std::filesystem::exists(dir / "removed"));

  UnsyncedTracker::drop_unsynced();
  UnsyncedTracker::disarm();
  EXPECT_EQ(test::read_file(dir / "log"), "line 1\nline 2\n");
  EXPECT_EQ(test::read_file(dir / "fresh"), "synced;");
  EXPECT_EQ(test::read_file(dir / "kept"), "kept");
  EXPECT_EQ(test::read_file(dir / "replacement"), "new");
  EXPECT_EQ(test::read_file(dir / "a/value"), "A");
  EXPECT_EQ(test::read_file(dir / "b/value"), "B");
  EXPECT_EQ(test::read_file(dir / "removed/deep/value"), "R");
  EXPECT_FALSE(std::filesystem::exists(dir / "made"));
}

TEST(UnsyncedTracker, KeepsEverythingAfterASyncOfTheFileSystem) {
  const TempDir dir("unsynced");
  const TempDir graveyard("graveyard");
  UnsyncedTracker::arm(graveyard.path());
  auto sink = create_sink(dir / "f");
  ASSERT_TRUE(sink.ok());
  ASSERT_OK((*sink)->append(as_bytes("bytes")));
  ASSERT_OK((*sink)->close());
  ASSERT_OK(sync_filesystem(dir.path()));
  UnsyncedTracker::drop_unsynced();
  UnsyncedTracker::disarm();
  EXPECT_EQ(test::read_file(dir / "f"), "bytes");
}

TEST(UnsyncedTracker, KeepsWhatWasSynced) {
  const TempDir dir("unsynced");
  const TempDir graveyard("graveyard");
  test::write_file(dir / "a/value", "A");
  test::write_file(dir / "b/value", "B");
  UnsyncedTracker::arm(graveyard.path());
  ASSERT_OK(exchange_paths(dir / "a", dir / "b"));
  ASSERT_OK(replace_file(dir / "f", as_bytes("whole")));  // fsyncs the directory itself
  ASSERT_OK(remove_tree(dir / "b"));
  ASSERT_OK(sync_directory(dir.path()));
  UnsyncedTracker::drop_unsynced();
  UnsyncedTracker::disarm();
  EXPECT_EQ(test::read_file(dir / "a/value"), "B");
  EXPECT_EQ(test::read_file(dir / "f"), "whole");
  EXPECT_FALSE(std::filesystem::exists(dir / "b"));
}

}  // namespace
}  // namespace ropewalk
