// A process that records is killed at random times: what it wrote more than 100 ms before is there,
// the file opens at once, and recovery makes a whole file of it. ROPEWALK_CRASH_ROUNDS sets how
// often (40).
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/mcap/mcap.h"

#include "tests/support/temp_dir.h"

namespace ropewalk::mcap {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxLostNs = 100'000'000;
constexpr std::size_t kMaxMessages = std::size_t{1} << 20;

// What the child tells: the time of each message, once write() took it.
struct Shared {
  std::atomic<std::uint64_t> written{0};
  std::array<std::atomic<std::uint64_t>, kMaxMessages> times{};
};

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

std::size_t size_of(std::uint64_t i) { return i % 50 == 49 ? 60'000 : 40 + i % 160; }

std::string payload(std::uint64_t i) {
  std::string out(size_of(i), 0);
  std::mt19937 random(static_cast<std::uint32_t>(i));
  for (char& c : out) c = static_cast<char>('a' + random() % 20);
  return out;
}

// Records until it is killed: five topics of a robot, one of them with pictures.
[[noreturn]] void record(const fs::path& path, Shared& shared) {
  const auto sink = create_sink(path);
  auto writer = Writer::create(WriterOptions::recording());
  if (!sink.ok() || !writer->open(**sink).ok()) ::_exit(3);
  const auto schema = writer->add_schema("S", "text", as_bytes("schema"));
  std::array<std::uint16_t, 5> ids{};
  for (std::size_t t = 0; t < ids.size(); ++t) {
    ids[t] = *writer->add_channel({.id = 0,
                                   .schema_id = *schema,
                                   .topic = "t" + std::to_string(t),
                                   .message_encoding = "raw",
                                   .metadata = {}});
  }
  for (std::uint64_t i = 0; i < kMaxMessages; ++i) {
    const std::string data = payload(i);
    const std::uint64_t time = now_ns();
    if (!writer
             ->write({.channel_id = ids[i % ids.size()],
                      .sequence = static_cast<std::uint32_t>(i),
                      .log_time = time,
                      .publish_time = time},
                     as_bytes(data))
             .ok()) {
      ::_exit(4);
    }
    shared.times[i] = time;
    shared.written = i + 1;
    if (i % 8 == 7) std::this_thread::sleep_for(std::chrono::microseconds(500));
    if (i % 4096 == 4095 && !writer->write_metadata({"m", {{"n", std::to_string(i)}}}).ok()) {
      ::_exit(5);
    }
  }
  ::_exit(6);
}

int rounds() {
  const char* text = std::getenv("ROPEWALK_CRASH_ROUNDS");
  return text == nullptr ? 40 : std::atoi(text);
}

TEST(McapCrash, KilledRecorderLosesLessThanATenthOfASecond) {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::mt19937 random(7);
  std::uint64_t worst_ns = 0;
  std::uint64_t worst_bytes = 0;
  std::uint64_t total = 0;
  for (int round = 0; round < rounds(); ++round) {
    const test::TempDir dir("mcap-crash");
    const fs::path path = dir / "r.mcap";
    auto* shared = new (memory) Shared;
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) record(path, *shared);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random() % 180));
    ASSERT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the recorder ended by itself: " << status;
    const std::uint64_t written = shared->written;
    if (!fs::exists(path) || written == 0) continue;
    total += written;

    const auto source = open_source(path);
    ASSERT_TRUE(source.ok());
    const auto reader = Reader::open(*open_source(path));
    ASSERT_TRUE(reader.ok() || (*source)->size() == 0) << reader.status().to_string();
    std::uint64_t found = 0;
    if (reader.ok()) {
      MessageReader messages = reader->messages();
      for (MessageView m; messages.next(m); ++found) {
        // In time order, from the first on, none missing, none changed.
        ASSERT_EQ(m.sequence, found);
        ASSERT_EQ(as_text(m.data), payload(found));
        ASSERT_EQ(m.channel->topic, "t" + std::to_string(found % 5));
      }
      ASSERT_TRUE(messages.status().ok());
    }
    if (found < written) {
      const std::uint64_t lost_ns = shared->times[written - 1] - shared->times[found];
      std::uint64_t lost_bytes = 0;
      for (std::uint64_t i = found; i < written; ++i) lost_bytes += size_of(i);
      worst_ns = std::max(worst_ns, lost_ns);
      worst_bytes = std::max(worst_bytes, lost_bytes);
      EXPECT_LE(lost_ns, kMaxLostNs) << "round " << round;
    }
    if (!reader.ok()) continue;  // killed before the first byte was on its way
    const auto report = recover_file(path, dir / "whole.mcap");
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_EQ(report->written.message_count, found);
  }
  ::munmap(memory, sizeof(Shared));
  EXPECT_GT(total, 0u);
  RecordProperty("worst_lost_ms", std::to_string(worst_ns / 1'000'000));
  RecordProperty("worst_lost_bytes", std::to_string(worst_bytes));
  std::printf("%d kills, %llu messages: at most %.1f ms and %llu bytes lost\n", rounds(),
              static_cast<unsigned long long>(total), static_cast<double>(worst_ns) / 1e6,
              static_cast<unsigned long long>(worst_bytes));
}

// A quota in place of a full disk: the limit of this process on the size of a file.
TEST(McapCrash, FullDiskLeavesAFileReadableUpToTheLastChunk) {
  const test::TempDir dir("mcap-full");
  const fs::path path = dir / "f.mcap";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{.rlim_cur = 300'000, .rlim_max = 300'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(2);
    const auto sink = create_sink(path);
    WriterOptions options;
    options.chunk_bytes = 20'000;
    options.compression = Compression::none;
    options.flush_chunks = true;
    auto writer = Writer::create(options);
    if (!writer->open(**sink).ok()) ::_exit(3);
    const auto id = writer->add_channel({.topic = "t", .message_encoding = "raw"});
    Status status;
    for (std::uint32_t i = 0; i < 100'000 && status.ok(); ++i) {
      status =
          writer->write({.channel_id = *id, .sequence = i, .log_time = i}, as_bytes(payload(i)));
    }
    if (status.ok()) ::_exit(4);
    if (writer->finish().ok()) ::_exit(5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const auto reader = Reader::open(*open_source(path));
  ASSERT_TRUE(reader.ok());
  EXPECT_GT(reader->chunks().size(), 5u);
  std::uint32_t found = 0;
  MessageReader messages = reader->messages();
  for (MessageView m; messages.next(m); ++found) {
    ASSERT_EQ(m.sequence, found);
    ASSERT_EQ(as_text(m.data), payload(found));
  }
  EXPECT_GT(found, 100u);
}

}  // namespace
}  // namespace ropewalk::mcap
