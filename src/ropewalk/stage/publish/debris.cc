#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/stage/publish/debris_internal.h"
#include "ropewalk/stage/publish/names_internal.h"
#include "ropewalk/stage/publish/pair.h"

namespace ropewalk {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kUuidLength = 36;

bool is_uuid(std::string_view text) {
  if (text.size() != kUuidLength) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash != (text[i] == '-')) return false;
    if (!dash && std::string_view("0123456789abcdef").find(text[i]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

// "<prefix><pair>.<uuid>" with a pair name of at least one character.
std::optional<HiddenName> parse_with_id(std::string_view name, std::string_view prefix,
                                        HiddenKind kind) {
  if (!name.starts_with(prefix) || name.size() < prefix.size() + 2 + kUuidLength) {
    return std::nullopt;
  }
  const std::string_view id = name.substr(name.size() - kUuidLength);
  const std::string_view pair =
      name.substr(prefix.size(), name.size() - prefix.size() - kUuidLength - 1);
  if (!is_uuid(id) || name[name.size() - kUuidLength - 1] != '.') return std::nullopt;
  return HiddenName{kind, std::string(pair), std::string(id)};
}

std::optional<HiddenName> parse_between(std::string_view name, std::string_view prefix,
                                        std::string_view suffix, HiddenKind kind) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix)) {
    return std::nullopt;
  }
  return HiddenName{
      kind,
      std::string(name.substr(prefix.size(), name.size() - prefix.size() - suffix.size())),
      {}};
}

Result<std::vector<std::string>> list_if_there(const fs::path& path) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(path));
  if (!info || !info->is_directory) return std::vector<std::string>();
  return list_directory(path);
}

// The directory inside a backup root of the reference system, or nullopt. It moved the whole half
// below the root, under its own name.
Result<std::optional<fs::path>> backup_of(const fs::path& root, std::string_view half) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto inner, file_info(root / half / "meta"));
  if (!inner || !inner->is_directory) return std::optional<fs::path>();
  return std::optional<fs::path>(root / half);
}

Status restore(const PairTarget& target, std::string_view half, const fs::path& backup,
               RecoveryReport& report) {
  ROPEWALK_RETURN_IF_ERROR(fault_point("recover.restore_backup"));
  const fs::path to = target.directory() / half;
  Status renamed = rename_no_replace(backup, to);
  if (renamed.code() == StatusCode::unimplemented) renamed = rename_path(backup, to);
  ROPEWALK_RETURN_IF_ERROR(renamed);
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.directory()));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(backup.parent_path()));
  ROPEWALK_ASSIGN_OR_RETURN(const auto rest, list_directory(backup.parent_path()));
  if (rest.empty()) {
    ROPEWALK_RETURN_IF_ERROR(remove_tree(backup.parent_path()));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(target.directory()));
  }
  report.acted = true;
  report.findings.add({.code = "backup_restored",
                       .severity = Severity::info,
                       .file = fmt::format("{}/{}", target.name, half),
                       .found = backup.parent_path().filename().string(),
                       .decision = "renamed back into place"});
  return ok_status();
}

// Offers or restores the only backup of a half that is missing.
Status handle_backups(const PairTarget& target, std::string_view half,
                      const std::vector<std::string>& names, const RecoverOptions& options,
                      RecoveryReport& report) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto present, file_info(target.directory() / half));
  if (present) return ok_status();
  std::vector<fs::path> backups;
  for (const std::string& name : names) {
    if (!name.starts_with(fmt::format(".{}.previous.", half))) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const auto backup, backup_of(target.directory() / name, half));
    if (backup) backups.push_back(*backup);
  }
  if (backups.empty()) return ok_status();
  if (backups.size() == 1 && options.restore_backup) {
    return restore(target, half, backups.front(), report);
  }
  report.findings.add(
      {.code = "backup_found",
       .severity = Severity::warning,
       .file = fmt::format("{}/{}", target.name, half),
       .count = static_cast<std::int64_t>(backups.size()),
       .found = backups.front().parent_path().filename().string(),
       .decision =
           backups.size() == 1
               ? "this half is missing and has one backup; ask recover to restore it"
               : "this half is missing and has several backups; move the right one by hand"});
  return ok_status();
}

void add_debris(const std::string& directory, const std::vector<std::string>& names,
                RecoveryReport& report) {
  for (const std::string& name : names) {
    if (!is_reference_debris(name) || parse_hidden_name(name)) continue;
    report.findings.add({.code = "foreign_debris",
                         .severity = Severity::warning,
                         .file = directory.empty() ? name : directory + "/" + name,
                         .found = "left over by the reference system",
                         .decision = "left as it is; delete it by hand when it is not needed"});
  }
}

// Whether `directory` is the place of a pair: a half, or what is left of one, lies in it.
Result<bool> is_place_of_pair(const fs::path& directory) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_if_there(directory));
  return std::ranges::any_of(names, [](const std::string& name) {
    return std::ranges::any_of(kHalves, [&](std::string_view half) {
      return name == half || name.starts_with(fmt::format(".{}.", half));
    });
  });
}

// Names of the pairs that lie in `parent`, published or interrupted.
Result<std::set<std::string>> pairs_in(const fs::path& parent) {
  std::set<std::string> found;
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_if_there(parent));
  for (const std::string& name : names) {
    if (const auto hidden = parse_hidden_name(name)) {
      found.insert(hidden->pair_name);
      continue;
    }
    if (name.starts_with(".")) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const bool is_pair, is_place_of_pair(parent / name));
    // A pair kept as damaged is nobody's target.
    if (is_pair && name.find(".damaged.") == std::string::npos) found.insert(name);
  }
  return found;
}

}  // namespace

std::optional<HiddenName> parse_hidden_name(std::string_view name) {
  if (auto stage = parse_with_id(name, ".stage.", HiddenKind::stage)) return stage;
  if (auto previous = parse_with_id(name, ".previous.", HiddenKind::previous)) return previous;
  for (const std::string_view suffix : {".json", ".json.tmp"}) {
    if (auto journal = parse_between(name, ".publish.", suffix, HiddenKind::journal)) {
      return journal;
    }
  }
  return parse_between(name, ".", ".lock", HiddenKind::lock);
}

bool is_reference_debris(std::string_view name) {
  return name.starts_with(".accepted.") || name.starts_with(".rejected.") ||
         name.starts_with(".conversion.");
}

Status report_debris(const PairTarget& target, const RecoverOptions& options,
                     RecoveryReport& report) {
  ROPEWALK_ASSIGN_OR_RETURN(auto names, list_if_there(target.directory()));
  for (const std::string_view half : kHalves) {
    ROPEWALK_RETURN_IF_ERROR(handle_backups(target, half, names, options, report));
  }
  ROPEWALK_ASSIGN_OR_RETURN(names, list_if_there(target.directory()));
  add_debris(target.name, names, report);
  ROPEWALK_ASSIGN_OR_RETURN(names, list_if_there(target.parent));
  add_debris("", names, report);
  return ok_status();
}

Result<std::vector<PairTarget>> find_targets(const fs::path& directory) {
  ROPEWALK_ASSIGN_OR_RETURN(const PairTarget itself, target_at(directory));
  ROPEWALK_ASSIGN_OR_RETURN(const bool is_pair, is_place_of_pair(itself.directory()));
  ROPEWALK_ASSIGN_OR_RETURN(const auto beside, list_if_there(itself.parent));
  const bool is_named = std::ranges::any_of(beside, [&](const std::string& name) {
    const auto hidden = parse_hidden_name(name);
    return hidden && hidden->pair_name == itself.name;
  });
  if (is_pair || is_named) return std::vector<PairTarget>{itself};

  fs::path parent = itself.directory();
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(parent / "meta"));
  if (info && info->is_directory) {
    ROPEWALK_ASSIGN_OR_RETURN(const PairTarget derived, derive_target(parent, "any"));
    parent = derived.parent;
  }
  std::vector<PairTarget> targets;
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, pairs_in(parent));
  for (const std::string& name : names) targets.push_back({parent, name});
  if (!targets.empty()) return targets;
  return not_found(fmt::format(
      "{}: no published or interrupted export here; expected a pair (accepted, rejected), a "
      "directory of pairs, or a dataset with an export",
      parent.string()));
}

}  // namespace ropewalk
