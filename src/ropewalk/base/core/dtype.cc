#include "ropewalk/base/core/dtype.h"

#include <array>

namespace ropewalk {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::string_view numpy;
  std::size_t size;
};

constexpr std::array<Row, 14> kRows{{
    {DType::boolean, "bool", "|b1", 1},
    {DType::int8, "int8", "|i1", 1},
    {DType::int16, "int16", "<i2", 2},
    {DType::int32, "int32", "<i4", 4},
    {DType::int64, "int64", "<i8", 8},
    {DType::uint8, "uint8", "|u1", 1},
    {DType::uint16, "uint16", "<u2", 2},
    {DType::uint32, "uint32", "<u4", 4},
    {DType::uint64, "uint64", "<u8", 8},
    {DType::float16, "float16", "<f2", 2},
    {DType::float32, "float32", "<f4", 4},
    {DType::float64, "float64", "<f8", 8},
    {DType::string, "string", "", 0},
    {DType::bytes, "bytes", "", 0},
}};

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
std::size_t dtype_size(DType dtype) { return row(dtype).size; }
std::string_view dtype_numpy(DType dtype) { return row(dtype).numpy; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.name == name) return r.dtype;
  }
  return std::nullopt;
}

std::optional<DType> dtype_from_numpy(std::string_view text, bool& big_endian) {
  if (text.size() < 2) return std::nullopt;
  big_endian = text.front() == '>';
  for (const Row& r : kRows) {
    if (!r.numpy.empty() && r.numpy.substr(1) == text.substr(1)) {
      if (r.size == 1) big_endian = false;
      return r.dtype;
    }
  }
  return std::nullopt;
}

}  // namespace ropewalk
