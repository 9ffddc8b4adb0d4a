#include "ropewalk/format/message/msgpack_numpy.h"

#include <algorithm>
#include <array>
#include <charconv>

#include <fmt/format.h>

namespace ropewalk::msgpack {
namespace {

constexpr std::string_view kArrayMark = "__ndarray__";
constexpr std::string_view kScalarMark = "__npgeneric__";
constexpr std::string_view kObjectMark = "__eva_numpy_array__";
constexpr std::size_t kCodePointBytes = 4;

// head and tail around `data_bytes` of data, for any dtype text.
Result<NdFrame> frame(std::string_view dtype, std::span<const std::int64_t> shape,
                      std::uint64_t data_bytes) {
  NdFrame out;
  out.data_bytes = data_bytes;
  Writer head(out.head);
  ROPEWALK_RETURN_IF_ERROR(head.map_head(4));
  ROPEWALK_RETURN_IF_ERROR(head.binary(as_bytes(kArrayMark)));
  head.boolean(true);
  ROPEWALK_RETURN_IF_ERROR(head.binary(as_bytes("data")));
  ROPEWALK_RETURN_IF_ERROR(head.binary_head(data_bytes));
  Writer tail(out.tail);
  ROPEWALK_RETURN_IF_ERROR(tail.binary(as_bytes("dtype")));
  ROPEWALK_RETURN_IF_ERROR(tail.string(dtype));
  ROPEWALK_RETURN_IF_ERROR(tail.binary(as_bytes("shape")));
  ROPEWALK_RETURN_IF_ERROR(tail.array_head(shape.size()));
  for (const std::int64_t extent : shape) tail.integer(extent);
  return out;
}

void append(Bytes& out, ByteSpan bytes) { out.insert(out.end(), bytes.begin(), bytes.end()); }

// Decodes one UTF-8 code point from the front of `text`; returns 0xFFFFFFFF for what is not UTF-8.
std::uint32_t take_code_point(std::string_view& text) {
  constexpr std::uint32_t kBad = 0xFFFFFFFF;
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) {
    text.remove_prefix(1);
    return first;
  }
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return kBad;
  std::uint32_t code = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return kBad;
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  constexpr std::array<std::uint32_t, 5> kLeast{0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return kBad;
  text.remove_prefix(length);
  return code;
}

void append_utf8(std::string& out, std::uint32_t code) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

Result<std::vector<std::uint32_t>> code_points(std::string_view text) {
  std::vector<std::uint32_t> out;
  while (!text.empty()) {
    const std::uint32_t code = take_code_point(text);
    if (code == 0xFFFFFFFF) return invalid_argument("text is not UTF-8");
    out.push_back(code);
  }
  if (!out.empty() && out.back() == 0) {
    return invalid_argument("text ends in NUL, which a NumPy array of text cannot keep");
  }
  return out;
}

Result<std::vector<std::int64_t>> read_shape(const Value* shape) {
  const Value::Array* extents = shape == nullptr ? nullptr : shape->as_array();
  if (extents == nullptr) return data_loss("NumPy array: no shape");
  std::vector<std::int64_t> out;
  for (const Value& extent : *extents) {
    const auto size = extent.as_int64();
    if (!size.has_value() || *size < 0) {
      return data_loss("NumPy array: a shape is a list of whole numbers from 0");
    }
    out.push_back(*size);
  }
  return out;
}

Result<std::uint64_t> count_of(std::span<const std::int64_t> shape) {
  const auto count = element_count(shape);
  if (!count.has_value()) return data_loss("NumPy array: its shape has no size");
  return static_cast<std::uint64_t>(*count);
}

// count * item_size, checked against the bytes that are there.
Status check_size(std::uint64_t count, std::uint64_t item_size, std::uint64_t data_size,
                  const Limits& limits) {
  const bool equal = item_size == 0
                         ? data_size == 0
                         : count <= data_size / item_size && count * item_size == data_size;
  if (!equal) {
    return data_loss(fmt::format("NumPy array: {} elements of {} bytes expected, {} bytes found",
                                 count, item_size, data_size));
  }
  if (data_size > limits.max_array_bytes) {
    return resource_exhausted(fmt::format("NumPy array of {} bytes is above the limit of {}",
                                          data_size, limits.max_array_bytes));
  }
  return ok_status();
}

std::uint32_t code_at(const std::uint8_t* at, bool big_endian) {
  std::uint32_t code = 0;
  std::memcpy(&code, at, sizeof code);
  return big_endian ? __builtin_bswap32(code) : code;
}

// Unicode ("<U5") and byte-string ("|S5") arrays, padded with NUL.
Status read_texts(NdArray& out, std::string_view dtype, ByteSpan data, const Limits& limits) {
  const bool unicode = dtype[1] == 'U';
  std::uint64_t length = 0;
  const auto parsed = std::from_chars(dtype.data() + 2, dtype.data() + dtype.size(), length);
  if (parsed.ec != std::errc() || parsed.ptr != dtype.data() + dtype.size() ||
      length > (1ULL << 32)) {
    return data_loss(fmt::format("NumPy array: dtype \"{}\"", dtype));
  }
  const std::uint64_t item = unicode ? length * kCodePointBytes : length;
  ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t count, count_of(out.shape));
  if (item == 0 && count > 0) return data_loss(fmt::format("NumPy array: dtype \"{}\"", dtype));
  ROPEWALK_RETURN_IF_ERROR(check_size(count, item, data.size(), limits));
  out.dtype = unicode ? DType::string : DType::bytes;
  out.texts.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    const ByteSpan element =
        data.subspan(static_cast<std::size_t>(i * item), static_cast<std::size_t>(item));
    std::string text;
    if (unicode) {
      std::size_t used = element.size() / kCodePointBytes;
      const auto code = [&](std::size_t k) {
        return code_at(element.data() + k * kCodePointBytes, dtype[0] == '>');
      };
      while (used > 0 && code(used - 1) == 0) --used;
      for (std::size_t k = 0; k < used; ++k) {
        if (code(k) > 0x10FFFF) {
          return data_loss(fmt::format("NumPy array: {:#x} is no code point", code(k)));
        }
        append_utf8(text, code(k));
      }
    } else {
      text = std::string(as_text(element));
      text.erase(text.find_last_not_of('\0') + 1);
    }
    out.texts.push_back(std::move(text));
  }
  return ok_status();
}

Status read_numbers(NdArray& out, std::string_view dtype, ByteSpan data, const Limits& limits) {
  bool big_endian = false;
  const auto type = dtype_from_numpy(dtype, big_endian);
  if (!type.has_value()) {
    return unimplemented(fmt::format("NumPy array: dtype \"{}\" is not read", dtype.substr(0, 32)));
  }
  out.dtype = *type;
  const std::size_t item = dtype_size(*type);
  ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t count, count_of(out.shape));
  ROPEWALK_RETURN_IF_ERROR(check_size(count, item, data.size(), limits));
  out.data = data;
  if (!big_endian || item == 1) return ok_status();
  out.swapped.assign(data.begin(), data.end());
  for (std::size_t at = 0; at < out.swapped.size(); at += item) {
    std::reverse(out.swapped.begin() + static_cast<std::ptrdiff_t>(at),
                 out.swapped.begin() + static_cast<std::ptrdiff_t>(at + item));
  }
  out.data = out.swapped;
  return ok_status();
}

// Lists of lists down to texts, numbers or nil, as object arrays are written.
Status flatten(const Value& value, std::size_t axis, NdArray& out) {
  if (axis == out.shape.size()) {
    if (value.is_nil()) {
      out.texts.emplace_back(std::nullopt);
    } else if (const auto text = value.as_text()) {
      if (value.as_binary().has_value()) out.dtype = DType::bytes;
      out.texts.emplace_back(*text);
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(const Json json, to_json(value));
      out.texts.emplace_back(json.dump());
    }
    return ok_status();
  }
  const Value::Array* elements = value.as_array();
  if (elements == nullptr || elements->size() != static_cast<std::uint64_t>(out.shape[axis])) {
    return data_loss(
        fmt::format("NumPy object array: a list of {} values expected", out.shape[axis]));
  }
  for (const Value& element : *elements) {
    ROPEWALK_RETURN_IF_ERROR(flatten(element, axis + 1, out));
  }
  return ok_status();
}

Result<std::optional<NdArray>> object_array(const Value& value) {
  NdArray out;
  out.dtype = DType::string;
  ROPEWALK_ASSIGN_OR_RETURN(out.shape, read_shape(value.find("shape")));
  const Value* values = value.find("values");
  if (values == nullptr) return data_loss("NumPy object array: no values");
  const Value::Array* flat = values->as_array();
  ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t count, count_of(out.shape));
  // Either one flat list of all elements, or lists nested like the shape.
  const bool nested = flat != nullptr && std::ranges::any_of(*flat, [](const Value& element) {
                        return element.as_array() != nullptr;
                      });
  if (flat != nullptr && !nested && flat->size() == count && out.shape.size() != 1) {
    const std::vector<std::int64_t> shape = out.shape;
    out.shape = {static_cast<std::int64_t>(count)};
    ROPEWALK_RETURN_IF_ERROR(flatten(*values, 0, out));
    out.shape = shape;
  } else {
    ROPEWALK_RETURN_IF_ERROR(flatten(*values, 0, out));
  }
  return std::optional<NdArray>(std::move(out));
}

bool is_marked(const Value& value, std::string_view mark) {
  const Value* found = value.find(mark);
  return found != nullptr && found->as_bool() == true;
}

}  // namespace

Result<NdFrame> ndarray_frame(DType dtype, std::span<const std::int64_t> shape) {
  if (dtype_size(dtype) == 0) {
    return invalid_argument(
        fmt::format("an array of {} has no fixed item size", dtype_name(dtype)));
  }
  const auto count = element_count(shape);
  if (!count.has_value()) return invalid_argument("the shape of the array has no size");
  const auto elements = static_cast<std::uint64_t>(*count);
  if (elements > (1ULL << 60)) {
    return resource_exhausted(fmt::format("an array of {} elements", elements));
  }
  return frame(dtype_numpy(dtype), shape, elements * dtype_size(dtype));
}

Status append_ndarray(Bytes& out, const NdView& array) {
  ROPEWALK_ASSIGN_OR_RETURN(const NdFrame parts, ndarray_frame(array.dtype, array.shape));
  if (parts.data_bytes != array.data.size()) {
    return invalid_argument(fmt::format("array: {} bytes expected by its shape, {} given",
                                        parts.data_bytes, array.data.size()));
  }
  out.reserve(out.size() + static_cast<std::size_t>(parts.total_bytes()));
  append(out, parts.head);
  append(out, array.data);
  append(out, parts.tail);
  return ok_status();
}

Status append_text_array(Bytes& out, std::span<const std::string> texts,
                         std::span<const std::int64_t> shape) {
  const auto count = element_count(shape);
  if (!count.has_value() || static_cast<std::uint64_t>(*count) != texts.size()) {
    return invalid_argument(fmt::format("array of text: {} given, shape differs", texts.size()));
  }
  std::size_t longest = 1;  // NumPy has no unicode type of length 0
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto codes, code_points(texts[i]),
                                  fmt::format("element {}", i));
    longest = std::max(longest, codes.size());
  }
  const std::uint64_t item = std::uint64_t{longest} * kCodePointBytes;
  if (item > (1ULL << 32) || (item > 0 && texts.size() > (1ULL << 32) / item)) {
    return resource_exhausted(
        fmt::format("array of {} texts of up to {} code points is more than "
                    "4 GiB - 1",
                    texts.size(), longest));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const NdFrame parts,
                            frame(fmt::format("<U{}", longest), shape, item * texts.size()));
  append(out, parts.head);
  for (const std::string& text : texts) {
    const auto codes = code_points(text);  // valid: seen above
    const std::size_t at = out.size();
    out.resize(at + static_cast<std::size_t>(item));
    if (!codes->empty()) {
      std::memcpy(out.data() + at, codes->data(), codes->size() * kCodePointBytes);
    }
  }
  append(out, parts.tail);
  return ok_status();
}

Status append_object_array(Bytes& out, std::span<const std::optional<std::string>> texts,
                           std::span<const std::int64_t> shape, bool binary) {
  const auto count = element_count(shape);
  if (!count.has_value() || static_cast<std::uint64_t>(*count) != texts.size()) {
    return invalid_argument(fmt::format("object array: {} given, shape differs", texts.size()));
  }
  Writer writer(out);
  ROPEWALK_RETURN_IF_ERROR(writer.map_head(4));
  ROPEWALK_RETURN_IF_ERROR(writer.string(kObjectMark));
  writer.boolean(true);
  ROPEWALK_RETURN_IF_ERROR(writer.string("dtype"));
  ROPEWALK_RETURN_IF_ERROR(writer.string("|O"));
  ROPEWALK_RETURN_IF_ERROR(writer.string("shape"));
  ROPEWALK_RETURN_IF_ERROR(writer.array_head(shape.size()));
  for (const std::int64_t extent : shape) writer.integer(extent);
  ROPEWALK_RETURN_IF_ERROR(writer.string("values"));
  ROPEWALK_RETURN_IF_ERROR(writer.array_head(texts.size()));
  for (const auto& text : texts) {
    if (!text.has_value()) {
      writer.nil();
    } else {
      ROPEWALK_RETURN_IF_ERROR(binary ? writer.binary(as_bytes(*text)) : writer.string(*text));
    }
  }
  return ok_status();
}

Status append_scalar(Bytes& out, DType dtype, const Json& value) {
  if (dtype_size(dtype) == 0 || !(value.is_number() || value.is_bool())) {
    return invalid_argument(
        fmt::format("a NumPy scalar of {} from {}", dtype_name(dtype), value.type_name()));
  }
  Writer writer(out);
  ROPEWALK_RETURN_IF_ERROR(writer.map_head(3));
  ROPEWALK_RETURN_IF_ERROR(writer.binary(as_bytes(kScalarMark)));
  writer.boolean(true);
  ROPEWALK_RETURN_IF_ERROR(writer.binary(as_bytes("data")));
  if (dtype_is_float(dtype)) {
    writer.number(value.as_double().value_or(0));
  } else {
    ROPEWALK_RETURN_IF_ERROR(writer.json(value));
  }
  ROPEWALK_RETURN_IF_ERROR(writer.binary(as_bytes("dtype")));
  return writer.string(dtype_numpy(dtype));
}

Result<std::optional<NdArray>> as_ndarray(const Value& value, const Limits& limits) {
  if (value.as_map() == nullptr) return std::optional<NdArray>();
  if (is_marked(value, kObjectMark)) return object_array(value);
  if (!is_marked(value, kArrayMark)) return std::optional<NdArray>();
  NdArray out;
  ROPEWALK_ASSIGN_OR_RETURN(out.shape, read_shape(value.find("shape")));
  const Value* data = value.find("data");
  const auto bytes = data == nullptr ? std::nullopt : data->as_text();
  if (!bytes.has_value()) return data_loss("NumPy array: no data");
  const Value* type = value.find("dtype");
  const auto dtype = type == nullptr ? std::nullopt : type->as_text();
  if (!dtype.has_value() || dtype->size() < 2) return data_loss("NumPy array: no dtype");
  if ((*dtype)[1] == 'U' || (*dtype)[1] == 'S') {
    ROPEWALK_RETURN_IF_ERROR(read_texts(out, *dtype, as_bytes(*bytes), limits));
  } else {
    ROPEWALK_RETURN_IF_ERROR(read_numbers(out, *dtype, as_bytes(*bytes), limits));
  }
  return std::optional<NdArray>(std::move(out));
}

const Value* as_scalar(const Value& value) {
  return is_marked(value, kScalarMark) ? value.find("data") : nullptr;
}

}  // namespace ropewalk::msgpack
