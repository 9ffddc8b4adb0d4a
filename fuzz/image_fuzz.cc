// Pictures: probing and decoding, under limits small enough that no input is slow for its size
// alone.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ropewalk/format/image/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  const ByteSpan bytes(data, size);
  const Limits limits{.max_image_pixels = 1 << 18};
  (void)probe_image(bytes);
  const auto channels = static_cast<ImageChannels>(size % 3);
  const auto image = decode_image(bytes, limits, channels);
  if (image.ok() && image->pixels.size() != image->shape.frame_bytes()) std::abort();
  return 0;
}
