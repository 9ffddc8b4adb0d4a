#pragma once
// diff: two MCAP files by content: not bytes, chunks or ids, but what they say.
#include "ropewalk/engine/mcap/rewrite.h"

namespace ropewalk {

struct McapDiffRequest {
  std::string left;
  std::string right;
  McapSelection selection;  ///< what is compared; renames do not apply
  bool ignore_sequence = false;
  bool ignore_publish_time = false;
  std::size_t max_listed = 20;  ///< differences listed one by one
};

struct McapDifference {
  enum class Kind : std::uint8_t { only_left, only_right, changed };
  Kind kind = Kind::changed;
  std::string what;  ///< "message", "schema", "channel", "metadata", "attachment", "profile"
  std::string name;  ///< topic or name
  std::uint64_t log_time = 0;
  std::string detail;
};

struct McapDiffReport {
  struct Counts {
    std::uint64_t equal = 0;
    std::uint64_t changed = 0;  ///< same topic and log time, other payload or head
    std::uint64_t only_left = 0;
    std::uint64_t only_right = 0;
  };
  std::string left;
  std::string right;
  std::map<std::string, Counts> topics;
  std::vector<McapDifference> differences;  ///< the first ones
  std::uint64_t difference_count = 0;
  std::vector<FileProblem> problems;
  bool equal() const { return difference_count == 0; }
  Json to_json() const;
};

/// Messages of equal log time are compared without regard to their order. Errors: those of
/// open_mcap; cancelled. Limits: about 64 bytes per message of one log time.
Result<McapDiffReport> diff_mcap(const McapDiffRequest& request, const RunContext& context);

}  // namespace ropewalk
