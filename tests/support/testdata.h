#pragma once
// Real datasets that lie beside the source tree and are never committed. A test that needs one asks
// here and is skipped, with the reason, where it is absent.
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <gtest/gtest.h>

namespace ropewalk::test {

/// Returns the root of the source tree.
inline std::filesystem::path source_dir() { return ROPEWALK_SOURCE_DIR; }

/// Returns the path of `sub` among the real datasets, or nullopt if it is not there. They are
/// looked for in the directory ROPEWALK_TESTDATA, else in ../shared/testdata beside the source
/// tree.
inline std::optional<std::filesystem::path> testdata(std::string_view sub) {
  const char* configured = std::getenv("ROPEWALK_TESTDATA");
  const std::filesystem::path root = configured != nullptr
                                         ? std::filesystem::path(configured)
                                         : source_dir() / ".." / "shared" / "testdata";
  std::error_code error;
  std::filesystem::path path = std::filesystem::canonical(root / sub, error);
  if (error) return std::nullopt;
  return path;
}

}  // namespace ropewalk::test

/// Defines `var` as the path of the real dataset `sub`, or skips the test.
#define ROPEWALK_REQUIRE_TESTDATA(var, sub)                                                \
  const auto var##_found = ::ropewalk::test::testdata(sub);                                \
  if (!var##_found) {                                                                      \
    GTEST_SKIP() << "real dataset " << (sub)                                               \
                 << " is not there; set ROPEWALK_TESTDATA to the directory that holds it"; \
  }                                                                                        \
  const std::filesystem::path& var = *var##_found
