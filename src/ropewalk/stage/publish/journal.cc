#include "ropewalk/stage/publish/journal.h"

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/stage/publish/names_internal.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kMaxJournalBytes = 1 << 20;

std::filesystem::path temporary_of(const PairTarget& target) {
  return target.journal().string() + ".tmp";
}

Json to_json(const FileId& id) {
  Json json;
  json.set("device", id.device);
  json.set("inode", id.inode);
  return json;
}

Json to_json(const PairIds& ids) {
  Json json;
  json.set("directory", to_json(ids.directory));
  json.set("accepted", to_json(ids.accepted));
  json.set("rejected", to_json(ids.rejected));
  return json;
}

// Inode numbers use all 64 bits, so they may not fit into int64.
std::optional<std::uint64_t> as_uint64(const Json* json) {
  return json == nullptr ? std::nullopt : json->as_uint64();
}

std::optional<FileId> file_id_from(const Json* json) {
  if (json == nullptr) return std::nullopt;
  const auto device = as_uint64(json->find("device"));
  const auto inode = as_uint64(json->find("inode"));
  if (!device || !inode) return std::nullopt;
  return FileId{*device, *inode};
}

std::optional<PairIds> pair_ids_from(const Json* json) {
  if (json == nullptr) return std::nullopt;
  const auto directory = file_id_from(json->find("directory"));
  const auto accepted = file_id_from(json->find("accepted"));
  const auto rejected = file_id_from(json->find("rejected"));
  if (!directory || !accepted || !rejected) return std::nullopt;
  return PairIds{*directory, *accepted, *rejected};
}

Result<Journal> parse_journal(std::string_view text) {
  ROPEWALK_ASSIGN_OR_RETURN(const Json json, parse_json(text));
  Journal journal;
  const auto export_id = json.get_string("export_id");
  const auto state = json.get_string("state");
  const auto mode = publish_mode_from_name(json.get_string("mode").value_or(""));
  const auto after = pair_ids_from(json.find("new"));
  const Json* before = json.find("old");
  const Json* owner = json.find("owner");
  if (!export_id || !state || !mode || !after || before == nullptr || owner == nullptr) {
    return data_loss("expected {export_id, state, mode, old, new, owner}");
  }
  journal.export_id = *export_id;
  journal.mode = *mode;
  journal.after = *after;
  if (!before->is_null()) {
    journal.before = pair_ids_from(before);
    if (!journal.before) return data_loss("\"old\" has no device and inode numbers");
  }
  if (*state == "staged") {
    journal.state = PublishState::staged;
  } else if (*state == "switching") {
    journal.state = PublishState::switching;
  } else if (*state == "published") {
    journal.state = PublishState::published;
  } else {
    return data_loss(fmt::format("unknown state \"{}\"", *state));
  }
  journal.owner = process_from_json(*owner).value_or(ProcessIdentity{});
  journal.source_revision = json.get_int64("source_revision").value_or(0);
  journal.at = json.get_string("at").value_or("");
  return journal;
}

}  // namespace

std::string_view publish_mode_name(PublishMode mode) {
  switch (mode) {
    case PublishMode::exchange:
      return "exchange";
    case PublishMode::noreplace:
      return "noreplace";
    case PublishMode::renames:
      return "renames";
  }
  return "";
}

std::optional<PublishMode> publish_mode_from_name(std::string_view name) {
  for (const PublishMode mode :
       {PublishMode::exchange, PublishMode::noreplace, PublishMode::renames}) {
    if (publish_mode_name(mode) == name) return mode;
  }
  return std::nullopt;
}

std::string_view publish_state_name(PublishState state) {
  switch (state) {
    case PublishState::staged:
      return "staged";
    case PublishState::switching:
      return "switching";
    case PublishState::published:
      return "published";
  }
  return "";
}

Result<std::optional<PairIds>> pair_ids(const std::filesystem::path& pair_dir) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto directory, file_info(pair_dir));
  if (!directory || !directory->is_directory) return std::optional<PairIds>();
  PairIds ids;
  ids.directory = directory->id;
  ROPEWALK_ASSIGN_OR_RETURN(const auto accepted, file_info(pair_dir / "accepted"));
  if (accepted) ids.accepted = accepted->id;
  ROPEWALK_ASSIGN_OR_RETURN(const auto rejected, file_info(pair_dir / "rejected"));
  if (rejected) ids.rejected = rejected->id;
  return std::optional<PairIds>(ids);
}

Json to_json(const ProcessIdentity& process) {
  Json json;
  json.set("host", process.host);
  json.set("pid", process.pid);
  json.set("boot_id", process.boot_id);
  json.set("start_ticks", process.start_ticks);
  json.set("started_at", process.started_at);
  return json;
}

std::optional<ProcessIdentity> process_from_json(const Json& json) {
  ProcessIdentity process;
  const auto host = json.get_string("host");
  const auto pid = json.get_int64("pid");
  const auto boot_id = json.get_string("boot_id");
  const auto start_ticks = as_uint64(json.find("start_ticks"));
  if (!host || !pid || !boot_id || !start_ticks) return std::nullopt;
  process.host = *host;
  process.pid = *pid;
  process.boot_id = *boot_id;
  process.start_ticks = *start_ticks;
  process.started_at = json.get_string("started_at").value_or("");
  return process;
}

Status replace_with_temporary(const std::filesystem::path& path, ByteSpan bytes,
                              const std::filesystem::path& temporary) {
  ROPEWALK_RETURN_IF_ERROR(remove_tree(temporary));  // left by a crash
  ROPEWALK_RETURN_IF_ERROR(write_new_file(temporary, bytes));
  if (Status renamed = rename_path(temporary, path); !renamed.ok()) {
    std::ignore = remove_file(temporary);
    return renamed;
  }
  return sync_directory(path.parent_path());
}

Status write_journal(const PairTarget& target, Journal& journal) {
  journal.at = utc_now();
  Json json;
  json.set("export_id", journal.export_id);
  json.set("state", publish_state_name(journal.state));
  json.set("stage", target.stage(journal.export_id).filename().string());
  json.set("target", target.name);
  json.set("mode", publish_mode_name(journal.mode));
  json.set("old", journal.before ? to_json(*journal.before) : Json());
  json.set("new", to_json(journal.after));
  json.set("source_revision", journal.source_revision);
  json.set("owner", to_json(journal.owner));
  json.set("at", journal.at);
  return replace_with_temporary(target.journal(), as_bytes(json.dump(2) + "\n"),
                                temporary_of(target))
      .with_context("publish journal, state " + std::string(publish_state_name(journal.state)));
}

Result<std::optional<Journal>> read_journal(const PairTarget& target) {
  auto text = read_text_file(target.journal(), kMaxJournalBytes);
  if (text.status().code() == StatusCode::not_found) return std::optional<Journal>();
  ROPEWALK_RETURN_IF_ERROR(text.status());
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Journal journal, parse_journal(*text), target.journal().string());
  return std::optional<Journal>(std::move(journal));
}

Status remove_journal(const PairTarget& target) {
  ROPEWALK_RETURN_IF_ERROR(remove_tree(temporary_of(target)));
  ROPEWALK_RETURN_IF_ERROR(remove_tree(target.journal()));
  return sync_directory(target.parent);
}

}  // namespace ropewalk
