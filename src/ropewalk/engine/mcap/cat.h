#pragma once
// cat: messages as text: lines for people, one JSON document a line, or a CSV table of one topic.
// Payloads of every encoding that format/message knows are decoded by the schema beside them.
#include <functional>
#include <map>

#include "ropewalk/engine/mcap/rewrite.h"

namespace ropewalk {

enum class CatFormat : std::uint8_t { text, ndjson, csv };
std::optional<CatFormat> cat_format_from_name(std::string_view name);

struct CatRequest {
  std::vector<std::string> inputs;  ///< several are merged by log time
  McapSelection selection;
  std::vector<std::string> topics;  ///< exact names, beside the expressions; empty: all
  McapOrder order = McapOrder::log_time;
  CatFormat format = CatFormat::text;
  /// Automatic: for ndjson a number of seconds with nine places, else as format_time.
  TimeFormat time_format = TimeFormat::automatic;
  bool elide_bytes = false;  ///< long bytes and rows of numbers become a note of their length
  std::uint64_t limit = 0;   ///< messages at most; 0: all
  bool lenient = false;
};

struct CatReport {
  std::uint64_t messages = 0;
  /// Messages whose payload does not fit its schema: printed as base64.
  std::uint64_t undecodable = 0;
  std::map<std::string, std::string> undecodable_topics;  ///< topic → the first error
  /// Topics whose encoding has no decoder: printed as base64. Topic → why.
  std::map<std::string, std::string> raw_topics;
  std::uint64_t ragged_rows = 0;  ///< csv: rows with fields that the first row has not
  std::vector<FileProblem> problems;
  bool lossy() const;
};

/// Hands text to `write`, in pieces of many lines. Errors: invalid_argument for csv without exactly
/// one topic; those of open_mcap and `write`; cancelled.
Result<CatReport> cat_mcap(const CatRequest& request,
                           const std::function<Status(std::string_view)>& write,
                           const RunContext& context);

}  // namespace ropewalk
