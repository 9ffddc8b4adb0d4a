#include <algorithm>
#include <cmath>

#include "ropewalk/dataset/simulated/motion_internal.h"

namespace ropewalk::simulated {
namespace {

constexpr std::array<double, 3> kLinks{0.30, 0.26, 0.12};  // metres
constexpr std::array<Point, kArms> kBases{{{-0.35, -0.30}, {0.35, -0.30}}};
constexpr double kOpen = 0.08;

Point advance(Point from, double yaw, double length) {
  return {from.x + length * std::cos(yaw), from.y + length * std::sin(yaw)};
}

// Minimum-jerk blend: no jump in velocity or acceleration at the waypoints.
double blend(double s) { return s * s * s * (10 + s * (-15 + 6 * s)); }

ArmShape shape_of(int index, const ArmState& state) {
  ArmShape out;
  out.joints[0] = kBases[static_cast<std::size_t>(index)];
  double yaw = 0;
  for (std::size_t link = 0; link < kLinks.size(); ++link) {
    yaw += state[link];
    // Pitching joints shorten the links as seen from above.
    const double seen = kLinks[link] * std::cos(0.4 * state[3 + link]);
    out.joints[link + 1] = advance(out.joints[link], yaw, seen);
  }
  out.tool_yaw = yaw;
  out.opening = state[6];
  return out;
}

}  // namespace

std::uint64_t Random::next() {
  state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

double Random::uniform(double low, double high) {
  return low + (high - low) * static_cast<double>(next() >> 11) * 0x1.0p-53;
}

Motion::Motion(std::uint64_t seed, double duration, double idle_begin, double idle_end)
    : idle_begin_(idle_begin), idle_end_(idle_end) {
  Random random(seed);
  const double active = std::max(0.1, duration - (idle_end - idle_begin));
  for (std::size_t arm = 0; arm < kArms; ++arm) {
    const double side = arm == 0 ? 1.0 : -1.0;
    const auto pose = [&](double yaw, double bend) {
      ArmState state{};
      state[0] = 1.5707963 - side * yaw;
      state[1] = side * bend;
      state[2] = side * random.uniform(-0.5, 0.3);
      for (std::size_t joint = 3; joint < 6; ++joint) state[joint] = random.uniform(-0.6, 0.6);
      state[6] = kOpen;
      return state;
    };
    const ArmState home = pose(0.1, 0.9);
    ArmState reach = pose(random.uniform(0.25, 0.65), random.uniform(0.2, 0.5));
    ArmState grasp = reach;
    grasp[6] = 0.03;
    ArmState carry = pose(random.uniform(-0.2, 0.2), random.uniform(0.6, 1.1));
    carry[6] = 0.03;
    ArmState place = pose(random.uniform(-0.5, -0.1), random.uniform(0.3, 0.8));
    place[6] = 0.03;
    ArmState release = place;
    release[6] = kOpen;
    const double lead = arm == 0 ? 0.0 : 0.06;
    const std::array<double, 7> shares{0.0, 0.26 + lead, 0.34 + lead, 0.55 + lead,
                                       0.72 + lead, 0.80 + lead, 1.0};
    const std::array<ArmState, 7> states{home, reach, grasp, carry, place, release, home};
    for (std::size_t i = 0; i < shares.size(); ++i) {
      waypoints_[arm].push_back({shares[i] * active, states[i]});
    }
  }
}

double Motion::warp(double time) const {
  if (idle_end_ <= idle_begin_ || time <= idle_begin_) return time;
  if (time < idle_end_) return idle_begin_;
  return time - (idle_end_ - idle_begin_);
}

ArmState Motion::arm(int index, double time) const {
  const auto& points = waypoints_[static_cast<std::size_t>(index)];
  const double t = std::clamp(warp(time), 0.0, points.back().time);
  std::size_t next = 1;
  while (next + 1 < points.size() && points[next].time < t) ++next;
  const Waypoint& a = points[next - 1];
  const Waypoint& b = points[next];
  const double s = blend(std::clamp((t - a.time) / std::max(1e-9, b.time - a.time), 0.0, 1.0));
  ArmState out{};
  for (std::size_t joint = 0; joint < kArmDof; ++joint) {
    out[joint] = a.state[joint] + (b.state[joint] - a.state[joint]) * s;
  }
  return out;
}

ArmShape Motion::shape(int index, double time) const { return shape_of(index, arm(index, time)); }

ToolPose Motion::tool(int index, double time) const {
  const ArmState state = arm(index, time);
  const ArmShape shape = shape_of(index, state);
  const double height = 0.12 + 0.05 * std::sin(state[3]) + 0.04 * std::sin(state[4]);
  return {shape.joints[3].x,
          shape.joints[3].y,
          height,
          std::cos(shape.tool_yaw / 2),
          0.0,
          0.0,
          std::sin(shape.tool_yaw / 2),
          state[6]};
}

std::vector<Block> Motion::blocks(double time) const {
  std::vector<Block> out;
  const double t = warp(time);
  for (int arm = 0; arm < kArms; ++arm) {
    const auto& points = waypoints_[static_cast<std::size_t>(arm)];
    // A block lies where the arm will reach it, moves with the tool once grasped, and stays where the
    // gripper opens again.
    const double carried = std::clamp(t, points[2].time, points[4].time);
    const std::size_t next = carried > points[3].time ? 4 : 3;
    const double span = points[next].time - points[next - 1].time;
    const double s = blend(std::clamp((carried - points[next - 1].time) / span, 0.0, 1.0));
    ArmState state{};
    for (std::size_t joint = 0; joint < kArmDof; ++joint) {
      state[joint] = points[next - 1].state[joint] +
                     (points[next].state[joint] - points[next - 1].state[joint]) * s;
    }
    const ArmShape shape = shape_of(arm, state);
    out.push_back({advance(shape.joints[3], shape.tool_yaw, 0.05), shape.tool_yaw, arm});
  }
  return out;
}

}  // namespace ropewalk::simulated
