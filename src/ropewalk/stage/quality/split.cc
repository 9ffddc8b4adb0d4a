#include "ropewalk/stage/quality/split.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ropewalk {
namespace {

// The text of a value that names a slot: strings as they are, integers in decimal.
std::string slot_part(const Json& row, std::string_view key) {
  const Json* value = row.find(key);
  if (value == nullptr || value->is_null()) return {};
  if (const std::string* text = value->as_string()) return *text;
  return value->dump();
}

std::string first_part(const Json& row, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (std::string part = slot_part(row, key); !part.empty()) return part;
  }
  return {};
}

// Maps each row to the key of its slot. An older key stands for an explicit slot only when rows
// with that older key name exactly one.
std::vector<std::string> slot_keys(std::span<const SplitRow> rows) {
  std::unordered_map<std::string, std::unordered_set<std::string>> explicit_slots;
  for (const SplitRow& row : rows) {
    if (row.slot.empty()) continue;
    for (const std::string& alias : row.slot_aliases) explicit_slots[alias].insert(row.slot);
  }
  std::vector<std::string> keys;
  keys.reserve(rows.size());
  for (const SplitRow& row : rows) {
    std::string key;
    if (!row.slot.empty()) {
      key = "slot " + row.slot;
    } else if (!row.slot_aliases.empty()) {
      key = row.slot_aliases.front();
      for (const std::string& alias : row.slot_aliases) {
        const auto found = explicit_slots.find(alias);
        if (found != explicit_slots.end() && found->second.size() == 1) {
          key = "slot " + *found->second.begin();
          break;
        }
      }
    }
    keys.push_back(std::move(key));
  }
  return keys;
}

Result<std::vector<std::int64_t>> asked_for(std::span<const SplitRow> rows,
                                            const std::vector<std::int64_t>& episodes) {
  const std::unordered_set<std::int64_t> wanted(episodes.begin(), episodes.end());
  std::unordered_set<std::int64_t> missing = wanted;
  std::vector<std::int64_t> trashed;
  std::vector<std::int64_t> positions;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!wanted.contains(rows[i].episode_index)) continue;
    missing.erase(rows[i].episode_index);
    if (rows[i].trashed) trashed.push_back(rows[i].episode_index);
    positions.push_back(static_cast<std::int64_t>(i));
  }
  if (!missing.empty()) {
    std::vector<std::int64_t> names(missing.begin(), missing.end());
    std::ranges::sort(names);
    return invalid_argument(fmt::format("episodes {} are not in the dataset, which has {} episodes",
                                        names, rows.size()));
  }
  if (!trashed.empty()) {
    return invalid_argument(
        fmt::format("episodes {} are trashed; restore them or leave them out", trashed));
  }
  return positions;
}

Status check_unique(std::span<const SplitRow> rows) {
  std::unordered_set<std::int64_t> seen;
  std::vector<std::int64_t> twice;
  for (const SplitRow& row : rows) {
    if (!seen.insert(row.episode_index).second) twice.push_back(row.episode_index);
  }
  if (twice.empty()) return ok_status();
  return invalid_argument(
             fmt::format("meta/episodes.jsonl: episode_index {} more than once", twice))
      .with_reason("DUPLICATE_EPISODE");
}

}  // namespace

SplitRow split_row(const EpisodeInfo& info) {
  SplitRow out{.episode_index = info.index,
               .length = info.length,
               .verdict = info.verdict,
               .quality = info.quality,
               .trashed = false,
               .slot = slot_part(info.row, "slot_id"),
               .slot_aliases = {}};
  const Json* trashed_at = info.row.find("trashed_at");
  out.trashed = trashed_at != nullptr && !trashed_at->is_null();
  const std::string task = slot_part(info.row, "task_id");
  const std::string scene = slot_part(info.row, "scene_id");
  const std::string round = slot_part(info.row, "scene_round");
  if (!task.empty() && !scene.empty() && !round.empty()) {
    out.slot_aliases.push_back(fmt::format("task {}:{}:{}", task, scene, round));
  }
  std::string prompt = first_part(info.row, {"prompt", "task"});
  if (prompt.empty() && !info.tasks.empty()) prompt = info.tasks.front();
  const std::string any_scene = first_part(info.row, {"scene_id", "scene"});
  const std::string any_round = first_part(info.row, {"scene_round", "round"});
  // A prompt alone is no slot: every row has one.
  if (!prompt.empty() && !any_scene.empty() && !any_round.empty()) {
    out.slot_aliases.push_back(fmt::format("prompt {}:{}:{}", prompt, any_scene, any_round));
  }
  return out;
}

std::vector<SplitRow> split_rows(const EpisodeSource& source) {
  std::vector<SplitRow> rows;
  rows.reserve(static_cast<std::size_t>(source.size()));
  for (std::int64_t i = 0; i < source.size(); ++i) rows.push_back(split_row(source.info(i)));
  return rows;
}

std::string_view episode_selection_name(EpisodeSelection selection) {
  switch (selection) {
    case EpisodeSelection::all:
      return "all";
    case EpisodeSelection::latest_per_slot:
      return "latest_per_slot";
  }
  return "";
}

std::optional<EpisodeSelection> episode_selection_from_name(std::string_view name) {
  for (const auto selection : {EpisodeSelection::all, EpisodeSelection::latest_per_slot}) {
    if (episode_selection_name(selection) == name) return selection;
  }
  return std::nullopt;
}

std::vector<std::int64_t> latest_per_slot(std::span<const SplitRow> rows) {
  const std::vector<std::string> keys = slot_keys(rows);
  std::unordered_map<std::string, std::size_t> place_of_slot;
  std::vector<std::int64_t> kept;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].trashed) continue;
    const auto position = static_cast<std::int64_t>(i);
    if (keys[i].empty()) {
      kept.push_back(position);
      continue;
    }
    const auto [it, added] = place_of_slot.try_emplace(keys[i], kept.size());
    if (added) {
      kept.push_back(position);
    } else if (rows[i].episode_index >
               rows[static_cast<std::size_t>(kept[it->second])].episode_index) {
      kept[it->second] = position;
    }
  }
  return kept;
}

Result<Split> split_episodes(std::span<const SplitRow> rows, const SplitOptions& options) {
  ROPEWALK_RETURN_IF_ERROR(check_unique(rows));
  Split split;
  split.decisions.resize(rows.size());
  std::vector<std::int64_t> positions;
  if (options.episodes) {
    ROPEWALK_ASSIGN_OR_RETURN(positions, asked_for(rows, *options.episodes));
  } else if (options.selection == EpisodeSelection::latest_per_slot) {
    positions = latest_per_slot(rows);
  } else {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].trashed) positions.push_back(static_cast<std::int64_t>(i));
    }
  }
  for (const std::int64_t position : positions) {
    const SplitRow& row = rows[static_cast<std::size_t>(position)];
    const Decision decision = decide(row.verdict, row.quality);
    split.decisions[static_cast<std::size_t>(position)] = decision;
    SplitHalf& half = decision.outcome == Outcome::accepted ? split.accepted : split.rejected;
    half.positions.push_back(position);
    half.frames += row.length;
    half.overrides += decision.overrides_quality ? 1 : 0;
  }
  split.trashed = std::ranges::count_if(rows, &SplitRow::trashed);
  split.not_selected = static_cast<std::int64_t>(rows.size()) -
                       static_cast<std::int64_t>(positions.size()) - split.trashed;
  return split;
}

}  // namespace ropewalk
