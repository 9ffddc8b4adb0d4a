#pragma once
// Test fixtures: MP4 files as other programs write them, made with libav's own encoders and muxer.
// Each picture carries its number as eight bars, bright for 1, so that a decoded frame tells which
// one it is whatever the codec did to it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/format/video/av_internal.h"

extern "C" {
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

namespace ropewalk::video_internal {

struct FixtureOptions {
  const char* encoder = "libx264";
  AVPixelFormat pix_fmt = AV_PIX_FMT_YUV420P;
  int width = 96;
  int height = 64;
  int frames = 30;
  int gop = 12;
  int bframes = 0;
  bool open_gop = false;
  AVRational fps = {30, 1};
  int timescale = 0;                   ///< 0: the muxer's choice
  std::vector<std::int64_t> pts = {};  ///< in frames; empty: 0, 1, 2, …
  const char* muxer = "mp4";
  std::string movflags = "+faststart";
  bool video = true;
  bool audio = false;           ///< needs the muxer "mov"
  const char* extra = nullptr;  ///< codec options "key=value:key=value"
  bool full_range = false;
};

/// Brightness of a bar, in samples of `bits`.
inline int bar_level(int number, int bar, int bits) {
  return ((number >> bar & 1) != 0 ? 200 : 50) << (bits - 8);
}

/// Reads the number back from an RGB or luma picture.
inline int bar_number(ByteSpan pixels, int width, int height, int channels) {
  int number = 0;
  for (int bar = 0; bar < 8; ++bar) {
    const auto at = static_cast<std::size_t>((height / 2) * width + bar * (width / 8) + width / 16);
    if (pixels[at * static_cast<std::size_t>(channels)] > 125) number |= 1 << bar;
  }
  return number;
}

inline void draw_bars(AVFrame& frame, int number) {
  const AVPixFmtDescriptor* description =
      av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const int bits = description->comp[0].depth;
  for (int c = 0; c < description->nb_components; ++c) {
    const bool chroma = c > 0;
    const int width = chroma ? -(-frame.width >> description->log2_chroma_w) : frame.width;
    const int height = chroma ? -(-frame.height >> description->log2_chroma_h) : frame.height;
    for (int y = 0; y < height; ++y) {
      std::uint8_t* row = frame.data[c] + static_cast<std::ptrdiff_t>(y) * frame.linesize[c];
      for (int x = 0; x < width; ++x) {
        const int bar = std::min(7, x / std::max(1, width / 8));
        const int value = chroma ? 128 << (bits - 8) : bar_level(number, bar, bits);
        if (bits == 8) {
          row[x] = static_cast<std::uint8_t>(value);
        } else {
          row[2 * x] = static_cast<std::uint8_t>(value & 0xff);
          row[2 * x + 1] = static_cast<std::uint8_t>(value >> 8);
        }
      }
    }
  }
}

struct FormatContextDeleter {
  void operator()(AVFormatContext* context) const {
    if (context->pb != nullptr) avio_closep(&context->pb);
    avformat_free_context(context);
  }
};

inline bool has_encoder(const char* name) { return avcodec_find_encoder_by_name(name) != nullptr; }

/// Writes a video; returns false when anything fails.
inline bool write_fixture(const std::filesystem::path& path, const FixtureOptions& options) {
  silence_av_log();
  AVFormatContext* raw = nullptr;
  avformat_alloc_output_context2(&raw, nullptr, options.muxer, path.c_str());
  const std::unique_ptr<AVFormatContext, FormatContextDeleter> format(raw);
  if (avio_open(&format->pb, path.c_str(), AVIO_FLAG_WRITE) < 0) return false;
  CodecContextPtr codec;
  AVStream* stream = nullptr;
  if (options.video) {
    const AVCodec* encoder = avcodec_find_encoder_by_name(options.encoder);
    if (encoder == nullptr) return false;
    codec.reset(avcodec_alloc_context3(encoder));
    codec->width = options.width;
    codec->height = options.height;
    codec->pix_fmt = options.pix_fmt;
    codec->time_base = av_inv_q(options.fps);
    codec->framerate = options.fps;
    codec->gop_size = options.gop;
    codec->keyint_min = options.gop;
    codec->max_b_frames = options.bframes;
    codec->thread_count = 1;
    codec->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    if (options.full_range) {
      codec->color_range = AVCOL_RANGE_JPEG;
      codec->colorspace = AVCOL_SPC_BT709;
      codec->color_primaries = AVCOL_PRI_BT709;
      codec->color_trc = AVCOL_TRC_BT709;
    }
    const bool is_mpeg4 = std::string_view(options.encoder) == "mpeg4";  // cannot combine it
    if (!options.open_gop && !is_mpeg4) codec->flags |= static_cast<int>(AV_CODEC_FLAG_CLOSED_GOP);
    AVDictionary* dictionary = nullptr;
    if (options.extra != nullptr) av_dict_parse_string(&dictionary, options.extra, "=", ":", 0);
    const int error = avcodec_open2(codec.get(), encoder, &dictionary);
    av_dict_free(&dictionary);
    if (error < 0) return false;
    stream = avformat_new_stream(format.get(), nullptr);
    avcodec_parameters_from_context(stream->codecpar, codec.get());
    stream->time_base = codec->time_base;
    stream->avg_frame_rate = options.fps;
  }
  AVStream* sound = nullptr;
  if (options.audio) {
    sound = avformat_new_stream(format.get(), nullptr);
    sound->codecpar->codec_type = AVMEDIA_TYPE_AUDIO;
    sound->codecpar->codec_id = AV_CODEC_ID_PCM_S16LE;
    sound->codecpar->sample_rate = 8000;
    sound->codecpar->ch_layout = AV_CHANNEL_LAYOUT_MONO;
    sound->codecpar->bits_per_coded_sample = 16;
    sound->codecpar->block_align = 2;
    sound->time_base = {1, 8000};
  }
  AVDictionary* dictionary = nullptr;
  if (!options.movflags.empty()) {
    av_dict_set(&dictionary, "movflags", options.movflags.c_str(), 0);
  }
  if (options.timescale > 0) {
    av_dict_set_int(&dictionary, "video_track_timescale", options.timescale, 0);
  }
  const int error = avformat_write_header(format.get(), &dictionary);
  av_dict_free(&dictionary);
  if (error < 0) return false;
  const PacketPtr packet(av_packet_alloc());
  if (options.audio) {
    for (int second = 0; second < 2; ++second) {
      av_new_packet(packet.get(), 16000);
      std::fill_n(packet->data, 16000, std::uint8_t{0});
      packet->stream_index = sound->index;
      packet->pts = packet->dts = second * 8000;
      packet->duration = 8000;
      av_packet_rescale_ts(packet.get(), {1, 8000}, sound->time_base);
      if (av_interleaved_write_frame(format.get(), packet.get()) < 0) return false;
    }
  }
  for (int i = 0; options.video && i <= options.frames; ++i) {
    FramePtr frame;
    if (i < options.frames) {
      frame.reset(av_frame_alloc());
      frame->format = options.pix_fmt;
      frame->width = options.width;
      frame->height = options.height;
      frame->color_range = codec->color_range;
      if (av_frame_get_buffer(frame.get(), 0) < 0) return false;
      draw_bars(*frame, i);
      frame->pts = options.pts.empty() ? i : options.pts[static_cast<std::size_t>(i)];
    }
    if (avcodec_send_frame(codec.get(), frame.get()) < 0) return false;
    while (avcodec_receive_packet(codec.get(), packet.get()) >= 0) {
      packet->stream_index = stream->index;
      if (packet->duration == 0) packet->duration = 1;
      av_packet_rescale_ts(packet.get(), codec->time_base, stream->time_base);
      if (av_interleaved_write_frame(format.get(), packet.get()) < 0) return false;
    }
  }
  return av_write_trailer(format.get()) >= 0;
}

}  // namespace ropewalk::video_internal
