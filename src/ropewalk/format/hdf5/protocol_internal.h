#pragma once
// Private: what Hdf5Reader and its child process say to each other over a socket pair.
// A message is a u32 length and that many bytes, integers little-endian. Request: u8 operation,
// then its fields. Response: u8 status code, then the text of the error or the fields of the
// answer. Array data does not go through the socket but through shared memory.
#include <cstdint>
#include <string>
#include <string_view>

#include "ropewalk/format/hdf5/hdf5.h"

namespace ropewalk::hdf5_internal {

/// Descriptors of the child.
inline constexpr int kSocketFd = 3;
inline constexpr int kFileFd = 4;
inline constexpr int kSharedFd = 5;

inline constexpr std::uint32_t kMaxRequestBytes = 64U << 10;
inline constexpr std::uint32_t kMaxResponseBytes = 32U << 20;
inline constexpr std::uint64_t kMaxListedNames = 200'000;
inline constexpr std::uint64_t kMaxAttributeBytes = 1U << 20;

enum class Operation : std::uint8_t {
  open = 1,    ///< → nothing
  list,        ///< path → u32 count, names
  describe,    ///< path → info
  read_rows,   ///< path, u64 begin, u64 end, u64 bytes, u64 shared size → nothing; data in shared
               ///< memory
  read_texts,  ///< path, u64 largest number of bytes → value
};

void put_text(ByteWriter& out, std::string_view text);
Result<std::string> get_text(ByteCursor& in);
void put_value(ByteWriter& out, const Hdf5Value& value);
Result<Hdf5Value> get_value(ByteCursor& in);
void put_info(ByteWriter& out, const Hdf5ObjectInfo& info);
Result<Hdf5ObjectInfo> get_info(ByteCursor& in);

/// Splits a response into the Status of the child and its fields. Errors: those of the child;
/// data_loss.
Result<ByteSpan> open_response(ByteSpan response);
Bytes make_response(const Status& status, ByteSpan fields);

/// Sends a message whole. Errors: unavailable when the other side is gone.
Status send_message(int socket, ByteSpan body);

}  // namespace ropewalk::hdf5_internal
