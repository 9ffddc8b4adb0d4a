#pragma once
// The automatic checks that a saved episode allows: pure functions of what an Episode delivers and
// of what the recorder wrote into its row.
// Columns and cameras are told by the conventions of the field: joints by `observation(s).state*`,
// `observation.qpos`, and commands by `action*`; grippers and hands by their names, or, in vectors
// without names, as the last of every seven or eight values; a wrist camera by its name, and its
// arm by "left" or "right" in it. Spec: review-export-upload 2.5, R-DATA-3, R-DATA-8. Codes:
// docs/review.md.
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/stage/quality/options.h"
#include "ropewalk/stage/quality/report.h"

namespace ropewalk {

/// Runs all checks; cameras in parallel on the pool. What cannot be read of a column or camera is
/// an issue of its own, not an error. Issues of the row that only the recorder can see are kept.
/// Memory: the numeric columns and a few pictures per camera, whatever the length.
/// Errors: invalid_argument (options); cancelled; resource_exhausted.
Result<QualityReport> check_episode(const Episode& episode, const QualityOptions& options,
                                    const RunContext& context);

}  // namespace ropewalk
