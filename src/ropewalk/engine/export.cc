#include "ropewalk/engine/export.h"

#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/process.h"
#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/dataset/lerobot/lerobot.h"
#include "ropewalk/dataset/lerobot/revision.h"
#include "ropewalk/engine/prove.h"
#include "ropewalk/engine/subset_source.h"
#include "ropewalk/engine/version.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kReserveBytes = 64ULL << 20;

// The source as it stood when the export began.
struct Snapshot {
  std::unique_ptr<LerobotSource> source;
  std::optional<Ledger> ledger;
  /// By position, with the ledger's review state; without the rows, which are read again when an
  /// episode is written: the source proves that they are the same bytes.
  std::vector<EpisodeInfo> infos;
  std::vector<SplitRow> split_rows;  ///< by position
  std::int64_t revision = 0;
};

Result<Snapshot> take_snapshot(const std::filesystem::path& path) {
  Snapshot out;
  auto opened = open_lerobot(path, {});
  if (!opened.ok() && opened.status().reason() == "OTHER_FORMAT") {
    return failed_precondition(
               fmt::format("{}: an export reads a raw LeRobot v2.1 dataset and this "
                           "is an export already; use `ropewalk convert`",
                           path.string()))
        .with_reason("NOT_V21");
  }
  if (!opened.ok()) return std::move(opened).status();
  out.source = std::move(opened).value();
  if (out.source->generation() != LerobotGeneration::v21) {
    return failed_precondition(
               fmt::format(
                   "{}: an export reads a raw LeRobot v2.1 dataset, this one is {}; convert "
                   "it first: ropewalk convert {} OUT --to lerobot_v21",
                   path.string(), out.source->format(), path.string()))
        .with_reason("NOT_V21");
  }
  ROPEWALK_ASSIGN_OR_RETURN(Ledger ledger, Ledger::open_for_read(path));
  out.revision = ledger.revision();
  out.infos.reserve(static_cast<std::size_t>(out.source->size()));
  for (std::int64_t i = 0; i < out.source->size(); ++i) {
    EpisodeInfo info = out.source->info(i);
    ledger.apply(info);
    out.split_rows.push_back(split_row(info));
    info.row = Json();
    info.issues = Json();
    info.tasks = {};
    out.infos.push_back(std::move(info));
  }
  out.ledger.emplace(std::move(ledger));
  return out;
}

struct Inventory {
  std::vector<RevisionFile> files;
  std::uint64_t bytes = 0;
  std::string digest;
};

// What the export reads: the files of the episodes that take part, and the digest of their rows.
Result<Inventory> take_inventory(const Snapshot& snapshot,
                                 const std::vector<std::int64_t>& positions) {
  Inventory out;
  std::vector<RevisionRow> rows;
  for (const std::int64_t position : positions) {
    const EpisodeInfo& info = snapshot.infos[static_cast<std::size_t>(position)];
    RevisionRow row{.episode_index = info.index,
                    .length = info.length,
                    .quality = info.quality,
                    .verdict = info.verdict,
                    .note = info.note,
                    .files = {}};
    ROPEWALK_ASSIGN_OR_RETURN(row.files, snapshot.source->episode_files(position));
    for (const RevisionFile& file : row.files) out.bytes += file.size_bytes;
    out.files.insert(out.files.end(), row.files.begin(), row.files.end());
    rows.push_back(std::move(row));
  }
  out.digest = source_digest(rows);
  return out;
}

// Says whether the source is still what was read. Verdicts given meanwhile only warn.
Status recheck_source(const Snapshot& snapshot, const std::vector<std::int64_t>& positions,
                      const Inventory& before, std::vector<std::string>& warnings) {
  const auto changed = [](const std::string& what) {
    return failed_precondition(
               fmt::format("{}; the source changed while it was exported: export again", what))
        .with_reason("SOURCE_CHANGED");
  };
  ROPEWALK_ASSIGN_OR_RETURN(const Inventory now, take_inventory(snapshot, positions));
  if (now.files.size() != before.files.size()) {
    return changed(fmt::format("{} files of {} are there", now.files.size(), before.files.size()));
  }
  for (std::size_t i = 0; i < now.files.size(); ++i) {
    if (!(now.files[i] == before.files[i])) {
      return changed(fmt::format("{}: expected {} bytes, found {} or another time",
                                 before.files[i].path, before.files[i].size_bytes,
                                 now.files[i].size_bytes));
    }
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto lines,
                            snapshot.ledger->log({.after_rev = snapshot.revision}));
  std::int64_t reviews = 0;
  for (const LedgerLine& line : lines) {
    if (!line.episode_index) continue;
    bool exported = false;
    for (const std::int64_t position : positions) {
      exported |= snapshot.infos[static_cast<std::size_t>(position)].index == *line.episode_index;
    }
    if (!exported) continue;
    if (line.kind == LedgerKind::realigned || line.kind == LedgerKind::trashed ||
        line.kind == LedgerKind::restored) {
      return changed(
          fmt::format("episode {} was {}", *line.episode_index, ledger_kind_name(line.kind)));
    }
    ++reviews;
  }
  if (reviews > 0) {
    warnings.push_back(
        fmt::format("VERDICTS_CHANGED: {} ledger lines about exported episodes came "
                    "after revision {}; the pair is that of this revision",
                    reviews, snapshot.revision));
  }
  return ok_status();
}

std::vector<std::int64_t> indices_of(const Snapshot& snapshot, const SplitHalf& half) {
  std::vector<std::int64_t> out;
  for (const std::int64_t position : half.positions) {
    out.push_back(snapshot.infos[static_cast<std::size_t>(position)].index);
  }
  return out;
}

SubsetSource subset_of(const Snapshot& snapshot, const SplitHalf& half) {
  return {*snapshot.source, half.positions,
          [&ledger = *snapshot.ledger](EpisodeInfo& info) { ledger.apply(info); }};
}

}  // namespace

Json ExportReport::to_json() const {
  const auto list = [](const std::vector<std::int64_t>& values) {
    Json out = Json::array();
    for (const std::int64_t value : values) out.push_back(value);
    return out;
  };
  Json out = Json::object();
  out.set("format", format);
  out.set("source_dir", source.string());
  out.set("accepted_dir", accepted.string());
  out.set("rejected_dir", rejected.string());
  if (!export_id.empty()) out.set("export_id", export_id);
  out.set("source_revision", source_revision);
  out.set("accepted_episodes", counts.accepted_episodes);
  out.set("rejected_episodes", counts.rejected_episodes);
  out.set("accepted_frames", counts.accepted_frames);
  out.set("rejected_frames", counts.rejected_frames);
  out.set("overrides", counts.overrides);
  out.set("accepted_source_indices", list(accepted_episodes));
  out.set("rejected_source_indices", list(rejected_episodes));
  out.set("files", files);
  out.set("bytes", bytes);
  out.set("estimated_bytes", estimated_bytes);
  out.set("seconds", seconds);
  out.set("switch_seconds", switch_seconds);
  if (!publish_mode.empty()) out.set("publish_mode", publish_mode);
  Json notes = Json::array();
  for (const std::string& warning : warnings) notes.push_back(warning);
  out.set("warnings", std::move(notes));
  out.set("findings", findings.to_json());
  return out;
}

Result<ExportReport> export_dataset(const ExportRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  ROPEWALK_RETURN_IF_ERROR(validate_sink_options(request.format, request.sink));
  context.report({.phase = "validating", .item = {}});
  ROPEWALK_ASSIGN_OR_RETURN(const Snapshot snapshot, take_snapshot(request.source));
  ROPEWALK_ASSIGN_OR_RETURN(const PairTarget target,
                            derive_target(request.source, request.format, request.out));

  ROPEWALK_ASSIGN_OR_RETURN(const Split split,
                            split_episodes(snapshot.split_rows, {.selection = request.selection,
                                                                 .episodes = request.episodes}));
  std::vector<std::int64_t> positions = split.accepted.positions;
  positions.insert(positions.end(), split.rejected.positions.begin(),
                   split.rejected.positions.end());

  ROPEWALK_ASSIGN_OR_RETURN(const Findings invalid,
                            validate_for_export(*snapshot.source, positions, context));
  if (positions.empty()) {
    return failed_precondition(
               fmt::format("{}: no episode takes part in the export", request.source.string()))
        .with_reason("INVALID_SOURCE");
  }
  if (invalid.has_errors()) {
    std::string text = fmt::format("{}: nothing was published; the source cannot be exported:",
                                   request.source.string());
    for (const Finding& finding : invalid.entries()) {
      if (finding.severity == Severity::error) text += "\n  " + to_line(finding);
    }
    return failed_precondition(std::move(text)).with_reason("INVALID_SOURCE");
  }
  ROPEWALK_ASSIGN_OR_RETURN(const Inventory inventory, take_inventory(snapshot, positions));

  ExportReport report;
  report.format = request.format;
  report.source = std::filesystem::absolute(request.source).lexically_normal();
  report.accepted = target.accepted();
  report.rejected = target.rejected();
  report.source_revision = snapshot.revision;
  report.counts = {static_cast<std::int64_t>(split.accepted.positions.size()),
                   static_cast<std::int64_t>(split.rejected.positions.size()),
                   split.accepted.frames, split.rejected.frames,
                   split.accepted.overrides + split.rejected.overrides};
  report.accepted_episodes = indices_of(snapshot, split.accepted);
  report.rejected_episodes = indices_of(snapshot, split.rejected);
  report.findings = invalid;
  const SubsetSource accepted = subset_of(snapshot, split.accepted);
  const SubsetSource rejected = subset_of(snapshot, split.rejected);
  report.estimated_bytes = request.format.starts_with("lerobot")
                               ? inventory.bytes
                               : estimate_output_bytes(request.format, accepted, 0) +
                                     estimate_output_bytes(request.format, rejected, 0);
  ROPEWALK_RETURN_IF_ERROR(check_free_space(target.parent, report.estimated_bytes, kReserveBytes));
  if (request.dry_run) return report;

  ROPEWALK_ASSIGN_OR_RETURN(
      PairPublisher publisher,
      PairPublisher::begin(target, {.replace_existing = request.replace_existing,
                                    .mode = request.mode,
                                    .source_revision = snapshot.revision}));
  SplitMarker marker{.source_dir = std::filesystem::weakly_canonical(request.source).string(),
                     .dataset_format = request.format,
                     .rule = std::string(kVerdictRule),
                     .export_id = publisher.export_id(),
                     .source_revision = snapshot.revision,
                     .source_digest = inventory.digest,
                     .exported_at = utc_now(),
                     .generator = fmt::format("ropewalk {}", version()),
                     .counts = report.counts};
  if (request.selection != EpisodeSelection::all) {
    marker.episode_selection = episode_selection_name(request.selection);
  }

  std::int64_t done_before = 0;
  std::vector<FormatSink> proofs;
  const auto write_half = [&](const SubsetSource& half, const std::filesystem::path& root,
                              ManifestBuilder& manifest, const char* subset,
                              std::vector<std::int64_t> indices) -> Status {
    RunContext phase = context;
    phase.progress = [&](const Progress& progress) {
      Progress shown = progress;
      shown.phase = fmt::format("converting {}", subset);
      shown.done += done_before;
      shown.total = static_cast<std::int64_t>(positions.size());
      context.report(shown);
    };
    ROPEWALK_ASSIGN_OR_RETURN(auto made, make_sink(request.format, root, half, request.sink));
    const auto& sink = made.sink;
    ROPEWALK_RETURN_IF_ERROR(copy(half, *sink, phase));
    done_before += half.size();
    manifest.add(sink->files());
    report.findings.append(sink->findings());
    marker.subset = subset;
    marker.source_episode_indices = std::move(indices);
    proofs.push_back(std::move(made));
    return manifest.write_file(kMarkerPath, as_bytes(to_json(marker).dump(2) + "\n"));
  };
  ROPEWALK_RETURN_IF_ERROR(write_half(accepted, publisher.accepted(), publisher.accepted_manifest(),
                                      "accepted", report.accepted_episodes));
  ROPEWALK_RETURN_IF_ERROR(write_half(rejected, publisher.rejected(), publisher.rejected_manifest(),
                                      "rejected", report.rejected_episodes));

  const PairProof proof = [&](const std::filesystem::path& accepted_root,
                              const std::filesystem::path& rejected_root) -> Status {
    context.report({.phase = "proving", .item = {}});
    for (const FormatSink& written : proofs) ROPEWALK_RETURN_IF_ERROR(written.prove(context));
    ROPEWALK_RETURN_IF_ERROR(prove_structure(accepted_root, request.format, accepted, context));
    ROPEWALK_RETURN_IF_ERROR(prove_structure(rejected_root, request.format, rejected, context));
    if (!request.prove_full) return ok_status();
    for (const auto& [root, half] :
         {std::pair{&accepted_root, &accepted}, std::pair{&rejected_root, &rejected}}) {
      ROPEWALK_ASSIGN_OR_RETURN(const ContentProof content,
                                prove_content(*root, *half, true, context));
      if (content.findings.has_errors()) {
        return data_loss(fmt::format("the stage differs from its source: {}",
                                     to_line(content.findings.entries().front())));
      }
    }
    return ok_status();
  };
  const SourceRecheck recheck = [&]() -> Status {
    return recheck_source(snapshot, positions, inventory, report.warnings);
  };
  ROPEWALK_ASSIGN_OR_RETURN(const PublishReport published,
                            publisher.publish(proof, recheck, context));
  report.export_id = published.export_id;
  report.bytes = published.total_bytes;
  report.files = published.total_files;
  report.switch_seconds = static_cast<double>(published.switch_ns) * 1e-9;
  report.publish_mode = publish_mode_name(published.mode);
  report.findings.append(published.findings);
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace ropewalk
