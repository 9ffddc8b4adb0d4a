#include <algorithm>
#include <cmath>
#include <cstring>

#include "ropewalk/dataset/simulated/scene_internal.h"

namespace ropewalk::simulated {
namespace {

constexpr std::array<Colour, kArms> kArmColours{{{240, 128, 48}, {60, 138, 214}}};
constexpr Colour kMotor{58, 60, 66};
constexpr Colour kFinger{44, 46, 52};
constexpr Colour kPlate{92, 96, 104};
// Two per palette, so that a task can name them.
constexpr std::array<Colour, 8> kBlockColours{{{214, 48, 56},
                                               {52, 168, 92},
                                               {58, 92, 208},
                                               {238, 200, 52},
                                               {150, 72, 186},
                                               {236, 236, 228},
                                               {240, 134, 170},
                                               {52, 190, 196}}};
constexpr double kTwoPi = 6.283185307179586;

bool is_wrist(int camera) { return camera == 1 || camera == 2; }

Camera still_camera(int camera, int width, int height) {
  if (camera == 0) return look_at({0, -0.42, 1.05}, {0, 0.04, 0}, {0, 1, 0}, 0.78, width, height);
  const double angle = kTwoPi * (0.08 + 0.17 * (camera - 3));
  const Vec3 eye{1.05 * std::sin(angle), 0.06 + 1.05 * std::cos(angle), 0.62};
  return look_at(eye, {0, 0.0, 0.08}, {0, 0, 1}, 0.78, width, height);
}

// On the back of the hand, looking past the fingers.
Camera wrist_camera(const ArmPose& arm, int width, int height) {
  const Frame& hand = arm.hand;
  const Vec3 eye = arm.wrist + hand.y * 0.085 + hand.z * -0.045;
  const Vec3 target = arm.tip + hand.z * 0.01 - hand.y * 0.005;
  return look_at(eye, target, hand.y * -1.0, 1.1, width, height);
}

struct Parts {
  std::vector<Rod> rods;
  std::vector<Box> boxes;
};

void add_arm(const ArmPose& arm, Colour colour, bool seen_from_its_wrist, Parts& parts) {
  const auto rod = [&](Vec3 a, Vec3 b, double ra, double rb, Colour paint, float gloss = 0.25F) {
    parts.rods.push_back({a, b, ra, rb, paint, gloss});
  };
  const Vec3 axis = arm.waist.x;
  const Frame& hand = arm.hand;
  if (!seen_from_its_wrist) {
    parts.boxes.push_back({arm.base + Vec3{0, 0, 0.012}, arm.waist, {0.075, 0.075, 0.012}, kPlate});
    rod(arm.base + Vec3{0, 0, 0.03}, arm.shoulder - Vec3{0, 0, 0.035}, 0.052, 0.046, kMotor);
    rod(arm.shoulder - axis * 0.040, arm.shoulder + axis * 0.040, 0.036, 0.036, kMotor);
    rod(arm.shoulder, arm.elbow, 0.036, 0.030, colour, 0.35F);
    rod(arm.elbow - axis * 0.032, arm.elbow + axis * 0.032, 0.029, 0.029, kMotor);
    rod(arm.elbow, arm.wrist, 0.029, 0.022, colour, 0.35F);
    rod(arm.wrist - axis * 0.020, arm.wrist + axis * 0.020, 0.022, 0.022, kMotor);
    rod(arm.wrist, arm.wrist + hand.z * 0.05, 0.021, 0.021, colour, 0.35F);
  }
  const Vec3 palm = arm.wrist + hand.z * 0.072;
  parts.boxes.push_back({palm, hand, {0.050, 0.014, 0.013}, kMotor});
  for (const double side : {-1.0, 1.0}) {
    const Vec3 out = hand.x * (side * (arm.opening / 2 + 0.007));
    parts.boxes.push_back({palm + out + hand.z * 0.050, hand, {0.007, 0.010, 0.040}, kFinger});
    parts.boxes.push_back(
        {palm + out * 0.98 + hand.z * 0.076, hand, {0.0072, 0.0102, 0.012}, colour});
  }
}

// Sixteen samples at once; an extension of the language that both compilers have.
using Bytes16 = std::uint8_t __attribute__((vector_size(16)));
using Words2 = std::uint64_t __attribute__((vector_size(16)));

// Adds noise of -3 to 3 levels, small values more often: 16 samples from each 64-bit number.
void add_sensor_noise(std::uint64_t seed, MutableByteSpan rgb) {
  Random random(seed);
  for (std::size_t at = 0; at < rgb.size(); at += 16) {
    const std::uint64_t bits = random.next();
    // Sums of two pairs of bits, 0 to 6.
    constexpr std::uint64_t kPair = 0x0303030303030303ULL;
    const Words2 sums{(bits & kPair) + (bits >> 2 & kPair),
                      (bits >> 4 & kPair) + (bits >> 6 & kPair)};
    const auto noise = reinterpret_cast<Bytes16>(sums);
    const Bytes16 three = Bytes16{} + std::uint8_t{3};
    const auto more = reinterpret_cast<Bytes16>(noise > three) & (noise - three);
    const auto less = reinterpret_cast<Bytes16>(noise < three) & (three - noise);
    Bytes16 value{};
    const std::size_t count = std::min<std::size_t>(16, rgb.size() - at);
    if (count == 16) {
      std::memcpy(&value, rgb.data() + at, 16);
    } else {
      std::memcpy(&value, rgb.data() + at, count);
    }
    const Bytes16 raised = value + more;
    const Bytes16 bright = raised | reinterpret_cast<Bytes16>(raised < value);  // 255 at most
    const Bytes16 changed = (bright - less) & ~reinterpret_cast<Bytes16>(bright < less);
    if (count == 16) {
      std::memcpy(rgb.data() + at, &changed, 16);
    } else {
      std::memcpy(rgb.data() + at, &changed, count);
    }
  }
}

}  // namespace

Scenery::Scenery(int cameras, int width, int height)
    : width_(width), height_(height), stills_(static_cast<std::size_t>(cameras)) {}

ByteSpan Scenery::background(int camera) const {
  Still& still = stills_[static_cast<std::size_t>(camera)];
  std::call_once(still.once, [&] {
    still.rgb.resize(static_cast<std::size_t>(width_) * static_cast<std::size_t>(height_) * 3);
    ground_.paint(still_camera(camera, width_, height_), 3, still.rgb);
  });
  return still.rgb;
}

Camera scene_camera(const Scenery& scenery, int camera, const Motion& motion, double time) {
  if (!is_wrist(camera)) return still_camera(camera, scenery.width(), scenery.height());
  return wrist_camera(motion.pose(camera - 1, time), scenery.width(), scenery.height());
}

SceneReader::SceneReader(const Scenery& scenery, int camera)
    : scenery_(scenery), camera_(camera), canvas_(scenery.width(), scenery.height()) {}

void SceneReader::draw(const Motion& motion, double time, int palette, std::uint64_t noise_seed,
                       MutableByteSpan rgb) {
  std::array<ArmPose, kArms> arms;
  for (int index = 0; index < kArms; ++index) {
    arms[static_cast<std::size_t>(index)] = motion.pose(index, time);
  }
  const Camera camera = scene_camera(scenery_, camera_, motion, time);
  if (is_wrist(camera_)) {
    scenery_.ground().paint(camera, 1, rgb);
  } else {
    const ByteSpan background = scenery_.background(camera_);
    std::memcpy(rgb.data(), background.data(), background.size());
  }

  Parts parts;
  Parts hidden;  // parts that cast a shadow but are not seen
  for (int index = 0; index < kArms; ++index) {
    const auto at = static_cast<std::size_t>(index);
    const bool own = is_wrist(camera_) && camera_ - 1 == index;
    add_arm(arms[at], kArmColours[at], own, parts);
    if (own) add_arm(arms[at], kArmColours[at], false, hidden);
  }
  canvas_.begin(camera, rgb);
  for (int index = 0; index < kArms; ++index) {
    const std::size_t colour =
        static_cast<std::size_t>(palette * kArms + index) % kBlockColours.size();
    const Block pad = motion.pad(index);
    canvas_.mark(pad.at, pad.yaw, kPadHalf, kBlockColours[colour]);
    const Block block = motion.block(index, time);
    const double c = std::cos(block.yaw);
    const double s = std::sin(block.yaw);
    parts.boxes.push_back({block.at,
                           {{c, s, 0}, {-s, c, 0}, {0, 0, 1}},
                           {kBlockHalf, kBlockHalf, kBlockHalf},
                           kBlockColours[colour]});
  }
  for (const Parts* group : {&parts, &hidden}) {
    for (const Rod& rod : group->rods) canvas_.cast(rod);
    for (const Box& box : group->boxes) canvas_.cast(box);
  }
  canvas_.drop_shadows();

  // Far parts first: a smooth edge is then mixed with what lies behind it.
  const auto depth = [&](Vec3 point) { return dot(point - camera.eye, camera.axes.z); };
  struct Item {
    double depth;
    const Rod* rod;
    const Box* box;
  };
  std::vector<Item> items;
  for (const Rod& rod : parts.rods) items.push_back({depth((rod.a + rod.b) * 0.5), &rod, nullptr});
  for (const Box& box : parts.boxes) items.push_back({depth(box.centre), nullptr, &box});
  std::ranges::stable_sort(items, std::ranges::greater{}, &Item::depth);
  for (const Item& item : items) {
    if (item.rod != nullptr) {
      canvas_.rod(*item.rod);
    } else {
      canvas_.box(*item.box);
    }
  }
  add_sensor_noise(noise_seed, rgb);
}

}  // namespace ropewalk::simulated
