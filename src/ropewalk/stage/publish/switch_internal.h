#pragma once
// The steps of a publication that both the publisher and recovery take: switch, undo, finish.
// Each is decided by what the names mean now (inode numbers), so each may be repeated after a
// crash.
#include <string>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/stage/publish/journal.h"

namespace ropewalk {

/// What the three names of a publication mean now.
enum class Occupant { absent, before, after, other };
struct Places {
  Occupant target = Occupant::other;
  Occupant stage = Occupant::other;
  Occupant previous = Occupant::other;
};
Result<Places> look_at_places(const PairTarget& target, const Journal& journal);

/// Steps 4 and 5: the target becomes the stage. Errors: unimplemented where the mode is not known
/// to the file system, before anything was changed.
Status switch_pair(const PairTarget& target, const Journal& journal);
/// Step 10: the target becomes what it was, verified by inode.
Status undo_switch(const PairTarget& target, const Journal& journal);

/// What the old pair said about itself before it was deleted.
struct OldRecords {
  std::string verification;  ///< text of verify.json, empty when there was none
  std::string receipt;       ///< text of upload_receipt.json
};
/// Steps 7 and 8 of a journal in state `published`: carry foreign entries over, delete the old
/// pair, remove the journal. What fails is an entry of `findings`; the journal then stays for a
/// retry.
OldRecords finish_published(const PairTarget& target, const Journal& journal, Findings& findings);

/// Moves the foreign entries of `from` into the target, never over anything, and makes that
/// durable.
Status carry_over(const PairTarget& target, const std::filesystem::path& from, Findings& findings);

/// Deletes a stage, its owner file last: a crash in between leaves a stage that is known as such.
Status remove_stage(const std::filesystem::path& stage);
/// Deletes the stage and then the journal.
Status discard_stage(const PairTarget& target, const std::string& export_id);

}  // namespace ropewalk
