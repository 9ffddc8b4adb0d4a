#pragma once
// simulated: a drawn two-arm scene with its signals, as a source of episodes.
// Joint states, end-effector poses, commands and pictures agree: the pictures are drawn from the
// same trajectory the columns hold. Faults that recordings have can be injected, one kind per
// episode.
//
// Typical usage: `auto source = open_simulated({.episodes = 8, .faults = some_faults()});`
// Same options, same values and pixels on every machine of one floating-point behaviour.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

enum class SimulatedFault : std::uint8_t {
  camera_loss,      ///< one camera delivers nothing in this episode
  frozen_camera,    ///< one camera shows its first picture for ever
  late_images,      ///< after a third one camera lags five frames; the row tells the skew
  short_episode,    ///< a quarter of a second, or fewer frames than the dataset asks for
  non_finite,       ///< NaN in the joint state
  missing_column,   ///< the table lacks the end-effector state
  wrong_shape,      ///< the joint command has one value too few
  length_mismatch,  ///< the video of one camera is three frames shorter than the table
  idle_span,        ///< the robot rests for four seconds
  slow_camera,      ///< one camera drops to 5 Hz
};

std::string_view simulated_fault_name(SimulatedFault fault);
/// Every fault, in the order above.
const std::vector<SimulatedFault>& all_faults();
/// Those that leave a dataset an export still accepts.
const std::vector<SimulatedFault>& some_faults();
/// Parses "none", "some", "all", or a comma-separated list of names.
/// Errors: invalid_argument naming the word and the words there are.
Result<std::vector<SimulatedFault>> parse_faults(std::string_view text);

struct SimulatedOptions {
  std::int64_t episodes = 4;
  double seconds = 6.0;  ///< per episode; lengths vary by a tenth, so that no two are alike
  int fps = 30;
  int cameras = 3;  ///< 1 to 8: top, left wrist, right wrist, then views around the table
  int width = 320;  ///< pixels, even for video
  int height = 240;
  std::uint64_t seed = 1;
  int tasks = 2;
  std::string robot = "sim_two_arm";
  bool inline_images = false;  ///< cameras of kind image instead of video
  std::vector<SimulatedFault> faults;

  /// Errors: invalid_argument naming the option, its value and its range.
  Status validate() const;
};

/// Faults are dealt to episodes in an order that depends on the seed; with fewer episodes than
/// faults an episode gets several.
Result<std::unique_ptr<EpisodeSource>> open_simulated(const SimulatedOptions& options);

/// A clean episode has at least so many frames, one with the fault short_episode has fewer: what
/// info.json of a simulated dataset says under `quality.checks`.
std::int64_t simulated_min_episode_frames(const SimulatedOptions& options);
/// The faults that episode `episode` of these options has.
std::vector<SimulatedFault> faults_of(const SimulatedOptions& options, std::int64_t episode);

}  // namespace ropewalk
