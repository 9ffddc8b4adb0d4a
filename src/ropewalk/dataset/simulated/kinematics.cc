#include <algorithm>

#include "ropewalk/dataset/simulated/kinematics_internal.h"

namespace ropewalk::simulated {
namespace {

// Rotations about an axis of the frame itself.
Frame turn_z(const Frame& f, double angle) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  return {f.x * c + f.y * s, f.y * c - f.x * s, f.z};
}

// Tilts z towards y.
Frame pitch(const Frame& f, double angle) {
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  return {f.x, f.y * c - f.z * s, f.z * c + f.y * s};
}

}  // namespace

ArmPose forward(Vec3 base, const ArmState& state) {
  ArmPose out;
  out.base = base;
  out.opening = state[6];
  out.waist = turn_z({}, state[0]);
  out.shoulder = base + Vec3{0, 0, kShoulderHeight};
  const Frame upper = pitch(out.waist, state[1]);
  out.elbow = out.shoulder + upper.z * kUpperArm;
  const Frame fore = pitch(upper, state[2]);
  out.wrist = out.elbow + fore.z * kForearm;
  out.hand = turn_z(pitch(turn_z(fore, state[3]), state[4]), state[5]);
  out.tip = out.wrist + out.hand.z * kHand;
  return out;
}

ToolPose tool_pose(const ArmPose& pose) {
  // Columns of the rotation that carries the reference (pointing down) to the hand.
  const Vec3 x = pose.hand.x;
  const Vec3 y = pose.hand.y * -1.0;
  const Vec3 z = pose.hand.z * -1.0;
  const double trace = x.x + y.y + z.z;
  std::array<double, 4> q{};
  if (trace > 0) {
    const double s = std::sqrt(trace + 1.0) * 2;
    q = {s / 4, (y.z - z.y) / s, (z.x - x.z) / s, (x.y - y.x) / s};
  } else if (x.x > y.y && x.x > z.z) {
    const double s = std::sqrt(1.0 + x.x - y.y - z.z) * 2;
    q = {(y.z - z.y) / s, s / 4, (y.x + x.y) / s, (z.x + x.z) / s};
  } else if (y.y > z.z) {
    const double s = std::sqrt(1.0 + y.y - x.x - z.z) * 2;
    q = {(z.x - x.z) / s, (y.x + x.y) / s, s / 4, (z.y + y.z) / s};
  } else {
    const double s = std::sqrt(1.0 + z.z - x.x - y.y) * 2;
    q = {(x.y - y.x) / s, (z.x + x.z) / s, (z.y + y.z) / s, s / 4};
  }
  const double sign = q[0] < 0 ? -1.0 : 1.0;
  return {pose.tip.x,  pose.tip.y,  pose.tip.z,  sign * q[0],
          sign * q[1], sign * q[2], sign * q[3], pose.opening};
}

ArmState inverse(Vec3 base, Vec3 tip, double yaw, double opening) {
  const double dx = tip.x - base.x;
  const double dy = tip.y - base.y;
  double out = std::hypot(dx, dy);
  double up = tip.z + kHand - base.z - kShoulderHeight;
  const double reach = std::hypot(out, up);
  const double longest = (kUpperArm + kForearm) * 0.995;
  if (reach > longest) {
    out *= longest / reach;
    up *= longest / reach;
  }
  const double bend =
      std::clamp((out * out + up * up - kUpperArm * kUpperArm - kForearm * kForearm) /
                     (2 * kUpperArm * kForearm),
                 -1.0, 1.0);
  ArmState state{};
  state[0] = std::atan2(-dx, dy);
  state[2] = std::acos(bend);
  state[1] =
      std::atan2(out, up) - std::atan2(kForearm * std::sin(state[2]), kUpperArm + kForearm * bend);
  state[4] = 3.14159265358979323846 - state[1] - state[2];
  // The hand points down, so a turn about its own axis counts the other way round.
  state[5] = state[0] - yaw;
  state[6] = opening;
  return state;
}

}  // namespace ropewalk::simulated
