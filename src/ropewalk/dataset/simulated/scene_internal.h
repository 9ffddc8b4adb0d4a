#pragma once
// Scene: the table, the two arms and their blocks as a camera sees them.
#include <cstdint>
#include <mutex>
#include <vector>

#include "ropewalk/dataset/simulated/canvas_internal.h"
#include "ropewalk/dataset/simulated/motion_internal.h"

namespace ropewalk::simulated {

/// What every picture of one data set shares: the table, and the background of each camera that
/// does not move, painted once when it is first asked for.
/// Threads: const members may run concurrently. Memory: three bytes per pixel and camera.
class Scenery {
 public:
  Scenery(int cameras, int width, int height);

  int width() const { return width_; }
  int height() const { return height_; }
  const Ground& ground() const { return ground_; }
  /// The background of a camera that stands still.
  ByteSpan background(int camera) const;

 private:
  struct Still {
    std::once_flag once;
    Bytes rgb;
  };
  int width_;
  int height_;
  Ground ground_;
  mutable std::vector<Still> stills_;
};

/// Where a camera is at `time`; those on the wrists move with the hands.
Camera scene_camera(const Scenery& scenery, int camera, const Motion& motion, double time);

/// Draws pictures of one camera: 0 from above, 1 and 2 on the wrists, 3… around the table.
/// Not thread-safe; keep one per reader. Lifetime: the scenery outlives it.
class SceneReader {
 public:
  SceneReader(const Scenery& scenery, int camera);
  /// Draws the scene at `time` into `rgb`, shape [height, width, 3]. `palette` chooses the colours
  /// of the blocks, `noise_seed` the sensor noise: the same numbers give the same picture to the
  /// bit.
  void draw(const Motion& motion, double time, int palette, std::uint64_t noise_seed,
            MutableByteSpan rgb);

 private:
  const Scenery& scenery_;
  int camera_;
  Canvas canvas_;
};

}  // namespace ropewalk::simulated
