#pragma once
// NumPy arrays and scalars inside MessagePack: a map of four entries with binary keys,
// {__ndarray__: true, data: bytes, dtype: "<f4", shape: [T, D]}, and for a scalar
// {__npgeneric__: true, data: value, dtype: "<f4"}. This is the layout of openpi-client's
// msgpack_numpy; the PyPI package msgpack-numpy has another one.
// Spec: review-export-upload 7.5.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/base/core/dtype.h"
#include "ropewalk/base/core/nd_view.h"
#include "ropewalk/format/message/msgpack.h"

namespace ropewalk::msgpack {

/// What stands before and behind the bytes of one array, so that they can be written in parts.
struct NdFrame {
  Bytes head;
  std::uint64_t data_bytes = 0;
  Bytes tail;

  std::uint64_t total_bytes() const { return head.size() + data_bytes + tail.size(); }
};

/// Errors: invalid_argument for a type without fixed size or a negative shape; resource_exhausted
/// for more than 4 GiB - 1 of data, the limit of a MessagePack binary.
Result<NdFrame> ndarray_frame(DType dtype, std::span<const std::int64_t> shape);
/// Errors: as ndarray_frame; invalid_argument when `data` has another size than shape and type say.
Status append_ndarray(Bytes& out, const NdView& array);

/// Appends texts as a NumPy unicode array of the given shape: UCS-4, padded to the longest text.
/// Errors: invalid_argument for text that is not UTF-8 or ends in NUL, which NumPy cannot keep;
/// resource_exhausted above 4 GiB - 1.
Status append_text_array(Bytes& out, std::span<const std::string> texts,
                         std::span<const std::int64_t> shape);

/// Appends texts as an object array, {__eva_numpy_array__: true, dtype: "|O", shape, values}, which
/// keeps null and any bytes; `binary` writes the elements as binaries instead of strings.
Status append_object_array(Bytes& out, std::span<const std::optional<std::string>> texts,
                           std::span<const std::int64_t> shape, bool binary);

/// Appends a NumPy scalar; a boolean or number of JSON becomes its `data`.
Status append_scalar(Bytes& out, DType dtype, const Json& value);

/// A decoded array. Numeric: `dtype` and `data`, little-endian. Else `texts`, one per element: of
/// unicode (UTF-8), byte-string, or object arrays, nullopt for nil.
/// Lifetime: `data` is a view into the decoded bytes, or into `swapped` for foreign byte order; it
/// follows a move and not a copy.
struct NdArray {
  NdArray() = default;
  NdArray(NdArray&&) noexcept = default;
  NdArray& operator=(NdArray&&) noexcept = default;

  std::vector<std::int64_t> shape;
  DType dtype = DType::uint8;  ///< string or bytes when the elements stand in `texts`
  ByteSpan data;
  Bytes swapped;
  std::vector<std::optional<std::string>> texts;

  NdView view() const { return {.dtype = dtype, .shape = shape, .data = data}; }
};

/// Returns the array that a map encodes, or nullopt when the value is not such a map.
/// Keys may be binary or string, in any order; the map `__eva_numpy_array__` with its list `values`
/// is read as well. Errors: data_loss when entries are missing, or when shape times item size is
/// not the length of the data; unimplemented for a dtype that is none of ours; resource_exhausted.
Result<std::optional<NdArray>> as_ndarray(const Value& value, const Limits& limits = {});
/// Returns the plain value inside a NumPy scalar, or null when the value is not one.
const Value* as_scalar(const Value& value);

}  // namespace ropewalk::msgpack
