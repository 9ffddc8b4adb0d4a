#pragma once
// publish: two directories, accepted and rejected, written as one. Front door of the module.
//
// A pair is built in a hidden stage beside its target, proven there, and switched into place by one
// exchange of directories under a journal: a crash at any moment leaves, after recovery, the whole
// old pair or the whole new one.
//
//   ROPEWALK_ASSIGN_OR_RETURN(auto target, derive_target("demo/raw", "lerobot_v3"));
//   ROPEWALK_ASSIGN_OR_RETURN(auto publisher, PairPublisher::begin(target, {}));
//   … write files into publisher.accepted(), publisher.rejected() through the manifest builders …
//   ROPEWALK_ASSIGN_OR_RETURN(auto report, publisher.publish(proof, recheck, context));
//
// Limits: target and stage lie on one local file system. Object stores have no exchange; a pair
// goes there by upload. Reading a pair: pair.h. After a crash: recover.h. Spec:
// review-export-upload 6.
#include <functional>
#include <memory>
#include <string>

#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/stage/publish/journal.h"
#include "ropewalk/stage/publish/manifest.h"
#include "ropewalk/stage/publish/pair.h"
#include "ropewalk/stage/publish/recover.h"
#include "ropewalk/stage/publish/target.h"

namespace ropewalk {

struct PublishOptions {
  bool replace_existing = true;
  /// Forces a mode, for tests and for file systems that claim more than they do. Without it the
  /// best one that works is taken. `exchange` needs an existing target, `noreplace` an absent one.
  std::optional<PublishMode> mode;
  std::int64_t source_revision = 0;  ///< noted in the journal
};

struct PublishReport {
  std::string export_id;
  PublishMode mode = PublishMode::exchange;
  std::filesystem::path accepted;
  std::filesystem::path rejected;
  bool replaced = false;       ///< whether a directory was there before
  std::int64_t switch_ns = 0;  ///< from the first rename to the fsync after the last
  std::uint64_t total_bytes = 0;
  std::int64_t total_files = 0;  ///< without the two manifests
  std::string old_verification;  ///< verify.json of the pair that was replaced
  std::string old_receipt;       ///< upload_receipt.json of the pair that was replaced
  Findings findings;             ///< what was carried over, and what is left for a retry
};

/// Proves the two staged halves. Anything but OK ends the publication with nothing changed.
using PairProof = std::function<Status(const std::filesystem::path& accepted,
                                       const std::filesystem::path& rejected)>;
/// Asks whether the source is still what was exported. Runs right before the switch.
using SourceRecheck = std::function<Status()>;

/// One publication. Destroyed without publish(), it deletes its stage. Not thread-safe, except that
/// the two manifest builders may be used by one thread each.
class PairPublisher {
 public:
  /// Takes the pair lock, recovers what an earlier process left, checks the target, makes the
  /// stage. Errors: unavailable (PAIR_LOCKED); already_exists; failed_precondition for a target
  /// that is no pair or that needs a person's decision (RECOVERY_NEEDED); permission_denied.
  static Result<PairPublisher> begin(const PairTarget& target, const PublishOptions& options = {});
  PairPublisher(PairPublisher&&) noexcept;
  PairPublisher& operator=(PairPublisher&&) = delete;
  ~PairPublisher();

  const std::string& export_id() const;
  const PairTarget& target() const;
  /// The staged halves. Every file in them must be recorded in the builder of its half.
  const std::filesystem::path& accepted() const;
  const std::filesystem::path& rejected() const;
  ManifestBuilder& accepted_manifest();
  ManifestBuilder& rejected_manifest();
  /// What recovery did before this publication began.
  const RecoveryReport& recovery() const;

  /// Steps 1 to 8. Writes the manifests; the markers are the caller's.
  /// A stop is honoured until the switch; after it the publication is finished.
  /// Errors: whatever failed, with the old pair untouched or put back and the stage deleted; the
  /// reason UNDO_FAILED when even that failed, with both paths named and nothing deleted.
  Result<PublishReport> publish(const PairProof& proof, const SourceRecheck& recheck,
                                const RunContext& context);
  /// Deletes the stage now, and tells whether that worked.
  Status abandon();

 private:
  struct State;
  explicit PairPublisher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk
