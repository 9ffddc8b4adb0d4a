#pragma once
// Recovery of a raw dataset: what the interrupted commit of an episode left is put in order. Rows
// of meta/episodes.jsonl are the truth; files without a row are moved aside, never deleted. A
// writer does this when it opens the dataset, and so does `ropewalk recover`. Spec:
// review-export-upload 3.5.
#include <filesystem>
#include <string>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/dataset/lerobot/ledger.h"

namespace ropewalk {

/// Where files without a row go: `.orphans` beside the root, since other readers count what lies
/// below it. Files keep the paths they had below the root.
std::filesystem::path raw_orphans(const std::filesystem::path& root);
/// Where files are staged unless a writer was told otherwise: `.staging` beside the root.
std::filesystem::path raw_staging(const std::filesystem::path& root);

/// Cuts torn last lines of the rows and statistics, moves files whose number has no row and what is
/// left in `staging` to raw_orphans(), brings the ledger up to date (a row without a `saved` line
/// gets one) and rebuilds info.json and stats.json where they disagree with the rows. The caller
/// holds the recorder lock. Returns one finding per action; codes: row_line_cut, row_line_ended,
/// orphan_moved, staging_moved, staging_shared, orphans_undecided, info_rebuilt,
/// statistics_rebuilt, and those of the ledger. Errors: those of Ledger::open_for_write and of the
/// file system; unavailable with reason DATASET_LOCKED.
Result<Findings> recover_raw_locked(const std::filesystem::path& root,
                                    const std::filesystem::path& staging, const LedgerActor& actor);
/// The same under the recorder lock.
Result<Findings> recover_raw(const std::filesystem::path& root, const LedgerActor& actor);

}  // namespace ropewalk
