#include "ropewalk/engine/mcap/selection.h"

#include <regex>
#include <unordered_set>

#include <fmt/format.h>

namespace ropewalk {
namespace {

// std::regex recurses once per character: longer names would overflow the stack.
constexpr std::size_t kMaxTopicChars = 4096;

Result<std::vector<std::regex>> compile(const std::vector<std::string>& texts) {
  std::vector<std::regex> out;
  for (const std::string& text : texts) {
    try {
      out.emplace_back(text, std::regex::ECMAScript | std::regex::optimize);
    } catch (const std::regex_error& error) {
      return invalid_argument(fmt::format("'{}' is no regular expression: {}", text, error.what()));
    }
  }
  return out;
}

}  // namespace

struct TopicFilter::Impl {
  std::vector<std::regex> include;
  std::vector<std::regex> exclude;
};

Result<TopicFilter> TopicFilter::create(const std::vector<std::string>& include,
                                        const std::vector<std::string>& exclude) {
  auto impl = std::make_shared<Impl>();
  ROPEWALK_ASSIGN_OR_RETURN(impl->include, compile(include));
  ROPEWALK_ASSIGN_OR_RETURN(impl->exclude, compile(exclude));
  return TopicFilter(std::move(impl));
}

bool TopicFilter::lets_all_in() const { return impl_->include.empty() && impl_->exclude.empty(); }

Result<bool> TopicFilter::matches(const std::string& topic) const {
  if (lets_all_in()) return true;
  if (topic.size() > kMaxTopicChars) {
    return resource_exhausted(
        fmt::format("a topic of {} characters is too long for topic expressions (at most {})",
                    topic.size(), kMaxTopicChars));
  }
  const auto any = [&](const std::vector<std::regex>& expressions) {
    for (const std::regex& expression : expressions) {
      if (std::regex_match(topic, expression)) return true;
    }
    return false;
  };
  try {
    return (impl_->include.empty() || any(impl_->include)) && !any(impl_->exclude);
  } catch (const std::regex_error& error) {
    return resource_exhausted(fmt::format("matching topic '{}': {}", topic, error.what()));
  }
}

Status McapSelection::validate() const {
  if (!include_topics.empty() && !exclude_topics.empty()) {
    return invalid_argument("give topics to include or topics to exclude, not both");
  }
  if (end_time.has_value() && *end_time <= begin_time) {
    return invalid_argument(fmt::format(
        "the range of times is empty: it ends at {} and starts at {}", *end_time, begin_time));
  }
  std::unordered_set<std::string_view> from;
  for (const auto& [old_name, new_name] : rename) {
    if (!from.insert(old_name).second) {
      return invalid_argument(fmt::format("topic '{}' is renamed twice", old_name));
    }
  }
  return ok_status();
}

std::string McapSelection::renamed(const std::string& topic) const {
  for (const auto& [old_name, new_name] : rename) {
    if (old_name == topic) return topic_prefix + new_name;
  }
  return topic_prefix + topic;
}

Result<std::optional<std::vector<std::string>>> selected_topics(const mcap::Reader& reader,
                                                                const TopicFilter& filter) {
  if (filter.lets_all_in()) return std::optional<std::vector<std::string>>();
  std::vector<std::string> topics;
  std::unordered_set<std::string_view> seen;
  for (const auto& [id, channel] : reader.channels()) {
    if (!seen.insert(channel.topic).second) continue;
    ROPEWALK_ASSIGN_OR_RETURN(const bool wanted, filter.matches(channel.topic));
    if (wanted) topics.push_back(channel.topic);
  }
  return std::optional(std::move(topics));
}

}  // namespace ropewalk
