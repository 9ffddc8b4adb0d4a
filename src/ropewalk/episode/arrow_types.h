#pragma once
// The Arrow type of an element type: the one table that sources, sinks and dense columns use.
#include <memory>

#include <arrow/type_fwd.h>

#include "ropewalk/base/core/dtype.h"

namespace ropewalk {

/// string is utf8, bytes is binary; the others are the numbers and booleans of the same width.
std::shared_ptr<arrow::DataType> arrow_type(DType dtype);

}  // namespace ropewalk
