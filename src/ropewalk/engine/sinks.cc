#include "ropewalk/engine/sinks.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/dataset/eva_hdf5/eva_hdf5.h"
#include "ropewalk/dataset/eva_mcap/eva_mcap.h"
#include "ropewalk/dataset/lerobot/sink_v21.h"
#include "ropewalk/dataset/lerobot/sink_v3.h"

namespace ropewalk {
namespace {

// The names that the source keeps statistics of; a sink pools the same ones.
std::vector<std::string> statistics_names(const EpisodeSource& source) {
  std::vector<std::string> out;
  const Json statistics = source.statistics();
  if (const auto* members = statistics.as_object()) {
    for (const auto& [name, value] : *members) {
      if (source.schema().find(name)) out.push_back(name);
    }
  }
  return out;
}

std::optional<std::vector<std::string>> optional_names(const EpisodeSource& source) {
  auto names = statistics_names(source);
  return names.empty() ? std::nullopt : std::optional(std::move(names));
}

}  // namespace

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> formats{"lerobot_v21", "lerobot_v3", "hdf5", "mcap"};
  return formats;
}

Status validate_sink_options(std::string_view format, const SinkOptions& options) {
  if (std::ranges::find(export_formats(), format) == export_formats().end()) {
    return invalid_argument(
        fmt::format("format '{}': expected one of {}", format, fmt::join(export_formats(), ", ")));
  }
  const std::string& compression = options.compression;
  if (compression.empty() || compression == "none") return ok_status();
  if (format == "hdf5") {
    return EvaHdf5Options{.compression = compression == "gzip" ? "gzip:4" : compression}.validate();
  }
  if (format == "mcap" && (compression == "lz4" || compression == "zstd")) return ok_status();
  return invalid_argument(
      format == "mcap"
          ? fmt::format("compression '{}': mcap has none, lz4, zstd", compression)
          : fmt::format("compression '{}': {} copies video and has none", compression, format));
}

Result<FormatSink> make_sink(std::string_view format, const std::filesystem::path& root,
                             const EpisodeSource& source, const SinkOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(validate_sink_options(format, options));
  FormatSink out;
  if (format == "lerobot_v21") {
    ROPEWALK_ASSIGN_OR_RETURN(
        auto sink, create_lerobot_v21_sink(root, {.schema = source.schema(),
                                                  .statistics_names = statistics_names(source),
                                                  .repair_video = options.repair_video}));
    out.prove = [root, sink = sink.get()](const RunContext& context) -> Status {
      return prove_v21(root, sink->clips(), context).status();
    };
    out.sink = std::move(sink);
  } else if (format == "lerobot_v3") {
    ROPEWALK_ASSIGN_OR_RETURN(
        auto sink, create_lerobot_v3_sink(root, {.schema = source.schema(),
                                                 .camera_quantiles = options.camera_quantiles,
                                                 .repair_video = options.repair_video}));
    out.prove = [root, sink = sink.get()](const RunContext& context) -> Status {
      return prove_v3(root, sink->clips(), context).status();
    };
    out.sink = std::move(sink);
  } else if (format == "hdf5") {
    EvaHdf5Options hdf5{.statistics_names = optional_names(source)};
    if (!options.compression.empty()) {
      hdf5.compression = options.compression == "gzip" ? "gzip:4" : options.compression;
    }
    ROPEWALK_ASSIGN_OR_RETURN(out.sink, create_eva_hdf5_sink(root, source.schema(), hdf5));
    out.prove = [](const RunContext&) { return ok_status(); };
  } else {
    EvaMcapOptions mcap{.statistics_names = optional_names(source)};
    if (!options.compression.empty()) mcap.compression = options.compression;
    ROPEWALK_ASSIGN_OR_RETURN(out.sink, create_eva_mcap_sink(root, source.schema(), mcap));
    out.prove = [](const RunContext&) { return ok_status(); };
  }
  return out;
}

std::uint64_t estimate_output_bytes(std::string_view format, const EpisodeSource& source,
                                    std::uint64_t source_bytes) {
  if (format.starts_with("lerobot")) return source_bytes;
  std::uint64_t per_frame = 0;
  for (const Feature& feature : source.schema().features) {
    const auto elements = static_cast<std::uint64_t>(std::max<std::int64_t>(0, feature.elements()));
    per_frame += elements * std::max<std::size_t>(1, dtype_size(feature.dtype));
  }
  std::uint64_t frames = 0;
  for (std::int64_t i = 0; i < source.size(); ++i) {
    frames += static_cast<std::uint64_t>(source.info(i).length);
  }
  return frames * per_frame;
}

}  // namespace ropewalk
