#pragma once
// Channel: one topic as one publisher or type offered it, with the definition of its messages.
// MessageView: one message. Both are the same for every kind of bag.
#include <cstdint>
#include <optional>
#include <string>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk::bag {

/// Several channels of one topic are normal: ROS 1 has one for each publisher.
struct Channel {
  std::string topic;
  std::string type;              ///< as stored: `std_msgs/String`, `std_msgs/msg/String`
  std::string message_encoding;  ///< "ros1", "cdr", or what the database says
  std::string schema_encoding;   ///< "ros1msg", "ros2msg", "ros2idl"; "" without a definition
  std::string schema;            ///< text of the definition with those it needs

  // ROS 1
  std::string md5sum;
  std::string callerid;
  bool latching = false;

  // ROS 2
  std::string offered_qos_profiles;  ///< YAML, as stored
  std::string type_hash;             ///< `RIHS01_…`; "" before Iron

  /// Messages in the bag; nullopt where damage keeps them from being counted beforehand.
  std::optional<std::uint64_t> message_count;
};

/// Lifetime: valid until the next call on the reader that gave it.
struct MessageView {
  const Channel* channel = nullptr;
  std::uint32_t channel_index = 0;  ///< into BagReader::channels()
  std::int64_t time_ns = 0;         ///< when it was received; Units: ns since the epoch
  ByteSpan data;
  /// From a chunk that is cut or damaged: nothing vouches for these bytes.
  bool unverified = false;
};

/// Both ends inclusive. Units: ns since the epoch.
struct TimeRange {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
};

}  // namespace ropewalk::bag
