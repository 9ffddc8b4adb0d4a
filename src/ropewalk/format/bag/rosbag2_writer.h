#pragma once
// Rosbag2Writer: writes a ROS 2 bag: a directory of .db3 files (schema version 4, which all
// distributions read) with metadata.yaml. Nothing is visible before finish() returns OK.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "ropewalk/format/bag/channel.h"

namespace ropewalk::bag {

struct Rosbag2WriterOptions {
  std::uint64_t max_file_bytes = 0;  ///< of messages in one file; 0: one file
  std::string ros_distro;            ///< written as it is

  Status validate() const;
};

/// Not thread-safe. After a failed write every call returns that first error. Limits: memory is the
/// page cache of SQLite; a message holds at most 1,000,000,000 bytes.
class Rosbag2Writer {
 public:
  /// Errors: already_exists when `directory` is there; invalid_argument.
  static Result<Rosbag2Writer> create(const std::filesystem::path& directory,
                                      Rosbag2WriterOptions options = {});
  Rosbag2Writer(Rosbag2Writer&&) noexcept;
  Rosbag2Writer& operator=(Rosbag2Writer&&) noexcept;
  ~Rosbag2Writer();  ///< without finish() nothing stays

  /// Returns the id for write(); equal channels share one. Every file lists every channel.
  Result<std::uint32_t> add_channel(const Channel& channel);
  /// Errors: not_found for an unknown id; resource_exhausted for data above the limit, a full disk.
  Status write(std::uint32_t channel, std::int64_t time_ns, ByteSpan data);
  /// Closes the last file, writes metadata.yaml, and gives the directory its name; durable on
  /// return. Errors: already_exists when it is there by now.
  Status finish();

 private:
  struct Impl;
  explicit Rosbag2Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk::bag
