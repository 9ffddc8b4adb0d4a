#pragma once
// Streams of compressed bytes, decoded piece by piece in bounded memory: for files that are larger
// than what may be held, and for what is left of a frame that is cut.
#include <cstdint>
#include <functional>

#include "ropewalk/base/codec/compression.h"

namespace ropewalk {

/// Hands out the next input; an empty span ends it.
using PieceReader = std::function<Result<ByteSpan>()>;
using PieceWriter = std::function<Status(ByteSpan)>;

/// Decodes any number of frames in a row: lz4, zstd, bzip2. `write` gets pieces of up to 1 MiB.
/// Errors: data_loss when a frame is damaged or ends early, after everything before was written;
/// what `read` and `write` return; unimplemented for gzip and zlib.
Status decompress_stream(Compression codec, const PieceReader& read, const PieceWriter& write);

/// A reader that gives `bytes` once. Lifetime: `bytes` must outlive it.
PieceReader read_once(ByteSpan bytes);

/// Decodes what there is of a frame that is cut or damaged, up to `max_bytes`. May be empty.
Bytes decompress_prefix(Compression codec, ByteSpan input, std::uint64_t max_bytes);

}  // namespace ropewalk
