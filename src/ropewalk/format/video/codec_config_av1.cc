// AV1: open bitstream units, the sequence header and av1C.
// Spec: AV1 Bitstream and Decoding Process, 5.3 (OBU), 5.5 (sequence header).
#include "ropewalk/format/video/bit_reader_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"

namespace ropewalk::video_internal {
namespace {

constexpr int kObuSequenceHeader = 1;
constexpr int kObuTemporalDelimiter = 2;

struct Obu {
  int type = 0;
  ByteSpan whole;
  ByteSpan payload;
};

/// Takes the OBU at the front of `bytes`; nullopt when it is damaged.
std::optional<Obu> first_obu(ByteSpan bytes) {
  if (bytes.empty() || (bytes[0] & 0x80) != 0) return std::nullopt;
  Obu obu;
  obu.type = bytes[0] >> 3 & 15;
  const bool has_extension = (bytes[0] & 4) != 0;
  const bool has_size = (bytes[0] & 2) != 0;
  std::size_t at = has_extension ? 2 : 1;
  if (at > bytes.size()) return std::nullopt;
  std::uint64_t size = bytes.size() - at;
  if (has_size) {
    size = 0;
    int shift = 0;
    for (bool more = true; more; shift += 7) {
      if (at >= bytes.size() || shift > 28) return std::nullopt;
      size |= static_cast<std::uint64_t>(bytes[at] & 0x7f) << shift;
      more = (bytes[at++] & 0x80) != 0;
    }
  }
  if (size > bytes.size() - at) return std::nullopt;
  obu.payload = bytes.subspan(at, static_cast<std::size_t>(size));
  obu.whole = bytes.first(at + static_cast<std::size_t>(size));
  return obu;
}

struct SequenceHeader {
  PictureHeader picture;
  int profile = 0;
  int level = 0;
  int tier = 0;
  bool high_bitdepth = false;
  bool twelve_bit = false;
  bool monochrome = false;
  int subsampling_x = 1;
  int subsampling_y = 1;
  int sample_position = 0;
};

void read_operating_points(BitReader& in, SequenceHeader& header) {
  bool decoder_model = false;
  int delay_bits = 0;
  if (in.flag()) {  // timing_info_present_flag
    in.skip(64);
    if (in.flag()) in.ue();  // num_ticks_per_picture_minus_1
    decoder_model = in.flag();
    if (decoder_model) {
      delay_bits = static_cast<int>(in.bits(5)) + 1;
      in.skip(42);
    }
  }
  const bool display_delay = in.flag();
  const int points = static_cast<int>(in.bits(5)) + 1;
  for (int i = 0; i < points && !in.overrun(); ++i) {
    in.skip(12);  // operating_point_idc
    const int level = static_cast<int>(in.bits(5));
    const int tier = level > 7 ? static_cast<int>(in.bits(1)) : 0;
    if (i == 0) {
      header.level = level;
      header.tier = tier;
    }
    if (decoder_model && in.flag()) in.skip(2 * delay_bits + 1);
    if (display_delay && in.flag()) in.skip(4);
  }
}

void read_color_config(BitReader& in, SequenceHeader& header) {
  PictureHeader& picture = header.picture;
  header.high_bitdepth = in.flag();
  if (header.profile == 2 && header.high_bitdepth) header.twelve_bit = in.flag();
  picture.bit_depth = header.twelve_bit ? 12 : header.high_bitdepth ? 10 : 8;
  header.monochrome = header.profile != 1 && in.flag();
  if (in.flag()) {  // color_description_present_flag
    picture.color_primaries = static_cast<int>(in.bits(8));
    picture.color_transfer = static_cast<int>(in.bits(8));
    picture.color_matrix = static_cast<int>(in.bits(8));
  }
  if (header.monochrome) {
    picture.color_range = in.flag() ? 2 : 1;
    picture.chroma_format = 0;
    return;
  }
  if (picture.color_primaries == 1 && picture.color_transfer == 13 && picture.color_matrix == 0) {
    picture.color_range = 2;  // sRGB
    header.subsampling_x = header.subsampling_y = 0;
  } else {
    picture.color_range = in.flag() ? 2 : 1;
    if (header.profile == 0) {
      header.subsampling_x = header.subsampling_y = 1;
    } else if (header.profile == 1) {
      header.subsampling_x = header.subsampling_y = 0;
    } else if (picture.bit_depth == 12) {
      header.subsampling_x = static_cast<int>(in.bits(1));
      header.subsampling_y = header.subsampling_x != 0 ? static_cast<int>(in.bits(1)) : 0;
    } else {
      header.subsampling_x = 1;
      header.subsampling_y = 0;
    }
    if (header.subsampling_x == 1 && header.subsampling_y == 1) {
      header.sample_position = static_cast<int>(in.bits(2));
    }
  }
  picture.chroma_format = header.subsampling_x == 0 ? 3 : header.subsampling_y == 0 ? 2 : 1;
}

std::optional<SequenceHeader> parse_sequence_header(ByteSpan payload) {
  BitReader in(payload);
  SequenceHeader header;
  header.profile = static_cast<int>(in.bits(3));
  in.skip(1);  // still_picture
  const bool reduced = in.flag();
  if (reduced) {
    header.level = static_cast<int>(in.bits(5));
  } else {
    read_operating_points(in, header);
  }
  const int width_bits = static_cast<int>(in.bits(4)) + 1;
  const int height_bits = static_cast<int>(in.bits(4)) + 1;
  header.picture.width = static_cast<int>(in.bits(width_bits)) + 1;
  header.picture.height = static_cast<int>(in.bits(height_bits)) + 1;
  if (!reduced && in.flag()) in.skip(7);  // frame id lengths
  in.skip(3);                             // superblock size, filter intra, intra edge filter
  if (!reduced) {
    in.skip(4);  // interintra, masked, warped, dual filter
    const bool order_hint = in.flag();
    if (order_hint) in.skip(2);
    const std::uint32_t force_screen = in.flag() ? 2 : in.bits(1);
    if (force_screen > 0 && !in.flag()) in.skip(1);
    if (order_hint) in.skip(3);
  }
  in.skip(3);  // superres, cdef, restoration
  read_color_config(in, header);
  if (in.overrun() || header.profile > 2) return std::nullopt;
  return header;
}

/// Returns the sequence header among `obus`.
std::optional<Obu> find_sequence_header(ByteSpan obus) {
  while (!obus.empty()) {
    const auto obu = first_obu(obus);
    if (!obu) return std::nullopt;
    if (obu->type == kObuSequenceHeader) return obu;
    obus = obus.subspan(obu->whole.size());
  }
  return std::nullopt;
}

}  // namespace

std::optional<PictureHeader> parse_av1c(ByteSpan av1c) {
  if (av1c.size() < 4 || av1c[0] != 0x81) return std::nullopt;
  if (const auto obu = find_sequence_header(av1c.subspan(4))) {
    if (const auto header = parse_sequence_header(obu->payload)) return header->picture;
  }
  PictureHeader picture;
  const bool high = (av1c[2] & 0x40) != 0;
  const bool twelve = (av1c[2] & 0x20) != 0;
  picture.bit_depth = twelve ? 12 : high ? 10 : 8;
  const bool monochrome = (av1c[2] & 0x10) != 0;
  const bool half_x = (av1c[2] & 8) != 0;
  const bool half_y = (av1c[2] & 4) != 0;
  picture.chroma_format = monochrome ? 0 : !half_x ? 3 : half_y ? 1 : 2;
  return picture;
}

std::optional<Bytes> av1c_from_obus(ByteSpan obus) {
  const auto obu = find_sequence_header(obus);
  if (!obu) return std::nullopt;
  const auto header = parse_sequence_header(obu->payload);
  if (!header) return std::nullopt;
  const int flags = header->tier << 7 | (header->high_bitdepth ? 1 : 0) << 6 |
                    (header->twelve_bit ? 1 : 0) << 5 | (header->monochrome ? 1 : 0) << 4 |
                    header->subsampling_x << 3 | header->subsampling_y << 2 |
                    header->sample_position;
  Bytes out = {0x81, static_cast<std::uint8_t>(header->profile << 5 | header->level),
               static_cast<std::uint8_t>(flags), 0};
  out.insert(out.end(), obu->whole.begin(), obu->whole.end());
  return out;
}

std::optional<Bytes> strip_temporal_delimiters(ByteSpan temporal_unit) {
  Bytes out;
  out.reserve(temporal_unit.size());
  while (!temporal_unit.empty()) {
    const auto obu = first_obu(temporal_unit);
    if (!obu) return std::nullopt;
    if (obu->type != kObuTemporalDelimiter) {
      out.insert(out.end(), obu->whole.begin(), obu->whole.end());
    }
    temporal_unit = temporal_unit.subspan(obu->whole.size());
  }
  return out;
}

}  // namespace ropewalk::video_internal
