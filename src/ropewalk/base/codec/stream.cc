#include "ropewalk/base/codec/stream.h"

#include <bzlib.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <string_view>

#include <fmt/format.h>
#include <lz4frame.h>

namespace ropewalk {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

struct Lz4Free {
  void operator()(LZ4F_dctx* context) const { LZ4F_freeDecompressionContext(context); }
};
struct ZstdFree {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct BzipEnd {
  void operator()(bz_stream* stream) const {
    BZ2_bzDecompressEnd(stream);
    delete stream;
  }
};

Status damaged(Compression codec, std::string_view what) {
  return data_loss(fmt::format("{} stream: {}", compression_name(codec), what));
}

// One codec at work. `step` takes from the front of `input` and appends to what it returns.
struct Progress {
  std::size_t consumed = 0;
  std::size_t produced = 0;
  bool frame_ended = false;
};

class Lz4Stream {
 public:
  Lz4Stream() {
    LZ4F_dctx* raw = nullptr;
    LZ4F_createDecompressionContext(&raw, LZ4F_VERSION);
    context_.reset(raw);
  }
  Result<Progress> step(ByteSpan input, MutableByteSpan out) {
    if (!context_) return resource_exhausted("no memory for an lz4 context");
    Progress done{.consumed = input.size(), .produced = out.size()};
    const std::size_t hint = LZ4F_decompress(context_.get(), out.data(), &done.produced,
                                             input.data(), &done.consumed, nullptr);
    if (LZ4F_isError(hint)) return damaged(Compression::lz4_frame, LZ4F_getErrorName(hint));
    done.frame_ended = hint == 0;
    return done;
  }

 private:
  std::unique_ptr<LZ4F_dctx, Lz4Free> context_;
};

class ZstdStream {
 public:
  Result<Progress> step(ByteSpan input, MutableByteSpan out) {
    if (!context_) return resource_exhausted("no memory for a zstd context");
    ZSTD_inBuffer in{input.data(), input.size(), 0};
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    const std::size_t hint = ZSTD_decompressStream(context_.get(), &target, &in);
    if (ZSTD_isError(hint)) return damaged(Compression::zstd, ZSTD_getErrorName(hint));
    return Progress{.consumed = in.pos, .produced = target.pos, .frame_ended = hint == 0};
  }

 private:
  std::unique_ptr<ZSTD_DCtx, ZstdFree> context_{ZSTD_createDCtx()};
};

class BzipStream {
 public:
  Result<Progress> step(ByteSpan input, MutableByteSpan out) {
    if (!stream_) {
      auto fresh = std::make_unique<bz_stream>();
      if (BZ2_bzDecompressInit(fresh.get(), 0, 0) != BZ_OK) {
        return resource_exhausted("no memory for a bzip2 context");
      }
      stream_.reset(fresh.release());
    }
    constexpr std::size_t kMost = std::numeric_limits<unsigned>::max();
    const std::size_t in_size = std::min(input.size(), kMost);
    // The library reads only; its signature lacks const.
    stream_->next_in = const_cast<char*>(reinterpret_cast<const char*>(input.data()));
    stream_->avail_in = static_cast<unsigned>(in_size);
    stream_->next_out = reinterpret_cast<char*>(out.data());
    stream_->avail_out = static_cast<unsigned>(std::min(out.size(), kMost));
    const unsigned room = stream_->avail_out;
    const int code = BZ2_bzDecompress(stream_.get());
    if (code != BZ_OK && code != BZ_STREAM_END) {
      return damaged(Compression::bzip2, fmt::format("damaged data (error {})", code));
    }
    const Progress done{.consumed = in_size - stream_->avail_in,
                        .produced = room - stream_->avail_out,
                        .frame_ended = code == BZ_STREAM_END};
    if (done.frame_ended) stream_.reset();
    return done;
  }

 private:
  std::unique_ptr<bz_stream, BzipEnd> stream_;
};

template <typename Stream>
Status run(Compression codec, const PieceReader& read, const PieceWriter& write) {
  Stream stream;
  Bytes piece(kPieceBytes);
  bool inside_frame = false;
  for (;;) {
    ROPEWALK_ASSIGN_OR_RETURN(ByteSpan input, read());
    if (input.empty()) break;
    // A full piece may leave decoded bytes inside of the codec: go on until it asks for more.
    bool full = false;
    while (!input.empty() || full) {
      ROPEWALK_ASSIGN_OR_RETURN(const Progress done, stream.step(input, piece));
      input = input.subspan(done.consumed);
      full = done.produced == piece.size() && !done.frame_ended;
      inside_frame = !done.frame_ended;
      if (done.produced > 0) ROPEWALK_RETURN_IF_ERROR(write(ByteSpan(piece).first(done.produced)));
      if (done.consumed == 0 && done.produced == 0 && !done.frame_ended) break;
    }
  }
  if (inside_frame) return damaged(codec, "ends early");
  return ok_status();
}

}  // namespace

Status decompress_stream(Compression codec, const PieceReader& read, const PieceWriter& write) {
  switch (codec) {
    case Compression::none:
      for (;;) {
        ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan input, read());
        if (input.empty()) return ok_status();
        ROPEWALK_RETURN_IF_ERROR(write(input));
      }
    case Compression::lz4_frame:
      return run<Lz4Stream>(codec, read, write);
    case Compression::zstd:
      return run<ZstdStream>(codec, read, write);
    case Compression::bzip2:
      return run<BzipStream>(codec, read, write);
    case Compression::gzip:
    case Compression::zlib:
      return unimplemented(
          fmt::format("{} is not decoded piece by piece", compression_name(codec)));
  }
  return internal("unknown codec");
}

PieceReader read_once(ByteSpan bytes) {
  return [bytes, given = false]() mutable -> Result<ByteSpan> {
    const ByteSpan out = given ? ByteSpan() : bytes;
    given = true;
    return out;
  };
}

namespace {

// Both codecs say how many bytes they want next: with exactly those, one call takes one block, and
// an error costs nothing of the blocks before it.
template <typename Step>
Bytes decode_blocks(ByteSpan input, std::uint64_t max_bytes, std::size_t first, Step step) {
  constexpr std::size_t kRoomBytes = std::size_t{256} << 10;
  Bytes out;
  std::size_t produced = 0;
  std::size_t consumed = 0;
  std::size_t wanted = first;
  while (produced < max_bytes && wanted != 0) {
    const std::size_t room =
        static_cast<std::size_t>(std::min<std::uint64_t>(kRoomBytes, max_bytes - produced));
    if (out.size() < produced + room) {
      out.resize(
          std::max(produced + room, static_cast<std::size_t>(std::min<std::uint64_t>(
                                        max_bytes, produced + std::max(produced / 2, room)))));
    }
    std::size_t taken = std::min(wanted, input.size() - consumed);
    std::size_t given = room;
    if (!step(out.data() + produced, given, input.data() + consumed, taken, wanted)) break;
    consumed += taken;
    produced += given;
    if (taken == 0 && given == 0) break;
  }
  out.resize(produced);
  return out;
}

Bytes prefix_of_stream(Compression codec, ByteSpan input, std::uint64_t max_bytes) {
  constexpr std::size_t kSmallBytes = 4096;
  Bytes out;
  // In small pieces: a codec that meets damage forgets what it decoded in the same call.
  const PieceReader read = [&]() -> Result<ByteSpan> {
    const ByteSpan piece = input.first(std::min(input.size(), kSmallBytes));
    input = input.subspan(piece.size());
    return piece;
  };
  // Damage is what this function is for: what came before it counts.
  std::ignore = decompress_stream(codec, read, [&](ByteSpan piece) -> Status {
    const std::uint64_t room = max_bytes - out.size();
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(room, piece.size()));
    out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    return taken == piece.size() ? ok_status() : resource_exhausted("enough");
  });
  return out;
}

}  // namespace

Bytes decompress_prefix(Compression codec, ByteSpan input, std::uint64_t max_bytes) {
  switch (codec) {
    case Compression::none:
      return Bytes(input.begin(),
                   input.begin() + static_cast<std::ptrdiff_t>(
                                       std::min<std::uint64_t>(input.size(), max_bytes)));
    case Compression::zstd: {
      const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> owner(ZSTD_createDCtx(),
                                                                       &ZSTD_freeDCtx);
      ZSTD_DCtx* context = owner.get();
      if (context == nullptr) return {};
      // A window larger than what may come out is a claim that only costs memory.
      ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax,
                             std::clamp(static_cast<int>(std::bit_width(max_bytes)), 23, 27));
      Bytes out = decode_blocks(input, max_bytes, 5,
                                [&](std::uint8_t* to, std::size_t& given, const std::uint8_t* from,
                                    std::size_t& taken, std::size_t& wanted) {
                                  ZSTD_outBuffer target{to, given, 0};
                                  ZSTD_inBuffer source{from, taken, 0};
                                  const std::size_t hint =
                                      ZSTD_decompressStream(context, &target, &source);
                                  if (ZSTD_isError(hint)) return false;
                                  given = target.pos;
                                  taken = source.pos;
                                  wanted = hint;
                                  return true;
                                });
      return out;
    }
    case Compression::lz4_frame: {
      LZ4F_dctx* raw = nullptr;
      if (LZ4F_isError(LZ4F_createDecompressionContext(&raw, LZ4F_VERSION))) return {};
      const std::unique_ptr<LZ4F_dctx, decltype(&LZ4F_freeDecompressionContext)> context(
          raw, &LZ4F_freeDecompressionContext);
      return decode_blocks(input, max_bytes, 7,
                           [&](std::uint8_t* to, std::size_t& given, const std::uint8_t* from,
                               std::size_t& taken, std::size_t& wanted) {
                             const std::size_t hint =
                                 LZ4F_decompress(context.get(), to, &given, from, &taken, nullptr);
                             if (LZ4F_isError(hint)) return false;
                             wanted = hint;
                             return true;
                           });
    }
    case Compression::bzip2:
      return prefix_of_stream(codec, input, max_bytes);
    case Compression::gzip:
    case Compression::zlib:
      return {};
  }
  return {};
}

}  // namespace ropewalk
