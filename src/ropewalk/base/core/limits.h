#pragma once
// Limits: what a foreign file may ask for before a parser refuses it with resource_exhausted.
// Every parser takes Limits; no length read from a file sizes an allocation before it was checked.
#include <cstdint>

namespace ropewalk {

struct Limits {
  std::uint64_t max_json_bytes = 256ULL << 20;      ///< one JSON document
  std::uint64_t max_json_line_bytes = 64ULL << 20;  ///< one line of a JSON-lines file
  std::uint32_t max_json_depth = 128;
  std::uint64_t max_chunk_bytes = 1ULL << 30;      ///< one MCAP chunk, decompressed
  std::uint64_t max_record_bytes = 4ULL << 30;     ///< one MCAP record kept in memory
  std::uint64_t max_image_pixels = 64ULL << 20;    ///< one picture: width * height
  std::uint64_t max_array_bytes = 4ULL << 30;      ///< one decoded array
  std::uint64_t max_video_packets = 64ULL << 20;   ///< packets of one video file
  std::uint64_t max_packet_bytes = 256ULL << 20;   ///< one encoded picture
  std::uint64_t max_row_group_bytes = 2ULL << 30;  ///< one Parquet row group, uncompressed
  std::uint64_t max_episodes = 100ULL << 20;       ///< rows of episode metadata
};

}  // namespace ropewalk
