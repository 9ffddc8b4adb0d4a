#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/bag/rosbag1_internal.h"

namespace ropewalk::bag {
namespace {

// Headers hold numbers and one topic; definitions are data.
constexpr std::uint64_t kMaxHeaderBytes = 1ULL << 20;
constexpr std::uint64_t kReadAheadBytes = 64ULL << 10;

Status too_long(std::uint64_t offset, std::uint64_t size) {
  return data_loss(fmt::format("byte {}: a record header of {} bytes; expected at most {}", offset,
                               size, kMaxHeaderBytes));
}

Status finish_head(RecordHead& head, ByteSpan header, std::uint64_t offset) {
  auto fields = Fields::parse(header);
  if (!fields.ok()) {
    return fields.status().with_context(fmt::format("record header at byte {}", offset));
  }
  head.fields = std::move(fields).value();
  const auto op = head.fields.op();
  if (!op) return data_loss(fmt::format("byte {}: a record without a known op", offset));
  head.op = *op;
  return ok_status();
}

}  // namespace

Result<Fields> Fields::parse(ByteSpan header) {
  Fields out;
  ByteCursor cursor(header);
  while (!cursor.at_end()) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto length, cursor.read_le<std::uint32_t>());
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan field, cursor.take(length));
    const auto equals = as_text(field).find('=');
    if (equals == std::string_view::npos || equals == 0) {
      return data_loss(fmt::format("byte {}: a field without name", cursor.offset() - length));
    }
    out.fields_.emplace_back(as_text(field).substr(0, equals), field.subspan(equals + 1));
  }
  return out;
}

std::optional<ByteSpan> Fields::find(std::string_view name) const {
  for (const auto& [key, value] : fields_) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::string Fields::text(std::string_view name) const {
  const auto value = find(name);
  return value ? std::string(as_text(*value)) : std::string();
}

std::int64_t ros1_time(std::uint32_t seconds, std::uint32_t nanoseconds) {
  return std::int64_t{seconds} * 1'000'000'000 + nanoseconds;
}

std::optional<std::int64_t> Fields::time(std::string_view name) const {
  const auto value = number<std::uint64_t>(name);
  if (!value) return std::nullopt;
  return ros1_time(static_cast<std::uint32_t>(*value), static_cast<std::uint32_t>(*value >> 32));
}

std::optional<Op> Fields::op() const {
  const auto value = number<std::uint8_t>("op");
  if (!value || *value < 0x02 || *value > 0x07) return std::nullopt;
  return static_cast<Op>(*value);
}

Result<ByteSpan> Window::view(std::uint64_t offset, std::uint64_t size) {
  if (offset > source_.size() || size > source_.size() - offset) {
    return out_of_range(fmt::format("{}: {} bytes at {} go past the end at {}", source_.name(),
                                    size, offset, source_.size()));
  }
  if (!source_.mapped().empty()) {
    return source_.mapped().subspan(static_cast<std::size_t>(offset),
                                    static_cast<std::size_t>(size));
  }
  if (offset < begin_ || offset + size > begin_ + buffer_.size()) {
    const std::uint64_t wanted = std::min(std::max(size, kReadAheadBytes), source_.size() - offset);
    buffer_.resize(static_cast<std::size_t>(wanted));
    begin_ = offset;
    if (Status status = source_.read_at(offset, buffer_); !status.ok()) {
      buffer_.clear();
      return status;
    }
  }
  return ByteSpan(buffer_).subspan(static_cast<std::size_t>(offset - begin_),
                                   static_cast<std::size_t>(size));
}

Result<ByteSpan> Window::view_up_to(std::uint64_t offset, std::uint64_t size) {
  if (offset >= source_.size()) return ByteSpan();
  return view(offset, std::min(size, source_.size() - offset));
}

Result<RecordHead> read_head(Window& window, std::uint64_t offset) {
  RecordHead head{.offset = offset};
  std::uint32_t header_size = 0;
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan front, window.view_up_to(offset, 4));
  if (front.size() < 4) return data_loss(fmt::format("byte {}: the file ends here", offset));
  std::memcpy(&header_size, front.data(), 4);
  if (header_size > kMaxHeaderBytes) return too_long(offset, header_size);
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan whole, window.view_up_to(offset, header_size + 8ULL));
  if (whole.size() < header_size + 8ULL) {
    return data_loss(fmt::format("byte {}: a record header of {} bytes is cut by the end of file",
                                 offset, header_size));
  }
  std::uint32_t data_size = 0;
  std::memcpy(&data_size, whole.data() + 4 + header_size, 4);
  head.data_offset = offset + header_size + 8;
  head.data_size = data_size;
  ROPEWALK_RETURN_IF_ERROR(finish_head(head, whole.subspan(4, header_size), offset));
  return head;
}

Result<RecordHead> parse_head(ByteSpan bytes, std::uint64_t offset) {
  RecordHead head{.offset = offset};
  ByteCursor cursor(bytes);
  ROPEWALK_ASSIGN_OR_RETURN(const auto header_size, cursor.read_le<std::uint32_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan header, cursor.take(header_size));
  ROPEWALK_ASSIGN_OR_RETURN(const auto data_size, cursor.read_le<std::uint32_t>());
  if (data_size > cursor.remaining()) {
    return data_loss(
        fmt::format("byte {}: {} bytes of data, {} left", offset, data_size, cursor.remaining()));
  }
  head.data_offset = offset + header_size + 8ULL;
  head.data_size = data_size;
  ROPEWALK_RETURN_IF_ERROR(finish_head(head, header, offset));
  return head;
}

}  // namespace ropewalk::bag
