#pragma once
// The sample table: runs and chunks of a track expanded into one row per packet, then ranked.
#include "ropewalk/format/video/boxes_internal.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk::video_internal {

/// Fills `packets` of `index` with offset, size, keyframe and media times (edit list not applied).
/// Errors: data_loss for tables that contradict each other, resource_exhausted (Limits).
Status expand_sample_table(const VideoTrack& track, const Limits& limits, Mp4Index& index);

/// Applies the edit list, ranks packets by presentation time, and derives rate, delay, seek points.
Status rank_packets(const VideoTrack& track, std::uint32_t movie_timescale, Mp4Index& index);

}  // namespace ropewalk::video_internal
