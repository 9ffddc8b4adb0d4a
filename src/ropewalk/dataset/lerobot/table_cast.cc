#include <arrow/api.h>
#include <arrow/compute/cast.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/table_cast_internal.h"
#include "ropewalk/episode/arrow_types.h"

namespace ropewalk::lerobot {
namespace {

Status missing(std::int64_t row) {
  return data_loss(fmt::format("row {} is null", row)).with_reason("value_missing");
}

Status invalid(const std::string& message) {
  return data_loss(message).with_reason("value_invalid");
}

Status from_arrow(const arrow::Status& status) {
  if (status.IsOutOfMemory()) return resource_exhausted(status.message());
  return invalid(status.message());
}

/// One level of lists taken off: the values of all rows, and how many each row has.
struct Level {
  std::shared_ptr<arrow::Array> values;
  std::int64_t each = 0;
};

/// `lists` are lists of any kind; `per_row` of them belong to one row of the table.
template <typename List>
Result<Level> unwrap(const List& lists, std::int64_t per_row, std::int64_t first_row) {
  const auto row_of = [&](std::int64_t i) {
    return first_row + i / std::max<std::int64_t>(1, per_row);
  };
  if (lists.null_count() > 0) {
    for (std::int64_t i = 0; i < lists.length(); ++i) {
      if (lists.IsNull(i)) return missing(row_of(i));
    }
  }
  Level out;
  if (lists.length() == 0) {
    out.values = lists.values()->Slice(0, 0);
    return out;
  }
  out.each = lists.value_length(0);
  for (std::int64_t i = 1; i < lists.length(); ++i) {
    if (lists.value_length(i) != out.each) {
      return invalid(fmt::format("row {}: list of {} where row {} has {}", row_of(i),
                                 lists.value_length(i), first_row, out.each));
    }
  }
  const std::int64_t begin = lists.value_offset(0);
  std::int64_t total = 0;
  if (__builtin_mul_overflow(out.each, lists.length(), &total) || begin < 0 ||
      begin + total > lists.values()->length()) {
    return invalid("list offsets leave the values");
  }
  out.values = lists.values()->Slice(begin, total);
  return out;
}

Result<Level> unwrap_any(const arrow::Array& array, std::int64_t per_row, std::int64_t first_row) {
  switch (array.type_id()) {
    case arrow::Type::LIST:
      return unwrap(static_cast<const arrow::ListArray&>(array), per_row, first_row);
    case arrow::Type::LARGE_LIST:
      return unwrap(static_cast<const arrow::LargeListArray&>(array), per_row, first_row);
    case arrow::Type::FIXED_SIZE_LIST:
      return unwrap(static_cast<const arrow::FixedSizeListArray&>(array), per_row, first_row);
    default:
      return invalid("no list");
  }
}

bool is_list(const arrow::Array& array) {
  return array.type_id() == arrow::Type::LIST || array.type_id() == arrow::Type::LARGE_LIST ||
         array.type_id() == arrow::Type::FIXED_SIZE_LIST;
}

std::shared_ptr<arrow::Array> storage_of(std::shared_ptr<arrow::Array> array) {
  while (array->type_id() == arrow::Type::EXTENSION) {
    array = static_cast<const arrow::ExtensionArray&>(*array).storage();
  }
  return array;
}

Result<std::shared_ptr<arrow::Array>> cast_values(std::shared_ptr<arrow::Array> values,
                                                  const std::shared_ptr<arrow::DataType>& type) {
  if (values->type_id() == arrow::Type::DICTIONARY) {
    auto decoded = arrow::compute::Cast(
        *values, static_cast<const arrow::DictionaryType&>(*values->type()).value_type());
    if (!decoded.ok()) return from_arrow(decoded.status());
    values = *decoded;
  }
  if (values->type()->Equals(*type)) return values;
  // Numbers do not become texts or the other way round: that is no other width of the same thing.
  const auto textual = [](arrow::Type::type id) {
    return arrow::is_base_binary_like(id) || arrow::is_binary_view_like(id);
  };
  if (textual(values->type_id()) != textual(type->id())) {
    return invalid(
        fmt::format("stored as {}, declared as {}", values->type()->ToString(), type->ToString()));
  }
  arrow::compute::CastOptions options = arrow::compute::CastOptions::Safe(type);
  options.allow_float_truncate = arrow::is_floating(type->id());
  options.allow_int_overflow = false;
  auto cast = arrow::compute::Cast(*values, type, options);
  if (!cast.ok()) return from_arrow(cast.status());
  return *cast;
}

/// Puts lists of `each` around `values` again.
std::shared_ptr<arrow::Array> fixed_lists(const std::shared_ptr<arrow::Array>& values,
                                          std::int64_t each, std::int64_t length) {
  return std::make_shared<arrow::FixedSizeListArray>(
      arrow::fixed_size_list(values->type(), static_cast<std::int32_t>(each)), length, values);
}

Result<std::shared_ptr<arrow::Array>> variable_lists(const std::shared_ptr<arrow::Array>& values,
                                                     std::int64_t each, std::int64_t length) {
  auto buffer =
      arrow::AllocateBuffer((length + 1) * static_cast<std::int64_t>(sizeof(std::int32_t)));
  if (!buffer.ok()) return from_arrow(buffer.status());
  auto* offsets = reinterpret_cast<std::int32_t*>((*buffer)->mutable_data());
  if (each * length > INT32_MAX) return resource_exhausted("more than 2^31 values in one column");
  for (std::int64_t i = 0; i <= length; ++i) offsets[i] = static_cast<std::int32_t>(i * each);
  return std::shared_ptr<arrow::Array>(std::make_shared<arrow::ListArray>(
      arrow::list(values->type()), length, std::shared_ptr<arrow::Buffer>(std::move(*buffer)),
      values));
}

Result<std::shared_ptr<arrow::Array>> cast_images(const std::shared_ptr<arrow::Array>& column,
                                                  const Feature& feature) {
  const auto type = delivered_type(feature);
  const auto bytes_type = arrow::binary();
  std::shared_ptr<arrow::Array> bytes;
  std::shared_ptr<arrow::Array> path;
  if (column->type_id() == arrow::Type::STRUCT) {
    const auto& fields = static_cast<const arrow::StructArray&>(*column);
    bytes = fields.GetFieldByName("bytes");
    path = fields.GetFieldByName("path");
  } else if (column->type_id() == arrow::Type::BINARY ||
             column->type_id() == arrow::Type::LARGE_BINARY) {
    bytes = column;
  } else if (column->type_id() == arrow::Type::STRING ||
             column->type_id() == arrow::Type::LARGE_STRING) {
    path = column;
  } else {
    return invalid(fmt::format("pictures stored as {}", column->type()->ToString()));
  }
  const auto settle = [&](std::shared_ptr<arrow::Array>& part,
                          const std::shared_ptr<arrow::DataType>& wanted) -> Status {
    if (part == nullptr || part->type_id() == arrow::Type::NA) {
      auto nulls = arrow::MakeArrayOfNull(wanted, column->length());
      if (!nulls.ok()) return from_arrow(nulls.status());
      part = *nulls;
    } else if (!part->type()->Equals(*wanted)) {
      auto cast = arrow::compute::Cast(*part, wanted);
      if (!cast.ok()) return from_arrow(cast.status());
      part = *cast;
    }
    return ok_status();
  };
  ROPEWALK_RETURN_IF_ERROR(settle(bytes, bytes_type));
  ROPEWALK_RETURN_IF_ERROR(settle(path, arrow::utf8()));
  return std::shared_ptr<arrow::Array>(std::make_shared<arrow::StructArray>(
      type, column->length(), arrow::ArrayVector{bytes, path}));
}

}  // namespace

std::shared_ptr<arrow::DataType> delivered_type(const Feature& feature) {
  if (feature.kind == FeatureKind::image) {
    return arrow::struct_(
        {arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
  }
  std::shared_ptr<arrow::DataType> type = arrow_type(feature.dtype);
  if (feature.shape.size() == 1 && feature.shape[0] == 1) return type;
  if (feature.shape.size() == 1) {
    return arrow::fixed_size_list(type, static_cast<std::int32_t>(feature.shape[0]));
  }
  for (std::size_t i = 0; i < feature.shape.size(); ++i) type = arrow::list(type);
  return type;
}

bool stores_as_declared(const arrow::DataType& stored, const Feature& feature) {
  if (feature.kind == FeatureKind::image) return stored.id() == arrow::Type::STRUCT;
  const arrow::DataType* type = &stored;
  std::size_t depth = 0;
  while (true) {
    if (type->id() == arrow::Type::EXTENSION) {
      type = static_cast<const arrow::ExtensionType&>(*type).storage_type().get();
    } else if (type->id() == arrow::Type::LIST || type->id() == arrow::Type::FIXED_SIZE_LIST) {
      if (type->id() == arrow::Type::FIXED_SIZE_LIST && feature.shape.size() == 1 &&
          static_cast<const arrow::FixedSizeListType&>(*type).list_size() != feature.shape[0]) {
        return false;
      }
      type = type->field(0)->type().get();
      ++depth;
    } else {
      break;
    }
  }
  const bool scalar = feature.shape.size() == 1 && feature.shape[0] == 1;
  return depth == (scalar ? 0 : feature.shape.size()) && type->Equals(*arrow_type(feature.dtype));
}

Result<std::shared_ptr<arrow::Array>> cast_column(const std::shared_ptr<arrow::Array>& column,
                                                  const Feature& feature, std::int64_t first_row) {
  std::shared_ptr<arrow::Array> values = storage_of(column);
  if (feature.kind == FeatureKind::image) return cast_images(values, feature);
  const std::int64_t rows = values->length();
  const std::int64_t elements = feature.elements();
  std::int64_t per_row = 1;
  while (is_list(*values)) {
    ROPEWALK_ASSIGN_OR_RETURN(Level level, unwrap_any(*values, per_row, first_row));
    values = storage_of(level.values);
    if (rows > 0) per_row *= level.each;
    if (per_row > elements) break;
  }
  if (rows > 0 && (per_row != elements || is_list(*values))) {
    return invalid(fmt::format("rows of {} values, declared {}", per_row, elements));
  }
  if (values->null_count() > 0 && feature.dtype != DType::string) {
    for (std::int64_t i = 0; i < values->length(); ++i) {
      if (values->IsNull(i)) return missing(first_row + i / std::max<std::int64_t>(1, elements));
    }
  }
  if (rows == 0) {
    auto empty = arrow::MakeEmptyArray(delivered_type(feature));
    if (!empty.ok()) return from_arrow(empty.status());
    return *empty;
  }
  ROPEWALK_ASSIGN_OR_RETURN(values, cast_values(values, arrow_type(feature.dtype)));
  if (feature.shape.size() == 1) {
    return feature.shape[0] == 1 ? values : fixed_lists(values, feature.shape[0], rows);
  }
  std::int64_t length = values->length();
  for (auto extent = feature.shape.rbegin(); extent != feature.shape.rend(); ++extent) {
    length /= *extent;
    ROPEWALK_ASSIGN_OR_RETURN(values, variable_lists(values, *extent, length));
  }
  return values;
}

}  // namespace ropewalk::lerobot
