#pragma once
// Rosbag1Writer: writes a ROS 1 bag of version 2.0. The file grows as `<name>.active`, a bag that
// tools can reindex after a crash, and gets its name when it is finished.
#include <cstdint>
#include <filesystem>
#include <memory>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/format/bag/channel.h"

namespace ropewalk::bag {

struct Rosbag1WriterOptions {
  Compression compression = Compression::none;  ///< none, lz4_frame or bzip2
  std::uint64_t chunk_bytes = 768ULL << 10;     ///< a threshold: a chunk closes after reaching it

  Status validate() const;
};

/// Not thread-safe. After a failed write every call returns that first error. Limits: memory is one
/// chunk, 12 bytes per message in it, and the index of the file (about 100 bytes per chunk).
class Rosbag1Writer {
 public:
  /// Errors: already_exists when `path` or `path`.active is there; invalid_argument.
  static Result<Rosbag1Writer> create(const std::filesystem::path& path,
                                      Rosbag1WriterOptions options = {});
  Rosbag1Writer(Rosbag1Writer&&) noexcept;
  Rosbag1Writer& operator=(Rosbag1Writer&&) noexcept;
  ~Rosbag1Writer();  ///< without finish() the `.active` file stays: an unindexed bag

  /// Returns the id for write(). A channel without md5sum gets it from its schema.
  /// Errors: failed_precondition for messages that are not ros1; those of ros1_md5().
  Result<std::uint32_t> add_channel(const Channel& channel);
  /// Errors: not_found for an unknown id; out_of_range for times that ROS 1 cannot say (before the
  /// epoch or after the year 2106); resource_exhausted for data of 2 GiB.
  Status write(std::uint32_t channel, std::int64_t time_ns, ByteSpan data);
  /// Writes the index and gives the file its name; durable on return.
  /// Errors: already_exists when `path` is there by now.
  Status finish();

 private:
  struct Impl;
  explicit Rosbag1Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk::bag
