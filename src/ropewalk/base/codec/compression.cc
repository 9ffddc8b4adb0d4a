#include "ropewalk/base/codec/compression.h"

#include <bzlib.h>
#include <libdeflate.h>
#include <zstd.h>

#include <algorithm>
#include <limits>
#include <memory>

#include <fmt/format.h>
#include <lz4frame.h>

#include "ropewalk/base/codec/stream.h"

namespace ropewalk {
namespace {

struct ZstdCompressorFree {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct ZstdDecompressorFree {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct Lz4DecompressorFree {
  void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
};
struct DeflateCompressorFree {
  void operator()(libdeflate_compressor* c) const { libdeflate_free_compressor(c); }
};
struct DeflateDecompressorFree {
  void operator()(libdeflate_decompressor* d) const { libdeflate_free_decompressor(d); }
};

// One context per thread is reused across chunks.
ZSTD_CCtx* zstd_compressor() {
  thread_local const std::unique_ptr<ZSTD_CCtx, ZstdCompressorFree> context(ZSTD_createCCtx());
  return context.get();
}
LZ4F_cctx* lz4_compressor() {
  struct Free {
    void operator()(LZ4F_cctx* context) const { LZ4F_freeCompressionContext(context); }
  };
  thread_local const std::unique_ptr<LZ4F_cctx, Free> context([] {
    LZ4F_cctx* raw = nullptr;
    return LZ4F_isError(LZ4F_createCompressionContext(&raw, LZ4F_VERSION)) ? nullptr : raw;
  }());
  return context.get();
}
ZSTD_DCtx* zstd_decompressor() {
  thread_local const std::unique_ptr<ZSTD_DCtx, ZstdDecompressorFree> context(ZSTD_createDCtx());
  return context.get();
}

Status damaged(Compression codec, std::string_view what) {
  return data_loss(fmt::format("{} frame: {}", compression_name(codec), what));
}

Status wrong_size(Compression codec, std::size_t expected, std::size_t found) {
  return data_loss(fmt::format("{} frame: expected {} decoded bytes, found {}",
                               compression_name(codec), expected, found));
}

Status lz4_decompress_exact(ByteSpan input, MutableByteSpan out) {
  // Kept from frame to frame, but not beyond one that failed: what such a frame leaves behind is
  // not all undone by a reset.
  thread_local std::unique_ptr<LZ4F_dctx, Lz4DecompressorFree> kept;
  std::unique_ptr<LZ4F_dctx, Lz4DecompressorFree> context = std::move(kept);
  if (!context) {
    LZ4F_dctx* raw = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION))) {
      return resource_exhausted("no memory for an lz4 context");
    }
    context.reset(raw);
  }
  // The output stays where it is: no copy of the window is kept.
  LZ4F_decompressOptions_t stable{};
  stable.stableDst = 1;
  std::size_t consumed = 0;
  std::size_t produced = 0;
  std::size_t hint = 1;
  while (consumed < input.size() && hint != 0) {
    std::size_t in_size = input.size() - consumed;
    std::size_t out_size = out.size() - produced;
    hint = LZ4F_decompress(context.get(), out.data() + produced, &out_size, input.data() + consumed,
                           &in_size, &stable);
    if (LZ4F_isError(hint)) return damaged(Compression::lz4_frame, LZ4F_getErrorName(hint));
    consumed += in_size;
    produced += out_size;
    if (in_size == 0 && out_size == 0) break;
  }
  if (hint != 0 || produced != out.size()) {
    return wrong_size(Compression::lz4_frame, out.size(), produced);
  }
  kept = std::move(context);
  return ok_status();
}

Status deflate_decompress_exact(Compression codec, ByteSpan input, MutableByteSpan out) {
  const std::unique_ptr<libdeflate_decompressor, DeflateDecompressorFree> context(
      libdeflate_alloc_decompressor());
  if (!context) return resource_exhausted("no memory for a deflate context");
  std::size_t produced = 0;
  const auto decode =
      codec == Compression::gzip ? libdeflate_gzip_decompress : libdeflate_zlib_decompress;
  switch (decode(context.get(), input.data(), input.size(), out.data(), out.size(), &produced)) {
    case LIBDEFLATE_SUCCESS:
      break;
    case LIBDEFLATE_BAD_DATA:
      return damaged(codec, "damaged data");
    case LIBDEFLATE_SHORT_OUTPUT:
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return damaged(codec, fmt::format("does not decode to exactly {} bytes", out.size()));
  }
  if (produced != out.size()) return wrong_size(codec, out.size(), produced);
  return ok_status();
}

Status lz4_compress(ByteSpan input, const LZ4F_preferences_t& preferences, Bytes& out) {
  const std::size_t start = out.size();
  out.resize(start + LZ4F_compressFrameBound(input.size(), &preferences));
  const std::size_t size = LZ4F_compressFrame(out.data() + start, out.size() - start, input.data(),
                                              input.size(), &preferences);
  if (LZ4F_isError(size)) return internal(LZ4F_getErrorName(size));
  out.resize(start + size);
  return ok_status();
}

Status bzip2_compress(ByteSpan input, int level, Bytes& out) {
  if (level < 1 || level > 9) {
    return invalid_argument(fmt::format("bzip2 level {}: expected 1 to 9", level));
  }
  // The bound that the library documents: 1 % more and 600 bytes.
  const std::size_t bound = input.size() + input.size() / 100 + 600;
  if (bound > std::numeric_limits<unsigned>::max()) {
    return resource_exhausted(fmt::format("bzip2: {} bytes are too many at once", input.size()));
  }
  const std::size_t start = out.size();
  out.resize(start + bound);
  auto size = static_cast<unsigned>(bound);
  char empty = 0;
  char* source = input.empty()
                     ? &empty
                     : const_cast<char*>(reinterpret_cast<const char*>(input.data()));  // read only
  const int code =
      BZ2_bzBuffToBuffCompress(reinterpret_cast<char*>(out.data() + start), &size, source,
                               static_cast<unsigned>(input.size()), level, 0, 0);
  if (code != BZ_OK) return internal(fmt::format("bzip2: error {}", code));
  out.resize(start + size);
  return ok_status();
}

// Through the stream, so that nothing larger than what comes out is ever allocated.
Status bzip2_decompress_exact(ByteSpan input, MutableByteSpan out) {
  std::size_t produced = 0;
  ROPEWALK_RETURN_IF_ERROR(
      decompress_stream(Compression::bzip2, read_once(input), [&](ByteSpan piece) -> Status {
        if (piece.size() > out.size() - produced) {
          return wrong_size(Compression::bzip2, out.size(), produced + piece.size());
        }
        std::ranges::copy(piece, out.begin() + static_cast<std::ptrdiff_t>(produced));
        produced += piece.size();
        return ok_status();
      }));
  if (produced != out.size()) return wrong_size(Compression::bzip2, out.size(), produced);
  return ok_status();
}

Result<Bytes> bzip2_decompress(ByteSpan input, std::uint64_t max_bytes) {
  Bytes out;
  ROPEWALK_RETURN_IF_ERROR(
      decompress_stream(Compression::bzip2, read_once(input), [&](ByteSpan piece) -> Status {
        if (piece.size() > max_bytes - out.size()) {
          return resource_exhausted(
              fmt::format("bz2 frame decodes to more than the limit of {} bytes", max_bytes));
        }
        out.insert(out.end(), piece.begin(), piece.end());
        return ok_status();
      }));
  return out;
}

}  // namespace

std::string_view compression_name(Compression codec) {
  switch (codec) {
    case Compression::none:
      return "none";
    case Compression::lz4_frame:
      return "lz4";
    case Compression::zstd:
      return "zstd";
    case Compression::gzip:
      return "gzip";
    case Compression::zlib:
      return "zlib";
    case Compression::bzip2:
      return "bz2";
  }
  return "none";
}

std::optional<Compression> compression_from_name(std::string_view name) {
  for (const Compression codec : {Compression::none, Compression::lz4_frame, Compression::zstd,
                                  Compression::gzip, Compression::zlib, Compression::bzip2}) {
    if (compression_name(codec) == name) return codec;
  }
  return std::nullopt;
}

namespace {

LZ4F_preferences_t lz4_preferences(std::size_t size, int level) {
  LZ4F_preferences_t out{};
  out.compressionLevel = level;
  out.autoFlush = 1;
  out.frameInfo.contentSize = size;
  out.frameInfo.blockSizeID = LZ4F_max64KB;
  if (size <= (std::size_t{64} << 10)) out.frameInfo.blockMode = LZ4F_blockIndependent;
  return out;
}

}  // namespace

std::size_t compress_bound(Compression codec, std::size_t size) {
  if (codec == Compression::zstd) return ZSTD_compressBound(size);
  if (codec == Compression::lz4_frame) {
    const LZ4F_preferences_t preferences = lz4_preferences(size, 0);
    return LZ4F_HEADER_SIZE_MAX + LZ4F_compressBound(size, &preferences);
  }
  return size;
}

Result<std::size_t> compress_into(Compression codec, ByteSpan input, int level,
                                  MutableByteSpan out) {
  if (out.size() < compress_bound(codec, input.size())) {
    return invalid_argument(fmt::format("{} bytes of room for {} bytes of {}", out.size(),
                                        input.size(), compression_name(codec)));
  }
  switch (codec) {
    case Compression::none:
      std::ranges::copy(input, out.begin());
      return input.size();
    case Compression::lz4_frame: {
      if (level < 0 || level > 12) {
        return invalid_argument(fmt::format("lz4 level {}: expected 0 to 12", level));
      }
      // What LZ4F_compressFrame does, in a context that is reused.
      const LZ4F_preferences_t preferences = lz4_preferences(input.size(), level);
      LZ4F_cctx* context = lz4_compressor();
      if (context == nullptr) return resource_exhausted("no memory for an lz4 context");
      LZ4F_compressOptions_t stable{};
      stable.stableSrc = 1;
      std::size_t used = 0;
      const auto step = [&](std::size_t result) {
        if (LZ4F_isError(result)) return false;
        used += result;
        return true;
      };
      std::size_t result = LZ4F_compressBegin(context, out.data(), out.size(), &preferences);
      if (step(result)) {
        result = LZ4F_compressUpdate(context, out.data() + used, out.size() - used, input.data(),
                                     input.size(), &stable);
        if (step(result)) {
          result = LZ4F_compressEnd(context, out.data() + used, out.size() - used, &stable);
          if (step(result)) return used;
        }
      }
      return internal(LZ4F_getErrorName(result));
    }
    case Compression::zstd: {
      if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel()) {
        return invalid_argument(fmt::format("zstd level {}: expected {} to {}", level,
                                            ZSTD_minCLevel(), ZSTD_maxCLevel()));
      }
      const std::size_t size =
          ZSTD_compressCCtx(zstd_compressor(), out.data(), out.size(), input.data(), input.size(),
                            level == 0 ? 1 : level);
      if (ZSTD_isError(size)) return internal(ZSTD_getErrorName(size));
      return size;
    }
    case Compression::gzip:
    case Compression::zlib:
    case Compression::bzip2:
      break;
  }
  return invalid_argument(
      fmt::format("{} does not compress into given memory", compression_name(codec)));
}

Status compress(Compression codec, ByteSpan input, int level, Bytes& out) {
  const std::size_t start = out.size();
  switch (codec) {
    case Compression::none:
      out.insert(out.end(), input.begin(), input.end());
      return ok_status();
    case Compression::lz4_frame:
    case Compression::zstd: {
      out.resize(start + compress_bound(codec, input.size()));
      auto size = compress_into(codec, input, level, MutableByteSpan(out).subspan(start));
      if (!size.ok()) {
        out.resize(start);
        return std::move(size).status();
      }
      out.resize(start + *size);
      return ok_status();
    }
    case Compression::gzip:
    case Compression::zlib: {
      const std::unique_ptr<libdeflate_compressor, DeflateCompressorFree> context(
          libdeflate_alloc_compressor(level == 0 ? 6 : level));
      if (!context)
        return invalid_argument(fmt::format("deflate level {}: expected 1 to 12", level));
      const bool gzip = codec == Compression::gzip;
      out.resize(start + (gzip ? libdeflate_gzip_compress_bound(context.get(), input.size())
                               : libdeflate_zlib_compress_bound(context.get(), input.size())));
      const auto encode = gzip ? libdeflate_gzip_compress : libdeflate_zlib_compress;
      const std::size_t size =
          encode(context.get(), input.data(), input.size(), out.data() + start, out.size() - start);
      if (size == 0) return internal("deflate: output bound was too small");
      out.resize(start + size);
      return ok_status();
    }
    case Compression::bzip2:
      return bzip2_compress(input, level == 0 ? 9 : level, out);
  }
  return internal("unknown codec");
}

Status compress_lz4_checked(ByteSpan input, Bytes& out) {
  LZ4F_preferences_t preferences{};
  preferences.frameInfo.blockMode = LZ4F_blockIndependent;
  preferences.frameInfo.contentChecksumFlag = LZ4F_contentChecksumEnabled;
  return lz4_compress(input, preferences, out);
}

Status decompress_exact(Compression codec, ByteSpan input, MutableByteSpan out) {
  switch (codec) {
    case Compression::none:
      if (input.size() != out.size()) return wrong_size(codec, out.size(), input.size());
      std::ranges::copy(input, out.begin());
      return ok_status();
    case Compression::lz4_frame:
      return lz4_decompress_exact(input, out);
    case Compression::zstd: {
      const std::size_t size = ZSTD_decompressDCtx(zstd_decompressor(), out.data(), out.size(),
                                                   input.data(), input.size());
      if (ZSTD_isError(size)) return damaged(codec, ZSTD_getErrorName(size));
      if (size != out.size()) return wrong_size(codec, out.size(), size);
      return ok_status();
    }
    case Compression::gzip:
    case Compression::zlib:
      return deflate_decompress_exact(codec, input, out);
    case Compression::bzip2:
      return bzip2_decompress_exact(input, out);
  }
  return internal("unknown codec");
}

Result<Bytes> decompress(Compression codec, ByteSpan input, std::uint64_t max_bytes) {
  if (codec == Compression::bzip2) return bzip2_decompress(input, max_bytes);
  // The stated size is a claim: it is believed only as far as the input can plausibly expand.
  std::uint64_t capacity = std::max<std::uint64_t>(input.size() * 4, 64 * 1024);
  if (const auto stated = stated_size(codec, input)) {
    if (*stated > max_bytes) {
      return resource_exhausted(fmt::format("{} frame: {} decoded bytes exceed the limit of {}",
                                            compression_name(codec), *stated, max_bytes));
    }
    if (*stated <= capacity) capacity = *stated;
  }
  if (codec == Compression::none) capacity = input.size();
  while (true) {
    capacity = std::min(capacity, max_bytes);
    Bytes out(capacity);
    std::size_t produced = 0;
    bool too_small = false;
    switch (codec) {
      case Compression::none:
        if (input.size() > max_bytes) {
          return resource_exhausted(
              fmt::format("{} bytes exceed the limit of {}", input.size(), max_bytes));
        }
        return Bytes(input.begin(), input.end());
      case Compression::bzip2:
        return internal("bzip2 is decoded as a stream");
      case Compression::zstd: {
        const std::size_t size = ZSTD_decompressDCtx(zstd_decompressor(), out.data(), out.size(),
                                                     input.data(), input.size());
        if (ZSTD_isError(size)) {
          if (std::string_view(ZSTD_getErrorName(size)).find("too small") ==
              std::string_view::npos) {
            return damaged(codec, ZSTD_getErrorName(size));
          }
          too_small = true;
        }
        produced = size;
        break;
      }
      case Compression::lz4_frame: {
        LZ4F_dctx* raw = nullptr;
        if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION))) {
          return resource_exhausted("no memory for an lz4 context");
        }
        const std::unique_ptr<LZ4F_dctx, Lz4DecompressorFree> context(raw);
        std::size_t in_size = input.size();
        produced = out.size();
        const std::size_t hint =
            LZ4F_decompress(context.get(), out.data(), &produced, input.data(), &in_size, nullptr);
        if (LZ4F_isError(hint)) return damaged(codec, LZ4F_getErrorName(hint));
        too_small = hint != 0 && produced == out.size();
        if (hint != 0 && !too_small) return damaged(codec, "ends early");
        break;
      }
      case Compression::gzip:
      case Compression::zlib: {
        const std::unique_ptr<libdeflate_decompressor, DeflateDecompressorFree> context(
            libdeflate_alloc_decompressor());
        const auto decode =
            codec == Compression::gzip ? libdeflate_gzip_decompress : libdeflate_zlib_decompress;
        const auto result =
            decode(context.get(), input.data(), input.size(), out.data(), out.size(), &produced);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE) {
          too_small = true;
        } else if (result != LIBDEFLATE_SUCCESS) {
          return damaged(codec, "damaged data");
        }
        break;
      }
    }
    if (!too_small) {
      out.resize(produced);
      return out;
    }
    if (capacity >= max_bytes) {
      return resource_exhausted(fmt::format("{} frame decodes to more than the limit of {} bytes",
                                            compression_name(codec), max_bytes));
    }
    capacity *= 4;
  }
}

std::optional<std::uint64_t> stated_size(Compression codec, ByteSpan input) {
  if (codec == Compression::zstd) {
    const unsigned long long size = ZSTD_getFrameContentSize(input.data(), input.size());
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) return std::nullopt;
    return size;
  }
  if (codec == Compression::lz4_frame) {
    LZ4F_dctx* raw = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION))) return std::nullopt;
    const std::unique_ptr<LZ4F_dctx, Lz4DecompressorFree> context(raw);
    LZ4F_frameInfo_t info{};
    std::size_t consumed = input.size();
    if (LZ4F_isError(LZ4F_getFrameInfo(context.get(), &info, input.data(), &consumed)) ||
        info.contentSize == 0) {
      return std::nullopt;
    }
    return info.contentSize;
  }
  return std::nullopt;
}

}  // namespace ropewalk
