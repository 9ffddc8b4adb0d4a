#pragma once
// The parts of image: one pair of functions per kind that is decoded.
#include "ropewalk/format/image/image.h"

namespace ropewalk::image_internal {

/// Returns the shape decoding gives. Errors: data_loss, unimplemented; limits are the caller's.
Result<FrameShape> jpeg_shape(ByteSpan bytes, ImageChannels channels);
Status decode_jpeg(ByteSpan bytes, const FrameShape& shape, MutableByteSpan out);

Result<FrameShape> png_shape(ByteSpan bytes, ImageChannels channels);
Status decode_png(ByteSpan bytes, ImageChannels channels, const FrameShape& shape,
                  MutableByteSpan out);

/// Replaces RGB by its luma (BT.601, as JPEG has it), rounded to nearest.
void luma_of_rgb(ByteSpan rgb, MutableByteSpan out);

}  // namespace ropewalk::image_internal
