// Heads of picture files. Spec: ITU-T T.81 B (JPEG), PNG 11.2.2, TIFF 6.0 section 2, RFC 9649
// (WebP).
#include <fmt/format.h>

#include "ropewalk/format/image/image.h"

namespace ropewalk {
namespace {

constexpr std::string_view kPngMagic = "\x89PNG\r\n\x1a\n";

bool starts_with(ByteSpan bytes, std::string_view magic) {
  return as_text(bytes).starts_with(magic);
}

Result<ImageInfo> probe_jpeg(ByteSpan bytes) {
  ByteCursor in(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(2));
  while (true) {
    ROPEWALK_ASSIGN_OR_RETURN(auto byte, in.read_be<std::uint8_t>());
    if (byte != 0xff) return data_loss(fmt::format("jpeg: no marker at byte {}", in.offset() - 1));
    while (byte == 0xff) {
      ROPEWALK_ASSIGN_OR_RETURN(byte, in.read_be<std::uint8_t>());
    }
    if (byte == 0x01 || (byte >= 0xd0 && byte <= 0xd8)) continue;  // markers without a segment
    if (byte == 0xd9 || byte == 0xda) return data_loss("jpeg: picture data without a frame header");
    ROPEWALK_ASSIGN_OR_RETURN(const auto length, in.read_be<std::uint16_t>());
    if (length < 2) return data_loss(fmt::format("jpeg: segment of {} bytes", length));
    const bool frame_header =
        byte >= 0xc0 && byte <= 0xcf && byte != 0xc4 && byte != 0xc8 && byte != 0xcc;
    if (!frame_header) {
      ROPEWALK_RETURN_IF_ERROR(in.skip(length - 2U));
      continue;
    }
    ImageInfo info{.kind = ImageKind::jpeg};
    ROPEWALK_ASSIGN_OR_RETURN(info.bits_per_sample, in.read_be<std::uint8_t>());
    ROPEWALK_ASSIGN_OR_RETURN(info.height, in.read_be<std::uint16_t>());
    ROPEWALK_ASSIGN_OR_RETURN(info.width, in.read_be<std::uint16_t>());
    ROPEWALK_ASSIGN_OR_RETURN(info.channels, in.read_be<std::uint8_t>());
    return info;
  }
}

Result<ImageInfo> probe_png(ByteSpan bytes) {
  ByteCursor in(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(12));
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan type, in.take(4));
  if (as_text(type) != "IHDR") return data_loss("png: the first chunk is not IHDR");
  ROPEWALK_ASSIGN_OR_RETURN(const auto width, in.read_be<std::uint32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const auto height, in.read_be<std::uint32_t>());
  if (width > INT32_MAX || height > INT32_MAX) {
    return data_loss(fmt::format("png: size {}x{}", width, height));
  }
  ImageInfo info{
      .kind = ImageKind::png, .width = static_cast<int>(width), .height = static_cast<int>(height)};
  ROPEWALK_ASSIGN_OR_RETURN(info.bits_per_sample, in.read_be<std::uint8_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const auto color, in.read_be<std::uint8_t>());
  switch (color) {
    case 0:
      info.channels = 1;
      break;
    case 2:
    case 3:  // palette
      info.channels = 3;
      break;
    case 4:
      info.channels = 2;
      break;
    case 6:
      info.channels = 4;
      break;
    default:
      return data_loss(fmt::format("png: colour type {}", color));
  }
  return info;
}

/// Reads a TIFF integer in the byte order of the file.
template <typename T>
Result<T> read_ordered(ByteCursor& in, bool big_endian) {
  return big_endian ? in.read_be<T>() : in.read_le<T>();
}

Result<ImageInfo> probe_tiff(ByteSpan bytes) {
  const bool big = bytes[0] == 'M';
  ByteCursor in(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(4));
  ROPEWALK_ASSIGN_OR_RETURN(const auto directory, read_ordered<std::uint32_t>(in, big));
  in = ByteCursor(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(directory));
  ROPEWALK_ASSIGN_OR_RETURN(const auto count, read_ordered<std::uint16_t>(in, big));
  ImageInfo info{.kind = ImageKind::tiff, .channels = 1, .bits_per_sample = 1};
  for (int i = 0; i < count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto tag, read_ordered<std::uint16_t>(in, big));
    ROPEWALK_ASSIGN_OR_RETURN(const auto type, read_ordered<std::uint16_t>(in, big));
    ROPEWALK_ASSIGN_OR_RETURN(const auto values, read_ordered<std::uint32_t>(in, big));
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan raw, in.take(4));
    ByteCursor field(raw);
    std::uint32_t value = 0;
    if (type == 3 && values <= 2) {
      ROPEWALK_ASSIGN_OR_RETURN(value, read_ordered<std::uint16_t>(field, big));
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(value, read_ordered<std::uint32_t>(field, big));
    }
    if (tag == 258 && type == 3 && values > 2) {  // several depths, elsewhere: take the first
      ByteCursor depths(bytes);
      ROPEWALK_RETURN_IF_ERROR(depths.skip(value));
      ROPEWALK_ASSIGN_OR_RETURN(value, read_ordered<std::uint16_t>(depths, big));
    }
    if (value > INT32_MAX) continue;
    if (tag == 256) info.width = static_cast<int>(value);
    if (tag == 257) info.height = static_cast<int>(value);
    if (tag == 258) info.bits_per_sample = static_cast<int>(value);
    if (tag == 277) info.channels = static_cast<int>(value);
  }
  if (info.width == 0 || info.height == 0) return data_loss("tiff: no size in the first directory");
  return info;
}

Result<ImageInfo> probe_webp(ByteSpan bytes) {
  ByteCursor in(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(12));
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan chunk, in.take(4));
  ROPEWALK_RETURN_IF_ERROR(in.skip(4));
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan head, in.take(10));
  ImageInfo info{.kind = ImageKind::webp, .channels = 3, .bits_per_sample = 8};
  const auto at = [&](std::size_t i) { return int{head[i]}; };
  if (as_text(chunk) == "VP8X") {
    info.channels = (at(0) & 0x10) != 0 ? 4 : 3;
    info.width = 1 + (at(4) | at(5) << 8 | at(6) << 16);
    info.height = 1 + (at(7) | at(8) << 8 | at(9) << 16);
  } else if (as_text(chunk) == "VP8L") {
    if (at(0) != 0x2f) return data_loss("webp: no signature of lossless data");
    info.width = 1 + (at(1) | (at(2) & 0x3f) << 8);
    info.height = 1 + (at(2) >> 6 | at(3) << 2 | (at(4) & 0x0f) << 10);
    info.channels = (at(4) & 0x10) != 0 ? 4 : 3;
  } else if (as_text(chunk) == "VP8 ") {
    info.width = (at(6) | at(7) << 8) & 0x3fff;
    info.height = (at(8) | at(9) << 8) & 0x3fff;
  } else {
    return data_loss("webp: the first chunk is no picture");
  }
  return info;
}

Result<ImageInfo> probe_gif(ByteSpan bytes) {
  ByteCursor in(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(6));
  ImageInfo info{.kind = ImageKind::gif, .channels = 3, .bits_per_sample = 8};
  ROPEWALK_ASSIGN_OR_RETURN(info.width, in.read_le<std::uint16_t>());
  ROPEWALK_ASSIGN_OR_RETURN(info.height, in.read_le<std::uint16_t>());
  return info;
}

Result<ImageInfo> probe_bmp(ByteSpan bytes) {
  ByteCursor in(bytes);
  ROPEWALK_RETURN_IF_ERROR(in.skip(18));
  ROPEWALK_ASSIGN_OR_RETURN(const auto width, in.read_le<std::int32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const auto height, in.read_le<std::int32_t>());
  ROPEWALK_RETURN_IF_ERROR(in.skip(2));
  ROPEWALK_ASSIGN_OR_RETURN(const auto bits, in.read_le<std::uint16_t>());
  if (width <= 0 || height == 0 || height == INT32_MIN) {
    return data_loss(fmt::format("bmp: size {}x{}", width, height));
  }
  return ImageInfo{.kind = ImageKind::bmp,
                   .width = width,
                   .height = height < 0 ? -height : height,  // negative: rows from the top
                   .channels = bits == 32 ? 4 : 3,
                   .bits_per_sample = 8};
}

Result<ImageInfo> probe_kind(ByteSpan bytes) {
  switch (image_kind(bytes)) {
    case ImageKind::jpeg:
      return probe_jpeg(bytes);
    case ImageKind::png:
      return probe_png(bytes);
    case ImageKind::tiff:
      return probe_tiff(bytes);
    case ImageKind::webp:
      return probe_webp(bytes);
    case ImageKind::gif:
      return probe_gif(bytes);
    case ImageKind::bmp:
      return probe_bmp(bytes);
    case ImageKind::unknown:
      break;
  }
  return invalid_argument(bytes.empty() ? "no bytes of a picture" : "no known kind of picture");
}

}  // namespace

std::string_view image_kind_name(ImageKind kind) {
  switch (kind) {
    case ImageKind::jpeg:
      return "jpeg";
    case ImageKind::png:
      return "png";
    case ImageKind::tiff:
      return "tiff";
    case ImageKind::webp:
      return "webp";
    case ImageKind::gif:
      return "gif";
    case ImageKind::bmp:
      return "bmp";
    case ImageKind::unknown:
      break;
  }
  return "unknown";
}

ImageKind image_kind(ByteSpan bytes) {
  using namespace std::string_view_literals;
  if (starts_with(bytes, "\xff\xd8\xff"sv)) return ImageKind::jpeg;
  if (starts_with(bytes, kPngMagic)) return ImageKind::png;
  if (starts_with(bytes, "II*\0"sv) || starts_with(bytes, "MM\0*"sv)) return ImageKind::tiff;
  if (starts_with(bytes, "GIF87a"sv) || starts_with(bytes, "GIF89a"sv)) return ImageKind::gif;
  if (bytes.size() >= 12 && starts_with(bytes, "RIFF"sv) &&
      starts_with(bytes.subspan(8), "WEBP"sv)) {
    return ImageKind::webp;
  }
  // Two letters are little proof: the reserved fields of a bitmap's head are zero as well.
  if (bytes.size() >= 26 && starts_with(bytes, "BM"sv) &&
      starts_with(bytes.subspan(6), "\0\0\0\0"sv)) {
    return ImageKind::bmp;
  }
  return ImageKind::unknown;
}

Result<ImageInfo> probe_image(ByteSpan bytes) {
  ROPEWALK_ASSIGN_OR_RETURN(const ImageInfo info, probe_kind(bytes));
  if (info.width <= 0 || info.height <= 0) {
    return data_loss(
        fmt::format("{}: size {}x{}", image_kind_name(info.kind), info.width, info.height));
  }
  return info;
}

}  // namespace ropewalk
