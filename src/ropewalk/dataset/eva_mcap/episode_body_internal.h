#pragma once
// Private: the body of the `episode` message, in pieces that are written one after the other, so
// that inline pictures need not be in memory.
#include <string>
#include <vector>

#include "ropewalk/episode/numbering.h"
#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk::eva_mcap {

/// Bytes as they stand, then all frames of one camera, if it names one.
struct BodyPiece {
  Bytes bytes;
  std::string camera;  ///< empty: none
  std::uint64_t frames_bytes = 0;
};

/// An inline camera and the shape of its frames.
struct InlineCamera {
  std::string name;
  FrameShape shape;
};

/// Lays out {columns, images, metadata}. Errors: resource_exhausted naming the array that is larger
/// than MessagePack can say; data_loss naming the column that is no dense array.
Result<std::vector<BodyPiece>> episode_body(const NumberedEpisode& numbered, const Schema& schema,
                                            const std::vector<InlineCamera>& images);

}  // namespace ropewalk::eva_mcap
