#include <array>

#include <fmt/format.h>

#include "ropewalk/format/video/bit_reader_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"

namespace ropewalk::video_internal {
namespace {

constexpr std::uint8_t kNalSps = 7;
constexpr std::uint8_t kNalPps = 8;

bool has_chroma_fields(std::uint32_t profile_idc) {
  switch (profile_idc) {
    case 44:
    case 83:
    case 86:
    case 100:
    case 110:
    case 118:
    case 122:
    case 128:
    case 134:
    case 135:
    case 138:
    case 139:
    case 244:
      return true;
    default:
      return false;
  }
}

void skip_scaling_list(BitReader& in, int size) {
  int last = 8;
  int next = 8;
  for (int i = 0; i < size && !in.overrun(); ++i) {
    if (next != 0) next = (last + in.se() % 256 + 256) % 256;
    last = next == 0 ? last : next;
  }
}

}  // namespace

std::string planar_format_name(int chroma_format, int bit_depth) {
  constexpr std::array<const char*, 4> kNames = {"gray", "yuv420p", "yuv422p", "yuv444p"};
  if (chroma_format < 0 || chroma_format > 3 || bit_depth < 8 || bit_depth > 16) return "";
  const char* base = kNames[static_cast<std::size_t>(chroma_format)];
  return bit_depth == 8 ? std::string(base) : fmt::format("{}{}le", base, bit_depth);
}

Bytes unescape_nal(ByteSpan nal) {
  Bytes out;
  out.reserve(nal.size());
  int zeros = 0;
  for (const std::uint8_t byte : nal) {
    if (zeros >= 2 && byte == 3) {
      zeros = 0;
      continue;
    }
    zeros = byte == 0 ? zeros + 1 : 0;
    out.push_back(byte);
  }
  return out;
}

std::optional<PictureHeader> parse_h264_sps(ByteSpan nal) {
  if (nal.size() < 5 || (nal[0] & 31) != kNalSps) return std::nullopt;
  const Bytes payload = unescape_nal(nal.subspan(1));
  BitReader in(payload);
  PictureHeader header;
  const std::uint32_t profile_idc = in.bits(8);
  in.skip(16);  // constraint flags, level
  in.ue();      // seq_parameter_set_id
  std::uint32_t chroma = 1;
  if (has_chroma_fields(profile_idc)) {
    chroma = in.ue();
    if (chroma > 3) return std::nullopt;
    if (chroma == 3) in.skip(1);  // separate_colour_plane_flag
    const std::uint32_t depth = in.ue();
    if (depth > 6) return std::nullopt;
    header.bit_depth = static_cast<int>(depth) + 8;
    in.ue();     // bit_depth_chroma_minus8
    in.skip(1);  // qpprime_y_zero_transform_bypass_flag
    if (in.flag()) {
      const int lists = chroma == 3 ? 12 : 8;
      for (int i = 0; i < lists; ++i) {
        if (in.flag()) skip_scaling_list(in, i < 6 ? 16 : 64);
      }
    }
  }
  header.chroma_format = static_cast<int>(chroma);
  in.ue();  // log2_max_frame_num_minus4
  const std::uint32_t poc_type = in.ue();
  if (poc_type == 0) {
    in.ue();
  } else if (poc_type == 1) {
    in.skip(1);
    in.se();
    in.se();
    const std::uint32_t cycle = in.ue();
    if (cycle > 255) return std::nullopt;
    for (std::uint32_t i = 0; i < cycle; ++i) in.se();
  }
  in.ue();     // max_num_ref_frames
  in.skip(1);  // gaps_in_frame_num_value_allowed_flag
  const std::uint64_t width_units = std::uint64_t{in.ue()} + 1;
  const std::uint64_t height_units = std::uint64_t{in.ue()} + 1;
  const bool frames_only = in.flag();
  if (!frames_only) in.skip(1);
  in.skip(1);  // direct_8x8_inference_flag
  std::uint64_t crop_x = 0;
  std::uint64_t crop_y = 0;
  if (in.flag()) {
    const std::uint64_t unit_x = chroma == 1 || chroma == 2 ? 2 : 1;
    const std::uint64_t unit_y = (chroma == 1 ? 2U : 1U) * (frames_only ? 1U : 2U);
    crop_x = unit_x * in.ue();
    crop_x += unit_x * in.ue();
    crop_y = unit_y * in.ue();
    crop_y += unit_y * in.ue();
  }
  const std::uint64_t width = width_units * 16;
  const std::uint64_t height = height_units * 16 * (frames_only ? 1U : 2U);
  if (in.overrun() || width > 65536 || height > 65536 || crop_x >= width || crop_y >= height) {
    return std::nullopt;
  }
  header.width = static_cast<int>(width - crop_x);
  header.height = static_cast<int>(height - crop_y);
  if (in.flag()) {                                    // vui_parameters_present_flag
    if (in.flag() && in.bits(8) == 255) in.skip(32);  // sample aspect ratio
    if (in.flag()) in.skip(1);                        // overscan
    if (in.flag()) {                                  // video_signal_type_present_flag
      in.skip(3);
      const int range = in.flag() ? 2 : 1;
      PictureHeader colored = header;
      colored.color_range = range;
      if (in.flag()) {
        colored.color_primaries = static_cast<int>(in.bits(8));
        colored.color_transfer = static_cast<int>(in.bits(8));
        colored.color_matrix = static_cast<int>(in.bits(8));
      }
      if (!in.overrun()) header = colored;
    }
  }
  return header;
}

std::optional<PictureHeader> parse_avcc(ByteSpan avcc) {
  if (avcc.size() < 8 || avcc[0] != 1 || (avcc[5] & 31) == 0) return std::nullopt;
  const std::size_t size = static_cast<std::size_t>(avcc[6]) << 8 | avcc[7];
  if (size > avcc.size() - 8) return std::nullopt;
  return parse_h264_sps(avcc.subspan(8, size));
}

std::optional<PictureHeader> parse_hvcc(ByteSpan hvcc) {
  if (hvcc.size() < 23 || hvcc[0] > 1) return std::nullopt;
  PictureHeader header;
  header.chroma_format = hvcc[16] & 3;
  header.bit_depth = (hvcc[17] & 7) + 8;
  return header;
}

bool hvcc_is_complete(ByteSpan hvcc) {
  if (hvcc.size() < 23 || hvcc[22] == 0) return false;
  bool found = false;
  std::size_t at = 23;
  for (int array = 0; array < hvcc[22]; ++array) {
    if (hvcc.size() - at < 3) return false;
    const int type = hvcc[at] & 63;
    const bool parameter_set = type >= 32 && type <= 34;
    if (parameter_set && (hvcc[at] & 0x80) == 0) return false;
    found = found || parameter_set;
    const int count = hvcc[at + 1] << 8 | hvcc[at + 2];
    at += 3;
    for (int i = 0; i < count; ++i) {
      if (hvcc.size() - at < 2) return false;
      const std::size_t size = static_cast<std::size_t>(hvcc[at]) << 8 | hvcc[at + 1];
      at += 2;
      if (size > hvcc.size() - at) return false;
      at += size;
    }
  }
  return found;
}

std::optional<PictureHeader> parse_vpcc(ByteSpan vpcc) {
  if (vpcc.size() < 12 || vpcc[0] != 1) return std::nullopt;
  PictureHeader header;
  const int chroma = vpcc[6] >> 1 & 7;
  header.bit_depth = vpcc[6] >> 4;
  header.chroma_format = chroma <= 1 ? 1 : chroma;
  header.color_range = (vpcc[6] & 1) != 0 ? 2 : 1;
  header.color_primaries = vpcc[7];
  header.color_transfer = vpcc[8];
  header.color_matrix = vpcc[9];
  if (header.chroma_format > 3) return std::nullopt;
  return header;
}

std::vector<ByteSpan> split_annexb(ByteSpan stream) {
  std::vector<ByteSpan> units;
  std::optional<std::size_t> begin;
  std::size_t i = 0;
  const auto close = [&](std::size_t end) {
    while (begin && end > *begin && stream[end - 1] == 0) --end;  // trailing_zero_8bits
    if (begin && end > *begin) units.push_back(stream.subspan(*begin, end - *begin));
  };
  while (i + 3 <= stream.size()) {
    if (stream[i] == 0 && stream[i + 1] == 0 && stream[i + 2] == 1) {
      close(i);
      begin = i + 3;
      i += 3;
    } else {
      ++i;
    }
  }
  close(stream.size());
  return units;
}

std::optional<std::vector<ByteSpan>> split_length_prefixed(ByteSpan packet, int length_size) {
  if (length_size < 1 || length_size > 4) return std::nullopt;
  std::vector<ByteSpan> units;
  std::size_t at = 0;
  while (at < packet.size()) {
    if (packet.size() - at < static_cast<std::size_t>(length_size)) return std::nullopt;
    std::size_t size = 0;
    for (int i = 0; i < length_size; ++i) size = size << 8 | packet[at++];
    if (size > packet.size() - at) return std::nullopt;
    units.push_back(packet.subspan(at, size));
    at += size;
  }
  return units;
}

std::optional<Bytes> avcc_from_annexb(ByteSpan header) {
  std::vector<ByteSpan> sps;
  std::vector<ByteSpan> pps;
  for (const ByteSpan unit : split_annexb(header)) {
    if ((unit[0] & 31) == kNalSps && unit.size() >= 4) sps.push_back(unit);
    if ((unit[0] & 31) == kNalPps) pps.push_back(unit);
  }
  if (sps.empty() || pps.empty() || sps.size() > 31 || pps.size() > 255) return std::nullopt;
  const auto picture = parse_h264_sps(sps.front());
  if (!picture) return std::nullopt;
  Bytes out;
  ByteWriter writer(out);
  const std::uint8_t profile = sps.front()[1];
  out.insert(out.end(), {1, profile, sps.front()[2], sps.front()[3], 0xff});
  writer.write_be(static_cast<std::uint8_t>(0xe0 | sps.size()));
  const auto append_unit = [&](ByteSpan unit) {
    writer.write_be(static_cast<std::uint16_t>(unit.size()));
    writer.write(unit);
  };
  for (const ByteSpan unit : sps) append_unit(unit);
  writer.write_be(static_cast<std::uint8_t>(pps.size()));
  for (const ByteSpan unit : pps) append_unit(unit);
  if (profile == 100 || profile == 110 || profile == 122 || profile == 144) {
    const auto depth = static_cast<std::uint8_t>(0xf8 | (picture->bit_depth - 8));
    out.insert(out.end(), {static_cast<std::uint8_t>(0xfc | picture->chroma_format), depth, depth,
                           std::uint8_t{0}});
  }
  return out;
}

Bytes annexb_to_length_prefixed(ByteSpan access_unit) {
  Bytes out;
  out.reserve(access_unit.size() + 16);
  ByteWriter writer(out);
  for (const ByteSpan unit : split_annexb(access_unit)) {
    writer.write_be(static_cast<std::uint32_t>(unit.size()));
    writer.write(unit);
  }
  return out;
}

}  // namespace ropewalk::video_internal
