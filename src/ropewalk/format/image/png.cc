#include <spng.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "ropewalk/format/image/image_internal.h"

namespace ropewalk {
namespace {

constexpr std::size_t kMaxChunkBytes = 64 << 20;  // of text and colour profiles
constexpr std::uint32_t kMaxSide = 1 << 24;

struct ContextDeleter {
  void operator()(spng_ctx* context) const { spng_ctx_free(context); }
};
using Context = std::unique_ptr<spng_ctx, ContextDeleter>;

Status png_error(int error) { return data_loss(fmt::format("png: {}", spng_strerror(error))); }

struct Reader {
  Context context;
  spng_ihdr header{};
};

Result<Reader> open(ByteSpan bytes) {
  Reader reader;
  reader.context.reset(spng_ctx_new(0));
  if (!reader.context) return resource_exhausted("png: no memory for a decoder");
  spng_set_image_limits(reader.context.get(), kMaxSide, kMaxSide);
  spng_set_chunk_limits(reader.context.get(), kMaxChunkBytes, kMaxChunkBytes);
  if (const int error = spng_set_png_buffer(reader.context.get(), bytes.data(), bytes.size())) {
    return png_error(error);
  }
  if (const int error = spng_get_ihdr(reader.context.get(), &reader.header)) {
    return png_error(error);
  }
  return reader;
}

bool is_gray(const spng_ihdr& header) {
  return header.color_type == SPNG_COLOR_TYPE_GRAYSCALE ||
         header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA;
}

/// How a picture is decoded: spng's format and the channels it gives.
struct Plan {
  int format = SPNG_FMT_PNG;
  int channels = 1;
  bool has_alpha = false;  ///< the last channel, to be dropped
  int sample_bytes = 1;
};

Plan plan_of(const spng_ihdr& header, ImageChannels wanted) {
  const bool gray = is_gray(header);
  if (wanted == ImageChannels::rgb || (wanted == ImageChannels::gray && !gray) ||
      header.color_type == SPNG_COLOR_TYPE_INDEXED) {
    return {.format = SPNG_FMT_RGB8, .channels = 3};
  }
  if (gray && header.bit_depth < 8) return {.format = SPNG_FMT_G8, .channels = 1};
  const bool alpha = header.color_type == SPNG_COLOR_TYPE_GRAYSCALE_ALPHA ||
                     header.color_type == SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  return {.format = SPNG_FMT_PNG,
          .channels = (gray ? 1 : 3) + (alpha ? 1 : 0),
          .has_alpha = alpha,
          .sample_bytes = header.bit_depth / 8};
}

}  // namespace

namespace image_internal {

Result<FrameShape> png_shape(ByteSpan bytes, ImageChannels channels) {
  ROPEWALK_ASSIGN_OR_RETURN(const Reader reader, open(bytes));
  const Plan plan = plan_of(reader.header, channels);
  const bool gray = channels == ImageChannels::gray;
  return FrameShape{.height = static_cast<int>(reader.header.height),
                    .width = static_cast<int>(reader.header.width),
                    .channels = gray ? 1 : plan.channels - (plan.has_alpha ? 1 : 0),
                    .bytes_per_sample = plan.sample_bytes};
}

Status decode_png(ByteSpan bytes, ImageChannels channels, const FrameShape& shape,
                  MutableByteSpan out) {
  ROPEWALK_ASSIGN_OR_RETURN(const Reader reader, open(bytes));
  const Plan plan = plan_of(reader.header, channels);
  const bool to_luma = channels == ImageChannels::gray && plan.channels >= 3;
  const bool direct = !plan.has_alpha && !to_luma;
  Bytes whole;
  MutableByteSpan target = out;
  if (!direct) {
    whole.resize(static_cast<std::size_t>(shape.width) * static_cast<std::size_t>(shape.height) *
                 static_cast<std::size_t>(plan.channels * plan.sample_bytes));
    target = whole;
  }
  std::size_t needed = 0;
  int error = spng_decoded_image_size(reader.context.get(), plan.format, &needed);
  if (error != 0) return png_error(error);
  if (needed != target.size()) {
    return internal(fmt::format("png: {} bytes of pixels, expected {}", needed, target.size()));
  }
  error = spng_decode_image(reader.context.get(), target.data(), target.size(), plan.format, 0);
  if (error != 0) return png_error(error);
  if (direct) return ok_status();
  if (to_luma) {
    luma_of_rgb(whole, out);
    return ok_status();
  }
  const auto kept = static_cast<std::size_t>((plan.channels - 1) * plan.sample_bytes);
  const auto pixel = static_cast<std::size_t>(plan.channels * plan.sample_bytes);
  for (std::size_t i = 0; i < whole.size() / pixel; ++i) {
    std::memcpy(out.data() + i * kept, whole.data() + i * pixel, kept);
  }
  return ok_status();
}

}  // namespace image_internal

Result<Bytes> encode_png(const FrameShape& shape, ByteSpan pixels, int level) {
  if (level < 0 || level > 9)
    return invalid_argument(fmt::format("png: level {} is not in 0..9", level));
  const bool channels_ok = shape.channels == 1 || shape.channels == 3 || shape.channels == 4;
  const bool sample_ok = shape.bytes_per_sample == 1 || shape.bytes_per_sample == 2;
  if (!channels_ok || !sample_ok || shape.width < 1 || shape.height < 1) {
    return invalid_argument(fmt::format("png: cannot hold {}x{} with {} channels of {} bytes",
                                        shape.width, shape.height, shape.channels,
                                        shape.bytes_per_sample));
  }
  if (pixels.size() != shape.frame_bytes()) {
    return invalid_argument(fmt::format("png: {} bytes of pixels, the shape has {}", pixels.size(),
                                        shape.frame_bytes()));
  }
  const Context context(spng_ctx_new(SPNG_CTX_ENCODER));
  if (!context) return resource_exhausted("png: no memory for an encoder");
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, level);
  spng_ihdr header{};
  header.width = static_cast<std::uint32_t>(shape.width);
  header.height = static_cast<std::uint32_t>(shape.height);
  header.bit_depth = static_cast<std::uint8_t>(shape.bytes_per_sample * 8);
  header.color_type = shape.channels == 1   ? SPNG_COLOR_TYPE_GRAYSCALE
                      : shape.channels == 3 ? SPNG_COLOR_TYPE_TRUECOLOR
                                            : SPNG_COLOR_TYPE_TRUECOLOR_ALPHA;
  int error = spng_set_ihdr(context.get(), &header);
  if (error == 0) {
    error = spng_encode_image(context.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG,
                              SPNG_ENCODE_FINALIZE);
  }
  if (error != 0) return internal(fmt::format("png: {}", spng_strerror(error)));
  std::size_t size = 0;
  const std::unique_ptr<void, void (*)(void*)> buffer(
      spng_get_png_buffer(context.get(), &size, &error), std::free);
  if (!buffer) return internal(fmt::format("png: {}", spng_strerror(error)));
  const auto* data = static_cast<const std::uint8_t*>(buffer.get());
  return Bytes(data, data + size);
}

}  // namespace ropewalk
