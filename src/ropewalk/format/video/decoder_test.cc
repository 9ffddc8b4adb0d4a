#include "ropewalk/format/video/decoder.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <gtest/gtest.h>

#include "ropewalk/format/video/fixture_internal.h"

#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

using namespace video_internal;

constexpr int kWidth = 96;
constexpr int kHeight = 64;

/// A file in memory with its index, ready for decoders.
struct Clip {
  std::shared_ptr<const Mp4Index> index;
  std::shared_ptr<const Source> source;

  std::unique_ptr<VideoDecoder> decoder(DecodeOptions options = {}) const {
    auto opened = VideoDecoder::open(index, source, options);
    EXPECT_TRUE(opened.ok()) << opened.status().to_string();
    return opened.ok() ? std::move(*opened) : nullptr;
  }
};

class Decoder : public testing::Test {
 protected:
  Bytes fixture(const FixtureOptions& options) {
    const auto path = temp_.path() / "fixture.mp4";
    if (!write_fixture(path, options)) return {};  // the callers find no bytes
    auto bytes = read_file(path, 1 << 24);
    return bytes.ok() ? *bytes : Bytes{};
  }
  static Clip open(Bytes bytes) {
    std::shared_ptr<const Source> source = memory_source(std::move(bytes), "clip.mp4");
    auto index = probe_mp4(*source);
    EXPECT_TRUE(index.ok()) << index.status().to_string();
    return {std::make_shared<const Mp4Index>(index.ok() ? *index : Mp4Index{}), source};
  }
  test::TempDir temp_;
};

/// Decodes one frame and reads the number drawn into it; -1 on error.
int number_of(VideoDecoder& decoder, std::int64_t frame) {
  Bytes pixels(decoder.frame_shape().frame_bytes());
  if (const Status status = decoder.read({frame, frame + 1}, pixels); !status.ok()) return -1;
  return bar_number(pixels, kWidth, kHeight, decoder.frame_shape().channels);
}

TEST_F(Decoder, GivesEveryFrameOfEveryCodecInOrder) {
  struct Case {
    const char* encoder;
    AVPixelFormat pix_fmt = AV_PIX_FMT_YUV420P;
    int bframes = 0;
    const char* extra = nullptr;
  };
  for (const Case& c :
       {Case{"libx264"}, Case{"libx264", AV_PIX_FMT_YUV420P, 3},
        Case{"libx264", AV_PIX_FMT_YUV444P, 2}, Case{"mpeg4"}, Case{"mpeg4", AV_PIX_FMT_YUV420P, 2},
        Case{"libx265", AV_PIX_FMT_YUV420P10LE, 2, "x265-params=log-level=none"},
        Case{"libvpx-vp9"}, Case{"libaom-av1", AV_PIX_FMT_YUV420P, 0, "cpu-used=8"}}) {
    if (!has_encoder(c.encoder)) continue;  // not in this build
    Bytes bytes = fixture(
        {.encoder = c.encoder, .pix_fmt = c.pix_fmt, .bframes = c.bframes, .extra = c.extra});
    ASSERT_FALSE(bytes.empty()) << c.encoder;
    const Clip clip = open(std::move(bytes));
    const auto decoder = clip.decoder();
    ASSERT_NE(decoder, nullptr);
    ASSERT_EQ(decoder->frame_count(), 30) << c.encoder;
    for (int i = 0; i < 30; ++i) EXPECT_EQ(number_of(*decoder, i), i) << c.encoder;
    EXPECT_EQ(*decoder->count_decodable(), 30) << c.encoder;
  }
}

TEST_F(Decoder, GivesTheSameFrameHoweverItIsReached) {
  const Clip clip = open(fixture({.bframes = 3}));
  const auto decoder = clip.decoder();
  std::mt19937 random(7);
  for (int i = 0; i < 100; ++i) {
    const int frame = static_cast<int>(random() % 30);
    ASSERT_EQ(number_of(*decoder, frame), frame) << "step " << i;
  }
  for (int frame = 29; frame >= 0; --frame) ASSERT_EQ(number_of(*decoder, frame), frame);
}

TEST_F(Decoder, DecodesOpenGopsFromTheKeyframeBefore) {
  const Clip clip =
      open(fixture({.bframes = 2, .open_gop = true, .extra = "x264-params=open-gop=1"}));
  const auto decoder = clip.decoder();
  for (const int frame : {11, 12, 13, 10, 24, 23, 22, 29, 0}) {
    EXPECT_EQ(number_of(*decoder, frame), frame);
  }
}

TEST_F(Decoder, FillsARangeLikeSingleReads) {
  const Clip clip = open(fixture({.bframes = 2}));
  const auto decoder = clip.decoder();
  const std::size_t frame_bytes = decoder->frame_shape().frame_bytes();
  ASSERT_EQ(frame_bytes, std::size_t{kWidth * kHeight * 3});
  Bytes range(7 * frame_bytes);
  ASSERT_TRUE(decoder->read({9, 16}, range).ok());
  const auto other = clip.decoder({.threads = 2});
  for (std::size_t i = 0; i < 7; ++i) {
    Bytes one(frame_bytes);
    const auto frame = static_cast<std::int64_t>(9 + i);
    ASSERT_TRUE(other->read({frame, frame + 1}, one).ok());
    EXPECT_TRUE(std::equal(one.begin(), one.end(),
                           range.begin() + static_cast<std::ptrdiff_t>(i * frame_bytes)));
  }
}

/// Counts the bytes that are read.
class CountingSource : public Source {
 public:
  explicit CountingSource(Bytes bytes) : inner_(memory_source(std::move(bytes))) {}
  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    bytes_read += out.size();
    return inner_->read_at(offset, out);
  }
  mutable std::uint64_t bytes_read = 0;

 private:
  std::unique_ptr<Source> inner_;
};

TEST_F(Decoder, ReadsEachPacketOnceWhenReadingForward) {
  const auto source = std::make_shared<CountingSource>(fixture({.bframes = 3}));
  const auto index = std::make_shared<const Mp4Index>(*probe_mp4(*source));
  auto decoder = VideoDecoder::open(index, source);
  ASSERT_TRUE(decoder.ok());
  source->bytes_read = 0;
  for (int i = 0; i < 30; ++i) ASSERT_EQ(number_of(**decoder, i), i);
  EXPECT_EQ(source->bytes_read, index->payload_bytes);
}

TEST_F(Decoder, RefusesRangesAndMemoryThatDoNotFit) {
  const Clip clip = open(fixture({}));
  const auto decoder = clip.decoder();
  Bytes one(decoder->frame_shape().frame_bytes());
  EXPECT_EQ(decoder->read({29, 31}, one).code(), StatusCode::out_of_range);
  EXPECT_EQ(decoder->read({-1, 0}, one).code(), StatusCode::out_of_range);
  EXPECT_EQ(decoder->read({0, 2}, one).code(), StatusCode::invalid_argument);
  EXPECT_TRUE(decoder->read({3, 3}, {}).ok());
}

TEST_F(Decoder, CropIsAPartOfTheWholePicture) {
  const Clip clip = open(fixture({}));
  Bytes whole(std::size_t{kWidth} * kHeight * 3);
  ASSERT_TRUE(clip.decoder()->read({5, 6}, whole).ok());
  for (const auto& [x, y] : {std::pair{0, 0}, std::pair{7, 3}, std::pair{10, 20}}) {
    const FrameForm form{.crop_x = x, .crop_y = y, .crop_width = 31, .crop_height = 17};
    const auto decoder = clip.decoder({.form = form});
    EXPECT_EQ(decoder->frame_shape(), (FrameShape{.height = 17, .width = 31}));
    Bytes part(decoder->frame_shape().frame_bytes());
    ASSERT_TRUE(decoder->read({5, 6}, part).ok());
    for (int row = 0; row < 17; ++row) {
      EXPECT_TRUE(std::equal(part.begin() + row * 31 * 3, part.begin() + (row + 1) * 31 * 3,
                             whole.begin() + ((y + row) * kWidth + x) * 3));
    }
  }
}

TEST_F(Decoder, ChwHoldsTheSameSamplesAsHwc) {
  const Clip clip = open(fixture({}));
  Bytes hwc(std::size_t{kWidth} * kHeight * 3);
  Bytes chw(hwc.size());
  ASSERT_TRUE(clip.decoder()->read({9, 10}, hwc).ok());
  ASSERT_TRUE(clip.decoder({.form = {.layout = FrameLayout::chw}})->read({9, 10}, chw).ok());
  const std::size_t plane = std::size_t{kWidth} * kHeight;
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(chw[c * plane + i], hwc[i * 3 + c]);
  }
}

TEST_F(Decoder, ScalesToTheSizeAskedFor) {
  const Clip clip = open(fixture({}));
  for (const FrameForm& form :
       {FrameForm{.width = 48, .height = 32}, FrameForm{.width = 200, .height = 100},
        FrameForm{.width = 40, .height = 30, .crop_x = 1, .crop_y = 1, .crop_width = 95},
        FrameForm{.layout = FrameLayout::luma, .width = 48, .height = 32}}) {
    const auto decoder = clip.decoder({.form = form});
    ASSERT_EQ(decoder->frame_shape().width, form.width);
    Bytes pixels(decoder->frame_shape().frame_bytes());
    ASSERT_TRUE(decoder->read({21, 22}, pixels).ok());
    EXPECT_EQ(bar_number(pixels, form.width, form.height, decoder->frame_shape().channels), 21);
  }
}

TEST_F(Decoder, WritesNothingBesideTheFrame) {
  for (const int width : {96, 98, 66}) {
    const Clip clip = open(fixture({.width = width, .frames = 1}));
    for (const FrameLayout layout : {FrameLayout::hwc, FrameLayout::chw, FrameLayout::luma}) {
      const auto decoder = clip.decoder({.form = {.layout = layout}});
      const std::size_t size = decoder->frame_shape().frame_bytes();
      Bytes memory(size + 256, 0xa5);
      ASSERT_TRUE(decoder->read({0, 1}, MutableByteSpan(memory).subspan(128, size)).ok());
      EXPECT_EQ(std::count(memory.begin(), memory.begin() + 128, 0xa5), 128);
      EXPECT_EQ(std::count(memory.end() - 128, memory.end(), 0xa5), 128);
    }
  }
}

TEST_F(Decoder, RefusesCropOutsideThePicture) {
  const Clip clip = open(fixture({}));
  const FrameForm form{.crop_x = 90, .crop_width = 10, .crop_height = 10};
  EXPECT_EQ(VideoDecoder::open(clip.index, clip.source, {.form = form}).status().code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(VideoDecoder::open(clip.index, clip.source, {.limits = {.max_image_pixels = 1000}})
                .status()
                .code(),
            StatusCode::resource_exhausted);
}

TEST_F(Decoder, GivesStoredCodesOfDepthAsUint16) {
  Bytes bytes = fixture({.encoder = "libx265",
                         .pix_fmt = AV_PIX_FMT_GRAY12LE,
                         .frames = 20,
                         .extra = "x265-params=lossless=1\\:log-level=none"});
  if (bytes.empty()) GTEST_SKIP() << "no 12-bit x265 in this build";
  const Clip clip = open(std::move(bytes));
  const auto decoder = clip.decoder({.form = {.layout = FrameLayout::luma}});
  ASSERT_EQ(decoder->frame_shape(),
            (FrameShape{.height = kHeight, .width = kWidth, .channels = 1, .bytes_per_sample = 2}));
  std::vector<std::uint16_t> samples(std::size_t{kWidth} * kHeight);
  const MutableByteSpan out(reinterpret_cast<std::uint8_t*>(samples.data()), samples.size() * 2);
  ASSERT_TRUE(decoder->read({19, 20}, out).ok());
  for (int bar = 0; bar < 8; ++bar) {
    const auto at = static_cast<std::size_t>(bar * (kWidth / 8) + 2);
    EXPECT_EQ(samples[at], bar_level(19, bar, 12)) << bar;
  }
}

TEST_F(Decoder, LumaIsTheStoredPlane) {
  const Clip clip = open(fixture({.extra = "qp=0"}));  // lossless
  const auto decoder = clip.decoder({.form = {.layout = FrameLayout::luma}});
  Bytes luma(decoder->frame_shape().frame_bytes());
  ASSERT_TRUE(decoder->read({5, 6}, luma).ok());
  EXPECT_EQ(luma[2], 200);  // bar 0 of 5
  EXPECT_EQ(luma[kWidth / 8 + 2], 50);
}

TEST_F(Decoder, NamesDamagedPacketAndStillGivesOtherGops) {
  Bytes bytes = fixture({.bframes = 0, .extra = "x264-params=slices=1"});
  auto index = probe_mp4(*view_source(bytes));
  ASSERT_TRUE(index.ok());
  const Mp4Packet& victim = index->packets[15];
  for (std::size_t i = 0; i < victim.size; ++i) bytes[victim.offset + i] = 0xff;
  const Clip clip = open(std::move(bytes));
  const auto decoder = clip.decoder();
  EXPECT_EQ(number_of(*decoder, 14), 14);
  Bytes pixels(decoder->frame_shape().frame_bytes());
  const Status status = decoder->read({15, 16}, pixels);
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_NE(status.message().find("clip.mp4: frame 15 (packet 15 of 30)"), std::string_view::npos)
      << status.message();
  EXPECT_EQ(decoder->read({20, 21}, pixels).code(), StatusCode::data_loss);
  EXPECT_EQ(number_of(*decoder, 24), 24);
  EXPECT_EQ(number_of(*decoder, 3), 3);
  EXPECT_EQ(*clip.decoder()->count_decodable(), 12 + 3 + 6);
}

TEST_F(Decoder, FindsDamageInsideASlice) {
  Bytes bytes = fixture({.gop = 10, .extra = "cabac=1"});
  auto index = probe_mp4(*view_source(bytes));
  ASSERT_TRUE(index.ok());
  const Mp4Packet& victim = index->packets[10];
  ASSERT_TRUE(victim.keyframe);
  for (std::size_t i = victim.size / 2; i < victim.size; ++i) bytes[victim.offset + i] ^= 0x5a;
  const Clip clip = open(std::move(bytes));
  const auto count = clip.decoder()->count_decodable();
  ASSERT_TRUE(count.ok());
  EXPECT_EQ(*count, 20);
}

TEST_F(Decoder, ReportsPacketWithoutPicture) {
  Bytes bytes = fixture({});
  auto index = probe_mp4(*view_source(bytes));
  // The last packet becomes one filler NAL unit: valid, and no picture.
  const Mp4Packet& victim = index->packets[29];
  ASSERT_GT(victim.size, 6U);
  const std::uint32_t length = victim.size - 4;
  for (std::size_t i = 0; i < 4; ++i) {
    bytes[victim.offset + i] = static_cast<std::uint8_t>(length >> (24 - 8 * i));
  }
  bytes[victim.offset + 4] = 12;
  std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(victim.offset) + 5, victim.size - 5,
              std::uint8_t{0xff});
  const Clip clip = open(std::move(bytes));
  const auto decoder = clip.decoder();
  Bytes pixels(decoder->frame_shape().frame_bytes());
  EXPECT_EQ(decoder->read({29, 30}, pixels).code(), StatusCode::data_loss);
  const Status before = decoder->read({28, 29}, pixels);
  EXPECT_TRUE(before.ok()) << before.to_string();
  EXPECT_EQ(*decoder->count_decodable(), 29);
}

TEST_F(Decoder, RefusesCodecWithoutDecoder) {
  Clip clip = open(fixture({}));
  Mp4Index changed = *clip.index;
  changed.params.codec = "nonesuch";
  const auto opened = VideoDecoder::open(std::make_shared<const Mp4Index>(changed), clip.source);
  EXPECT_EQ(opened.status().code(), StatusCode::unimplemented);
}

/// Decodes with libavformat and libavcodec as any player does: an independent reading of `path`.
std::vector<Bytes> play(const std::filesystem::path& path, std::size_t limit) {
  AVFormatContext* raw = nullptr;
  std::vector<Bytes> frames;
  if (avformat_open_input(&raw, path.c_str(), nullptr, nullptr) < 0) return frames;
  avformat_find_stream_info(raw, nullptr);
  const AVCodecParameters* parameters = raw->streams[0]->codecpar;
  const AVCodec* decoder = parameters->codec_id == AV_CODEC_ID_AV1
                               ? avcodec_find_decoder_by_name("libdav1d")
                               : avcodec_find_decoder(parameters->codec_id);
  const CodecContextPtr codec(avcodec_alloc_context3(decoder));
  avcodec_parameters_to_context(codec.get(), parameters);
  avcodec_open2(codec.get(), decoder, nullptr);
  const PacketPtr packet(av_packet_alloc());
  const FramePtr frame(av_frame_alloc());
  SwsPtr sws;
  for (bool open = true; open && frames.size() < limit;) {
    open = av_read_frame(raw, packet.get()) >= 0;
    avcodec_send_packet(codec.get(), open ? packet.get() : nullptr);
    av_packet_unref(packet.get());
    while (frames.size() < limit && avcodec_receive_frame(codec.get(), frame.get()) >= 0) {
      const int width = frame->width;
      const int height = frame->height;
      if (!sws) {
        sws.reset(sws_getContext(width, height, static_cast<AVPixelFormat>(frame->format), width,
                                 height, AV_PIX_FMT_RGB24, SWS_BILINEAR, nullptr, nullptr,
                                 nullptr));
      }
      Bytes pixels(static_cast<std::size_t>(width * height * 3));
      std::uint8_t* targets[4] = {pixels.data()};
      const int strides[4] = {width * 3};
      sws_scale(sws.get(), frame->data, frame->linesize, 0, height, targets, strides);
      frames.push_back(std::move(pixels));
    }
  }
  avformat_close_input(&raw);
  return frames;
}

TEST(DecoderReal, MatchesAPlayerOnRecordedClips) {
  for (const char* name :
       {"agilex_dataset/videos/chunk-000/observation.images.cam_high/episode_000000.mp4",
        "g1_partial/videos/chunk-000/observation.images.cam_high/episode_000001.mp4"}) {
    ROPEWALK_REQUIRE_TESTDATA(path, name);
    const auto expected = play(path, 60);
    ASSERT_EQ(expected.size(), 60U);
    auto opened = VideoDecoder::open(path);
    ASSERT_TRUE(opened.ok()) << opened.status().to_string();
    VideoDecoder& decoder = **opened;
    Bytes pixels(decoder.frame_shape().frame_bytes());
    for (const std::size_t frame : {0U, 1U, 59U, 17U, 2U, 33U, 34U}) {
      const auto at = static_cast<std::int64_t>(frame);
      ASSERT_TRUE(decoder.read({at, at + 1}, pixels).ok());
      EXPECT_EQ(pixels, expected[frame]) << name << " frame " << frame;
    }
  }
}

}  // namespace
}  // namespace ropewalk
