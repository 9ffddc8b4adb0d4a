#pragma once
// The parts of Ledger that its files share: what lines and rows say about each episode, and how the
// two are held together.
#include <unordered_map>
#include <utility>
#include <vector>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/ledger.h"

namespace ropewalk {

inline constexpr std::string_view kVerdictKey = "qc_verdict";
inline constexpr std::string_view kNoteKey = "qc_note";
inline constexpr std::string_view kAnnotationKey = "language_annotation";
inline constexpr std::string_view kTrashedKey = "trashed_at";
inline constexpr std::string_view kQualityKey = "quality";
inline constexpr std::string_view kIssuesKey = "quality_issues";
inline constexpr std::string_view kFindingsKey = "quality_findings";
inline constexpr std::string_view kMachineVerdictKey = "qc_auto_verdict";
inline constexpr std::string_view kMachineNoteKey = "qc_auto_note";

/// What is copied into the row for other readers. Empty: the key is absent.
struct LedgerProjection {
  std::string verdict;
  std::string note;
  std::string annotation;
  std::string trashed_at;
  bool operator==(const LedgerProjection&) const = default;
};

/// What the ledger lines about one episode add up to.
struct EpisodeState {
  std::string verdict;  ///< of a human
  std::string note;
  std::string machine_verdict;
  std::string machine_note;
  std::string annotation;
  std::string trashed_at;
  bool checked = false;  ///< the three below are those of a `checked` line
  std::string quality;
  Json issues;
  Json findings;
  std::optional<std::string> row_quality;  ///< of the row, as last imported
  Json other = Json::object();             ///< values of keys that only log and undo look at
  std::int64_t revision = 0;
  std::string changed_at;  ///< `at` of the last line that changed a projected value
  /// Projections since the revision of the last projection: (rev, value from that rev on).
  std::vector<std::pair<std::int64_t, LedgerProjection>> history;

  LedgerProjection projection() const;
  LedgerProjection projection_at(std::int64_t rev) const;
};

/// The members of a row of episodes.jsonl that matter here.
struct RowBase {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  std::string verdict, note, annotation, trashed_at, quality, take_id;
  bool has_note = false;  ///< the key is there, if only with an empty text
  Json issues, findings;
};

/// A row of G4's meta/qc.jsonl.
struct ForeignReview {
  std::string verdict, note, machine_verdict, machine_note, updated_at;
  bool has_note = false;
};

/// meta/ledger_state.json. `next_*` name a projection that was about to replace the rows.
struct LedgerStateFile {
  bool known = false;
  std::int64_t rev = 0;
  std::uint64_t size = 0;
  std::string sha256;
  std::int64_t total_frames = 0;
  std::string qc_sha256;
  std::int64_t next_rev = 0;
  std::string next_sha256;
  bool operator==(const LedgerStateFile&) const = default;
};

struct Ledger::Impl {
  std::filesystem::path root;
  Limits limits;
  std::optional<LedgerActor> writer;
  Findings findings;

  std::unordered_map<std::int64_t, EpisodeState> states;
  std::int64_t revision = 0;
  std::string last_at;
  std::uint64_t valid_end = 0;  ///< of ledger.jsonl, as far as read
  bool torn = false;            ///< bytes that do not count lie behind valid_end

  std::vector<RowBase> bases;
  std::vector<ReviewRow> rows;
  std::unordered_map<std::int64_t, std::size_t> place;  ///< of an index in bases and rows
  FileInfo rows_file;
  std::string rows_sha256;
  std::unordered_map<std::int64_t, ForeignReview> foreign;  ///< of qc.jsonl
  std::string qc_sha256;
  LedgerStateFile state_file;

  std::filesystem::path ledger_path() const { return root / "meta" / "ledger.jsonl"; }
  std::filesystem::path rows_path() const { return root / "meta" / "episodes.jsonl"; }
  std::filesystem::path state_path() const { return root / "meta" / "ledger_state.json"; }
  std::filesystem::path qc_path() const { return root / "meta" / "qc.jsonl"; }

  // ledger.cc
  void apply_line(const LedgerLine& line);
  void update_row(std::int64_t episode_index);
  /// Numbers, writes and applies `lines`; the ledger lock is held.
  Status append(std::vector<LedgerLine>& lines);
  Result<LedgerChange> commit(std::vector<LedgerLine> lines);
  LedgerLine line_of(LedgerKind kind, std::int64_t episode_index) const;
  Json current_value(std::int64_t episode_index, std::string_view key) const;
  /// Locks for a change and reads what others did.
  Result<FileLock> begin_change();
  Result<std::vector<std::int64_t>> known_episodes(const std::vector<std::int64_t>& asked,
                                                   bool may_be_trashed) const;

  // ledger_rows.cc
  /// Reads everything anew. In write mode the lock is held and differences become lines.
  Status load();
  Status read_lines();
  Status read_rows();
  Status read_foreign_reviews();
  Status read_state_file();
  /// Reads what changed since the last read.
  Status catch_up();
  /// Returns the lines that say what rows and foreign reviews have and the ledger has not.
  std::vector<LedgerLine> differences() const;
  Status settle();
  Status repair_tail();
  Result<std::string> projected_text(std::string_view text) const;
  Status write_state(const LedgerStateFile& next);
  Status project();
};

/// "pass", "fail", or empty for anything else, whatever the case of letters.
std::string normal_verdict(const Json& value);
/// Text as JSON; empty becomes null.
Json text_or_null(const std::string& text);

}  // namespace ropewalk
