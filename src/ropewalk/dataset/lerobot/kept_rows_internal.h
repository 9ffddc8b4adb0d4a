#pragma once
// KeptRows: the rows of episodes as JSON beside a v3.0 table. Typed columns of meta/episodes cannot
// hold everything a row of v2.1 says: a null inside an object, an object without members, whether a
// number was an integer. Our exports keep the rows as text in meta/episodes.jsonl, and reading them
// back restores a row exactly. The table stays the truth, since other writers change it alone: a
// text is believed member by member, where both say the same.
// Spec: lerobot-formats 1.2 (6), 8.2; review-export-upload 7.2.
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "ropewalk/dataset/lerobot/episodes_internal.h"

namespace ropewalk::lerobot {

/// Returns the row of the table with everything from `kept` that its columns could not hold.
/// Members of `kept` that the table contradicts, or has lost, are left out.
Json restore_row(Json table_row, const Json& kept);

/// Threads: const members may run concurrently. Memory: 80 bytes per row; texts stay in the file.
class KeptRows {
 public:
  /// A file that is absent or cannot be read gives no rows.
  static KeptRows read(const std::filesystem::path& root, const Limits& limits);
  /// Returns `table_row` restored by the text about the same episode, when there is one.
  Json restore(std::int64_t episode_index, Json table_row) const;

 private:
  std::optional<EpisodesV2> rows_;
  std::unordered_map<std::int64_t, std::size_t> places_;
  Limits limits_;
};

}  // namespace ropewalk::lerobot
