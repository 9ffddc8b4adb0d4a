#include "ropewalk/episode/arrow_types.h"

#include <arrow/type.h>

namespace ropewalk {

std::shared_ptr<arrow::DataType> arrow_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return arrow::boolean();
    case DType::int8:
      return arrow::int8();
    case DType::int16:
      return arrow::int16();
    case DType::int32:
      return arrow::int32();
    case DType::int64:
      return arrow::int64();
    case DType::uint8:
      return arrow::uint8();
    case DType::uint16:
      return arrow::uint16();
    case DType::uint32:
      return arrow::uint32();
    case DType::uint64:
      return arrow::uint64();
    case DType::float16:
      return arrow::float16();
    case DType::float32:
      return arrow::float32();
    case DType::float64:
      return arrow::float64();
    case DType::string:
      return arrow::utf8();
    case DType::bytes:
      return arrow::binary();
  }
  return arrow::null();
}

}  // namespace ropewalk
