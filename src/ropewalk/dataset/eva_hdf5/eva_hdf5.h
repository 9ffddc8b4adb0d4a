#pragma once
// eva_hdf5: the HDF5 export layout, one file per episode: sink and source.
//
//   data/chunk-{index//1000:03d}/episode_{index:06d}.hdf5
//     columns/item_{i:06d}/value    one array per column of the table, [T] or [T, D], declared type
//     images/item_{i:06d}/value     one uint8 array per camera, [T, H, W, 3], chunk (1, H, W, 3)
//     metadata/item_{i:06d}/value   the episode's row and `fps`
//   meta/info.json, episodes.jsonl, tasks.jsonl, stats.json
//
// Each item is a group with the text attributes `key` and `kind`; kinds are array, string, bytes,
// none and msgpack. Files are read in a child process with limits (format/hdf5/reader.h). Spec:
// review-export-upload 7.0, 7.3, 7.5.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/format/hdf5/reader.h"

namespace ropewalk {

struct EvaHdf5Options {
  std::string compression = "none";  ///< "none", or "gzip:1" … "gzip:9" with shuffle
  /// Names in stats.json, those of the source's; absent: every column but the five default ones.
  std::optional<std::vector<std::string>> statistics_names;

  Status validate() const;
};

/// Creates a sink that writes below `root`, a stage of the caller's. `schema` is the source's.
/// Frames are decoded and written by all threads of the RunContext's pool, SHA-256 and fsync of
/// finished files run behind. Memory: one picture per thread plus the decoders, and the columns of
/// one episode. Errors: unimplemented naming a feature of a kind the layout cannot hold (points,
/// audio, events, ragged shapes, streams of their own timeline).
Result<std::unique_ptr<EpisodeSink>> create_eva_hdf5_sink(const std::filesystem::path& root,
                                                          const Schema& schema,
                                                          const EvaHdf5Options& options = {});

/// Opens an export, ours or EVA's. Cameras are of kind video and have frames but no packets;
/// columns are cast to the types that info.json declares. Errors: not_found, data_loss naming the
/// file; failed_precondition when info.json says it is another format.
Result<std::unique_ptr<EpisodeSource>> open_eva_hdf5(const std::filesystem::path& root,
                                                     const Limits& limits = {},
                                                     const Hdf5ReaderOptions& reader = {});

/// Returns the path of an episode's file relative to the root.
std::string eva_hdf5_path(std::int64_t episode_index);

}  // namespace ropewalk
