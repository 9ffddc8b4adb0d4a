#pragma once
// What the end-to-end tests share: a small simulated dataset and the requests on it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/engine/export.h"
#include "ropewalk/engine/review.h"
#include "ropewalk/engine/simulate.h"
#include "ropewalk/engine/verify.h"

#include "tests/support/temp_dir.h"

namespace ropewalk::test {

inline SimulatedOptions small_options(std::int64_t episodes, const std::string& faults = "none") {
  SimulatedOptions options{.episodes = episodes,
                           .seconds = 1.2,
                           .fps = 20,
                           .cameras = 2,
                           .width = 96,
                           .height = 64,
                           .seed = 5};
  options.faults = *parse_faults(faults);
  return options;
}

/// Writes a raw dataset below `dir` and returns its root.
inline std::filesystem::path make_raw(const std::filesystem::path& dir,
                                      const SimulatedOptions& options) {
  ThreadPool pool(2);
  const std::filesystem::path raw = dir / "set" / "raw";
  std::filesystem::create_directories(raw.parent_path());
  const auto report = simulate({.out = raw, .options = options}, {.pool = &pool});
  EXPECT_TRUE(report.ok()) << report.status().to_string();
  return raw;
}

inline std::filesystem::path pair_of(const std::filesystem::path& raw, const std::string& format) {
  return raw.parent_path() / "export" / format;
}

/// Names of hidden entries beside the pairs, lock files left out.
inline std::vector<std::string> hidden_beside(const std::filesystem::path& raw) {
  std::vector<std::string> out;
  const auto parent = raw.parent_path() / "export";
  if (!std::filesystem::exists(parent)) return out;
  for (const auto& entry : std::filesystem::directory_iterator(parent)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(".") && !name.ends_with(".lock")) out.push_back(name);
  }
  return out;
}

}  // namespace ropewalk::test
