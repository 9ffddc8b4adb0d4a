#pragma once
// Recovery: finishes or undoes a publication that a crash interrupted, and reports what lies
// around. It runs before each export and for `ropewalk recover DIR`. Spec:
// review-export-upload 6.4.
#include <filesystem>
#include <vector>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/stage/publish/target.h"

namespace ropewalk {

struct RecoverOptions {
  bool restore_backup = false;  ///< rename a single backup of the reference system back into place
};

/// Codes of findings: stage_removed, publish_rolled_back, publish_completed, previous_restored,
/// foreign_carried_over, publish_unfinished, new_pair_damaged, publish_undecided, stage_in_use,
/// pair_mixed, pair_unreadable, pair_incomplete, foreign_debris, backup_found, backup_restored,
/// unknown_left_over.
struct RecoveryReport {
  PairTarget target;
  Findings findings;
  /// A person has to decide: export and upload of this pair are refused until then.
  bool blocked = false;
  /// Whether anything was changed.
  bool acted = false;
};

/// Recovers one pair. The caller holds its lock exclusively.
Result<RecoveryReport> recover_locked(const PairTarget& target, const RecoverOptions& options = {});

/// Recovers every pair that `directory` means: a pair itself, the directory that holds the pairs of
/// several formats, or a dataset whose export directory follows from its name. Takes the locks.
/// Errors: not_found when there is nothing of that kind; unavailable (PAIR_LOCKED).
Result<std::vector<RecoveryReport>> recover(const std::filesystem::path& directory,
                                            const RecoverOptions& options = {});

}  // namespace ropewalk
