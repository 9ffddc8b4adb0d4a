#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <fmt/format.h>

#include "ropewalk/format/hdf5/protocol_internal.h"

namespace ropewalk::hdf5_internal {
namespace {

void put_shape(ByteWriter& out, const std::vector<std::int64_t>& shape) {
  out.write_le(static_cast<std::uint8_t>(shape.size()));
  for (const std::int64_t n : shape) out.write_le(n);
}

Result<std::vector<std::int64_t>> get_shape(ByteCursor& in) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto rank, in.read_le<std::uint8_t>());
  std::vector<std::int64_t> shape;
  for (std::uint8_t i = 0; i < rank; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto n, in.read_le<std::int64_t>());
    if (n < 0) return data_loss("negative length of an axis");
    shape.push_back(n);
  }
  return shape;
}

Result<DType> get_dtype(ByteCursor& in) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto code, in.read_le<std::uint8_t>());
  if (code > static_cast<std::uint8_t>(DType::bytes)) return data_loss("unknown element type");
  return static_cast<DType>(code);
}

}  // namespace

void put_text(ByteWriter& out, std::string_view text) {
  out.write_le(static_cast<std::uint32_t>(text.size()));
  out.write(text);
}

Result<std::string> get_text(ByteCursor& in) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto size, in.read_le<std::uint32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan text, in.take(size));
  return std::string(as_text(text));
}

void put_value(ByteWriter& out, const Hdf5Value& value) {
  out.write_le(static_cast<std::uint8_t>(value.dtype));
  put_shape(out, value.shape);
  out.write_le(static_cast<std::uint32_t>(value.texts.size()));
  for (const std::string& text : value.texts) put_text(out, text);
  put_text(out, as_text(value.data));
}

Result<Hdf5Value> get_value(ByteCursor& in) {
  Hdf5Value value;
  ROPEWALK_ASSIGN_OR_RETURN(value.dtype, get_dtype(in));
  ROPEWALK_ASSIGN_OR_RETURN(value.shape, get_shape(in));
  ROPEWALK_ASSIGN_OR_RETURN(const auto count, in.read_le<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(std::string text, get_text(in));
    value.texts.push_back(std::move(text));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto size, in.read_le<std::uint32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan data, in.take(size));
  value.data.assign(data.begin(), data.end());
  const auto elements = element_count(value.shape);
  const std::size_t item = dtype_size(value.dtype);
  const bool fits =
      elements && (item == 0 ? value.data.empty() && std::cmp_equal(value.texts.size(), *elements)
                             : value.texts.empty() && value.data.size() % item == 0 &&
                                   std::cmp_equal(value.data.size() / item, *elements));
  if (!fits) return data_loss("a value does not fit its shape");
  return value;
}

void put_info(ByteWriter& out, const Hdf5ObjectInfo& info) {
  out.write_le(static_cast<std::uint8_t>(info.kind));
  out.write_le(static_cast<std::uint8_t>(info.dtype.has_value()));
  out.write_le(static_cast<std::uint8_t>(info.dtype.value_or(DType::uint8)));
  put_text(out, info.type_name);
  put_shape(out, info.shape);
  put_shape(out, info.chunk);
  out.write_le(static_cast<std::uint8_t>(info.filtered));
  out.write_le(info.stored_bytes);
  out.write_le(static_cast<std::uint32_t>(info.attributes.size()));
  for (const auto& [name, value] : info.attributes) {
    put_text(out, name);
    put_value(out, value);
  }
}

Result<Hdf5ObjectInfo> get_info(ByteCursor& in) {
  Hdf5ObjectInfo info;
  ROPEWALK_ASSIGN_OR_RETURN(const auto kind, in.read_le<std::uint8_t>());
  if (kind > static_cast<std::uint8_t>(Hdf5ObjectKind::other))
    return data_loss("unknown kind of object");
  info.kind = static_cast<Hdf5ObjectKind>(kind);
  ROPEWALK_ASSIGN_OR_RETURN(const auto has_dtype, in.read_le<std::uint8_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const DType dtype, get_dtype(in));
  if (has_dtype != 0) info.dtype = dtype;
  ROPEWALK_ASSIGN_OR_RETURN(info.type_name, get_text(in));
  ROPEWALK_ASSIGN_OR_RETURN(info.shape, get_shape(in));
  ROPEWALK_ASSIGN_OR_RETURN(info.chunk, get_shape(in));
  ROPEWALK_ASSIGN_OR_RETURN(const auto filtered, in.read_le<std::uint8_t>());
  info.filtered = filtered != 0;
  ROPEWALK_ASSIGN_OR_RETURN(info.stored_bytes, in.read_le<std::uint64_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const auto count, in.read_le<std::uint32_t>());
  for (std::uint32_t i = 0; i < count; ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(std::string name, get_text(in));
    ROPEWALK_ASSIGN_OR_RETURN(Hdf5Value value, get_value(in));
    info.attributes.emplace_back(std::move(name), std::move(value));
  }
  return info;
}

Result<ByteSpan> open_response(ByteSpan response) {
  ByteCursor in(response);
  ROPEWALK_ASSIGN_OR_RETURN(const auto code, in.read_le<std::uint8_t>());
  const ByteSpan fields = response.subspan(in.offset());
  if (code == 0) return fields;
  if (code > static_cast<std::uint8_t>(StatusCode::internal))
    return data_loss("unknown status code");
  return Status(static_cast<StatusCode>(code), std::string(as_text(fields)));
}

Bytes make_response(const Status& status, ByteSpan fields) {
  Bytes out;
  ByteWriter writer(out);
  writer.write_le(static_cast<std::uint8_t>(status.code()));
  if (status.ok()) {
    writer.write(fields);
  } else {
    writer.write(status.message());
  }
  return out;
}

Status send_message(int socket, ByteSpan body) {
  Bytes message;
  ByteWriter writer(message);
  writer.write_le(static_cast<std::uint32_t>(body.size()));
  writer.write(body);
  ByteSpan rest = message;
  while (!rest.empty()) {
    const ssize_t n = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return unavailable("the other side is gone");
    rest = rest.subspan(static_cast<std::size_t>(n));
  }
  return ok_status();
}

}  // namespace ropewalk::hdf5_internal
