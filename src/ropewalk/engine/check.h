#pragma once
// check: validates whatever lies at a path: a LeRobot dataset by its own rules, an export by
// reading it.
#include <filesystem>

#include "ropewalk/dataset/lerobot/check.h"

namespace ropewalk {

/// A pair gives one report over both halves. Errors: those of identify(); cancelled.
Result<CheckReport> check_path(const std::filesystem::path& path, const CheckOptions& options,
                               const RunContext& context);

}  // namespace ropewalk
