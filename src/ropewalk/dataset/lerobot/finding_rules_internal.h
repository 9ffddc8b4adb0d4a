#pragma once
// The codes of findings about LeRobot datasets, each with what lenient mode does and whether strict
// mode refuses. docs/findings.md is the same table for people.
#include <span>
#include <string>
#include <string_view>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/base/core/status.h"

namespace ropewalk::lerobot {

struct FindingRule {
  std::string_view code;
  Severity lenient;           ///< severity in lenient mode
  bool strict_refuses;        ///< strict mode makes it an error
  std::string_view decision;  ///< what lenient mode does
  bool advice = false;        ///< the decision says what the reader should do, in both modes
};

std::span<const FindingRule> finding_rules();
/// Returns the rule of `code`, which must be in the table.
const FindingRule& finding_rule(std::string_view code);

/// Where a finding is and what was found; code, severity and decision come from the table.
struct FindingPlace {
  std::string file = {};
  std::optional<std::int64_t> episode = {};
  std::string feature = {};
  std::optional<std::int64_t> row = {};
  std::int64_t count = 1;
  std::string declared = {};
  std::string found = {};
  std::string decision = {};              ///< instead of the table's
  std::optional<Severity> severity = {};  ///< in lenient mode, instead of the table's
};

/// Makes the entry for one mode.
Finding make_finding(std::string_view code, FindingPlace place, bool strict);

/// Findings of one opening, in one mode.
class FindingLog {
 public:
  explicit FindingLog(bool strict) : strict_(strict) {}
  void add(std::string_view code, FindingPlace place = {}) {
    findings_.add(make_finding(code, std::move(place), strict_));
  }
  /// Adds an entry that no mode survives, and returns the error that stops the opening.
  Status fatal(std::string_view code, FindingPlace place, const Status& status);
  bool strict() const { return strict_; }
  Findings& findings() { return findings_; }
  const Findings& findings() const { return findings_; }
  /// Returns the error that strict mode ends with when there are entries of severity error.
  Status refusal(const std::string& dataset) const;

 private:
  bool strict_;
  Findings findings_;
};

}  // namespace ropewalk::lerobot
