#include <turbojpeg.h>

#include <memory>
#include <string>

#include <fmt/format.h>

#include "ropewalk/format/image/image_internal.h"

namespace ropewalk {
namespace {

struct HandleDeleter {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, HandleDeleter>;

struct Header {
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
};

Result<Header> read_header(void* handle, ByteSpan bytes) {
  Header header;
  if (tjDecompressHeader3(handle, bytes.data(), bytes.size(), &header.width, &header.height,
                          &header.subsampling, &header.colorspace) != 0) {
    return data_loss(fmt::format("jpeg: {}", tjGetErrorStr2(handle)));
  }
  if (header.colorspace == TJCS_CMYK || header.colorspace == TJCS_YCCK) {
    return unimplemented("jpeg: CMYK pictures are not supported, convert them to RGB");
  }
  return header;
}

/// Whether a warning means that the picture is whole: stray bytes between segments, as cameras add.
bool is_harmless(std::string_view warning) {
  return warning.find("extraneous bytes") != std::string_view::npos;
}

}  // namespace

namespace image_internal {

Result<FrameShape> jpeg_shape(ByteSpan bytes, ImageChannels channels) {
  const Handle handle(tjInitDecompress());
  if (!handle) return resource_exhausted("jpeg: no memory for a decoder");
  ROPEWALK_ASSIGN_OR_RETURN(const Header header, read_header(handle.get(), bytes));
  const bool gray = channels == ImageChannels::gray ||
                    (channels == ImageChannels::stored && header.colorspace == TJCS_GRAY);
  return FrameShape{.height = header.height, .width = header.width, .channels = gray ? 1 : 3};
}

Status decode_jpeg(ByteSpan bytes, const FrameShape& shape, MutableByteSpan out) {
  const Handle handle(tjInitDecompress());
  if (!handle) return resource_exhausted("jpeg: no memory for a decoder");
  // The gray of a colour picture is its stored luma: nothing is converted.
  const int format = shape.channels == 1 ? TJPF_GRAY : TJPF_RGB;
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  if (tjDecompress2(handle.get(), bytes.data(), bytes.size(), out.data(), shape.width, 0,
                    shape.height, format, flags) == 0) {
    return ok_status();
  }
  const std::string message = tjGetErrorStr2(handle.get());
  if (tjGetErrorCode(handle.get()) == TJERR_WARNING && is_harmless(message)) return ok_status();
  return data_loss(fmt::format("jpeg: {}", message));
}

}  // namespace image_internal

Result<Bytes> encode_jpeg(const FrameShape& shape, ByteSpan pixels, int quality) {
  if (quality < 1 || quality > 100) {
    return invalid_argument(fmt::format("jpeg: quality {} is not in 1..100", quality));
  }
  if ((shape.channels != 1 && shape.channels != 3) || shape.bytes_per_sample != 1 ||
      shape.width < 1 || shape.height < 1 || shape.width > 65500 || shape.height > 65500) {
    return invalid_argument(fmt::format("jpeg: cannot hold {}x{} with {} channels of {} bytes",
                                        shape.width, shape.height, shape.channels,
                                        shape.bytes_per_sample));
  }
  if (pixels.size() != shape.frame_bytes()) {
    return invalid_argument(fmt::format("jpeg: {} bytes of pixels, the shape has {}", pixels.size(),
                                        shape.frame_bytes()));
  }
  const Handle handle(tjInitCompress());
  if (!handle) return resource_exhausted("jpeg: no memory for an encoder");
  unsigned char* buffer = nullptr;
  unsigned long size = 0;
  const bool gray = shape.channels == 1;
  const int error = tjCompress2(handle.get(), pixels.data(), shape.width, 0, shape.height,
                                gray ? TJPF_GRAY : TJPF_RGB, &buffer, &size,
                                gray ? TJSAMP_GRAY : TJSAMP_420, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(buffer, tjFree);
  if (error != 0) return internal(fmt::format("jpeg: {}", tjGetErrorStr2(handle.get())));
  return Bytes(buffer, buffer + size);
}

}  // namespace ropewalk
