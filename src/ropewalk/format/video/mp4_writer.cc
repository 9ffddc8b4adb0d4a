// Spec: ISO/IEC 14496-12 (boxes), 14496-14 (esds), 14496-15 (avcC, hvcC), AV1 and VP9 bindings.
#include "ropewalk/format/video/mp4_writer.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include <fmt/format.h>

#include "ropewalk/format/video/boxes_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"

namespace ropewalk {
namespace {

using video_internal::fourcc;

constexpr std::uint32_t kMinTimescale = 10'000;
constexpr std::uint16_t kLanguageUndetermined = 0x55c4;

/// Appends boxes to a buffer; a box's size is written when it is closed.
class BoxWriter {
 public:
  explicit BoxWriter(Bytes& out) : out_(out), writer_(out) {}

  template <typename Body>
  void box(std::uint32_t type, Body&& body) {
    const std::size_t begin = out_.size();
    writer_.write_be(std::uint32_t{0});
    writer_.write_be(type);
    body();
    const auto size = static_cast<std::uint32_t>(out_.size() - begin);
    for (std::size_t i = 0; i < 4; ++i) {
      out_[begin + i] = static_cast<std::uint8_t>(size >> (24 - 8 * i));
    }
  }
  template <typename Body>
  void full_box(std::uint32_t type, std::uint32_t version_and_flags, Body&& body) {
    box(type, [&] {
      u32(version_and_flags);
      body();
    });
  }
  void u8(std::uint8_t value) { writer_.write_be(value); }
  void u16(std::uint16_t value) { writer_.write_be(value); }
  void u32(std::uint32_t value) { writer_.write_be(value); }
  void u64(std::uint64_t value) { writer_.write_be(value); }
  void zeros(std::size_t count) { out_.resize(out_.size() + count); }
  void bytes(ByteSpan bytes) { writer_.write(bytes); }
  void text(std::string_view text) { writer_.write(text); }

 private:
  Bytes& out_;
  ByteWriter writer_;
};

std::optional<std::uint32_t> sample_entry_type(const VideoParams& params) {
  if (params.codec == "h264") return fourcc("avc1");
  if (params.codec == "hevc") {
    return video_internal::hvcc_is_complete(params.extradata) ? fourcc("hvc1") : fourcc("hev1");
  }
  if (params.codec == "av1") return fourcc("av01");
  if (params.codec == "vp9") return fourcc("vp09");
  if (params.codec == "mpeg4") return fourcc("mp4v");
  return std::nullopt;
}

std::uint32_t config_box_type(std::uint32_t entry) {
  switch (entry) {
    case fourcc("avc1"):
      return fourcc("avcC");
    case fourcc("av01"):
      return fourcc("av1C");
    case fourcc("vp09"):
      return fourcc("vpcC");
    default:
      return fourcc("hvcC");
  }
}

void write_descriptor_head(BoxWriter& out, std::uint8_t tag, std::size_t size) {
  out.u8(tag);
  for (int shift = 21; shift > 0; shift -= 7) {
    out.u8(static_cast<std::uint8_t>((size >> shift & 0x7f) | 0x80));
  }
  out.u8(static_cast<std::uint8_t>(size & 0x7f));
}

void write_esds(BoxWriter& out, ByteSpan specific) {
  constexpr std::size_t kHead = 5;
  const std::size_t config_bytes = 13 + kHead + specific.size();
  out.full_box(fourcc("esds"), 0, [&] {
    write_descriptor_head(out, 3, 3 + kHead + config_bytes + kHead + 1);
    out.u16(1);  // ES_ID
    out.u8(0);
    write_descriptor_head(out, 4, config_bytes);
    out.u8(0x20);   // MPEG-4 Visual
    out.u8(0x11);   // visual stream
    out.zeros(11);  // buffer size and bit rates: not said
    write_descriptor_head(out, 5, specific.size());
    out.bytes(specific);
    write_descriptor_head(out, 6, 1);
    out.u8(2);
  });
}

void write_colr(BoxWriter& out, const VideoParams& params) {
  const bool said = params.color_range != 0 || params.color_primaries != 2 ||
                    params.color_transfer != 2 || params.color_matrix != 2;
  if (!said) return;
  out.box(fourcc("colr"), [&] {
    out.text("nclx");
    out.u16(static_cast<std::uint16_t>(params.color_primaries));
    out.u16(static_cast<std::uint16_t>(params.color_transfer));
    out.u16(static_cast<std::uint16_t>(params.color_matrix));
    out.u8(params.color_range == 2 ? 0x80 : 0);
  });
}

void write_stsd(BoxWriter& out, const VideoParams& params, std::uint32_t entry) {
  out.full_box(fourcc("stsd"), 0, [&] {
    out.u32(1);
    out.box(entry, [&] {
      out.zeros(6);
      out.u16(1);  // data reference
      out.zeros(16);
      out.u16(static_cast<std::uint16_t>(params.width));
      out.u16(static_cast<std::uint16_t>(params.height));
      out.u32(0x00480000);  // 72 dpi
      out.u32(0x00480000);
      out.u32(0);
      out.u16(1);     // frames per sample
      out.zeros(32);  // compressor name
      out.u16(0x18);
      out.u16(0xffff);
      if (entry == fourcc("mp4v")) {
        write_esds(out, params.extradata);
      } else {
        out.box(config_box_type(entry), [&] { out.bytes(params.extradata); });
      }
      write_colr(out, params);
    });
  });
}

/// Everything derived from a plan that the boxes need.
struct Layout {
  Mp4Timing timing;
  std::uint32_t entry = 0;
  std::uint64_t payload_bytes = 0;
  std::uint64_t duration = 0;  ///< ticks
  std::uint32_t packets_per_chunk = 1;
  std::size_t chunks = 0;
  std::size_t keyframes = 0;
  bool reordered = false;
  bool wide_offsets = false;  ///< co64
};

void write_stts_and_ctts(BoxWriter& out, const Mp4Plan& plan, const Layout& layout) {
  out.full_box(fourcc("stts"), 0, [&] {
    out.u32(1);
    out.u32(static_cast<std::uint32_t>(plan.packets.size()));
    out.u32(layout.timing.tick);
  });
  if (!layout.reordered) return;
  out.full_box(fourcc("ctts"), 0x01000000, [&] {
    // Offset = (rank - position) * tick: the delay D is already taken away, see the header's note.
    const auto offset_of = [&](std::size_t i) {
      return (static_cast<std::int64_t>(plan.packets[i].rank) - static_cast<std::int64_t>(i)) *
             layout.timing.tick;
    };
    const auto for_each_run = [&](auto&& visit) {
      for (std::size_t i = 0; i < plan.packets.size();) {
        std::size_t end = i + 1;
        while (end < plan.packets.size() && offset_of(end) == offset_of(i)) ++end;
        visit(end - i, offset_of(i));
        i = end;
      }
    };
    std::uint32_t runs = 0;
    for_each_run([&](std::size_t, std::int64_t) { ++runs; });
    out.u32(runs);
    for_each_run([&](std::size_t count, std::int64_t offset) {
      out.u32(static_cast<std::uint32_t>(count));
      out.u32(static_cast<std::uint32_t>(static_cast<std::int32_t>(offset)));
    });
  });
}

void write_stss(BoxWriter& out, const Mp4Plan& plan, const Layout& layout) {
  if (layout.keyframes == plan.packets.size()) return;
  out.full_box(fourcc("stss"), 0, [&] {
    out.u32(static_cast<std::uint32_t>(layout.keyframes));
    for (std::size_t i = 0; i < plan.packets.size(); ++i) {
      if (plan.packets[i].keyframe) out.u32(static_cast<std::uint32_t>(i + 1));
    }
  });
}

void write_chunks(BoxWriter& out, const Mp4Plan& plan, const Layout& layout,
                  std::uint64_t payload_offset) {
  const auto packets = static_cast<std::uint32_t>(plan.packets.size());
  const std::uint32_t last = packets % layout.packets_per_chunk;
  const bool two_runs = last != 0 && layout.chunks > 1;
  out.full_box(fourcc("stsc"), 0, [&] {
    out.u32(two_runs ? 2 : 1);
    out.u32(1);
    out.u32(std::min(packets, layout.packets_per_chunk));
    out.u32(1);
    if (two_runs) {
      out.u32(static_cast<std::uint32_t>(layout.chunks));
      out.u32(last);
      out.u32(1);
    }
  });
  out.full_box(fourcc("stsz"), 0, [&] {
    out.u32(0);
    out.u32(packets);
    for (const Mp4PacketPlan& packet : plan.packets) out.u32(packet.size);
  });
  out.full_box(layout.wide_offsets ? fourcc("co64") : fourcc("stco"), 0, [&] {
    out.u32(static_cast<std::uint32_t>(layout.chunks));
    std::uint64_t offset = payload_offset;
    for (std::size_t i = 0; i < plan.packets.size(); ++i) {
      if (i % layout.packets_per_chunk == 0) {
        layout.wide_offsets ? out.u64(offset) : out.u32(static_cast<std::uint32_t>(offset));
      }
      offset += plan.packets[i].size;
    }
  });
}

void write_matrix(BoxWriter& out) {
  for (const std::uint32_t value :
       {0x00010000U, 0U, 0U, 0U, 0x00010000U, 0U, 0U, 0U, 0x40000000U}) {
    out.u32(value);
  }
}

/// Writes creation and modification time (none: files are reproducible), then the rest.
struct TimeFields {
  BoxWriter& out;
  bool wide;
  std::uint32_t version() const { return wide ? 0x01000000 : 0; }
  void stamp() const { wide ? out.zeros(16) : out.zeros(8); }
  void number(std::uint64_t value) const {
    wide ? out.u64(value) : out.u32(static_cast<std::uint32_t>(value));
  }
};

void write_track(BoxWriter& out, const Mp4Plan& plan, const Layout& layout,
                 std::uint64_t payload_offset) {
  const TimeFields time{out, layout.duration > std::numeric_limits<std::uint32_t>::max()};
  out.full_box(fourcc("tkhd"), time.version() | 3, [&] {  // enabled, in movie
    time.stamp();
    out.u32(1);  // track
    out.u32(0);
    time.number(layout.duration);
    out.zeros(16);
    write_matrix(out);
    out.u32(static_cast<std::uint32_t>(plan.params.width) << 16);
    out.u32(static_cast<std::uint32_t>(plan.params.height) << 16);
  });
  out.box(fourcc("mdia"), [&] {
    out.full_box(fourcc("mdhd"), time.version(), [&] {
      time.stamp();
      out.u32(layout.timing.timescale);
      time.number(layout.duration);
      out.u16(kLanguageUndetermined);
      out.u16(0);
    });
    out.full_box(fourcc("hdlr"), 0, [&] {
      out.u32(0);
      out.text("vide");
      out.zeros(12);
      out.text(std::string_view("VideoHandler\0", 13));
    });
    out.box(fourcc("minf"), [&] {
      out.full_box(fourcc("vmhd"), 1, [&] { out.zeros(8); });
      out.box(fourcc("dinf"), [&] {
        out.full_box(fourcc("dref"), 0, [&] {
          out.u32(1);
          out.full_box(fourcc("url "), 1, [] {});  // the same file
        });
      });
      out.box(fourcc("stbl"), [&] {
        write_stsd(out, plan.params, layout.entry);
        write_stts_and_ctts(out, plan, layout);
        write_stss(out, plan, layout);
        write_chunks(out, plan, layout, payload_offset);
      });
    });
  });
}

/// Returns ftyp, moov and the head of mdat.
Bytes make_header(const Mp4Plan& plan, const Layout& layout, std::uint64_t payload_offset) {
  Bytes bytes;
  BoxWriter out(bytes);
  out.box(fourcc("ftyp"), [&] {
    out.text("isom");
    out.u32(0x200);
    out.text("isomiso2mp41");
    if (layout.entry == fourcc("avc1") || layout.entry == fourcc("av01")) {
      out.text(layout.entry == fourcc("avc1") ? "avc1" : "av01");
    }
  });
  out.box(fourcc("moov"), [&] {
    const TimeFields time{out, layout.duration > std::numeric_limits<std::uint32_t>::max()};
    out.full_box(fourcc("mvhd"), time.version(), [&] {
      time.stamp();
      out.u32(layout.timing.timescale);
      time.number(layout.duration);
      out.u32(0x00010000);  // rate
      out.u16(0x0100);      // volume
      out.zeros(10);
      write_matrix(out);
      out.zeros(24);
      out.u32(2);  // next track
    });
    out.box(fourcc("trak"), [&] { write_track(out, plan, layout, payload_offset); });
  });
  if (layout.payload_bytes + 8 > std::numeric_limits<std::uint32_t>::max()) {
    out.u32(1);
    out.u32(fourcc("mdat"));
    out.u64(layout.payload_bytes + 16);
  } else {
    out.u32(static_cast<std::uint32_t>(layout.payload_bytes + 8));
    out.u32(fourcc("mdat"));
  }
  return bytes;
}

Status check_ranks(const Mp4Plan& plan) {
  std::vector<bool> seen(plan.packets.size());
  for (std::size_t i = 0; i < plan.packets.size(); ++i) {
    const std::uint32_t rank = plan.packets[i].rank;
    if (rank >= seen.size() || seen[rank]) {
      return invalid_argument(fmt::format("plan: packet {} has rank {}, {}", i, rank,
                                          rank >= seen.size()
                                              ? fmt::format("of {} packets", seen.size())
                                              : std::string("which another packet has")));
    }
    seen[rank] = true;
  }
  return ok_status();
}

Result<Layout> make_layout(const Mp4Plan& plan) {
  const VideoParams& params = plan.params;
  Layout layout;
  ROPEWALK_ASSIGN_OR_RETURN(layout.timing, mp4_timing(plan.fps));
  const auto entry = sample_entry_type(params);
  if (!entry) {
    return unimplemented(
        fmt::format("MP4 output of codec '{}' is not supported (h264, hevc, av1, "
                    "vp9, mpeg4 are)",
                    params.codec));
  }
  layout.entry = *entry;
  if (params.width < 1 || params.height < 1 || params.width > 65535 || params.height > 65535) {
    return invalid_argument(fmt::format("plan: picture of {}x{}", params.width, params.height));
  }
  if (params.extradata.empty() || params.extradata.size() > (1U << 20)) {
    return invalid_argument(fmt::format("plan: {} bytes of codec configuration for {}",
                                        params.extradata.size(), params.codec));
  }
  if (plan.packets.empty() || plan.packets.size() > (1U << 28)) {
    return invalid_argument(fmt::format("plan: {} packets", plan.packets.size()));
  }
  if (!plan.packets.front().keyframe) {
    return invalid_argument("plan: the first packet is not a keyframe");
  }
  ROPEWALK_RETURN_IF_ERROR(check_ranks(plan));
  std::int64_t largest_shift = 0;
  for (std::size_t i = 0; i < plan.packets.size(); ++i) {
    const Mp4PacketPlan& packet = plan.packets[i];
    const std::int64_t shift =
        static_cast<std::int64_t>(packet.rank) - static_cast<std::int64_t>(i);
    largest_shift = std::max(largest_shift, shift < 0 ? -shift : shift);
    layout.payload_bytes += packet.size;
    layout.keyframes += packet.keyframe ? 1 : 0;
  }
  layout.reordered = largest_shift > 0;
  if (largest_shift > std::numeric_limits<std::int32_t>::max() / std::int64_t{layout.timing.tick}) {
    return invalid_argument(fmt::format("plan: frames reordered over {} places", largest_shift));
  }
  layout.duration = std::uint64_t{layout.timing.tick} * plan.packets.size();
  // Chunks of one second, so that players that fetch whole chunks stay responsive.
  layout.packets_per_chunk = std::max(1U, layout.timing.timescale / layout.timing.tick);
  layout.chunks = (plan.packets.size() + layout.packets_per_chunk - 1) / layout.packets_per_chunk;
  return layout;
}

}  // namespace

Result<Mp4Timing> mp4_timing(Rational fps) {
  if (fps.num <= 0 || fps.den <= 0) {
    return invalid_argument(fmt::format("frame rate {}/{} is not positive", fps.num, fps.den));
  }
  ROPEWALK_ASSIGN_OR_RETURN(fps, make_rational(fps.num, fps.den));
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  while (fps.num < kMinTimescale && fps.den <= kMax) {
    fps.num *= 2;
    fps.den *= 2;
  }
  if (fps.num > kMax || fps.den > kMax) {
    return invalid_argument(fmt::format("frame rate {} needs more than 31 bits", to_string(fps)));
  }
  return Mp4Timing{static_cast<std::uint32_t>(fps.num), static_cast<std::uint32_t>(fps.den)};
}

bool can_share_file(const VideoParams& a, const VideoParams& b) { return a == b; }

Result<std::int64_t> Mp4Plan::append_clip(const Mp4Index& index, PacketRange range) {
  const auto before = static_cast<std::int64_t>(packets.size());
  if (range.begin > range.end || range.end > index.packets.size() ||
      range.size() > std::numeric_limits<std::uint32_t>::max() - packets.size()) {
    return out_of_range(fmt::format("{}: packets [{}, {}) of {}", index.name, range.begin,
                                    range.end, index.packets.size()));
  }
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = range.begin; i < range.end; ++i) {
    lowest = std::min<std::int64_t>(lowest, index.packets[i].rank);
  }
  for (std::size_t i = range.begin; i < range.end; ++i) {
    const Mp4Packet& packet = index.packets[i];
    const std::int64_t rank = packet.rank - lowest;
    if (packet.rank < 0 || rank >= static_cast<std::int64_t>(range.size())) {
      packets.resize(static_cast<std::size_t>(before));
      return failed_precondition(
          fmt::format("{}: packets [{}, {}) do not hold consecutive frames (packet {} is frame {})",
                      index.name, range.begin, range.end, i, packet.rank));
    }
    packets.push_back({packet.size, static_cast<std::uint32_t>(before + rank), packet.keyframe});
  }
  return before;
}

std::uint64_t Mp4Plan::payload_bytes() const {
  std::uint64_t total = 0;
  for (const Mp4PacketPlan& packet : packets) total += packet.size;
  return total;
}

Result<Mp4Writer> Mp4Writer::create(Sink& sink, const Mp4Plan& plan) {
  auto made = make_layout(plan);
  if (!made.ok()) return std::move(made).status().with_context(sink.name());
  Layout& layout = *made;
  // The size of the header does not depend on the offsets in it, only on their width.
  Bytes header = make_header(plan, layout, 0);
  if (header.size() + layout.payload_bytes > std::numeric_limits<std::uint32_t>::max()) {
    layout.wide_offsets = true;
    header = make_header(plan, layout, 0);
  }
  header = make_header(plan, layout, header.size());
  Mp4Writer writer(sink, layout.payload_bytes);
  writer.header_bytes_ = header.size();
  ROPEWALK_RETURN_IF_ERROR(sink.append(header));
  return writer;
}

Status Mp4Writer::append(ByteSpan payload) {
  if (payload.size() > planned_bytes_ - written_bytes_) {
    return failed_precondition(
        fmt::format("{}: payload of {} bytes, {} of {} planned bytes are left", sink_->name(),
                    payload.size(), planned_bytes_ - written_bytes_, planned_bytes_));
  }
  ROPEWALK_RETURN_IF_ERROR(sink_->append(payload));
  written_bytes_ += payload.size();
  return ok_status();
}

Status Mp4Writer::finish() {
  if (written_bytes_ == planned_bytes_) return ok_status();
  return failed_precondition(fmt::format("{}: {} of {} planned bytes were written", sink_->name(),
                                         written_bytes_, planned_bytes_));
}

}  // namespace ropewalk
