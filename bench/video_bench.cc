// Video: decoding beside a bare libav loop, remux beside a plain copy with a checksum.
//   video_bench CLIP.mp4 [Google Benchmark flags]
// Ratios of neighbouring rows of one run count, not the rows alone.
#include <cstdio>
#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/video/av_internal.h"
#include "ropewalk/format/video/video.h"

extern "C" {
#include <libavformat/avformat.h>
}

namespace {

using namespace ropewalk;
using namespace ropewalk::video_internal;

std::string clip_path;

struct Clip {
  std::shared_ptr<const Source> source;
  std::shared_ptr<const Mp4Index> index;
};

/// Opens the clip or ends the benchmark with its error.
bool open_clip(benchmark::State& state, Clip& clip) {
  auto source = open_source(clip_path);
  if (!source.ok()) {
    state.SkipWithError(source.status().to_string().c_str());
    return false;
  }
  clip.source = std::move(*source);
  auto index = probe_mp4(*clip.source);
  if (!index.ok()) {
    state.SkipWithError(index.status().to_string().c_str());
    return false;
  }
  clip.index = std::make_shared<const Mp4Index>(std::move(*index));
  return true;
}

void BM_Probe(benchmark::State& state) {
  for (auto _ : state) {
    Clip clip;
    if (!open_clip(state, clip)) return;
  }
}
BENCHMARK(BM_Probe)->Unit(benchmark::kMicrosecond);

void decode(benchmark::State& state, FrameForm form) {
  Clip clip;
  if (!open_clip(state, clip)) return;
  std::int64_t frames = 0;
  for (auto _ : state) {
    auto decoder = VideoDecoder::open(clip.index, clip.source, {.form = form});
    if (!decoder.ok()) return state.SkipWithError(decoder.status().to_string().c_str());
    Bytes pixels((*decoder)->frame_shape().frame_bytes());
    for (std::int64_t i = 0; i < (*decoder)->frame_count(); ++i, ++frames) {
      const Status status = (*decoder)->read({i, i + 1}, pixels);
      if (!status.ok()) return state.SkipWithError(status.to_string().c_str());
    }
  }
  state.SetItemsProcessed(frames);
}
void BM_DecodeRgb(benchmark::State& state) { decode(state, {}); }
void BM_DecodeChw(benchmark::State& state) { decode(state, {.layout = FrameLayout::chw}); }
void BM_DecodeLuma(benchmark::State& state) { decode(state, {.layout = FrameLayout::luma}); }
void BM_DecodeScaled(benchmark::State& state) { decode(state, {.width = 224, .height = 224}); }
BENCHMARK(BM_DecodeRgb)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecodeChw)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecodeLuma)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_DecodeScaled)->Unit(benchmark::kMillisecond);

/// The peer: libavformat, libavcodec with one thread, swscale to RGB.
void BM_DecodeBareLibav(benchmark::State& state) {
  silence_av_log();
  std::int64_t frames = 0;
  for (auto _ : state) {
    AVFormatContext* format = nullptr;
    if (avformat_open_input(&format, clip_path.c_str(), nullptr, nullptr) < 0 ||
        avformat_find_stream_info(format, nullptr) < 0) {
      return state.SkipWithError("libavformat cannot open the clip");
    }
    const AVCodecParameters* parameters = format->streams[0]->codecpar;
    const AVCodec* decoder = parameters->codec_id == AV_CODEC_ID_AV1
                                 ? avcodec_find_decoder_by_name("libdav1d")
                                 : avcodec_find_decoder(parameters->codec_id);
    const CodecContextPtr codec(avcodec_alloc_context3(decoder));
    avcodec_parameters_to_context(codec.get(), parameters);
    codec->thread_count = 1;
    avcodec_open2(codec.get(), decoder, nullptr);
    const PacketPtr packet(av_packet_alloc());
    const FramePtr frame(av_frame_alloc());
    SwsPtr sws;
    Bytes pixels;
    for (bool open = true; open;) {
      open = av_read_frame(format, packet.get()) >= 0;
      avcodec_send_packet(codec.get(), open ? packet.get() : nullptr);
      av_packet_unref(packet.get());
      while (avcodec_receive_frame(codec.get(), frame.get()) >= 0) {
        if (!sws) {
          sws.reset(sws_getContext(
              frame->width, frame->height, static_cast<AVPixelFormat>(frame->format), frame->width,
              frame->height, AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr, nullptr));
          pixels.resize(static_cast<std::size_t>(frame->width * frame->height * 3));
        }
        std::uint8_t* targets[4] = {pixels.data()};
        const int strides[4] = {frame->width * 3};
        sws_scale(sws.get(), frame->data, frame->linesize, 0, frame->height, targets, strides);
        ++frames;
      }
    }
    avformat_close_input(&format);
  }
  state.SetItemsProcessed(frames);
}
BENCHMARK(BM_DecodeBareLibav)->Unit(benchmark::kMillisecond);

constexpr int kCopies = 64;  // clips joined into one file, as a shard is made

void BM_Remux(benchmark::State& state) {
  const auto target = std::filesystem::temp_directory_path() / "ropewalk-video-bench.mp4";
  std::int64_t bytes = 0;
  for (auto _ : state) {
    Clip clip;
    if (!open_clip(state, clip)) return;
    const PacketRange all{0, clip.index->packets.size()};
    Mp4Plan plan{.params = clip.index->params, .fps = clip.index->fps, .packets = {}};
    for (int i = 0; i < kCopies; ++i) (void)plan.append_clip(*clip.index, all);
    (void)remove_file(target);
    auto sink = create_sink(target);
    if (!sink.ok()) return state.SkipWithError(sink.status().to_string().c_str());
    auto writer = Mp4Writer::create(**sink, plan);
    if (!writer.ok()) return state.SkipWithError(writer.status().to_string().c_str());
    for (int i = 0; i < kCopies; ++i) {
      if (!copy_packets(*clip.index, *clip.source, all, *writer).ok()) {
        return state.SkipWithError("copy_packets failed");
      }
    }
    if (!writer->finish().ok() || !(*sink)->close().ok()) {
      return state.SkipWithError("the file was not finished");
    }
    bytes += static_cast<std::int64_t>((*sink)->size());
  }
  (void)remove_file(target);
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_Remux)->Unit(benchmark::kMillisecond);

/// The peer: the same number of bytes read, hashed and written.
void BM_CopyAndHash(benchmark::State& state) {
  const auto target = std::filesystem::temp_directory_path() / "ropewalk-video-bench.bin";
  std::int64_t bytes = 0;
  for (auto _ : state) {
    (void)remove_file(target);
    auto sink = create_sink(target);
    if (!sink.ok()) return state.SkipWithError(sink.status().to_string().c_str());
    Bytes buffer;
    for (int i = 0; i < kCopies; ++i) {
      auto source = open_source(clip_path);
      if (!source.ok()) return state.SkipWithError(source.status().to_string().c_str());
      buffer.resize((*source)->size());
      Sha256 hash;
      if (!(*source)->read_at(0, buffer).ok() || !(*sink)->append(buffer).ok()) {
        return state.SkipWithError("the copy failed");
      }
      hash.update(buffer);
      benchmark::DoNotOptimize(hash.finish());
    }
    if (!(*sink)->close().ok()) return state.SkipWithError("the copy was not finished");
    bytes += static_cast<std::int64_t>((*sink)->size());
  }
  (void)remove_file(target);
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_CopyAndHash)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "usage: video_bench CLIP.mp4 [--benchmark_…]\n");
    return 2;
  }
  clip_path = argv[1];
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
