#pragma once
// Values out of Arrow arrays of whatever type a writer chose.
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/result.h"

namespace ropewalk::lerobot {

/// Stands for a null among integers.
inline constexpr std::int64_t kNoValue = INT64_MIN;

/// Returns integers of any width, bools, or integral floating-point values; nulls are kNoValue.
/// Errors: data_loss for another type or a value that is no integer, naming the row.
Result<std::vector<std::int64_t>> int64_values(const arrow::Array& array);
/// Returns numbers as double; nulls are NaN. Errors: data_loss for another type.
Result<std::vector<double>> double_values(const arrow::Array& array);
/// Returns the text of a string, large string, view, or dictionary value, nullopt for null or
/// another type. Lifetime: that of `array`.
std::optional<std::string_view> string_value(const arrow::Array& array, std::int64_t row);
/// Returns one value of any type as JSON: lists as arrays, structs as objects.
Json json_value(const arrow::Array& array, std::int64_t row);

}  // namespace ropewalk::lerobot
