#pragma once
// A .db3 file of rosbag2: what is known of it after opening.
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "ropewalk/format/bag/bag_internal.h"
#include "ropewalk/format/bag/sqlite_internal.h"

namespace ropewalk::bag {

class Db3File final : public BagFile {
 public:
  Db3File(std::shared_ptr<const Source> opened, const ReaderOptions& with)
      : source(std::move(opened)), options(with) {}
  Result<std::unique_ptr<MessageStream>> stream(const Selection& selection) const override;

  std::shared_ptr<const Source> source;
  ReaderOptions options;
  std::unordered_map<std::int64_t, std::uint32_t> channel_of_topic;
  bool messages_compressed = false;
  /// The table could not be walked to its end: rows are read one by one.
  bool damaged = false;
  /// The index of times does not list what the table holds.
  bool index_damaged = false;

  /// No honest file holds more rows.
  std::uint64_t max_rows() const { return source->size() / 4 + 1; }
};

}  // namespace ropewalk::bag
