#pragma once
// Finding: one entry of a report: a stable code, a place, a count, what was declared and found, and
// the decision taken. Repairs, checks and conversions speak through it; nothing is changed
// silently.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/json.h"

namespace ropewalk {

enum class Severity { info, warning, error };

std::string_view severity_name(Severity severity);

struct Finding {
  std::string code;  ///< stable, lower_snake_case, listed in docs/errors.md
  Severity severity = Severity::warning;
  std::string file;  ///< relative to the dataset root; empty when it concerns the whole
  std::optional<std::int64_t> episode;  ///< as numbered in the source
  std::string feature;
  std::optional<std::int64_t> row;
  std::int64_t count = 1;
  std::string declared;
  std::string found;
  std::string decision;  ///< what was done, or what the reader should do
};

/// One JSON object with the keys above; absent values are left out.
Json to_json(const Finding& finding);
/// One line for people: `code: place: declared …, found …; decision (×count)`.
std::string to_line(const Finding& finding);

/// A list of findings that folds equal (code, file, episode, feature) entries into one with a
/// count.
class Findings {
 public:
  void add(Finding finding);
  void append(const Findings& other);
  const std::vector<Finding>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  bool has_errors() const;
  /// Returns the sum of `count` over entries of `code`.
  std::int64_t count(std::string_view code) const;
  Json to_json() const;

 private:
  std::vector<Finding> entries_;
};

}  // namespace ropewalk
