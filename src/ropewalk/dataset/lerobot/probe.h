#pragma once
// probe: what kind of LeRobot dataset lies at a path. Decided by the files that are there, never by
// the version string alone, which public datasets get wrong.
#include <filesystem>
#include <string>
#include <string_view>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {

enum class LerobotGeneration { v20, v21, v30 };

/// "lerobot_v20", "lerobot_v21", "lerobot_v3".
std::string_view lerobot_format_name(LerobotGeneration generation);

struct LerobotProbe {
  LerobotGeneration generation = LerobotGeneration::v21;
  std::string declared;  ///< `codebase_version` as found; empty when absent
};

/// Looks at `meta/` alone. Errors: not_found (no such directory, or no meta/info.json in it; a
/// dataset in a subdirectory or a backup of the file is named); unimplemented with reason
/// LEROBOT_V1 or LANCE; failed_precondition with reason OTHER_FORMAT for our HDF5 and MCAP exports;
/// data_loss for an info.json that cannot be parsed.
Result<LerobotProbe> probe_lerobot(const std::filesystem::path& root, const Limits& limits = {});

}  // namespace ropewalk
