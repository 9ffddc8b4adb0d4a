#pragma once
// BagReader: opens any bag by its content and delivers its messages: ROS 1 `.bag` 2.0, finished or
// left by a crash; ROS 2 `.db3` of every distribution, also `.db3.zstd`; directories with
// metadata.yaml and several files. Damage is told in problems() and costs only what it hit.
//
//   ROPEWALK_ASSIGN_OR_RETURN(bag::BagReader bag, bag::BagReader::open(path));
//   bag::MessageReader messages = bag.messages({.topics = {{"/joint_states"}}});
//   for (bag::MessageView m; messages.next(m);) use(m.channel->topic, m.time_ns, m.data);
//   ROPEWALK_RETURN_IF_ERROR(messages.status());
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/format/bag/channel.h"
#include "ropewalk/format/bag/metadata.h"
#include "ropewalk/format/bag/problem.h"

namespace ropewalk::bag {

struct ReaderOptions {
  Limits limits;
  /// Decoded chunks that one MessageReader keeps. When overlapping chunks need more, they are
  /// decoded again; results do not depend on it.
  std::uint64_t cache_bytes = 64ULL << 20;
  /// Delivers what decodes of a damaged chunk, marked unverified. Off: such a chunk is skipped and
  /// reported. The beginning of a chunk cut by the end of the file is delivered in both cases.
  bool lenient = false;
  /// A folder with definitions (`pkg/msg/Type.msg`, or `share/pkg/msg/Type.msg`) for types that the
  /// bag does not define. Empty: none.
  std::filesystem::path definitions;
  /// Where `.db3.zstd` is unpacked, and a database with a write-ahead log is copied to be
  /// recovered.
  std::filesystem::path temp_directory = "/tmp";
};

enum class Order : std::uint8_t { time, file };

struct Query {
  Order order = Order::time;  ///< equal times keep the order of the file
  std::int64_t begin_time_ns = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_time_ns = std::numeric_limits<std::int64_t>::max();  ///< inclusive
  /// Topics to deliver; without it all, and none when it is empty.
  std::optional<std::vector<std::string>> topics;
};

enum class BagKind : std::uint8_t { rosbag1, sqlite3 };

class BagFile;

/// Not thread-safe; readers of one bag may run beside each other. Limits: memory is
/// ReaderOptions::cache_bytes and 24 bytes per message of the chunks that overlap in time; for a
/// database its page cache (8 MiB) and one message.
class MessageReader {
 public:
  MessageReader(MessageReader&&) noexcept;
  MessageReader& operator=(MessageReader&&) noexcept;
  ~MessageReader();

  /// Returns false at the end, and when the source fails, which status() then tells.
  bool next(MessageView& out);
  const Status& status() const;
  /// What was met while reading, beside BagReader::problems().
  const std::vector<Problem>& problems() const;

 private:
  friend class BagReader;
  struct Impl;
  explicit MessageReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Threads: const members may run concurrently. Copies are cheap and share the bag.
class BagReader {
 public:
  /// Opens a file or a directory. Errors: data_loss when it is empty or no bag; unimplemented for
  /// versions of ROS 1 bags before 2.0 and for encrypted ones; failed_precondition with the reason
  /// MCAP_STORAGE for a directory of MCAP files, which read_bag_metadata() lists.
  static Result<BagReader> open(const std::filesystem::path& path, ReaderOptions options = {});
  /// Opens one file by its content: `.bag`, `.db3` or `.db3.zstd`.
  static Result<BagReader> open(std::shared_ptr<const Source> source, ReaderOptions options = {});

  BagKind kind() const;
  const std::vector<Channel>& channels() const;
  /// As the indexes say; nullopt where damage keeps messages from being counted beforehand.
  std::optional<std::uint64_t> message_count() const;
  /// nullopt without messages, or where damage hides it.
  std::optional<TimeRange> time_range() const;
  /// Of ROS 2 bags: metadata.yaml, else what the database itself carries.
  const std::optional<BagMetadata>& metadata() const;
  /// What was wrong while opening, in the order met.
  const std::vector<Problem>& problems() const;

  MessageReader messages(Query query = {}) const;

 private:
  explicit BagReader(std::shared_ptr<const BagFile> file) : file_(std::move(file)) {}
  std::shared_ptr<const BagFile> file_;
};

}  // namespace ropewalk::bag
