// Note [Ranks]: a frame is the packet of rank r in presentation order, whatever the container's
// clock says; times only order packets, tell whether the rate is constant, and find packets that an
// edit list hides. FFmpeg's demuxer applies edit lists the same way, so ranks agree with what
// players show.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "ropewalk/format/video/sample_table_internal.h"

namespace ropewalk::video_internal {
namespace {

constexpr std::int64_t kMaxShift = std::int64_t{1} << 60;  // ticks; sums stay within int64

/// Which media times are shown, and how far they are moved.
struct Presentation {
  std::int64_t begin = std::numeric_limits<std::int64_t>::min();
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
  std::int64_t shift = 0;
};

/// Rescales a duration of the movie header to media ticks, rounded to nearest, saturating.
std::int64_t to_media_ticks(std::uint64_t duration, std::uint32_t movie, std::uint32_t media) {
  if (movie == 0) return 0;
  const long double ticks = static_cast<long double>(duration) * media / movie;
  if (ticks >= static_cast<long double>(kMaxShift)) return kMaxShift;
  return static_cast<std::int64_t>(std::llround(ticks));
}

Presentation presentation_of(const VideoTrack& track, std::uint32_t movie_timescale,
                             Mp4Index& index) {
  Presentation out;
  index.has_edit_list = track.has_edit_list;
  std::size_t at = 0;
  std::int64_t delay = 0;
  while (at < track.edits.size() && track.edits[at].media_time == -1) {
    delay = std::min(kMaxShift, delay + to_media_ticks(track.edits[at].duration, movie_timescale,
                                                       track.timescale));
    ++at;
  }
  if (at == track.edits.size()) {
    out.shift = delay;
    return out;
  }
  const Edit& edit = track.edits[at];
  if (at + 1 < track.edits.size() || edit.media_time < 0 || edit.media_time > kMaxShift) {
    index.has_complex_edits = true;
    return out;
  }
  out.begin = edit.media_time;
  if (edit.duration > 0) {
    out.end = edit.media_time + to_media_ticks(edit.duration, movie_timescale, track.timescale);
  }
  out.shift = delay - edit.media_time;
  return out;
}

void assign_ranks(Mp4Index& index, const Presentation& shown) {
  auto& packets = index.packets;
  std::vector<std::uint32_t> by_time(packets.size());
  std::iota(by_time.begin(), by_time.end(), 0U);
  const auto earlier = [&](std::uint32_t a, std::uint32_t b) {
    return packets[a].pts != packets[b].pts ? packets[a].pts < packets[b].pts : a < b;
  };
  if (!std::is_sorted(by_time.begin(), by_time.end(), earlier)) {
    std::sort(by_time.begin(), by_time.end(), earlier);
  }
  index.order.reserve(packets.size());
  for (const std::uint32_t position : by_time) {
    Mp4Packet& packet = packets[position];
    if (packet.pts < shown.begin || packet.pts >= shown.end) continue;
    packet.rank = static_cast<std::int32_t>(index.order.size());
    index.order.push_back(position);
  }
  index.hidden_packets = packets.size() - index.order.size();
  for (Mp4Packet& packet : packets) {
    packet.pts += shown.shift;
    packet.dts += shown.shift;
  }
}

/// Whether every frame lies within one tick of ordinal / fps after frame 0.
bool fits_rate(const Mp4Index& index, Rational fps) {
  const long double ticks_per_frame = static_cast<long double>(index.timescale) *
                                      static_cast<long double>(fps.den) /
                                      static_cast<long double>(fps.num);
  for (std::size_t rank = 0; rank < index.order.size(); ++rank) {
    const auto elapsed =
        static_cast<long double>(index.packets[index.order[rank]].pts - index.first_pts);
    if (std::fabs(elapsed - ticks_per_frame * static_cast<long double>(rank)) > 1.001L)
      return false;
  }
  return true;
}

void derive_rate(const VideoTrack& track, Mp4Index& index) {
  const auto frames = index.order.size();
  if (frames == 0) return;
  const auto pts = [&](std::size_t rank) { return index.packets[index.order[rank]].pts; };
  const auto rate_of = [&](std::int64_t frame_steps, std::int64_t ticks) -> Rational {
    if (ticks <= 0) return {0, 1};
    // Both factors fit: at most 2^26 steps of 2^32 ticks per second.
    return make_rational(frame_steps * static_cast<std::int64_t>(track.timescale), ticks)
        .value_or(Rational{0, 1});
  };
  index.first_pts = pts(0);
  if (frames == 1) {
    ByteCursor in(track.stts);
    std::uint32_t delta = 0;
    if (in.skip(12).ok()) delta = in.read_be<std::uint32_t>().value_or(0);
    index.fps = rate_of(1, delta);
    return;
  }
  const std::int64_t step = pts(1) - pts(0);
  bool constant = step > 0;
  for (std::size_t rank = 2; rank < frames && constant; ++rank) {
    constant = pts(rank) - pts(rank - 1) == step;
  }
  if (constant) {
    index.fps = rate_of(1, step);
    return;
  }
  const auto steps = static_cast<std::int64_t>(frames - 1);
  const Rational average = rate_of(steps, pts(frames - 1) - pts(0));
  index.fps = average;
  index.rate = RateKind::variable;
  if (average.num == 0) return;
  const double rate_hz = average.to_double();
  const auto whole = static_cast<std::int64_t>(std::llround(rate_hz));
  const auto ntsc = static_cast<std::int64_t>(std::llround(rate_hz * 1.001));
  for (const Rational candidate :
       {Rational{whole, 1}, make_rational(ntsc * 1000, 1001).value_or(average), average}) {
    if (candidate.num > 0 && fits_rate(index, candidate)) {
      index.fps = candidate;
      index.rate = RateKind::rounded;
      return;
    }
  }
}

void derive_seek_points(Mp4Index& index) {
  // The first frame that is whole from a keyframe on: the first one shown at or after its own time.
  const auto first_frame_at = [&](std::int64_t pts) {
    const auto found = std::lower_bound(index.order.begin(), index.order.end(), pts,
                                        [&](std::uint32_t position, std::int64_t time) {
                                          return index.packets[position].pts < time;
                                        });
    return static_cast<std::uint32_t>(found - index.order.begin());
  };
  index.seek_points.push_back({0, 0});
  for (std::size_t position = 1; position < index.packets.size(); ++position) {
    const Mp4Packet& packet = index.packets[position];
    if (!packet.keyframe) continue;
    const SeekPoint point{
        static_cast<std::uint32_t>(position),
        packet.rank >= 0 ? static_cast<std::uint32_t>(packet.rank) : first_frame_at(packet.pts)};
    if (point.frame >= index.order.size()) continue;
    if (point.frame < index.seek_points.back().frame) continue;
    if (point.frame == index.seek_points.back().frame) {
      index.seek_points.back() = point;
    } else {
      index.seek_points.push_back(point);
    }
  }
}

}  // namespace

Status rank_packets(const VideoTrack& track, std::uint32_t movie_timescale, Mp4Index& index) {
  if (track.timescale == 0) return data_loss("mdhd: a time scale of 0 ticks per second");
  index.timescale = track.timescale;
  assign_ranks(index, presentation_of(track, movie_timescale, index));
  derive_rate(track, index);
  std::int64_t position = 0;
  for (const Mp4Packet& packet : index.packets) {
    if (packet.rank < 0) continue;
    index.reorder_delay = std::max(index.reorder_delay, position++ - packet.rank);
  }
  derive_seek_points(index);
  return ok_status();
}

}  // namespace ropewalk::video_internal
