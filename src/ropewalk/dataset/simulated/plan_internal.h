#pragma once
// Plan: everything that is decided about a simulated episode before it is opened.
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/dataset/simulated/motion_internal.h"
#include "ropewalk/dataset/simulated/simulated.h"

namespace ropewalk::simulated {

inline constexpr std::int64_t kLateFrames = 5;
inline constexpr double kSlowHz = 5.0;

struct Plan {
  EpisodeInfo info;
  std::vector<SimulatedFault> faults;
  std::int64_t task = 0;
  std::int64_t index_begin = 0;  ///< value of `index` in its first row
  std::int64_t start_ns = 0;     ///< source clock at frame 0
  int faulty_camera = 0;
  std::int64_t fault_begin = 0;  ///< first frame that a fault in time touches
  std::shared_ptr<const Motion> motion;

  bool has_fault(SimulatedFault fault) const;
  /// Whether `camera` is the faulty one and has that fault.
  bool camera_has(int camera, SimulatedFault fault) const;
  /// The frame whose picture `camera` shows at grid frame `frame`: usually its own.
  std::int64_t shown_frame(int camera, std::int64_t frame, int fps) const;
  /// Pictures that `camera` delivers.
  std::int64_t pictures(int camera) const;
};

bool has(const std::vector<SimulatedFault>& faults, SimulatedFault fault);
/// Two numbers to one, well mixed.
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

std::string camera_name(int camera);
std::string task_name(std::int64_t task);
/// Which pair of block colours a task names.
int task_palette(std::int64_t task);

Schema make_schema(const SimulatedOptions& options);
Plan make_plan(const SimulatedOptions& options, std::int64_t episode, std::int64_t index_begin,
               std::int64_t start_ns);

}  // namespace ropewalk::simulated
