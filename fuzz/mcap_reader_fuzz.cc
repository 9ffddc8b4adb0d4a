// Opens arbitrary bytes as an MCAP file, with damaged chunks delivered, and reads everything there
// is to read in every order. All orders must deliver the same number of messages.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ropewalk/format/mcap/mcap.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::mcap;

std::uint64_t count_messages(const Reader& reader, const MessageQuery& query) {
  std::uint64_t count = 0;
  std::uint64_t last = 0;
  MessageReader messages = reader.messages(query);
  for (MessageView m; messages.next(m); ++count) {
    if (m.channel == nullptr) std::abort();
    // Every byte of the data must be readable.
    std::uint64_t sum = m.log_time;
    for (const std::uint8_t byte : m.data) sum += byte;
    last ^= sum;
  }
  if (!messages.status().ok()) std::abort();
  for (const Problem& p : messages.problems()) last += to_line(p).size();
  volatile std::uint64_t keep = last;
  static_cast<void>(keep);
  return count;
}

void walk_records(const Source& source) {
  Limits limits;
  limits.max_record_bytes = 1 << 20;
  RecordReader records(source, 0, source.size(), 4096, limits);
  for (;;) {
    const auto head = records.next();
    if (!head.ok() || !head->has_value()) return;
    const auto content = records.content();
    if (!content.ok()) return;
    std::size_t at = 0;
    static_cast<void>(parse_attachment(*content).ok());
    static_cast<void>(parse_chunk_head(*content, &at).ok());
    static_cast<void>(parse_statistics(*content).ok());
    static_cast<void>(parse_summary_offset(*content).ok());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteSpan bytes(data, size);
  const std::shared_ptr<const Source> source = view_source(bytes);
  walk_records(*source);
  ReaderOptions options;
  options.limits.max_chunk_bytes = 1 << 20;
  options.limits.max_record_bytes = 1 << 20;
  options.lenient = true;
  options.cache_bytes = 4096;
  const auto reader = Reader::open(source, options);
  if (!reader.ok()) return 0;
  const std::uint64_t in_file_order = count_messages(*reader, {.order = Order::file});
  if (count_messages(*reader, {}) != in_file_order) std::abort();
  if (count_messages(*reader, {.order = Order::reverse_log_time}) != in_file_order) std::abort();
  count_messages(*reader, {.begin_time = 5, .last_time = 1000, .topics = {{"a", "b"}}});

  MessageLoader loader = reader->loader();
  for (const auto& [id, channel] : reader->channels()) {
    const auto refs = reader->locate(channel.topic);
    if (!refs.ok()) continue;
    for (const MessageRef& ref : *refs) static_cast<void>(loader.load(ref).ok());
  }
  for (const MetadataIndex& index : reader->metadata()) {
    static_cast<void>(reader->read_metadata(index).ok());
  }
  for (const AttachmentIndex& index : reader->attachments()) {
    static_cast<void>(reader->read_attachment(index, [](ByteSpan) { return ok_status(); }).ok());
  }
  return 0;
}
