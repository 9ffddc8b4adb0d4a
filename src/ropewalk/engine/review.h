#pragma once
// review: what operators do to a raw dataset: scan it, list it, mark verdicts and notes, look at
// the log, undo. Every change goes through the ledger. Spec: review-export-upload 1.2, 2.5, 3.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/dataset/lerobot/ledger.h"
#include "ropewalk/stage/quality/checks.h"
#include "ropewalk/stage/quality/verdict.h"

namespace ropewalk {

struct ScanRequest {
  std::filesystem::path path;
  bool write = false;  ///< record the outcome through the ledger; needs a raw v2.1 dataset
  std::optional<std::vector<std::int64_t>> episodes;
  QualityOptions options;
  LedgerActor actor{"system", "cli"};
};

struct ScannedEpisode {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  QualityReport quality;
  std::string error;  ///< why it could not be read; such an episode is red
};

struct ScanReport {
  std::string format;
  std::vector<ScannedEpisode> episodes;
  std::int64_t red = 0;
  std::int64_t frames = 0;    ///< grid frames scanned
  std::int64_t pictures = 0;  ///< decoded
  std::int64_t recorded = 0;  ///< ledger lines written
  std::int64_t revision = 0;  ///< after writing
  double seconds = 0;
  Json to_json() const;
};

/// Runs every check that a saved episode allows, on any dataset.
/// Errors: those of open_dataset; with `write`, those of the ledger; cancelled: nothing is
/// recorded.
Result<ScanReport> review_scan(const ScanRequest& request, const RunContext& context);

/// One episode as the review list shows it.
struct ReviewEntry {
  ReviewRow row;
  Decision decision;
  std::vector<std::string> tasks;
  /// The whole row of meta/episodes.jsonl with the ledger's values; null unless episodes were
  /// named.
  Json raw;
};
struct ReviewList {
  std::vector<ReviewEntry> entries;
  std::int64_t revision = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  std::int64_t undecided = 0;  ///< without a verdict
  Findings findings;
  Json to_json() const;
};

/// Errors: those of Ledger::open_for_read; not_found naming episodes that are not there.
Result<ReviewList> review_list(const std::filesystem::path& path,
                               const std::optional<std::vector<std::int64_t>>& episodes = {});

/// Errors: invalid_argument without verdict and note; those of Ledger::mark.
Result<LedgerChange> review_mark(const std::filesystem::path& path, const MarkRequest& request,
                                 const LedgerActor& actor);
Result<std::vector<LedgerLine>> review_log(const std::filesystem::path& path,
                                           const LogFilter& filter);
Result<LedgerChange> review_undo(const std::filesystem::path& path, const UndoRequest& request,
                                 const LedgerActor& actor);
Json to_json(const LedgerChange& change);

}  // namespace ropewalk
