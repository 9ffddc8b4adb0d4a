#include <cerrno>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/dtype.h"
#include "ropewalk/base/core/finding.h"
#include "ropewalk/base/core/nd_view.h"
#include "ropewalk/base/core/rational.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return invalid_argument("odd");
  return value / 2;
}

Result<int> quarter(int value) {
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const int h, half(value), "first half");
  ROPEWALK_ASSIGN_OR_RETURN(const int q, half(h));
  return q;
}

TEST(Status, AddsContextWhileUnwinding) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(7).status().to_string(), "invalid_argument: first half: odd");
  EXPECT_EQ(quarter(6).status().message(), "odd");
  const Status s = data_loss("x").with_reason("SOURCE_CHANGED").with_context("episode 3");
  EXPECT_EQ(s.reason(), "SOURCE_CHANGED");
  EXPECT_EQ(s.message(), "episode 3: x");
  EXPECT_TRUE(ok_status().with_context("a").ok());
  // Callee and caller both name the episode.
  EXPECT_EQ(data_loss("episode 3: x").with_context("episode 3").message(), "episode 3: x");
  EXPECT_EQ(data_loss("episode 31: x").with_context("episode 3").message(),
            "episode 3: episode 31: x");
}

Status nested(bool fail) {
  const auto run = [](const std::function<Status()>& body) { return body(); };
  ROPEWALK_RETURN_IF_ERROR(run([&]() -> Status {
    ROPEWALK_RETURN_IF_ERROR(fail ? data_loss("inner") : ok_status());
    return ok_status();
  }));
  return ok_status();
}

TEST(Status, MacrosNestThroughLambdas) {
  EXPECT_TRUE(nested(false).ok());
  EXPECT_EQ(nested(true).message(), "inner");
}

TEST(Result, KeepsAValueAliveThatIsWalkedThrough) {
  const auto make = []() -> Result<std::vector<std::string>> {
    return std::vector<std::string>(3, std::string(100, 'x'));
  };
  std::size_t bytes = 0;
  for (const std::string& text : *make()) bytes += text.size();
  EXPECT_EQ(bytes, 300U);
}

TEST(Status, MapsErrnoToCodes) {
  EXPECT_EQ(errno_status(ENOENT, "open a").code(), StatusCode::not_found);
  EXPECT_EQ(errno_status(ENOSPC, "write a").code(), StatusCode::resource_exhausted);
  EXPECT_EQ(errno_status(EROFS, "write a").code(), StatusCode::permission_denied);
  EXPECT_EQ(errno_status(EIO, "read a").code(), StatusCode::unavailable);
}

TEST(ByteCursor, RefusesToReadPastTheEnd) {
  const Bytes bytes{1, 2, 3, 4, 5};
  ByteCursor cursor(bytes);
  EXPECT_EQ(cursor.read_le<std::uint32_t>().value(), 0x04030201u);
  EXPECT_EQ(cursor.read_le<std::uint16_t>().status().code(), StatusCode::data_loss);
  EXPECT_EQ(cursor.read_le<std::uint16_t>().status().message(), "byte 4: 2 bytes needed, 1 left");
  EXPECT_FALSE(cursor.take(~std::uint64_t{0}).ok());
  EXPECT_EQ(cursor.read_be<std::uint8_t>().value(), 5);
  EXPECT_TRUE(cursor.at_end());
}

TEST(ByteWriter, WritesBothByteOrders) {
  Bytes out;
  ByteWriter writer(out);
  writer.write_le<std::uint16_t>(0x0102);
  writer.write_be<std::uint32_t>(0x03040506);
  EXPECT_EQ(to_hex(out), "020103040506");
}

TEST(DType, ReadsNumpyNames) {
  bool big = false;
  EXPECT_EQ(dtype_from_numpy("<f4", big), DType::float32);
  EXPECT_FALSE(big);
  EXPECT_EQ(dtype_from_numpy(">i8", big), DType::int64);
  EXPECT_TRUE(big);
  EXPECT_EQ(dtype_from_numpy("|u1", big), DType::uint8);
  EXPECT_EQ(dtype_from_numpy("|O", big), std::nullopt);
  EXPECT_EQ(dtype_from_name("bool"), DType::boolean);
}

TEST(NdView, RefusesNegativeAndOverflowingShapes) {
  EXPECT_EQ(element_count(std::vector<std::int64_t>{2, 3, 4}), 24);
  EXPECT_EQ(element_count(std::vector<std::int64_t>{}), 1);
  EXPECT_EQ(element_count(std::vector<std::int64_t>{-1, 3}), std::nullopt);
  EXPECT_EQ(element_count(std::vector<std::int64_t>{1LL << 40, 1LL << 40}), std::nullopt);
}

TEST(Rational, KeepsNtscRatesExact) {
  EXPECT_EQ(rational_from_rate(30.0).value(), (Rational{30, 1}));
  EXPECT_EQ(rational_from_rate(29.97).value(), (Rational{30000, 1001}));
  EXPECT_EQ(to_string(rational_from_rate(29.888130584676002).value()), "29888131/1000000");
  EXPECT_FALSE(rational_from_rate(0).ok());
  EXPECT_FALSE(rational_from_rate(std::nan("")).ok());
}

TEST(Rational, RoundsFrameTimesOnce) {
  EXPECT_EQ(frame_time_ns(1, {30, 1}), 33333333);
  EXPECT_EQ(frame_time_ns(2, {30, 1}), 66666667);
  EXPECT_EQ(frame_timestamp_f32(7, {30, 1}), static_cast<float>(7.0 / 30.0));
  EXPECT_EQ(frame_seconds(736, {30, 1}), 24.533333333333335);
}

TEST(Findings, FoldsEqualEntriesIntoACount) {
  Findings findings;
  findings.add({.code = "missing_video", .severity = Severity::error, .episode = 3});
  findings.add({.code = "missing_video", .severity = Severity::error, .episode = 3});
  findings.add({.code = "missing_video", .severity = Severity::error, .episode = 4});
  EXPECT_EQ(findings.entries().size(), 2u);
  EXPECT_EQ(findings.count("missing_video"), 3);
  EXPECT_TRUE(findings.has_errors());
  EXPECT_EQ(to_line(findings.entries()[0]), "error missing_video: episode 3 (x2)");
}

}  // namespace
}  // namespace ropewalk
