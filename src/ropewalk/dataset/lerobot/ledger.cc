#include "ropewalk/dataset/lerobot/ledger.h"

#include <algorithm>
#include <deque>
#include <unordered_set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/dataset/lerobot/ledger_internal.h"
#include "ropewalk/dataset/lerobot/raw_lock.h"

namespace ropewalk {
namespace {

std::string text_of(const Json& value) {
  const std::string* text = value.as_string();
  return text ? *text : std::string();
}

// Kinds whose quality is that of the row itself, not of a later scan.
bool tells_of_row(LedgerKind kind) {
  return kind == LedgerKind::imported || kind == LedgerKind::external_edit ||
         kind == LedgerKind::saved || kind == LedgerKind::realigned;
}

void apply_value(EpisodeState& state, LedgerKind kind, const std::string& key, const Json& value) {
  if (key == kVerdictKey) {
    state.verdict = normal_verdict(value);
  } else if (key == kNoteKey) {
    state.note = text_of(value);
  } else if (key == kMachineVerdictKey) {
    state.machine_verdict = normal_verdict(value);
  } else if (key == kMachineNoteKey) {
    state.machine_note = text_of(value);
  } else if (key == kAnnotationKey) {
    state.annotation = text_of(value);
  } else if (key == kTrashedKey) {
    state.trashed_at = text_of(value);
  } else if (key == kQualityKey) {
    if (tells_of_row(kind)) {
      state.row_quality = text_of(value);
      state.checked = false;
    } else {
      state.quality = text_of(value);
      state.checked = !state.quality.empty();
    }
  } else if (key == kIssuesKey) {
    state.issues = value;
  } else if (key == kFindingsKey) {
    state.findings = value;
  } else {
    state.other.set(key, value);
  }
}

LedgerKind undo_kind(LedgerKind kind) {
  if (kind == LedgerKind::trashed) return LedgerKind::restored;
  if (kind == LedgerKind::restored) return LedgerKind::trashed;
  if (kind == LedgerKind::external_edit) return LedgerKind::verdict;
  return kind;
}

bool can_undo(LedgerKind kind) {
  switch (kind) {
    case LedgerKind::checked:
    case LedgerKind::verdict:
    case LedgerKind::note:
    case LedgerKind::reasons:
    case LedgerKind::annotation:
    case LedgerKind::marks:
    case LedgerKind::segments:
    case LedgerKind::trashed:
    case LedgerKind::restored:
    case LedgerKind::external_edit:
      return true;
    case LedgerKind::saved:
    case LedgerKind::realigned:
    case LedgerKind::imported:
    case LedgerKind::exported:
    case LedgerKind::uploaded:
    case LedgerKind::unknown:
      return false;
  }
  return false;
}

std::string new_batch() { return "b-" + random_uuid().substr(0, 13); }

// Picks the lines that an undo takes back.
Result<std::vector<LedgerLine>> undo_targets(const std::vector<LedgerLine>& lines,
                                             const UndoRequest& request) {
  std::unordered_map<std::int64_t, std::int64_t> undone;
  // From the end, so that an undo that was itself undone does not count.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (line->undoes && !undone.contains(line->rev)) undone[*line->undoes] = line->rev;
  }
  const auto lines_of_batch = [&](const std::string& batch) {
    std::vector<LedgerLine> found;
    std::ranges::copy_if(lines, std::back_inserter(found),
                         [&](const LedgerLine& line) { return line.batch == batch; });
    return found;
  };
  std::vector<LedgerLine> targets;
  if (request.rev) {
    std::ranges::copy_if(lines, std::back_inserter(targets),
                         [&](const LedgerLine& line) { return line.rev == *request.rev; });
    if (targets.empty()) return not_found(fmt::format("the ledger has no line {}", *request.rev));
  } else if (request.batch) {
    targets = lines_of_batch(*request.batch);
    if (targets.empty()) {
      return not_found(fmt::format("the ledger has no batch `{}`", *request.batch));
    }
  } else {
    const auto last = std::find_if(lines.rbegin(), lines.rend(), [&](const LedgerLine& line) {
      return can_undo(line.kind) && !line.undoes && !undone.contains(line.rev) &&
             line.kind != LedgerKind::external_edit && line.actor != "system";
    });
    if (last == lines.rend()) return not_found("there is nothing to undo");
    if (last->batch.empty()) {
      targets.push_back(*last);
    } else {
      targets = lines_of_batch(last->batch);
    }
  }
  std::erase_if(targets, [&](const LedgerLine& line) {
    return targets.size() > 1 && undone.contains(line.rev);
  });
  for (const LedgerLine& line : targets) {
    if (const auto by = undone.find(line.rev); by != undone.end()) {
      return failed_precondition(fmt::format(
          "line {} was undone by line {}; undo that one to have it again", line.rev, by->second));
    }
    if (!can_undo(line.kind) || !line.episode_index) {
      return failed_precondition(fmt::format("line {} is `{}`, which cannot be undone", line.rev,
                                             ledger_kind_name(line.kind)));
    }
  }
  return targets;
}

}  // namespace

std::string normal_verdict(const Json& value) {
  std::string text = text_of(value);
  std::ranges::transform(text, text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text == "pass" || text == "fail" ? text : std::string();
}

Json text_or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }

LedgerProjection EpisodeState::projection() const {
  LedgerProjection out;
  const bool by_machine = verdict.empty() && !machine_verdict.empty();
  out.verdict = !trashed_at.empty() ? "fail" : (by_machine ? machine_verdict : verdict);
  out.note = note.empty() && by_machine ? machine_note : note;
  out.annotation = annotation;
  out.trashed_at = trashed_at;
  return out;
}

LedgerProjection EpisodeState::projection_at(std::int64_t rev) const {
  LedgerProjection out = projection();
  for (const auto& [since, value] : history) {
    if (since > rev) break;
    out = value;
  }
  return out;
}

void Ledger::Impl::apply_line(const LedgerLine& line) {
  if (line.rev > 0) {
    revision = std::max(revision, line.rev);
    last_at = std::max(last_at, line.at);
  }
  if (!line.episode_index) return;
  EpisodeState& state = states[*line.episode_index];
  const LedgerProjection before = state.projection();
  if (line.kind == LedgerKind::saved || line.kind == LedgerKind::realigned) state.checked = false;
  if (line.kind == LedgerKind::imported && !state.row_quality) state.row_quality = "";
  for (const auto& [key, value] : *line.after.as_object()) {
    apply_value(state, line.kind, key, value);
  }
  if (line.rev == 0) return;
  if (const LedgerProjection after = state.projection(); !(after == before)) {
    state.changed_at = line.at;
    if (line.rev > state_file.rev) {
      if (state.history.empty()) state.history.emplace_back(state.revision, before);
      state.history.emplace_back(line.rev, after);
    }
  }
  state.revision = line.rev;
}

void Ledger::Impl::update_row(std::int64_t episode_index) {
  const auto at = place.find(episode_index);
  if (at == place.end()) return;
  const RowBase& base = bases[at->second];
  const EpisodeState& state = states[episode_index];
  const LedgerProjection seen = state.projection();
  ReviewRow& row = rows[at->second];
  row.episode_index = episode_index;
  row.length = base.length;
  row.verdict = state.verdict.empty() ? state.machine_verdict : state.verdict;
  row.verdict_by_machine = state.verdict.empty() && !state.machine_verdict.empty();
  row.note = seen.note;
  row.checked_later = state.checked;
  row.quality = state.checked ? state.quality : base.quality;
  row.issues = state.checked ? state.issues : base.issues;
  row.findings = state.checked ? state.findings : base.findings;
  row.annotation = state.annotation;
  row.take_id = base.take_id;
  row.trashed_at = state.trashed_at;
  row.revision = state.revision;
}

Status Ledger::Impl::append(std::vector<LedgerLine>& lines) {
  if (lines.empty()) return ok_status();
  ROPEWALK_RETURN_IF_ERROR(repair_tail());
  std::string text;
  std::string at = last_at;
  std::int64_t rev = revision;
  for (LedgerLine& line : lines) {
    line.rev = ++rev;
    line.at = next_ledger_time(at);
    at = line.at;
    if (line.kind == LedgerKind::trashed && !line.undoes) line.after.set(kTrashedKey, line.at);
    text += to_json(line).dump();
    text += '\n';
  }
  torn = true;  // until the whole append is known to be there
  ROPEWALK_RETURN_IF_ERROR(append_file_durably(ledger_path(), as_bytes(text))
                               .with_context("the ledger was not changed"));
  torn = false;
  valid_end += text.size();
  for (const LedgerLine& line : lines) {
    apply_line(line);
    if (line.episode_index) update_row(*line.episode_index);
  }
  return ok_status();
}

Result<LedgerChange> Ledger::Impl::commit(std::vector<LedgerLine> lines) {
  if (lines.size() > 1) {
    const std::string batch = new_batch();
    for (LedgerLine& line : lines) line.batch = batch;
  }
  for (LedgerLine& line : lines) {
    line.actor = writer->actor;
    line.client = writer->client;
  }
  ROPEWALK_RETURN_IF_ERROR(append(lines));
  return LedgerChange{std::move(lines), revision};
}

LedgerLine Ledger::Impl::line_of(LedgerKind kind, std::int64_t episode_index) const {
  LedgerLine line;
  line.kind = kind;
  line.episode_index = episode_index;
  const auto at = place.find(episode_index);
  if (at != place.end()) line.take_id = bases[at->second].take_id;
  return line;
}

Json Ledger::Impl::current_value(std::int64_t episode_index, std::string_view key) const {
  const auto found = states.find(episode_index);
  const EpisodeState state = found == states.end() ? EpisodeState() : found->second;
  const auto at = place.find(episode_index);
  const ReviewRow row = at == place.end() ? ReviewRow() : rows[at->second];
  if (key == kVerdictKey) return text_or_null(state.verdict);
  if (key == kNoteKey) return text_or_null(state.note);
  if (key == kMachineVerdictKey) return text_or_null(state.machine_verdict);
  if (key == kMachineNoteKey) return text_or_null(state.machine_note);
  if (key == kAnnotationKey) return text_or_null(state.annotation);
  if (key == kTrashedKey) return text_or_null(state.trashed_at);
  if (key == kQualityKey) return text_or_null(row.quality);
  if (key == kIssuesKey) return row.issues;
  if (key == kFindingsKey) return row.findings;
  const Json* value = state.other.find(key);
  return value ? *value : Json();
}

Result<FileLock> Ledger::Impl::begin_change() {
  if (!writer) {
    return failed_precondition(
        fmt::format("{}: opened to read; open it to write to change anything", root.string()));
  }
  ROPEWALK_ASSIGN_OR_RETURN(FileLock lock, lock_ledger(root));
  ROPEWALK_RETURN_IF_ERROR(catch_up());
  return lock;
}

Result<std::vector<std::int64_t>> Ledger::Impl::known_episodes(
    const std::vector<std::int64_t>& asked, bool may_be_trashed) const {
  if (asked.empty()) return invalid_argument("no episode is named");
  std::vector<std::int64_t> episodes = asked;
  std::ranges::sort(episodes);
  episodes.erase(std::unique(episodes.begin(), episodes.end()), episodes.end());
  std::vector<std::int64_t> unknown;
  std::vector<std::int64_t> trashed;
  for (const std::int64_t episode : episodes) {
    const auto at = place.find(episode);
    if (at == place.end()) {
      unknown.push_back(episode);
    } else if (!may_be_trashed && !rows[at->second].trashed_at.empty()) {
      trashed.push_back(episode);
    }
  }
  if (!unknown.empty()) {
    return not_found(fmt::format("{}: episodes {} are not in meta/episodes.jsonl, which has {}",
                                 root.string(), unknown, rows.size()));
  }
  if (!trashed.empty()) {
    return failed_precondition(
        fmt::format("{}: episodes {} are trashed; restore them first", root.string(), trashed));
  }
  return episodes;
}

Ledger::Ledger(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Ledger::Ledger(Ledger&&) noexcept = default;
Ledger& Ledger::operator=(Ledger&&) noexcept = default;
Ledger::~Ledger() = default;

Result<Ledger> Ledger::open_for_read(const std::filesystem::path& root, const Limits& limits) {
  auto impl = std::make_unique<Impl>();
  impl->root = root;
  impl->limits = limits;
  const auto lock = lock_ledger_for_read(root);
  ROPEWALK_RETURN_IF_ERROR(impl->load());
  return Ledger(std::move(impl));
}

Result<Ledger> Ledger::open_for_write(const std::filesystem::path& root, LedgerActor actor,
                                      const Limits& limits) {
  if (actor.actor.empty()) return invalid_argument("the ledger needs the name of an actor");
  auto impl = std::make_unique<Impl>();
  impl->root = root;
  impl->limits = limits;
  impl->writer = std::move(actor);
  ROPEWALK_ASSIGN_OR_RETURN(const auto rows_info, file_info(impl->rows_path()));
  if (!rows_info) ROPEWALK_RETURN_IF_ERROR(impl->read_rows());  // the error that says what is amiss
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, lock_ledger(root));
  ROPEWALK_RETURN_IF_ERROR(impl->load());
  return Ledger(std::move(impl));
}

std::int64_t Ledger::revision() const { return impl_->revision; }

std::int64_t Ledger::episode_revision(std::int64_t episode_index) const {
  const auto found = impl_->states.find(episode_index);
  return found == impl_->states.end() ? 0 : found->second.revision;
}

const std::vector<ReviewRow>& Ledger::rows() const { return impl_->rows; }

const ReviewRow* Ledger::find(std::int64_t episode_index) const {
  const auto at = impl_->place.find(episode_index);
  return at == impl_->place.end() ? nullptr : &impl_->rows[at->second];
}

void Ledger::apply(EpisodeInfo& info) const {
  const ReviewRow* row = find(info.index);
  if (row == nullptr) return;
  info.verdict = row->verdict;
  info.note = row->note;
  info.quality = row->quality;
  info.issues = row->issues;
  const auto put = [&](std::string_view key, const std::string& text) {
    if (text.empty()) {
      info.row.erase(key);
    } else if (info.row.get_string(key) != text) {
      info.row.set(key, text);
    }
  };
  put(kVerdictKey, row->trashed_at.empty() ? row->verdict : "fail");
  // An empty note that stands in the row means the same as none; it is left as it is.
  if (!row->note.empty() || !info.row.get_string(kNoteKey).value_or("").empty()) {
    put(kNoteKey, row->note);
  }
  if (!row->annotation.empty()) put(kAnnotationKey, row->annotation);
  put(kTrashedKey, row->trashed_at);
  if (row->checked_later) {
    info.row.set(kQualityKey, row->quality);
    info.row.set(kIssuesKey, row->issues.is_array() ? row->issues : Json::array());
    if (row->findings.size() > 0) {
      info.row.set(kFindingsKey, row->findings);
    } else {
      info.row.erase(kFindingsKey);
    }
  }
}

const Findings& Ledger::findings() const { return impl_->findings; }

Result<std::vector<LedgerLine>> Ledger::log(const LogFilter& filter) const {
  std::unordered_set<std::int64_t> episodes;
  if (filter.episodes) episodes.insert(filter.episodes->begin(), filter.episodes->end());
  std::deque<LedgerLine> kept;
  Findings ignored;  // those of opening are in findings()
  ROPEWALK_ASSIGN_OR_RETURN(
      [[maybe_unused]] const LedgerScan scan,
      scan_ledger(impl_->ledger_path(), 0, impl_->limits, ignored, [&](LedgerLine&& line) {
        if (line.rev <= filter.after_rev) return;
        if (filter.episodes && !(line.episode_index && episodes.contains(*line.episode_index))) {
          return;
        }
        if (filter.actor && line.actor != *filter.actor) return;
        if (filter.kind && line.kind != *filter.kind) return;
        kept.push_back(std::move(line));
        if (filter.last > 0 && std::ssize(kept) > filter.last) kept.pop_front();
      }));
  return std::vector<LedgerLine>(std::make_move_iterator(kept.begin()),
                                 std::make_move_iterator(kept.end()));
}

Status Ledger::refresh() {
  if (impl_->writer) {
    auto lock = impl_->begin_change();
    return lock.ok() ? ok_status() : std::move(lock).status();
  }
  const auto lock = lock_ledger_for_read(impl_->root);
  return impl_->load();
}

Result<LedgerChange> Ledger::mark(const MarkRequest& request) {
  if (!request.verdict && !request.note) {
    return invalid_argument("a mark needs a verdict or a note");
  }
  if (request.verdict && *request.verdict != "pass" && *request.verdict != "fail" &&
      *request.verdict != "clear") {
    return invalid_argument(
        fmt::format("verdict `{}`: expected pass, fail or clear", *request.verdict));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  ROPEWALK_ASSIGN_OR_RETURN(const auto episodes, impl_->known_episodes(request.episodes, false));
  std::vector<LedgerLine> lines;
  for (const std::int64_t episode : episodes) {
    const EpisodeState& state = impl_->states[episode];
    if (request.if_revision && state.revision > *request.if_revision) {
      return failed_precondition(
                 fmt::format("episode {} was changed by line {} after revision {}; look again",
                             episode, state.revision, *request.if_revision))
          .with_reason("REVISION_CHANGED");
    }
    LedgerLine line = impl_->line_of(LedgerKind::note, episode);
    if (request.verdict) {
      const std::string verdict = *request.verdict == "clear" ? "" : *request.verdict;
      if (verdict != state.verdict) {
        line.kind = LedgerKind::verdict;
        line.before.set(kVerdictKey, text_or_null(state.verdict));
        line.after.set(kVerdictKey, text_or_null(verdict));
      }
    }
    if (request.note && *request.note != state.note) {
      line.before.set(kNoteKey, text_or_null(state.note));
      line.after.set(kNoteKey, text_or_null(*request.note));
    }
    if (line.after.size() > 0) lines.push_back(std::move(line));
  }
  return impl_->commit(std::move(lines));
}

Result<LedgerChange> Ledger::annotate(std::int64_t episode_index, const std::string& text) {
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  ROPEWALK_ASSIGN_OR_RETURN(const auto episodes, impl_->known_episodes({episode_index}, false));
  const EpisodeState& state = impl_->states[episodes.front()];
  if (state.annotation == text) return LedgerChange{{}, impl_->revision};
  LedgerLine line = impl_->line_of(LedgerKind::annotation, episode_index);
  line.before.set(kAnnotationKey, text_or_null(state.annotation));
  line.after.set(kAnnotationKey, text_or_null(text));
  return impl_->commit({std::move(line)});
}

Result<LedgerChange> Ledger::record_checks(const std::vector<CheckRecord>& records) {
  if (records.empty()) return LedgerChange{{}, impl_->revision};
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  std::vector<std::int64_t> named;
  for (const CheckRecord& record : records) {
    if (record.quality != "green" && record.quality != "red") {
      return invalid_argument(fmt::format("episode {}: quality `{}`: expected green or red",
                                          record.episode_index, record.quality));
    }
    named.push_back(record.episode_index);
  }
  ROPEWALK_ASSIGN_OR_RETURN([[maybe_unused]] const auto known, impl_->known_episodes(named, true));
  std::vector<LedgerLine> lines;
  for (const CheckRecord& record : records) {
    LedgerLine line = impl_->line_of(LedgerKind::checked, record.episode_index);
    const auto put = [&](std::string_view key, const Json& value) {
      Json before = impl_->current_value(record.episode_index, key);
      const bool both_empty = before.size() == 0 && value.size() == 0 && !value.is_string();
      if (before == value || both_empty) return;
      line.before.set(key, std::move(before));
      line.after.set(key, value);
    };
    put(kQualityKey, Json(record.quality));
    put(kIssuesKey, record.issues);
    put(kFindingsKey, record.findings);
    if (line.after.size() == 0) continue;
    // What a scan found belongs together: a line that changes one of the three names quality too.
    for (const auto& [key, value] :
         {std::pair(kQualityKey, Json(record.quality)), std::pair(kIssuesKey, record.issues),
          std::pair(kFindingsKey, record.findings)}) {
      if (line.after.find(key) != nullptr) continue;
      line.before.set(key, impl_->current_value(record.episode_index, key));
      line.after.set(key, value);
    }
    lines.push_back(std::move(line));
  }
  return impl_->commit(std::move(lines));
}

Result<LedgerChange> Ledger::trash(const std::vector<std::int64_t>& asked) {
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  ROPEWALK_ASSIGN_OR_RETURN(const auto episodes, impl_->known_episodes(asked, true));
  std::vector<LedgerLine> lines;
  for (const std::int64_t episode : episodes) {
    if (!impl_->states[episode].trashed_at.empty()) continue;
    LedgerLine line = impl_->line_of(LedgerKind::trashed, episode);
    line.before.set(kTrashedKey, Json());
    lines.push_back(std::move(line));
  }
  return impl_->commit(std::move(lines));
}

Result<LedgerChange> Ledger::restore(const std::vector<std::int64_t>& asked) {
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  ROPEWALK_ASSIGN_OR_RETURN(const auto episodes, impl_->known_episodes(asked, true));
  std::vector<LedgerLine> lines;
  for (const std::int64_t episode : episodes) {
    const std::string& trashed_at = impl_->states[episode].trashed_at;
    if (trashed_at.empty()) continue;
    LedgerLine line = impl_->line_of(LedgerKind::restored, episode);
    line.before.set(kTrashedKey, trashed_at);
    line.after.set(kTrashedKey, Json());
    lines.push_back(std::move(line));
  }
  return impl_->commit(std::move(lines));
}

Result<LedgerChange> Ledger::undo(const UndoRequest& request) {
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  ROPEWALK_ASSIGN_OR_RETURN(const auto all, log());
  ROPEWALK_ASSIGN_OR_RETURN(const auto targets, undo_targets(all, request));
  std::vector<LedgerLine> lines;
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) {
    for (const auto& [key, value] : *target->after.as_object()) {
      const Json current = impl_->current_value(*target->episode_index, key);
      const bool both_empty =
          current.size() == 0 && value.size() == 0 && !current.is_string() && !value.is_string();
      if (current == value || both_empty) continue;
      return failed_precondition(fmt::format(
          "episode {}: `{}` was changed again after line {} (last by line {}); undo that first",
          *target->episode_index, key, target->rev,
          impl_->states[*target->episode_index].revision));
    }
    LedgerLine line = impl_->line_of(undo_kind(target->kind), *target->episode_index);
    line.before = target->after;
    line.after = target->before;
    line.undoes = target->rev;
    lines.push_back(std::move(line));
  }
  return impl_->commit(std::move(lines));
}

Status Ledger::project() {
  ROPEWALK_ASSIGN_OR_RETURN(const FileLock lock, impl_->begin_change());
  return impl_->project();
}

}  // namespace ropewalk
