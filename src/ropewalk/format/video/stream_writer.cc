#include "ropewalk/format/video/stream_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/video/av_internal.h"

extern "C" {
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
}

namespace ropewalk {
namespace {

using namespace video_internal;

constexpr AVRational kMicroseconds{1, 1'000'000};

Result<AVCodecID> codec_id_of(const std::string& codec) {
  if (codec == "h264") return AV_CODEC_ID_H264;
  if (codec == "hevc") return AV_CODEC_ID_HEVC;
  if (codec == "av1") return AV_CODEC_ID_AV1;
  if (codec == "vp9") return AV_CODEC_ID_VP9;
  return invalid_argument(fmt::format("video codec '{}': expected h264, hevc, av1 or vp9", codec));
}

struct BsfDeleter {
  void operator()(AVBSFContext* context) const { av_bsf_free(&context); }
};
struct ParserDeleter {
  void operator()(AVCodecParserContext* parser) const { av_parser_close(parser); }
};
struct FormatDeleter {
  void operator()(AVFormatContext* context) const {
    if (context->pb != nullptr) avio_closep(&context->pb);
    avformat_free_context(context);
  }
};

Status av_status(int error, const char* what) {
  if (error == AVERROR(ENOMEM)) return resource_exhausted(fmt::format("{}: out of memory", what));
  if (error == AVERROR(ENOSPC)) return resource_exhausted(fmt::format("{}: disk full", what));
  return data_loss(fmt::format("{}: {}", what, av_error_text(error)));
}

}  // namespace

struct VideoStreamWriter::Impl {
  std::filesystem::path path;
  AVCodecID codec = AV_CODEC_ID_NONE;
  Limits limits;
  CodecContextPtr context;
  std::unique_ptr<AVCodecParserContext, ParserDeleter> parser;
  std::unique_ptr<AVFormatContext, FormatDeleter> format;
  PacketPtr packet;  // the frame that waits for the time of the next one
  bool waiting = false;
  std::int64_t first_ns = 0;
  std::int64_t last_us = 0;
  std::int64_t last_duration_us = 33'333;
  std::int64_t frames = 0;
  std::int64_t skipped = 0;
  std::int64_t moved = 0;
  int width = 0;
  int height = 0;

  Result<bool> look(ByteSpan frame);
  Status start(ByteSpan keyframe);
  Status write_waiting(std::int64_t duration_us);
  Result<PacketPtr> make_packet(ByteSpan frame) const;
};

// Copies a frame with the padding that libav reads past the end.
Result<PacketPtr> VideoStreamWriter::Impl::make_packet(ByteSpan frame) const {
  if (frame.size() > limits.max_packet_bytes) {
    return resource_exhausted(fmt::format("a frame of {} bytes; at most {} are taken", frame.size(),
                                          limits.max_packet_bytes));
  }
  PacketPtr out(av_packet_alloc());
  if (out == nullptr || av_new_packet(out.get(), static_cast<int>(frame.size())) != 0) {
    return resource_exhausted("no memory for a packet");
  }
  std::memcpy(out->data, frame.data(), frame.size());
  return out;
}

// Parses the headers of a frame: its size goes to width and height. Returns whether it is a
// keyframe.
Result<bool> VideoStreamWriter::Impl::look(ByteSpan frame) {
  ROPEWALK_ASSIGN_OR_RETURN(const PacketPtr copy, make_packet(frame));
  std::uint8_t* out = nullptr;
  int out_size = 0;
  av_parser_parse2(parser.get(), context.get(), &out, &out_size, copy->data, copy->size,
                   AV_NOPTS_VALUE, AV_NOPTS_VALUE, 0);
  if (parser->width > 0) width = parser->width;
  if (parser->height > 0) height = parser->height;
  if (context->width > 0 && width == 0) width = context->width;
  if (context->height > 0 && height == 0) height = context->height;
  return parser->key_frame == 1 ||
         (parser->key_frame < 0 && parser->pict_type == AV_PICTURE_TYPE_I);
}

// Makes the file with what the first keyframe says.
Status VideoStreamWriter::Impl::start(ByteSpan keyframe) {
  if (width <= 0 || height <= 0) {
    return data_loss("the first keyframe does not say how large its pictures are");
  }
  AVFormatContext* made = nullptr;
  int error = avformat_alloc_output_context2(&made, nullptr, "mp4", nullptr);
  if (error < 0) return av_status(error, "MP4");
  format.reset(made);
  AVStream* stream = avformat_new_stream(made, nullptr);
  if (stream == nullptr) return resource_exhausted("MP4: out of memory");
  stream->time_base = kMicroseconds;
  stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
  stream->codecpar->codec_id = codec;
  stream->codecpar->width = width;
  stream->codecpar->height = height;
  stream->codecpar->format =
      context->pix_fmt == AV_PIX_FMT_NONE ? AV_PIX_FMT_YUV420P : context->pix_fmt;
  if (codec != AV_CODEC_ID_VP9) {
    AVBSFContext* filter = nullptr;
    error = av_bsf_alloc(av_bsf_get_by_name("extract_extradata"), &filter);
    if (error < 0) return av_status(error, "extradata");
    const std::unique_ptr<AVBSFContext, BsfDeleter> owner(filter);
    filter->par_in->codec_id = codec;
    filter->par_in->codec_type = AVMEDIA_TYPE_VIDEO;
    filter->time_base_in = kMicroseconds;
    if ((error = av_bsf_init(filter)) < 0) return av_status(error, "extradata");
    ROPEWALK_ASSIGN_OR_RETURN(PacketPtr copy, make_packet(keyframe));
    if ((error = av_bsf_send_packet(filter, copy.get())) < 0) return av_status(error, "extradata");
    if ((error = av_bsf_receive_packet(filter, copy.get())) < 0) {
      return av_status(error, "extradata");
    }
    std::size_t size = 0;
    const std::uint8_t* data =
        av_packet_get_side_data(copy.get(), AV_PKT_DATA_NEW_EXTRADATA, &size);
    if (data == nullptr || size == 0) {
      return data_loss("the first keyframe carries no parameter sets");
    }
    auto* extradata = static_cast<std::uint8_t*>(av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE));
    if (extradata == nullptr) return resource_exhausted("extradata: out of memory");
    std::memcpy(extradata, data, size);
    stream->codecpar->extradata = extradata;
    stream->codecpar->extradata_size = static_cast<int>(size);
  }
  made->flags |= AVFMT_FLAG_BITEXACT;
  if ((error = avio_open(&made->pb, path.c_str(), AVIO_FLAG_WRITE)) < 0) {
    return av_status(error, path.c_str());
  }
  if ((error = avformat_write_header(made, nullptr)) < 0) return av_status(error, "MP4 header");
  return ok_status();
}

Status VideoStreamWriter::Impl::write_waiting(std::int64_t duration_us) {
  packet->duration = av_rescale_q(duration_us, kMicroseconds, format->streams[0]->time_base);
  const int error = av_write_frame(format.get(), packet.get());
  av_packet_unref(packet.get());
  waiting = false;
  return error < 0 ? av_status(error, "MP4 frame") : ok_status();
}

Result<VideoStreamWriter> VideoStreamWriter::create(const std::filesystem::path& path,
                                                    const std::string& codec, Limits limits) {
  silence_av_log();
  auto impl = std::make_unique<Impl>();
  ROPEWALK_ASSIGN_OR_RETURN(impl->codec, codec_id_of(codec));
  impl->path = path;
  impl->limits = limits;
  ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(path));
  if (there.has_value()) return already_exists(path.string() + ": is there already");
  const AVCodec* decoder = avcodec_find_decoder(impl->codec);
  impl->context.reset(avcodec_alloc_context3(decoder));
  impl->parser.reset(av_parser_init(impl->codec));
  if (impl->context == nullptr || impl->parser == nullptr) {
    return unimplemented(fmt::format("this build of FFmpeg has no parser for {}", codec));
  }
  impl->parser->flags |= PARSER_FLAG_COMPLETE_FRAMES;
  return VideoStreamWriter(std::move(impl));
}

VideoStreamWriter::VideoStreamWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
VideoStreamWriter::VideoStreamWriter(VideoStreamWriter&&) noexcept = default;
VideoStreamWriter& VideoStreamWriter::operator=(VideoStreamWriter&&) noexcept = default;
VideoStreamWriter::~VideoStreamWriter() = default;
std::int64_t VideoStreamWriter::frames() const { return impl_->frames; }
std::int64_t VideoStreamWriter::skipped() const { return impl_->skipped; }
std::int64_t VideoStreamWriter::moved_times() const { return impl_->moved; }
int VideoStreamWriter::width() const { return impl_->width; }
int VideoStreamWriter::height() const { return impl_->height; }

Status VideoStreamWriter::append(ByteSpan frame, std::int64_t time_ns) {
  Impl& video = *impl_;
  if (frame.empty()) return ok_status();
  ROPEWALK_ASSIGN_OR_RETURN(const bool keyframe, video.look(frame));
  if (video.format == nullptr) {
    if (!keyframe) {
      ++video.skipped;
      return ok_status();
    }
    ROPEWALK_RETURN_IF_ERROR(video.start(frame));
    video.first_ns = time_ns;
  }
  std::int64_t time_us = (time_ns - video.first_ns) / 1000;
  if (video.frames > 0 && time_us <= video.last_us) {
    time_us = video.last_us + 1;
    ++video.moved;
  }
  if (video.waiting) {
    video.last_duration_us = time_us - video.last_us;
    ROPEWALK_RETURN_IF_ERROR(video.write_waiting(video.last_duration_us));
  }
  ROPEWALK_ASSIGN_OR_RETURN(video.packet, video.make_packet(frame));
  video.packet->pts = video.packet->dts =
      av_rescale_q(time_us, kMicroseconds, video.format->streams[0]->time_base);
  if (keyframe) video.packet->flags |= AV_PKT_FLAG_KEY;
  video.waiting = true;
  video.last_us = time_us;
  ++video.frames;
  return ok_status();
}

Status VideoStreamWriter::finish() {
  Impl& video = *impl_;
  if (video.format == nullptr) {
    return failed_precondition(
        fmt::format("no keyframe among {} frames: nothing can be shown", video.skipped));
  }
  if (video.waiting) {
    ROPEWALK_RETURN_IF_ERROR(video.write_waiting(video.last_duration_us));
  }
  int error = av_write_trailer(video.format.get());
  if (error < 0) return av_status(error, "MP4 index");
  error = avio_closep(&video.format->pb);
  if (error < 0) return av_status(error, video.path.c_str());
  return sync_file(video.path);
}

}  // namespace ropewalk
