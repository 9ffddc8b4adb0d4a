#pragma once
// Kinematics: a six-joint arm with a gripper: from joint angles to places in the world and back.
// World: metres; x to the right, y away from the robot, z up; the table top is z = 0.
#include <array>
#include <cmath>

namespace ropewalk::simulated {

struct Vec3 {
  double x = 0;
  double y = 0;
  double z = 0;
};

inline Vec3 operator+(Vec3 a, Vec3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
inline Vec3 operator-(Vec3 a, Vec3 b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
inline Vec3 operator*(Vec3 a, double s) { return {a.x * s, a.y * s, a.z * s}; }
inline double dot(Vec3 a, Vec3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
inline Vec3 cross(Vec3 a, Vec3 b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
inline Vec3 normalized(Vec3 a) { return a * (1.0 / std::sqrt(dot(a, a))); }

/// Three unit vectors at right angles: the columns of a rotation.
struct Frame {
  Vec3 x{1, 0, 0};
  Vec3 y{0, 1, 0};
  Vec3 z{0, 0, 1};
};

inline constexpr int kArms = 2;
inline constexpr int kArmJoints = 6;  ///< without the gripper
inline constexpr int kArmDof = 7;     ///< with it

/// Waist, shoulder, elbow, forearm roll, wrist pitch, wrist roll in radians, then the gripper's
/// opening in metres. All zero: the arm stands straight up.
using ArmState = std::array<double, kArmDof>;

inline constexpr double kShoulderHeight = 0.12;
inline constexpr double kUpperArm = 0.25;
inline constexpr double kForearm = 0.25;
inline constexpr double kHand = 0.15;  ///< wrist to the point between the finger tips
inline constexpr double kOpening = 0.08;

/// Where the parts of an arm are.
struct ArmPose {
  Vec3 base;
  Vec3 shoulder;
  Vec3 elbow;
  Vec3 wrist;
  Vec3 tip;     ///< the point between the finger tips
  Frame waist;  ///< x: the axis of shoulder and elbow
  Frame hand;   ///< z: out of the hand, x: the way the fingers open
  double opening = 0;
};

ArmPose forward(Vec3 base, const ArmState& state);

/// Position, then unit quaternion (w, x, y, z) of the tool, then the opening. The quaternion is the
/// identity for a hand that points down with its fingers opening along x.
using ToolPose = std::array<double, 8>;
ToolPose tool_pose(const ArmPose& pose);

/// Joint angles that bring the tip to `tip`, the hand pointing down and turned by `yaw`; a place
/// out of reach is replaced by the nearest on the line to the shoulder.
ArmState inverse(Vec3 base, Vec3 tip, double yaw, double opening);

}  // namespace ropewalk::simulated
