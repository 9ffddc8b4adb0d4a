// .msg schemas with CDR and with ROS 1 payloads: what decodes must encode to the same values, and
// its numbers must be the same in a row.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  const auto input = fuzz::split_message(ByteSpan(data, size));
  // The size of wide characters is found by trial, which odd payloads lead astray.
  const bool wide = as_text(input.schema).find("wstring") != std::string_view::npos;
  fuzz::run_message("cdr", "p/R", "ros2msg", input, !wide);
  fuzz::run_message("ros1", "p/R", "ros1msg", input, true);
  return 0;
}
