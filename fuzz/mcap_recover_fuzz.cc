// Any bytes, recovered: whatever comes out must be a whole file that reads back as it was written,
// and must hold every message that a lenient reader delivers.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "ropewalk/format/mcap/mcap.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  using namespace ropewalk::mcap;
  const std::shared_ptr<const Source> source = view_source(ByteSpan(data, size));
  RecoverOptions options;
  options.limits.max_chunk_bytes = 1 << 20;
  options.limits.max_record_bytes = 1 << 20;
  Bytes out;
  const auto sink = memory_sink(out);
  const auto report = recover(source, *sink, options);
  if (!report.ok()) return 0;
  const auto verified = verify_file(view_source(out));
  if (!verified.ok()) std::abort();
  if (report->files > 1) return 0;
  ReaderOptions lenient;
  lenient.limits = options.limits;
  lenient.lenient = true;
  const auto reader = Reader::open(source, lenient);
  if (!reader.ok()) std::abort();
  std::uint64_t count = 0;
  MessageReader messages = reader->messages({.order = Order::file});
  for (MessageView m; messages.next(m);) ++count;
  if (count != report->written.message_count) std::abort();
  return 0;
}
