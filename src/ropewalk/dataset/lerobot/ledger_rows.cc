// Reading of ledger, rows and foreign reviews; their reconciliation; the projection.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/dataset/lerobot/ledger_internal.h"
#include "ropewalk/dataset/lerobot/ledger_row_text_internal.h"

namespace ropewalk {
namespace {

constexpr std::string_view kRowsName = "meta/episodes.jsonl";
// File times come from a clock that ticks up to so much later than the one behind `at`.
constexpr std::int64_t kFileTimeSlackUs = 10'000;

// Calls `on_line(text without LF, has LF)` for each line. Lines are split only at LF.
template <typename F>
void for_each_line(std::string_view text, const F& on_line) {
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t lf = text.find('\n', begin);
    const bool whole = lf != std::string_view::npos;
    const std::size_t end = whole ? lf : text.size();
    on_line(text.substr(begin, end - begin), whole);
    begin = end + 1;
  }
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \t\r") == std::string_view::npos;
}

std::string text_value(std::string_view line, const std::vector<RowMember>& members,
                       std::string_view key) {
  const Json value = row_value(line, members, key);
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

std::optional<RowBase> parse_row(std::string_view line) {
  const auto members = scan_row(line);
  if (!members) return std::nullopt;
  const Json index = row_value(line, *members, "episode_index");
  if (!index.is_number() || index.as_int64().value_or(-1) < 0) return std::nullopt;
  RowBase base;
  base.episode_index = *index.as_int64();
  for (const RowMember& member : *members) {
    const std::string_view key = member.key;
    // Most members of a row do not matter here and are not parsed.
    if (key == "length") {
      base.length = row_value(line, *members, key).as_int64().value_or(0);
    } else if (key == kVerdictKey) {
      base.verdict = normal_verdict(row_value(line, *members, key));
    } else if (key == kNoteKey) {
      base.has_note = true;
      base.note = text_value(line, *members, key);
    } else if (key == kAnnotationKey) {
      base.annotation = text_value(line, *members, key);
    } else if (key == kTrashedKey) {
      base.trashed_at = text_value(line, *members, key);
    } else if (key == kQualityKey) {
      base.quality = text_value(line, *members, key);
    } else if (key == "take_id") {
      base.take_id = text_value(line, *members, key);
    } else if (key == kIssuesKey) {
      base.issues = row_value(line, *members, key);
    } else if (key == kFindingsKey) {
      base.findings = row_value(line, *members, key);
    }
  }
  return base;
}

std::string digest_of(std::string_view text) { return sha256_hex(as_bytes(text)); }

std::optional<LedgerStateFile> parse_state(std::string_view text) {
  const auto json = parse_json(text);
  if (!json.ok() || !json->is_object()) return std::nullopt;
  LedgerStateFile out;
  const auto rev = json->get_int64("rev");
  const auto sha256 = json->get_string("sha256");
  if (!rev || !sha256) return std::nullopt;
  out.known = true;
  out.rev = *rev;
  out.size =
      static_cast<std::uint64_t>(std::max<std::int64_t>(json->get_int64("size").value_or(0), 0));
  out.sha256 = *sha256;
  out.total_frames = json->get_int64("total_frames").value_or(0);
  if (const Json* qc = json->find("qc")) out.qc_sha256 = qc->get_string("sha256").value_or("");
  if (const Json* next = json->find("next")) {
    out.next_rev = next->get_int64("rev").value_or(0);
    out.next_sha256 = next->get_string("sha256").value_or("");
  }
  return out;
}

std::string state_text(const LedgerStateFile& state) {
  Json json;
  json.set("rev", state.rev);
  json.set("size", state.size);
  json.set("sha256", state.sha256);
  json.set("total_frames", state.total_frames);
  if (!state.qc_sha256.empty()) {
    Json qc;
    qc.set("sha256", state.qc_sha256);
    json.set("qc", std::move(qc));
  }
  if (!state.next_sha256.empty()) {
    Json next;
    next.set("rev", state.next_rev);
    next.set("sha256", state.next_sha256);
    json.set("next", std::move(next));
  }
  return json.dump() + "\n";
}

LedgerLine system_line(LedgerKind kind, const RowBase& base) {
  LedgerLine line;
  line.actor = "system";
  line.client = "import";
  line.kind = kind;
  line.episode_index = base.episode_index;
  line.take_id = base.take_id;
  return line;
}

void put(LedgerLine& line, std::string_view key, const std::string& before,
         const std::string& after) {
  line.before.set(key, text_or_null(before));
  line.after.set(key, text_or_null(after));
}

// The first line of an episode: everything that is known about it.
LedgerLine import_line(const RowBase& base, const ForeignReview* foreign) {
  LedgerLine line = system_line(LedgerKind::imported, base);
  const auto take = [&](std::string_view key, const std::string& value) {
    if (!value.empty()) line.after.set(key, value);
  };
  const bool human_elsewhere = foreign != nullptr && !foreign->verdict.empty();
  take(kVerdictKey, human_elsewhere ? foreign->verdict : base.verdict);
  take(kNoteKey, foreign != nullptr && !foreign->note.empty() ? foreign->note : base.note);
  if (foreign != nullptr) {
    take(kMachineVerdictKey, foreign->machine_verdict);
    take(kMachineNoteKey, foreign->machine_note);
  }
  take(kAnnotationKey, base.annotation);
  take(kTrashedKey, base.trashed_at);
  take(kQualityKey, base.quality);
  return line;
}

// What a recorder writes when it commits an episode.
LedgerLine saved_line(const RowBase& base) {
  LedgerLine line = system_line(LedgerKind::saved, base);
  line.client = "recorder";
  line.after.set("length", base.length);
  if (!base.quality.empty()) line.after.set(kQualityKey, base.quality);
  return line;
}

}  // namespace

Status Ledger::Impl::load() {
  states.clear();
  bases.clear();
  rows.clear();
  place.clear();
  foreign.clear();
  findings = {};
  revision = 0;
  last_at.clear();
  valid_end = 0;
  ROPEWALK_RETURN_IF_ERROR(read_state_file());
  ROPEWALK_RETURN_IF_ERROR(read_rows());
  ROPEWALK_RETURN_IF_ERROR(read_lines());
  ROPEWALK_RETURN_IF_ERROR(read_foreign_reviews());
  return settle();
}

Status Ledger::Impl::read_state_file() {
  state_file = {};
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(state_path()));
  if (!info) return ok_status();
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(state_path(), 1U << 20));
  // A damaged one is rebuilt: everything in it can be had from ledger and rows.
  state_file = parse_state(text).value_or(LedgerStateFile());
  return ok_status();
}

Status Ledger::Impl::read_rows() {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(rows_path()));
  if (!info) {
    return failed_precondition(
               fmt::format("{}: meta/episodes.jsonl is not there; a review needs a raw LeRobot "
                           "v2.1 dataset (convert makes one)",
                           root.string()))
        .with_reason("NOT_RAW_V21");
  }
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                            read_text_file(rows_path(), limits.max_json_line_bytes * 64));
  rows_file = *info;
  rows_sha256 = digest_of(text);
  bases.clear();
  place.clear();
  std::int64_t number = 0;
  for_each_line(text, [&](std::string_view line, bool whole) {
    ++number;
    if (is_blank(line)) return;
    auto base = parse_row(line);
    if (!base) {
      findings.add({.code = whole ? "episodes_line_invalid" : "episodes_line_torn",
                    .severity = whole ? Severity::error : Severity::warning,
                    .file = std::string(kRowsName),
                    .row = number,
                    .found = fmt::format("{} bytes that are no row", line.size()),
                    .decision = "the line does not count"});
      return;
    }
    const auto [at, added] = place.try_emplace(base->episode_index, bases.size());
    if (!added) {
      findings.add({.code = "duplicate_episode_index",
                    .severity = Severity::error,
                    .file = std::string(kRowsName),
                    .episode = base->episode_index,
                    .row = number,
                    .decision = "the first row counts here; an export refuses the dataset"});
      return;
    }
    bases.push_back(std::move(*base));
  });
  rows.assign(bases.size(), {});
  return ok_status();
}

Status Ledger::Impl::read_lines() {
  std::int64_t previous = revision;
  ROPEWALK_ASSIGN_OR_RETURN(
      const LedgerScan scan,
      scan_ledger(ledger_path(), valid_end, limits, findings, [&](LedgerLine&& line) {
        if (line.rev != previous + 1) {
          findings.add({.code = "ledger_revision_order",
                        .severity = Severity::warning,
                        .file = "meta/ledger.jsonl",
                        .declared = fmt::format("rev {}", previous + 1),
                        .found = fmt::format("rev {}", line.rev),
                        .decision = "lines are applied in the order of the file"});
        }
        previous = line.rev;
        apply_line(line);
        if (line.episode_index && rows.size() == bases.size()) update_row(*line.episode_index);
      }));
  valid_end = std::max(valid_end, scan.valid_end);
  torn = scan.is_torn();
  if (torn) {
    findings.add({.code = "ledger_torn_tail",
                  .severity = Severity::warning,
                  .file = "meta/ledger.jsonl",
                  .found = fmt::format("{} bytes after byte {} that are no whole line",
                                       scan.file_size - scan.valid_end, scan.valid_end),
                  .decision = writer ? "cut off" : "ignored"});
  }
  return ok_status();
}

Status Ledger::Impl::read_foreign_reviews() {
  foreign.clear();
  qc_sha256.clear();
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(qc_path()));
  if (!info) return ok_status();
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                            read_text_file(qc_path(), limits.max_json_line_bytes * 64));
  qc_sha256 = digest_of(text);
  for_each_line(text, [&](std::string_view line, bool) {
    if (is_blank(line)) return;
    const auto json = parse_json(line, limits);
    const auto index = json.ok() ? json->get_int64("episode_index") : std::nullopt;
    if (!index) {
      findings.add({.code = "qc_line_invalid",
                    .severity = Severity::warning,
                    .file = "meta/qc.jsonl",
                    .decision = "the line does not count"});
      return;
    }
    const auto verdict_of = [&](std::string_view key) {
      const Json* value = json->find(key);
      return value ? normal_verdict(*value) : std::string();
    };
    ForeignReview review;
    review.updated_at = json->get_string("qc_updated_at").value_or("");
    const std::string note = json->get_string(kNoteKey).value_or("");
    if (json->get_bool("qc_auto").value_or(false)) {
      review.machine_verdict = verdict_of(kVerdictKey);
      review.machine_note = note;
    } else {
      review.verdict = verdict_of(kVerdictKey);
      review.note = note;
      review.has_note = json->find(kNoteKey) != nullptr;
      review.machine_verdict = verdict_of(kMachineVerdictKey);
      review.machine_note = json->get_string(kMachineNoteKey).value_or("");
    }
    foreign[*index] = std::move(review);
  });
  return ok_status();
}

Status Ledger::Impl::catch_up() {
  ROPEWALK_ASSIGN_OR_RETURN(const auto rows_info, file_info(rows_path()));
  ROPEWALK_ASSIGN_OR_RETURN(const auto ledger_info, file_info(ledger_path()));
  const bool rows_same = rows_info && rows_info->id == rows_file.id &&
                         rows_info->size_bytes == rows_file.size_bytes &&
                         rows_info->modified_ns == rows_file.modified_ns;
  const std::uint64_t ledger_size = ledger_info ? ledger_info->size_bytes : 0;
  if (!rows_same || ledger_size < valid_end) return load();
  if (ledger_size == valid_end) {
    torn = false;
    return ok_status();
  }
  return read_lines();
}

Status Ledger::Impl::repair_tail() {
  if (!torn) return ok_status();
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(ledger_path()));
  if (info && info->size_bytes != valid_end) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(ledger_path()));
    Bytes prefix(static_cast<std::size_t>(valid_end));
    ROPEWALK_RETURN_IF_ERROR(source->read_at(0, prefix));
    ROPEWALK_RETURN_IF_ERROR(replace_file(ledger_path(), prefix));
  }
  torn = false;
  return ok_status();
}

std::vector<LedgerLine> Ledger::Impl::differences() const {
  std::vector<LedgerLine> lines;
  const bool rows_changed = !state_file.known || (rows_sha256 != state_file.sha256 &&
                                                  rows_sha256 != state_file.next_sha256);
  const bool reviews_changed = !qc_sha256.empty() && qc_sha256 != state_file.qc_sha256;
  const std::int64_t rows_time_us = rows_file.modified_ns / 1000;

  // Two lines where the ledger is newer than the edit: the edit, and its taking back.
  const auto add_edit = [&](LedgerLine edit, bool edit_wins) {
    if (edit.after.size() == 0) return;
    lines.push_back(edit);
    if (edit_wins) return;
    LedgerLine back = edit;
    back.kind = edit.after.find(kVerdictKey) != nullptr ? LedgerKind::verdict
                : edit.after.find(kNoteKey) != nullptr  ? LedgerKind::note
                                                        : LedgerKind::annotation;
    std::swap(back.before, back.after);
    lines.push_back(std::move(back));
  };

  for (const RowBase& base : bases) {
    const auto known = states.find(base.episode_index);
    const auto review = foreign.find(base.episode_index);
    const ForeignReview* elsewhere = review == foreign.end() ? nullptr : &review->second;
    if (known == states.end() || known->second.revision == 0) {
      // A take of ours whose commit was interrupted before its line.
      const bool recorded = revision > 0 && !base.take_id.empty() && elsewhere == nullptr &&
                            base.verdict.empty() && base.note.empty() && base.annotation.empty() &&
                            base.trashed_at.empty();
      lines.push_back(recorded ? saved_line(base) : import_line(base, elsewhere));
      continue;
    }
    const EpisodeState& state = known->second;
    const LedgerProjection now = state.projection();
    const std::int64_t changed_us = ledger_time_us(state.changed_at).value_or(0);
    if (rows_changed) {
      const LedgerProjection then = state.projection_at(state_file.rev);
      const LedgerProjection next = state.projection_at(state_file.next_rev);
      LedgerLine edit = system_line(LedgerKind::external_edit, base);
      const auto compare = [&](std::string_view key, std::string LedgerProjection::*member,
                               const std::string& found, const std::string& stated) {
        if (found == now.*member || found == then.*member || found == next.*member) return;
        if (!state_file.known && std::ranges::any_of(state.history, [&](const auto& entry) {
              return entry.second.*member == found;
            })) {
          return;  // ours, of a time that cannot be told
        }
        put(edit, key, stated, found);
      };
      // An absent key is never a clearing: other programs leave keys out.
      if (!base.verdict.empty()) {
        compare(kVerdictKey, &LedgerProjection::verdict, base.verdict, state.verdict);
      }
      if (base.has_note) compare(kNoteKey, &LedgerProjection::note, base.note, state.note);
      if (!base.annotation.empty()) {
        compare(kAnnotationKey, &LedgerProjection::annotation, base.annotation, state.annotation);
      }
      add_edit(std::move(edit), rows_time_us + kFileTimeSlackUs >= changed_us);
      if (state.row_quality.value_or(base.quality) != base.quality) {
        LedgerLine quality = system_line(LedgerKind::external_edit, base);
        put(quality, kQualityKey, *state.row_quality, base.quality);
        lines.push_back(std::move(quality));
      }
    }
    if (reviews_changed && elsewhere != nullptr) {
      LedgerLine edit = system_line(LedgerKind::external_edit, base);
      const bool newer = ledger_time_us(elsewhere->updated_at).value_or(rows_time_us) >= changed_us;
      if (newer && !elsewhere->verdict.empty() && elsewhere->verdict != state.verdict) {
        put(edit, kVerdictKey, state.verdict, elsewhere->verdict);
      }
      if (newer && elsewhere->has_note && elsewhere->note != state.note) {
        put(edit, kNoteKey, state.note, elsewhere->note);
      }
      if (elsewhere->machine_verdict != state.machine_verdict) {
        put(edit, kMachineVerdictKey, state.machine_verdict, elsewhere->machine_verdict);
      }
      if (elsewhere->machine_note != state.machine_note) {
        put(edit, kMachineNoteKey, state.machine_note, elsewhere->machine_note);
      }
      add_edit(std::move(edit), true);
    }
  }
  return lines;
}

Status Ledger::Impl::settle() {
  std::vector<LedgerLine> lines = differences();
  std::int64_t edits = 0;
  for (const LedgerLine& line : lines) edits += line.kind == LedgerKind::external_edit ? 1 : 0;
  if (edits > 0) {
    findings.add({.code = "external_edit",
                  .severity = Severity::info,
                  .file = std::string(kRowsName),
                  .count = edits,
                  .found = "rows changed by another program",
                  .decision = writer ? "recorded in the ledger"
                                     : "counted; the next change records them in the ledger"});
  }
  for (const auto& [episode, state] : states) {
    if (state.revision == 0 || place.contains(episode)) continue;
    findings.add({.code = "episode_row_vanished",
                  .severity = Severity::warning,
                  .file = std::string(kRowsName),
                  .episode = episode,
                  .found = "no row of an episode that the ledger knows",
                  .decision = "not taken for a deletion; trash episodes instead"});
  }
  if (writer) {
    ROPEWALK_RETURN_IF_ERROR(append(lines));
  } else {
    for (const LedgerLine& line : lines) apply_line(line);
  }
  for (const RowBase& base : bases) update_row(base.episode_index);
  return ok_status();
}

Result<std::string> Ledger::Impl::projected_text(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + 64 * bases.size());
  for_each_line(text, [&](std::string_view line, bool whole) {
    const auto base = is_blank(line) ? std::nullopt : parse_row(line);
    const auto known = base ? states.find(base->episode_index) : states.end();
    if (known == states.end()) {
      if (!whole && !base && !is_blank(line)) return;  // a torn last line is cut
      out.append(line);
      out.push_back('\n');
      return;
    }
    const LedgerProjection wanted = known->second.projection();
    std::vector<RowEdit> edits;
    const auto edit = [&](std::string_view key, const std::string& found,
                          const std::string& value) {
      if (found == value) return;
      edits.push_back(
          {std::string(key), value.empty() ? std::nullopt : std::optional<Json>(value)});
    };
    edit(kVerdictKey, base->verdict, wanted.verdict);
    edit(kNoteKey, base->note, wanted.note);
    edit(kAnnotationKey, base->annotation, wanted.annotation);
    edit(kTrashedKey, base->trashed_at, wanted.trashed_at);
    if (edits.empty()) {
      out.append(line);
    } else {
      out += edit_row(line, edits);
    }
    out.push_back('\n');
  });
  // A file that needs no edit keeps even its missing last LF.
  if (!text.empty() && text.back() != '\n' && out.size() == text.size() + 1 &&
      out.compare(0, text.size(), text) == 0) {
    out.pop_back();
  }
  return out;
}

Status Ledger::Impl::write_state(const LedgerStateFile& next) {
  if (next == state_file) return ok_status();
  ROPEWALK_RETURN_IF_ERROR(replace_file(state_path(), as_bytes(state_text(next))));
  state_file = next;
  return ok_status();
}

Status Ledger::Impl::project() {
  if (state_file.known && state_file.rev == revision && state_file.sha256 == rows_sha256 &&
      state_file.qc_sha256 == qc_sha256 && state_file.next_sha256.empty()) {
    return ok_status();
  }
  // Names that a killed process left behind; nobody else writes here while the lock is held.
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(root / "meta"));
  for (const std::string& name : names) {
    if (name.starts_with(".episodes.jsonl.tmp.") || name.starts_with(".ledger_state.json.tmp.") ||
        name.starts_with(".ledger.jsonl.tmp.")) {
      ROPEWALK_RETURN_IF_ERROR(remove_file(root / "meta" / name));
    }
  }
  std::string wanted;
  for (int attempt = 0;; ++attempt) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::string text,
                              read_text_file(rows_path(), limits.max_json_line_bytes * 64));
    if (digest_of(text) == rows_sha256) {
      ROPEWALK_ASSIGN_OR_RETURN(wanted, projected_text(text));
      if (wanted != text) break;
      LedgerStateFile same{.known = true,
                           .rev = revision,
                           .size = text.size(),
                           .sha256 = rows_sha256,
                           .qc_sha256 = qc_sha256};
      for (const RowBase& base : bases) same.total_frames += base.length;
      return write_state(same);
    }
    // A program that knows no lock appends or edits meanwhile.
    if (attempt == 3) {
      return unavailable(
          fmt::format("{}: changes all the time; the verdicts are in the ledger and "
                      "will be copied later",
                      rows_path().string()));
    }
    ROPEWALK_RETURN_IF_ERROR(load());
  }
  LedgerStateFile done{.known = true,
                       .rev = revision,
                       .size = wanted.size(),
                       .sha256 = digest_of(wanted),
                       .qc_sha256 = qc_sha256};
  for (const RowBase& base : bases) done.total_frames += base.length;
  // The intent first: a crash after the rename must not make our own rows look like foreign edits.
  LedgerStateFile intent = state_file;
  if (!intent.known) {
    intent = done;
    intent.sha256 = rows_sha256;
    intent.size = rows_file.size_bytes;
  }
  intent.next_rev = done.rev;
  intent.next_sha256 = done.sha256;
  ROPEWALK_RETURN_IF_ERROR(write_state(intent));
  ROPEWALK_RETURN_IF_ERROR(replace_file(rows_path(), as_bytes(wanted)));
  ROPEWALK_RETURN_IF_ERROR(write_state(done));
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(rows_path()));
  if (info) rows_file = *info;
  rows_sha256 = done.sha256;
  for (RowBase& base : bases) {
    EpisodeState& state = states[base.episode_index];
    const LedgerProjection written = state.projection();
    base.verdict = written.verdict;
    base.has_note = base.has_note || !written.note.empty();
    base.note = written.note;
    base.annotation = written.annotation;
    base.trashed_at = written.trashed_at;
    state.history.clear();
  }
  return ok_status();
}

}  // namespace ropewalk
