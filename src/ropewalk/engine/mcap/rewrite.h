#pragma once
// rewrite: the one way in which MCAP files are copied: a selection, an order, and how to write. The
// commands filter, sort, compress, decompress, merge and trim are requests to it; split writes
// several parts with the same machinery (split.h). What the selection keeps arrives unchanged:
// payloads, times, sequence numbers, definitions, metadata, attachments.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/engine/mcap/files.h"
#include "ropewalk/engine/mcap/selection.h"

namespace ropewalk {

enum class McapOrder : std::uint8_t {
  preserve,  ///< the order of the file; of several files one after the other
  log_time,  ///< equal times keep the order of the file, then of the inputs
  topic,     ///< topic by topic, each by log time, in chunks of its own
};
std::optional<McapOrder> mcap_order_from_name(std::string_view name);

/// Which channels of different inputs become one: equal schemas always do.
enum class ChannelCoalescing : std::uint8_t {
  automatic,  ///< same topic, schema, encoding and metadata
  force,      ///< same topic, schema and encoding: the first metadata stay
  none,       ///< every channel of every input stays apart
};
std::optional<ChannelCoalescing> coalescing_from_name(std::string_view name);

struct McapWriting {
  /// "preserve" keeps the codec of the inputs; else "none", "lz4" or "zstd".
  std::string compression = "preserve";
  int level = 0;                           ///< 0: lz4 fast mode, zstd 1
  std::uint64_t chunk_bytes = 1ULL << 20;  ///< a chunk closes after reaching it
  bool chunked = true;
  bool crc = true;
  bool force_compression = false;

  /// Errors: invalid_argument naming the field.
  Status validate() const;
};

struct RewriteRequest {
  std::vector<std::string> inputs;  ///< paths; "-" is standard input
  std::string output;               ///< a path; "-" is standard output
  bool replace = false;             ///< an existing output is replaced, atomically
  McapSelection selection;
  McapOrder order = McapOrder::preserve;
  McapWriting writing;
  ChannelCoalescing coalescing = ChannelCoalescing::automatic;
  /// Keeps metadata of one name with different content from several inputs; off: an error.
  bool allow_duplicate_metadata = false;
  bool lenient = false;  ///< copies what cannot be verified, too
};

struct TopicCount {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;  ///< of payload
};

struct RewriteReport {
  std::string output;
  std::uint64_t messages = 0;
  std::uint64_t metadata = 0;
  std::uint64_t attachments = 0;
  std::uint64_t bytes_read = 0;  ///< size of the inputs
  std::uint64_t bytes_written = 0;
  double seconds = 0;
  std::map<std::string, TopicCount> topics;  ///< by the name written
  std::vector<FileProblem> problems;         ///< of the inputs
  bool lossy() const;  ///< some problem means that something could not be copied
  Json to_json() const;
};

/// Errors: invalid_argument; those of open_mcap and OutputFile; failed_precondition for duplicate
/// metadata; cancelled. Nothing is left behind. Limits: memory is about a chunk per input and per
/// group of channels, and the budget of the readers.
Result<RewriteReport> rewrite_mcap(const RewriteRequest& request, const RunContext& context);

}  // namespace ropewalk
