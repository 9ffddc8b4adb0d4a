#include "ropewalk/format/video/decoder.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "ropewalk/format/video/packet_fetcher_internal.h"
#include "ropewalk/format/video/pixels_internal.h"

extern "C" {
#include <libavutil/opt.h>
}

namespace ropewalk {
namespace video_internal {

std::string av_error_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof(text));
  return text;
}

void silence_av_log() {
  static std::once_flag once;
  std::call_once(once, [] { av_log_set_level(AV_LOG_QUIET); });
}

}  // namespace video_internal

namespace {

using namespace video_internal;

constexpr std::size_t kReadAheadBytes = 256 << 10;
constexpr int kMaxFailures = 64;  // in a row, from a codec that gives neither picture nor end

const AVCodec* find_decoder(const std::string& codec) {
  if (codec == "av1") {
    // FFmpeg's own AV1 decoder needs hardware.
    if (const AVCodec* dav1d = avcodec_find_decoder_by_name("libdav1d")) return dav1d;
    if (const AVCodec* aom = avcodec_find_decoder_by_name("libaom-av1")) return aom;
  }
  const AVCodecDescriptor* descriptor = avcodec_descriptor_get_by_name(codec.c_str());
  return descriptor == nullptr ? nullptr : avcodec_find_decoder(descriptor->id);
}

Result<CodecContextPtr> open_codec(const Mp4Index& index, const DecodeOptions& options) {
  silence_av_log();
  const VideoParams& params = index.params;
  const AVCodec* codec = find_decoder(params.codec);
  if (codec == nullptr) {
    return unimplemented(fmt::format("this build has no decoder for '{}'", params.codec));
  }
  CodecContextPtr context(avcodec_alloc_context3(codec));
  if (!context) return resource_exhausted("no memory for a decoder");
  // vpcC is a box for players; decoders know nothing of it.
  if (!params.extradata.empty() && params.codec != "vp9") {
    context->extradata = static_cast<std::uint8_t*>(
        av_mallocz(params.extradata.size() + AV_INPUT_BUFFER_PADDING_SIZE));
    if (context->extradata == nullptr) return resource_exhausted("no memory for a decoder");
    std::memcpy(context->extradata, params.extradata.data(), params.extradata.size());
    context->extradata_size = static_cast<int>(params.extradata.size());
  }
  context->width = params.width;
  context->height = params.height;
  context->thread_count = std::max(1, options.threads);
  context->max_pixels = static_cast<std::int64_t>(
      std::min<std::uint64_t>(options.limits.max_image_pixels, INT32_MAX));
  // The table says how far pictures are reordered; a decoder that guesses drops the first ones.
  context->has_b_frames = static_cast<int>(std::min<std::int64_t>(index.reorder_delay, 16));
  context->err_recognition = AV_EF_EXPLODE;
  context->pkt_timebase = {1, 1};
  if (const int error = avcodec_open2(context.get(), codec, nullptr); error < 0) {
    return data_loss(fmt::format("decoder '{}' refuses the stream's configuration: {}", codec->name,
                                 av_error_text(error)));
  }
  return context;
}

}  // namespace

struct VideoDecoder::Impl {
  std::shared_ptr<const Mp4Index> index;
  std::shared_ptr<const Source> source;
  DecodeOptions options;
  std::optional<PixelConverter> converter;
  CodecContextPtr codec;
  FramePtr frame{av_frame_alloc()};
  PacketPtr packet{av_packet_alloc()};
  PacketFetcher fetcher{kReadAheadBytes};

  std::size_t next_packet = 0;   ///< decode position to send next
  std::int64_t last_frame = -1;  ///< last frame that came out
  bool started = false;
  bool draining = false;
  bool has_pending = false;  ///< `frame` holds a picture later than the one last asked for

  /// Packets the codec refused; frames from there to the next keyframe are not trusted.
  struct Fault {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::string what;
  };
  std::vector<Fault> faults;

  std::string place(std::int64_t ordinal) const {
    return fmt::format("{}: frame {} (packet {} of {})", index->name, ordinal,
                       index->order[static_cast<std::size_t>(ordinal)], index->packets.size());
  }

  void seek(SeekPoint point) {
    if (started) avcodec_flush_buffers(codec.get());
    started = true;
    draining = false;
    next_packet = point.position;
    last_frame = -1;
    has_pending = false;
    faults.clear();
  }

  /// Whether decoding on reaches `ordinal` no later than a seek would.
  bool can_go_on(std::int64_t ordinal) const {
    return started && ordinal > last_frame && index->seek_point(ordinal).position <= next_packet;
  }

  Status send_next(std::int64_t wanted) {
    if (next_packet == index->packets.size()) {
      draining = true;
      avcodec_send_packet(codec.get(), nullptr);
      return ok_status();
    }
    const std::size_t position = next_packet;
    const Mp4Packet& entry = index->packets[position];
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan data,
                              fetcher.fetch(*index, *source, position, read_ahead_end(wanted)));
    av_packet_unref(packet.get());
    if (av_new_packet(packet.get(), static_cast<int>(data.size())) < 0) {
      return resource_exhausted("no memory for a packet");
    }
    if (!data.empty()) std::memcpy(packet->data, data.data(), data.size());
    // The rank travels through the codec as time, so that each picture says which frame it is.
    packet->pts = entry.rank >= 0 ? entry.rank : -2 - static_cast<std::int64_t>(position);
    packet->dts = static_cast<std::int64_t>(position) - index->reorder_delay;
    packet->flags = entry.keyframe ? AV_PKT_FLAG_KEY : 0;
    codec->skip_frame =
        entry.rank >= 0 && entry.rank < wanted ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
    const int error =
        data.empty() ? AVERROR_INVALIDDATA : avcodec_send_packet(codec.get(), packet.get());
    if (error == AVERROR(EAGAIN)) return internal("decoder takes no packet and gives no picture");
    ++next_packet;
    if (error < 0) {
      add_fault(position, data.empty() ? "the packet is empty" : av_error_text(error));
    }
    return ok_status();
  }

  /// How far reading ahead is of use when `wanted` is the frame looked for.
  std::size_t read_ahead_end(std::int64_t wanted) const {
    const std::size_t needed = index->order[static_cast<std::size_t>(wanted)] + std::size_t{1} +
                               static_cast<std::size_t>(index->reorder_delay);
    return std::min(index->packets.size(), std::max({needed, next_packet + 1, wanted_end}));
  }
  std::size_t wanted_end = 0;  ///< decode position after the last packet of the current read

  void add_fault(std::size_t position, std::string what) {
    const auto after = std::upper_bound(
        index->seek_points.begin(), index->seek_points.end(), position,
        [](std::size_t value, const SeekPoint& point) { return value < point.position; });
    const std::size_t end =
        after == index->seek_points.end() ? index->packets.size() : after->position;
    if (faults.empty() || faults.back().end != end) {
      faults.push_back({position, end, std::move(what)});
    }
  }

  Status check_faults(std::int64_t ordinal) const {
    const std::size_t position = index->order[static_cast<std::size_t>(ordinal)];
    for (const Fault& fault : faults) {
      if (position < fault.begin || position >= fault.end) continue;
      return data_loss(fmt::format("{}: packet {} does not decode: {}", place(ordinal), fault.begin,
                                   fault.what));
    }
    return ok_status();
  }

  /// Decodes until frame `wanted` lies in `frame`.
  Status decode_to(std::int64_t wanted) {
    int failures = 0;
    while (true) {
      ROPEWALK_RETURN_IF_ERROR(check_faults(wanted));
      const int error =
          std::exchange(has_pending, false) ? 0 : avcodec_receive_frame(codec.get(), frame.get());
      if (error == AVERROR(EAGAIN)) {
        ROPEWALK_RETURN_IF_ERROR(send_next(wanted));
        continue;
      }
      if (error == AVERROR_EOF) {
        return data_loss(fmt::format("{}: the stream ends without this picture", place(wanted)));
      }
      if (error < 0) {
        // With several threads a packet's fault comes out here, some packets later.
        const auto delay = static_cast<std::size_t>(std::max(0, codec->thread_count - 1));
        const std::size_t sent = next_packet == 0 ? 0 : next_packet - 1;
        add_fault(sent - std::min(sent, delay), av_error_text(error));
        if (++failures < kMaxFailures) continue;
        return data_loss(fmt::format("{}: {}", place(wanted), av_error_text(error)));
      }
      if (frame->pts < wanted) {
        last_frame = std::max(last_frame, frame->pts);
        continue;
      }
      if (frame->pts > wanted) {
        has_pending = true;
        last_frame = frame->pts - 1;
        return data_loss(
            fmt::format("{}: the decoder gave frame {} instead", place(wanted), frame->pts));
      }
      last_frame = wanted;
      if (frame->decode_error_flags != 0 || (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
        return data_loss(fmt::format("{}: the picture is damaged", place(wanted)));
      }
      return ok_status();
    }
  }

  /// As decode_to, seeking first where needed. A keyframe mark that does not hold what it promises
  /// costs one more try from the keyframe before.
  Status decode_frame(std::int64_t wanted) {
    if (can_go_on(wanted)) return decode_to(wanted);
    const SeekPoint point = index->seek_point(wanted);
    seek(point);
    Status status = decode_to(wanted);
    if (status.ok() || status.code() != StatusCode::data_loss || point.position == 0) return status;
    seek(index->seek_point(std::int64_t{point.frame} - 1));
    return decode_to(wanted).ok() ? ok_status() : status;
  }

  Status read(FrameRange frames, MutableByteSpan out) {
    const std::size_t frame_bytes = converter->shape().frame_bytes();
    if (frames.begin < 0 || frames.begin > frames.end || frames.end > index->frame_count()) {
      return out_of_range(fmt::format("{}: frames [{}, {}) of {}", index->name, frames.begin,
                                      frames.end, index->frame_count()));
    }
    if (out.size() / frame_bytes != static_cast<std::size_t>(frames.size()) ||
        out.size() % frame_bytes != 0) {
      return invalid_argument(fmt::format("{}: {} frames of {} bytes do not fill {} bytes",
                                          index->name, frames.size(), frame_bytes, out.size()));
    }
    wanted_end = 0;
    for (std::int64_t i = frames.begin; i < frames.end; ++i) {
      wanted_end = std::max(wanted_end, std::size_t{index->order[static_cast<std::size_t>(i)]} + 1);
    }
    for (std::int64_t i = frames.begin; i < frames.end; ++i) {
      ROPEWALK_RETURN_IF_ERROR(decode_frame(i));
      const auto at = static_cast<std::size_t>(i - frames.begin) * frame_bytes;
      if (Status status = converter->convert(*frame, out.subspan(at, frame_bytes)); !status.ok()) {
        return status.with_context(place(i));
      }
    }
    return ok_status();
  }
};

VideoDecoder::VideoDecoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoDecoder::~VideoDecoder() = default;

Result<std::unique_ptr<VideoDecoder>> VideoDecoder::open(std::shared_ptr<const Mp4Index> index,
                                                         std::shared_ptr<const Source> source,
                                                         DecodeOptions options) {
  auto impl = std::make_unique<Impl>();
  auto converter = PixelConverter::create(index->params, options.form, options.limits);
  if (!converter.ok()) return std::move(converter).status().with_context(index->name);
  auto codec = open_codec(*index, options);
  if (!codec.ok()) return std::move(codec).status().with_context(index->name);
  if (!impl->frame || !impl->packet) return resource_exhausted("no memory for a decoder");
  impl->converter = std::move(converter).value();
  impl->codec = std::move(codec).value();
  impl->index = std::move(index);
  impl->source = std::move(source);
  impl->options = options;
  return std::unique_ptr<VideoDecoder>(new VideoDecoder(std::move(impl)));
}

Result<std::unique_ptr<VideoDecoder>> VideoDecoder::open(const std::filesystem::path& path,
                                                         DecodeOptions options) {
  ROPEWALK_ASSIGN_OR_RETURN(std::unique_ptr<Source> source, open_source(path));
  ROPEWALK_ASSIGN_OR_RETURN(Mp4Index index, probe_mp4(*source, {.limits = options.limits}));
  return open(std::make_shared<const Mp4Index>(std::move(index)),
              std::shared_ptr<const Source>(std::move(source)), options);
}

const Mp4Index& VideoDecoder::index() const { return *impl_->index; }
std::int64_t VideoDecoder::frame_count() const { return impl_->index->frame_count(); }
const FrameShape& VideoDecoder::frame_shape() const { return impl_->converter->shape(); }
FrameRange VideoDecoder::decode_unit(std::int64_t frame) const {
  return impl_->index->decode_unit(frame);
}

Status VideoDecoder::read(FrameRange frames, MutableByteSpan out) {
  return impl_->read(frames, out);
}

Result<std::int64_t> count_decodable_frames(std::shared_ptr<const Mp4Index> index,
                                            std::shared_ptr<const Source> source, int threads) {
  ROPEWALK_ASSIGN_OR_RETURN(
      auto decoder, VideoDecoder::open(std::move(index), std::move(source), {.threads = threads}));
  return decoder->count_decodable();
}

Result<std::int64_t> VideoDecoder::count_decodable() {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < frame_count(); ++i) {
    const Status status = impl_->decode_frame(i);
    if (status.ok()) {
      ++count;
    } else if (status.code() != StatusCode::data_loss) {
      return status;
    } else if (impl_->draining && !impl_->has_pending) {
      break;  // the stream is at its end: no later frame will come either
    }
  }
  return count;
}

}  // namespace ropewalk
