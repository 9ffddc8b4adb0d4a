#pragma once
// The split: which episodes take part in an export, and into which half each goes.
// Pure functions over rows; nothing here knows where data is stored.
// Spec: review-export-upload 5.1, 5.2; trashed episodes are skipped (3.2).
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/base/core/result.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/stage/quality/verdict.h"

namespace ropewalk {

/// What the split looks at. `slot` and `slot_aliases` are keys made by split_row().
struct SplitRow {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  std::string verdict;  ///< effective
  std::string quality;
  bool trashed = false;
  std::string slot;                       ///< explicit slot id, or empty
  std::vector<std::string> slot_aliases;  ///< older keys, the most exact first; empty: no slot data
};

/// Gathers a row from what a source knows of an episode. A verdict in `info` counts, not in its
/// row.
SplitRow split_row(const EpisodeInfo& info);
std::vector<SplitRow> split_rows(const EpisodeSource& source);

enum class EpisodeSelection {
  all,
  latest_per_slot  ///< only the newest attempt of each capture slot, whatever its verdict
};
/// "all", "latest_per_slot".
std::string_view episode_selection_name(EpisodeSelection selection);
std::optional<EpisodeSelection> episode_selection_from_name(std::string_view name);

struct SplitOptions {
  EpisodeSelection selection = EpisodeSelection::all;
  /// Exactly these episode indices take part; the selection is then not applied.
  std::optional<std::vector<std::int64_t>> episodes;
};

struct SplitHalf {
  std::vector<std::int64_t> positions;  ///< places in the rows given, in subset order
  std::int64_t frames = 0;
  std::int64_t overrides = 0;  ///< episodes that are here against their quality
};

struct Split {
  SplitHalf accepted;
  SplitHalf rejected;
  /// One per row given; nullopt: takes no part (trashed, not asked for, an older attempt).
  std::vector<std::optional<Decision>> decisions;
  std::int64_t trashed = 0;
  std::int64_t not_selected = 0;
};

/// Splits `rows`. Subset order is the order of the rows; with latest_per_slot the order in which
/// each slot first appears. Errors: invalid_argument listing duplicated indices, or episodes asked
/// for that are not there or are trashed.
Result<Split> split_episodes(std::span<const SplitRow> rows, const SplitOptions& options = {});

/// Returns the positions of the rows that latest_per_slot keeps, in subset order.
std::vector<std::int64_t> latest_per_slot(std::span<const SplitRow> rows);

}  // namespace ropewalk
