// Reflection schemas with FlatBuffers payloads.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  fuzz::run_message("flatbuffer", "f.R", "flatbuffer", fuzz::split_message(ByteSpan(data, size)),
                    false);
  return 0;
}
