#pragma once
// simulate: a raw dataset drawn and written as a recorder would, with the quality that the checks
// of `review scan` find in it. Nothing of it is visible before all of it is.
#include <filesystem>
#include <string>
#include <vector>

#include "ropewalk/dataset/simulated/simulated.h"
#include "ropewalk/stage/quality/checks.h"

namespace ropewalk {

struct SimulateRequest {
  std::filesystem::path out;  ///< root of the dataset; must not exist, or be an empty directory
  SimulatedOptions options;
  bool scan = true;  ///< run the checks; off: no row has a quality
};

struct SimulatedEpisode {
  std::int64_t episode_index = 0;
  std::int64_t length = 0;
  std::string task;
  std::vector<SimulatedFault> faults;  ///< injected
  QualityReport quality;               ///< found by the checks
};

struct SimulateReport {
  std::filesystem::path out;
  std::vector<SimulatedEpisode> episodes;
  std::int64_t frames = 0;    ///< grid frames
  std::int64_t pictures = 0;  ///< drawn and stored
  std::int64_t red = 0;
  std::uint64_t bytes = 0;  ///< of all files
  bool scanned = false;
  double seconds = 0;
  Json to_json() const;
};

/// Errors: invalid_argument for the options; already_exists when there is something at `out`;
/// resource_exhausted for a full disk; cancelled: nothing is left behind.
Result<SimulateReport> simulate(const SimulateRequest& request, const RunContext& context);

}  // namespace ropewalk
