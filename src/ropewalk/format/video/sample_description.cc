// The sample description (stsd): which codec, how large, which colours.
// Spec: ISO/IEC 14496-12 8.5.2, 12.1; 14496-14 5.6 (esds); 14496-15.
#include <fmt/format.h>

#include "ropewalk/format/video/boxes_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"

namespace ropewalk::video_internal {
namespace {

constexpr std::size_t kVisualEntryBytes = 78;

/// Returns FFmpeg's decoder name for a sample entry, "mp4v" for those that esds decides, ""
/// unknown.
std::string_view codec_of_entry(std::uint32_t type) {
  switch (type) {
    case fourcc("avc1"):
    case fourcc("avc2"):
    case fourcc("avc3"):
    case fourcc("avc4"):
      return "h264";
    case fourcc("hev1"):
    case fourcc("hvc1"):
      return "hevc";
    case fourcc("av01"):
      return "av1";
    case fourcc("vp09"):
      return "vp9";
    case fourcc("vp08"):
      return "vp8";
    case fourcc("mp4v"):
      return "mp4v";
    case fourcc("mjpa"):
    case fourcc("mjpg"):
    case fourcc("jpeg"):
      return "mjpeg";
    case fourcc("png "):
      return "png";
    case fourcc("FFV1"):
      return "ffv1";
    default:
      return "";
  }
}

std::string_view codec_of_object_type(std::uint8_t type) {
  switch (type) {
    case 0x20:
      return "mpeg4";
    case 0x21:
      return "h264";
    case 0x23:
      return "hevc";
    case 0x60:
    case 0x61:
    case 0x62:
    case 0x63:
    case 0x64:
    case 0x65:
      return "mpeg2video";
    case 0x6a:
      return "mpeg1video";
    case 0x6c:
      return "mjpeg";
    case 0x6d:
      return "png";
    default:
      return "";
  }
}

struct Descriptor {
  std::uint8_t tag = 0;
  ByteSpan payload;
};

Result<Descriptor> read_descriptor(ByteCursor& in) {
  Descriptor out;
  ROPEWALK_ASSIGN_OR_RETURN(out.tag, in.read_be<std::uint8_t>());
  std::uint32_t size = 0;
  for (int i = 0; i < 4; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto byte, in.read_be<std::uint8_t>());
    size = size << 7 | (byte & 0x7fU);
    if ((byte & 0x80) == 0) break;
  }
  ROPEWALK_ASSIGN_OR_RETURN(out.payload, in.take(size));
  return out;
}

/// esds: sets codec and decoder-specific bytes.
Status parse_esds(ByteSpan payload, VideoParams& params) {
  ByteCursor in(payload);
  ROPEWALK_RETURN_IF_ERROR(in.skip(4));
  ROPEWALK_ASSIGN_OR_RETURN(const Descriptor stream, read_descriptor(in));
  if (stream.tag != 3) return data_loss(fmt::format("esds: descriptor {} is not 3", stream.tag));
  ByteCursor inner(stream.payload);
  ROPEWALK_RETURN_IF_ERROR(inner.skip(2));
  ROPEWALK_ASSIGN_OR_RETURN(const auto flags, inner.read_be<std::uint8_t>());
  if ((flags & 0x80) != 0) ROPEWALK_RETURN_IF_ERROR(inner.skip(2));
  if ((flags & 0x40) != 0) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto length, inner.read_be<std::uint8_t>());
    ROPEWALK_RETURN_IF_ERROR(inner.skip(length));
  }
  if ((flags & 0x20) != 0) ROPEWALK_RETURN_IF_ERROR(inner.skip(2));
  ROPEWALK_ASSIGN_OR_RETURN(const Descriptor config, read_descriptor(inner));
  if (config.tag != 4) return data_loss(fmt::format("esds: descriptor {} is not 4", config.tag));
  ByteCursor decoder(config.payload);
  ROPEWALK_ASSIGN_OR_RETURN(const auto object_type, decoder.read_be<std::uint8_t>());
  params.codec = codec_of_object_type(object_type);
  if (params.codec.empty()) {
    return unimplemented(fmt::format("video object type {:#x} of mp4v is not supported",
                                     static_cast<unsigned>(object_type)));
  }
  ROPEWALK_RETURN_IF_ERROR(decoder.skip(12));
  if (decoder.remaining() >= 2) {
    ROPEWALK_ASSIGN_OR_RETURN(const Descriptor specific, read_descriptor(decoder));
    if (specific.tag == 5)
      params.extradata.assign(specific.payload.begin(), specific.payload.end());
  }
  return ok_status();
}

struct Colour {
  bool present = false;
  bool has_range = false;
  int range = 0;
  int primaries = 2;
  int transfer = 2;
  int matrix = 2;
};

Result<Colour> parse_colr(ByteSpan payload) {
  Colour out;
  ByteCursor in(payload);
  ROPEWALK_ASSIGN_OR_RETURN(const auto type, in.read_be<std::uint32_t>());
  if (type != fourcc("nclx") && type != fourcc("nclc")) return out;
  ROPEWALK_ASSIGN_OR_RETURN(out.primaries, in.read_be<std::uint16_t>());
  ROPEWALK_ASSIGN_OR_RETURN(out.transfer, in.read_be<std::uint16_t>());
  ROPEWALK_ASSIGN_OR_RETURN(out.matrix, in.read_be<std::uint16_t>());
  if (type == fourcc("nclx") && in.remaining() > 0) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto range, in.read_be<std::uint8_t>());
    out.range = (range & 0x80) != 0 ? 2 : 1;
    out.has_range = true;
  }
  out.present = true;
  return out;
}

std::optional<PictureHeader> picture_header(const VideoParams& params) {
  if (params.codec == "h264") return parse_avcc(params.extradata);
  if (params.codec == "hevc") return parse_hvcc(params.extradata);
  if (params.codec == "av1") return parse_av1c(params.extradata);
  if (params.codec == "vp9") return parse_vpcc(params.extradata);
  if (params.codec == "mpeg4" || params.codec == "vp8") return PictureHeader{};
  return std::nullopt;
}

/// Fills what the container leaves open from the codec's own header.
void complete_from_codec(VideoParams& params, const Colour& colour) {
  const auto header = picture_header(params);
  if (header) {
    params.pix_fmt = planar_format_name(header->chroma_format, header->bit_depth);
    if (header->width > 0) {
      params.width = header->width;
      params.height = header->height;
    }
    params.color_range = header->color_range;
    params.color_primaries = header->color_primaries;
    params.color_transfer = header->color_transfer;
    params.color_matrix = header->color_matrix;
  }
  if (colour.present) {
    params.color_primaries = colour.primaries;
    params.color_transfer = colour.transfer;
    params.color_matrix = colour.matrix;
    if (colour.has_range) params.color_range = colour.range;
  }
}

}  // namespace

Result<VideoParams> parse_sample_description(ByteSpan stsd) {
  ByteCursor in(stsd);
  ROPEWALK_RETURN_IF_ERROR(in.skip(4));
  ROPEWALK_ASSIGN_OR_RETURN(const auto count, in.read_be<std::uint32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const auto entry, next_box(in));
  if (count == 0 || !entry) return data_loss("stsd: no sample description");
  const std::string_view codec = codec_of_entry(entry->type);
  if (codec.empty()) {
    return unimplemented(
        fmt::format("video codec '{}' is not supported", fourcc_text(entry->type)));
  }
  if (entry->payload.size() < kVisualEntryBytes) {
    return data_loss(fmt::format("stsd: '{}' has {} bytes, needs {}", fourcc_text(entry->type),
                                 entry->payload.size(), kVisualEntryBytes));
  }
  VideoParams params;
  params.codec = codec;
  ByteCursor visual(entry->payload);
  ROPEWALK_RETURN_IF_ERROR(visual.skip(24));
  ROPEWALK_ASSIGN_OR_RETURN(params.width, visual.read_be<std::uint16_t>());
  ROPEWALK_ASSIGN_OR_RETURN(params.height, visual.read_be<std::uint16_t>());
  ROPEWALK_RETURN_IF_ERROR(visual.skip(kVisualEntryBytes - 28));
  Colour colour;
  while (true) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto box, next_box(visual));
    if (!box) break;
    switch (box->type) {
      case fourcc("avcC"):
      case fourcc("hvcC"):
      case fourcc("av1C"):
      case fourcc("vpcC"):
      case fourcc("glbl"):
        params.extradata.assign(box->payload.begin(), box->payload.end());
        break;
      case fourcc("esds"):
        ROPEWALK_RETURN_IF_ERROR(parse_esds(box->payload, params));
        break;
      case fourcc("colr"):
        if (!colour.present) {
          ROPEWALK_ASSIGN_OR_RETURN(colour, parse_colr(box->payload));
        }
        break;
      default:
        break;
    }
  }
  if (params.codec == "mp4v") return data_loss("stsd: 'mp4v' without esds");
  complete_from_codec(params, colour);
  if (params.width <= 0 || params.height <= 0) {
    return data_loss(fmt::format("stsd: picture of {}x{}", params.width, params.height));
  }
  return params;
}

}  // namespace ropewalk::video_internal
