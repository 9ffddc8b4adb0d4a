#pragma once
// Motion: what the two arms and the blocks do in one episode, as a function of time.
#include <array>
#include <cstdint>
#include <vector>

namespace ropewalk::simulated {

inline constexpr int kArms = 2;
inline constexpr int kArmJoints = 6;  ///< without the gripper
inline constexpr int kArmDof = 7;     ///< with it: 0 open … 1 closed is stored as opening in metres

/// A small deterministic generator (splitmix64): the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  double uniform(double low, double high);

 private:
  std::uint64_t state_;
};

struct Point {
  double x = 0;
  double y = 0;
};

/// Joint angles in radians, then the gripper opening in metres (0 closed, 0.08 open).
using ArmState = std::array<double, kArmDof>;

/// Pose of the tool: position in metres, unit quaternion (w, x, y, z), gripper opening.
using ToolPose = std::array<double, 8>;

/// Where the drawing needs the links of an arm, in metres on the table plane.
struct ArmShape {
  std::array<Point, 4> joints;  ///< base, elbow, wrist, tool
  double tool_yaw = 0;
  double opening = 0;
};

struct Block {
  Point at;
  double yaw = 0;
  int colour = 0;
};

/// Threads: const members may run concurrently.
class Motion {
 public:
  /// `duration` in seconds; `idle_begin` < `idle_end` is a span in which nothing moves.
  Motion(std::uint64_t seed, double duration, double idle_begin, double idle_end);

  ArmState arm(int index, double time) const;
  ArmShape shape(int index, double time) const;
  ToolPose tool(int index, double time) const;
  std::vector<Block> blocks(double time) const;

 private:
  double warp(double time) const;

  struct Waypoint {
    double time;
    ArmState state;
  };
  std::array<std::vector<Waypoint>, kArms> waypoints_;
  double idle_begin_;
  double idle_end_;
};

}  // namespace ropewalk::simulated
