#include "ropewalk/engine/info.h"

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/stage/publish/pair.h"
#include "ropewalk/stage/quality/verdict.h"

namespace ropewalk {
namespace {

DatasetSummary summarize(const EpisodeSource& source, const Ledger* ledger) {
  DatasetSummary out;
  out.episodes = source.size();
  if (ledger) out.revision = ledger->revision();
  for (std::int64_t i = 0; i < source.size(); ++i) {
    EpisodeInfo info = source.info(i);
    if (ledger) ledger->apply(info);
    out.frames += info.length;
    for (const std::string& task : info.tasks) ++out.tasks[task];
    ++out.qualities[info.quality.empty() ? "unchecked" : info.quality];
    ++out.verdicts[info.verdict.empty() ? "undecided" : info.verdict];
    const Decision decision = decide(info.verdict, info.quality);
    ++(decision.outcome == Outcome::accepted ? out.accepted : out.rejected);
  }
  return out;
}

Json counts_to_json(const std::map<std::string, std::int64_t>& counts) {
  Json out = Json::object();
  for (const auto& [key, count] : counts) out.set(key, count);
  return out;
}

}  // namespace

Json InfoReport::to_json() const {
  Json out = Json::object();
  out.set("path", path.string());
  out.set("kind", path_kind_name(kind));
  if (!halves.empty()) {
    for (const InfoReport& half : halves) out.set(half.path.filename().string(), half.to_json());
    return out;
  }
  out.set("robot_type", schema.robot_type.empty() ? Json() : Json(schema.robot_type));
  out.set("fps", schema.fps.is_integral() ? Json(schema.fps.num) : Json(schema.fps.to_double()));
  out.set("total_episodes", summary.episodes);
  out.set("total_frames", summary.frames);
  out.set("revision", summary.revision);
  Json features = Json::object();
  for (const Feature& feature : schema.features) {
    Json entry = Json::object();
    entry.set("kind", feature_kind_name(feature.kind));
    entry.set("dtype", dtype_name(feature.dtype));
    Json shape = Json::array();
    for (const std::int64_t extent : feature.shape) shape.push_back(extent);
    entry.set("shape", std::move(shape));
    features.set(feature.name, std::move(entry));
  }
  out.set("features", std::move(features));
  out.set("tasks", counts_to_json(summary.tasks));
  out.set("quality", counts_to_json(summary.qualities));
  out.set("verdicts", counts_to_json(summary.verdicts));
  out.set("accepted", summary.accepted);
  out.set("rejected", summary.rejected);
  if (!marker.is_null()) out.set("marker", marker);
  out.set("findings", findings.to_json());
  return out;
}

Result<InfoReport> dataset_info(const std::filesystem::path& path) {
  InfoReport report;
  report.path = path;
  ROPEWALK_ASSIGN_OR_RETURN(report.kind, identify(path));
  if (report.kind == PathKind::export_pair) {
    for (const char* half : {"accepted", "rejected"}) {
      ROPEWALK_ASSIGN_OR_RETURN(InfoReport part, dataset_info(path / half));
      report.halves.push_back(std::move(part));
    }
    return report;
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_dataset(path));
  report.schema = source->schema();
  report.findings = source->findings();
  std::optional<Ledger> ledger;
  if (report.kind == PathKind::lerobot_v21) {
    // A dataset without rows of its own (a partial copy, say) has no ledger either.
    if (auto opened = Ledger::open_for_read(path); opened.ok()) {
      ledger.emplace(std::move(opened).value());
    }
  }
  report.summary = summarize(*source, ledger ? &*ledger : nullptr);
  if (auto marker = read_marker(path); marker.ok()) report.marker = marker->json;
  return report;
}

}  // namespace ropewalk
