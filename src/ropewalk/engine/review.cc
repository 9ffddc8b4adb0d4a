#include "ropewalk/engine/review.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <set>

#include <fmt/format.h>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/dataset/lerobot/lerobot.h"
#include "ropewalk/engine/open.h"

namespace ropewalk {
namespace {

Json entry_to_json(const ReviewEntry& entry) {
  const ReviewRow& row = entry.row;
  const auto text = [](const std::string& value) { return value.empty() ? Json() : Json(value); };
  Json out = Json::object();
  out.set("episode_index", row.episode_index);
  out.set("length", row.length);
  Json tasks = Json::array();
  for (const std::string& task : entry.tasks) tasks.push_back(task);
  out.set("tasks", std::move(tasks));
  out.set("quality", text(row.quality));
  out.set("quality_issues", row.issues.is_null() ? Json::array() : row.issues);
  out.set("quality_findings", row.findings.is_null() ? Json::array() : row.findings);
  out.set("verdict", text(row.verdict));
  out.set("verdict_by_machine", row.verdict_by_machine);
  out.set("note", row.note);
  out.set("outcome", outcome_name(entry.decision.outcome));
  out.set("decided_by", decided_by_name(entry.decision.by));
  out.set("overrides_quality", entry.decision.overrides_quality);
  out.set("trashed", !row.trashed_at.empty());
  out.set("revision", row.revision);
  return out;
}

}  // namespace

Json ScanReport::to_json() const {
  Json out = Json::object();
  out.set("format", format);
  out.set("red", red);
  out.set("frames", frames);
  out.set("pictures", pictures);
  out.set("recorded", recorded);
  out.set("revision", revision);
  out.set("seconds", seconds);
  Json list = Json::array();
  for (const ScannedEpisode& episode : episodes) {
    Json entry = Json::object();
    entry.set("episode_index", episode.episode_index);
    entry.set("length", episode.length);
    entry.set("quality", episode.quality.quality());
    entry.set("quality_issues", episode.quality.issues_json());
    entry.set("quality_findings", episode.quality.findings_json());
    if (!episode.error.empty()) entry.set("error", episode.error);
    list.push_back(std::move(entry));
  }
  out.set("episodes", std::move(list));
  return out;
}

Json ReviewList::to_json() const {
  Json out = Json::object();
  out.set("revision", revision);
  out.set("accepted", accepted);
  out.set("rejected", rejected);
  out.set("undecided", undecided);
  Json list = Json::array();
  for (const ReviewEntry& entry : entries) list.push_back(entry_to_json(entry));
  out.set("episodes", std::move(list));
  out.set("findings", findings.to_json());
  return out;
}

Json to_json(const LedgerChange& change) {
  Json out = Json::object();
  out.set("revision", change.revision);
  Json lines = Json::array();
  for (const LedgerLine& line : change.lines) lines.push_back(to_json(line));
  out.set("lines", std::move(lines));
  return out;
}

Result<ScanReport> review_scan(const ScanRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  ROPEWALK_RETURN_IF_ERROR(request.options.validate());
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_dataset(request.path));
  std::optional<Ledger> ledger;
  if (request.write) {
    ROPEWALK_ASSIGN_OR_RETURN(Ledger opened, Ledger::open_for_write(request.path, request.actor));
    ledger.emplace(std::move(opened));
  }
  std::vector<std::int64_t> positions;
  std::set<std::int64_t> wanted;
  if (request.episodes) wanted.insert(request.episodes->begin(), request.episodes->end());
  for (std::int64_t i = 0; i < source->size(); ++i) {
    if (!request.episodes || wanted.erase(source->info(i).index) > 0) positions.push_back(i);
  }
  if (!wanted.empty()) {
    return not_found(fmt::format("{}: no episode {}", request.path.string(), *wanted.begin()));
  }

  ScanReport report;
  report.format = source->format();
  report.episodes.resize(positions.size());
  const auto count = static_cast<std::int64_t>(positions.size());
  Progress progress{.phase = "scanning", .item = {}, .done = 0, .total = count};
  std::mutex mutex;
  const Status done = parallel_for(context.pool, count, [&](std::int64_t i) -> Status {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    const std::int64_t position = positions[static_cast<std::size_t>(i)];
    ScannedEpisode& scanned = report.episodes[static_cast<std::size_t>(i)];
    const EpisodeInfo known = source->info(position);
    scanned.episode_index = known.index;
    scanned.length = known.length;
    const auto episode = source->open(position);
    Result<QualityReport> checked = episode.ok()
                                        ? check_episode(**episode, request.options, context)
                                        : Result<QualityReport>(episode.status());
    if (checked.ok()) {
      scanned.quality = std::move(checked).value();
    } else if (checked.status().code() == StatusCode::cancelled) {
      return checked.status();
    } else {
      scanned.error = checked.status().message();
      scanned.quality.issues.push_back({.severity = "red",
                                        .code = "unreadable_episode",
                                        .detail = scanned.error,
                                        .count = scanned.length});
    }
    const std::lock_guard lock(mutex);
    report.frames += scanned.length;
    report.pictures += scanned.quality.pictures;
    if (scanned.quality.quality() == "red") ++report.red;
    ++progress.done;
    progress.item = fmt::format("episode {}", scanned.episode_index);
    context.report(progress);
    return ok_status();
  });
  ROPEWALK_RETURN_IF_ERROR(done);
  if (ledger) {
    std::vector<CheckRecord> records;
    for (const ScannedEpisode& scanned : report.episodes) {
      records.push_back({.episode_index = scanned.episode_index,
                         .quality = scanned.quality.quality(),
                         .issues = scanned.quality.issues_json(),
                         .findings = scanned.quality.findings_json()});
    }
    ROPEWALK_ASSIGN_OR_RETURN(const LedgerChange change, ledger->record_checks(records));
    ROPEWALK_RETURN_IF_ERROR(ledger->project());
    report.recorded = static_cast<std::int64_t>(change.lines.size());
    report.revision = change.revision;
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

Result<ReviewList> review_list(const std::filesystem::path& path,
                               const std::optional<std::vector<std::int64_t>>& episodes) {
  ROPEWALK_ASSIGN_OR_RETURN(const Ledger ledger, Ledger::open_for_read(path));
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_lerobot(path, {}));
  ReviewList out;
  out.revision = ledger.revision();
  out.findings = ledger.findings();
  std::set<std::int64_t> wanted;
  if (episodes) wanted.insert(episodes->begin(), episodes->end());
  for (const ReviewRow& row : ledger.rows()) {
    const Decision decision = decide(row.verdict, row.quality);
    if (row.trashed_at.empty()) {
      ++(decision.outcome == Outcome::accepted ? out.accepted : out.rejected);
      if (row.verdict.empty()) ++out.undecided;
    }
    if (episodes && wanted.erase(row.episode_index) == 0) continue;
    ReviewEntry entry{.row = row, .decision = decision};
    if (const auto position = source->position_of(row.episode_index)) {
      EpisodeInfo info = source->info(*position);
      ledger.apply(info);
      entry.tasks = info.tasks;
      if (episodes) entry.raw = std::move(info.row);
    }
    out.entries.push_back(std::move(entry));
  }
  if (!wanted.empty()) {
    return not_found(fmt::format("{}: no episode {}", path.string(), *wanted.begin()));
  }
  return out;
}

Result<LedgerChange> review_mark(const std::filesystem::path& path, const MarkRequest& request,
                                 const LedgerActor& actor) {
  if (!request.verdict && !request.note) {
    return invalid_argument("mark needs a verdict, a note, or both");
  }
  ROPEWALK_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open_for_write(path, actor));
  ROPEWALK_ASSIGN_OR_RETURN(LedgerChange change, ledger.mark(request));
  ROPEWALK_RETURN_IF_ERROR(ledger.project());
  return change;
}

Result<std::vector<LedgerLine>> review_log(const std::filesystem::path& path,
                                           const LogFilter& filter) {
  ROPEWALK_ASSIGN_OR_RETURN(const Ledger ledger, Ledger::open_for_read(path));
  return ledger.log(filter);
}

Result<LedgerChange> review_undo(const std::filesystem::path& path, const UndoRequest& request,
                                 const LedgerActor& actor) {
  ROPEWALK_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open_for_write(path, actor));
  ROPEWALK_ASSIGN_OR_RETURN(LedgerChange change, ledger.undo(request));
  ROPEWALK_RETURN_IF_ERROR(ledger.project());
  return change;
}

}  // namespace ropewalk
