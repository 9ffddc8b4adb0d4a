#pragma once
// QualityOptions: the limits of the automatic checks, with the defaults of the specification.
// Each field is a key under `quality.checks`.
// Spec: review-export-upload 2.5, 9.
#include <cstdint>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk {

/// Angles are radians; for columns in degrees or another unit of that size (values beyond 4 pi)
/// they are taken times 57.3. Luma is on the scale 0..255 of full range.
struct QualityOptions {
  std::int64_t min_episode_frames = 0;  ///< 0: what the dataset says, else 1
  bool pictures = true;                 ///< decode cameras and look at every frame

  double static_max_difference = 0.02;  ///< mean absolute luma difference of two equal pictures
  double static_min_share = 0.5;        ///< of picture pairs, for a camera to count as stalled
  double stall_min_seconds = 1.0;
  double motion_min_travel_rad =
      0.05;  ///< per second, of a joint, for the robot to count as moving
  double frozen_min_travel_rad = 0.02;  ///< of an arm, for its wrist camera to have to move

  double black_max_luma = 8.0;  ///< mean of the picture
  double black_min_seconds = 0.5;
  int overexposed_min_luma = 250;
  double overexposed_min_share = 0.5;  ///< of the pixels
  double overexposed_min_seconds = 0.5;
  double blurred_min_sharpness = 0.0;  ///< variance of the Laplacian of luma; 0: not checked

  double stuck_min_seconds = 1.0;
  double stuck_min_command_rad = 0.05;
  double idle_max_travel_rad = 0.01;
  double idle_min_seconds = 3.0;

  double source_rate_min_share = 0.9;  ///< of the nominal rate
  double source_rate_window_seconds = 1.0;
  double max_frame_dt_factor = 3.0;  ///< of the larger of a frame and the stream's own period

  /// Errors: invalid_argument naming the field, its value and its range.
  Status validate() const;
};

/// Returns `base` with the members of `checks` put in. Errors: invalid_argument for a value of
/// another type or out of range, and for an unknown key, naming the nearest known one.
Result<QualityOptions> quality_options_from_json(const Json& checks, QualityOptions base = {});

}  // namespace ropewalk
