#pragma once
// PacketFetcher: payloads by position, neighbours read together into one buffer.
#include <cstdint>

#include "ropewalk/format/video/probe.h"

namespace ropewalk::video_internal {

class PacketFetcher {
 public:
  explicit PacketFetcher(std::size_t window_bytes = 1 << 20) : window_bytes_(window_bytes) {}

  /// Returns the payload of packet `position`, reading ahead through packets before `end`.
  /// Lifetime: until the next call. Limits: one packet, or `window_bytes` of neighbours.
  Result<ByteSpan> fetch(const Mp4Index& index, const Source& source, std::size_t position,
                         std::size_t end);

 private:
  static constexpr std::uint64_t kMaxGapBytes = 16 << 10;  // other tracks' data between packets

  std::size_t window_bytes_;
  Bytes buffer_;
  std::uint64_t offset_ = 0;  // of the buffer in the file
};

}  // namespace ropewalk::video_internal
