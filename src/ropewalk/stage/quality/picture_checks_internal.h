#pragma once
// Picture checks: one pass over the pictures of a camera gathers what each looks like and how far
// it differs from those before; the checks then read these traces.
#include <string>
#include <vector>

#include "ropewalk/episode/episode.h"
#include "ropewalk/stage/quality/checks.h"
#include "ropewalk/stage/quality/joint_traces_internal.h"

namespace ropewalk {

/// What one picture gave. Differences are mean absolute differences of luma, 0 to 255.
struct PictureTrace {
  float mean = 0;
  float overexposed = 0;  ///< share of samples at or above the level
  float step1 = 255;      ///< to the picture before; 255 for the first
  float step2 = 255;      ///< to the one before that
  float sharpness = 0;    ///< variance of the Laplacian; only when asked for
  bool keyframe = false;  ///< encoded anew, so that even an equal scene differs a little
};

/// Decodes every picture of `camera` as luma. Errors: those of decoding; cancelled.
Result<std::vector<PictureTrace>> trace_pictures(const Episode& episode, const std::string& camera,
                                                 const QualityOptions& options,
                                                 const RunContext& context);

/// Reads the traces of one camera.
void check_pictures(const Feature& camera, const std::vector<PictureTrace>& pictures,
                    const JointTraces& joints, double fps, const QualityOptions& options,
                    QualityReport& report);

}  // namespace ropewalk
