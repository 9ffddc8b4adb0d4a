#pragma once
// The verdict rule: PASS > FAIL > red > green. One function decides which half of a pair an episode
// belongs to; export, lists, sheets, counts and every shell call it.
// Spec: review-export-upload 5.1.
#include <string_view>

namespace ropewalk {

/// The half of the pair.
enum class Outcome { accepted, rejected };
/// The row of the rule that decided.
enum class DecidedBy {
  pass,  ///< the operator's verdict is pass, even over red
  fail,  ///< the operator's verdict is fail, even over green
  red,   ///< no verdict, automatic issue
  clean  ///< no verdict, green or no quality
};

struct Decision {
  Outcome outcome = Outcome::accepted;
  DecidedBy by = DecidedBy::clean;
  bool overrides_quality = false;  ///< the quality alone would have decided otherwise
  bool operator==(const Decision&) const = default;
};

/// Decides from an effective verdict and a quality, compared without regard to case. Anything but
/// "pass" and "fail" counts as no verdict, anything but "red" as clean.
Decision decide(std::string_view verdict, std::string_view quality);

/// "accepted", "rejected".
std::string_view outcome_name(Outcome outcome);
/// "pass", "fail", "red", "clean".
std::string_view decided_by_name(DecidedBy by);

/// The text of the marker's `rule` key.
inline constexpr std::string_view kVerdictRule =
    "qc_verdict == fail OR (qc_verdict != pass AND quality == red)";

}  // namespace ropewalk
