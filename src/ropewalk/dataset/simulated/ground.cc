// Ground: a wooden table with thin lines every ten centimetres, so that every motion of a camera is
// seen, on a dark floor.
#include <algorithm>
#include <cmath>

#include "ropewalk/dataset/simulated/canvas_internal.h"

namespace ropewalk::simulated {
namespace {

constexpr float kLeft = -0.72F;  // the table, metres
constexpr float kRight = 0.72F;
constexpr float kNearEdge = -0.40F;
constexpr float kFarEdge = 0.56F;
constexpr float kTexel = 0.002F;
constexpr unsigned kLaneBits = 21;  // a level times the weights of four texels, 4096 in all

float smooth_noise(float x, float y) {
  const auto hash = [](int i, int j) {
    auto h =
        static_cast<std::uint32_t>(i) * 374761393U + static_cast<std::uint32_t>(j) * 668265263U;
    h = (h ^ (h >> 13)) * 1274126177U;
    return static_cast<float>((h ^ (h >> 16)) & 0xFFFFU) / 65535.0F;
  };
  const float fx = std::floor(x);
  const float fy = std::floor(y);
  const auto i = static_cast<int>(fx);
  const auto j = static_cast<int>(fy);
  const float u = x - fx;
  const float v = y - fy;
  const float su = u * u * (3 - 2 * u);
  const float sv = v * v * (3 - 2 * v);
  const float low = hash(i, j) + (hash(i + 1, j) - hash(i, j)) * su;
  const float high = hash(i, j + 1) + (hash(i + 1, j + 1) - hash(i, j + 1)) * su;
  return low + (high - low) * sv;
}

}  // namespace

Ground::Ground()
    : width_(static_cast<int>((kRight - kLeft) / kTexel)),
      height_(static_cast<int>((kFarEdge - kNearEdge) / kTexel)) {
  wood_.resize(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_));
  std::size_t out = 0;
  for (int row = 0; row < height_; ++row) {
    const float y = kNearEdge + (static_cast<float>(row) + 0.5F) * kTexel;
    for (int column = 0; column < width_; ++column) {
      const float x = kLeft + (static_cast<float>(column) + 0.5F) * kTexel;
      // Planks along x with grain; each plank has a shade of its own.
      const float plank = std::floor((y + 0.40F) / 0.16F);
      const float tone = 0.94F + 0.10F * smooth_noise(plank * 7.3F + 0.5F, 3.5F);
      const float grain = smooth_noise(x * 5.0F + plank * 11.0F, y * 170.0F) * 0.6F +
                          smooth_noise(x * 19.0F, y * 420.0F) * 0.4F;
      const float joint = std::abs(y + 0.40F - (plank + 0.5F) * 0.16F) > 0.0785F ? 0.86F : 1.0F;
      const float gx = std::abs(x - 0.1F * std::round(x / 0.1F));
      const float gy = std::abs(y - 0.1F * std::round(y / 0.1F));
      const float line = std::min(gx, gy) < 0.0016F ? 0.90F : 1.0F;
      const float edge = x < kLeft + 0.012F || x > kRight - 0.012F || y < kNearEdge + 0.012F ||
                                 y > kFarEdge - 0.012F
                             ? 0.72F
                             : 1.0F;
      const float light = tone * (0.86F + 0.16F * grain) * joint * line * edge;
      const auto lane = [light](float level) {
        return static_cast<std::uint64_t>(std::min(255.0F, level * light));
      };
      wood_[out++] = lane(208.0F) | lane(178.0F) << kLaneBits | lane(140.0F) << (2 * kLaneBits);
    }
  }
}

// The floor darkens with the distance from the table.
void Ground::floor_at(float x, float y, std::uint8_t* rgb) {
  const float dx = std::max({kLeft - x, x - kRight, 0.0F});
  const float dy = std::max({kNearEdge - y, y - kFarEdge, 0.0F});
  const float light = 1.0F / (1.0F + 0.9F * std::sqrt(dx * dx + dy * dy));
  rgb[0] = static_cast<std::uint8_t>(30.0F + 34.0F * light);
  rgb[1] = static_cast<std::uint8_t>(33.0F + 36.0F * light);
  rgb[2] = static_cast<std::uint8_t>(40.0F + 40.0F * light);
}

void Ground::paint(const Camera& camera, int samples, MutableByteSpan rgb) const {
  // The ray of a pixel is linear in the pixel; it meets the table at -eye.z / direction.z.
  const auto f32 = [](double value) { return static_cast<float>(value); };
  const Frame& f = camera.axes;
  const double step = 1.0 / samples;
  const Vec3 corner = f.z * camera.focal + f.x * (step / 2 - camera.width / 2.0) +
                      f.y * (step / 2 - camera.height / 2.0);
  const float right_x = f32(f.x.x * step);
  const float right_y = f32(f.x.y * step);
  const float right_z = f32(f.x.z * step);
  const auto eye_x = f32(camera.eye.x);
  const auto eye_y = f32(camera.eye.y);
  const auto eye_z = f32(camera.eye.z);
  const int columns = camera.width * samples;
  // Half a texel back, in 64ths of a texel: what the bilinear weights are made of.
  constexpr float kScale = 64.0F / kTexel;
  const auto last_u = static_cast<float>((width_ - 1) * 64);
  const auto last_v = static_cast<float>((height_ - 1) * 64);
  const std::uint64_t* const wood = wood_.data();
  const int stride = width_;
  // Of one line: where its pixels lie in the wood, or -1, and the weights of four texels.
  std::vector<int> scratch(static_cast<std::size_t>(columns) * 4);
  int* const texel = scratch.data();
  int* const right = texel + columns;
  int* const below = right + columns;
  int* const across = below + columns;
  std::vector<unsigned> sums(static_cast<std::size_t>(samples > 1 ? camera.width * 3 : 0));
  Bytes line(samples > 1 ? static_cast<std::size_t>(columns) * 3 : 0);
  for (int y = 0; y < camera.height; ++y) {
    std::uint8_t* out =
        rgb.data() + static_cast<std::size_t>(y) * static_cast<std::size_t>(camera.width) * 3;
    std::ranges::fill(sums, 0U);
    for (int sub = 0; sub < samples; ++sub) {
      const Vec3 row = corner + f.y * (y + sub * step);
      const float row_x = f32(row.x);
      const float row_y = f32(row.y);
      const float row_z = f32(row.z);
      for (int x = 0; x < columns; ++x) {  // without a branch: several at once
        const float dz = row_z + right_z * static_cast<float>(x);
        const float t = -eye_z / dz;
        float u = (eye_x + t * (row_x + right_x * static_cast<float>(x)) - kLeft) * kScale - 32.0F;
        float v =
            (eye_y + t * (row_y + right_y * static_cast<float>(x)) - kNearEdge) * kScale - 32.0F;
        const bool inside = (dz <= -1e-3F) & (u >= 0) & (v >= 0) & (u < last_u) & (v < last_v);
        u = inside ? u : 0.0F;
        v = inside ? v : 0.0F;
        const int iu = static_cast<int>(u);
        const int iv = static_cast<int>(v);
        const int fu = iu & 63;
        const int fv = iv & 63;
        texel[x] = inside ? (iv >> 6) * stride + (iu >> 6) : -1;
        across[x] = fu * fv;
        right[x] = 64 * fu - fu * fv;
        below[x] = 64 * fv - fu * fv;
      }
      std::uint8_t* pixel = samples > 1 ? line.data() : out;
      for (int x = 0; x < columns; ++x, pixel += 3) {
        if (texel[x] < 0) {
          const float dz = row_z + right_z * static_cast<float>(x);
          if (dz > -1e-3F) {  // the wall above the horizon
            pixel[0] = 34;
            pixel[1] = 38;
            pixel[2] = 46;
          } else {
            const float t = -eye_z / dz;
            floor_at(eye_x + t * (row_x + right_x * static_cast<float>(x)),
                     eye_y + t * (row_y + right_y * static_cast<float>(x)), pixel);
          }
          continue;
        }
        const std::uint64_t* const a = wood + texel[x];
        const std::uint64_t* const b = a + stride;
        const auto w1 = static_cast<std::uint64_t>(right[x]);
        const auto w2 = static_cast<std::uint64_t>(below[x]);
        const auto w3 = static_cast<std::uint64_t>(across[x]);
        const std::uint64_t mixed =
            a[0] * (4096 - w1 - w2 - w3) + a[1] * w1 + b[0] * w2 + b[1] * w3;
        pixel[0] = static_cast<std::uint8_t>(mixed >> 12);
        pixel[1] = static_cast<std::uint8_t>(mixed >> (12 + kLaneBits));
        pixel[2] = static_cast<std::uint8_t>(mixed >> (12 + 2 * kLaneBits));
      }
      for (std::size_t x = 0; x < line.size(); ++x) {
        sums[x / static_cast<std::size_t>(3 * samples) * 3 + x % 3] += line[x];
      }
    }
    const auto count = static_cast<unsigned>(samples * samples);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      out[i] = static_cast<std::uint8_t>((sums[i] + count / 2) / count);
    }
  }
}

}  // namespace ropewalk::simulated
