#pragma once
// split: one MCAP file into several, each a complete file with the metadata of the input.
#include "ropewalk/engine/mcap/rewrite.h"

namespace ropewalk {

/// Exactly one of duration_ns, bytes, count and by_topic says where a part ends.
struct SplitRequest {
  std::string input;             ///< a path; "-" is standard input
  std::filesystem::path output;  ///< a directory, made when it is not there
  std::string stem;              ///< of file names; empty: that of the input
  bool replace = false;
  std::uint64_t duration_ns = 0;  ///< parts of this length from the first log time on
  std::uint64_t bytes = 0;        ///< a part ends when its data reach this size
  std::uint64_t count = 0;        ///< messages per part
  bool by_topic = false;
  McapSelection selection;
  McapOrder order = McapOrder::preserve;
  McapWriting writing;
  bool lenient = false;

  /// Errors: invalid_argument.
  Status validate() const;
};

struct SplitPart {
  std::string path;
  std::string topic;  ///< of a split by topic
  std::uint64_t messages = 0;
  std::uint64_t start_time = 0;  ///< of log times; 0 without messages
  std::uint64_t end_time = 0;
  std::uint64_t bytes = 0;
};

struct SplitReport {
  std::vector<SplitPart> parts;
  std::uint64_t messages = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t bytes_written = 0;
  double seconds = 0;
  std::vector<FileProblem> problems;
  bool lossy() const;
  Json to_json() const;
};

/// Attachments go to the part whose range of log times holds theirs in a split by duration, else to
/// the first part. All parts appear when all are written. Errors: as rewrite_mcap.
Result<SplitReport> split_mcap(const SplitRequest& request, const RunContext& context);

}  // namespace ropewalk
