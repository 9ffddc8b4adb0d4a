#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ropewalk/format/video/boxes_internal.h"

namespace ropewalk::video_internal {
namespace {

constexpr std::size_t kMaxEdits = 1 << 16;

/// Skips version and flags; returns the version.
Result<std::uint8_t> read_version(ByteCursor& in) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto word, in.read_be<std::uint32_t>());
  return static_cast<std::uint8_t>(word >> 24);
}

/// Reads a 32-bit or, from version 1 on, 64-bit unsigned number.
Result<std::uint64_t> read_wide(ByteCursor& in, std::uint8_t version) {
  if (version == 1) return in.read_be<std::uint64_t>();
  ROPEWALK_ASSIGN_OR_RETURN(const auto value, in.read_be<std::uint32_t>());
  return std::uint64_t{value};
}

/// mvhd and mdhd: returns ticks per second.
Result<std::uint32_t> parse_timescale(ByteSpan payload) {
  ByteCursor in(payload);
  ROPEWALK_ASSIGN_OR_RETURN(const auto version, read_version(in));
  ROPEWALK_RETURN_IF_ERROR(in.skip(version == 1 ? 16 : 8));
  return in.read_be<std::uint32_t>();
}

Result<std::uint32_t> parse_handler(ByteSpan payload) {
  ByteCursor in(payload);
  ROPEWALK_RETURN_IF_ERROR(in.skip(8));
  return in.read_be<std::uint32_t>();
}

/// tkhd: whether the display matrix is anything but scale.
Result<bool> parse_rotation(ByteSpan payload) {
  ByteCursor in(payload);
  ROPEWALK_ASSIGN_OR_RETURN(const auto version, read_version(in));
  ROPEWALK_RETURN_IF_ERROR(in.skip((version == 1 ? 32 : 20) + 16));
  std::array<std::int32_t, 9> matrix{};
  for (auto& value : matrix) {
    ROPEWALK_ASSIGN_OR_RETURN(value, in.read_be<std::int32_t>());
  }
  return matrix[1] != 0 || matrix[3] != 0 || matrix[0] < 0 || matrix[4] < 0;
}

Status parse_edits(ByteSpan payload, VideoTrack& track) {
  ByteCursor in(payload);
  ROPEWALK_ASSIGN_OR_RETURN(const auto version, read_version(in));
  ROPEWALK_ASSIGN_OR_RETURN(const auto count, in.read_be<std::uint32_t>());
  if (count > in.remaining() / (version == 1 ? 20 : 12) || count > kMaxEdits) {
    return data_loss(fmt::format("edit list: {} entries do not fit its box", count));
  }
  track.has_edit_list = count > 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    Edit edit;
    ROPEWALK_ASSIGN_OR_RETURN(edit.duration, read_wide(in, version));
    if (version == 1) {
      ROPEWALK_ASSIGN_OR_RETURN(edit.media_time, in.read_be<std::int64_t>());
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(edit.media_time, in.read_be<std::int32_t>());
    }
    ROPEWALK_RETURN_IF_ERROR(in.skip(4));
    track.edits.push_back(edit);
  }
  return ok_status();
}

/// Calls `visit(box)` for each child.
template <typename Visit>
Status for_each_box(ByteSpan payload, Visit&& visit) {
  ByteCursor in(payload);
  while (true) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto box, next_box(in));
    if (!box) return ok_status();
    ROPEWALK_RETURN_IF_ERROR(visit(*box));
  }
}

Status parse_sample_table(ByteSpan payload, VideoTrack& track) {
  return for_each_box(payload, [&](const Box& box) {
    const auto keep = [&](ByteSpan& field) {
      if (field.data() == nullptr) field = box.payload;
    };
    switch (box.type) {
      case fourcc("stsd"):
        keep(track.stsd);
        break;
      case fourcc("stts"):
        keep(track.stts);
        break;
      case fourcc("ctts"):
        keep(track.ctts);
        break;
      case fourcc("stsc"):
        keep(track.stsc);
        break;
      case fourcc("stsz"):
        keep(track.stsz);
        break;
      case fourcc("stz2"):
        keep(track.stz2);
        break;
      case fourcc("stco"):
        keep(track.stco);
        break;
      case fourcc("co64"):
        keep(track.co64);
        break;
      case fourcc("stss"):
        keep(track.stss);
        track.has_stss = true;
        break;
      default:
        break;
    }
    return ok_status();
  });
}

struct TrackHead {
  std::uint32_t handler = 0;
  VideoTrack track;
};

Status parse_media(ByteSpan payload, TrackHead& head) {
  return for_each_box(payload, [&](const Box& box) -> Status {
    if (box.type == fourcc("mdhd")) {
      ROPEWALK_ASSIGN_OR_RETURN(head.track.timescale, parse_timescale(box.payload));
    } else if (box.type == fourcc("hdlr")) {
      ROPEWALK_ASSIGN_OR_RETURN(head.handler, parse_handler(box.payload));
    } else if (box.type == fourcc("minf")) {
      return for_each_box(box.payload, [&](const Box& inner) {
        return inner.type == fourcc("stbl") ? parse_sample_table(inner.payload, head.track)
                                            : ok_status();
      });
    }
    return ok_status();
  });
}

Result<TrackHead> parse_track(ByteSpan payload) {
  TrackHead head;
  Status status = for_each_box(payload, [&](const Box& box) -> Status {
    if (box.type == fourcc("tkhd")) {
      ROPEWALK_ASSIGN_OR_RETURN(head.track.has_rotation, parse_rotation(box.payload));
    } else if (box.type == fourcc("mdia")) {
      return parse_media(box.payload, head);
    } else if (box.type == fourcc("edts")) {
      return for_each_box(box.payload, [&](const Box& inner) {
        return inner.type == fourcc("elst") && head.track.edits.empty()
                   ? parse_edits(inner.payload, head.track)
                   : ok_status();
      });
    }
    return ok_status();
  });
  if (!status.ok()) return status;
  return head;
}

}  // namespace

std::string fourcc_text(std::uint32_t type) {
  std::string text(4, '?');
  for (std::size_t i = 0; i < 4; ++i) {
    const auto c = static_cast<char>(type >> (24 - 8 * i) & 0xff);
    if (c >= 0x20 && c < 0x7f) text[i] = c;
  }
  return text;
}

Result<std::optional<Box>> next_box(ByteCursor& in) {
  if (in.remaining() < 8) return std::optional<Box>();
  const std::size_t begin = in.offset();
  const std::size_t available = in.remaining();
  Box box;
  ROPEWALK_ASSIGN_OR_RETURN(const auto short_size, in.read_be<std::uint32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(box.type, in.read_be<std::uint32_t>());
  std::uint64_t size = short_size;
  if (short_size == 0) size = available;
  if (short_size == 1) {
    ROPEWALK_ASSIGN_OR_RETURN(size, in.read_be<std::uint64_t>());
  }
  const std::uint64_t header = in.offset() - begin;
  if (size < header || size > available) {
    return data_loss(fmt::format("box '{}' claims {} bytes, its container has {}",
                                 fourcc_text(box.type), size, available));
  }
  ROPEWALK_ASSIGN_OR_RETURN(box.payload, in.take(size - header));
  return std::optional<Box>(box);
}

Result<Movie> parse_movie(ByteSpan moov) {
  Movie movie;
  Status status = for_each_box(moov, [&](const Box& box) -> Status {
    if (box.type == fourcc("mvhd")) {
      ROPEWALK_ASSIGN_OR_RETURN(movie.timescale, parse_timescale(box.payload));
    } else if (box.type == fourcc("mvex")) {
      movie.is_fragmented = true;
    } else if (box.type == fourcc("cmov")) {
      return unimplemented("compressed movie box: rewrite the file with `ffmpeg -c copy`");
    } else if (box.type == fourcc("trak")) {
      ROPEWALK_ASSIGN_OR_RETURN(TrackHead head, parse_track(box.payload));
      if (head.handler == fourcc("soun")) movie.has_audio = true;
      if (head.handler == fourcc("vide") && !movie.video) movie.video = std::move(head.track);
    }
    return ok_status();
  });
  if (!status.ok()) return status;
  return movie;
}

}  // namespace ropewalk::video_internal
