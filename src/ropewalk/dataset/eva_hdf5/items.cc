#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <unordered_set>

#include <fmt/format.h>

#include "ropewalk/dataset/eva_hdf5/items_internal.h"
#include "ropewalk/format/message/msgpack.h"
#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk::eva_hdf5 {
namespace {

struct KindName {
  ItemKind kind;
  std::string_view name;
};
constexpr std::array<KindName, 5> kKinds{{{ItemKind::array, "array"},
                                          {ItemKind::string, "string"},
                                          {ItemKind::bytes, "bytes"},
                                          {ItemKind::none, "none"},
                                          {ItemKind::msgpack, "msgpack"}}};

std::optional<ItemKind> kind_from_name(std::string_view name) {
  const auto at = std::ranges::find(kKinds, name, &KindName::name);
  if (at == kKinds.end()) return std::nullopt;
  return at->kind;
}

/// What one value of `metadata` may take.
constexpr std::uint64_t kMaxRowValueBytes = 4U << 20;

template <typename T>
T load(ByteSpan bytes) {
  T value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

/// One number of any type; nullopt for text and half floats.
std::optional<Json> number(DType dtype, ByteSpan bytes) {
  switch (dtype) {
    case DType::boolean:
      return Json(bytes[0] != 0);
    case DType::int8:
      return Json(std::int64_t{load<std::int8_t>(bytes)});
    case DType::int16:
      return Json(std::int64_t{load<std::int16_t>(bytes)});
    case DType::int32:
      return Json(std::int64_t{load<std::int32_t>(bytes)});
    case DType::int64:
      return Json(load<std::int64_t>(bytes));
    case DType::uint8:
      return Json(std::uint64_t{load<std::uint8_t>(bytes)});
    case DType::uint16:
      return Json(std::uint64_t{load<std::uint16_t>(bytes)});
    case DType::uint32:
      return Json(std::uint64_t{load<std::uint32_t>(bytes)});
    case DType::uint64:
      return Json(load<std::uint64_t>(bytes));
    case DType::float32:
      return Json(double{load<float>(bytes)});
    case DType::float64:
      return Json(load<double>(bytes));
    case DType::float16:
    case DType::string:
    case DType::bytes:
      break;
  }
  return std::nullopt;
}

/// Nested lists of the numbers of an array, as a value of the row.
Result<Json> numbers(const Hdf5Value& value, std::size_t axis, std::size_t& at) {
  const std::size_t item = dtype_size(value.dtype);
  if (axis == value.shape.size()) {
    const auto one = number(value.dtype, ByteSpan(value.data).subspan(at * item, item));
    if (!one) return unimplemented(fmt::format("{} in the row", dtype_name(value.dtype)));
    ++at;
    return *one;
  }
  Json list = Json::array();
  for (std::int64_t i = 0; i < value.shape[axis]; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(Json one, numbers(value, axis + 1, at));
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace

std::string item_path(std::string_view group, std::int64_t number) {
  return fmt::format("{}/item_{:06}", group, number);
}

// --- writing ---

Status ItemWriter::begin() { return writer_.create_group(group_); }

Result<std::string> ItemWriter::begin_item(std::string_view key, std::string_view kind) {
  const std::string path = item_path(group_, count_++);
  ROPEWALK_RETURN_IF_ERROR(writer_.create_group(path));
  ROPEWALK_RETURN_IF_ERROR(writer_.set_text_attribute(path, "key", key));
  ROPEWALK_RETURN_IF_ERROR(writer_.set_text_attribute(path, "kind", kind));
  return path + "/value";
}

Status ItemWriter::add_bytes(std::string_view key, std::string_view kind, ByteSpan bytes) {
  ROPEWALK_ASSIGN_OR_RETURN(const std::string path, begin_item(key, kind));
  return writer_.write_array(path,
                             {DType::uint8, {static_cast<std::int64_t>(bytes.size())}, bytes});
}

Status ItemWriter::add_column(std::string_view key, const DenseColumn& column) {
  if (dtype_is_numeric(column.dtype)) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::string path, begin_item(key, "array"));
    return writer_.write_array(path, column.view());
  }
  Bytes packed;
  ROPEWALK_RETURN_IF_ERROR(
      msgpack::append_object_array(packed, column.texts, column.shape, column.dtype == DType::bytes)
          .with_context(key));
  return add_bytes(key, "msgpack", packed);
}

Status ItemWriter::add_json(std::string_view key, const Json& value) {
  const auto scalar = [&](DType dtype, const auto& number) -> Status {
    ROPEWALK_ASSIGN_OR_RETURN(const std::string path, begin_item(key, "array"));
    return writer_.write_array(
        path, {dtype, {}, {reinterpret_cast<const std::uint8_t*>(&number), sizeof number}});
  };
  if (value.is_null()) return add_bytes(key, "none", {});
  if (const auto flag = value.as_bool()) return scalar(DType::boolean, std::uint8_t{*flag});
  if (value.is_double()) return scalar(DType::float64, *value.as_double());
  if (const std::string* text = value.as_string();
      text != nullptr && text->find('\0') == std::string::npos) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::string path, begin_item(key, "string"));
    return writer_.write_text(path, *text);
  }
  if (value.is_integer()) {
    if (const auto number = value.as_int64()) return scalar(DType::int64, *number);
  }
  // Lists and objects; text with a NUL byte, which HDF5 text cannot hold; integers beyond int64.
  Bytes packed;
  ROPEWALK_RETURN_IF_ERROR(msgpack::Writer(packed).json(value).with_context(key));
  return add_bytes(key, "msgpack", packed);
}

Status ItemWriter::add_empty_images(std::string_view key) { return add_bytes(key, "array", {}); }

Result<std::unique_ptr<Hdf5Frames>> ItemWriter::add_frames(
    std::string_view key, std::span<const std::int64_t> frame_shape, std::int64_t count,
    DType dtype, Hdf5Compression compression) {
  ROPEWALK_ASSIGN_OR_RETURN(const std::string path, begin_item(key, "array"));
  return writer_.create_frames(path, frame_shape, count, dtype, compression);
}

// --- reading ---

Result<std::vector<Item>> read_items(const Hdf5Reader& reader, std::string_view group) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, reader.list(group));
  std::vector<Item> items;
  std::unordered_set<std::string> keys;
  // Names are sorted, and six digits make that the order of insertion.
  for (const std::string& name : names) {
    const std::string path = fmt::format("{}/{}", group, name);
    const auto damaged = [&](const std::string& what) {
      return data_loss(fmt::format("{}: {}: {}", reader.name(), path, what));
    };
    ROPEWALK_ASSIGN_OR_RETURN(const Hdf5ObjectInfo info, reader.describe(path));
    const auto key = info.text_attribute("key");
    const auto kind_text = info.text_attribute("kind");
    if (!key || !kind_text) return damaged("expected the text attributes key and kind");
    const auto kind = kind_from_name(*kind_text);
    if (!kind) {
      return damaged(fmt::format("kind: expected array, string, bytes, none or msgpack, found '{}'",
                                 *kind_text));
    }
    if (!keys.insert(*key).second) return damaged(fmt::format("the key '{}' comes twice", *key));
    Item item{*key, *kind, path + "/value", {}};
    ROPEWALK_ASSIGN_OR_RETURN(item.value, reader.describe(item.value_path));
    if (item.value.kind != Hdf5ObjectKind::dataset) return damaged("value is not a dataset");
    items.push_back(std::move(item));
  }
  return items;
}

Result<DenseColumn> read_column(const Hdf5Reader& reader, const Item& item, const Limits& limits) {
  const std::string place = fmt::format("{}: {}", reader.name(), item.value_path);
  ROPEWALK_ASSIGN_OR_RETURN(Hdf5Value value, reader.read(item.value_path, limits.max_array_bytes));
  if (item.kind == ItemKind::msgpack && value.dtype == DType::uint8) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const msgpack::Value packed, msgpack::decode(value.data, limits),
                                  place);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(auto array, msgpack::as_ndarray(packed, limits), place);
    if (!array) return data_loss(fmt::format("{}: expected an array under kind msgpack", place));
    return DenseColumn{array->dtype, std::move(array->shape),
                       Bytes(array->data.begin(), array->data.end()), std::move(array->texts)};
  }
  if (item.kind != ItemKind::array || !dtype_is_numeric(value.dtype)) {
    return data_loss(
        fmt::format("{}: expected numbers of kind array or uint8 of kind msgpack, found {}", place,
                    item.value.type_name));
  }
  return DenseColumn{value.dtype, std::move(value.shape), std::move(value.data), {}};
}

Result<Json> read_json(const Hdf5Reader& reader, const Item& item, const Limits& limits) {
  const std::string place = fmt::format("{}: {}", reader.name(), item.value_path);
  if (item.kind == ItemKind::none) return Json();
  ROPEWALK_ASSIGN_OR_RETURN(const Hdf5Value value, reader.read(item.value_path, kMaxRowValueBytes));
  if (item.kind == ItemKind::string && value.texts.size() == 1) return Json(value.texts.front());
  if (item.kind == ItemKind::msgpack && value.dtype == DType::uint8) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const msgpack::Value packed, msgpack::decode(value.data, limits),
                                  place);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(Json json, msgpack::to_json(packed, limits), place);
    return json;
  }
  if (item.kind == ItemKind::array && dtype_is_numeric(value.dtype)) {
    std::size_t at = 0;
    ROPEWALK_ASSIGN_OR_RETURN_CTX(Json json, numbers(value, 0, at), place);
    return json;
  }
  if (item.kind == ItemKind::bytes) {
    return unimplemented(fmt::format("{}: bytes in the row have no JSON form", place));
  }
  return data_loss(
      fmt::format("{}: the value is {}, which is not of its kind", place, item.value.type_name));
}

}  // namespace ropewalk::eva_hdf5
