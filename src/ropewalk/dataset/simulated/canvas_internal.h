#pragma once
// Canvas: draws solids seen by a pinhole camera into an RGB picture: tapered rods and boxes with a
// depth buffer, marks on the table, soft shadows on the table.
// Every part is shaded by one light; edges are smooth by coverage.
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/dataset/simulated/kinematics_internal.h"

namespace ropewalk::simulated {

struct Colour {
  float r = 0;
  float g = 0;
  float b = 0;
};

/// A camera: `axes.z` looks into the scene, `axes.x` to the right, `axes.y` down in the picture.
struct Camera {
  Vec3 eye;
  Frame axes;
  double focal = 1;  ///< pixels
  int width = 0;
  int height = 0;
};

/// A camera at `eye` that looks at `target`; `up` is up in the picture. Units: field of view along
/// the picture's height in radians.
Camera look_at(Vec3 eye, Vec3 target, Vec3 up, double field_of_view, int width, int height);

/// A rod with round ends, from `a` with `radius_a` to `b` with `radius_b`.
struct Rod {
  Vec3 a;
  Vec3 b;
  double radius_a = 0;
  double radius_b = 0;
  Colour colour;
  float gloss = 0.25F;
};

struct Box {
  Vec3 centre;
  Frame axes;
  Vec3 half;
  Colour colour;
};

/// The direction that light comes from, and where the shadow of a point lies.
Vec3 light_direction();
Vec3 shadow_of(Vec3 point);

/// Not thread-safe; keep one per reader. Memory: four bytes per pixel for depth, one for shadow.
class Canvas {
 public:
  Canvas(int width, int height);

  /// Begins a picture: `rgb` holds the background, shape [height, width, 3].
  void begin(const Camera& camera, MutableByteSpan rgb);
  /// A flat rectangle on the table, turned by `yaw`, with a lighter rim.
  void mark(Vec3 centre, double yaw, double half, Colour colour);
  /// Gathers the shadow of a rod on the table; drop_shadows() draws all of them at once.
  void cast(const Rod& rod);
  void cast(const Box& box);
  void drop_shadows();
  void rod(const Rod& rod);
  void box(const Box& box);

 private:
  struct Projected {
    float x, y, depth;
  };
  struct Area {
    int x0, y0, x1, y1;
  };
  /// Pixels [begin, end) of one row.
  struct Span {
    int begin = 0;
    int end = 0;
  };
  class GroundSpans;
  Projected project(Vec3 point) const;
  Area area_around(std::span<const Vec3> points, float margin) const;
  void face(const std::array<Vec3, 4>& corners, Vec3 normal, Colour colour);
  void cast_segment(Vec3 a, Vec3 b, double radius, double soft);

  int width_;
  int height_;
  Camera camera_;
  MutableByteSpan rgb_;
  std::vector<float> depth_;
  std::vector<std::uint8_t> shadow_;
  std::vector<Span> shaded_;       ///< by row: where shadow_ counts
  std::vector<float> dark_;        ///< one row at work
  std::array<float, 9> ground_{};  ///< pixel to table, homogeneous
};

/// The table and the floor around it, without anything on it. Immutable; shared by all cameras.
class Ground {
 public:
  Ground();
  /// Paints what `camera` sees of it into `rgb`; `samples` squared rays per pixel.
  void paint(const Camera& camera, int samples, MutableByteSpan rgb) const;

 private:
  static void floor_at(float x, float y, std::uint8_t* rgb);
  int width_;
  int height_;
  std::vector<std::uint64_t> wood_;  ///< by texel: red, green and blue in lanes of 21 bits
};

}  // namespace ropewalk::simulated
