// Opens arbitrary bytes as the database of a ROS 2 bag and reads it in both orders. And as the text
// of a metadata.yaml.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ropewalk/format/bag/bag.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::bag;

void read_all(const BagReader& bag, Query query) {
  std::uint64_t sum = 0;
  MessageReader messages = bag.messages(std::move(query));
  for (MessageView m; messages.next(m);) {
    if (m.channel == nullptr) std::abort();
    for (const std::uint8_t byte : m.data) sum += byte;
  }
  for (const Problem& p : messages.problems()) sum += to_line(p).size();
  volatile std::uint64_t keep = sum;
  static_cast<void>(keep);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes(data, size);
  if (!as_text(bytes).starts_with("SQLite format 3")) {
    const auto metadata = parse_bag_metadata(as_text(bytes));
    if (!metadata.ok()) return 0;
    // What is written is read again as the same.
    const std::string text = to_yaml(*metadata);
    const auto again = parse_bag_metadata(text);
    if (again.ok() && to_yaml(*again) != text) std::abort();
    return 0;
  }
  ReaderOptions options;
  options.limits.max_record_bytes = 1 << 20;
  const auto bag = BagReader::open(std::shared_ptr<const Source>(view_source(bytes)), options);
  if (!bag.ok()) return 0;
  read_all(*bag, {});
  read_all(*bag, {.order = Order::file});
  read_all(*bag, {.begin_time_ns = 5, .last_time_ns = 1000, .topics = {{"/a"}}});
  return 0;
}
