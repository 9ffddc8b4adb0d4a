#pragma once
// LedgerLine: one line of meta/ledger.jsonl.
// Spec: review-export-upload 3.2.
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/base/core/json.h"

namespace ropewalk {

enum class LedgerKind {
  saved,
  checked,  ///< quality and issues by a later scan
  verdict,
  note,
  reasons,
  annotation,
  marks,
  segments,
  trashed,
  restored,
  realigned,
  imported,
  external_edit,
  exported,
  uploaded,
  unknown  ///< of a later program: kept, counted for revisions, applied by its keys
};
std::string_view ledger_kind_name(LedgerKind kind);
std::optional<LedgerKind> ledger_kind_from_name(std::string_view name);

struct LedgerLine {
  std::int64_t rev = 0;
  std::string at;  ///< UTC ISO with microseconds and Z
  std::string actor;
  std::string client;
  LedgerKind kind = LedgerKind::unknown;
  std::optional<std::int64_t> episode_index;  ///< absent for lines about the whole dataset
  std::string take_id;
  Json before = Json::object();  ///< only the keys that changed
  Json after = Json::object();
  std::string batch;                   ///< joins the lines of one bulk action
  std::optional<std::int64_t> undoes;  ///< the `rev` that this line takes back
};

/// The object of one line, keys in the order of the specification.
Json to_json(const LedgerLine& line);
/// Reads one line without its LF. Errors: data_loss naming the field that is missing or wrong.
Result<LedgerLine> parse_ledger_line(std::string_view text, const Limits& limits = {});

/// Where reading a ledger stopped.
struct LedgerScan {
  std::uint64_t valid_end = 0;  ///< offset past the last line that counts
  std::uint64_t file_size = 0;
  std::int64_t last_rev = 0;
  bool is_torn() const { return valid_end != file_size; }
};

/// Reads the lines of `path` from byte `offset` (the start of a line) on. A file that is not there
/// has no lines. A tail without LF, or from the first line with a zero byte on, does not count; a
/// whole line that does not parse is skipped with the finding `ledger_line_invalid`.
/// Errors: unavailable; resource_exhausted for a line longer than Limits.
Result<LedgerScan> scan_ledger(const std::filesystem::path& path, std::uint64_t offset,
                               const Limits& limits, Findings& findings,
                               const std::function<void(LedgerLine&&)>& on_line);

/// Units: microseconds since 1970 of "YYYY-MM-DDTHH:MM:SS[.f…]Z"; nullopt for any other text.
std::optional<std::int64_t> ledger_time_us(std::string_view text);
/// Returns a time in the form of `at` that is later than `previous`: now, or a microsecond more.
std::string next_ledger_time(std::string_view previous);

}  // namespace ropewalk
