#include "ropewalk/stage/publish/publish.h"

#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/stage/publish/names_internal.h"
#include "ropewalk/stage/publish/switch_internal.h"

namespace ropewalk {
namespace {

namespace fs = std::filesystem;

Status check_target(const PairTarget& target, const PublishOptions& options) {
  const std::string path = target.directory().string();
  ROPEWALK_ASSIGN_OR_RETURN(const PairPresence presence, look_at(target.directory()));
  switch (presence) {
    case PairPresence::absent:
      if (options.mode == PublishMode::exchange) {
        return failed_precondition(path + ": mode exchange needs an existing target");
      }
      return ok_status();
    case PairPresence::pair:
      if (!options.replace_existing) {
        return already_exists(path +
                              ": a pair is published here already; let it be replaced, or "
                              "choose another output");
      }
      [[fallthrough]];
    case PairPresence::empty: {
      if (options.mode == PublishMode::noreplace) {
        return failed_precondition(path + ": mode noreplace needs a target that does not exist");
      }
      ROPEWALK_ASSIGN_OR_RETURN(const auto own, file_info(target.directory()));
      ROPEWALK_ASSIGN_OR_RETURN(const auto parent, file_info(target.parent));
      if (own && parent && own->id.device != parent->id.device) {
        return failed_precondition(path +
                                   ": is a mount point, which cannot be exchanged; choose a "
                                   "directory inside of it");
      }
      return ok_status();
    }
    case PairPresence::incomplete:
      return failed_precondition(
          path +
          ": holds only a part of a pair; run `ropewalk recover` on it, then "
          "move away or delete what is left");
    case PairPresence::other:
      return failed_precondition(
          path +
          ": exists, is not empty and holds no pair of accepted and rejected; "
          "nothing in it is touched, choose another output");
  }
  return ok_status();
}

std::string blocked_message(const RecoveryReport& report) {
  std::string message = report.target.directory().string() +
                        ": an earlier publication needs a decision; see `ropewalk recover`";
  for (const Finding& finding : report.findings.entries()) {
    if (finding.severity == Severity::error) message += "\n  " + to_line(finding);
  }
  return message;
}

}  // namespace

struct PairPublisher::State {
  State(PairTarget pair_target, PublishOptions publish_options, FileLock pair_lock,
        RecoveryReport recovered)
      : target(std::move(pair_target)),
        options(publish_options),
        lock(std::move(pair_lock)),
        recovery(std::move(recovered)),
        export_id(random_uuid()),
        stage(target.stage(export_id)),
        accepted(stage / "accepted", export_id),
        rejected(stage / "rejected", export_id) {}

  PairTarget target;
  PublishOptions options;
  FileLock lock;
  RecoveryReport recovery;
  std::string export_id;
  fs::path stage;
  ManifestBuilder accepted;
  ManifestBuilder rejected;
  bool has_stage = false;  // whether this object may and must delete the stage
  bool used = false;       // whether publish() was called
  Journal journal;

  Status make_stage();
  Status prepare(const PairProof& proof, const RunContext& context);
  Status write_staged();
  Status switch_and_verify(PublishReport& report);
  Status switch_in_any_mode(std::int64_t& switch_ns);
  Status fail_before_switch(Status error);
  Status fail_after_switch(const Status& error);
};

Status PairPublisher::State::make_stage() {
  has_stage = true;
  ROPEWALK_RETURN_IF_ERROR(make_directories(accepted.root()));
  ROPEWALK_RETURN_IF_ERROR(make_directories(rejected.root()));
  ROPEWALK_RETURN_IF_ERROR(
      write_new_file(stage / kOwnerName, as_bytes(to_json(this_process()).dump(2) + "\n")));
  return fault_point("publish.stage_created");
}

// Steps 1 and 2.
Status PairPublisher::State::prepare(const PairProof& proof, const RunContext& context) {
  context.report({.phase = "verifying", .unit = "steps"});
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  ROPEWALK_RETURN_IF_ERROR(accepted.finish());
  ROPEWALK_RETURN_IF_ERROR(rejected.finish());
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.manifests_written"));
  ROPEWALK_RETURN_IF_ERROR(sync_tree_directories(stage));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.stage_synced"));
  ROPEWALK_RETURN_IF_ERROR(verify_pair(stage, export_id).with_context("proof of the stage"));
  if (proof) {
    ROPEWALK_RETURN_IF_ERROR(
        proof(accepted.root(), rejected.root()).with_context("proof of the stage"));
  }
  return fault_point("publish.stage_proven");
}

// Step 3.
Status PairPublisher::State::write_staged() {
  ROPEWALK_ASSIGN_OR_RETURN(journal.before, pair_ids(target.directory()));
  ROPEWALK_ASSIGN_OR_RETURN(const auto after, pair_ids(stage));
  if (!after) return internal(stage.string() + ": the stage is gone");
  journal.after = *after;
  journal.export_id = export_id;
  journal.source_revision = options.source_revision;
  journal.owner = this_process();
  journal.mode =
      options.mode.value_or(journal.before ? PublishMode::exchange : PublishMode::noreplace);
  // The lock keeps our own processes out; other programs may have come since begin().
  ROPEWALK_RETURN_IF_ERROR(check_target(target, options));
  ROPEWALK_RETURN_IF_ERROR(write_journal(target, journal));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.staged_durable"));
  ROPEWALK_RETURN_IF_ERROR(remove_file(stage / kOwnerName));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(stage));
  return fault_point("publish.owner_removed");
}

Status PairPublisher::State::switch_in_any_mode(std::int64_t& switch_ns) {
  const auto timed_switch = [&] {
    const auto begin = std::chrono::steady_clock::now();
    Status switched = switch_pair(target, journal);
    switch_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin).count();
    return switched;
  };
  ROPEWALK_RETURN_IF_ERROR(write_journal(target, journal));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.switching_durable"));
  Status switched = timed_switch();
  if (switched.code() != StatusCode::unimplemented || options.mode) return switched;
  journal.mode = PublishMode::renames;
  ROPEWALK_RETURN_IF_ERROR(write_journal(target, journal));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.renames_durable"));
  return timed_switch();
}

// Steps 4 to 6.
Status PairPublisher::State::switch_and_verify(PublishReport& report) {
  journal.state = PublishState::switching;
  ROPEWALK_RETURN_IF_ERROR(switch_in_any_mode(report.switch_ns));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.verify"));
  ROPEWALK_RETURN_IF_ERROR(
      verify_pair(target.directory(), export_id).with_context("proof in place"));
  journal.state = PublishState::published;
  return write_journal(target, journal);
}

Status PairPublisher::State::fail_before_switch(Status error) {
  const Status discarded = discard_stage(target, export_id);
  has_stage = false;
  if (discarded.ok()) return error;
  return Status(error.code(), fmt::format("{} (the stage {} could not be deleted: {}; the next "
                                          "export or `ropewalk recover` does it)",
                                          error.message(), stage.string(), discarded.message()))
      .with_reason(error.reason());
}

// Step 10. The journal says `switching` again before anything moves back, since `published` with
// the old pair in place would leave recovery nothing to go by.
Status PairPublisher::State::fail_after_switch(const Status& error) {
  Status undone;
  if (journal.state == PublishState::published) {
    journal.state = PublishState::switching;
    undone = write_journal(target, journal);
  }
  if (undone.ok()) undone = undo_switch(target, journal);
  if (undone.ok()) return fail_before_switch(error);
  has_stage = false;  // one of the two paths holds the old pair
  const fs::path other =
      journal.before && journal.mode == PublishMode::renames ? target.previous(export_id) : stage;
  return Status(
             error.code(),
             fmt::format("{}; undoing the switch failed too: {}. Nothing was deleted: see {} and "
                         "{}; run `ropewalk recover {}` when the cause is gone",
                         error.message(), undone.message(), target.directory().string(),
                         other.string(), target.directory().string()))
      .with_reason("UNDO_FAILED");
}

Result<PairPublisher> PairPublisher::begin(const PairTarget& target,
                                           const PublishOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(make_durable_directories(target.parent));
  ROPEWALK_ASSIGN_OR_RETURN(FileLock lock, lock_pair(target, FileLock::Mode::exclusive));
  ROPEWALK_ASSIGN_OR_RETURN(RecoveryReport recovery, recover_locked(target));
  if (recovery.blocked) {
    return failed_precondition(blocked_message(recovery)).with_reason("RECOVERY_NEEDED");
  }
  ROPEWALK_RETURN_IF_ERROR(check_target(target, options));
  PairPublisher publisher(
      std::make_unique<State>(target, options, std::move(lock), std::move(recovery)));
  ROPEWALK_RETURN_IF_ERROR(publisher.state_->make_stage());
  return publisher;
}

Result<PublishReport> PairPublisher::publish(const PairProof& proof, const SourceRecheck& recheck,
                                             const RunContext& context) {
  State& s = *state_;
  if (s.used) return failed_precondition("a publication runs only once; begin another one");
  s.used = true;
  Status prepared = s.prepare(proof, context);
  if (prepared.ok()) context.report({.phase = "publishing", .unit = "steps"});
  if (prepared.ok()) prepared = s.write_staged();
  if (prepared.ok() && recheck) prepared = recheck();
  if (prepared.ok()) prepared = context.check_stop();
  if (!prepared.ok()) return s.fail_before_switch(prepared);

  PublishReport report;
  if (Status switched = s.switch_and_verify(report); !switched.ok()) {
    return s.fail_after_switch(switched);
  }
  s.has_stage = false;
  report.export_id = s.export_id;
  report.mode = s.journal.mode;
  report.accepted = s.target.accepted();
  report.rejected = s.target.rejected();
  report.replaced = s.journal.before.has_value();
  for (const ManifestBuilder* builder : {&s.accepted, &s.rejected}) {
    report.total_bytes += builder->manifest().total_bytes();
    report.total_files += static_cast<std::int64_t>(builder->manifest().files.size());
  }
  OldRecords old = finish_published(s.target, s.journal, report.findings);
  report.old_verification = std::move(old.verification);
  report.old_receipt = std::move(old.receipt);
  return report;
}

Status PairPublisher::abandon() {
  if (!state_ || !state_->has_stage) return ok_status();
  state_->has_stage = false;
  state_->used = true;
  return discard_stage(state_->target, state_->export_id);
}

PairPublisher::PairPublisher(std::unique_ptr<State> state) : state_(std::move(state)) {}
PairPublisher::PairPublisher(PairPublisher&&) noexcept = default;
PairPublisher::~PairPublisher() {
  if (state_) std::ignore = abandon();
}

const std::string& PairPublisher::export_id() const { return state_->export_id; }
const PairTarget& PairPublisher::target() const { return state_->target; }
const fs::path& PairPublisher::accepted() const { return state_->accepted.root(); }
const fs::path& PairPublisher::rejected() const { return state_->rejected.root(); }
ManifestBuilder& PairPublisher::accepted_manifest() { return state_->accepted; }
ManifestBuilder& PairPublisher::rejected_manifest() { return state_->rejected; }
const RecoveryReport& PairPublisher::recovery() const { return state_->recovery; }

}  // namespace ropewalk
