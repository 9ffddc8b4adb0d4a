#include "ropewalk/base/codec/stream.h"

#include <bzlib.h>
#include <zstd.h>

#include <algorithm>
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

Bytes decompress_prefix(Compression codec, ByteSpan input, std::uint64_t max_bytes) {
  Bytes out;
  // Damage is what this function is for: what came before it counts.
  std::ignore = decompress_stream(codec, read_once(input), [&](ByteSpan piece) -> Status {
    const std::uint64_t room = max_bytes - out.size();
    const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(room, piece.size()));
    out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
    return taken == piece.size() ? ok_status() : resource_exhausted("enough");
  });
  return out;
}

}  // namespace ropewalk
