#pragma once
// Codec configuration records: what avcC, hvcC, av1C and vpcC say about pictures, read without
// libav; and how an encoder's headers become such a record.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/media.h"

namespace ropewalk::video_internal {

/// What a stream header says about its pictures. Zero and 2 (colour) mean "not said".
struct PictureHeader {
  int width = 0;
  int height = 0;
  int bit_depth = 8;
  int chroma_format = 1;  ///< 0 gray, 1 4:2:0, 2 4:2:2, 3 4:4:4
  int color_range = 0;
  int color_primaries = 2;
  int color_transfer = 2;
  int color_matrix = 2;
};

/// FFmpeg's name of the planar format, such as "yuv420p10le" or "gray"; "" for depths unknown.
std::string planar_format_name(int chroma_format, int bit_depth);

/// Removes the emulation prevention bytes of H.264 and H.265.
Bytes unescape_nal(ByteSpan nal);

/// Spec: ISO/IEC 14496-10, 7.3.2.1.1 and E.1.1. `nal` includes its one-byte header.
std::optional<PictureHeader> parse_h264_sps(ByteSpan nal);
/// Spec: ISO/IEC 14496-15, 5.3.3.1. Uses the first sequence parameter set.
std::optional<PictureHeader> parse_avcc(ByteSpan avcc);
/// Spec: ISO/IEC 14496-15, 8.3.3.1.
std::optional<PictureHeader> parse_hvcc(ByteSpan hvcc);
/// Whether all parameter sets stand in the record and none in the packets: `hvc1`, else `hev1`.
bool hvcc_is_complete(ByteSpan hvcc);
/// Spec: AV1 codec ISO media file format binding, 2.3.
std::optional<PictureHeader> parse_av1c(ByteSpan av1c);
/// Spec: VP codec ISO media file format binding. `vpcc` includes version and flags.
std::optional<PictureHeader> parse_vpcc(ByteSpan vpcc);

/// Splits an H.264 byte stream (start codes) into NAL units.
std::vector<ByteSpan> split_annexb(ByteSpan stream);
/// Splits a packet with length prefixes of `length_size` bytes; nullopt when they do not fit.
std::optional<std::vector<ByteSpan>> split_length_prefixed(ByteSpan packet, int length_size);
/// Makes avcC from the encoder's header in byte stream form; nullopt without SPS or PPS.
std::optional<Bytes> avcc_from_annexb(ByteSpan header);
/// Rewrites an access unit from byte stream form to 4-byte lengths.
Bytes annexb_to_length_prefixed(ByteSpan access_unit);

/// Makes av1C from the encoder's sequence header OBUs.
std::optional<Bytes> av1c_from_obus(ByteSpan obus);
/// Removes temporal delimiters, which MP4 samples do not hold; nullopt for a damaged unit.
std::optional<Bytes> strip_temporal_delimiters(ByteSpan temporal_unit);

}  // namespace ropewalk::video_internal
