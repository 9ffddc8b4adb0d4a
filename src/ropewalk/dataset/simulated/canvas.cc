#include <algorithm>
#include <cmath>
#include <limits>

#include "ropewalk/dataset/simulated/canvas_internal.h"

namespace ropewalk::simulated {
namespace {

constexpr float kNear = 0.03F;  // metres in front of the eye
constexpr float kFar = std::numeric_limits<float>::max();

float f32(double value) { return static_cast<float>(value); }

std::size_t at(int y, int width, int x) {
  return static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
         static_cast<std::size_t>(x);
}

inline void blend_pixel(std::uint8_t* pixel, Colour colour, float alpha) {
  if (alpha >= 1) {
    const auto level = [](float value) {
      return static_cast<std::uint8_t>(std::clamp(value + 0.5F, 0.0F, 255.0F));
    };
    pixel[0] = level(colour.r);
    pixel[1] = level(colour.g);
    pixel[2] = level(colour.b);
    return;
  }
  const auto mix = [alpha](std::uint8_t old, float value) {
    const float mixed = static_cast<float>(old) + (value - static_cast<float>(old)) * alpha;
    return static_cast<std::uint8_t>(std::clamp(mixed + 0.5F, 0.0F, 255.0F));
  };
  pixel[0] = mix(pixel[0], colour.r);
  pixel[1] = mix(pixel[1], colour.g);
  pixel[2] = mix(pixel[2], colour.b);
}

Colour scaled(Colour colour, float light, float white = 0) {
  return {colour.r * light + white, colour.g * light + white, colour.b * light + white};
}

int clamp_pixel(float value, int limit) {
  return static_cast<int>(std::clamp(value, 0.0F, static_cast<float>(limit)));
}

}  // namespace

Vec3 light_direction() { return normalized({-0.45, -0.25, 1.0}); }

Vec3 shadow_of(Vec3 point) {
  const Vec3 light = light_direction();
  return point - light * (point.z / light.z);
}

Camera look_at(Vec3 eye, Vec3 target, Vec3 up, double field_of_view, int width, int height) {
  Camera out;
  out.eye = eye;
  out.axes.z = normalized(target - eye);
  out.axes.x = normalized(cross(out.axes.z, up));
  out.axes.y = cross(out.axes.z, out.axes.x);
  out.focal = height / (2.0 * std::tan(field_of_view / 2));
  out.width = width;
  out.height = height;
  return out;
}

Canvas::Canvas(int width, int height)
    : width_(width),
      height_(height),
      depth_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height)),
      shadow_(depth_.size()),
      shaded_(static_cast<std::size_t>(height)),
      dark_(static_cast<std::size_t>(width)) {}

void Canvas::begin(const Camera& camera, MutableByteSpan rgb) {
  camera_ = camera;
  rgb_ = rgb;
  std::ranges::fill(depth_, kFar);
  std::ranges::fill(shaded_, Span{});
  // A ray eye + t * d meets the table at t = -eye.z / d.z; d is linear in the pixel.
  const Frame& f = camera.axes;
  const double cx = width_ / 2.0 - 0.5;
  const double cy = height_ / 2.0 - 0.5;
  const Vec3 corner = f.z * camera.focal - f.x * cx - f.y * cy;
  const auto rows = [&](double e, double right, double down, double start, std::size_t row) {
    // e + (-eye.z / d.z) * d.axis = (e * d.z - eye.z * d.axis) / d.z
    ground_[row * 3] = f32(e * f.x.z - camera.eye.z * right);
    ground_[row * 3 + 1] = f32(e * f.y.z - camera.eye.z * down);
    ground_[row * 3 + 2] = f32(e * corner.z - camera.eye.z * start);
  };
  rows(camera.eye.x, f.x.x, f.y.x, corner.x, 0);
  rows(camera.eye.y, f.x.y, f.y.y, corner.y, 1);
  ground_[6] = f32(f.x.z);
  ground_[7] = f32(f.y.z);
  ground_[8] = f32(corner.z);
}

Canvas::Projected Canvas::project(Vec3 point) const {
  const Vec3 d = point - camera_.eye;
  const double depth = dot(d, camera_.axes.z);
  const double scale = camera_.focal / depth;
  return {f32(width_ / 2.0 + dot(d, camera_.axes.x) * scale),
          f32(height_ / 2.0 + dot(d, camera_.axes.y) * scale), f32(depth)};
}

Canvas::Area Canvas::area_around(std::span<const Vec3> points, float margin) const {
  float x0 = f32(width_);
  float y0 = f32(height_);
  float x1 = 0;
  float y1 = 0;
  for (const Vec3& point : points) {
    const Projected p = project(point);
    if (p.depth < kNear) return {0, 0, width_, height_};
    x0 = std::min(x0, p.x);
    y0 = std::min(y0, p.y);
    x1 = std::max(x1, p.x);
    y1 = std::max(y1, p.y);
  }
  return {clamp_pixel(x0 - margin, width_), clamp_pixel(y0 - margin, height_),
          clamp_pixel(x1 + margin + 1, width_), clamp_pixel(y1 + margin + 1, height_)};
}

// The table in one row of the picture. A pixel x of row y sees the point (u / w, v / w), all three
// linear in x; w is negative below the horizon. So what a convex shape on the table covers of a row
// is one interval, and where it ends follows from a quadratic (a disc) or from lines (a strip).
class Canvas::GroundSpans {
 public:
  GroundSpans(const Canvas& canvas, Vec3 a, Vec3 b, float radius)
      : ground_(canvas.ground_),
        width_(canvas.width_),
        ax_(f32(a.x)),
        ay_(f32(a.y)),
        dx_(f32(b.x - a.x)),
        dy_(f32(b.y - a.y)),
        radius_(radius),
        length2_(dx_ * dx_ + dy_ * dy_) {}

  /// Where a pixel row may see the shape; one pixel more at either end.
  Span row(int y) const {
    const auto fy = static_cast<float>(y);
    const Row row{ground_[1] * fy + ground_[2], ground_[4] * fy + ground_[5],
                  ground_[7] * fy + ground_[8]};
    Interval out = disc(row, ax_, ay_);
    if (length2_ > 1e-12F) {
      out = hull(out, disc(row, ax_ + dx_, ay_ + dy_));
      out = hull(out, strip(row));
    }
    Interval below{-1, f32(width_) + 1};  // the horizon
    clip(below, ground_[6], row.w + kHorizon);
    out = {std::max(out.begin, below.begin), std::min(out.end, below.end)};
    if (!(out.begin <= out.end)) return {};
    return {clamp_pixel(out.begin - 1, width_), clamp_pixel(out.end + 2, width_)};
  }

 private:
  struct Row {
    float u, v, w;  // at x = 0
  };
  struct Interval {
    float begin = kFar;
    float end = -kFar;
  };
  static constexpr float kHorizon = 1e-3F;

  static Interval hull(Interval a, Interval b) {
    return {std::min(a.begin, b.begin), std::max(a.end, b.end)};
  }
  // Keeps where slope * x + start <= 0.
  static void clip(Interval& interval, float slope, float start) {
    if (slope > 0) {
      interval.end = std::min(interval.end, -start / slope);
    } else if (slope < 0) {
      interval.begin = std::max(interval.begin, -start / slope);
    } else if (start > 0) {
      interval = {};
    }
  }
  Interval disc(const Row& row, float cx, float cy) const {
    const double a = ground_[0] - cx * ground_[6];
    const double b = row.u - cx * row.w;
    const double c = ground_[3] - cy * ground_[6];
    const double d = row.v - cy * row.w;
    const double r2 = radius_ * radius_;
    const double alpha = a * a + c * c - r2 * ground_[6] * ground_[6];
    if (alpha <= 1e-12) return {-1, f32(width_) + 1};
    const double beta = a * b + c * d - r2 * ground_[6] * row.w;
    const double gamma = b * b + d * d - r2 * row.w * row.w;
    const double root = beta * beta - alpha * gamma;
    if (root < 0) return {};
    const double half = std::sqrt(root) / alpha;
    const double middle = -beta / alpha;
    return {f32(middle - half), f32(middle + half)};
  }
  Interval strip(const Row& row) const {
    const float a = ground_[0] - ax_ * ground_[6];
    const float b = row.u - ax_ * row.w;
    const float c = ground_[3] - ay_ * ground_[6];
    const float d = row.v - ay_ * row.w;
    const float wide = radius_ * std::sqrt(length2_);
    const float across = a * dy_ - c * dx_;
    const float across_start = b * dy_ - d * dx_;
    const float along = a * dx_ + c * dy_;
    const float along_start = b * dx_ + d * dy_;
    Interval out{-1, f32(width_) + 1};
    clip(out, across + wide * ground_[6], across_start + wide * row.w);
    clip(out, wide * ground_[6] - across, wide * row.w - across_start);
    clip(out, along, along_start);
    clip(out, length2_ * ground_[6] - along, length2_ * row.w - along_start);
    return out.begin <= out.end ? out : Interval{};
  }

  const std::array<float, 9>& ground_;
  int width_;
  float ax_, ay_, dx_, dy_, radius_, length2_;
};

void Canvas::mark(Vec3 centre, double yaw, double half, Colour colour) {
  const double reach = half * 1.5;
  const std::array<Vec3, 4> corners{centre + Vec3{-reach, -reach, 0},
                                    centre + Vec3{reach, -reach, 0}, centre + Vec3{reach, reach, 0},
                                    centre + Vec3{-reach, reach, 0}};
  const float c = f32(std::cos(yaw));
  const float s = f32(std::sin(yaw));
  const float cx = f32(centre.x);
  const float cy = f32(centre.y);
  const float h = f32(half);
  const Area area = area_around(corners, 1);
  const GroundSpans spans(*this, centre, centre, f32(reach));
  for (int y = area.y0; y < area.y1; ++y) {
    const Span span = spans.row(y);
    const auto fy = static_cast<float>(y);
    const float u0 = ground_[1] * fy + ground_[2];
    const float v0 = ground_[4] * fy + ground_[5];
    const float w0 = ground_[7] * fy + ground_[8];
    for (int x = span.begin; x < span.end; ++x) {
      const auto fx = static_cast<float>(x);
      const float w = ground_[6] * fx + w0;
      if (w > -1e-3F) continue;  // at or above the horizon
      const float inverse = 1.0F / w;
      const float gx = (ground_[0] * fx + u0) * inverse - cx;
      const float gy = (ground_[3] * fx + v0) * inverse - cy;
      const float metres = f32(camera_.eye.z) * -inverse;  // per pixel
      const float u = std::abs(gx * c + gy * s);
      const float v = std::abs(gy * c - gx * s);
      const float edge = (h - std::max(u, v)) / metres + 0.5F;
      if (edge <= 0) continue;
      const float inner = std::clamp((h * 0.82F - std::max(u, v)) / metres + 0.5F, 0.0F, 1.0F);
      blend_pixel(rgb_.data() + 3 * at(y, width_, x), colour,
                  std::min(edge, 1.0F) * (0.85F - 0.45F * inner));
    }
  }
}

void Canvas::cast_segment(Vec3 a, Vec3 b, double radius, double soft) {
  const double reach = radius + soft;
  std::array<Vec3, 8> corners;
  for (std::size_t i = 0; i < 8; ++i) {
    const Vec3 end = i < 4 ? a : b;
    corners[i] = end + Vec3{(i & 1) != 0 ? reach : -reach, (i & 2) != 0 ? reach : -reach, 0};
  }
  const Area area = area_around(corners, 1);
  const float ax = f32(a.x);
  const float ay = f32(a.y);
  const float dx = f32(b.x - a.x);
  const float dy = f32(b.y - a.y);
  const float scale = 1.0F / std::max(1e-9F, dx * dx + dy * dy);
  const float outer = f32(radius + soft);
  const float slope = 255.0F / f32(2 * soft);
  const GroundSpans spans(*this, a, b, outer);
  for (int y = area.y0; y < area.y1; ++y) {
    const Span span = spans.row(y);
    if (span.begin >= span.end) continue;
    std::uint8_t* const row = shadow_.data() + at(y, width_, 0);
    Span& shaded = shaded_[static_cast<std::size_t>(y)];
    if (shaded.begin >= shaded.end) shaded = {span.begin, span.begin};
    if (span.begin < shaded.begin) {
      std::fill(row + span.begin, row + shaded.begin, std::uint8_t{0});
      shaded.begin = span.begin;
    }
    if (span.end > shaded.end) {
      std::fill(row + shaded.end, row + span.end, std::uint8_t{0});
      shaded.end = span.end;
    }
    const auto fy = static_cast<float>(y);
    const float u0 = ground_[1] * fy + ground_[2];
    const float v0 = ground_[4] * fy + ground_[5];
    const float w0 = ground_[7] * fy + ground_[8];
    const float u1 = ground_[0];
    const float v1 = ground_[3];
    const float w1 = ground_[6];
    // Without a branch, so that several pixels are computed at once.
    float* const dark = dark_.data();
    const int count = span.end - span.begin;
    const float first = static_cast<float>(span.begin);
    for (int i = 0; i < count; ++i) {
      const float fx = first + static_cast<float>(i);
      const float w = w1 * fx + w0;
      const float inverse = 1.0F / w;
      const float ex = (u1 * fx + u0) * inverse - ax;
      const float ey = (v1 * fx + v0) * inverse - ay;
      float s = (ex * dx + ey * dy) * scale;
      s = s > 0.0F ? s : 0.0F;
      s = s < 1.0F ? s : 1.0F;
      const float px = ex - s * dx;
      const float py = ey - s * dy;
      float value = (outer - std::sqrt(px * px + py * py)) * slope;
      value = w > -1e-3F ? 0.0F : value;  // at or above the horizon
      value = value > 0.0F ? value : 0.0F;
      dark[i] = value < 255.0F ? value : 255.0F;
    }
    std::uint8_t* const shades = row + span.begin;
    for (int i = 0; i < count; ++i) {
      const auto value = static_cast<std::uint8_t>(static_cast<int>(dark[i]));
      shades[i] = shades[i] > value ? shades[i] : value;
    }
  }
}

void Canvas::cast(const Rod& rod) {
  const double height = (rod.a.z + rod.b.z) / 2;
  cast_segment(shadow_of(rod.a), shadow_of(rod.b), (rod.radius_a + rod.radius_b) / 2,
               0.006 + 0.05 * height);
}

void Canvas::cast(const Box& box) {
  const Vec3 low = box.centre - Vec3{0, 0, box.half.z * 0.6};
  const Vec3 high = box.centre + Vec3{0, 0, box.half.z * 0.9};
  cast_segment(shadow_of(low), shadow_of(high), std::max(box.half.x, box.half.y) * 1.08,
               0.006 + 0.05 * box.centre.z);
}

void Canvas::drop_shadows() {
  for (int y = 0; y < height_; ++y) {
    const Span span = shaded_[static_cast<std::size_t>(y)];
    std::uint8_t* pixel = rgb_.data() + 3 * at(y, width_, span.begin);
    const std::uint8_t* shade = shadow_.data() + at(y, width_, span.begin);
    for (int x = span.begin; x < span.end; ++x, pixel += 3, ++shade) {
      if (*shade == 0) continue;
      // Shadows are a little blue: the sky lights them.
      const unsigned dark = *shade;
      pixel[0] = static_cast<std::uint8_t>(pixel[0] - (pixel[0] * dark * 118U >> 16));
      pixel[1] = static_cast<std::uint8_t>(pixel[1] - (pixel[1] * dark * 114U >> 16));
      pixel[2] = static_cast<std::uint8_t>(pixel[2] - (pixel[2] * dark * 104U >> 16));
    }
  }
}

void Canvas::rod(const Rod& rod) {
  // Cut at the near plane first.
  Vec3 a = rod.a;
  Vec3 b = rod.b;
  double ra = rod.radius_a;
  double rb = rod.radius_b;
  const double da = dot(a - camera_.eye, camera_.axes.z);
  const double db = dot(b - camera_.eye, camera_.axes.z);
  if (da < kNear && db < kNear) return;
  if (da < kNear || db < kNear) {
    const double s = (kNear - da) / (db - da);
    const Vec3 cut = a + (b - a) * s;
    const double radius = ra + (rb - ra) * s;
    (da < kNear ? a : b) = cut;
    (da < kNear ? ra : rb) = radius;
  }
  const Projected p = project(a);
  const Projected q = project(b);
  const float focal = f32(camera_.focal);
  const float pr = f32(ra) * focal / p.depth;
  const float qr = f32(rb) * focal / q.depth;
  const float reach = std::max(pr, qr) + 1;
  const Area area{clamp_pixel(std::min(p.x, q.x) - reach, width_),
                  clamp_pixel(std::min(p.y, q.y) - reach, height_),
                  clamp_pixel(std::max(p.x, q.x) + reach + 1, width_),
                  clamp_pixel(std::max(p.y, q.y) + reach + 1, height_)};
  const float dx = q.x - p.x;
  const float dy = q.y - p.y;
  const float length2 = dx * dx + dy * dy;
  const float inverse2 = 1.0F / std::max(1e-6F, length2);
  const Vec3 world_light = light_direction();
  const float lx = f32(dot(world_light, camera_.axes.x));
  const float ly = f32(dot(world_light, camera_.axes.y));
  const float lz = -f32(dot(world_light, camera_.axes.z));
  const float radius_metres = f32(std::max(ra, rb));
  const float length = std::sqrt(length2);
  for (int y = area.y0; y < area.y1; ++y) {
    const float ey = static_cast<float>(y) + 0.5F - p.y;
    // What a row sees lies around the middle line, where that is steep enough to tell.
    int begin = area.x0;
    int end = area.x1;
    if (std::abs(dy) > 1e-3F * length && length > 1) {
      const float near = std::clamp((ey - reach) / dy, 0.0F, 1.0F);
      const float far = std::clamp((ey + reach) / dy, 0.0F, 1.0F);
      begin = std::max(begin, clamp_pixel(p.x + std::min(near * dx, far * dx) - reach, width_));
      end = std::min(end, clamp_pixel(p.x + std::max(near * dx, far * dx) + reach + 1, width_));
    }
    for (int x = begin; x < end; ++x) {
      const float ex = static_cast<float>(x) + 0.5F - p.x;
      const float s = std::clamp((ex * dx + ey * dy) * inverse2, 0.0F, 1.0F);
      const float radius = std::max(0.7F, pr + (qr - pr) * s);
      const float px = ex - s * dx;
      const float py = ey - s * dy;
      const float squared = px * px + py * py;
      if (squared >= (radius + 0.5F) * (radius + 0.5F)) continue;
      const float distance = std::sqrt(squared);
      const float coverage = std::min(1.0F, radius + 0.5F - distance);
      const float nx = px / radius;
      const float ny = py / radius;
      const float nz = std::sqrt(std::max(0.0F, 1.0F - nx * nx - ny * ny));
      const float depth = p.depth + (q.depth - p.depth) * s - nz * radius_metres;
      float& nearest = depth_[at(y, width_, x)];
      if (depth >= nearest) continue;
      if (coverage > 0.5F) nearest = depth;
      const float facing = nx * lx + ny * ly + nz * lz;
      const float light = 0.42F + 0.62F * std::max(0.0F, facing);
      float shine = std::max(0.0F, facing - 0.75F) * 4.0F;
      shine *= shine * rod.gloss * 110.0F;
      blend_pixel(rgb_.data() + 3 * at(y, width_, x), scaled(rod.colour, light, shine), coverage);
    }
  }
}

void Canvas::face(const std::array<Vec3, 4>& corners, Vec3 normal, Colour colour) {
  std::array<Projected, 4> p;
  for (std::size_t i = 0; i < 4; ++i) {
    p[i] = project(corners[i]);
    if (p[i].depth < kNear) return;
  }
  if (dot(normal, corners[0] - camera_.eye) >= 0) return;  // seen from behind
  float x0 = p[0].x;
  float x1 = p[0].x;
  float y0 = p[0].y;
  float y1 = p[0].y;
  float winding = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const Projected& b = p[(i + 1) % 4];
    x0 = std::min(x0, p[i].x);
    x1 = std::max(x1, p[i].x);
    y0 = std::min(y0, p[i].y);
    y1 = std::max(y1, p[i].y);
    winding += p[i].x * b.y - b.x * p[i].y;
  }
  const float sign = winding > 0 ? 1.0F : -1.0F;
  struct Edge {
    float a, b, c;
  };
  std::array<Edge, 4> edges;
  for (std::size_t i = 0; i < 4; ++i) {
    const Projected& a = p[i];
    const Projected& b = p[(i + 1) % 4];
    const float ex = b.x - a.x;
    const float ey = b.y - a.y;
    const float scale = sign / std::max(1e-6F, std::sqrt(ex * ex + ey * ey));
    edges[i] = {-ey * scale, ex * scale, (ey * a.x - ex * a.y) * scale};
  }
  // The plane of the face: 1 / depth is linear in the picture.
  const double plane = dot(normal, corners[0] - camera_.eye) * camera_.focal;
  const double nx = dot(normal, camera_.axes.x);
  const double ny = dot(normal, camera_.axes.y);
  const double nz = dot(normal, camera_.axes.z) * camera_.focal;
  const float light = 0.50F + 0.55F * std::max(0.0F, f32(dot(normal, light_direction())));
  const Colour lit = scaled(colour, light);
  const Area area{clamp_pixel(x0 - 1, width_), clamp_pixel(y0 - 1, height_),
                  clamp_pixel(x1 + 2, width_), clamp_pixel(y1 + 2, height_)};
  const float slant = f32(nx / plane);  // 1 / depth per pixel to the right
  for (int y = area.y0; y < area.y1; ++y) {
    const float py = static_cast<float>(y) + 0.5F;
    // Each edge leaves an interval of the row, half a pixel beyond itself.
    float left = static_cast<float>(area.x0);
    float right = static_cast<float>(area.x1);
    for (const Edge& edge : edges) {
      const float start = edge.b * py + edge.c + 0.5F;
      if (edge.a > 1e-6F) {
        left = std::max(left, -start / edge.a - 1.5F);
      } else if (edge.a < -1e-6F) {
        right = std::min(right, -start / edge.a + 1.5F);
      }
    }
    if (left >= right) continue;
    const int end = std::min(area.x1, clamp_pixel(right + 1, width_));
    const float begin_depth =
        f32((nx * (0.5 - width_ / 2.0) + ny * (py - height_ / 2.0) + nz) / plane);
    for (int x = std::max(area.x0, clamp_pixel(left, width_)); x < end; ++x) {
      const float px = static_cast<float>(x) + 0.5F;
      float inside = 1e9F;
      for (const Edge& edge : edges) inside = std::min(inside, edge.a * px + edge.b * py + edge.c);
      const float coverage = std::min(1.0F, inside + 0.5F);
      if (coverage <= 0) continue;
      const float depth = 1.0F / (begin_depth + slant * static_cast<float>(x));
      float& nearest = depth_[at(y, width_, x)];
      if (depth >= nearest) continue;
      if (coverage > 0.5F) nearest = depth;
      blend_pixel(rgb_.data() + 3 * at(y, width_, x), inside < 1.5F ? scaled(lit, 0.9F) : lit,
                  coverage);
    }
  }
}

void Canvas::box(const Box& box) {
  const std::array<Vec3, 3> axes{box.axes.x, box.axes.y, box.axes.z};
  const std::array<double, 3> half{box.half.x, box.half.y, box.half.z};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const Vec3 u = axes[(axis + 1) % 3] * half[(axis + 1) % 3];
    const Vec3 v = axes[(axis + 2) % 3] * half[(axis + 2) % 3];
    for (const double side : {-1.0, 1.0}) {
      const Vec3 normal = axes[axis] * side;
      const Vec3 middle = box.centre + normal * half[axis];
      face({middle - u - v, middle + u - v, middle + u + v, middle - u + v}, normal, box.colour);
    }
  }
}

}  // namespace ropewalk::simulated
