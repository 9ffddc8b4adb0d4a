#pragma once
// convert between MCAP and the bags of ROS: what the input is, its content decides, not its name.
#include "ropewalk/engine/mcap/rewrite.h"

namespace ropewalk {

enum class BagTarget : std::uint8_t { mcap, rosbag1, rosbag2 };
std::optional<BagTarget> bag_target_from_name(std::string_view name);

struct BagConvertRequest {
  /// A .bag, .db3, .db3.zstd or MCAP file, or a directory with metadata.yaml, its files of either
  /// kind.
  std::string input;
  std::string output;  ///< a file; for rosbag2 a directory
  /// Without it by the name of the output: .mcap, .bag, else a directory for rosbag2.
  std::optional<BagTarget> target;
  bool replace = false;               ///< of files; a directory is never replaced
  std::filesystem::path definitions;  ///< folder of message definitions, for bags without them
  McapWriting writing{.compression = "zstd"};  ///< of MCAP files
  std::string bag_compression = "none";        ///< of ROS 1 chunks: none, lz4, bz2
  bool lenient = false;                        ///< keeps what decodes of damaged chunks
  /// Leaves out channels that the target cannot hold; off: they are an error, by name.
  bool skip_unsupported = false;

  /// Errors: invalid_argument naming the field.
  Status validate() const;
};

struct BagConvertReport {
  std::string from;  ///< "rosbag1", "rosbag2", "mcap"
  std::string to;
  std::string output;
  std::uint64_t messages = 0;
  std::uint64_t bytes_written = 0;  ///< 0 for a directory
  double seconds = 0;
  std::map<std::string, TopicCount> topics;
  /// What the target cannot hold: "3 attachments", "sequence numbers of 10 messages", ….
  std::vector<std::string> dropped;
  std::vector<std::string> notes;     ///< channels without a definition, and the like
  std::vector<std::string> problems;  ///< of the input, one line each
  bool lossy = false;
  Json to_json() const;
};

/// Errors: those of the readers and writers; failed_precondition naming the channels that the
/// target cannot hold; cancelled. Nothing is left behind. Spec: ROS 2 bag conventions of the MCAP
/// page.
Result<BagConvertReport> convert_bag(const BagConvertRequest& request, const RunContext& context);

}  // namespace ropewalk
