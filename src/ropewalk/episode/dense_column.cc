#include "ropewalk/episode/dense_column.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include <arrow/api.h>
#include <arrow/compute/cast.h>
#include <fmt/format.h>

#include "ropewalk/episode/arrow_types.h"

namespace ropewalk {
namespace {

std::optional<DType> dtype_of(arrow::Type::type type) {
  switch (type) {
    case arrow::Type::BOOL:
      return DType::boolean;
    case arrow::Type::INT8:
      return DType::int8;
    case arrow::Type::INT16:
      return DType::int16;
    case arrow::Type::INT32:
      return DType::int32;
    case arrow::Type::INT64:
      return DType::int64;
    case arrow::Type::UINT8:
      return DType::uint8;
    case arrow::Type::UINT16:
      return DType::uint16;
    case arrow::Type::UINT32:
      return DType::uint32;
    case arrow::Type::UINT64:
      return DType::uint64;
    case arrow::Type::HALF_FLOAT:
      return DType::float16;
    case arrow::Type::FLOAT:
      return DType::float32;
    case arrow::Type::DOUBLE:
      return DType::float64;
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
      return DType::string;
    case arrow::Type::BINARY:
    case arrow::Type::LARGE_BINARY:
      return DType::bytes;
    default:
      return std::nullopt;
  }
}

/// Part [begin, end) of an array: one level of nested lists.
struct Level {
  std::shared_ptr<arrow::Array> values;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

template <typename List>
Result<std::int64_t> enter_list(const List& list, Level& level) {
  const std::int64_t rows = level.end - level.begin;
  std::int64_t extent = rows > 0 ? list.value_length(level.begin) : 0;
  if constexpr (std::is_same_v<List, arrow::FixedSizeListArray>) extent = list.value_length(0);
  for (std::int64_t i = level.begin; i < level.end; ++i) {
    if (list.IsNull(i)) return data_loss(fmt::format("row {} is null", i - level.begin));
    if (list.value_length(i) != extent) {
      return data_loss(fmt::format("row {} has {} values, expected {} as in the first row",
                                   i - level.begin, list.value_length(i), extent));
    }
  }
  // A null row may own values that are skipped; without nulls the ranges follow each other.
  const std::int64_t first = rows > 0 ? list.value_offset(level.begin) : 0;
  level = {list.values(), first, first + rows * extent};
  return extent;
}

Result<std::int64_t> enter(Level& level) {
  const std::shared_ptr<arrow::Array> values = level.values;
  switch (values->type_id()) {
    case arrow::Type::LIST:
      return enter_list(static_cast<const arrow::ListArray&>(*values), level);
    case arrow::Type::LARGE_LIST:
      return enter_list(static_cast<const arrow::LargeListArray&>(*values), level);
    default:
      return enter_list(static_cast<const arrow::FixedSizeListArray&>(*values), level);
  }
}

bool is_nested_list(arrow::Type::type type) {
  return type == arrow::Type::LIST || type == arrow::Type::LARGE_LIST ||
         type == arrow::Type::FIXED_SIZE_LIST;
}

template <typename Array>
void copy_texts(const arrow::Array& values, std::int64_t begin, std::int64_t end,
                DenseColumn& out) {
  const auto& texts = static_cast<const Array&>(values);
  for (std::int64_t i = begin; i < end; ++i) {
    out.texts.push_back(texts.IsNull(i) ? std::nullopt : std::optional(texts.GetString(i)));
  }
}

Status copy_texts(const Level& level, DenseColumn& out) {
  switch (level.values->type_id()) {
    case arrow::Type::STRING:
      copy_texts<arrow::StringArray>(*level.values, level.begin, level.end, out);
      return ok_status();
    case arrow::Type::LARGE_STRING:
      copy_texts<arrow::LargeStringArray>(*level.values, level.begin, level.end, out);
      return ok_status();
    case arrow::Type::BINARY:
      copy_texts<arrow::BinaryArray>(*level.values, level.begin, level.end, out);
      return ok_status();
    default:
      copy_texts<arrow::LargeBinaryArray>(*level.values, level.begin, level.end, out);
      return ok_status();
  }
}

Status from_arrow(const arrow::Status& status) {
  if (status.IsOutOfMemory()) return resource_exhausted(status.ToString());
  return data_loss(status.ToString());
}

std::shared_ptr<arrow::Buffer> owned(const Bytes& bytes) {
  return arrow::Buffer::FromString(std::string(as_text(bytes)));
}

Result<std::shared_ptr<arrow::Array>> flat_array(const DenseColumn& column) {
  std::shared_ptr<arrow::Array> array;
  arrow::Status status;
  if (column.dtype == DType::string || column.dtype == DType::bytes) {
    arrow::StringBuilder texts;
    arrow::BinaryBuilder blobs;
    const bool text = column.dtype == DType::string;
    for (const auto& one : column.texts) {
      if (text) {
        status &= one ? texts.Append(*one) : texts.AppendNull();
      } else {
        status &= one ? blobs.Append(*one) : blobs.AppendNull();
      }
    }
    if (status.ok()) status = text ? texts.Finish(&array) : blobs.Finish(&array);
  } else if (column.dtype == DType::boolean) {
    arrow::BooleanBuilder builder;
    status =
        builder.AppendValues(column.data.data(), static_cast<std::int64_t>(column.data.size()));
    if (status.ok()) status = builder.Finish(&array);
  } else {
    const auto count = static_cast<std::int64_t>(column.data.size() / dtype_size(column.dtype));
    array = arrow::MakeArray(
        arrow::ArrayData::Make(arrow_type(column.dtype), count, {nullptr, owned(column.data)}, 0));
  }
  if (!status.ok()) return from_arrow(status);
  return array;
}

}  // namespace

Result<DenseColumn> dense_column(const arrow::Array& column) {
  DenseColumn out;
  out.shape.push_back(column.length());
  Level level{arrow::MakeArray(column.data()), 0, column.length()};
  while (is_nested_list(level.values->type_id())) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t extent, enter(level));
    out.shape.push_back(extent);
  }
  const auto dtype = dtype_of(level.values->type_id());
  if (!dtype) {
    return unimplemented(
        fmt::format("values of type {} have no array form", column.type()->ToString()));
  }
  out.dtype = *dtype;
  if (dtype_size(*dtype) == 0) {
    ROPEWALK_RETURN_IF_ERROR(copy_texts(level, out));
    return out;
  }
  const std::int64_t count = level.end - level.begin;
  const std::int64_t per_row =
      column.length() > 0 ? std::max<std::int64_t>(1, count / column.length()) : 1;
  if (level.values->null_count() > 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      if (level.values->IsNull(level.begin + i)) {
        return data_loss(fmt::format("row {} is null", i / per_row));
      }
    }
  }
  const std::size_t item = dtype_size(*dtype);
  out.data.resize(static_cast<std::size_t>(count) * item);
  if (*dtype == DType::boolean) {
    const auto& values = static_cast<const arrow::BooleanArray&>(*level.values);
    for (std::int64_t i = 0; i < count; ++i) {
      out.data[static_cast<std::size_t>(i)] = values.Value(level.begin + i) ? 1 : 0;
    }
  } else if (count > 0) {
    const auto& data = *level.values->data();
    const std::uint8_t* from =
        data.buffers[1]->data() + static_cast<std::size_t>(data.offset + level.begin) * item;
    std::memcpy(out.data.data(), from, out.data.size());
  }
  return out;
}

Result<std::shared_ptr<arrow::Array>> arrow_column(const DenseColumn& column,
                                                   const Feature& feature) {
  const auto mismatch = [&] {
    return data_loss(fmt::format("expected shape [T, {}], found [{}]",
                                 fmt::join(feature.shape, ", "), fmt::join(column.shape, ", ")));
  };
  if (column.shape.empty()) return mismatch();
  const std::span<const std::int64_t> row(column.shape.begin() + 1, column.shape.end());
  const bool scalar = feature.shape == std::vector<std::int64_t>{1};
  // Lists of no rows do not tell their lengths.
  const bool fits =
      std::ranges::equal(row, feature.shape) || (scalar && row.empty()) || column.shape[0] == 0;
  const auto count = element_count(column.shape);
  const std::size_t item = dtype_size(column.dtype);
  const std::size_t held = item == 0 ? column.texts.size() : column.data.size() / item;
  if (!fits || !count || !std::cmp_equal(held, *count)) return mismatch();

  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<arrow::Array> array, flat_array(column));
  const auto declared = arrow_type(feature.dtype);
  if (!array->type()->Equals(*declared)) {
    auto cast = arrow::compute::Cast(*array, declared);
    if (!cast.ok()) return from_arrow(cast.status());
    array = *cast;
  }
  if (scalar) return array;
  for (std::size_t axis = feature.shape.size(); axis-- > 0;) {
    const auto extent = static_cast<std::int32_t>(feature.shape[axis]);
    std::int64_t length = column.shape[0];
    for (std::size_t i = 0; i < axis; ++i) length *= feature.shape[i];
    const auto type = arrow::fixed_size_list(array->type(), extent);
    array = std::make_shared<arrow::FixedSizeListArray>(type, length, array);
  }
  return array;
}

}  // namespace ropewalk
