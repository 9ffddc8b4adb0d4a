#pragma once
// What of an MCAP file a command works on: topics by regular expression, a range of log times, and
// new names for topics.
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ropewalk/format/mcap/mcap.h"

namespace ropewalk {

/// Reads a time: integer nanoseconds, or RFC 3339 such as 2026-01-31T12:00:00.25Z or with an offset
/// such as +02:00. Errors: invalid_argument quoting the text.
Result<std::uint64_t> parse_time(std::string_view text);
/// Reads a duration: "10s", "1.5min", "2h", "250ms", "40us", "7ns"; a bare number means seconds.
Result<std::uint64_t> parse_duration(std::string_view text);
/// Reads a size: "10MB" (10^6), "4MiB" (2^20), "512k", or bytes.
Result<std::uint64_t> parse_byte_size(std::string_view text);

/// How times are printed.
enum class TimeFormat : std::uint8_t { automatic, rfc3339, seconds, nanoseconds };
std::optional<TimeFormat> time_format_from_name(std::string_view name);
/// Automatic: RFC 3339 for times from 1980 on, else seconds.
std::string format_time(std::uint64_t time_ns, TimeFormat format);
/// "1h 2m 3.5s", "12.000000004s".
std::string format_duration(std::uint64_t duration_ns);

/// Topic names by regular expression; an expression matches a whole name.
/// Threads: const members may run concurrently.
class TopicFilter {
 public:
  /// Without `include` every topic is let in. Errors: invalid_argument naming the expression.
  static Result<TopicFilter> create(const std::vector<std::string>& include,
                                    const std::vector<std::string>& exclude);
  /// Errors: resource_exhausted for a name too long to match.
  Result<bool> matches(const std::string& topic) const;
  bool lets_all_in() const;

 private:
  struct Impl;
  explicit TopicFilter(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  std::shared_ptr<const Impl> impl_;
};

/// Units: log times in nanoseconds, half-open.
struct McapSelection {
  std::vector<std::string> include_topics;  ///< regular expressions; empty: all
  std::vector<std::string> exclude_topics;  ///< regular expressions; not beside include_topics
  /// Topics whose last message before begin_time is kept too: maps, transforms, latched state.
  std::vector<std::string> last_per_channel;
  std::uint64_t begin_time = 0;
  std::optional<std::uint64_t> end_time;  ///< without it to the last nanosecond there is
  bool metadata = true;
  bool attachments = true;
  /// Keeps channels and schemas that no message uses. The file stays complete.
  bool unused_definitions = true;
  std::vector<std::pair<std::string, std::string>> rename;  ///< exact topic → new topic
  std::string topic_prefix;                                 ///< put before every topic

  /// Errors: invalid_argument when fields contradict each other.
  Status validate() const;
  /// The name that `topic` gets: renamed, then prefixed.
  std::string renamed(const std::string& topic) const;
  std::uint64_t last_time() const {
    return end_time.has_value() ? *end_time - 1 : std::numeric_limits<std::uint64_t>::max();
  }
};

/// The topics of a file that `filter` lets in; nullopt when these are all.
Result<std::optional<std::vector<std::string>>> selected_topics(const mcap::Reader& reader,
                                                                const TopicFilter& filter);

}  // namespace ropewalk
