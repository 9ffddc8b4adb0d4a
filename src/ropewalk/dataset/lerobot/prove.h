#pragma once
// prove: reads back what a LeRobot sink wrote and compares it with what the sink said it wrote:
// rows, numbers, locators, and every encoded picture by its hash. Nothing is decoded.
// Spec: review-export-upload 7.2 step 5; lerobot-formats 4.3, 4.4.
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "ropewalk/base/core/result.h"
#include "ropewalk/base/exec/run_context.h"

namespace ropewalk {

/// One clip as a sink wrote it.
struct ClipRecord {
  std::string path;    ///< of the MP4 file, relative to the root
  std::string camera;  ///< as named in the output
  std::int64_t episode_index = 0;
  std::int64_t first_frame = 0;  ///< frames before it in that file
  std::int64_t frames = 0;
  bool whole_file = false;  ///< the file is a byte copy, and the hash is that of all its bytes
  bool encoded = false;     ///< decoded and encoded anew
  std::string sha256;       ///< over the payloads of its packets in decode order, or see whole_file
};

/// What was read back.
struct ProofReport {
  std::int64_t episodes = 0;
  std::int64_t rows = 0;
  std::int64_t clips = 0;
  std::int64_t packets = 0;
  std::uint64_t video_bytes = 0;
};

/// Reads every Parquet and MP4 file of a v2.1 dataset: one row group per file, episode_index,
/// index, frame_index and task_index as numbered, times by the frame rule, one packet per row and
/// camera, hashes as in `clips`, totals of info.json. Errors: data_loss naming file, place,
/// expected and found; cancelled.
Result<ProofReport> prove_v21(const std::filesystem::path& root,
                              const std::vector<ClipRecord>& clips, const RunContext& context);

/// The same for v3.0: one row group per episode, one schema for all shards, locators of
/// meta/episodes against the rows and frames they point at, presentation times of every shard.
Result<ProofReport> prove_v3(const std::filesystem::path& root,
                             const std::vector<ClipRecord>& clips, const RunContext& context);

}  // namespace ropewalk
