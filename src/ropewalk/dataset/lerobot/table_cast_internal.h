#pragma once
// Columns of a data file cast to the types the schema declares, whatever a writer stored: lists of
// any kind, a scalar for [1] or a list of one, other widths of numbers.
// Spec: lerobot-formats 2.4, hard inputs H11, H13, H14; episode.h says the resulting types.
#include <memory>
#include <string>

#include <arrow/type_fwd.h>

#include "ropewalk/episode/schema.h"

namespace ropewalk::lerobot {

/// Returns the Arrow type of a column as Episode::columns() delivers it: a scalar for [1],
/// fixed_size_list for [N], nested lists beyond, struct<bytes, path> for images.
std::shared_ptr<arrow::DataType> delivered_type(const Feature& feature);

/// Casts one column. `first_row` is the row of the episode that its first value belongs to, for
/// messages. Errors: data_loss naming the row of a null or of a list of another length, or the type
/// that cannot be cast; reason value_missing for nulls, value_invalid else.
Result<std::shared_ptr<arrow::Array>> cast_column(const std::shared_ptr<arrow::Array>& column,
                                                  const Feature& feature, std::int64_t first_row);

/// Whether a stored type is the declared one up to what every reader takes without a cast.
bool stores_as_declared(const arrow::DataType& stored, const Feature& feature);

}  // namespace ropewalk::lerobot
