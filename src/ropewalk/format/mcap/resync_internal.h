#pragma once
// Where records may start in bytes whose framing is lost. MCAP has no marker of its own, so a chunk
// is known by what its head must be; files of a recording carry sync records besides
// (private_records.h).
#include <cstdint>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk::mcap {

/// Bytes that judge_chunk() wants to see: record head, chunk head with the longest known codec name
/// and the first record of the payload.
inline constexpr std::size_t kJudgedBytes = 9 + 32 + 4 + 8 + 9;

/// Whether a chunk stands at the beginning of `bytes`, of which `left` more bytes follow in the
/// file, those included. Its codec is known, its sizes agree, and its payload starts as that codec
/// starts. `may_be_cut`: also a compressed chunk that reaches past the end of the file.
bool judge_chunk(ByteSpan bytes, std::uint64_t left, bool may_be_cut);

/// Whether a record that may stand outside chunks starts at `bytes`, and where it would end.
/// Weak alone: several in a row make a chain.
bool judge_record(ByteSpan bytes, std::uint64_t left, std::uint64_t& length);

}  // namespace ropewalk::mcap
