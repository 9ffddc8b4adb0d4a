#pragma once
// Video: MP4 files of one video track, from bytes to packets to pixels and back.
//
//   probe.h       probe_mp4: stream parameters and the packet table, by our own bounded box parser
//   packets.h     Mp4PacketReader: encoded packets by ranged reads
//   decoder.h     VideoDecoder: frames by ordinal as RGB or luma, in the caller's memory
//   encoder.h     VideoEncoder: RGB frames to H.264 (or AV1) in MP4
//   mp4_writer.h  Mp4Writer: the muxer; packet remux of many clips into one file
//   stream_writer.h  VideoStreamWriter: streamed frames with times of their own into MP4
//
// Typical reading:
//   auto source = open_source(path);                        // Result<std::unique_ptr<Source>>
//   auto index = probe_mp4(**source);                       // about a millisecond
//   auto decoder = VideoDecoder::open(std::make_shared<const Mp4Index>(std::move(*index)),
//                                     std::shared_ptr<const Source>(std::move(*source)));
//   (*decoder)->read({0, 10}, pixels);                      // frames 0..9 as [10, H, W, 3]
//
// Typical remux of clips into one file: fill an Mp4Plan with append_clip, Mp4Writer::create, one
// copy_packets per clip, finish.
//
// Limits: files are not fragmented and hold one sample description; sizes and counts are bounded by
// Limits. Codecs follow the FFmpeg build for decoding; the muxer writes h264, hevc, av1, vp9,
// mpeg4. Spec: ISO/IEC 14496-12 and 14496-15; the codec bindings of AV1 and VP9.
#include "ropewalk/format/video/decoder.h"
#include "ropewalk/format/video/encoder.h"
#include "ropewalk/format/video/mp4_writer.h"
#include "ropewalk/format/video/packets.h"
#include "ropewalk/format/video/probe.h"
#include "ropewalk/format/video/stream_writer.h"
