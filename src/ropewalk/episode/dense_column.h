#pragma once
// DenseColumn: one grid column as a C-order array [T, ...], the form in which HDF5 and MCAP exports
// hold it, made from an Arrow array and turned back into one.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/core/nd_view.h"
#include "ropewalk/episode/schema.h"

namespace ropewalk {

/// Shape: [T] for scalars, [T, D] for vectors, [T, a, b, …] for nested lists.
struct DenseColumn {
  DType dtype = DType::float32;
  std::vector<std::int64_t> shape;
  Bytes data;  ///< numbers, little-endian; booleans one byte each
  /// Elements of string and bytes columns; nullopt is null.
  std::vector<std::optional<std::string>> texts;

  NdView view() const { return {dtype, shape, data}; }
};

/// Takes a scalar column, or lists (fixed or not) whose lengths are the same in every row.
/// Errors: data_loss naming the row of a null number or of a list of another length; unimplemented
/// for a type that is no number, string, binary or list of these.
Result<DenseColumn> dense_column(const arrow::Array& column);

/// Builds the column that a feature declares: a plain array for shape [1] (from [T] or [T, 1]),
/// else nested fixed-size lists; numbers are cast to the declared type. Errors: data_loss when the
/// shape is not [T, ...feature.shape] or the cast loses an integer.
Result<std::shared_ptr<arrow::Array>> arrow_column(const DenseColumn& column,
                                                   const Feature& feature);

}  // namespace ropewalk
