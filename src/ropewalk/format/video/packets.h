#pragma once
// Mp4PacketReader: the encoded packets of a clip, in decode order, by ranged reads without libav.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ropewalk/base/core/media.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk {
namespace video_internal {
class PacketFetcher;
}

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

  Mp4PacketReader(Mp4PacketReader&&) noexcept;
  Mp4PacketReader& operator=(Mp4PacketReader&&) noexcept;
  ~Mp4PacketReader();

  /// Returns the next packet, or nullopt after the last. Lifetime: until the next call.
  /// Errors: data_loss naming file and packet; those of Source.
  Result<std::optional<VideoPacket>> next();

 private:
  Mp4PacketReader();

  std::shared_ptr<const Mp4Index> index_;
  std::shared_ptr<const Source> source_;
  std::size_t position_ = 0;
  std::size_t end_ = 0;
  std::int64_t first_rank_ = 0;
  std::unique_ptr<video_internal::PacketFetcher> fetcher_;
};

/// Returns the SHA-256, in hexadecimal, over the payloads of `range` in decode order: what a remux
/// must leave unchanged.
Result<std::string> packet_sha256(const Mp4Index& index, const Source& source, PacketRange range);

}  // namespace ropewalk
