#pragma once
// VideoEncoder: RGB frames to an MP4 file with a constant rate, index in front.
// The packets are kept until finish(), since the index goes in front of them and a Sink only grows:
// in memory up to a limit, beyond it in a spill file the caller names.
// SVT-AV1 writes a banner to standard error unless the process was started with SVT_LOG=-1; libx264
// is silent.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "ropewalk/base/core/media.h"
#include "ropewalk/base/core/rational.h"
#include "ropewalk/base/io/file.h"

namespace ropewalk {

enum class VideoCodec { h264, av1 };

/// Spec: contract 4.5; the defaults give short closed GOPs for stepping through frames.
struct EncoderSettings {
  VideoCodec codec = VideoCodec::h264;
  std::string preset = "";  ///< "" = veryfast (libx264) or 12 (libsvtav1)
  int crf = 23;             ///< 0..51 for h264, 0..63 for av1; higher is smaller
  int gop = 10;             ///< frames per keyframe, closed; 1 = all keyframes
  int threads = 1;          ///< 1 is deterministic; callers parallelise over clips
  std::uint64_t max_buffer_bytes = 256ULL << 20;  ///< packets kept in memory until finish()
  std::filesystem::path spill_path =
      {};  ///< a file that does not exist; "" = error beyond the limit

  /// Errors: invalid_argument naming the field.
  Status validate() const;
};

/// What was written. `width` and `height` are those of the source; the stored size is even.
struct EncodedVideo {
  VideoParams params;
  std::int64_t frames = 0;
  std::uint64_t file_bytes = 0;
  int source_width = 0;
  int source_height = 0;
  bool padded_to_even = false;  ///< the last row or column was repeated
  std::string packet_sha256;    ///< over the payloads in decode order
};

/// Not thread-safe.
class VideoEncoder {
 public:
  /// Lifetime: `sink` outlives the encoder.
  /// Errors: invalid_argument (settings, size), unimplemented (codec not in this build, or AV1
  /// below 64 pixels).
  static Result<std::unique_ptr<VideoEncoder>> create(Sink& sink, int width, int height,
                                                      Rational fps,
                                                      const EncoderSettings& settings = {});
  ~VideoEncoder();
  VideoEncoder(const VideoEncoder&) = delete;
  VideoEncoder& operator=(const VideoEncoder&) = delete;

  /// Encodes the next frame. Shape: [height, width, 3] uint8, RGB, contiguous.
  Status write(ByteSpan rgb);

  /// Drains the codec and writes the whole file into the sink, which stays open.
  /// Errors: failed_precondition without frames; data_loss when frames in and packets out differ.
  Result<EncodedVideo> finish();

 private:
  struct Impl;
  explicit VideoEncoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk
