#pragma once
// eva_mcap: the MCAP export layout, one file per episode: sink and source.
//
//   data/chunk-{index//1000:03d}/episode_{index:06d}.mcap
//     header          profile and library "eva-client"
//     metadata        record "ropewalk": the version that wrote the file
//     episode         one message at time 0: {columns, images, metadata} in MessagePack; columns
//     are
//                     arrays [T] or [T, D] of the declared type, images are inline pictures
//                     [T, H, W, 3], metadata is the episode's row and `fps`
//     episode/image/… one channel per camera, one message per frame: an array [H, W, 3], uint8,
//     RGB,
//                     at time (i + 1) * period; frame by frame, cameras in the order of video_keys
//   meta/info.json, episodes.jsonl, tasks.jsonl, stats.json
//
// Spec: review-export-upload 7.0, 7.4, 7.5.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk {

struct EvaMcapOptions {
  std::string compression = "none";  ///< of chunks: "none", "lz4" or "zstd"
  /// Names in stats.json, those of the source's; absent: every column but the five default ones.
  std::optional<std::vector<std::string>> statistics_names;

  Status validate() const;
};

/// Creates a sink that writes below `root`, a stage of the caller's. `schema` is the source's.
/// Frames are decoded ahead and hashed behind by the threads of the RunContext's pool, in 64 MiB
/// (at least two frames per camera); fsync of finished files runs behind. Memory beside it: the
/// decoders and the columns of one episode. Inline pictures are decoded twice, since their message
/// states its length and CRC first. Errors: unimplemented naming a feature of a kind the layout
/// cannot hold (points, audio, events, ragged shapes, streams of their own timeline);
/// resource_exhausted naming an array beyond 4 GiB - 1, the limit of a MessagePack binary.
Result<std::unique_ptr<EpisodeSink>> create_eva_mcap_sink(const std::filesystem::path& root,
                                                          const Schema& schema,
                                                          const EvaMcapOptions& options = {});

/// Opens an export, ours or EVA's. Cameras have frames but no packets; columns are cast to the
/// types that info.json declares. Errors: not_found, data_loss naming the file; failed_precondition
/// when info.json says it is another format.
Result<std::unique_ptr<EpisodeSource>> open_eva_mcap(const std::filesystem::path& root,
                                                     const Limits& limits = {});

/// Returns the path of an episode's file relative to the root.
std::string eva_mcap_path(std::int64_t episode_index);

/// Log time between two frames: max(1, round-half-even(1e9 / fps)).
std::uint64_t eva_mcap_period_ns(Rational fps);

}  // namespace ropewalk
