#include "ropewalk/format/bag/metadata.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/format/bag/yaml_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::int64_t kNewestVersion = 9;

// Reads values of one mapping and remembers the first that is missing or of another kind.
class Mapping {
 public:
  Mapping(const YamlNode& node, std::string name) : node_(node), name_(std::move(name)) {}

  const YamlNode* child(std::string_view key) const {
    const YamlNode* found = node_.find(key);
    return found != nullptr && !found->is_null() ? found : nullptr;
  }
  std::string text(std::string_view key) const {
    const YamlNode* found = child(key);
    if (found == nullptr) return {};
    return found->kind == YamlNode::Kind::scalar ? found->text : emit_yaml(*found);
  }
  std::string required_text(std::string_view key) {
    const YamlNode* found = child(key);
    if (found == nullptr || found->kind != YamlNode::Kind::scalar) {
      miss(key, "a text");
      return {};
    }
    return found->text;
  }
  std::int64_t required_integer(std::string_view key) {
    const YamlNode* found = child(key);
    const auto value = found != nullptr ? found->integer() : std::nullopt;
    if (!value) miss(key, "an integer");
    return value.value_or(0);
  }
  std::uint64_t required_count(std::string_view key) {
    const std::int64_t value = required_integer(key);
    if (value < 0) miss(key, "a count");
    return value < 0 ? 0 : static_cast<std::uint64_t>(value);
  }
  // `key: {inner: integer}`.
  std::int64_t required_nested(std::string_view key, std::string_view inner) {
    const YamlNode* found = child(key);
    if (found == nullptr || found->kind != YamlNode::Kind::mapping) {
      miss(key, "a mapping");
      return 0;
    }
    Mapping nested(*found, fmt::format("{}.{}", name_, key));
    const std::int64_t value = nested.required_integer(inner);
    if (status_.ok()) status_ = nested.status_;
    return value;
  }
  const Status& status() const { return status_; }
  const std::string& name() const { return name_; }

 private:
  void miss(std::string_view key, std::string_view expected) {
    if (!status_.ok()) return;
    status_ = data_loss(fmt::format("{}.{}: expected {}", name_, key, expected));
  }

  const YamlNode& node_;
  std::string name_;
  Status status_;
};

std::string file_name(std::string_view path) {
  return std::string(path.substr(path.find_last_of("/\\") + 1));
}

Result<TopicMetadata> parse_topic(const YamlNode& node, std::size_t index) {
  Mapping entry(node, fmt::format("topics_with_message_count[{}]", index));
  const YamlNode* inner = entry.child("topic_metadata");
  if (inner == nullptr) return data_loss(entry.name() + ".topic_metadata: expected a mapping");
  Mapping topic(*inner, entry.name() + ".topic_metadata");
  TopicMetadata out{.name = topic.required_text("name"),
                    .type = topic.required_text("type"),
                    .serialization_format = topic.text("serialization_format"),
                    .offered_qos_profiles = topic.text("offered_qos_profiles"),
                    .type_hash = topic.text("type_description_hash"),
                    .message_count = entry.required_count("message_count")};
  if (out.offered_qos_profiles == "[]") out.offered_qos_profiles.clear();
  ROPEWALK_RETURN_IF_ERROR(topic.status());
  ROPEWALK_RETURN_IF_ERROR(entry.status());
  return out;
}

Result<FileMetadata> parse_file(const YamlNode& node, std::size_t index) {
  Mapping entry(node, fmt::format("files[{}]", index));
  FileMetadata out{
      .path = file_name(entry.required_text("path")),
      .starting_time_ns = entry.required_nested("starting_time", "nanoseconds_since_epoch"),
      .duration_ns = entry.required_nested("duration", "nanoseconds"),
      .message_count = entry.required_count("message_count")};
  ROPEWALK_RETURN_IF_ERROR(entry.status());
  return out;
}

// The policies of QoS profiles as numbers, from the ROS middleware interface.
struct Policy {
  std::string_view key;
  std::array<std::string_view, 6> names;
};
constexpr Policy kPolicies[] = {
    {"history", {"system_default", "keep_last", "keep_all", "unknown", "", ""}},
    {"reliability", {"system_default", "reliable", "best_effort", "unknown", "best_available", ""}},
    {"durability",
     {"system_default", "transient_local", "volatile", "unknown", "best_available", ""}},
    {"liveliness",
     {"system_default", "automatic", "manual_by_node", "manual_by_topic", "unknown",
      "best_available"}},
};

}  // namespace

Result<BagMetadata> parse_bag_metadata(std::string_view yaml, const Limits& limits) {
  if (yaml.size() > limits.max_json_bytes) {
    return resource_exhausted(fmt::format("metadata of {} bytes is above the limit of {}",
                                          yaml.size(), limits.max_json_bytes));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const YamlNode document, parse_yaml(yaml));
  const YamlNode* inner = document.find("rosbag2_bagfile_information");
  Mapping root(inner != nullptr ? *inner : document, "rosbag2_bagfile_information");
  BagMetadata out{
      .version = root.required_integer("version"),
      .storage_identifier = root.text("storage_identifier"),
      .starting_time_ns = root.required_nested("starting_time", "nanoseconds_since_epoch"),
      .duration_ns = root.required_nested("duration", "nanoseconds"),
      .message_count = root.required_count("message_count"),
      .compression_format = root.text("compression_format"),
      .compression_mode = root.text("compression_mode"),
      .ros_distro = root.text("ros_distro")};
  ROPEWALK_RETURN_IF_ERROR(root.status());
  if (out.version < 1 || out.version > kNewestVersion) {
    return unimplemented(
        fmt::format("metadata version {}: 1 to {} are read", out.version, kNewestVersion));
  }
  std::ranges::transform(out.compression_mode, out.compression_mode.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  if (out.compression_mode == "none") out.compression_mode.clear();
  if (const YamlNode* files = root.child("relative_file_paths")) {
    for (const YamlNode& file : files->items) {
      std::string name = file_name(file.text);
      if (name.empty() || name == "." || name == "..") {
        return data_loss(fmt::format("relative_file_paths: \"{}\" is no file", file.text));
      }
      out.files.push_back(std::move(name));
    }
  }
  if (const YamlNode* files = root.child("files")) {
    for (const YamlNode& file : files->items) {
      ROPEWALK_ASSIGN_OR_RETURN(FileMetadata details, parse_file(file, out.file_details.size()));
      out.file_details.push_back(std::move(details));
    }
  }
  if (const YamlNode* topics = root.child("topics_with_message_count")) {
    for (const YamlNode& topic : topics->items) {
      ROPEWALK_ASSIGN_OR_RETURN(TopicMetadata details, parse_topic(topic, out.topics.size()));
      out.topics.push_back(std::move(details));
    }
  }
  if (const YamlNode* custom = root.child("custom_data")) {
    for (std::size_t i = 0; i < custom->keys.size(); ++i) {
      out.custom_data.emplace(custom->keys[i], custom->items[i].text);
    }
  }
  return out;
}

Result<BagMetadata> read_bag_metadata(const std::filesystem::path& directory,
                                      const Limits& limits) {
  const auto path = directory / "metadata.yaml";
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, limits.max_json_bytes));
  auto metadata = parse_bag_metadata(text, limits);
  if (!metadata.ok()) return std::move(metadata).status().with_context(path.string());
  return metadata;
}

std::string to_yaml(const BagMetadata& metadata, bool outermost) {
  std::string out;
  const std::string pad = outermost ? "  " : "";
  const auto line = [&](std::size_t indent, std::string_view text) {
    out += pad + std::string(indent, ' ') + std::string(text) + '\n';
  };
  if (outermost) out += "rosbag2_bagfile_information:\n";
  line(0, "version: 8");
  line(0, "storage_identifier: " + quote_yaml(metadata.storage_identifier));
  line(0, "duration:");
  line(2, fmt::format("nanoseconds: {}", metadata.duration_ns));
  line(0, "starting_time:");
  line(2, fmt::format("nanoseconds_since_epoch: {}", metadata.starting_time_ns));
  line(0, fmt::format("message_count: {}", metadata.message_count));
  line(0, metadata.topics.empty() ? "topics_with_message_count: []" : "topics_with_message_count:");
  for (const TopicMetadata& topic : metadata.topics) {
    line(2, "- topic_metadata:");
    line(6, "name: " + quote_yaml(topic.name));
    line(6, "type: " + quote_yaml(topic.type));
    line(6, "serialization_format: " + quote_yaml(topic.serialization_format));
    line(6, "offered_qos_profiles: " + quote_yaml(qos_with_numbers(topic.offered_qos_profiles)));
    line(6, "type_description_hash: " + quote_yaml(topic.type_hash));
    line(4, fmt::format("message_count: {}", topic.message_count));
  }
  line(0, "compression_format: " + quote_yaml(metadata.compression_format));
  line(0, "compression_mode: " + quote_yaml(metadata.compression_mode));
  line(0, metadata.files.empty() ? "relative_file_paths: []" : "relative_file_paths:");
  for (const std::string& file : metadata.files) line(2, "- " + quote_yaml(file));
  line(0, metadata.file_details.empty() ? "files: []" : "files:");
  for (const FileMetadata& file : metadata.file_details) {
    line(2, "- path: " + quote_yaml(file.path));
    line(4, "starting_time:");
    line(6, fmt::format("nanoseconds_since_epoch: {}", file.starting_time_ns));
    line(4, "duration:");
    line(6, fmt::format("nanoseconds: {}", file.duration_ns));
    line(4, fmt::format("message_count: {}", file.message_count));
  }
  line(0, metadata.custom_data.empty() ? "custom_data: ~" : "custom_data:");
  for (const auto& [key, value] : metadata.custom_data) {
    line(2, quote_yaml(key) + ": " + quote_yaml(value));
  }
  line(0, "ros_distro: " + quote_yaml(metadata.ros_distro));
  return out;
}

std::string qos_with_numbers(std::string_view profiles) {
  std::string out;
  while (!profiles.empty()) {
    const auto end = profiles.find('\n');
    std::string_view line = profiles.substr(0, end);
    profiles.remove_prefix(end == std::string_view::npos ? profiles.size() : end + 1);
    const auto colon = line.find(": ");
    const auto key_at = line.find_first_not_of(" -");
    std::optional<std::size_t> number;
    if (colon != std::string_view::npos && key_at < colon) {
      const std::string_view key = line.substr(key_at, colon - key_at);
      const std::string_view value = line.substr(colon + 2);
      for (const Policy& policy : kPolicies) {
        const auto name = std::ranges::find(policy.names, value);
        if (policy.key == key && !value.empty() && name != policy.names.end()) {
          number = static_cast<std::size_t>(name - policy.names.begin());
        }
      }
    }
    out += number ? fmt::format("{}: {}", line.substr(0, colon), *number) : std::string(line);
    if (end != std::string_view::npos) out += '\n';
  }
  return out;
}

}  // namespace ropewalk::bag
