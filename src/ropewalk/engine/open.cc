#include "ropewalk/engine/open.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/eva_hdf5/eva_hdf5.h"
#include "ropewalk/dataset/eva_mcap/eva_mcap.h"
#include "ropewalk/dataset/lerobot/lerobot.h"

namespace ropewalk {
namespace {

struct Row {
  PathKind kind;
  std::string_view name;
  std::string_view title;
};
constexpr std::array<Row, 8> kRows{{
    {PathKind::lerobot_v20, "lerobot_v20", "LeRobot v2.0 dataset"},
    {PathKind::lerobot_v21, "lerobot_v21", "LeRobot v2.1 dataset"},
    {PathKind::lerobot_v3, "lerobot_v3", "LeRobot v3.0 dataset"},
    {PathKind::hdf5_dataset, "hdf5", "HDF5 dataset"},
    {PathKind::mcap_dataset, "mcap", "MCAP dataset"},
    {PathKind::hdf5_episode, "hdf5_episode", "HDF5 episode"},
    {PathKind::mcap_episode, "mcap_episode", "MCAP episode"},
    {PathKind::export_pair, "export_pair", "export pair"},
}};

const Row& row(PathKind kind) { return *std::ranges::find(kRows, kind, &Row::kind); }

// The kind of a single file, by its first bytes.
Result<PathKind> identify_file(const std::filesystem::path& path) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(path));
  Bytes head(static_cast<std::size_t>(std::min<std::uint64_t>(source->size(), 8)));
  ROPEWALK_RETURN_IF_ERROR(source->read_at(0, head));
  if (as_text(head) == "\x89HDF\r\n\x1a\n") return PathKind::hdf5_episode;
  if (as_text(head) == "\x89MCAP0\r\n") return PathKind::mcap_episode;
  return failed_precondition(fmt::format(
      "{}: neither an HDF5 nor an MCAP file; name a dataset directory or an episode file",
      path.string()));
}

// The dataset that an episode file of an export lies in: root/data/chunk-000/episode_000000.hdf5.
std::filesystem::path dataset_of(const std::filesystem::path& file) {
  return std::filesystem::absolute(file)
      .lexically_normal()
      .parent_path()
      .parent_path()
      .parent_path();
}

}  // namespace

std::string_view path_kind_name(PathKind kind) { return row(kind).name; }
std::string_view path_kind_title(PathKind kind) { return row(kind).title; }

Result<PathKind> identify(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return not_found(fmt::format("{}: no such file or directory", path.string()));
  }
  if (!std::filesystem::is_directory(path, ignored)) return identify_file(path);
  if (std::filesystem::exists(path / "accepted" / "meta", ignored) &&
      std::filesystem::exists(path / "rejected" / "meta", ignored)) {
    return PathKind::export_pair;
  }
  const auto info = read_text_file(path / "meta" / "info.json", Limits{}.max_json_bytes);
  if (info.ok()) {
    if (const auto json = parse_json(*info); json.ok()) {
      const std::string format = json->get_string("dataset_format")
                                     .value_or(json->get_string("codebase_version").value_or(""));
      if (format == "hdf5") return PathKind::hdf5_dataset;
      if (format == "mcap") return PathKind::mcap_dataset;
    }
  }
  ROPEWALK_ASSIGN_OR_RETURN(const LerobotProbe probe, probe_lerobot(path));
  switch (probe.generation) {
    case LerobotGeneration::v20:
      return PathKind::lerobot_v20;
    case LerobotGeneration::v21:
      return PathKind::lerobot_v21;
    case LerobotGeneration::v30:
      return PathKind::lerobot_v3;
  }
  return internal("unknown generation");
}

Result<std::unique_ptr<EpisodeSource>> open_dataset(const std::filesystem::path& path,
                                                    const OpenDatasetOptions& options) {
  ROPEWALK_ASSIGN_OR_RETURN(const PathKind kind, identify(path));
  switch (kind) {
    case PathKind::lerobot_v20:
    case PathKind::lerobot_v21:
    case PathKind::lerobot_v3: {
      ROPEWALK_ASSIGN_OR_RETURN(auto source, open_lerobot(path, {.strict = options.strict,
                                                                 .survey = options.survey,
                                                                 .pool = options.pool,
                                                                 .stop = options.stop}));
      return std::unique_ptr<EpisodeSource>(std::move(source));
    }
    case PathKind::hdf5_dataset:
      return open_eva_hdf5(path);
    case PathKind::mcap_dataset:
      return open_eva_mcap(path);
    case PathKind::hdf5_episode:
      return open_eva_hdf5(dataset_of(path));
    case PathKind::mcap_episode:
      return open_eva_mcap(dataset_of(path));
    case PathKind::export_pair:
      return failed_precondition(
          fmt::format("{}: an export pair holds two datasets; name {}/accepted or {}/rejected",
                      path.string(), path.string(), path.string()));
  }
  return internal("unknown kind of path");
}

}  // namespace ropewalk
