#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/stage/publish/names_internal.h"
#include "ropewalk/stage/publish/switch_internal.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kMaxRecordBytes = 16 << 20;

// Note [Identity]: a directory is known by its inode number, and by those of its halves where they
// are still there. The device number takes part only within one boot, since it may change at the
// next; all three names lie in one directory, so they cannot be on different devices.
bool is_same(const PairIds& found, const PairIds& recorded, bool same_boot) {
  const auto equal = [&](const FileId& a, const FileId& b) {
    return a.inode == b.inode && (!same_boot || a.device == b.device);
  };
  const auto half_equal = [&](const FileId& a, const FileId& b) {
    return a.inode == 0 || equal(a, b);  // deletion may have begun
  };
  return equal(found.directory, recorded.directory) &&
         half_equal(found.accepted, recorded.accepted) &&
         half_equal(found.rejected, recorded.rejected);
}

Result<Occupant> occupant(const std::filesystem::path& path, const Journal& journal) {
  const bool same_boot = journal.owner.boot_id == this_process().boot_id;
  ROPEWALK_ASSIGN_OR_RETURN(const auto ids, pair_ids(path));
  if (!ids) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(path));
    return info ? Occupant::other : Occupant::absent;
  }
  if (is_same(*ids, journal.after, same_boot)) return Occupant::after;
  if (journal.before && is_same(*ids, *journal.before, same_boot)) return Occupant::before;
  return Occupant::other;
}

bool is_own_entry(std::string_view name) {
  return std::ranges::find(kHalves, name) != kHalves.end() || name == kVerificationName ||
         name == kVerificationTemporaryName || name == kReceiptName || name == kOwnerName;
}

// Moves one entry without replacing anything; a taken name gets a number.
Status move_entry(const std::filesystem::path& from, const std::filesystem::path& into,
                  std::string& moved_to) {
  const std::string name = from.filename().string();
  for (int attempt = 0; attempt < 1000; ++attempt) {
    moved_to = attempt == 0 ? name : fmt::format("{}.carried-{}", name, attempt);
    const std::filesystem::path to = into / moved_to;
    ROPEWALK_ASSIGN_OR_RETURN(const auto taken, file_info(to));
    if (taken) continue;
    Status moved = rename_no_replace(from, to);
    // Without the flag the check above is what there is; the pair lock keeps our own processes out.
    if (moved.code() == StatusCode::unimplemented) moved = rename_path(from, to);
    if (moved.code() != StatusCode::already_exists) return moved;
  }
  return already_exists(fmt::format("{}: no free name for {}", into.string(), name));
}

std::string read_record(const std::filesystem::path& path) {
  return read_text_file(path, kMaxRecordBytes).value_or("");
}

Status finish_old(const PairTarget& target, const Journal& journal,
                  const std::filesystem::path& old, OldRecords& records, Findings& findings) {
  records.verification = read_record(old / kVerificationName);
  records.receipt = read_record(old / kReceiptName);
  ROPEWALK_RETURN_IF_ERROR(carry_over(target, old, findings));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.delete_old"));
  ROPEWALK_ASSIGN_OR_RETURN(const auto now, occupant(old, journal));
  if (now != Occupant::before) {
    return failed_precondition(old.string() + ": is not the old pair any more");
  }
  ROPEWALK_RETURN_IF_ERROR(remove_tree(old));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
  return fault_point("publish.old_deleted");
}

Status finish(const PairTarget& target, const Journal& journal, OldRecords& records,
              Findings& findings) {
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.published_durable"));
  const std::filesystem::path hidden = journal.mode == PublishMode::renames
                                           ? target.previous(journal.export_id)
                                           : target.stage(journal.export_id);
  ROPEWALK_ASSIGN_OR_RETURN(const auto found, occupant(hidden, journal));
  switch (found) {
    case Occupant::before:
      ROPEWALK_RETURN_IF_ERROR(finish_old(target, journal, hidden, records, findings));
      break;
    case Occupant::absent:
      break;
    case Occupant::after:
    case Occupant::other:
      return failed_precondition(
          fmt::format("{}: expected the old pair, found something else", hidden.string()));
  }
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.remove_journal"));
  ROPEWALK_RETURN_IF_ERROR(remove_journal(target));
  return fault_point("publish.done");
}

}  // namespace

Status carry_over(const PairTarget& target, const std::filesystem::path& from, Findings& findings) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(from));
  bool moved_any = false;
  for (const std::string& name : names) {
    if (is_own_entry(name)) continue;
    ROPEWALK_RETURN_IF_ERROR(fault_point("publish.carry_over"));
    std::string moved_to;
    ROPEWALK_RETURN_IF_ERROR(move_entry(from / name, target.directory(), moved_to));
    moved_any = true;
    findings.add({.code = "foreign_carried_over",
                  .severity = Severity::info,
                  .file = target.name + "/" + moved_to,
                  .found = name,
                  .decision = "moved beside the pair that is in place now"});
  }
  if (!moved_any) return ok_status();
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.directory()));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(from));
  return fault_point("publish.carried_over");
}

Result<Places> look_at_places(const PairTarget& target, const Journal& journal) {
  Places places;
  ROPEWALK_ASSIGN_OR_RETURN(places.target, occupant(target.directory(), journal));
  ROPEWALK_ASSIGN_OR_RETURN(places.stage, occupant(target.stage(journal.export_id), journal));
  ROPEWALK_ASSIGN_OR_RETURN(places.previous, occupant(target.previous(journal.export_id), journal));
  return places;
}

Status switch_pair(const PairTarget& target, const Journal& journal) {
  const std::filesystem::path stage = target.stage(journal.export_id);
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.switch"));
  switch (journal.mode) {
    case PublishMode::exchange:
      ROPEWALK_RETURN_IF_ERROR(exchange_paths(stage, target.directory()));
      break;
    case PublishMode::noreplace:
      ROPEWALK_RETURN_IF_ERROR(rename_no_replace(stage, target.directory()));
      break;
    case PublishMode::renames:
      if (journal.before) {
        ROPEWALK_RETURN_IF_ERROR(
            rename_path(target.directory(), target.previous(journal.export_id)));
        ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
        ROPEWALK_RETURN_IF_ERROR(fault_point("publish.old_renamed"));
      }
      ROPEWALK_RETURN_IF_ERROR(rename_path(stage, target.directory()));
      break;
  }
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
  return fault_point("publish.switched");
}

Status undo_switch(const PairTarget& target, const Journal& journal) {
  const std::filesystem::path stage = target.stage(journal.export_id);
  const std::filesystem::path previous = target.previous(journal.export_id);
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.undo"));
  ROPEWALK_ASSIGN_OR_RETURN(const Places now, look_at_places(target, journal));
  if (now.target == Occupant::after) {
    switch (journal.mode) {
      case PublishMode::exchange:
        ROPEWALK_RETURN_IF_ERROR(exchange_paths(stage, target.directory()));
        break;
      case PublishMode::noreplace:
        ROPEWALK_RETURN_IF_ERROR(rename_no_replace(target.directory(), stage));
        break;
      case PublishMode::renames:
        ROPEWALK_RETURN_IF_ERROR(rename_path(target.directory(), stage));
        ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
        break;
    }
  }
  if (journal.before && now.previous == Occupant::before) {
    ROPEWALK_RETURN_IF_ERROR(rename_path(previous, target.directory()));
  }
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.undone"));
  ROPEWALK_ASSIGN_OR_RETURN(const auto restored, occupant(target.directory(), journal));
  const Occupant expected = journal.before ? Occupant::before : Occupant::absent;
  if (restored == expected) return ok_status();
  return data_loss(target.directory().string() + ": is not what it was before the switch");
}

OldRecords finish_published(const PairTarget& target, const Journal& journal, Findings& findings) {
  OldRecords records;
  if (const Status finished = finish(target, journal, records, findings); !finished.ok()) {
    findings.add({.code = "publish_unfinished",
                  .severity = Severity::warning,
                  .file = target.name,
                  .found = finished.to_string(),
                  .decision =
                      "the new pair is published and verified; the next export or `ropewalk "
                      "recover` deletes what is left of the old one"});
  }
  return records;
}

Status remove_stage(const std::filesystem::path& stage) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(stage));
  if (!info) return ok_status();
  for (const std::string_view half : kHalves) ROPEWALK_RETURN_IF_ERROR(remove_tree(stage / half));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(stage));
  return remove_tree(stage);
}

Status discard_stage(const PairTarget& target, const std::string& export_id) {
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.remove_stage"));
  ROPEWALK_RETURN_IF_ERROR(remove_stage(target.stage(export_id)));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(target.parent));
  ROPEWALK_RETURN_IF_ERROR(fault_point("publish.stage_removed"));
  return remove_journal(target);
}

}  // namespace ropewalk
