#include "ropewalk/format/video/mp4_writer.h"

#include <numeric>

#include <gtest/gtest.h>

#include "ropewalk/format/video/decoder.h"
#include "ropewalk/format/video/fixture_internal.h"
#include "ropewalk/format/video/packets.h"

#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

using namespace video_internal;

struct Clip {
  std::shared_ptr<const Mp4Index> index;
  std::shared_ptr<const Source> source;
  PacketRange all() const { return {0, index->packets.size()}; }
};

Clip open_clip(Bytes bytes) {
  std::shared_ptr<const Source> source = memory_source(std::move(bytes), "clip.mp4");
  auto index = probe_mp4(*source);
  EXPECT_TRUE(index.ok()) << index.status().to_string();
  return {std::make_shared<const Mp4Index>(index.ok() ? *index : Mp4Index{}), source};
}

Clip open_file(const std::filesystem::path& path) {
  auto bytes = read_file(path, 1 << 28);
  EXPECT_TRUE(bytes.ok());
  return open_clip(bytes.ok() ? std::move(*bytes) : Bytes{});
}

/// Joins whole clips into one file.
Bytes join(const std::vector<Clip>& clips, std::vector<std::string>* hashes = nullptr) {
  Mp4Plan plan{.params = clips[0].index->params, .fps = clips[0].index->fps, .packets = {}};
  std::int64_t frames = 0;
  for (const Clip& clip : clips) {
    const auto before = plan.append_clip(*clip.index, clip.all());
    EXPECT_TRUE(before.ok()) << before.status().to_string();
    EXPECT_EQ(before.value_or(-1), frames);
    frames += clip.index->frame_count();
  }
  Bytes out;
  const auto sink = memory_sink(out, "joined.mp4");
  auto writer = Mp4Writer::create(*sink, plan);
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  if (!writer.ok()) return out;
  for (const Clip& clip : clips) {
    const auto hash = copy_packets(*clip.index, *clip.source, clip.all(), *writer);
    EXPECT_TRUE(hash.ok()) << hash.status().to_string();
    if (hashes != nullptr) hashes->push_back(hash.value_or(""));
  }
  EXPECT_TRUE(writer->finish().ok());
  EXPECT_TRUE(sink->close().ok());
  return out;
}

/// What FFmpeg's own demuxer says about a file.
struct Foreign {
  AVRational average{};
  std::int64_t start = -1;
  std::int64_t duration = 0;
  std::vector<std::int64_t> pts;
  std::vector<std::int64_t> dts;
  int keyframes = 0;
  int width = 0;
  AVColorRange range = AVCOL_RANGE_UNSPECIFIED;
};

Foreign demux(const Bytes& bytes, test::TempDir& temp) {
  silence_av_log();
  const auto path = temp.path() / "demux.mp4";
  EXPECT_TRUE(write_new_file(path, bytes).ok());
  Foreign out;
  AVFormatContext* format = nullptr;
  if (avformat_open_input(&format, path.c_str(), nullptr, nullptr) < 0) {
    ADD_FAILURE() << "FFmpeg cannot open the file";
    return out;
  }
  avformat_find_stream_info(format, nullptr);
  const AVStream* stream = format->streams[0];
  out.average = stream->avg_frame_rate;
  out.start = stream->start_time;
  out.duration = stream->duration;
  out.width = stream->codecpar->width;
  out.range = stream->codecpar->color_range;
  const PacketPtr packet(av_packet_alloc());
  while (av_read_frame(format, packet.get()) >= 0) {
    out.pts.push_back(packet->pts);
    out.dts.push_back(packet->dts);
    out.keyframes += (packet->flags & AV_PKT_FLAG_KEY) != 0 ? 1 : 0;
    av_packet_unref(packet.get());
  }
  avformat_close_input(&format);
  std::filesystem::remove(path);
  return out;
}

class Mp4Join : public testing::Test {
 protected:
  Clip fixture(const FixtureOptions& options) {
    const auto path = temp_.path() / "fixture.mp4";
    if (!write_fixture(path, options)) return {};
    return open_file(path);
  }
  test::TempDir temp_;
};

TEST(Mp4Timing, DoublesRateUntilTenThousand) {
  EXPECT_EQ(*mp4_timing({30, 1}), (Mp4Timing{15360, 512}));
  EXPECT_EQ(*mp4_timing({25, 1}), (Mp4Timing{12800, 512}));
  EXPECT_EQ(*mp4_timing({60, 2}), (Mp4Timing{15360, 512}));
  EXPECT_EQ(*mp4_timing({30000, 1001}), (Mp4Timing{30000, 1001}));
  EXPECT_EQ(*mp4_timing({50, 3}), (Mp4Timing{12800, 768}));
  EXPECT_EQ(*mp4_timing({1, 1}), (Mp4Timing{16384, 16384}));
  EXPECT_EQ(*mp4_timing({20000, 1}), (Mp4Timing{20000, 1}));
  EXPECT_EQ(mp4_timing({0, 1}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(mp4_timing({1, std::int64_t{1} << 40}).status().code(), StatusCode::invalid_argument);
}

TEST_F(Mp4Join, PlacesReorderedClipsOnOneExactGrid) {
  const Clip a = fixture({.bframes = 3});
  const Clip b = fixture({.frames = 17, .bframes = 3});
  ASSERT_TRUE(can_share_file(a.index->params, b.index->params));
  const Bytes joined = join({a, b, a});
  const Foreign foreign = demux(joined, temp_);
  EXPECT_EQ(foreign.average.num, 30);
  EXPECT_EQ(foreign.average.den, 1);
  EXPECT_EQ(foreign.start, 0);
  EXPECT_EQ(foreign.duration, 77 * 512);
  ASSERT_EQ(foreign.pts.size(), 77U);
  auto sorted = foreign.pts;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    EXPECT_EQ(sorted[k], static_cast<std::int64_t>(k) * 512);
  }
  for (std::size_t k = 0; k < foreign.pts.size(); ++k) EXPECT_GE(foreign.pts[k], foreign.dts[k]);
  EXPECT_EQ(foreign.keyframes, 3 + 2 + 3);

  const Clip result = open_clip(joined);
  EXPECT_FALSE(result.index->has_edit_list);
  EXPECT_EQ(result.index->params, a.index->params);
  EXPECT_EQ(result.index->fps, (Rational{30, 1}));
  EXPECT_EQ(result.index->first_pts, 0);
  EXPECT_EQ(result.index->frame_count(), 77);
  EXPECT_EQ(result.index->decode_unit(30), (FrameRange{30, 42}));
}

TEST_F(Mp4Join, LeavesPacketsAndPicturesUnchanged) {
  const Clip a = fixture({.bframes = 2});
  const Clip b = fixture({.frames = 9, .bframes = 2});
  std::vector<std::string> hashes;
  const Clip result = open_clip(join({a, b}, &hashes));
  EXPECT_EQ(hashes[0], *packet_sha256(*a.index, *a.source, a.all()));
  EXPECT_EQ(hashes[1], *packet_sha256(*result.index, *result.source, {30, 39}));
  EXPECT_NE(hashes[0], hashes[1]);
  auto decoder = VideoDecoder::open(result.index, result.source);
  ASSERT_TRUE(decoder.ok());
  Bytes pixels((*decoder)->frame_shape().frame_bytes());
  for (int frame = 0; frame < 39; ++frame) {
    ASSERT_TRUE((*decoder)->read({frame, frame + 1}, pixels).ok());
    EXPECT_EQ(bar_number(pixels, 96, 64, 3), frame < 30 ? frame : frame - 30);
  }
}

TEST_F(Mp4Join, CopiesEveryCodecItWrites) {
  struct Case {
    const char* encoder;
    AVPixelFormat pix_fmt;
    int bframes;
    const char* extra = nullptr;
  };
  for (const Case& c :
       {Case{"libx265", AV_PIX_FMT_YUV420P10LE, 2, "x265-params=log-level=none"},
        Case{"mpeg4", AV_PIX_FMT_YUV420P, 2}, Case{"libvpx-vp9", AV_PIX_FMT_YUV420P, 0},
        Case{"libaom-av1", AV_PIX_FMT_YUV420P, 0, "cpu-used=8"}}) {
    if (!has_encoder(c.encoder)) continue;  // not in this build
    const Clip clip = fixture({.encoder = c.encoder,
                               .pix_fmt = c.pix_fmt,
                               .frames = 8,
                               .gop = 4,
                               .bframes = c.bframes,
                               .extra = c.extra});
    ASSERT_NE(clip.index, nullptr) << c.encoder;
    const Bytes joined = join({clip, clip});
    const Foreign foreign = demux(joined, temp_);
    EXPECT_EQ(foreign.pts.size(), 16U) << c.encoder;
    EXPECT_EQ(foreign.average.num, 30) << c.encoder;
    EXPECT_EQ(foreign.width, 96) << c.encoder;
    const Clip result = open_clip(joined);
    EXPECT_EQ(result.index->params, clip.index->params) << c.encoder;
    EXPECT_EQ(*count_decodable_frames(result.index, result.source), 16) << c.encoder;
  }
}

TEST_F(Mp4Join, KeepsColourTags) {
  const Clip clip = fixture({.full_range = true});
  const Bytes joined = join({clip});
  EXPECT_EQ(demux(joined, temp_).range, AVCOL_RANGE_JPEG);
  EXPECT_EQ(open_clip(joined).index->params, clip.index->params);
}

TEST_F(Mp4Join, TakesEpisodesOutOfAPackedFile) {
  const Clip packed =
      open_clip(join({fixture({.bframes = 2}), fixture({.frames = 9, .bframes = 2})}));
  const auto range = packed.index->packets_of({30, 39});
  ASSERT_TRUE(range.ok()) << range.status().to_string();
  ASSERT_TRUE(check_remuxable(*packed.index, *packed.source, *range).ok());
  Mp4Plan plan{.params = packed.index->params, .fps = packed.index->fps, .packets = {}};
  ASSERT_TRUE(plan.append_clip(*packed.index, *range).ok());
  Bytes out;
  const auto sink = memory_sink(out);
  auto writer = Mp4Writer::create(*sink, plan);
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(copy_packets(*packed.index, *packed.source, *range, *writer).ok());
  ASSERT_TRUE(writer->finish().ok());
  const Clip episode = open_clip(out);
  EXPECT_EQ(episode.index->frame_count(), 9);
  EXPECT_EQ(episode.index->first_pts, 0);
  EXPECT_EQ(*count_decodable_frames(episode.index, episode.source), 9);
}

TEST_F(Mp4Join, RefusesToShareFileBetweenDifferentStreams) {
  const Clip a = fixture({});
  const Clip wider = fixture({.width = 128});
  const Clip other = fixture({.extra = "profile=baseline"});
  EXPECT_FALSE(can_share_file(a.index->params, wider.index->params));
  EXPECT_FALSE(can_share_file(a.index->params, other.index->params));
  EXPECT_TRUE(can_share_file(a.index->params, a.index->params));
}

/// A plan with `sizes` packets of a plain stream.
Mp4Plan simple_plan(const Clip& clip, std::vector<std::uint32_t> sizes) {
  Mp4Plan plan{.params = clip.index->params, .fps = {30, 1}, .packets = {}};
  for (const std::uint32_t size : sizes) {
    plan.packets.push_back({size, static_cast<std::uint32_t>(plan.packets.size()), true});
  }
  return plan;
}

TEST_F(Mp4Join, RefusesPlansThatMakeNoFile) {
  const Clip clip = fixture({});
  Bytes out;
  const auto sink = memory_sink(out);
  const auto code = [&](const Mp4Plan& plan) {
    return Mp4Writer::create(*sink, plan).status().code();
  };
  EXPECT_EQ(code(simple_plan(clip, {})), StatusCode::invalid_argument);
  Mp4Plan twice = simple_plan(clip, {1, 1});
  twice.packets[1].rank = 0;
  EXPECT_EQ(code(twice), StatusCode::invalid_argument);
  Mp4Plan gap = simple_plan(clip, {1, 1});
  gap.packets[1].rank = 2;
  EXPECT_EQ(code(gap), StatusCode::invalid_argument);
  Mp4Plan no_key = simple_plan(clip, {1});
  no_key.packets[0].keyframe = false;
  EXPECT_EQ(code(no_key), StatusCode::invalid_argument);
  Mp4Plan bare = simple_plan(clip, {1});
  bare.params.extradata.clear();
  EXPECT_EQ(code(bare), StatusCode::invalid_argument);
  Mp4Plan foreign = simple_plan(clip, {1});
  foreign.params.codec = "theora";
  EXPECT_EQ(code(foreign), StatusCode::unimplemented);
  EXPECT_TRUE(out.empty());
}

TEST_F(Mp4Join, HoldsPayloadToThePlan) {
  const Clip clip = fixture({});
  Bytes out;
  const auto sink = memory_sink(out);
  auto writer = Mp4Writer::create(*sink, simple_plan(clip, {3, 4}));
  ASSERT_TRUE(writer.ok());
  EXPECT_EQ(writer->header_bytes(), out.size());
  EXPECT_TRUE(writer->append(Bytes(5)).ok());
  EXPECT_EQ(writer->finish().code(), StatusCode::failed_precondition);
  EXPECT_EQ(writer->append(Bytes(3)).code(), StatusCode::failed_precondition);
  EXPECT_TRUE(writer->append(Bytes(2)).ok());
  EXPECT_TRUE(writer->finish().ok());
}

TEST_F(Mp4Join, UsesWideOffsetsAboveFourGigabytes) {
  const Clip clip = fixture({});
  // 45 packets of 100 MB: two chunks, the second beyond 2 GB, the file beyond 4 GB.
  const Mp4Plan plan = simple_plan(clip, std::vector<std::uint32_t>(45, 100'000'000));
  Bytes out;
  const auto sink = memory_sink(out);
  const auto writer = Mp4Writer::create(*sink, plan);
  ASSERT_TRUE(writer.ok());
  const auto source = memory_source(out);
  const auto index = probe_mp4(*source, {.keep_truncated = true});
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->packets[0].offset, out.size());
  EXPECT_EQ(index->packets[44].offset, out.size() + 44ULL * 100'000'000);
  EXPECT_EQ(index->truncated_packets, 45U);
}

TEST(Mp4JoinReal, JoinsRecordedClipsWithIdenticalPictures) {
  ROPEWALK_REQUIRE_TESTDATA(root, "agilex_dataset/videos/chunk-000");
  std::vector<Clip> clips;
  for (const char* camera : {"cam_high", "cam_left_wrist", "cam_right_wrist"}) {
    clips.push_back(
        open_file(root / ("observation.images." + std::string(camera)) / "episode_000000.mp4"));
    ASSERT_TRUE(
        check_remuxable(*clips.back().index, *clips.back().source, clips.back().all()).ok());
    ASSERT_TRUE(can_share_file(clips[0].index->params, clips.back().index->params));
  }
  test::TempDir temp;
  const Bytes joined = join(clips);
  const Foreign foreign = demux(joined, temp);
  EXPECT_EQ(foreign.average.num, 30);
  EXPECT_EQ(foreign.average.den, 1);
  EXPECT_EQ(foreign.duration, 3 * 398 * 512);
  auto sorted = foreign.pts;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t k = 0; k < sorted.size(); ++k) {
    ASSERT_EQ(sorted[k], static_cast<std::int64_t>(k) * 512);
  }
  const Clip result = open_clip(joined);
  auto whole = VideoDecoder::open(result.index, result.source);
  ASSERT_TRUE(whole.ok());
  Bytes expected((*whole)->frame_shape().frame_bytes());
  Bytes found(expected.size());
  for (std::size_t c = 0; c < clips.size(); ++c) {
    auto part = VideoDecoder::open(clips[c].index, clips[c].source);
    ASSERT_TRUE(part.ok());
    for (const std::int64_t frame : {0, 1, 2, 249, 250, 397}) {
      const auto at = static_cast<std::int64_t>(c) * 398 + frame;
      ASSERT_TRUE((*part)->read({frame, frame + 1}, expected).ok());
      ASSERT_TRUE((*whole)->read({at, at + 1}, found).ok());
      EXPECT_EQ(found, expected) << "clip " << c << " frame " << frame;
    }
  }
}

}  // namespace
}  // namespace ropewalk
