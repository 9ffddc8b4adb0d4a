// Opens arbitrary bytes as a ROS 1 bag and reads it in both orders, strictly and not. Both orders
// must deliver the same number of messages.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ropewalk/format/bag/bag.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::bag;

std::uint64_t count_messages(const BagReader& bag, Query query) {
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  MessageReader messages = bag.messages(std::move(query));
  for (MessageView m; messages.next(m); ++count) {
    if (m.channel == nullptr) std::abort();
    // Every byte of the data must be readable.
    for (const std::uint8_t byte : m.data) sum += byte;
  }
  if (!messages.status().ok()) std::abort();
  for (const Problem& p : messages.problems()) sum += to_line(p).size();
  volatile std::uint64_t keep = sum;
  static_cast<void>(keep);
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const bool lenient : {false, true}) {
    ReaderOptions options;
    options.limits.max_chunk_bytes = 1 << 20;
    options.limits.max_record_bytes = 1 << 20;
    options.cache_bytes = 4096;
    options.lenient = lenient;
    // Databases have a target of their own, and zstd files would be written to disk.
    const ByteSpan bytes(data, size);
    if (!as_text(bytes).starts_with("#ROSBAG")) return 0;
    const auto bag = BagReader::open(std::shared_ptr<const Source>(view_source(bytes)), options);
    if (!bag.ok()) return 0;
    const std::uint64_t by_time = count_messages(*bag, {});
    if (count_messages(*bag, {.order = Order::file}) != by_time) std::abort();
    count_messages(*bag, {.begin_time_ns = 5, .last_time_ns = 1000, .topics = {{"/a"}}});
    for (const Channel& channel : bag->channels()) {
      static_cast<void>(ros1_md5(channel.type, channel.schema).ok());
    }
  }
  return 0;
}
