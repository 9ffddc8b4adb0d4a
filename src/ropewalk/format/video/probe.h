#pragma once
// probe_mp4: the index of one MP4 file. One read of the movie box gives stream parameters and where
// every packet lies, so that packets are fetched by plain ranged reads and frames by their ordinal.
// Frame r is the packet of presentation rank r; seconds in floating point play no part.
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/media.h"
#include "ropewalk/base/core/result.h"
#include "ropewalk/base/io/file.h"

namespace ropewalk {

/// One packet, as the sample table describes it. 40 bytes.
struct Mp4Packet {
  std::uint64_t offset = 0;  ///< of the payload in the file, bytes
  std::int64_t pts = 0;      ///< presentation time in ticks of `timescale`, edit list applied
  std::int64_t dts = 0;      ///< decode time in the same units; may be negative
  std::uint32_t size = 0;    ///< bytes
  std::int32_t rank = -1;    ///< presentation rank = frame ordinal; -1 when an edit list hides it
  bool keyframe = false;
};

/// Half-open range of positions in decode order.
struct PacketRange {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t size() const { return end - begin; }
  bool operator==(const PacketRange&) const = default;
};

/// Where decoding may begin.
struct SeekPoint {
  std::uint32_t position = 0;  ///< decode position of the keyframe
  std::uint32_t frame = 0;     ///< the first frame that is whole when decoding begins there
  bool operator==(const SeekPoint&) const = default;
};

/// How far the sample table keeps to a constant rate once packets stand in presentation order.
enum class RateKind {
  exact,    ///< every step is the same number of ticks
  rounded,  ///< every frame lies within one tick of ordinal / fps (a coarse time scale)
  variable
};

/// What a probed file holds. Threads: immutable after probing; share it freely.
struct Mp4Index {
  VideoParams params;  ///< codec from the stream's sample entry, not from any metadata
  std::string name;    ///< of the source, for messages
  Rational fps;        ///< exact when `rate` is exact; else the best constant rate; 0 for no frames
  RateKind rate = RateKind::exact;
  std::uint32_t timescale = 0;     ///< ticks per second
  std::int64_t first_pts = 0;      ///< of frame 0, in ticks, edit list applied
  std::int64_t reorder_delay = 0;  ///< D, in frames: the largest (decode position - rank)
  bool has_edit_list = false;      ///< an edit list was found (and applied, unless complex)
  bool has_complex_edits = false;  ///< several edits; they are not applied
  bool has_audio = false;
  bool has_rotation =
      false;  ///< the track header asks players for a rotation; frames stay as coded
  std::uint64_t file_bytes = 0;
  std::uint64_t payload_bytes = 0;     ///< of all packets
  std::uint64_t trailing_bytes = 0;    ///< after the last box, belonging to no box
  std::size_t hidden_packets = 0;      ///< packets with rank -1
  std::size_t truncated_packets = 0;   ///< packets that end beyond the file (keep_truncated only)
  std::vector<Mp4Packet> packets;      ///< in decode order
  std::vector<SeekPoint> seek_points;  ///< ascending in both; the first is of frame 0
  std::vector<std::uint32_t> order;  ///< order[rank] = decode position; its size is the frame count

  std::int64_t frame_count() const { return static_cast<std::int64_t>(order.size()); }

  /// Returns the smallest range of frames around `frame` that decodes on its own (its GOP).
  /// Limits: `frame` is clamped to the frames there are.
  FrameRange decode_unit(std::int64_t frame) const;
  /// Returns the keyframe from which `frame` is decoded. Limits: `frame` is clamped as above.
  SeekPoint seek_point(std::int64_t frame) const;
  /// Returns the decode positions of exactly the frames `frames`, for copying them without
  /// decoding. Errors: out_of_range; failed_precondition when the range does not begin with a
  /// keyframe shown first, or when packets of other frames lie between.
  Result<PacketRange> packets_of(FrameRange frames) const;
};

struct ProbeOptions {
  Limits limits = {};
  /// Keep the index of a file whose media data is cut, and count the packets, instead of an error.
  bool keep_truncated = false;
};

/// Reads the index of an MP4 or QuickTime file. Costs two or three reads and no decoding.
/// Errors: data_loss with reason LFS_POINTER (Git LFS pointer text instead of the video),
/// NO_MOOV (recording never finished, or not an MP4), TRUNCATED (packets beyond the end of the
/// file), BAD_INDEX (inconsistent tables); failed_precondition with reason NO_VIDEO_STREAM;
/// resource_exhausted (Limits); unimplemented (fragmented files, several sample descriptions,
/// unknown codec); not_found, permission_denied. Spec: ISO/IEC 14496-12 (boxes), 14496-14,
/// 14496-15; AV1 and VP9 in ISOBMFF.
Result<Mp4Index> probe_mp4(const Source& source, const ProbeOptions& options = {});
Result<Mp4Index> probe_mp4(const std::filesystem::path& path, const ProbeOptions& options = {});

/// Checks that the packets `range` of `index` may be copied into another file at a constant rate:
/// begins with an IDR-like keyframe of rank first in presentation, nothing hidden or truncated,
/// constant rate. Reads one packet. Errors: failed_precondition naming the fault, and as Source.
Status check_remuxable(const Mp4Index& index, const Source& source, PacketRange range);

}  // namespace ropewalk
