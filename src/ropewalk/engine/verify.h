#pragma once
// verify: re-reads a published pair, or one half, and proves it against its source. What it prints
// is the delivery checklist. Spec: review-export-upload 6.3 step 9, 7.0.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/engine/marker.h"
#include "ropewalk/engine/prove.h"

namespace ropewalk {

struct VerifyRequest {
  std::filesystem::path path;  ///< a pair or a half
  std::optional<std::filesystem::path>
      against;        ///< the source; the marker's source_dir unless given
  bool full = false;  ///< decode every frame
};

struct ChecklistItem {
  std::string name;
  enum class Outcome { passed, failed, skipped } outcome = Outcome::passed;
  std::string detail;
};

struct HalfVerification {
  std::filesystem::path path;
  SplitMarker marker;
  std::int64_t episodes = 0;
  std::int64_t frames = 0;
  std::vector<ChecklistItem> checklist;
  Findings findings;
  bool passed() const;
};

struct VerifyReport {
  std::string format;
  std::vector<HalfVerification> halves;
  bool recorded = false;  ///< verify.json was written beside the halves
  double seconds = 0;
  bool passed() const;
  Json to_json() const;
};

/// A fault in the data is a failed item, not an error.
/// Errors: not_found; failed_precondition for a path that is no pair and no half; cancelled.
Result<VerifyReport> verify_path(const VerifyRequest& request, const RunContext& context);

}  // namespace ropewalk
