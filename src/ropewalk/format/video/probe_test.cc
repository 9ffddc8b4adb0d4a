#include "ropewalk/format/video/probe.h"

#include <algorithm>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include "ropewalk/format/video/decoder.h"
#include "ropewalk/format/video/fixture_internal.h"
#include "ropewalk/format/video/packets.h"

#include "tests/support/temp_dir.h"
#include "tests/support/testdata.h"

namespace ropewalk {
namespace {

using namespace video_internal;

class Mp4Probe : public testing::Test {
 protected:
  /// Makes a file and returns its bytes.
  Bytes fixture(const FixtureOptions& options) {
    const auto path = temp_.path() / "fixture.mp4";
    if (!write_fixture(path, options)) return {};  // the callers find no bytes
    auto bytes = read_file(path, 1 << 24);
    return bytes.ok() ? *bytes : Bytes{};
  }
  test::TempDir temp_;
};

Result<Mp4Index> probe(const Bytes& bytes, const ProbeOptions& options = {}) {
  return probe_mp4(*view_source(bytes, "clip.mp4"), options);
}

/// Returns the offset of the payload of the first box named `type`.
std::size_t payload_of(const Bytes& bytes, std::string_view type) {
  const auto found = std::search(bytes.begin(), bytes.end(), type.begin(), type.end());
  return static_cast<std::size_t>(found - bytes.begin()) + 4;
}

void put_u32(Bytes& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) {
    bytes.at(at + i) = static_cast<std::uint8_t>(value >> (24 - 8 * i));
  }
}

TEST_F(Mp4Probe, ReadsStreamAndPacketsOfPlainH264) {
  const Bytes bytes = fixture({});
  const auto index = probe(bytes);
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->params.codec, "h264");
  EXPECT_EQ(index->params.pix_fmt, "yuv420p");
  EXPECT_EQ(index->params.width, 96);
  EXPECT_EQ(index->params.height, 64);
  EXPECT_EQ(index->params.extradata.at(0), 1);
  EXPECT_EQ(index->fps, (Rational{30, 1}));
  EXPECT_EQ(index->rate, RateKind::exact);
  EXPECT_EQ(index->timescale, 15360U);
  EXPECT_EQ(index->first_pts, 0);
  EXPECT_EQ(index->reorder_delay, 0);
  EXPECT_EQ(index->frame_count(), 30);
  EXPECT_EQ(index->trailing_bytes, 0U);
  EXPECT_FALSE(index->has_audio);
  ASSERT_EQ(index->packets.size(), 30U);
  EXPECT_TRUE(index->packets[0].keyframe);
  EXPECT_FALSE(index->packets[1].keyframe);
  EXPECT_TRUE(index->packets[12].keyframe);
  EXPECT_EQ(index->packets[29].pts, 29 * 512);
  std::uint64_t payload = 0;
  for (const Mp4Packet& packet : index->packets) payload += packet.size;
  EXPECT_EQ(index->payload_bytes, payload);
  const Mp4Packet& last = index->packets.back();
  EXPECT_EQ(last.offset + last.size, bytes.size());
}

TEST_F(Mp4Probe, RanksReorderedFramesThroughTheUsualEditList) {
  const auto index = probe(fixture({.bframes = 2}));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_TRUE(index->has_edit_list);
  EXPECT_EQ(index->first_pts, 0);
  EXPECT_GE(index->reorder_delay, 1);
  EXPECT_LT(index->packets[0].dts, 0);
  EXPECT_EQ(index->fps, (Rational{30, 1}));
  std::set<std::int32_t> ranks;
  for (const Mp4Packet& packet : index->packets) {
    ranks.insert(packet.rank);
    EXPECT_EQ(packet.pts, packet.rank * 512);
    EXPECT_GE(packet.pts, packet.dts);
  }
  EXPECT_EQ(ranks.size(), 30U);
  EXPECT_EQ(*ranks.begin(), 0);
  EXPECT_EQ(*ranks.rbegin(), 29);
}

TEST_F(Mp4Probe, KeepsRanksWithSignedOffsetsInsteadOfEditList) {
  const auto usual = probe(fixture({.bframes = 2}));
  const auto signed_offsets =
      probe(fixture({.bframes = 2, .movflags = "+faststart+negative_cts_offsets"}));
  ASSERT_TRUE(usual.ok() && signed_offsets.ok());
  EXPECT_EQ(signed_offsets->first_pts, 0);
  EXPECT_EQ(signed_offsets->packets[0].dts, 0);
  ASSERT_EQ(signed_offsets->packets.size(), usual->packets.size());
  for (std::size_t i = 0; i < usual->packets.size(); ++i) {
    EXPECT_EQ(signed_offsets->packets[i].rank, usual->packets[i].rank);
  }
}

TEST_F(Mp4Probe, GivesExactNtscRate) {
  const auto index = probe(fixture({.fps = {30000, 1001}}));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->fps, (Rational{30000, 1001}));
  EXPECT_EQ(index->rate, RateKind::exact);
}

TEST_F(Mp4Probe, FindsRateBehindCoarseTimescale) {
  const auto index = probe(fixture({.timescale = 1000}));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->timescale, 1000U);
  EXPECT_EQ(index->rate, RateKind::rounded);
  EXPECT_EQ(index->fps, (Rational{30, 1}));
}

TEST_F(Mp4Probe, TellsVariableRate) {
  FixtureOptions options{.frames = 6};
  options.pts = {0, 1, 2, 5, 6, 9};
  const auto index = probe(fixture(options));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->rate, RateKind::variable);
  EXPECT_EQ(index->frame_count(), 6);
  EXPECT_EQ(index->fps, (Rational{50, 3}));  // 5 steps in 9/30 s
}

TEST_F(Mp4Probe, ReportsFirstPresentationTimeAfterZero) {
  FixtureOptions options{.frames = 6};
  options.pts = {5, 6, 7, 8, 9, 10};
  const auto index = probe(fixture(options));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->rate, RateKind::exact);
  EXPECT_NEAR(static_cast<double>(index->first_pts) / index->timescale, 5.0 / 30, 1e-3);
  EXPECT_EQ(index->packets[0].rank, 0);
}

TEST_F(Mp4Probe, HidesFramesBeforeTheEditBegins) {
  Bytes bytes = fixture({});
  const std::size_t elst = payload_of(bytes, "elst");
  ASSERT_LT(elst, bytes.size());
  put_u32(bytes, elst + 12, 3 * 512);  // media_time
  const auto index = probe(bytes);
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->hidden_packets, 3U);
  EXPECT_EQ(index->frame_count(), 27);
  EXPECT_EQ(index->first_pts, 0);
  EXPECT_EQ(index->packets[2].rank, -1);
  EXPECT_EQ(index->packets[3].rank, 0);
  const auto source = std::shared_ptr<const Source>(memory_source(bytes));
  auto decoder = VideoDecoder::open(std::make_shared<const Mp4Index>(*index), source);
  ASSERT_TRUE(decoder.ok());
  Bytes pixels((*decoder)->frame_shape().frame_bytes());
  ASSERT_TRUE((*decoder)->read({0, 1}, pixels).ok());
  EXPECT_EQ(bar_number(pixels, 96, 64, 3), 3);
  EXPECT_EQ(check_remuxable(*index, *source, {0, 30}).code(), StatusCode::failed_precondition);
}

TEST_F(Mp4Probe, HidesFramesAfterTheEditEnds) {
  Bytes bytes = fixture({});
  const std::size_t elst = payload_of(bytes, "elst");
  put_u32(bytes, elst + 8, 500);  // 0.5 s of the movie's 1000 ticks
  const auto index = probe(bytes);
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->frame_count(), 15);
  EXPECT_EQ(index->hidden_packets, 15U);
}

TEST_F(Mp4Probe, CountsTrailingGarbage) {
  Bytes bytes = fixture({});
  const std::size_t clean = bytes.size();
  bytes.insert(bytes.end(), 100, std::uint8_t{0});
  bytes.push_back(7);
  const auto index = probe(bytes);
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->trailing_bytes, bytes.size() - clean);
  EXPECT_EQ(index->frame_count(), 30);
}

TEST_F(Mp4Probe, SeesAudioBesideVideo) {
  const auto index = probe(fixture({.muxer = "mov", .audio = true}));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_TRUE(index->has_audio);
  EXPECT_EQ(index->frame_count(), 30);
}

TEST_F(Mp4Probe, RefusesFileWithoutVideoStream) {
  const auto index = probe(fixture({.muxer = "mov", .video = false, .audio = true}));
  EXPECT_EQ(index.status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(index.status().reason(), "NO_VIDEO_STREAM");
}

TEST_F(Mp4Probe, RefusesFragmentedFileSayingWhatToDo) {
  const auto index = probe(fixture({.movflags = "+frag_keyframe+empty_moov"}));
  EXPECT_EQ(index.status().code(), StatusCode::unimplemented);
  EXPECT_NE(index.status().message().find("ffmpeg"), std::string_view::npos);
}

TEST_F(Mp4Probe, NamesTheCutPacketOfTruncatedFile) {
  Bytes bytes = fixture({});
  bytes.resize(bytes.size() - 20);
  const auto index = probe(bytes);
  EXPECT_EQ(index.status().code(), StatusCode::data_loss);
  EXPECT_EQ(index.status().reason(), "TRUNCATED");
  EXPECT_TRUE(index.status().message().starts_with("clip.mp4: packet 29 of 30"))
      << index.status().message();
  const auto kept = probe(bytes, {.keep_truncated = true});
  ASSERT_TRUE(kept.ok());
  EXPECT_EQ(kept->truncated_packets, 1U);
}

TEST_F(Mp4Probe, SaysThatRecordingNeverFinished) {
  Bytes bytes = fixture({.movflags = ""});  // moov at the end
  ASSERT_TRUE(probe(bytes).ok());
  bytes.resize(bytes.size() / 2);
  const auto index = probe(bytes);
  EXPECT_EQ(index.status().code(), StatusCode::data_loss);
  EXPECT_EQ(index.status().reason(), "NO_MOOV");
  EXPECT_NE(index.status().message().find("'mdat'"), std::string_view::npos);
}

TEST_F(Mp4Probe, TellsLfsPointerFromVideo) {
  const std::string text =
      "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n";
  const auto index = probe(Bytes(text.begin(), text.end()));
  EXPECT_EQ(index.status().code(), StatusCode::data_loss);
  EXPECT_EQ(index.status().reason(), "LFS_POINTER");
  EXPECT_NE(index.status().message().find("git lfs pull"), std::string_view::npos);
}

TEST_F(Mp4Probe, RefusesEmptyAndForeignFiles) {
  EXPECT_EQ(probe({}).status().reason(), "NO_MOOV");
  EXPECT_EQ(probe(Bytes(4096, 0)).status().reason(), "NO_MOOV");
  EXPECT_EQ(probe(Bytes(3, 'x')).status().reason(), "NO_MOOV");
  EXPECT_EQ(probe_mp4(temp_.path() / "absent.mp4").status().code(), StatusCode::not_found);
}

TEST_F(Mp4Probe, RefusesTablesThatClaimMoreThanThereIs) {
  for (const std::string_view box : {"stsz", "stts", "stsc", "stco", "stss"}) {
    Bytes bytes = fixture({});
    put_u32(bytes, payload_of(bytes, box) + (box == "stsz" ? 8 : 4), 0x7fffffff);
    const auto index = probe(bytes);
    ASSERT_FALSE(index.ok()) << box;
    EXPECT_TRUE(index.status().reason() == "BAD_INDEX" ||
                index.status().code() == StatusCode::resource_exhausted)
        << box << ": " << index.status().to_string();
  }
}

TEST_F(Mp4Probe, KeepsToPacketLimit) {
  const auto index = probe(fixture({}), {.limits = {.max_video_packets = 29}});
  EXPECT_EQ(index.status().code(), StatusCode::resource_exhausted);
}

TEST_F(Mp4Probe, NeverFailsOtherwiseThanByStatusWhenCutAnywhere) {
  const Bytes bytes = fixture({.frames = 4, .bframes = 1});
  for (std::size_t size = 0; size < bytes.size(); size += 3) {
    EXPECT_FALSE(
        probe(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size))).ok());
  }
}

TEST_F(Mp4Probe, NamesCodecsByTheirStreams) {
  struct Case {
    const char* encoder;
    AVPixelFormat pix_fmt;
    const char* codec;
    const char* format;
    const char* extra = nullptr;
  };
  for (const Case& c :
       {Case{"libx265", AV_PIX_FMT_YUV420P10LE, "hevc", "yuv420p10le",
             "x265-params=log-level=none"},
        Case{"libx265", AV_PIX_FMT_GRAY12LE, "hevc", "gray12le", "x265-params=log-level=none"},
        Case{"libx264", AV_PIX_FMT_YUV444P, "h264", "yuv444p"},
        Case{"mpeg4", AV_PIX_FMT_YUV420P, "mpeg4", "yuv420p"},
        Case{"libvpx-vp9", AV_PIX_FMT_YUV420P, "vp9", "yuv420p"},
        Case{"libsvtav1", AV_PIX_FMT_YUV420P10LE, "av1", "yuv420p10le"}}) {
    if (!has_encoder(c.encoder)) continue;  // not in this build
    const Bytes bytes =
        fixture({.encoder = c.encoder, .pix_fmt = c.pix_fmt, .frames = 5, .extra = c.extra});
    ASSERT_FALSE(bytes.empty()) << c.encoder;
    const auto index = probe(bytes);
    ASSERT_TRUE(index.ok()) << c.encoder << ": " << index.status().to_string();
    EXPECT_EQ(index->params.codec, c.codec);
    EXPECT_EQ(index->params.pix_fmt, c.format);
    EXPECT_EQ(index->frame_count(), 5);
    EXPECT_EQ(index->fps, (Rational{30, 1}));
  }
}

TEST_F(Mp4Probe, ReadsColourTags) {
  const auto index = probe(fixture({.full_range = true}));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->params.color_range, 2);
  EXPECT_EQ(index->params.color_primaries, 1);
  EXPECT_EQ(index->params.color_transfer, 1);
  EXPECT_EQ(index->params.color_matrix, 1);
  EXPECT_EQ(index->params.pix_fmt, "yuv420p");
}

TEST_F(Mp4Probe, GivesGopsAsDecodeUnits) {
  const auto index = probe(fixture({.bframes = 2}));
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(index->decode_unit(0), (FrameRange{0, 12}));
  EXPECT_EQ(index->decode_unit(11), (FrameRange{0, 12}));
  EXPECT_EQ(index->decode_unit(12), (FrameRange{12, 24}));
  EXPECT_EQ(index->decode_unit(29), (FrameRange{24, 30}));
  EXPECT_EQ(index->decode_unit(1000), (FrameRange{24, 30}));
  EXPECT_EQ(index->seek_point(23).frame, 12U);
}

TEST_F(Mp4Probe, FindsPacketsOfFramesBetweenKeyframes) {
  const auto index = probe(fixture({.bframes = 2}));
  ASSERT_TRUE(index.ok());
  const auto middle = index->packets_of({12, 24});
  ASSERT_TRUE(middle.ok()) << middle.status().to_string();
  EXPECT_EQ(*middle, (PacketRange{12, 24}));
  EXPECT_EQ(index->packets_of({13, 24}).status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(index->packets_of({20, 31}).status().code(), StatusCode::out_of_range);
  EXPECT_EQ(index->packets_of({5, 5})->size(), 0U);
}

TEST_F(Mp4Probe, AcceptsOnlyClosedConstantClipsForRemux) {
  const Bytes closed = fixture({.bframes = 2});
  const auto index = probe(closed);
  EXPECT_TRUE(check_remuxable(*index, *view_source(closed), {0, 30}).ok());
  EXPECT_TRUE(check_remuxable(*index, *view_source(closed), {12, 24}).ok());
  EXPECT_FALSE(check_remuxable(*index, *view_source(closed), {13, 24}).ok());

  const Bytes open = fixture({.bframes = 2, .open_gop = true, .extra = "x264-params=open-gop=1"});
  const auto open_index = probe(open);
  ASSERT_TRUE(open_index.ok());
  for (std::size_t i = 1; i < 30; ++i) {
    if (!open_index->packets[i].keyframe) continue;
    EXPECT_FALSE(check_remuxable(*open_index, *view_source(open), {i, 30}).ok());
  }

  FixtureOptions uneven{.frames = 4};
  uneven.pts = {0, 1, 3, 4};
  const Bytes variable = fixture(uneven);
  EXPECT_EQ(check_remuxable(*probe(variable), *view_source(variable), {0, 4}).code(),
            StatusCode::failed_precondition);
}

TEST(Mp4ProbeReal, ReadsRecordedClipWithReorderedFrames) {
  ROPEWALK_REQUIRE_TESTDATA(root, "agilex_dataset");
  const auto path = root / "videos/chunk-000/observation.images.cam_high/episode_000000.mp4";
  const auto index = probe_mp4(path);
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->frame_count(), 398);
  EXPECT_EQ(index->fps, (Rational{30, 1}));
  EXPECT_EQ(index->first_pts, 0);
  EXPECT_EQ(index->reorder_delay, 2);
  EXPECT_EQ(index->rate, RateKind::exact);
}

TEST_F(Mp4Probe, ReaderGivesPacketsInDecodeOrder) {
  const Bytes bytes = fixture({.bframes = 2});
  const auto index = std::make_shared<const Mp4Index>(*probe(bytes));
  const auto source = std::shared_ptr<const Source>(memory_source(bytes));
  auto reader = Mp4PacketReader::open(index, source, {12, 24});
  ASSERT_TRUE(reader.ok());
  Bytes all;
  std::set<std::int64_t> ordinals;
  for (std::size_t i = 12; i < 24; ++i) {
    const auto packet = reader->next();
    ASSERT_TRUE(packet.ok() && packet->has_value());
    EXPECT_EQ((*packet)->data.size(), index->packets[i].size);
    EXPECT_EQ((*packet)->keyframe, i == 12);
    ordinals.insert((*packet)->ordinal);
    all.insert(all.end(), (*packet)->data.begin(), (*packet)->data.end());
  }
  EXPECT_FALSE(reader->next()->has_value());
  EXPECT_EQ(*ordinals.begin(), 0);
  EXPECT_EQ(*ordinals.rbegin(), 11);
  const std::uint64_t begin = index->packets[12].offset;
  EXPECT_TRUE(
      std::equal(all.begin(), all.end(), bytes.begin() + static_cast<std::ptrdiff_t>(begin)));
}

}  // namespace
}  // namespace ropewalk
