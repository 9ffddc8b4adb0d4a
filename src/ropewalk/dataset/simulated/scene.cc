#include <algorithm>
#include <array>
#include <cmath>

#include "ropewalk/dataset/simulated/scene_internal.h"

namespace ropewalk::simulated {
namespace {

struct Colour {
  double r, g, b;
};

constexpr std::array<Colour, 2> kArmColours{{{226, 120, 54}, {58, 124, 190}}};
constexpr std::array<Colour, 2> kBlockColours{{{202, 52, 60}, {66, 160, 88}}};
constexpr Colour kGripper{60, 62, 68};
constexpr double kTwoPi = 6.283185307179586;

// Maps table metres to pixels: rotate by -yaw around the centre, scale, move to the middle.
class Canvas {
 public:
  Canvas(MutableByteSpan rgb, int width, int height, Point centre, double yaw, double metres_across)
      : rgb_(rgb),
        width_(width),
        height_(height),
        centre_(centre),
        cos_(std::cos(yaw)),
        sin_(std::sin(yaw)),
        scale_(static_cast<double>(height) / metres_across) {}

  double scale() const { return scale_; }

  Point to_pixel(Point p) const {
    const double dx = p.x - centre_.x;
    const double dy = p.y - centre_.y;
    return {width_ / 2.0 + (dx * cos_ + dy * sin_) * scale_,
            height_ / 2.0 - (-dx * sin_ + dy * cos_) * scale_};
  }

  void table() {
    // A wooden table with a square grid of lines, so that every motion of a camera is seen.
    const double step = 1.0 / scale_;
    for (int y = 0; y < height_; ++y) {
      const double v = (height_ / 2.0 - y - 0.5) * step;
      for (int x = 0; x < width_; ++x) {
        const double u = (x + 0.5 - width_ / 2.0) * step;
        const double wx = centre_.x + u * cos_ - v * sin_;
        const double wy = centre_.y + u * sin_ + v * cos_;
        const double gx = std::abs(wx / 0.1 - std::round(wx / 0.1));
        const double gy = std::abs(wy / 0.1 - std::round(wy / 0.1));
        const bool line = std::min(gx, gy) < 0.04;
        const bool outside = std::abs(wx) > 0.75 || wy < -0.45 || wy > 0.6;
        const double wood = 12.0 * std::sin(wy * 60.0 + 3.0 * std::sin(wx * 9.0));
        const double base = outside ? 70.0 : 176.0 + wood;
        const double shade = line && !outside ? 0.82 : 1.0;
        put(x, y, {base * shade, base * 0.88 * shade, base * 0.70 * shade}, 1.0);
      }
    }
  }

  /// A thick line with round ends; `radius` in metres.
  void capsule(Point a, Point b, double radius, Colour colour) {
    const Point p = to_pixel(a);
    const Point q = to_pixel(b);
    const double r = std::max(0.8, radius * scale_);
    const double dx = q.x - p.x;
    const double dy = q.y - p.y;
    const double length2 = std::max(1e-12, dx * dx + dy * dy);
    each_pixel(std::min(p.x, q.x) - r, std::min(p.y, q.y) - r, std::max(p.x, q.x) + r,
               std::max(p.y, q.y) + r, [&](int x, int y) {
                 const double ex = x + 0.5 - p.x;
                 const double ey = y + 0.5 - p.y;
                 const double s = std::clamp((ex * dx + ey * dy) / length2, 0.0, 1.0);
                 const double distance = std::hypot(ex - s * dx, ey - s * dy);
                 const double edge = std::clamp(r - distance + 0.5, 0.0, 1.0);
                 // Lit from the left: a bright ridge makes the links look round.
                 const double light = 0.75 + 0.35 * std::clamp(1.0 - distance / r, 0.0, 1.0);
                 put(x, y, {colour.r * light, colour.g * light, colour.b * light}, edge);
               });
  }

  /// A square block of half-size `half` metres.
  void block(Point at, double yaw, double half, Colour colour) {
    const Point c = to_pixel(at);
    const double h = std::max(1.0, half * scale_);
    const Point axis_pixel = to_pixel({at.x + std::cos(yaw), at.y + std::sin(yaw)});
    const double angle = std::atan2(axis_pixel.y - c.y, axis_pixel.x - c.x);
    const double ca = std::cos(angle);
    const double sa = std::sin(angle);
    const double reach = h * 1.5;
    each_pixel(c.x - reach, c.y - reach, c.x + reach, c.y + reach, [&](int x, int y) {
      const double ex = x + 0.5 - c.x;
      const double ey = y + 0.5 - c.y;
      const double u = std::abs(ex * ca + ey * sa);
      const double v = std::abs(-ex * sa + ey * ca);
      const double edge = std::clamp(h - std::max(u, v) + 0.5, 0.0, 1.0);
      const double light = std::max(u, v) > h * 0.72 ? 0.72 : 1.08;
      put(x, y, {colour.r * light, colour.g * light, colour.b * light}, edge);
    });
  }

 private:
  template <typename Paint>
  void each_pixel(double x0, double y0, double x1, double y1, Paint paint) {
    const auto low = [](double v, int limit) {
      return static_cast<int>(std::clamp(std::floor(v), 0.0, static_cast<double>(limit)));
    };
    const auto high = [](double v, int limit) {
      return static_cast<int>(std::clamp(std::ceil(v), 0.0, static_cast<double>(limit)));
    };
    for (int y = low(y0, height_); y < high(y1, height_); ++y) {
      for (int x = low(x0, width_); x < high(x1, width_); ++x) paint(x, y);
    }
  }

  void put(int x, int y, Colour colour, double alpha) {
    if (alpha <= 0) return;
    std::uint8_t* pixel = rgb_.data() + 3 * (static_cast<std::size_t>(y) *
                                                 static_cast<std::size_t>(width_) +
                                             static_cast<std::size_t>(x));
    const auto mix = [alpha](std::uint8_t old, double value) {
      return static_cast<std::uint8_t>(
          std::clamp(old + (value - old) * alpha + 0.5, 0.0, 255.0));
    };
    pixel[0] = mix(pixel[0], colour.r);
    pixel[1] = mix(pixel[1], colour.g);
    pixel[2] = mix(pixel[2], colour.b);
  }

  MutableByteSpan rgb_;
  int width_;
  int height_;
  Point centre_;
  double cos_;
  double sin_;
  double scale_;
};

// Adds noise of -4 … +3 levels, eight samples from each 64-bit number.
void add_sensor_noise(std::uint64_t seed, MutableByteSpan rgb) {
  Random random(seed);
  std::size_t at = 0;
  while (at < rgb.size()) {
    std::uint64_t bits = random.next();
    for (int i = 0; i < 16 && at < rgb.size(); ++i, ++at) {
      const int value = int{rgb[at]} + static_cast<int>(bits & 7) - 4;
      rgb[at] = static_cast<std::uint8_t>(std::clamp(value, 0, 255));
      bits >>= 4;
    }
  }
}

}  // namespace

void draw_scene(const Motion& motion, double time, const SceneView& view, std::uint64_t noise_seed,
                MutableByteSpan rgb) {
  Point centre{0.0, 0.02};
  double yaw = 0.0;
  double metres = 1.05;
  if (view.camera == 1 || view.camera == 2) {
    const ArmShape arm = motion.shape(view.camera - 1, time);
    centre = {arm.joints[3].x + 0.08 * std::cos(arm.tool_yaw),
              arm.joints[3].y + 0.08 * std::sin(arm.tool_yaw)};
    yaw = arm.tool_yaw - kTwoPi / 4;
    metres = 0.42;
  } else if (view.camera > 2) {
    yaw = kTwoPi * view.camera / 7.0;
    metres = 0.9 + 0.08 * view.camera;
  }
  Canvas canvas(rgb, view.width, view.height, centre, yaw, metres);
  canvas.table();
  for (const Block& block : motion.blocks(time)) {
    canvas.block(block.at, block.yaw, 0.035,
                 kBlockColours[static_cast<std::size_t>(block.colour)]);
  }
  for (int index = 0; index < kArms; ++index) {
    const ArmShape arm = motion.shape(index, time);
    const Colour colour = kArmColours[static_cast<std::size_t>(index)];
    canvas.capsule(arm.joints[0], arm.joints[1], 0.040, colour);
    canvas.capsule(arm.joints[1], arm.joints[2], 0.032, colour);
    canvas.capsule(arm.joints[2], arm.joints[3], 0.022, colour);
    const double side = arm.opening / 2 + 0.012;
    for (const double sign : {-1.0, 1.0}) {
      const double nx = -std::sin(arm.tool_yaw) * side * sign;
      const double ny = std::cos(arm.tool_yaw) * side * sign;
      const Point root{arm.joints[3].x + nx, arm.joints[3].y + ny};
      const Point tip{root.x + 0.07 * std::cos(arm.tool_yaw),
                      root.y + 0.07 * std::sin(arm.tool_yaw)};
      canvas.capsule(arm.joints[3], root, 0.010, kGripper);
      canvas.capsule(root, tip, 0.010, kGripper);
    }
  }
  add_sensor_noise(noise_seed, rgb);
}

}  // namespace ropewalk::simulated
