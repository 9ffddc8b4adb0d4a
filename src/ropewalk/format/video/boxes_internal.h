#pragma once
// Boxes of ISO/IEC 14496-12: walking them within bounds, and what a movie box says about its
// tracks.
#include <cstdint>
#include <optional>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/core/media.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk::video_internal {

constexpr std::uint32_t fourcc(const char (&text)[5]) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(text[i]);
  return value;
}
/// Returns the four characters, those that cannot be printed as '?'.
std::string fourcc_text(std::uint32_t type);

struct Box {
  std::uint32_t type = 0;
  ByteSpan payload;
};

/// Takes the next box of a container, or nullopt at its end (fewer than 8 bytes left count as
/// padding). Errors: data_loss when the box is longer than its container.
Result<std::optional<Box>> next_box(ByteCursor& in);

/// One segment of an edit list. Units: `duration` in ticks of the movie, `media_time` of the media.
struct Edit {
  std::uint64_t duration = 0;
  std::int64_t media_time = 0;  ///< -1: nothing is shown
};

/// The video track, as its boxes lie in the movie box. Lifetime: spans point into the movie box.
struct VideoTrack {
  std::uint32_t timescale = 0;
  bool has_rotation = false;
  std::vector<Edit> edits;
  ByteSpan stsd, stts, ctts, stsc, stsz, stz2, stco, co64, stss;
  bool has_stss = false;
  bool has_edit_list = false;
};

struct Movie {
  std::uint32_t timescale = 0;
  bool has_audio = false;
  bool is_fragmented = false;
  std::optional<VideoTrack> video;  ///< the first video track
};

Result<Movie> parse_movie(ByteSpan moov);

/// Reads codec, size, colour and configuration record of the first sample description.
Result<VideoParams> parse_sample_description(ByteSpan stsd);

}  // namespace ropewalk::video_internal
