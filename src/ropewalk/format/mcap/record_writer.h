#pragma once
// Serialisation of MCAP records: each call appends one whole record, head included, to `out`.
// Errors: invalid_argument where a text or map is longer than the format can say (4 GiB - 1), or a
// map has a key twice, which the format leaves undefined.
#include <cstdint>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {

Status append_record(Bytes& out, const Header& record);
Status append_record(Bytes& out, const Footer& record);
Status append_record(Bytes& out, const Schema& record);
Status append_record(Bytes& out, const Channel& record);
Status append_record(Bytes& out, const Message& record);
Status append_record(Bytes& out, const MessageIndex& record);
Status append_record(Bytes& out, const ChunkIndex& record);
Status append_record(Bytes& out, const AttachmentIndex& record);
Status append_record(Bytes& out, const Statistics& record);
Status append_record(Bytes& out, const Metadata& record);
Status append_record(Bytes& out, const MetadataIndex& record);
Status append_record(Bytes& out, const SummaryOffset& record);
Status append_record(Bytes& out, const DataEnd& record);

/// Appends record head and fields up to where `records_size` bytes follow.
Status append_chunk_head(Bytes& out, const ChunkHead& head);
/// Appends record head and fields up to where `data_size` bytes and then the CRC follow.
Status append_attachment_head(Bytes& out, const AttachmentHead& head);
/// Appends record head and fields up to where `data_size` bytes follow.
void append_message_head(Bytes& out, const MessageHead& head, std::uint64_t data_size);
/// Appends a record with any opcode, private ones included.
void append_raw_record(Bytes& out, std::uint8_t opcode, ByteSpan content);

/// CRC-32 of a followed by b, from the CRC-32 of each and the length of b.
std::uint32_t crc32_combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t length_b);

}  // namespace ropewalk::mcap
