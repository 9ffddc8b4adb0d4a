#pragma once
// Private: reads the body of the `episode` message without its inline pictures: their bytes stay in
// the file, so that memory is that of the columns.
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/dtype.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/message/msgpack.h"

namespace ropewalk::eva_mcap {

/// Inline pictures: an array whose data lies in memory or in the file.
struct InlineArray {
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;
  ByteSpan data;                  ///< empty when it lies in the file
  std::uint64_t file_offset = 0;  ///< of the data, when it lies there
};

/// The body of one episode. Threads: immutable. Lifetime: views into itself.
class EpisodeBody {
 public:
  /// Errors: data_loss naming the file and what is wrong; resource_exhausted (Limits).
  static Result<std::shared_ptr<const EpisodeBody>> read(const mcap::Reader& reader,
                                                         const Source& source,
                                                         const mcap::MessageRef& ref,
                                                         const Limits& limits);

  /// A value of `part`, "columns" or "metadata"; null when absent.
  const msgpack::Value* find(std::string_view part, std::string_view key) const;
  /// The map of `part`, or null.
  const msgpack::Value::Map* map(std::string_view part) const;
  /// Errors: not_found; data_loss when it is no array of numbers, or its size is not its shape.
  Result<InlineArray> inline_array(std::string_view key, const Limits& limits) const;

 private:
  EpisodeBody() = default;
  std::optional<mcap::MessageLoader> loader_;  // holds the bytes of a body in a compressed chunk
  Bytes skeleton_;                             // else: the bytes of the body without pictures
  msgpack::Value value_;
};

}  // namespace ropewalk::eva_mcap
