#include <cstring>

#include "ropewalk/format/mcap/record_reader.h"
#include "ropewalk/format/mcap/resync_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kMaxChainRecordBytes = 256ULL << 20;

bool starts_with(ByteSpan bytes, std::initializer_list<std::uint8_t> magic) {
  std::size_t at = 0;
  for (const std::uint8_t byte : magic) {
    if (at >= bytes.size() || bytes[at++] != byte) return false;
  }
  return true;
}

// The payload of an uncompressed chunk begins with a record that may stand in a chunk and fits.
bool starts_with_record(ByteSpan payload, std::uint64_t size) {
  if (payload.size() < kRecordHeadBytes) return false;
  const std::uint8_t opcode = payload[0];
  std::uint64_t length = 0;
  std::memcpy(&length, payload.data() + 1, sizeof length);
  return (opcode == 0x03 || opcode == 0x04 || opcode == 0x05 || opcode >= 0x80) &&
         length <= size - kRecordHeadBytes;
}

}  // namespace

bool judge_chunk(ByteSpan bytes, std::uint64_t left, bool may_be_cut) {
  if (bytes.size() < kRecordHeadBytes + 32 + 8 ||
      bytes[0] != static_cast<std::uint8_t>(Opcode::chunk)) {
    return false;
  }
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + 1, sizeof length);
  const bool cut = length > left - kRecordHeadBytes;
  if (cut && !may_be_cut) return false;
  const ByteSpan content = bytes.subspan(kRecordHeadBytes);
  std::size_t at = 0;
  const auto head = parse_chunk_head(content, &at);
  if (!head.ok()) return false;
  const ByteSpan payload = content.subspan(at);
  if (head->compression.empty()) {
    return !cut && head->records_size <= length - at &&
           head->uncompressed_size == head->records_size &&
           (head->records_size == 0 || (head->records_size >= kRecordHeadBytes &&
                                        starts_with_record(payload, head->records_size)));
  }
  const bool known =
      (head->compression == "zstd" && starts_with(payload, {0x28, 0xB5, 0x2F, 0xFD})) ||
      (head->compression == "lz4" && starts_with(payload, {0x04, 0x22, 0x4D, 0x18}));
  return known && (cut || head->records_size <= length - at);
}

bool judge_record(ByteSpan bytes, std::uint64_t left, std::uint64_t& length) {
  if (bytes.size() < kRecordHeadBytes || left < kRecordHeadBytes) return false;
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data() + 1, sizeof size);
  length = size + kRecordHeadBytes;
  if (size > left - kRecordHeadBytes || size > kMaxChainRecordBytes) return false;
  switch (bytes[0]) {
    case 0x03:  // Schema
      return size >= 14;
    case 0x04:  // Channel
      return size >= 16;
    case 0x05:  // Message
      return size >= kMessageHeadBytes;
    case 0x06:  // Chunk
      return size >= 40;
    case 0x07:  // MessageIndex
      return size >= 6 && (size - 6) % 16 == 0;
    case 0x09:  // Attachment
      return size >= 36;
    case 0x0C:  // Metadata
      return size >= 8;
    case 0x0F:  // DataEnd
      return size == 4;
    default:
      return false;
  }
}

}  // namespace ropewalk::mcap
