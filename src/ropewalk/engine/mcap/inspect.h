#pragma once
// info, ls and du: what an MCAP file holds, from its summary where that is enough.
#include <map>
#include <set>

#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/engine/mcap/files.h"

namespace ropewalk {

struct CodecUse {
  std::uint64_t chunks = 0;
  std::uint64_t compressed_bytes = 0;
  std::uint64_t uncompressed_bytes = 0;
};

struct ChannelInfo {
  mcap::Channel channel;
  std::string schema_name;  ///< empty without schema
  std::string schema_encoding;
  std::optional<std::uint64_t> messages;
  // With rates: from the times of the messages of the topic.
  double min_hz = 0;
  double max_hz = 0;
  std::uint64_t longest_gap_ns = 0;
};

struct McapInfoRequest {
  std::string input;
  /// Reads the message indexes for the range of rates of each topic. Limits: 24 bytes per message
  /// of one topic.
  bool rates = false;
};

struct McapInfoReport {
  std::string name;
  std::uint64_t size_bytes = 0;
  mcap::Header header;
  bool finished = false;
  bool has_summary = false;
  bool counted_by_reading = false;  ///< no statistics stood in the file
  std::uint64_t messages = 0;
  std::uint64_t start_time = 0;
  std::uint64_t end_time = 0;
  std::map<std::string, CodecUse> codecs;  ///< by "none", "lz4", "zstd", …
  std::uint64_t chunks = 0;
  std::uint64_t largest_chunk_bytes = 0;  ///< uncompressed
  std::uint64_t overlap_depth = 0;        ///< most chunks whose times hold one moment
  std::uint64_t overlap_bytes = 0;        ///< most uncompressed bytes of such chunks
  std::uint64_t schemas = 0;
  std::uint64_t attachments = 0;
  std::uint64_t metadata = 0;
  std::vector<ChannelInfo> channels;  ///< by id
  std::vector<FileProblem> problems;
  double duration_seconds() const { return static_cast<double>(end_time - start_time) / 1e9; }
  Json to_json() const;
};

/// Errors: those of open_mcap. An unfinished file is no error: it is read through.
Result<McapInfoReport> mcap_info(const McapInfoRequest& request, const RunContext& context);

/// Json of the records that `ls` lists, with the keys of the specification.
Json to_json(const mcap::Channel& channel, const mcap::Schema* schema);
Json to_json(const mcap::Schema& schema, bool with_data);
Json to_json(const mcap::ChunkIndex& chunk);
Json to_json(const mcap::AttachmentIndex& attachment);
Json to_json(const mcap::Metadata& metadata);
/// Text as JSON can hold it: bytes that are no UTF-8 become U+FFFD.
std::string valid_utf8(std::string_view text);

struct UsageRequest {
  std::string input;
  /// Takes the size of messages from message indexes instead of decoding chunks. What stands
  /// between two messages then counts for the first.
  bool approximate = false;
};

struct UsageReport {
  struct Use {
    std::uint64_t records = 0;
    std::uint64_t bytes = 0;
  };
  struct TopicUse {
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;         ///< payload and record heads, uncompressed
    std::uint64_t stored_bytes = 0;  ///< its share of the compressed chunks
  };
  std::string name;
  bool approximate = false;
  std::uint64_t size_bytes = 0;
  std::map<std::string, Use> records;        ///< by kind of record, as stored in the file
  std::map<std::string, Use> chunk_records;  ///< by kind of record inside chunks, uncompressed
  std::map<std::string, TopicUse> topics;
  std::vector<FileProblem> problems;
  bool lossy() const;
  Json to_json() const;
};

/// Errors: those of open_mcap; cancelled.
Result<UsageReport> mcap_usage(const UsageRequest& request, const RunContext& context);

}  // namespace ropewalk
