#pragma once
// sinks: from the name of a format to a sink that writes it. The formats an export and a conversion
// know, in the order they are shown everywhere.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// "lerobot_v21", "lerobot_v3", "hdf5", "mcap".
const std::vector<std::string>& export_formats();

struct SinkOptions {
  /// "" or "none"; HDF5: "gzip" or "gzip:1" to "gzip:9"; MCAP: "lz4", "zstd".
  std::string compression;
  bool camera_quantiles = false;  ///< v3.0: decode sampled frames for quantiles of cameras
  bool repair_video = false;      ///< re-encode clips that cannot be copied as they are
  bool strict = false;            ///< refuse what is otherwise written with a finding
};

/// Returns OK when `options.compression` is one that `format` has.
/// Errors: invalid_argument naming the formats, or the compressions of the format.
Status validate_sink_options(std::string_view format, const SinkOptions& options);

/// A sink with the proof that belongs to its layout.
struct FormatSink {
  std::unique_ptr<EpisodeSink> sink;
  /// Re-opens what the sink wrote, after finish(): tables, numbers, locators, and every encoded
  /// picture by its hash. Nothing is decoded. Errors: data_loss naming file, place, expected and
  /// found.
  std::function<Status(const RunContext&)> prove;
};

/// Creates a sink that writes what `source` has into the directory `root`, which exists and is
/// empty.
Result<FormatSink> make_sink(std::string_view format, const std::filesystem::path& root,
                             const EpisodeSource& source, const SinkOptions& options = {});

/// Bytes that `source` takes in `format`, roughly: for the check of free space.
/// `source_bytes` is what its files take now.
std::uint64_t estimate_output_bytes(std::string_view format, const EpisodeSource& source,
                                    std::uint64_t source_bytes);

}  // namespace ropewalk
