#include "ropewalk/format/video/probe.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "ropewalk/format/video/boxes_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"
#include "ropewalk/format/video/sample_table_internal.h"

namespace ropewalk {
namespace {

using namespace video_internal;

constexpr std::size_t kHeadBytes = 4096;
constexpr std::size_t kMaxTopLevelBoxes = 100'000;
constexpr std::string_view kLfsMagic = "version https://git-lfs";

Status no_moov(std::string message) { return data_loss(std::move(message)).with_reason("NO_MOOV"); }

/// Whether a type could be that of a box: four printable characters.
bool plausible_type(std::uint32_t type) {
  for (int shift = 0; shift < 32; shift += 8) {
    const std::uint32_t c = type >> shift & 0xff;
    if ((c < 0x20 || c > 0x7e) && c != 0xa9) return false;
  }
  return true;
}

bool may_reach_the_end(std::uint32_t type) {
  switch (type) {
    case fourcc("mdat"):
    case fourcc("moov"):
    case fourcc("free"):
    case fourcc("skip"):
    case fourcc("udta"):
    case fourcc("uuid"):
      return true;
    default:
      return false;
  }
}

struct TopLevelBox {
  std::uint32_t type = 0;
  std::uint64_t header_bytes = 8;
  std::uint64_t size = 0;  ///< with header, as claimed
};

/// What lies at the top level of a file.
struct Layout {
  std::uint64_t moov_offset = 0;  ///< of the payload
  std::uint64_t moov_bytes = 0;
  bool has_moov = false;
  bool has_fragments = false;
  std::uint64_t trailing_bytes = 0;
  std::uint64_t cut_box_offset = 0;  ///< where a box begins that does not end in the file
  std::uint32_t cut_box = 0;
};

/// Reads bytes near the front from one buffer and the rest from the source.
class TopLevelReader {
 public:
  explicit TopLevelReader(const Source& source) : source_(source) {}

  Status open() {
    head_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(source_.size(), kHeadBytes)));
    return source_.read_at(0, head_);
  }
  ByteSpan head() const { return head_; }

  /// Returns the box header at `offset`, or nullopt when none can begin there.
  Result<std::optional<TopLevelBox>> box_at(std::uint64_t offset) {
    std::array<std::uint8_t, 16> raw{};
    const std::uint64_t left = source_.size() - offset;
    if (left < 8) return std::optional<TopLevelBox>();
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left, raw.size()));
    if (offset + count <= head_.size()) {
      std::copy_n(head_.begin() + static_cast<std::ptrdiff_t>(offset), count, raw.begin());
    } else {
      ROPEWALK_RETURN_IF_ERROR(source_.read_at(offset, MutableByteSpan(raw).first(count)));
    }
    ByteCursor in(ByteSpan(raw).first(count));
    TopLevelBox box;
    ROPEWALK_ASSIGN_OR_RETURN(box.size, in.read_be<std::uint32_t>());
    ROPEWALK_ASSIGN_OR_RETURN(box.type, in.read_be<std::uint32_t>());
    if (!plausible_type(box.type)) return std::optional<TopLevelBox>();
    if (box.size == 0) {
      if (!may_reach_the_end(box.type)) return std::optional<TopLevelBox>();
      box.size = left;
    } else if (box.size == 1) {
      if (count < 16) return std::optional<TopLevelBox>();
      ROPEWALK_ASSIGN_OR_RETURN(box.size, in.read_be<std::uint64_t>());
      box.header_bytes = 16;
    }
    if (box.size < box.header_bytes) return std::optional<TopLevelBox>();
    return std::optional<TopLevelBox>(box);
  }

 private:
  const Source& source_;
  Bytes head_;
};

Result<Layout> read_layout(const Source& source, TopLevelReader& reader) {
  Layout layout;
  std::uint64_t offset = 0;
  for (std::size_t boxes = 0; offset < source.size(); ++boxes) {
    if (boxes == kMaxTopLevelBoxes) {
      return resource_exhausted(fmt::format("more than {} boxes", kMaxTopLevelBoxes));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const auto box, reader.box_at(offset));
    if (!box) {
      layout.trailing_bytes = source.size() - offset;
      break;
    }
    if (box->size > source.size() - offset) {
      layout.cut_box = box->type;
      layout.cut_box_offset = offset;
      if (layout.has_moov && box->type != fourcc("mdat")) {
        layout.trailing_bytes = source.size() - offset;
      }
      break;
    }
    if (box->type == fourcc("moof")) layout.has_fragments = true;
    if (box->type == fourcc("moov") && !layout.has_moov) {
      layout.has_moov = true;
      layout.moov_offset = offset + box->header_bytes;
      layout.moov_bytes = box->size - box->header_bytes;
    }
    offset += box->size;
  }
  return layout;
}

/// Says why there is no movie box.
Status missing_moov(const Source& source, const Layout& layout) {
  if (source.size() == 0) return no_moov("the file is empty");
  if (layout.cut_box != 0) {
    return no_moov(fmt::format(
        "no movie box: box '{}' at byte {} goes beyond the {} bytes of the file; the recording "
        "never finished or the file was cut, fetch or record it again",
        fourcc_text(layout.cut_box), layout.cut_box_offset, source.size()));
  }
  if (layout.trailing_bytes == source.size()) return no_moov("not an MP4 file");
  return no_moov("no movie box: the recording never finished, or this is not an MP4 file");
}

Status find_truncation(const ProbeOptions& options, Mp4Index& index) {
  std::size_t first = 0;
  for (std::size_t i = 0; i < index.packets.size(); ++i) {
    const Mp4Packet& packet = index.packets[i];
    if (packet.offset + packet.size <= index.file_bytes) continue;
    if (index.truncated_packets++ == 0) first = i;
  }
  if (index.truncated_packets == 0 || options.keep_truncated) return ok_status();
  const Mp4Packet& packet = index.packets[first];
  return data_loss(fmt::format(
                       "packet {} of {} ends at byte {}, the file has {} bytes: it was cut, "
                       "fetch or record it again",
                       first, index.packets.size(), packet.offset + packet.size, index.file_bytes))
      .with_reason("TRUNCATED");
}

Status bad_index(Status status) {
  return status.code() == StatusCode::data_loss ? status.with_reason("BAD_INDEX") : status;
}

Status read_index(const Source& source, const ProbeOptions& options, Mp4Index& index) {
  TopLevelReader reader(source);
  ROPEWALK_RETURN_IF_ERROR(reader.open());
  if (as_text(reader.head()).starts_with(kLfsMagic)) {
    return data_loss(
               "a Git LFS pointer instead of the video; run `git lfs pull` in the dataset or fetch "
               "the file itself")
        .with_reason("LFS_POINTER");
  }
  ROPEWALK_ASSIGN_OR_RETURN(const Layout layout, read_layout(source, reader));
  if (!layout.has_moov) return missing_moov(source, layout);
  if (layout.moov_bytes > options.limits.max_array_bytes) {
    return resource_exhausted(fmt::format("movie box of {} bytes, the limit is {}",
                                          layout.moov_bytes, options.limits.max_array_bytes));
  }
  index.file_bytes = source.size();
  index.trailing_bytes = layout.trailing_bytes;
  Bytes moov(static_cast<std::size_t>(layout.moov_bytes));
  ROPEWALK_RETURN_IF_ERROR(source.read_at(layout.moov_offset, moov));
  auto parsed = parse_movie(moov);
  if (!parsed.ok()) return bad_index(std::move(parsed).status());
  const Movie& movie = *parsed;
  if (layout.has_fragments || movie.is_fragmented) {
    return unimplemented("fragmented MP4: rewrite it with `ffmpeg -i IN -c copy OUT.mp4`");
  }
  if (!movie.video) {
    return failed_precondition(movie.has_audio ? "no video stream, only audio" : "no video stream")
        .with_reason("NO_VIDEO_STREAM");
  }
  auto params = parse_sample_description(movie.video->stsd);
  if (!params.ok()) return bad_index(std::move(params).status());
  index.params = std::move(params).value();
  index.has_audio = movie.has_audio;
  index.has_rotation = movie.video->has_rotation;
  ROPEWALK_RETURN_IF_ERROR(bad_index(expand_sample_table(*movie.video, options.limits, index)));
  ROPEWALK_RETURN_IF_ERROR(bad_index(rank_packets(*movie.video, movie.timescale, index)));
  return find_truncation(options, index);
}

/// Whether the first picture of a packet starts a coded sequence that refers to nothing before it.
bool starts_independent(const VideoParams& params, ByteSpan packet) {
  const bool h264 = params.codec == "h264";
  if (!h264 && params.codec != "hevc") return true;  // the container's mark decides
  const std::size_t length_at = h264 ? 4 : 21;
  if (params.extradata.size() <= length_at) return false;
  const auto units = split_length_prefixed(packet, (params.extradata[length_at] & 3) + 1);
  if (!units) return false;
  for (const ByteSpan unit : *units) {
    if (unit.empty()) continue;
    const int type = h264 ? unit[0] & 31 : unit[0] >> 1 & 63;
    if (h264 && type >= 1 && type <= 5) return type == 5;
    if (!h264 && type < 32) return type >= 16 && type <= 23;
  }
  return false;
}

}  // namespace

Result<Mp4Index> probe_mp4(const Source& source, const ProbeOptions& options) {
  Mp4Index index;
  index.name = source.name();
  if (Status status = read_index(source, options, index); !status.ok()) {
    return status.with_context(source.name());
  }
  return index;
}

Result<Mp4Index> probe_mp4(const std::filesystem::path& path, const ProbeOptions& options) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(path));
  return probe_mp4(*source, options);
}

SeekPoint Mp4Index::seek_point(std::int64_t frame) const {
  if (seek_points.empty()) return {};
  const auto after = std::upper_bound(
      seek_points.begin(), seek_points.end(), std::max<std::int64_t>(frame, 0),
      [](std::int64_t value, const SeekPoint& point) { return value < point.frame; });
  return after == seek_points.begin() ? seek_points.front() : *(after - 1);
}

FrameRange Mp4Index::decode_unit(std::int64_t frame) const {
  if (order.empty()) return {};
  const std::int64_t wanted = std::clamp<std::int64_t>(frame, 0, frame_count() - 1);
  const auto after = std::upper_bound(
      seek_points.begin(), seek_points.end(), wanted,
      [](std::int64_t value, const SeekPoint& point) { return value < point.frame; });
  const std::int64_t begin = after == seek_points.begin() ? 0 : (after - 1)->frame;
  return {begin, after == seek_points.end() ? frame_count() : std::int64_t{after->frame}};
}

Result<PacketRange> Mp4Index::packets_of(FrameRange frames) const {
  if (frames.begin < 0 || frames.begin > frames.end || frames.end > frame_count()) {
    return out_of_range(
        fmt::format("{}: frames [{}, {}) of {}", name, frames.begin, frames.end, frame_count()));
  }
  if (frames.size() == 0) return PacketRange{};
  const PacketRange range{
      order[static_cast<std::size_t>(frames.begin)],
      order[static_cast<std::size_t>(frames.begin)] + static_cast<std::size_t>(frames.size())};
  const auto failed = [&](std::string what) {
    return failed_precondition(fmt::format("{}: frames [{}, {}) cannot be copied as packets: {}",
                                           name, frames.begin, frames.end, what));
  };
  if (range.end > packets.size()) return failed("their packets are not one run");
  if (!packets[range.begin].keyframe) {
    return failed(fmt::format("frame {} is not a keyframe", frames.begin));
  }
  for (std::size_t i = range.begin; i < range.end; ++i) {
    if (packets[i].rank < frames.begin || packets[i].rank >= frames.end) {
      return failed(fmt::format("packet {} between them belongs to frame {}", i, packets[i].rank));
    }
  }
  return range;
}

Status check_remuxable(const Mp4Index& index, const Source& source, PacketRange range) {
  const auto failed = [&](std::string what) {
    return failed_precondition(
        fmt::format("{}: packets cannot be copied as they are: {}", index.name, what));
  };
  if (range.begin >= range.end || range.end > index.packets.size()) {
    return failed(
        fmt::format("packets [{}, {}) of {}", range.begin, range.end, index.packets.size()));
  }
  if (index.rate == RateKind::variable || index.fps.num <= 0) {
    return failed("the frame rate is not constant");
  }
  if (index.has_complex_edits) return failed("the edit list has several segments");
  std::int64_t lowest = index.packets[range.begin].rank;
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Mp4Packet& packet = index.packets[i];
    if (packet.rank < 0) return failed(fmt::format("an edit list hides packet {}", i));
    if (packet.offset + packet.size > index.file_bytes) {
      return failed(fmt::format("packet {} ends beyond the file", i));
    }
    if (packet.size == 0) return failed(fmt::format("packet {} is empty", i));
    lowest = std::min<std::int64_t>(lowest, packet.rank);
  }
  const Mp4Packet& first = index.packets[range.begin];
  if (!first.keyframe) return failed(fmt::format("packet {} is not a keyframe", range.begin));
  if (first.rank != lowest) {
    return failed(fmt::format("frame {} is shown before the keyframe it may depend on", lowest));
  }
  Bytes payload(first.size);
  ROPEWALK_RETURN_IF_ERROR(source.read_at(first.offset, payload));
  if (!starts_independent(index.params, payload)) {
    return failed(
        fmt::format("packet {} is marked as keyframe and refers to earlier pictures", range.begin));
  }
  return ok_status();
}

}  // namespace ropewalk
