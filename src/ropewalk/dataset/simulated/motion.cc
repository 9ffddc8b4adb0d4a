#include <algorithm>

#include "ropewalk/dataset/simulated/motion_internal.h"

namespace ropewalk::simulated {
namespace {

constexpr std::array<Vec3, kArms> kBases{{{-0.30, -0.26, 0}, {0.30, -0.26, 0}}};
constexpr double kHover = 0.14;          // metres above the table between picking and placing
constexpr double kSecondsPerTrip = 3.0;  // one block brought one way
constexpr double kGrip = 2 * kBlockHalf + 0.002;
constexpr double kTwoPi = 6.283185307179586;
constexpr double kTremor = 0.0025;  // radians

// Minimum-jerk blend: no jump in velocity or acceleration at the waypoints.
double blend(double s) { return s * s * s * (10 + s * (-15 + 6 * s)); }

}  // namespace

void Motion::plan_arm(int index, Random& random, double active) {
  const auto at = static_cast<std::size_t>(index);
  const double side = index == 0 ? -1.0 : 1.0;
  const Vec3 stand = kBases[at];
  // Blocks begin outside, pads lie towards the middle: the arms never cross.
  starts_[at] = {{side * random.uniform(0.30, 0.42), random.uniform(0.04, 0.16), kBlockHalf},
                 random.uniform(-0.5, 0.5)};
  pads_[at] = {{side * random.uniform(0.10, 0.16), random.uniform(0.02, 0.18), 0},
               random.uniform(-0.3, 0.3)};
  ArmState home = inverse(stand, {side * 0.30, -0.02, 0.20}, side * 0.3, kOpening);
  home[3] = side * 0.35;
  // There, and back and there again as often as the time allows: a block ends on its pad.
  const double pairs = std::max(0.0, (active / kSecondsPerTrip - 1) / 2);
  const int trips = 1 + 2 * static_cast<int>(std::lround(pairs));
  // Shares of the whole: home, then per trip (above, down, grip, lift, over, down, release, up).
  auto& points = waypoints_[at];
  points.push_back({0, home, false});
  const double lead = index == 0 ? 0.0 : 0.12;  // the second arm starts a little later
  std::vector<double> lengths;
  Block from = starts_[at];
  Block to{pads_[at].at + Vec3{0, 0, kBlockHalf}, pads_[at].yaw};
  for (int trip = 0; trip < trips; ++trip) {
    const auto push = [&](double length, Vec3 tip, double yaw, double opening, bool holds) {
      lengths.push_back(length);
      points.push_back({0, inverse(stand, tip, yaw, opening), holds});
    };
    const Vec3 lift{0, 0, kHover};
    push(1.0 + (trip == 0 ? lead : 0.0), from.at + lift, from.yaw, kOpening, false);
    push(0.55, from.at, from.yaw, kOpening, false);
    push(0.2, from.at, from.yaw, kGrip, true);
    push(0.5, from.at + lift, from.yaw, kGrip, true);
    push(1.0, to.at + lift, to.yaw, kGrip, true);
    push(0.5, to.at, to.yaw, kGrip, true);
    push(0.2, to.at, to.yaw, kOpening, false);
    push(0.45, to.at + lift, to.yaw, kOpening, false);
    std::swap(from, to);
  }
  lengths.push_back(1.0 - lead);
  points.push_back({0, home, false});
  double total = 0;
  for (const double length : lengths) total += length;
  double time = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    time += lengths[i] / total * active;
    points[i + 1].time = time;
  }
  for (double& phase : tremor_phase_[at]) phase = random.uniform(0, kTwoPi);
}

Motion::Motion(std::uint64_t seed, double duration, double idle_begin, double idle_end)
    : idle_begin_(idle_begin), idle_end_(idle_end) {
  Random random(seed);
  const double active = std::max(0.1, duration - (idle_end - idle_begin));
  for (int index = 0; index < kArms; ++index) plan_arm(index, random, active);
}

double Motion::warp(double time) const {
  if (idle_end_ <= idle_begin_ || time <= idle_begin_) return time;
  if (time < idle_end_) return idle_begin_;
  return time - (idle_end_ - idle_begin_);
}

ArmState Motion::planned(int index, double time) const {
  const auto& points = waypoints_[static_cast<std::size_t>(index)];
  const double t = std::clamp(time, 0.0, points.back().time);
  std::size_t next = 1;
  while (next + 1 < points.size() && points[next].time < t) ++next;
  const Waypoint& a = points[next - 1];
  const Waypoint& b = points[next];
  const double s = blend(std::clamp((t - a.time) / std::max(1e-9, b.time - a.time), 0.0, 1.0));
  ArmState out{};
  for (std::size_t joint = 0; joint < out.size(); ++joint) {
    out[joint] = a.state[joint] + (b.state[joint] - a.state[joint]) * s;
  }
  return out;
}

ArmState Motion::arm(int index, double time) const {
  const double t = warp(time);
  ArmState out = planned(index, t);
  const auto& phases = tremor_phase_[static_cast<std::size_t>(index)];
  for (std::size_t joint = 0; joint < phases.size(); ++joint) {
    const double rate = 0.9 + 0.23 * static_cast<double>(joint);  // hertz
    out[joint] += kTremor * std::sin(kTwoPi * rate * t + phases[joint]);
  }
  return out;
}

Vec3 Motion::base(int index) { return kBases[static_cast<std::size_t>(index)]; }

ArmPose Motion::pose(int index, double time) const {
  return forward(base(index), arm(index, time));
}

Block Motion::block(int index, double time) const {
  const auto at = static_cast<std::size_t>(index);
  const auto& points = waypoints_[at];
  const double t = warp(time);
  // Find the last waypoint that took or released the block.
  std::size_t last = 0;
  for (std::size_t i = 1; i < points.size() && points[i].time <= t; ++i) {
    if (points[i].holds != points[i - 1].holds) last = i;
  }
  if (last == 0) return starts_[at];
  const ArmPose pose =
      forward(base(index), points[last].holds ? arm(index, time) : points[last].state);
  const double yaw = std::atan2(pose.hand.x.y, pose.hand.x.x);
  Vec3 centre = pose.tip;
  if (!points[last].holds || centre.z < kBlockHalf) centre.z = kBlockHalf;
  return {centre, yaw};
}

}  // namespace ropewalk::simulated
