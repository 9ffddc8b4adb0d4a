#pragma once
// Compression: bytes to bytes with limits. Frames, blocks and streams of foreign files come here.
#include <cstdint>
#include <optional>
#include <string_view>

#include "ropewalk/base/core/bytes.h"

namespace ropewalk {

enum class Compression : std::uint8_t { none, lz4_frame, zstd, gzip, zlib, bzip2 };

/// "none", "lz4", "zstd", "gzip", "zlib", "bz2".
std::string_view compression_name(Compression codec);
std::optional<Compression> compression_from_name(std::string_view name);

/// Compresses `input` as one frame appended to `out`. Level 0 means the default: lz4 fast, zstd 1,
/// gzip and zlib 6, bzip2 9. Errors: invalid_argument for a level the codec does not have;
/// internal.
Status compress(Compression codec, ByteSpan input, int level, Bytes& out);

/// Appends `input` as an LZ4 frame with independent blocks, a checksum of the content and no stated
/// size: the only kind that the LZ4 reader of ROS 1 takes.
Status compress_lz4_checked(ByteSpan input, Bytes& out);

/// The most bytes that compress_into() may need for `size` bytes of input: none, lz4_frame, zstd.
std::size_t compress_bound(Compression codec, std::size_t size);
/// The same as compress(), into memory that the caller has and reuses; returns the size of the
/// frame. Errors: also invalid_argument for a codec without compress_bound() or when `out` is
/// smaller.
Result<std::size_t> compress_into(Compression codec, ByteSpan input, int level,
                                  MutableByteSpan out);

/// Decodes one frame whose decoded size is known, straight into `out`.
/// Errors: data_loss when the frame is damaged, ends early, or decodes to another size than `out`.
Status decompress_exact(Compression codec, ByteSpan input, MutableByteSpan out);

/// Decodes input of unknown size, growing in steps. Errors: data_loss; resource_exhausted above
/// `max_bytes`.
Result<Bytes> decompress(Compression codec, ByteSpan input, std::uint64_t max_bytes);

/// Returns the decoded size that a zstd or lz4 frame states, or nullopt when it states none.
std::optional<std::uint64_t> stated_size(Compression codec, ByteSpan input);

}  // namespace ropewalk
