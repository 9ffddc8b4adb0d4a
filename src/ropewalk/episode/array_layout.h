#pragma once
// What the HDF5 and MCAP exports share: they hold columns and pictures as dense arrays, so both
// refuse the same features and put cameras in the same order. Spec: review-export-upload 7.3, 7.4.
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/result.h"
#include "ropewalk/episode/schema.h"

namespace ropewalk {

/// Errors: unimplemented naming the feature and what `layout` ("HDF5", "MCAP") cannot hold: points,
/// audio, events, ragged shapes, streams of their own timeline.
Status check_array_feature(const Feature& feature, std::string_view layout);

/// Features of kind video in the order of the row's `video_keys`; those it does not list come last.
std::vector<std::string> ordered_videos(const Schema& schema, const Json& row);

}  // namespace ropewalk
