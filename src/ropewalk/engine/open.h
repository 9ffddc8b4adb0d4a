#pragma once
// open: from a path to what lies there. The one place that knows every dataset format by name.
#include <filesystem>
#include <memory>
#include <string_view>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

enum class PathKind {
  lerobot_v20,
  lerobot_v21,
  lerobot_v3,
  hdf5_dataset,  ///< an HDF5 export: one half, or the output of convert
  mcap_dataset,  ///< the same with MCAP files
  hdf5_episode,  ///< one episode file of such a dataset
  mcap_episode,
  export_pair,  ///< a directory with the halves accepted and rejected
};

/// "lerobot_v21", "export_pair", …
std::string_view path_kind_name(PathKind kind);
/// One phrase for people: "LeRobot v2.1 dataset".
std::string_view path_kind_title(PathKind kind);

/// Looks at file names and heads only. Errors: not_found; failed_precondition for a path that holds
/// nothing we know, saying what was looked for; unimplemented naming a format we refuse.
Result<PathKind> identify(const std::filesystem::path& path);

struct OpenDatasetOptions {
  bool strict = false;  ///< refuse what lenient reading repairs
  bool survey = false;  ///< find unreadable episodes now and leave them out
  ThreadPool* pool = nullptr;
  std::stop_token stop;
};

/// Opens any dataset as a source of episodes. A pair has two: open one of its halves.
/// Errors: those of identify() and of the format.
Result<std::unique_ptr<EpisodeSource>> open_dataset(const std::filesystem::path& path,
                                                    const OpenDatasetOptions& options = {});

}  // namespace ropewalk
