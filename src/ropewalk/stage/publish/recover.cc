#include "ropewalk/stage/publish/recover.h"

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/stage/publish/debris_internal.h"
#include "ropewalk/stage/publish/names_internal.h"
#include "ropewalk/stage/publish/pair.h"
#include "ropewalk/stage/publish/switch_internal.h"

namespace ropewalk {
namespace {

namespace fs = std::filesystem;

// One run of the table of 6.4 on a journal.
class JournalRecovery {
 public:
  JournalRecovery(const PairTarget& target, Journal journal, RecoveryReport& report)
      : target_(target), journal_(std::move(journal)), report_(report) {}

  Status run() {
    ROPEWALK_ASSIGN_OR_RETURN(places_, look_at_places(target_, journal_));
    switch (journal_.state) {
      case PublishState::staged:
        return is_untouched() ? roll_back() : undecided();
      case PublishState::switching:
        return run_switching();
      case PublishState::published:
        return run_published();
    }
    return undecided();
  }

 private:
  // The target is what it was before, and the stage can only be the new pair or gone.
  bool is_untouched() const {
    const Occupant expected = journal_.before ? Occupant::before : Occupant::absent;
    return places_.target == expected && places_.previous == Occupant::absent &&
           (places_.stage == Occupant::after || places_.stage == Occupant::absent);
  }

  Status run_switching() {
    if (is_untouched()) return roll_back();
    if (places_.target == Occupant::after) {
      const Status verified = verify_pair(target_.directory(), journal_.export_id);
      return verified.ok() ? complete() : go_back(verified);
    }
    if (journal_.mode == PublishMode::renames && places_.target == Occupant::absent &&
        places_.previous == Occupant::before) {
      return finish_renames();
    }
    return undecided();
  }

  Status run_published() {
    if (places_.target != Occupant::after) return undecided();
    const Status verified = verify_pair(target_.directory(), journal_.export_id);
    return verified.ok() ? finish() : go_back(verified);
  }

  Status finish_renames() {
    if (places_.stage == Occupant::after &&
        verify_pair(target_.stage(journal_.export_id), journal_.export_id).ok()) {
      ROPEWALK_RETURN_IF_ERROR(fault_point("recover.finish_renames"));
      ROPEWALK_RETURN_IF_ERROR(rename_path(target_.stage(journal_.export_id), target_.directory()));
      ROPEWALK_RETURN_IF_ERROR(sync_directory(target_.parent));
      return complete();
    }
    if (places_.stage == Occupant::other) return undecided();
    ROPEWALK_RETURN_IF_ERROR(undo_switch(target_, journal_));
    return roll_back();
  }

  // Step 6 succeeded: make it known, then 7 and 8.
  Status complete() {
    journal_.state = PublishState::published;
    ROPEWALK_RETURN_IF_ERROR(write_journal(target_, journal_));
    return finish();
  }

  Status finish() {
    report_.acted = true;
    finish_published(target_, journal_, report_.findings);
    add("publish_completed", Severity::info, target_.name,
        fmt::format("export {} was switched and verified", journal_.export_id),
        "kept the new pair");
    return ok_status();
  }

  Status roll_back() {
    report_.acted = true;
    // An earlier recovery may have died while it went back from a pair that foreign entries had
    // been carried into; they must not go with the stage.
    if (journal_.before && places_.stage == Occupant::after) {
      ROPEWALK_RETURN_IF_ERROR(
          carry_over(target_, target_.stage(journal_.export_id), report_.findings));
    }
    ROPEWALK_RETURN_IF_ERROR(discard_stage(target_, journal_.export_id));
    add("publish_rolled_back", Severity::warning, target_.name,
        fmt::format("export {} was interrupted before its switch", journal_.export_id),
        journal_.before ? "kept the old pair and deleted the stage"
                        : "deleted the stage; nothing was published before");
    return ok_status();
  }

  // The new pair is in place and does not verify.
  Status go_back(const Status& damage) {
    const fs::path hidden = journal_.mode == PublishMode::renames
                                ? target_.previous(journal_.export_id)
                                : target_.stage(journal_.export_id);
    const Occupant there = journal_.mode == PublishMode::renames ? places_.previous : places_.stage;
    if (!journal_.before || there != Occupant::before || !verify_pair(hidden).ok()) {
      add("new_pair_damaged", Severity::error, target_.name, damage.to_string(),
          "left as it is: there is no old pair that verifies; export again elsewhere");
      return undecided();
    }
    // Said before it is done: `published` with the old pair in place would be undecidable.
    journal_.state = PublishState::switching;
    ROPEWALK_RETURN_IF_ERROR(write_journal(target_, journal_));
    ROPEWALK_RETURN_IF_ERROR(undo_switch(target_, journal_));
    // What was carried over already belongs beside the pair that is in place.
    ROPEWALK_RETURN_IF_ERROR(
        carry_over(target_, target_.stage(journal_.export_id), report_.findings));
    ROPEWALK_RETURN_IF_ERROR(keep_damaged());
    report_.acted = true;
    add("new_pair_damaged", Severity::error, target_.name, damage.to_string(),
        "the old pair is back in place");
    return remove_journal(target_);
  }

  // The damaged pair is kept, under a name that nothing takes for a stage.
  Status keep_damaged() {
    const std::string name = fmt::format("{}.damaged.{}", target_.name, journal_.export_id);
    ROPEWALK_RETURN_IF_ERROR(rename_path(target_.stage(journal_.export_id), target_.parent / name));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(target_.parent));
    add("new_pair_damaged", Severity::error, name, journal_.export_id,
        "the damaged pair is kept here; delete it when it is not needed");
    return ok_status();
  }

  Status undecided() {
    report_.blocked = true;
    const auto tell = [&](const fs::path& path, Occupant occupant) {
      std::string_view what = "something unknown";
      if (occupant == Occupant::absent) what = "nothing";
      if (occupant == Occupant::before) what = "the old pair";
      if (occupant == Occupant::after) what = "the new pair";
      return fmt::format("{} holds {}", path.string(), what);
    };
    add("publish_undecided", Severity::error, target_.journal().filename().string(),
        fmt::format("state {}, mode {}; {}; {}; {}", publish_state_name(journal_.state),
                    publish_mode_name(journal_.mode), tell(target_.directory(), places_.target),
                    tell(target_.stage(journal_.export_id), places_.stage),
                    tell(target_.previous(journal_.export_id), places_.previous)),
        "touched nothing; decide which directory is right, put it in place and delete the journal");
    return ok_status();
  }

  void add(std::string code, Severity severity, std::string file, std::string found,
           std::string decision) {
    report_.findings.add({.code = std::move(code),
                          .severity = severity,
                          .file = std::move(file),
                          .found = std::move(found),
                          .decision = std::move(decision)});
  }

  const PairTarget& target_;
  Journal journal_;
  RecoveryReport& report_;
  Places places_;
};

void keep_unknown(const std::string& name, std::string found, RecoveryReport& report) {
  report.blocked = true;
  report.findings.add({.code = "unknown_left_over",
                       .severity = Severity::error,
                       .file = name,
                       .found = std::move(found),
                       .decision = "left as it is; move it into place or delete it by hand"});
}

// Without a journal a stage is nobody's: its owner is gone, or it is in use.
Status recover_stage(const PairTarget& target, const std::string& name, RecoveryReport& report) {
  const fs::path stage = target.parent / name;
  std::optional<ProcessIdentity> owner;
  if (auto text = read_text_file(stage / kOwnerName, 1 << 16); text.ok()) {
    if (auto json = parse_json(*text); json.ok()) owner = process_from_json(*json);
  }
  ROPEWALK_ASSIGN_OR_RETURN(const PairPresence presence, look_at(stage));
  if (!owner && presence == PairPresence::pair) {
    // Note [Nobody's pair]: a complete stage has its owner file, since both become durable with the
    // same fsync; without it and without a journal this may be an old pair, and its only copy.
    keep_unknown(name, "a complete pair without a journal and without an owner", report);
    return ok_status();
  }
  // An owner file that cannot be read was cut off by a crash. A stage of this very process is left
  // over too, since whoever asks holds the pair lock.
  if (owner && !is_gone(*owner) && *owner != this_process()) {
    report.findings.add({.code = "stage_in_use",
                         .severity = Severity::warning,
                         .file = name,
                         .found = fmt::format("process {} on {}, started {}", owner->pid,
                                              owner->host, owner->started_at),
                         .decision = "left as it is, since its process may still run"});
    return ok_status();
  }
  ROPEWALK_RETURN_IF_ERROR(fault_point("recover.remove_stage"));
  ROPEWALK_RETURN_IF_ERROR(remove_stage(stage));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
  report.acted = true;
  report.findings.add({.code = "stage_removed",
                       .severity = Severity::info,
                       .file = name,
                       .decision = "deleted: its process is gone and it was never switched"});
  return ok_status();
}

Status recover_without_journal(const PairTarget& target, RecoveryReport& report) {
  ROPEWALK_RETURN_IF_ERROR(remove_tree(target.journal().string() + ".tmp"));
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(target.parent));
  for (const std::string& name : names) {
    const auto hidden = parse_hidden_name(name);
    if (!hidden || hidden->pair_name != target.name) continue;
    if (hidden->kind == HiddenKind::stage) {
      ROPEWALK_RETURN_IF_ERROR(recover_stage(target, name, report));
    } else if (hidden->kind == HiddenKind::previous) {
      keep_unknown(name, "an old pair without a journal", report);
    }
  }
  return ok_status();
}

void inspect_pair(const PairTarget& target, RecoveryReport& report) {
  const auto presence = look_at(target.directory());
  if (!presence.ok()) return;
  if (*presence == PairPresence::incomplete) {
    report.findings.add({.code = "pair_incomplete",
                         .severity = Severity::error,
                         .file = target.name,
                         .found = "one half or its marker is missing",
                         .decision = "left as it is; export again after looking at it"});
  }
  if (*presence != PairPresence::pair) return;
  const auto pair = read_pair(target.directory());
  const std::string problem = pair.ok() ? pair->mixed : pair.status().to_string();
  if (problem.empty()) return;
  report.findings.add({.code = pair.ok() ? "pair_mixed" : "pair_unreadable",
                       .severity = Severity::error,
                       .file = target.name,
                       .found = problem,
                       .decision = "left as it is; it cannot be uploaded, export again"});
}

}  // namespace

Result<RecoveryReport> recover_locked(const PairTarget& target, const RecoverOptions& options) {
  RecoveryReport report{target, {}, false, false};
  auto journal = read_journal(target);
  if (!journal.ok()) {
    if (journal.status().code() != StatusCode::data_loss) return journal.status();
    report.blocked = true;
    report.findings.add({.code = "publish_undecided",
                         .severity = Severity::error,
                         .file = target.journal().filename().string(),
                         .found = std::string(journal.status().message()),
                         .decision =
                             "touched nothing; decide which directory is right, then delete "
                             "the journal"});
    return report;
  }
  if (*journal) {
    ROPEWALK_RETURN_IF_ERROR(JournalRecovery(target, **journal, report).run());
  }
  if (!report.blocked) {
    // A publication that could not be finished keeps its journal and its hidden directories.
    ROPEWALK_ASSIGN_OR_RETURN(const auto rest, file_info(target.journal()));
    if (!rest) ROPEWALK_RETURN_IF_ERROR(recover_without_journal(target, report));
  }
  ROPEWALK_RETURN_IF_ERROR(report_debris(target, options, report));
  inspect_pair(target, report);
  return report;
}

Result<std::vector<RecoveryReport>> recover(const fs::path& directory,
                                            const RecoverOptions& options) {
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<PairTarget> targets, find_targets(directory));
  std::vector<RecoveryReport> reports;
  for (const PairTarget& target : targets) {
    ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, lock_pair(target, FileLock::Mode::exclusive));
    ROPEWALK_ASSIGN_OR_RETURN(RecoveryReport report, recover_locked(target, options));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace ropewalk
