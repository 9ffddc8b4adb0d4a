#pragma once
// Private: the items of the layout: groups `item_000000` … with a key, a kind and a value.
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/format/hdf5/reader.h"
#include "ropewalk/format/hdf5/writer.h"

namespace ropewalk::eva_hdf5 {

/// "columns/item_000003".
std::string item_path(std::string_view group, std::int64_t number);

/// Writes the items of one group in order.
class ItemWriter {
 public:
  ItemWriter(Hdf5Writer& writer, std::string group) : writer_(writer), group_(std::move(group)) {}
  ItemWriter(const ItemWriter&) = delete;
  ItemWriter& operator=(const ItemWriter&) = delete;

  /// Creates the group itself.
  Status begin();
  /// Writes a column: numbers as `array`, text as `msgpack`.
  Status add_column(std::string_view key, const DenseColumn& column);
  /// Writes one value of the row: numbers and booleans as 0-d `array`, text as `string`, null as
  /// `none`, lists and objects as `msgpack`.
  Status add_json(std::string_view key, const Json& value);
  /// Writes uint8[0] of kind `array`: a camera without frames.
  Status add_empty_images(std::string_view key);
  /// Makes an item of kind `array` and returns the frames to be written into it.
  Result<std::unique_ptr<Hdf5Frames>> add_frames(std::string_view key,
                                                 std::span<const std::int64_t> frame_shape,
                                                 std::int64_t count, DType dtype,
                                                 Hdf5Compression compression);

 private:
  /// Makes the next item and returns the path of its value.
  Result<std::string> begin_item(std::string_view key, std::string_view kind);
  Status add_bytes(std::string_view key, std::string_view kind, ByteSpan bytes);

  Hdf5Writer& writer_;
  std::string group_;
  std::int64_t count_ = 0;
};

enum class ItemKind { array, string, bytes, none, msgpack };

/// What a file says of one item.
struct Item {
  std::string key;
  ItemKind kind = ItemKind::array;
  std::string value_path;
  Hdf5ObjectInfo value;
};

/// Lists the items of a group in order. Errors: data_loss for an item without key, kind or value,
/// for an unknown kind, and for a key that comes twice.
Result<std::vector<Item>> read_items(const Hdf5Reader& reader, std::string_view group);
/// Reads a column of kind array or msgpack.
Result<DenseColumn> read_column(const Hdf5Reader& reader, const Item& item, const Limits& limits);
/// Reads one value of `metadata`.
Result<Json> read_json(const Hdf5Reader& reader, const Item& item, const Limits& limits);

}  // namespace ropewalk::eva_hdf5
