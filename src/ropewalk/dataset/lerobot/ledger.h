#pragma once
// Ledger: who decided what about the episodes of a raw dataset, and when. meta/ledger.jsonl is
// append-only and the truth; qc_verdict, qc_note and language_annotation in meta/episodes.jsonl are
// its projection for other readers.
// Typical usage: open_for_write, mark(…), project(); or open_for_read and rows() or apply(info).
// Changes are safe among processes: each takes the ledger lock, reads what others appended, appends
// its own lines and makes them durable before it returns.
// Spec: review-export-upload 3.2 to 3.4, R-DATA-7, R-OPS-3, R-OPS-4.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/dataset/lerobot/ledger_line.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// What the ledger and the row of an episode say together.
struct ReviewRow {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  std::string verdict;              ///< effective: "pass", "fail", or empty: undecided
  bool verdict_by_machine = false;  ///< no human decided; an imported machine verdict stands
  std::string note;
  std::string quality;         ///< "green", "red", or empty: never checked
  Json issues;                 ///< `quality_issues`: an array, or null
  Json findings;               ///< `quality_findings`: an array, or null
  bool checked_later = false;  ///< quality and issues are those of a later scan, not of the row
  std::string annotation;      ///< `language_annotation`
  std::string take_id;
  std::string trashed_at;     ///< UTC ISO; empty: not trashed
  std::int64_t revision = 0;  ///< the largest `rev` that names the episode; 0: none
};

/// Whose changes these are. `client`: console, cli, python, recorder, import.
struct LedgerActor {
  std::string actor;
  std::string client = "cli";
};

struct MarkRequest {
  std::vector<std::int64_t> episodes;
  std::optional<std::string> verdict;  ///< "pass", "fail" or "clear"; nullopt keeps it
  std::optional<std::string> note;     ///< nullopt keeps it, "" clears it
  /// The revision the client saw; a later line that names one of the episodes refuses the request.
  std::optional<std::int64_t> if_revision;
};

/// The outcome of one scan, to be recorded as a `checked` line.
struct CheckRecord {
  std::int64_t episode_index = 0;
  std::string quality;  ///< "green" or "red"
  Json issues = Json::array();
  Json findings = Json::array();
};

/// What to undo: a line, a bulk action, or, with neither, the last action that was not undone and
/// is no undo itself.
struct UndoRequest {
  std::optional<std::int64_t> rev;
  std::optional<std::string> batch;
};

struct LogFilter {
  std::optional<std::vector<std::int64_t>> episodes;
  std::optional<std::string> actor;
  std::optional<LedgerKind> kind;
  std::int64_t after_rev = 0;  ///< only lines with a greater `rev`
  std::int64_t last = 0;       ///< only the last so many lines; 0: all
};

/// The lines a change appended; empty when everything was so already.
struct LedgerChange {
  std::vector<LedgerLine> lines;
  std::int64_t revision = 0;  ///< after the change
};

/// Not thread-safe; several processes or objects may work on one dataset at once.
/// Memory: a summary per episode, whatever the length of the ledger.
class Ledger {
 public:
  /// Reads rows and ledger. Needs no right to write; a dataset without a ledger has revision 0, and
  /// foreign edits that nobody recorded yet count in rows() but not in revision().
  /// Errors: failed_precondition with reason NOT_RAW_V21 without meta/episodes.jsonl.
  static Result<Ledger> open_for_read(const std::filesystem::path& root, const Limits& limits = {});
  /// Also repairs a torn tail and records what others changed: `imported` and `external_edit`
  /// lines. Errors: as above; permission_denied; unavailable with reason DATASET_LOCKED.
  static Result<Ledger> open_for_write(const std::filesystem::path& root, LedgerActor actor,
                                       const Limits& limits = {});
  Ledger(Ledger&&) noexcept;
  Ledger& operator=(Ledger&&) noexcept;
  ~Ledger();  ///< does not project

  /// The `rev` of the last valid line; 0 without a ledger.
  std::int64_t revision() const;
  /// The largest `rev` of a line that names the episode; 0 when there is none.
  std::int64_t episode_revision(std::int64_t episode_index) const;
  /// In the order of meta/episodes.jsonl.
  const std::vector<ReviewRow>& rows() const;
  const ReviewRow* find(std::int64_t episode_index) const;
  /// Puts effective verdict, note, quality and issues into `info` and its row. An episode that the
  /// ledger does not know is left alone.
  void apply(EpisodeInfo& info) const;
  /// What was noticed while reading: torn tails, invalid lines, rows that vanished, foreign edits.
  const Findings& findings() const;
  /// Reads the ledger again from the file.
  Result<std::vector<LedgerLine>> log(const LogFilter& filter = {}) const;

  /// Reads what other processes appended since.
  Status refresh();

  // Changes. Durable on return. Errors of all: not_found listing unknown episodes;
  // failed_precondition for a ledger opened to read, for trashed episodes, and with reason
  // REVISION_CHANGED when `if_revision` is behind.
  Result<LedgerChange> mark(const MarkRequest& request);
  /// Sets `language_annotation` of one episode; "" clears it.
  Result<LedgerChange> annotate(std::int64_t episode_index, const std::string& text);
  /// Records scans; lines appear only where quality, issues or findings differ from what is known.
  Result<LedgerChange> record_checks(const std::vector<CheckRecord>& records);
  Result<LedgerChange> trash(const std::vector<std::int64_t>& episodes);
  Result<LedgerChange> restore(const std::vector<std::int64_t>& episodes);
  /// Appends lines with `before` and `after` exchanged; one undo for a whole batch.
  /// Errors: not_found (no such line), failed_precondition naming the later lines that changed the
  /// same values, or the kind that cannot be undone.
  Result<LedgerChange> undo(const UndoRequest& request = {});

  /// Brings meta/episodes.jsonl up to date and records it in meta/ledger_state.json. Lines that do
  /// not change keep their bytes. Does nothing when it is up to date.
  Status project();

 private:
  struct Impl;
  explicit Ledger(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk
