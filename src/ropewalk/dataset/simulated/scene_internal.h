#pragma once
// Scene: draws one picture of the table, the arms and the blocks from a camera above or on a wrist.
#include <cstdint>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/dataset/simulated/motion_internal.h"

namespace ropewalk::simulated {

struct SceneView {
  int camera = 0;  ///< 0 top, 1 left wrist, 2 right wrist, 3… around the table
  int width = 0;
  int height = 0;
};

/// Draws the scene at `time` into `rgb`, shape [height, width, 3]. `noise_seed` decides the sensor
/// noise: the same seed gives the same picture to the bit.
void draw_scene(const Motion& motion, double time, const SceneView& view, std::uint64_t noise_seed,
                MutableByteSpan rgb);

}  // namespace ropewalk::simulated
