#pragma once
// JointTraces: the joint states and commands of an episode, picked from its columns by name.
#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// One column of joint values. Shape: values[row * width + joint], radians.
struct JointColumn {
  std::string name;
  std::int64_t width = 0;
  std::int64_t rows = 0;
  std::vector<float> values;
  std::vector<bool> is_gripper;          ///< per joint
  std::vector<std::string> joint_names;  ///< flat, or empty

  float at(std::int64_t row, std::int64_t joint) const {
    return values[static_cast<std::size_t>(row * width + joint)];
  }
  /// Largest distance that any joint (grippers excluded) covers within [begin, end).
  double travel(std::int64_t begin, std::int64_t end) const;
  /// The same for joints whose name begins with `prefix`; all where no joint does.
  double travel_of(std::string_view prefix, std::int64_t begin, std::int64_t end) const;
};

struct JointTraces {
  JointColumn state;    ///< width 0: the episode has none
  JointColumn command;  ///< width 0: none, or of another width than the state
  bool moves(std::int64_t begin, std::int64_t end, double radians) const {
    return state.width > 0 && state.travel(begin, end) >= radians;
  }
};

/// Picks the columns: a float vector whose name speaks of joint positions (`…qpos`, else
/// `observation.state`, `observation…state`), and its command (`action.qpos`, `action`).
Result<JointTraces> trace_joints(const Episode& episode, const arrow::RecordBatch& columns);

}  // namespace ropewalk
