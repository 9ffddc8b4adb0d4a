// MP4 files: probing, packet reading, planning a remux, and decoding the first frames, under limits
// small enough that no input is slow for its size alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ropewalk/format/video/video.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  const Limits limits{.max_image_pixels = 1 << 18,
                      .max_array_bytes = 1 << 20,
                      .max_video_packets = 1 << 14,
                      .max_packet_bytes = 1 << 20};
  const std::shared_ptr<const Source> source = view_source(ByteSpan(data, size), "fuzz.mp4");
  auto probed = probe_mp4(*source, {.limits = limits, .keep_truncated = size % 2 == 1});
  if (!probed.ok()) return 0;
  const auto index = std::make_shared<const Mp4Index>(std::move(*probed));
  const auto frames = index->frame_count();
  const PacketRange all{0, index->packets.size()};
  if (frames < 0 || static_cast<std::size_t>(frames) + index->hidden_packets != all.size()) {
    std::abort();  // every packet is a frame or hidden
  }
  for (std::int64_t frame = 0; frame < std::min<std::int64_t>(frames, 64); ++frame) {
    const FrameRange unit = index->decode_unit(frame);
    if (frame < unit.begin || frame >= unit.end || unit.end > frames) std::abort();
    (void)index->packets_of(unit);
  }
  if (check_remuxable(*index, *source, all).ok()) {
    Mp4Plan plan{.params = index->params, .fps = index->fps, .packets = {}};
    Bytes out;
    const auto sink = memory_sink(out);
    if (plan.append_clip(*index, all).ok()) {
      auto writer = Mp4Writer::create(*sink, plan);
      if (writer.ok() && copy_packets(*index, *source, all, *writer).ok()) {
        if (!writer->finish().ok()) std::abort();
        // What we write, we read: the same frames in the same order.
        const auto again = probe_mp4(*view_source(out), {.limits = limits});
        if (again.ok() && again->order != index->order) std::abort();
      }
    }
  }
  auto decoder = VideoDecoder::open(index, source, {.limits = limits});
  if (!decoder.ok()) return 0;
  Bytes pixels((*decoder)->frame_shape().frame_bytes());
  for (std::int64_t frame = 0; frame < std::min<std::int64_t>(frames, 3); ++frame) {
    (void)(*decoder)->read({frame, frame + 1}, pixels);
  }
  if (frames > 3) (void)(*decoder)->read({frames - 1, frames}, pixels);
  return 0;
}
