// Real files, cut at many places and with one bit flipped at many places: everything undamaged is
// delivered or its loss is told, and strict reading delivers nothing that was not written.
#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/support/mcap_files.h"
#include "tests/support/testdata.h"

namespace ropewalk::mcap {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> mcap_files(const fs::path& root) {
  std::vector<fs::path> out;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() == ".mcap") out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

// Reads a changed file: it must not crash, and whatever it lacks must be told.
void check_changed(const Bytes& file, const std::vector<TestMessage>& whole, bool has_crc,
                   const std::string& what) {
  const auto reader = Reader::open(view_source(file));
  if (!reader.ok()) {
    ASSERT_EQ(reader.status().code(), StatusCode::data_loss) << what;
    return;
  }
  const ReadBack back = read_all(*reader);
  if (back.messages.size() < whole.size()) {
    const auto data_crc = reader->check_data_crc();
    const bool told = !back.problems.empty() || (data_crc.ok() && data_crc->has_value());
    ASSERT_TRUE(told) << what << ": " << whole.size() - back.messages.size()
                      << " messages are missing and nothing is told";
  }
  if (!has_crc) return;
  // Outside chunks nothing vouches for a record: an index record may turn into a message.
  MessageReader messages = reader->messages();
  for (MessageView m; messages.next(m);) {
    if (m.chunk == nullptr) continue;
    const auto same = std::ranges::find_if(whole, [&](const TestMessage& w) {
      return w.sequence == m.sequence && w.time == m.log_time && w.data == as_text(m.data);
    });
    ASSERT_NE(same, whole.end()) << what << ": a message that was not written";
  }
}

void sweep(const fs::path& path, std::size_t cuts, std::size_t flips, bool has_crc) {
  const auto bytes = ropewalk::read_file(path, 64ULL << 20);
  ASSERT_TRUE(bytes.ok());
  const auto reader = Reader::open(view_source(*bytes));
  ASSERT_TRUE(reader.ok());
  const auto whole = read_all(*reader).messages;
  std::mt19937_64 random(bytes->size());
  std::size_t before = 0;
  for (std::size_t i = 0; i < cuts; ++i) {
    const std::size_t size = cuts >= bytes->size() ? i : bytes->size() * i / cuts;
    if (size >= bytes->size()) break;
    const Bytes cut(bytes->begin(), bytes->begin() + static_cast<std::ptrdiff_t>(size));
    check_changed(cut, whole, false, path.string() + " cut at " + std::to_string(size));
    const auto opened = Reader::open(view_source(cut));
    const std::size_t now = opened.ok() ? read_all(*opened).messages.size() : 0;
    ASSERT_GE(now, before) << path << " cut at " << size;
    before = now;
  }
  for (std::size_t i = 0; i < flips; ++i) {
    Bytes flipped = *bytes;
    const std::size_t at = flips >= bytes->size() ? i : random() % bytes->size();
    if (at >= flipped.size()) break;
    flipped[at] ^= static_cast<std::uint8_t>(1U << (random() % 8));
    check_changed(flipped, whole, has_crc, path.string() + " flipped at " + std::to_string(at));
  }
}

TEST(McapSweeps, ConformanceFilesSurviveEveryCutAndFlip) {
  ROPEWALK_REQUIRE_TESTDATA(root, "mcap-conformance/data");
  int swept = 0;
  for (const fs::path& path : mcap_files(root / "TenMessages")) {
    const std::string name = path.filename().string();
    const bool chunked = name.find("-ch") != std::string::npos;
    sweep(path, 100'000, 100'000, chunked);
    if (testing::Test::HasFatalFailure()) return;
    ++swept;
  }
  EXPECT_EQ(swept, 154);
}

TEST(McapSweeps, RosBagsSurviveCutsAndFlips) {
  ROPEWALK_REQUIRE_TESTDATA(root, "rosbag2");
  int swept = 0;
  for (const fs::path& path : mcap_files(root)) {
    sweep(path, 60, 60, false);
    if (testing::Test::HasFatalFailure()) return;
    ++swept;
  }
  EXPECT_GE(swept, 10);
}

}  // namespace
}  // namespace ropewalk::mcap
