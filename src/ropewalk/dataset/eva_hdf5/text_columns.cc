#include <utility>

#include <fmt/format.h>

#include "ropewalk/dataset/eva_hdf5/text_columns_internal.h"
#include "ropewalk/format/message/msgpack.h"
#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk::eva_hdf5 {
namespace {

constexpr std::string_view kMark = "__eva_numpy_array__";

/// Reads the marked map, which may hold nulls where a NumPy array of texts may not.
Result<DenseColumn> unpack_marked(const msgpack::Value& value) {
  const msgpack::Value* shape = value.find("shape");
  const msgpack::Value* values = value.find("values");
  if (shape == nullptr || shape->as_array() == nullptr || values == nullptr ||
      values->as_array() == nullptr) {
    return data_loss(fmt::format("expected a map with {}, shape and values", kMark));
  }
  DenseColumn out;
  out.dtype = DType::string;
  for (const msgpack::Value& extent : *shape->as_array()) {
    const auto length = extent.as_int64();
    if (!length || *length < 0) return data_loss("shape: expected lengths");
    out.shape.push_back(*length);
  }
  for (const msgpack::Value& one : *values->as_array()) {
    if (one.as_binary()) out.dtype = DType::bytes;
    const auto text = one.as_text();
    if (!text && !one.is_nil()) {
      return data_loss(fmt::format("values: expected text, found {}", one.type_name()));
    }
    out.texts.push_back(text ? std::optional(std::string(*text)) : std::nullopt);
  }
  return out;
}

}  // namespace

Result<Bytes> pack_texts(const DenseColumn& column) {
  Bytes bytes;
  msgpack::Writer out(bytes);
  ROPEWALK_RETURN_IF_ERROR(out.map_head(4));
  ROPEWALK_RETURN_IF_ERROR(out.string(kMark));
  out.boolean(true);
  ROPEWALK_RETURN_IF_ERROR(out.string("dtype"));
  ROPEWALK_RETURN_IF_ERROR(out.string("|O"));
  ROPEWALK_RETURN_IF_ERROR(out.string("shape"));
  ROPEWALK_RETURN_IF_ERROR(out.array_head(column.shape.size()));
  for (const std::int64_t extent : column.shape) out.integer(extent);
  ROPEWALK_RETURN_IF_ERROR(out.string("values"));
  ROPEWALK_RETURN_IF_ERROR(out.array_head(column.texts.size()));
  for (const auto& text : column.texts) {
    if (!text) {
      out.nil();
    } else if (column.dtype == DType::bytes) {
      ROPEWALK_RETURN_IF_ERROR(out.binary(as_bytes(*text)));
    } else {
      ROPEWALK_RETURN_IF_ERROR(out.string(*text));
    }
  }
  return bytes;
}

Result<DenseColumn> unpack_texts(ByteSpan bytes, const Limits& limits) {
  ROPEWALK_ASSIGN_OR_RETURN(const msgpack::Value value, msgpack::decode(bytes, limits));
  DenseColumn out;
  if (value.find(kMark) != nullptr) {
    ROPEWALK_ASSIGN_OR_RETURN(out, unpack_marked(value));
  } else {
    ROPEWALK_ASSIGN_OR_RETURN(auto array, msgpack::as_ndarray(value, limits));
    if (!array || dtype_is_numeric(array->dtype)) return data_loss("expected an array of texts");
    out.dtype = array->dtype;
    out.shape = std::move(array->shape);
    for (std::string& text : array->texts) out.texts.emplace_back(std::move(text));
  }
  const auto count = element_count(out.shape);
  if (!count || !std::cmp_equal(out.texts.size(), *count)) {
    return data_loss(fmt::format("shape [{}] does not fit {} values", fmt::join(out.shape, ", "),
                                 out.texts.size()));
  }
  return out;
}

}  // namespace ropewalk::eva_hdf5
