// CBOR, MessagePack, and JSON with a JSON Schema.
#include "fuzz/message_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  const auto input = fuzz::split_message(ByteSpan(data, size));
  fuzz::run_message("cbor", "", "", {.schema = {}, .payload = input.payload}, false);
  fuzz::run_message("msgpack", "", "", {.schema = {}, .payload = input.payload}, false);
  fuzz::run_message("json", "", "jsonschema", input, false);
  return 0;
}
