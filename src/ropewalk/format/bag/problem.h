#pragma once
// Problem: one thing that is wrong in a bag, told beside the messages that are delivered all the
// same. Nothing is skipped in silence: each byte range or message not delivered has an entry.
#include <cstdint>
#include <string>
#include <string_view>

namespace ropewalk::bag {

enum class ProblemKind : std::uint8_t {
  unfinished,           ///< the recording was not closed: no index, or a write-ahead log beside it
  truncated,            ///< the file ends before what its header or index says
  bad_record,           ///< a record or row whose fields make no sense
  bad_index,            ///< the index section fails its structure and is not used
  lost_range,           ///< bytes skipped up to the next plausible chunk
  chunk_damaged,        ///< a chunk that cannot be decoded, or whose records do not add up
  chunk_cut,            ///< a chunk cut by the end of the file: its beginning is delivered
  unknown_compression,  ///< a chunk with a codec that bags do not have
  limit,                ///< a chunk or message larger than the limits allow
  index_mismatch,       ///< an index entry that disagrees with what it points to
  unindexed,            ///< records that the index does not list
  unknown_channel,      ///< messages whose connection or topic is nowhere defined
  missing_schema,       ///< a channel without the definition of its type
  conflicting_definition,  ///< one id with two meanings
  database_damaged,        ///< a database with lost or damaged pages: rows are read one by one
  rows_lost,               ///< rows of a database that cannot be read
  message_damaged,         ///< a compressed message that cannot be decoded
  missing_file,            ///< a file that metadata.yaml names and that is not there
  metadata_mismatch,       ///< metadata that does not say what the files hold
};

std::string_view problem_kind_name(ProblemKind kind);

struct Problem {
  ProblemKind kind = ProblemKind::bad_record;
  std::string file;          ///< the name of the source; tells the files of a directory apart
  std::uint64_t offset = 0;  ///< in the file; 0 for rows of a database
  std::uint64_t length = 0;  ///< bytes concerned; 0 where that has no meaning
  std::string detail;        ///< what was expected and what was found
};

/// One line: `talk.bag: byte 40112 (+1024): chunk_damaged: …`.
std::string to_line(const Problem& problem);

}  // namespace ropewalk::bag
