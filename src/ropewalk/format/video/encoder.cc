#include "ropewalk/format/video/encoder.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/video/av_internal.h"
#include "ropewalk/format/video/codec_config_internal.h"
#include "ropewalk/format/video/mp4_writer.h"

extern "C" {
#include <libavutil/opt.h>
}

namespace ropewalk {
namespace {

using namespace video_internal;

constexpr int kMinAv1Side = 64;  // SVT-AV1 refuses smaller pictures
constexpr std::size_t kCopyBytes = 1 << 20;

/// Packets waiting for the index that goes in front of them.
class PacketSpool {
 public:
  PacketSpool(std::uint64_t max_bytes, std::filesystem::path spill_path)
      : max_bytes_(max_bytes), spill_path_(std::move(spill_path)) {}
  PacketSpool(const PacketSpool&) = delete;
  PacketSpool& operator=(const PacketSpool&) = delete;
  ~PacketSpool() { discard_file(); }

  Status append(ByteSpan bytes) {
    if (!file_ && bytes.size() > max_bytes_ - std::min<std::uint64_t>(max_bytes_, memory_.size())) {
      if (spill_path_.empty()) {
        return resource_exhausted(fmt::format(
            "encoded packets exceed {} bytes (max_buffer_bytes) and no spill file is named",
            max_bytes_));
      }
      ROPEWALK_ASSIGN_OR_RETURN(file_, create_sink(spill_path_));
    }
    if (file_) return file_->append(bytes);
    memory_.insert(memory_.end(), bytes.begin(), bytes.end());
    return ok_status();
  }

  /// Passes everything on in order of arrival.
  template <typename Visit>
  Status drain(Visit&& visit) {
    ROPEWALK_RETURN_IF_ERROR(visit(ByteSpan(memory_)));
    memory_ = {};
    if (!file_) return ok_status();
    ROPEWALK_RETURN_IF_ERROR(file_->close());
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(spill_path_));
    Bytes buffer;
    for (std::uint64_t offset = 0; offset < source->size(); offset += buffer.size()) {
      buffer.resize(
          static_cast<std::size_t>(std::min<std::uint64_t>(kCopyBytes, source->size() - offset)));
      ROPEWALK_RETURN_IF_ERROR(source->read_at(offset, buffer));
      ROPEWALK_RETURN_IF_ERROR(visit(ByteSpan(buffer)));
    }
    return ok_status();
  }

 private:
  void discard_file() {
    if (!file_) return;
    (void)file_->close();
    (void)remove_file(spill_path_);  // a leftover scratch file harms nobody
  }

  std::uint64_t max_bytes_;
  std::filesystem::path spill_path_;
  Bytes memory_;
  std::unique_ptr<Sink> file_;
};

/// Checked here, since libx264 prints a complaint of its own.
Status check_preset(const EncoderSettings& settings) {
  constexpr std::array<std::string_view, 10> kX264 = {
      "ultrafast", "superfast", "veryfast", "faster",   "fast",
      "medium",    "slow",      "slower",   "veryslow", "placebo"};
  const std::string& preset = settings.preset;
  if (preset.empty()) return ok_status();
  if (settings.codec == VideoCodec::h264) {
    if (std::find(kX264.begin(), kX264.end(), preset) != kX264.end()) return ok_status();
    return invalid_argument(
        fmt::format("preset: '{}' is none of {}", preset, fmt::join(kX264, ", ")));
  }
  const bool digits = preset.size() <= 2 && preset.find_first_not_of("0123456789") == preset.npos;
  if (digits && std::stoi(preset) <= 13) return ok_status();
  return invalid_argument(fmt::format("preset: '{}' is not in 0..13 for av1", preset));
}

Status set_option(AVCodecContext* context, const char* name, const std::string& value) {
  const int error = av_opt_set(context->priv_data, name, value.c_str(), 0);
  if (error >= 0) return ok_status();
  return invalid_argument(
      fmt::format("encoder option {}={}: {}", name, value, av_error_text(error)));
}

Status configure_x264(AVCodecContext* context, const EncoderSettings& settings) {
  ROPEWALK_RETURN_IF_ERROR(
      set_option(context, "preset", settings.preset.empty() ? "veryfast" : settings.preset));
  ROPEWALK_RETURN_IF_ERROR(set_option(context, "crf", std::to_string(settings.crf)));
  ROPEWALK_RETURN_IF_ERROR(set_option(context, "sc_threshold", "0"));
  // IDR at every GOP and no lookahead that depends on the number of threads.
  return set_option(context, "forced-idr", "1");
}

Status configure_svt(AVCodecContext* context, const EncoderSettings& settings) {
  ROPEWALK_RETURN_IF_ERROR(
      set_option(context, "preset", settings.preset.empty() ? "12" : settings.preset));
  ROPEWALK_RETURN_IF_ERROR(set_option(context, "crf", std::to_string(settings.crf)));
  // Low delay: frames leave in the order they came in.
  return set_option(context, "svtav1-params",
                    fmt::format("pred-struct=1:scd=0:lp={}", settings.threads));
}

}  // namespace

Status EncoderSettings::validate() const {
  const int max_crf = codec == VideoCodec::h264 ? 51 : 63;
  if (crf < 0 || crf > max_crf) {
    return invalid_argument(fmt::format("crf: {} is not in 0..{}", crf, max_crf));
  }
  if (gop < 1 || gop > 10'000)
    return invalid_argument(fmt::format("gop: {} is not in 1..10000", gop));
  if (threads < 1 || threads > 64) {
    return invalid_argument(fmt::format("threads: {} is not in 1..64", threads));
  }
  if (max_buffer_bytes == 0) return invalid_argument("max_buffer_bytes: 0");
  return check_preset(*this);
}

struct VideoEncoder::Impl {
  Impl(Sink& target, const EncoderSettings& chosen)
      : sink(&target), settings(chosen), spool(chosen.max_buffer_bytes, chosen.spill_path) {}

  Sink* sink;
  EncoderSettings settings;
  int width = 0;  ///< of the source
  int height = 0;
  int stored_width = 0;  ///< even
  int stored_height = 0;
  CodecContextPtr codec;
  FramePtr rgb{av_frame_alloc()};  ///< with padded rows, as swscale likes them
  FramePtr yuv{av_frame_alloc()};
  PacketPtr packet{av_packet_alloc()};
  SwsPtr sws;
  Mp4Plan plan;
  PacketSpool spool;
  Sha256 hash;
  std::int64_t frames = 0;
  bool finished = false;

  std::string place() const { return fmt::format("{}: frame {}", sink->name(), frames); }

  Status open(Rational fps) {
    silence_av_log();
    if (!rgb || !yuv || !packet) return resource_exhausted("no memory for an encoder");
    const char* name = settings.codec == VideoCodec::h264 ? "libx264" : "libsvtav1";
    const AVCodec* encoder = avcodec_find_encoder_by_name(name);
    if (encoder == nullptr) {
      return unimplemented(fmt::format("this FFmpeg build has no encoder {}", name));
    }
    codec.reset(avcodec_alloc_context3(encoder));
    if (!codec) return resource_exhausted("no memory for an encoder");
    codec->width = stored_width;
    codec->height = stored_height;
    codec->pix_fmt = AV_PIX_FMT_YUV420P;
    codec->time_base = {static_cast<int>(fps.den), static_cast<int>(fps.num)};
    codec->framerate = {static_cast<int>(fps.num), static_cast<int>(fps.den)};
    codec->gop_size = settings.gop;
    codec->keyint_min = settings.gop;
    codec->max_b_frames = 0;
    codec->thread_count = settings.threads;
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    codec->flags |= static_cast<int>(AV_CODEC_FLAG_CLOSED_GOP);
    // sRGB pictures in BT.601 limited range: what decoders assume where nothing is said, now said.
    codec->color_range = AVCOL_RANGE_MPEG;
    codec->colorspace = AVCOL_SPC_SMPTE170M;
    codec->color_primaries = AVCOL_PRI_BT709;
    codec->color_trc = AVCOL_TRC_IEC61966_2_1;
    ROPEWALK_RETURN_IF_ERROR(settings.codec == VideoCodec::h264
                                 ? configure_x264(codec.get(), settings)
                                 : configure_svt(codec.get(), settings));
    if (const int error = avcodec_open2(codec.get(), encoder, nullptr); error < 0) {
      return invalid_argument(fmt::format("{} refuses {}x{} at {} fps with preset '{}': {}", name,
                                          stored_width, stored_height, to_string(fps),
                                          settings.preset, av_error_text(error)));
    }
    return prepare_frames();
  }

  Status prepare_frames() {
    const auto allocate = [&](AVFrame* target, AVPixelFormat format) {
      target->format = format;
      target->width = stored_width;
      target->height = stored_height;
      return av_frame_get_buffer(target, 0) >= 0;
    };
    if (!allocate(rgb.get(), AV_PIX_FMT_RGB24) || !allocate(yuv.get(), AV_PIX_FMT_YUV420P)) {
      return resource_exhausted("no memory for pictures");
    }
    yuv->color_range = codec->color_range;
    yuv->colorspace = codec->colorspace;
    yuv->color_primaries = codec->color_primaries;
    yuv->color_trc = codec->color_trc;
    sws.reset(sws_getContext(stored_width, stored_height, AV_PIX_FMT_RGB24, stored_width,
                             stored_height, AV_PIX_FMT_YUV420P,
                             SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP, nullptr, nullptr,
                             nullptr));
    return sws ? ok_status() : internal("no conversion from RGB to yuv420p");
  }

  /// Copies the picture, repeating the last column and row where the stored size is larger.
  void load(ByteSpan pixels) {
    const auto row_bytes = static_cast<std::size_t>(width) * 3;
    for (int y = 0; y < stored_height; ++y) {
      const auto from = static_cast<std::size_t>(std::min(y, height - 1)) * row_bytes;
      std::uint8_t* row = rgb->data[0] + static_cast<std::ptrdiff_t>(y) * rgb->linesize[0];
      std::memcpy(row, pixels.data() + from, row_bytes);
      if (stored_width > width) std::memcpy(row + row_bytes, row + row_bytes - 3, 3);
    }
  }

  Status write(ByteSpan pixels) {
    if (finished) return failed_precondition(place() + ": written after finish()");
    const std::size_t expected =
        static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3;
    if (pixels.size() != expected) {
      return invalid_argument(fmt::format("{}: {} bytes of pixels, {}x{} RGB has {}", place(),
                                          pixels.size(), width, height, expected));
    }
    if (av_frame_make_writable(yuv.get()) < 0) return resource_exhausted("no memory for pictures");
    load(pixels);
    sws_scale(sws.get(), rgb->data, rgb->linesize, 0, stored_height, yuv->data, yuv->linesize);
    yuv->pts = frames;
    yuv->pict_type = AV_PICTURE_TYPE_NONE;
    if (const int error = avcodec_send_frame(codec.get(), yuv.get()); error < 0) {
      return internal(fmt::format("{}: encoder: {}", place(), av_error_text(error)));
    }
    ++frames;
    return take_packets();
  }

  Status take_packets() {
    while (true) {
      const int error = avcodec_receive_packet(codec.get(), packet.get());
      if (error == AVERROR(EAGAIN) || error == AVERROR_EOF) return ok_status();
      if (error < 0) return internal(fmt::format("{}: encoder: {}", place(), av_error_text(error)));
      const Status status = keep_packet();
      av_packet_unref(packet.get());
      ROPEWALK_RETURN_IF_ERROR(status);
    }
  }

  Status keep_packet() {
    const ByteSpan raw(packet->data, static_cast<std::size_t>(packet->size));
    std::optional<Bytes> payload;
    if (settings.codec == VideoCodec::h264) {
      payload = annexb_to_length_prefixed(raw);
    } else {
      payload = strip_temporal_delimiters(raw);
    }
    if (!payload || payload->empty())
      return internal(place() + ": the encoder gave a damaged packet");
    const std::int64_t ordinal = packet->pts;
    if (ordinal < 0 || ordinal >= frames) {
      return internal(fmt::format("{}: the encoder gave a packet for frame {}", place(), ordinal));
    }
    hash.update(*payload);
    plan.packets.push_back({static_cast<std::uint32_t>(payload->size()),
                            static_cast<std::uint32_t>(ordinal),
                            (packet->flags & AV_PKT_FLAG_KEY) != 0});
    return spool.append(*payload);
  }

  Status fill_params() {
    VideoParams& params = plan.params;
    params.codec = settings.codec == VideoCodec::h264 ? "h264" : "av1";
    params.pix_fmt = "yuv420p";
    params.width = stored_width;
    params.height = stored_height;
    params.color_range = codec->color_range;
    params.color_primaries = codec->color_primaries;
    params.color_transfer = codec->color_trc;
    params.color_matrix = codec->colorspace;
    const ByteSpan header(codec->extradata, static_cast<std::size_t>(codec->extradata_size));
    auto config =
        settings.codec == VideoCodec::h264 ? avcc_from_annexb(header) : av1c_from_obus(header);
    if (!config) return internal(place() + ": the encoder gave no usable header");
    params.extradata = std::move(*config);
    return ok_status();
  }

  Result<EncodedVideo> finish() {
    if (finished) return failed_precondition(place() + ": finished twice");
    if (frames == 0)
      return failed_precondition(sink->name() + ": a video needs at least one frame");
    finished = true;
    if (const int error = avcodec_send_frame(codec.get(), nullptr); error < 0) {
      return internal(fmt::format("{}: encoder: {}", place(), av_error_text(error)));
    }
    ROPEWALK_RETURN_IF_ERROR(take_packets());
    if (static_cast<std::int64_t>(plan.packets.size()) != frames) {
      return data_loss(fmt::format("{}: {} frames went in, {} packets came out", sink->name(),
                                   frames, plan.packets.size()));
    }
    ROPEWALK_RETURN_IF_ERROR(fill_params());
    ROPEWALK_ASSIGN_OR_RETURN(Mp4Writer writer, Mp4Writer::create(*sink, plan));
    ROPEWALK_RETURN_IF_ERROR(spool.drain([&](ByteSpan bytes) { return writer.append(bytes); }));
    ROPEWALK_RETURN_IF_ERROR(writer.finish());
    EncodedVideo out;
    out.params = plan.params;
    out.frames = frames;
    out.file_bytes = writer.header_bytes() + plan.payload_bytes();
    out.source_width = width;
    out.source_height = height;
    out.padded_to_even = width != stored_width || height != stored_height;
    out.packet_sha256 = hash.finish_hex();
    return out;
  }
};

VideoEncoder::VideoEncoder(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoEncoder::~VideoEncoder() = default;

Result<std::unique_ptr<VideoEncoder>> VideoEncoder::create(Sink& sink, int width, int height,
                                                           Rational fps,
                                                           const EncoderSettings& settings) {
  ROPEWALK_RETURN_IF_ERROR(settings.validate());
  ROPEWALK_RETURN_IF_ERROR(mp4_timing(fps).status());
  ROPEWALK_ASSIGN_OR_RETURN(fps, make_rational(fps.num, fps.den));
  if (width < 2 || height < 2 || width > 16384 || height > 16384) {
    return invalid_argument(
        fmt::format("{}: pictures of {}x{} are not in 2..16384", sink.name(), width, height));
  }
  if (settings.codec == VideoCodec::av1 && (width < kMinAv1Side || height < kMinAv1Side)) {
    return unimplemented(
        fmt::format("{}: SVT-AV1 needs {} pixels a side, the pictures are {}x{}; "
                    "use h264",
                    sink.name(), kMinAv1Side, width, height));
  }
  auto impl = std::make_unique<Impl>(sink, settings);
  impl->width = width;
  impl->height = height;
  impl->stored_width = width + width % 2;
  impl->stored_height = height + height % 2;
  impl->plan.fps = fps;
  if (Status status = impl->open(fps); !status.ok()) return status.with_context(sink.name());
  return std::unique_ptr<VideoEncoder>(new VideoEncoder(std::move(impl)));
}

Status VideoEncoder::write(ByteSpan rgb) { return impl_->write(rgb); }
Result<EncodedVideo> VideoEncoder::finish() { return impl_->finish(); }

}  // namespace ropewalk
