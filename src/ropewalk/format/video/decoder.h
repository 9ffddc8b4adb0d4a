#pragma once
// VideoDecoder: frames of an indexed MP4 by ordinal, as pixels in the caller's memory.
// A frame is found by its presentation rank, never by seconds; B-frames, negative decode times and
// edit lists are the index's business. What cannot be decoded is an error naming the frame, never a
// missing or repeated picture.
#include <memory>

#include "ropewalk/base/core/media.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk {

struct DecodeOptions {
  FrameForm form = {};
  int threads = 1;     ///< inside the codec; callers parallelise over clips instead
  Limits limits = {};  ///< max_image_pixels bounds a picture, max_packet_bytes a packet
};

/// Not thread-safe; open one per thread over a shared index and source. Costs a few hundred
/// kilobytes plus the codec's reference pictures.
class VideoDecoder {
 public:
  /// Errors: unimplemented (no decoder for the codec), invalid_argument (crop or size outside the
  /// picture), resource_exhausted (Limits).
  static Result<std::unique_ptr<VideoDecoder>> open(std::shared_ptr<const Mp4Index> index,
                                                    std::shared_ptr<const Source> source,
                                                    DecodeOptions options = {});
  /// Opens, probes and decodes one file.
  static Result<std::unique_ptr<VideoDecoder>> open(const std::filesystem::path& path,
                                                    DecodeOptions options = {});
  ~VideoDecoder();
  VideoDecoder(const VideoDecoder&) = delete;
  VideoDecoder& operator=(const VideoDecoder&) = delete;

  const Mp4Index& index() const;
  std::int64_t frame_count() const;
  /// Shape of each frame delivered. hwc and chw: RGB, uint8, converted with the stream's matrix and
  /// range (BT.601 limited where unspecified). luma: the stored Y samples without range expansion,
  /// uint8, or uint16 for formats of more than 8 bits.
  const FrameShape& frame_shape() const;

  /// Decodes the frames `frames` one after the other into `out`.
  /// Reading forward goes on where the last call stopped; anything else seeks to the keyframe
  /// before. Shape: [frames.size(), …frame_shape()], contiguous; `out` must have exactly that many
  /// bytes. Errors: out_of_range, invalid_argument; data_loss naming the frame and packet that does
  /// not decode.
  Status read(FrameRange frames, MutableByteSpan out);

  /// Decodes everything and throws the pixels away; returns how many of the frames have a picture.
  /// A whole file gives frame_count(). Errors: those of Source; a damaged frame is not counted.
  Result<std::int64_t> count_decodable();

  /// Returns the smallest range of frames around `frame` that decodes on its own.
  FrameRange decode_unit(std::int64_t frame) const;

 private:
  struct Impl;
  explicit VideoDecoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Decodes everything and throws the pixels away: the proof that a file has `frame_count()`
/// pictures. Errors: as read.
Result<std::int64_t> count_decodable_frames(std::shared_ptr<const Mp4Index> index,
                                            std::shared_ptr<const Source> source, int threads = 1);

}  // namespace ropewalk
