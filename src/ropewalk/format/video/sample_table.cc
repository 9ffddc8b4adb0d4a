// Spec: ISO/IEC 14496-12, 8.6.1 (stts, ctts), 8.6.2 (stss), 8.7 (stsz, stz2, stsc, stco, co64).
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/video/sample_table_internal.h"

namespace ropewalk::video_internal {
namespace {

/// A table of fixed-size rows behind version, flags and a count that fits the box.
struct Table {
  ByteCursor rows{ByteSpan{}};
  std::uint32_t count = 0;
};

Result<Table> open_table(ByteSpan payload, std::size_t row_bytes, std::string_view name) {
  if (payload.data() == nullptr) return data_loss(fmt::format("sample table has no {}", name));
  Table table;
  table.rows = ByteCursor(payload);
  ROPEWALK_RETURN_IF_ERROR(table.rows.skip(4).with_context(name));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(table.count, table.rows.read_be<std::uint32_t>(), name);
  if (table.count > table.rows.remaining() / row_bytes) {
    return data_loss(fmt::format("{}: {} entries of {} bytes, the box has {} bytes", name,
                                 table.count, row_bytes, table.rows.remaining()));
  }
  return table;
}

Status check_packet_count(std::uint64_t count, const Limits& limits) {
  if (count <= limits.max_video_packets) return ok_status();
  return resource_exhausted(fmt::format("{} packets, the limit is {} (max_video_packets)", count,
                                        limits.max_video_packets));
}

Status check_packet_size(std::uint64_t size, std::size_t packet, const Limits& limits) {
  if (size <= limits.max_packet_bytes) return ok_status();
  return resource_exhausted(
      fmt::format("packet {} has {} bytes, the limit is {} (max_packet_bytes)", packet, size,
                  limits.max_packet_bytes));
}

Status read_sizes(ByteSpan stsz, const Limits& limits, Mp4Index& index) {
  ByteCursor in(stsz);
  ROPEWALK_RETURN_IF_ERROR(in.skip(4).with_context("stsz"));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto same, in.read_be<std::uint32_t>(), "stsz");
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto count, in.read_be<std::uint32_t>(), "stsz");
  ROPEWALK_RETURN_IF_ERROR(check_packet_count(count, limits));
  if (same != 0) {
    if (count > index.file_bytes / same) {
      return data_loss(fmt::format("stsz: {} packets of {} bytes in a file of {} bytes", count,
                                   same, index.file_bytes));
    }
    ROPEWALK_RETURN_IF_ERROR(check_packet_size(same, 0, limits));
    index.packets.resize(count);
    for (Mp4Packet& packet : index.packets) packet.size = same;
    return ok_status();
  }
  if (count > in.remaining() / 4) {
    return data_loss(fmt::format("stsz: {} sizes, the box has {} bytes", count, in.remaining()));
  }
  index.packets.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(index.packets[i].size, in.read_be<std::uint32_t>());
    ROPEWALK_RETURN_IF_ERROR(check_packet_size(index.packets[i].size, i, limits));
  }
  return ok_status();
}

Status read_compact_sizes(ByteSpan stz2, const Limits& limits, Mp4Index& index) {
  ByteCursor in(stz2);
  ROPEWALK_RETURN_IF_ERROR(in.skip(4).with_context("stz2"));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto field, in.read_be<std::uint32_t>(), "stz2");
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto count, in.read_be<std::uint32_t>(), "stz2");
  const std::uint32_t bits = field & 0xff;
  if (bits != 4 && bits != 8 && bits != 16) {
    return data_loss(fmt::format("stz2: sizes of {} bits", bits));
  }
  ROPEWALK_RETURN_IF_ERROR(check_packet_count(count, limits));
  if ((std::uint64_t{count} * bits + 7) / 8 > in.remaining()) {
    return data_loss(fmt::format("stz2: {} sizes, the box has {} bytes", count, in.remaining()));
  }
  index.packets.resize(count);
  std::uint8_t pair = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (bits == 16) {
      ROPEWALK_ASSIGN_OR_RETURN(index.packets[i].size, in.read_be<std::uint16_t>());
    } else if (bits == 8) {
      ROPEWALK_ASSIGN_OR_RETURN(index.packets[i].size, in.read_be<std::uint8_t>());
    } else {
      if (i % 2 == 0) {
        ROPEWALK_ASSIGN_OR_RETURN(pair, in.read_be<std::uint8_t>());
      }
      index.packets[i].size = i % 2 == 0 ? pair >> 4 : pair & 15;
    }
  }
  return ok_status();
}

Result<std::vector<std::uint64_t>> read_chunk_offsets(const VideoTrack& track) {
  const bool wide = track.stco.data() == nullptr;
  ROPEWALK_ASSIGN_OR_RETURN(Table table, open_table(wide ? track.co64 : track.stco, wide ? 8 : 4,
                                                    wide ? "co64" : "stco"));
  std::vector<std::uint64_t> offsets(table.count);
  for (std::uint64_t& offset : offsets) {
    if (wide) {
      ROPEWALK_ASSIGN_OR_RETURN(offset, table.rows.read_be<std::uint64_t>());
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(offset, table.rows.read_be<std::uint32_t>());
    }
  }
  return offsets;
}

Status place_packets(const VideoTrack& track, Mp4Index& index) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto offsets, read_chunk_offsets(track));
  ROPEWALK_ASSIGN_OR_RETURN(Table table, open_table(track.stsc, 12, "stsc"));
  struct Run {
    std::uint32_t first_chunk, packets, description;
  };
  const auto read_run = [&]() -> Result<Run> {
    Run run{};
    ROPEWALK_ASSIGN_OR_RETURN(run.first_chunk, table.rows.read_be<std::uint32_t>());
    ROPEWALK_ASSIGN_OR_RETURN(run.packets, table.rows.read_be<std::uint32_t>());
    ROPEWALK_ASSIGN_OR_RETURN(run.description, table.rows.read_be<std::uint32_t>());
    return run;
  };
  std::size_t next = 0;
  if (table.count == 0 && !index.packets.empty()) return data_loss("stsc: no entries");
  Run run{};
  if (table.count > 0) {
    ROPEWALK_ASSIGN_OR_RETURN(run, read_run());
    if (run.first_chunk != 1) return data_loss("stsc: the first entry is not for chunk 1");
  }
  for (std::uint32_t i = 0; i < table.count && next < index.packets.size(); ++i) {
    Run following{};
    std::size_t end_chunk = offsets.size();
    if (i + 1 < table.count) {
      ROPEWALK_ASSIGN_OR_RETURN(following, read_run());
      if (following.first_chunk <= run.first_chunk) {
        return data_loss(fmt::format("stsc: entry {} does not advance", i + 1));
      }
      end_chunk = std::min<std::size_t>(end_chunk, following.first_chunk - 1);
    }
    if (run.description != 1) {
      return unimplemented(
          fmt::format("packets use sample description {}: parameters that change within a file are "
                      "not supported, re-encode it",
                      run.description));
    }
    for (std::size_t chunk = run.first_chunk - 1; chunk < end_chunk; ++chunk) {
      std::uint64_t offset = offsets[chunk];
      for (std::uint32_t k = 0; k < run.packets && next < index.packets.size(); ++k) {
        index.packets[next].offset = offset;
        if (offset > UINT64_MAX - index.packets[next].size) {
          return data_loss(fmt::format("packet {}: offset {} overflows", next, offset));
        }
        offset += index.packets[next++].size;
      }
      if (next == index.packets.size()) break;
    }
    run = following;
  }
  if (next < index.packets.size()) {
    return data_loss(fmt::format("chunks hold {} of {} packets", next, index.packets.size()));
  }
  return ok_status();
}

Status read_times(const VideoTrack& track, Mp4Index& index) {
  ROPEWALK_ASSIGN_OR_RETURN(Table table, open_table(track.stts, 8, "stts"));
  std::size_t next = 0;
  std::int64_t time = 0;
  for (std::uint32_t i = 0; i < table.count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto count, table.rows.read_be<std::uint32_t>());
    ROPEWALK_ASSIGN_OR_RETURN(const auto delta, table.rows.read_be<std::uint32_t>());
    for (std::uint32_t k = 0; k < count && next < index.packets.size(); ++k) {
      index.packets[next].dts = time;
      index.packets[next++].pts = time;
      time += delta;
    }
  }
  if (next < index.packets.size()) {
    return data_loss(fmt::format("stts: times for {} of {} packets", next, index.packets.size()));
  }
  if (track.ctts.data() == nullptr) return ok_status();
  // Version 0 is unsigned by the letter; offsets above 2^31 are negative ones of old writers.
  ROPEWALK_ASSIGN_OR_RETURN(Table offsets, open_table(track.ctts, 8, "ctts"));
  next = 0;
  for (std::uint32_t i = 0; i < offsets.count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto count, offsets.rows.read_be<std::uint32_t>());
    ROPEWALK_ASSIGN_OR_RETURN(const auto offset, offsets.rows.read_be<std::int32_t>());
    for (std::uint32_t k = 0; k < count && next < index.packets.size(); ++k) {
      index.packets[next++].pts += offset;
    }
  }
  return ok_status();
}

Status read_keyframes(const VideoTrack& track, Mp4Index& index) {
  if (!track.has_stss) {
    for (Mp4Packet& packet : index.packets) packet.keyframe = true;
    return ok_status();
  }
  ROPEWALK_ASSIGN_OR_RETURN(Table table, open_table(track.stss, 4, "stss"));
  for (std::uint32_t i = 0; i < table.count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto number, table.rows.read_be<std::uint32_t>());
    if (number == 0 || number > index.packets.size()) {
      return data_loss(
          fmt::format("stss: keyframe {} of {} packets", number, index.packets.size()));
    }
    index.packets[number - 1].keyframe = true;
  }
  return ok_status();
}

}  // namespace

Status expand_sample_table(const VideoTrack& track, const Limits& limits, Mp4Index& index) {
  if (track.stsz.data() != nullptr) {
    ROPEWALK_RETURN_IF_ERROR(read_sizes(track.stsz, limits, index));
  } else if (track.stz2.data() != nullptr) {
    ROPEWALK_RETURN_IF_ERROR(read_compact_sizes(track.stz2, limits, index));
  } else {
    return data_loss("sample table has no stsz");
  }
  ROPEWALK_RETURN_IF_ERROR(place_packets(track, index));
  ROPEWALK_RETURN_IF_ERROR(read_times(track, index));
  ROPEWALK_RETURN_IF_ERROR(read_keyframes(track, index));
  for (const Mp4Packet& packet : index.packets) index.payload_bytes += packet.size;
  return ok_status();
}

}  // namespace ropewalk::video_internal
