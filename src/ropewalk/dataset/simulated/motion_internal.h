#pragma once
// Motion: what the two arms and their blocks do in one episode, as a function of time.
#include <array>
#include <cstdint>
#include <vector>

#include "ropewalk/dataset/simulated/kinematics_internal.h"

namespace ropewalk::simulated {

/// A small deterministic generator (splitmix64): the same numbers on every platform.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9E3779B97F4A7C15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  double uniform(double low, double high) {
    return low + (high - low) * static_cast<double>(next() >> 11) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_;
};

inline constexpr double kBlockHalf = 0.022;  ///< half the edge of a block, metres
inline constexpr double kPadHalf = 0.055;    ///< half the edge of the pad it is put on

struct Block {
  Vec3 at;  ///< its centre
  double yaw = 0;
};

/// Each arm brings its block to a pad, and back and there again as often as the time allows; the
/// block ends on the pad and the arm rests at home at both ends. While the arms work, every joint
/// also moves a little, as an operator's hand does. Threads: const members may run concurrently.
class Motion {
 public:
  /// `duration` in seconds; nothing moves at all from `idle_begin` to `idle_end`.
  Motion(std::uint64_t seed, double duration, double idle_begin, double idle_end);

  ArmState arm(int index, double time) const;
  ArmPose pose(int index, double time) const;
  /// Where an arm stands.
  static Vec3 base(int index);
  Block block(int index, double time) const;
  /// Where the pad of an arm lies.
  Block pad(int index) const { return pads_[static_cast<std::size_t>(index)]; }

 private:
  struct Waypoint {
    double time;
    ArmState state;
    bool holds;  ///< the block is in the hand from here to the next waypoint
  };
  double warp(double time) const;
  ArmState planned(int index, double time) const;
  void plan_arm(int index, Random& random, double active);

  std::array<std::vector<Waypoint>, kArms> waypoints_;
  std::array<Block, kArms> pads_;
  std::array<Block, kArms> starts_;
  std::array<std::array<double, kArmJoints>, kArms> tremor_phase_{};
  double idle_begin_;
  double idle_end_;
};

}  // namespace ropewalk::simulated
