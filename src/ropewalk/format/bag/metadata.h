#pragma once
// BagMetadata: the metadata.yaml of a ROS 2 bag, versions 1 to 9, whatever the storage of its
// files.
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk::bag {

struct TopicMetadata {
  std::string name;
  std::string type;
  std::string serialization_format;
  std::string offered_qos_profiles;  ///< YAML text; from version 9 on a tree, given as text here
  std::string type_hash;
  std::uint64_t message_count = 0;
};

struct FileMetadata {
  std::string path;  ///< a plain file name
  std::int64_t starting_time_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t message_count = 0;
};

struct BagMetadata {
  std::int64_t version = 8;
  std::string storage_identifier;  ///< "sqlite3" or "mcap"
  std::vector<std::string> files;  ///< plain names beside metadata.yaml, in the order of recording
  std::vector<FileMetadata> file_details;  ///< from version 5 on
  std::int64_t starting_time_ns = 0;
  std::int64_t duration_ns = 0;
  std::uint64_t message_count = 0;
  std::vector<TopicMetadata> topics;
  std::string compression_format;  ///< "zstd"; "" for none
  std::string compression_mode;    ///< "", "file" or "message", in lower case
  std::map<std::string, std::string> custom_data;
  std::string ros_distro;
};

/// Reads metadata.yaml, or the same without its outermost key as databases carry it. Directories in
/// front of file names (versions before 4) are dropped: files lie beside metadata.yaml.
/// Errors: data_loss naming line and column, or the key that is missing; resource_exhausted.
Result<BagMetadata> parse_bag_metadata(std::string_view yaml, const Limits& limits = {});
/// Reads `directory`/metadata.yaml. Errors: not_found; as parse_bag_metadata.
Result<BagMetadata> read_bag_metadata(const std::filesystem::path& directory,
                                      const Limits& limits = {});
/// Writes version 8: `outermost` adds the key rosbag2_bagfile_information around it.
std::string to_yaml(const BagMetadata& metadata, bool outermost = true);

/// Returns QoS profiles with the policies as numbers, as every version up to 8 has them.
std::string qos_with_numbers(std::string_view profiles);

}  // namespace ropewalk::bag
