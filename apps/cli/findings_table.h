#pragma once
// A table of findings for people.
#include <string>

#include "ropewalk/base/core/finding.h"

namespace ropewalk::cli {

/// Shows the first `most` entries and tells how many are left.
std::string findings_table(const Findings& findings, std::size_t most);

}  // namespace ropewalk::cli
