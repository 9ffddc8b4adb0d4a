#pragma once
// Mp4PacketReader: the encoded packets of a clip, in decode order, by ranged reads without libav.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ropewalk/base/core/media.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk {

/// Reads packets in decode order; neighbouring packets are fetched together.
/// Not thread-safe; many readers may share one index and one source.
class Mp4PacketReader {
 public:
  /// Reads the packets `range`; ordinals count from the lowest rank of the range.
  /// Errors: out_of_range.
  static Result<Mp4PacketReader> open(std::shared_ptr<const Mp4Index> index,
                                      std::shared_ptr<const Source> source, PacketRange range);
  /// Reads all packets.
  static Result<Mp4PacketReader> open(std::shared_ptr<const Mp4Index> index,
                                      std::shared_ptr<const Source> source);

  /// Returns the next packet, or nullopt after the last. Lifetime: until the next call.
  /// Errors: data_loss naming file and packet; those of Source.
  Result<std::optional<VideoPacket>> next();

 private:
  Mp4PacketReader() = default;

  std::shared_ptr<const Mp4Index> index_;
  std::shared_ptr<const Source> source_;
  PacketRange range_;
  std::size_t position_ = 0;
  std::int64_t first_rank_ = 0;
  Bytes buffer_;
  std::uint64_t buffer_offset_ = 0;  ///< in the file
};

/// Returns the SHA-256, in hexadecimal, over the payloads of `range` in decode order: what a remux
/// must leave unchanged.
Result<std::string> packet_sha256(const Mp4Index& index, const Source& source, PacketRange range);

}  // namespace ropewalk
