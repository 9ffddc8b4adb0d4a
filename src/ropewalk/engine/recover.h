#pragma once
// recover: finishes or undoes what a crash interrupted: the publication of a pair, and in a raw
// dataset the commit of an episode. Spec: review-export-upload 3.5, 6.4.
#include <filesystem>
#include <vector>

#include "ropewalk/stage/publish/publish.h"

namespace ropewalk {

/// What recovery found and did, over all pairs that `directory` means.
struct RecoverReport {
  std::vector<RecoveryReport> pairs;
  Findings dataset;  ///< of the raw dataset itself
  bool acted = false;
  bool blocked = false;  ///< a person has to decide; nothing was touched there
  Json to_json() const;
};

/// Errors: not_found when there is neither a pair nor a raw dataset; unavailable while another
/// process works there.
Result<RecoverReport> recover_path(const std::filesystem::path& directory,
                                   const RecoverOptions& options);

}  // namespace ropewalk
