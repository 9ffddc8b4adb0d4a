#include <cstdlib>
#include <filesystem>
#include <string>

#include "gtest/gtest.h"
#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk::test {
namespace {

TEST(TempDir, IsEmptyThenRemovedWithItsContents) {
  std::filesystem::path kept;
  {
    const TempDir dir("support");
    kept = dir.path();
    EXPECT_TRUE(std::filesystem::is_empty(kept));
    write_file(dir / "a/b/c.txt", "three");
    EXPECT_EQ(read_file(dir / "a/b/c.txt"), "three");
    std::filesystem::permissions(dir / "a/b", std::filesystem::perms::none);
  }
  EXPECT_FALSE(std::filesystem::exists(kept));
}

TEST(TempDir, TwoOfOneNameDiffer) {
  const TempDir one("same");
  const TempDir two("same");
  EXPECT_NE(one.path(), two.path());
}

TEST(Testdata, EnvironmentNamesTheDirectory) {
  const TempDir dir("testdata");
  write_file(dir / "set/info.json", "{}");
  const char* before = std::getenv("ROPEWALK_TESTDATA");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("ROPEWALK_TESTDATA", dir.string().c_str(), 1);
  EXPECT_EQ(testdata("set"), dir / "set");
  EXPECT_EQ(testdata("absent"), std::nullopt);
  if (before != nullptr) {
    ::setenv("ROPEWALK_TESTDATA", saved.c_str(), 1);
  } else {
    ::unsetenv("ROPEWALK_TESTDATA");
  }
}

}  // namespace
}  // namespace ropewalk::test
