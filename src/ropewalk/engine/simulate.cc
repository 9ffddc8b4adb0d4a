#include "ropewalk/engine/simulate.h"

#include <chrono>
#include <system_error>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/dataset/lerobot/raw_writer.h"
#include "ropewalk/engine/review.h"

namespace ropewalk {
namespace {

// An empty directory gives way; anything else stays and is an error.
Status make_way(const std::filesystem::path& out) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(out));
  if (!there) return ok_status();
  const auto refuse = [&](std::string_view what) {
    return already_exists(fmt::format(
        "{}: {}; a simulated dataset needs a path where nothing is yet", out.string(), what));
  };
  if (!there->is_directory) return refuse("there is a file");
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(out));
  if (!names.empty()) return refuse(fmt::format("the directory is not empty ({})", names.front()));
  std::error_code error;
  std::filesystem::remove(out, error);  // removes an empty directory only
  return error ? errno_status(error.value(), out.string()) : ok_status();
}

}  // namespace

Json SimulateReport::to_json() const {
  Json json = Json::object();
  json.set("out", out.string());
  json.set("frames", frames);
  json.set("pictures", pictures);
  json.set("bytes", bytes);
  json.set("red", red);
  json.set("seconds", seconds);
  Json list = Json::array();
  for (const SimulatedEpisode& episode : episodes) {
    Json entry = Json::object();
    entry.set("episode_index", episode.episode_index);
    entry.set("length", episode.length);
    entry.set("task", episode.task);
    Json faults = Json::array();
    for (const SimulatedFault fault : episode.faults) faults.push_back(simulated_fault_name(fault));
    entry.set("faults", std::move(faults));
    if (scanned) {
      entry.set("quality", episode.quality.quality());
      entry.set("quality_issues", episode.quality.issues_json());
      entry.set("quality_findings", episode.quality.findings_json());
    }
    list.push_back(std::move(entry));
  }
  json.set("episodes", std::move(list));
  return json;
}

Result<SimulateReport> simulate(const SimulateRequest& request, const RunContext& context) {
  const auto begin = std::chrono::steady_clock::now();
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_simulated(request.options));
  std::filesystem::path out = std::filesystem::absolute(request.out).lexically_normal();
  if (!out.has_filename()) out = out.parent_path();
  ROPEWALK_RETURN_IF_ERROR(make_way(out));
  ROPEWALK_RETURN_IF_ERROR(make_directories(out.parent_path()));
  ROPEWALK_ASSIGN_OR_RETURN(StagedDirectory stage, StagedDirectory::create(out));

  SimulateReport report;
  report.out = out;
  report.scanned = request.scan;
  for (std::int64_t i = 0; i < source->size(); ++i) {
    const EpisodeInfo& info = source->info(i);
    report.frames += info.length;
    report.episodes.push_back({.episode_index = info.index,
                               .length = info.length,
                               .task = info.tasks.front(),
                               .faults = faults_of(request.options, i)});
  }
  // Faulty episodes are written as they are: finding them is the work of the checks.
  ROPEWALK_ASSIGN_OR_RETURN(
      RawWriter writer, RawWriter::create(stage.path(), source->schema(),
                                          {.durable = false, .faithful = true, .row_times = true}));
  ROPEWALK_RETURN_IF_ERROR(writer.append(*source, context));

  const RawJudge judge = [&](const std::filesystem::path& root) -> Result<std::vector<RawQuality>> {
    ScanRequest scan;
    scan.path = root;
    ROPEWALK_ASSIGN_OR_RETURN(ScanReport found, review_scan(scan, context));
    if (found.episodes.size() != report.episodes.size()) {
      return internal(fmt::format("{} episodes were scanned of {} written", found.episodes.size(),
                                  report.episodes.size()));
    }
    std::vector<RawQuality> out_qualities;
    for (std::size_t i = 0; i < found.episodes.size(); ++i) {
      QualityReport& quality = found.episodes[i].quality;
      out_qualities.push_back({quality.quality(), quality.issues_json(), quality.findings_json()});
      report.red += quality.issues.empty() ? 0 : 1;
      report.pictures += quality.pictures;
      report.episodes[i].quality = std::move(quality);
    }
    return out_qualities;
  };
  ROPEWALK_RETURN_IF_ERROR(writer.finish(context, request.scan ? judge : RawJudge()));
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  ROPEWALK_ASSIGN_OR_RETURN(const auto files, list_tree(stage.path()));
  for (const std::string& file : files) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(stage.path() / file));
    if (info) report.bytes += info->size_bytes;
  }
  ROPEWALK_RETURN_IF_ERROR(stage.publish());
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return report;
}

}  // namespace ropewalk
