// Decodes arbitrary bytes as MessagePack, as NumPy arrays at any depth, and as JSON; what has a
// JSON form must be written again and read back as the same JSON.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ropewalk/format/message/message.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::msgpack;

void read_arrays(const Value& value, const Limits& limits) {
  const auto array = as_ndarray(value, limits);
  if (array.ok() && array->has_value()) {
    const auto count = element_count((*array)->shape);
    if (!count.has_value()) std::abort();
    const auto elements = static_cast<std::uint64_t>(*count);
    const bool texts = (*array)->dtype == DType::string || (*array)->dtype == DType::bytes;
    if (texts ? (*array)->texts.size() != elements
              : (*array)->data.size() != elements * dtype_size((*array)->dtype)) {
      std::abort();
    }
  }
  if (const Value::Array* elements = value.as_array()) {
    for (const Value& element : *elements) read_arrays(element, limits);
  }
  if (const Value::Map* map = value.as_map()) {
    for (const auto& [key, element] : *map) read_arrays(element, limits);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Limits limits;
  limits.max_array_bytes = 1 << 20;
  const auto value = decode(ByteSpan(data, size), limits);
  if (!value.ok()) return 0;
  read_arrays(*value, limits);
  const auto json = to_json(*value, limits);
  if (!json.ok()) return 0;
  Bytes again;
  if (!Writer(again).json(*json).ok()) std::abort();
  const auto second = decode(again, limits);
  if (!second.ok()) return 0;  // arrays become lists, which may exceed the limit of values
  const auto same = to_json(*second, limits);
  // NaN is not equal to itself; texts are.
  if (same.ok() && same->dump() != json->dump()) std::abort();
  return 0;
}
