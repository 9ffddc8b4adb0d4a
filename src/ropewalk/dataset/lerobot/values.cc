#include <cmath>
#include <limits>

#include <arrow/array.h>
#include <arrow/compute/cast.h>
#include <arrow/scalar.h>
#include <arrow/type.h>
#include <arrow/util/float16.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/values_internal.h"

namespace ropewalk::lerobot {
namespace {

template <typename Typed>
void copy_numbers(const arrow::Array& array, std::vector<std::int64_t>& out) {
  const auto& typed = static_cast<const Typed&>(array);
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    out[static_cast<std::size_t>(i)] =
        typed.IsNull(i) ? kNoValue : static_cast<std::int64_t>(typed.Value(i));
  }
}

template <typename Typed>
Status copy_integral(const arrow::Array& array, std::vector<std::int64_t>& out) {
  const auto& typed = static_cast<const Typed&>(array);
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    auto& target = out[static_cast<std::size_t>(i)];
    target = kNoValue;
    if (typed.IsNull(i)) continue;
    const double value = static_cast<double>(typed.Value(i));
    if (std::isnan(value)) continue;
    if (value != std::nearbyint(value) || std::abs(value) > 9.0e15) {
      return data_loss(fmt::format("row {}: {} is no integer", i, value));
    }
    target = static_cast<std::int64_t>(value);
  }
  return ok_status();
}

template <typename Typed>
void copy_doubles(const arrow::Array& array, std::vector<double>& out) {
  const auto& typed = static_cast<const Typed&>(array);
  for (std::int64_t i = 0; i < typed.length(); ++i) {
    out[static_cast<std::size_t>(i)] = typed.IsNull(i) ? std::numeric_limits<double>::quiet_NaN()
                                                       : static_cast<double>(typed.Value(i));
  }
}

template <typename List>
Json list_value(const arrow::Array& array, std::int64_t row) {
  const auto& list = static_cast<const List&>(array);
  Json out = Json::array();
  const std::int64_t begin = list.value_offset(row);
  const std::int64_t end = begin + list.value_length(row);
  for (std::int64_t i = begin; i < end; ++i) out.push_back(json_value(*list.values(), i));
  return out;
}

}  // namespace

Result<std::vector<std::int64_t>> int64_values(const arrow::Array& array) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(array.length()), kNoValue);
  switch (array.type_id()) {
    case arrow::Type::INT8:
      copy_numbers<arrow::Int8Array>(array, out);
      return out;
    case arrow::Type::INT16:
      copy_numbers<arrow::Int16Array>(array, out);
      return out;
    case arrow::Type::INT32:
      copy_numbers<arrow::Int32Array>(array, out);
      return out;
    case arrow::Type::INT64:
      copy_numbers<arrow::Int64Array>(array, out);
      return out;
    case arrow::Type::UINT8:
      copy_numbers<arrow::UInt8Array>(array, out);
      return out;
    case arrow::Type::UINT16:
      copy_numbers<arrow::UInt16Array>(array, out);
      return out;
    case arrow::Type::UINT32:
      copy_numbers<arrow::UInt32Array>(array, out);
      return out;
    case arrow::Type::UINT64:
      copy_numbers<arrow::UInt64Array>(array, out);
      return out;
    case arrow::Type::BOOL:
      copy_numbers<arrow::BooleanArray>(array, out);
      return out;
    case arrow::Type::FLOAT:
      ROPEWALK_RETURN_IF_ERROR(copy_integral<arrow::FloatArray>(array, out));
      return out;
    case arrow::Type::DOUBLE:
      ROPEWALK_RETURN_IF_ERROR(copy_integral<arrow::DoubleArray>(array, out));
      return out;
    case arrow::Type::NA:
      return out;
    default:
      return data_loss(fmt::format("expected integers, found {}", array.type()->ToString()));
  }
}

Result<std::vector<double>> double_values(const arrow::Array& array) {
  std::vector<double> out(static_cast<std::size_t>(array.length()),
                          std::numeric_limits<double>::quiet_NaN());
  if (array.type_id() == arrow::Type::FLOAT) {
    copy_doubles<arrow::FloatArray>(array, out);
  } else if (array.type_id() == arrow::Type::DOUBLE) {
    copy_doubles<arrow::DoubleArray>(array, out);
  } else {
    ROPEWALK_ASSIGN_OR_RETURN(const auto integers, int64_values(array));
    for (std::size_t i = 0; i < integers.size(); ++i) {
      if (integers[i] != kNoValue) out[i] = static_cast<double>(integers[i]);
    }
  }
  return out;
}

std::optional<std::string_view> string_value(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return std::nullopt;
  switch (array.type_id()) {
    case arrow::Type::STRING:
    case arrow::Type::BINARY:
      return static_cast<const arrow::BinaryArray&>(array).GetView(row);
    case arrow::Type::LARGE_STRING:
    case arrow::Type::LARGE_BINARY:
      return static_cast<const arrow::LargeBinaryArray&>(array).GetView(row);
    case arrow::Type::STRING_VIEW:
    case arrow::Type::BINARY_VIEW:
      return static_cast<const arrow::BinaryViewArray&>(array).GetView(row);
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      const std::int64_t at = coded.GetValueIndex(row);
      if (at < 0 || at >= coded.dictionary()->length()) return std::nullopt;
      return string_value(*coded.dictionary(), at);
    }
    default:
      return std::nullopt;
  }
}

Json json_value(const arrow::Array& array, std::int64_t row) {
  if (array.IsNull(row)) return {};
  switch (array.type_id()) {
    case arrow::Type::BOOL:
      return static_cast<const arrow::BooleanArray&>(array).Value(row);
    case arrow::Type::INT8:
      return std::int64_t{static_cast<const arrow::Int8Array&>(array).Value(row)};
    case arrow::Type::INT16:
      return std::int64_t{static_cast<const arrow::Int16Array&>(array).Value(row)};
    case arrow::Type::INT32:
      return std::int64_t{static_cast<const arrow::Int32Array&>(array).Value(row)};
    case arrow::Type::INT64:
      return static_cast<const arrow::Int64Array&>(array).Value(row);
    case arrow::Type::UINT8:
      return std::int64_t{static_cast<const arrow::UInt8Array&>(array).Value(row)};
    case arrow::Type::UINT16:
      return std::int64_t{static_cast<const arrow::UInt16Array&>(array).Value(row)};
    case arrow::Type::UINT32:
      return std::int64_t{static_cast<const arrow::UInt32Array&>(array).Value(row)};
    case arrow::Type::UINT64:
      return Json(static_cast<const arrow::UInt64Array&>(array).Value(row));
    case arrow::Type::FLOAT:
      return static_cast<double>(static_cast<const arrow::FloatArray&>(array).Value(row));
    case arrow::Type::DOUBLE:
      return static_cast<const arrow::DoubleArray&>(array).Value(row);
    case arrow::Type::LIST:
    case arrow::Type::MAP:
      return list_value<arrow::ListArray>(array, row);
    case arrow::Type::LARGE_LIST:
      return list_value<arrow::LargeListArray>(array, row);
    case arrow::Type::FIXED_SIZE_LIST:
      return list_value<arrow::FixedSizeListArray>(array, row);
    case arrow::Type::STRUCT: {
      const auto& fields = static_cast<const arrow::StructArray&>(array);
      Json out = Json::object();
      for (int i = 0; i < fields.num_fields(); ++i) {
        // field() accounts for the offset of the parent.
        out.set(fields.type()->field(i)->name(), json_value(*fields.field(i), row));
      }
      return out;
    }
    case arrow::Type::EXTENSION:
      return json_value(*static_cast<const arrow::ExtensionArray&>(array).storage(), row);
    case arrow::Type::DICTIONARY: {
      const auto& coded = static_cast<const arrow::DictionaryArray&>(array);
      const std::int64_t at = coded.GetValueIndex(row);
      if (at < 0 || at >= coded.dictionary()->length()) return {};
      return json_value(*coded.dictionary(), at);
    }
    default:
      break;
  }
  if (const auto text = string_value(array, row)) return Json(*text);
  const auto scalar = array.GetScalar(row);
  return scalar.ok() ? Json((*scalar)->ToString()) : Json();
}

}  // namespace ropewalk::lerobot
