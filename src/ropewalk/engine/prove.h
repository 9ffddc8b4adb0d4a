#pragma once
// prove: the two proofs of a half. The structural one re-opens what was written and counts it; the
// content one reads every column back and decodes pictures.
// Spec: review-export-upload 6.3 steps 2 and 9.
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// Re-opens a half: episodes and lengths equal `expected`, every table, video, HDF5 and MCAP file
/// opens and counts, locators, sequence and times hold. Nothing is decoded. Errors: data_loss
/// naming the file and what was expected and found.
Status prove_structure(const std::filesystem::path& half, std::string_view format,
                       const EpisodeSource& expected, const RunContext& context);

struct ContentProof {
  std::int64_t episodes = 0;
  std::int64_t columns = 0;
  std::int64_t frames = 0;
  Findings findings;  ///< one error per episode that differs
};

/// Compares every episode of the half with its source: position i of `source` is episode i.
/// Differences are findings; Errors are those of opening, and cancelled.
Result<ContentProof> prove_content(const std::filesystem::path& half, const EpisodeSource& source,
                                   bool all_frames, const RunContext& context);

}  // namespace ropewalk
