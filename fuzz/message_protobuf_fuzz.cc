// FileDescriptorSets with protobuf payloads: what decodes must decode again after it was encoded.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  fuzz::run_message("protobuf", "r.R", "protobuf", fuzz::split_message(ByteSpan(data, size)),
                    false);
  return 0;
}
