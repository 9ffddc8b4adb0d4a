#include "ropewalk/dataset/lerobot/probe.h"

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/info_internal.h"

namespace ropewalk {
namespace {

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

bool has_children(const std::filesystem::path& path) {
  const auto names = list_directory(path);
  return names.ok() && !names->empty();
}

/// Says what may have been meant where meta/info.json is not.
Status no_info(const std::filesystem::path& root) {
  std::string hint;
  if (is_there(root / "meta" / "info.json.bak")) {
    hint = "; there is a backup meta/info.json.bak: copy it back if it is the right one";
  }
  if (const auto names = list_directory(root); names.ok()) {
    for (const std::string& name : *names) {
      if (is_there(root / name / "meta" / "info.json")) {
        hint = fmt::format("; the directory {} in it holds a dataset: open that one", name);
        break;
      }
    }
  }
  return not_found(
      fmt::format("{}: no LeRobot dataset: meta/info.json is not there{}", root.string(), hint));
}

}  // namespace

std::string_view lerobot_format_name(LerobotGeneration generation) {
  switch (generation) {
    case LerobotGeneration::v20:
      return "lerobot_v20";
    case LerobotGeneration::v21:
      return "lerobot_v21";
    case LerobotGeneration::v30:
      return "lerobot_v3";
  }
  return "lerobot_v21";
}

namespace lerobot {

Result<LerobotProbe> probe_document(const std::filesystem::path& root, const Json& document) {
  LerobotProbe out;
  out.declared = document.get_string("codebase_version").value_or("");
  if (document.get_string("storage_format") == "lance" || is_there(root / "frames.lance")) {
    return unimplemented(fmt::format("{}: a LeRobot dataset in Lance tables; convert it to Parquet "
                                     "with the tool that "
                                     "made it",
                                     root.string()))
        .with_reason("LANCE");
  }
  if (const auto other = document.get_string("dataset_format");
      other && *other != "lerobot_v21" && *other != "lerobot_v3") {
    return failed_precondition(fmt::format("{}: an export of format {}, not a LeRobot dataset",
                                           root.string(), *other))
        .with_reason("OTHER_FORMAT");
  }
  const std::string data_path = document.get_string("data_path").value_or("");
  const bool rows_v2 = is_there(root / "meta" / "episodes.jsonl");
  if (has_children(root / "meta" / "episodes") ||
      data_path.find("{file_index") != std::string::npos ||
      (!rows_v2 && is_there(root / "meta" / "tasks.parquet"))) {
    out.generation = LerobotGeneration::v30;
    return out;
  }
  if (!rows_v2 && (out.declared.starts_with("v1") || is_there(root / "meta_data"))) {
    return unimplemented(fmt::format("{}: LeRobot format {} is not read; convert it with the "
                                     "upstream script for v1 datasets first",
                                     root.string(), out.declared.empty() ? "v1.x" : out.declared))
        .with_reason("LEROBOT_V1");
  }
  const bool episode_statistics = is_there(root / "meta" / "episodes_stats.jsonl");
  const bool global_statistics = is_there(root / "meta" / "stats.json");
  const bool says_v20 = out.declared == "v2.0" || out.declared == "2.0";
  const bool says_v21 = out.declared == "v2.1" || out.declared == "2.1";
  const bool is_v20 = !episode_statistics && !says_v21 && (says_v20 || global_statistics);
  out.generation = is_v20 ? LerobotGeneration::v20 : LerobotGeneration::v21;
  return out;
}

}  // namespace lerobot

Result<LerobotProbe> probe_lerobot(const std::filesystem::path& root, const Limits& limits) {
  std::error_code error;
  if (!std::filesystem::is_directory(root, error)) {
    return not_found(fmt::format("{}: no such directory", root.string()));
  }
  if (!is_there(root / "meta" / "info.json")) {
    if (is_there(root / "meta_data" / "info.json")) {
      return unimplemented(fmt::format("{}: LeRobot format v1.x is not read; convert it with the "
                                       "upstream script for v1 datasets first",
                                       root.string()))
          .with_reason("LEROBOT_V1");
    }
    return no_info(root);
  }
  lerobot::FindingLog log(false);
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const Json document,
                                lerobot::read_json_document(root, "meta/info.json", limits, log),
                                root.string());
  return lerobot::probe_document(root, document);
}

}  // namespace ropewalk
