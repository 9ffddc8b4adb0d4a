#pragma once
// What lies beside and inside pairs: hidden names of this module, left-overs of the reference
// system, and from both the pairs that a directory means.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/stage/publish/recover.h"

namespace ropewalk {

enum class HiddenKind { stage, previous, journal, lock };
struct HiddenName {
  HiddenKind kind = HiddenKind::stage;
  std::string pair_name;
  std::string export_id;  ///< of stage and previous
};
/// Returns nullopt for a name that this module never gives.
std::optional<HiddenName> parse_hidden_name(std::string_view name);

/// Whether the reference system leaves such names behind when it dies.
bool is_reference_debris(std::string_view name);

/// Adds findings for the reference system's left-overs; restores a single backup when asked.
Status report_debris(const PairTarget& target, const RecoverOptions& options,
                     RecoveryReport& report);

/// Returns the pairs that `directory` means. Errors: not_found.
Result<std::vector<PairTarget>> find_targets(const std::filesystem::path& directory);

}  // namespace ropewalk
