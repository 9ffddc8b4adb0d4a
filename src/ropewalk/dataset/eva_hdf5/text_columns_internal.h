#pragma once
// Private: columns of text in the kind `msgpack`: {__eva_numpy_array__: true, dtype: "|O", shape,
// values}. Spec: review-export-upload 7.5.
#include "ropewalk/base/core/limits.h"
#include "ropewalk/episode/dense_column.h"

namespace ropewalk::eva_hdf5 {

/// Writes a string or bytes column; null is nil.
Result<Bytes> pack_texts(const DenseColumn& column);
/// Reads such a map, or a NumPy array of texts. Errors: data_loss, resource_exhausted (Limits).
Result<DenseColumn> unpack_texts(ByteSpan bytes, const Limits& limits);

}  // namespace ropewalk::eva_hdf5
