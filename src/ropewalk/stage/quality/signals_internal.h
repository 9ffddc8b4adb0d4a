#pragma once
// What the columns of an episode say about motion: joints with state and command, and when which
// arm moves.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/episode/episode.h"
#include "ropewalk/stage/quality/options.h"
#include "ropewalk/stage/quality/report.h"

namespace ropewalk::quality {

enum class Arm : std::uint8_t { none, left, right };

/// One element of a joint state column over all frames.
struct Joint {
  std::string column;
  std::string name;  ///< of the element, or its number
  bool is_gripper = false;
  Arm arm = Arm::none;
  double unit = 1.0;  ///< how many units of the column are one radian
  std::vector<float> state;
  std::vector<float> command;  ///< empty when no command column belongs to the state
};

struct Signals {
  std::int64_t frames = 0;
  double fps = 30.0;
  std::vector<Joint> joints;

  /// Whether `joint` counts for a camera on `arm` (none: any).
  static bool counts(const Joint& joint, Arm arm) {
    return !joint.is_gripper && (arm == Arm::none || joint.arm == Arm::none || joint.arm == arm);
  }
  /// Units: radians; the widest range of a joint of `arm` over frames [begin, end).
  double travel(Arm arm, FrameRange range) const;
  /// Per frame: a joint of `arm` moves at `min_travel_rad` per second or faster, and did and will
  /// for `margin_seconds` (pictures lag behind joints).
  std::vector<std::uint8_t> moving(Arm arm, double min_travel_rad, double margin_seconds) const;
};

/// What a camera's name says.
struct CameraPlace {
  bool is_wrist = false;
  Arm arm = Arm::none;
};
CameraPlace camera_place(std::string_view name);

/// Reads the numeric columns. What cannot be read, is missing or not finite goes into `report`.
/// Errors: cancelled, resource_exhausted.
Result<Signals> read_signals(const Episode& episode, QualityReport& report);

// Collects equal frames into one issue.
class Spans {
 public:
  void add(FrameRange range);  ///< ascending; a range that touches the last one extends it
  bool empty() const { return spans_.empty(); }
  std::int64_t frames() const;
  std::int64_t longest() const;
  /// Fills count, first_frame, last_frame and spans.
  void put(QualityEntry& issue) const;
  const std::vector<FrameRange>& list() const { return spans_; }

 private:
  std::vector<FrameRange> spans_;
};

/// "2.4 s from frame 31", "3 stretches, the longest 2.4 s from frame 31".
std::string describe(const Spans& spans, double fps);

void check_joints(const Signals& signals, const QualityOptions& options, QualityReport& report);
void check_row(const Episode& episode, const QualityOptions& options, QualityReport& report);
/// Decodes one camera and looks at every frame. Errors: cancelled, resource_exhausted.
Status check_camera(const Episode& episode, const std::string& camera, const Signals& signals,
                    const QualityOptions& options, const RunContext& context,
                    QualityReport& report);

}  // namespace ropewalk::quality
