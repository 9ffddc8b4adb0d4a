#pragma once
// QualityReport: what the automatic checks found in one episode. Issues make it red; findings never
// change its quality. One entry per (code, camera or column), however many frames it covers.
// Spec: review-export-upload 2.4, 2.5, R-DATA-5.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/media.h"

namespace ropewalk {

struct QualityEntry {
  std::string severity = "red";  ///< "red" for issues; "info" or "warn" for findings
  std::string code;              ///< stable, lower_snake_case
  std::string detail;            ///< one sentence for people
  std::int64_t count = 0;        ///< frames concerned; 0: not known by frame
  std::optional<std::int64_t> first_frame;
  std::optional<std::int64_t> last_frame;  ///< inclusive
  std::optional<double> max;               ///< the largest measure; its unit stands in `detail`
  std::string stream;                      ///< camera or column; empty: the whole episode
  /// Where, when it is more than one stretch: half-open, ascending, at most kMaxSpans.
  std::vector<FrameRange> spans;
  Json extra;  ///< members of an issue found in the row that are none of the above
};

inline constexpr std::size_t kMaxSpans = 8;

Json to_json(const QualityEntry& issue);
/// Reads an issue as any generation wrote it; members that are missing stay at their defaults.
QualityEntry issue_from_json(const Json& json);

struct QualityReport {
  std::vector<QualityEntry> issues;    ///< red
  std::vector<QualityEntry> findings;  ///< info and warn
  std::int64_t pictures = 0;           ///< decoded to find them

  /// "red" when there is an issue, else "green".
  std::string quality() const { return issues.empty() ? "green" : "red"; }
  Json issues_json() const;
  Json findings_json() const;
  /// Whether an issue or finding of `code` (and `stream`, unless empty) is there.
  bool has(std::string_view code, std::string_view stream = {}) const;
};

}  // namespace ropewalk
