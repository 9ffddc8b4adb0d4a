#pragma once
// Problem: one thing that is wrong in an MCAP file, told beside the messages that are delivered all
// the same. Nothing is skipped in silence: each byte range or message not delivered has an entry.
#include <cstdint>
#include <string>
#include <string_view>

namespace ropewalk::mcap {

enum class ProblemKind : std::uint8_t {
  no_records,              ///< nothing but the magic
  unfinished,              ///< no footer: the file was not finished, or its end is lost
  truncated,               ///< a record is cut by the end of the file
  bad_record,              ///< a record whose fields do not fit its length
  bad_footer,              ///< the footer lies about where the summary is
  bad_summary,             ///< the summary fails its CRC or its structure and is not used
  zero_run,                ///< zero bytes where a record should start
  lost_range,              ///< bytes skipped up to the next plausible chunk
  chunk_crc,               ///< a chunk whose bytes differ from its CRC
  chunk_damaged,           ///< a chunk that cannot be decoded, or whose records do not add up
  chunk_cut,               ///< the last chunk is incomplete: its beginning is delivered, unverified
  unknown_compression,     ///< a chunk with a codec that MCAP does not name
  limit,                   ///< a chunk or record larger than the limits allow
  nested_record,           ///< a record that must not stand in a chunk
  index_mismatch,          ///< an index entry that disagrees with what it points to
  unindexed,               ///< a message or chunk that the summary does not list
  unknown_channel,         ///< a message whose channel is nowhere defined
  missing_schema,          ///< a channel whose schema is nowhere defined
  conflicting_definition,  ///< one id with two meanings
  duplicate_key,           ///< a map with a key twice
  attachment_crc,          ///< an attachment whose bytes differ from its CRC
  data_crc,                ///< the data section differs from the CRC in DataEnd
  statistics_mismatch,     ///< Statistics that do not count what the file holds
  trailing_data,           ///< bytes after the closing magic
};

std::string_view problem_kind_name(ProblemKind kind);

struct Problem {
  ProblemKind kind = ProblemKind::bad_record;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t length = 0;  ///< bytes concerned
  std::string detail;        ///< what was expected and what was found
};

/// Whether bytes or messages are lost where this problem is, as far as the file can tell. The
/// others say what is unusual while everything is delivered.
bool is_loss(ProblemKind kind);

/// One line: `byte 40112 (+1024): chunk_crc: stored 0x1f…, computed 0x88…`.
std::string to_line(const Problem& problem);

}  // namespace ropewalk::mcap
