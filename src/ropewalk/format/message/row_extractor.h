#pragma once
// RowExtractor: chosen numeric fields of a message straight into a row of doubles, without values
// in between. For CDR and ROS 1 the schema becomes a short program of skips and copies.
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/format/message/codec.h"

namespace ropewalk::message {

/// One field of a row. Shape: `width` doubles.
struct RowField {
  std::string path;         ///< position, header.stamp.sec, transforms[0].rotation.w
  std::uint32_t width = 1;  ///< elements of a sequence or an array; 1 for a number
};

/// Threads: const members may run concurrently.
class RowExtractor {
 public:
  /// Errors: not_found for a path that the schema does not have; invalid_argument for one that is
  /// not numeric, or whose fixed length is not `width`.
  static Result<RowExtractor> compile(std::shared_ptr<const MessageCodec> codec,
                                      std::vector<RowField> fields);
  RowExtractor(RowExtractor&&) noexcept;
  RowExtractor& operator=(RowExtractor&&) noexcept;
  ~RowExtractor();

  std::size_t width() const;  ///< the doubles of a row

  /// Fills `row` (Shape: width()). A sequence without elements gives NaN, as sensor_msgs/JointState
  /// means it; fields behind the last wanted one are not looked at.
  /// Errors: data_loss with the byte, and for a sequence of another length than asked for.
  Status extract(ByteSpan payload, std::span<double> row) const;

 private:
  struct Impl;
  explicit RowExtractor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk::message
