#pragma once
// Mp4Writer: one video track, index in front, packets appended strictly forward.
// Everything the index needs is known before the first payload byte (sizes, keyframes, ranks), so a
// file is written once: no second pass for faststart. Serves the encoder and packet remux alike.
//
// Times: frame k is presented at k * tick and decoded at position * tick; composition offsets are
// signed (version 1) where frames are reordered, so no edit list is needed, the first picture is at
// 0 and the average rate is exactly fps.
#include <cstdint>
#include <memory>
#include <vector>

#include "ropewalk/base/core/media.h"
#include "ropewalk/base/core/rational.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk {

/// Ticks per second and ticks per frame of the files we write.
struct Mp4Timing {
  std::uint32_t timescale = 0;
  std::uint32_t tick = 0;  ///< ticks per frame
  bool operator==(const Mp4Timing&) const = default;
};

/// Doubles the numerator of `fps` until it is at least 10,000; one frame is the denominator times
/// the same power of two: 30 gives 15360 and 512, 30000/1001 gives 30000 and 1001. Errors:
/// invalid_argument for rates that are not positive or do not fit 32 bits.
Result<Mp4Timing> mp4_timing(Rational fps);

/// Returns whether clips with these parameters may lie in one file: all fields agree.
bool can_share_file(const VideoParams& a, const VideoParams& b);

/// One packet to come, in decode order. 12 bytes.
struct Mp4PacketPlan {
  std::uint32_t size = 0;  ///< bytes
  std::uint32_t rank = 0;  ///< presentation rank within the file
  bool keyframe = false;
};

/// A whole file, planned.
struct Mp4Plan {
  VideoParams params;
  Rational fps;
  std::vector<Mp4PacketPlan> packets;

  /// Adds the packets `range` of a clip behind those there are; returns the frames before it.
  /// Errors: failed_precondition when the range does not hold consecutive ranks.
  Result<std::int64_t> append_clip(const Mp4Index& index, PacketRange range);
  std::uint64_t payload_bytes() const;
};

/// Writes one file into a Sink. Not thread-safe. Memory: 20 bytes per packet while the index is
/// made.
class Mp4Writer {
 public:
  /// Checks the plan and writes everything in front of the payload. Lifetime: `sink` outlives it.
  /// Errors: invalid_argument (ranks that are no permutation, no leading keyframe, missing
  /// extradata, size over 65535 pixels), unimplemented (a codec MP4 output is not written for),
  /// those of Sink.
  static Result<Mp4Writer> create(Sink& sink, const Mp4Plan& plan);

  /// Appends the payload of the next packet, or of several packets at once.
  /// Errors: failed_precondition when more bytes come than planned.
  Status append(ByteSpan payload);
  /// Checks that every planned byte came. Does not close the sink.
  Status finish();

  std::uint64_t header_bytes() const { return header_bytes_; }

 private:
  Mp4Writer(Sink& sink, std::uint64_t planned) : sink_(&sink), planned_bytes_(planned) {}

  Sink* sink_;
  std::uint64_t planned_bytes_;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t header_bytes_ = 0;
};

/// Copies the payloads of `range` into `writer`, unchanged, and returns their SHA-256 in
/// hexadecimal. Reads neighbouring packets together, `buffer_bytes` at a time.
Result<std::string> copy_packets(const Mp4Index& index, const Source& source, PacketRange range,
                                 Mp4Writer& writer, std::size_t buffer_bytes = 1 << 20);

}  // namespace ropewalk
