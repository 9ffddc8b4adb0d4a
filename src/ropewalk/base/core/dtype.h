#pragma once
// DType: the element types that features and arrays may have, with their names and sizes.
#include <cstdint>
#include <optional>
#include <string_view>

namespace ropewalk {

enum class DType : std::uint8_t {
  boolean,
  int8,
  int16,
  int32,
  int64,
  uint8,
  uint16,
  uint32,
  uint64,
  float16,
  float32,
  float64,
  string,  ///< variable-length UTF-8
  bytes,   ///< variable-length binary
};

/// Returns the LeRobot and NumPy name: "bool", "int64", "float32", "string", …
std::string_view dtype_name(DType dtype);
/// Returns the type of a name, or nullopt for a name that is none of them.
std::optional<DType> dtype_from_name(std::string_view name);
/// Units: bytes per element; 0 for the variable-length types.
std::size_t dtype_size(DType dtype);
/// Returns the NumPy array-protocol string, little-endian: "|b1", "<i8", "<f4"; empty for string,
/// bytes.
std::string_view dtype_numpy(DType dtype);
/// Reads a NumPy array-protocol string; `big_endian` is set when the bytes must be swapped.
std::optional<DType> dtype_from_numpy(std::string_view text, bool& big_endian);
inline bool dtype_is_numeric(DType dtype) { return dtype_size(dtype) != 0; }
inline bool dtype_is_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::float32 || dtype == DType::float64;
}

}  // namespace ropewalk
