// IDL schemas with CDR payloads of every kind.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  const auto input = fuzz::split_message(ByteSpan(data, size));
  fuzz::run_message("cdr", "R", "omgidl", input, false);
  fuzz::run_message("cdr", "p/msg/R", "ros2idl", input, false);
  return 0;
}
