#include "ropewalk/format/message/row_extractor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "ropewalk/format/message/codec_internal.h"
#include "ropewalk/format/message/wire_internal.h"

namespace ropewalk::message {
namespace {

// Bytes of something of fixed layout, padding in front included, by the phase (offset modulo 8) it
// begins at.
using Extents = std::array<std::uint64_t, 8>;
constexpr std::uint64_t kMaxFixedBytes = 1ULL << 40;
// A schema that takes more steps than this is decoded the long way.
constexpr std::uint32_t kMaxSteps = 1 << 16;

enum class OpCode : std::uint8_t {
  skip_fixed,  // extents
  skip_string,
  skip_row,  // a sequence of primitives of `size`
  take,      // a primitive of `kind` into `slot`
  take_row,  // `count` primitives into `slot`; a sequence has its length in front
  each,      // body for each element of a sequence, or of an array of `count`
  pick,      // like each, with bodies of their own for some elements
};

struct Op {
  OpCode code = OpCode::skip_fixed;
  TypeKind kind = TypeKind::uint8;
  bool sequence = false;
  std::uint32_t size = 0;
  std::uint64_t count = 0;
  std::uint32_t slot = 0;
  std::uint32_t field = 0;  // of the request, for messages
  Extents extents{};
  std::vector<Op> body;
  std::vector<std::pair<std::uint64_t, std::vector<Op>>> picks;  // by element
};

struct Request {
  std::string_view rest;  // of the path
  std::uint32_t field = 0;
};

std::string_view without_dot(std::string_view path) {
  if (!path.empty() && path.front() == '.') path.remove_prefix(1);
  return path;
}

template <typename T>
void widen(const std::uint8_t* from, std::uint64_t count, double* to) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    to[i] = static_cast<double>(value);
  }
}

void widen(TypeKind kind, const std::uint8_t* from, std::uint64_t count, double* to) {
  switch (kind) {
    case TypeKind::float64:
      std::memcpy(to, from, count * sizeof(double));
      return;
    case TypeKind::float32:
      return widen<float>(from, count, to);
    case TypeKind::boolean:
      for (std::uint64_t i = 0; i < count; ++i) to[i] = from[i] != 0 ? 1.0 : 0.0;
      return;
    case TypeKind::uint8:
      return widen<std::uint8_t>(from, count, to);
    case TypeKind::int8:
      return widen<std::int8_t>(from, count, to);
    case TypeKind::int16:
      return widen<std::int16_t>(from, count, to);
    case TypeKind::uint16:
      return widen<std::uint16_t>(from, count, to);
    case TypeKind::int32:
      return widen<std::int32_t>(from, count, to);
    case TypeKind::uint32:
      return widen<std::uint32_t>(from, count, to);
    case TypeKind::int64:
      return widen<std::int64_t>(from, count, to);
    case TypeKind::uint64:
      return widen<std::uint64_t>(from, count, to);
    default:
      return;
  }
}

bool is_plain_number(TypeKind kind) { return kind <= TypeKind::float64; }

// Turns a type and the wanted paths into a program, for one maximal alignment.
class Planner {
 public:
  Planner(const TypeTable& table, const std::vector<RowField>& fields,
          const std::vector<std::uint32_t>& slots, std::size_t max_alignment)
      : table_(table),
        fields_(fields),
        slots_(slots),
        max_alignment_(max_alignment),
        wanted_(fields.size()) {}

  // `plain` is cleared when a part of the type is no plain sequence of members.
  Status plan(std::vector<Op>& out, bool& plain) {
    std::vector<Request> requests;
    for (std::uint32_t i = 0; i < fields_.size(); ++i) requests.push_back({fields_[i].path, i});
    ROPEWALK_RETURN_IF_ERROR(take(table_.root, requests, out));
    plain = plain_;
    return ok_status();
  }

 private:
  Status misses(const Request& request) const {
    return not_found(
        fmt::format("field '{}': the schema has no such path", fields_[request.field].path));
  }
  Status misfit(const Request& request, std::string_view found) const {
    const RowField& field = fields_[request.field];
    return invalid_argument(
        fmt::format("field '{}': {} numbers expected, {} found", field.path, field.width, found));
  }

  std::size_t alignment(TypeKind kind) const {
    return std::min(primitive_alignment(kind), max_alignment_);
  }

  // The bytes of `count` elements from `phase` on. Phases go in rings of at most eight elements, so
  // that 840 elements, the least common multiple, always take the same once a ring is entered.
  static std::uint64_t repeat(const Extents& element, std::uint64_t phase, std::uint64_t count) {
    constexpr std::uint64_t kRing = 840;
    std::uint64_t bytes = 0;
    const auto walk = [&](std::uint64_t steps) {
      for (std::uint64_t i = 0; i < steps; ++i) bytes += element[(phase + bytes) % 8];
    };
    const std::uint64_t lead = std::min<std::uint64_t>(count, 8);
    walk(lead);
    count -= lead;
    if (count < kRing) return walk(count), bytes;
    const std::uint64_t before = bytes;
    walk(kRing);
    bytes = before + (count / kRing) * (bytes - before);
    walk(count % kRing);
    return bytes;
  }

  // The extents of a type of fixed layout.
  std::optional<Extents> fixed(std::uint32_t index) {
    if (const auto known = fixed_.find(index); known != fixed_.end()) return known->second;
    auto extents = measure(index);
    fixed_.emplace(index, extents);
    return extents;
  }

  std::optional<Extents> measure(std::uint32_t index) {
    const Type& type = table_.types[index];
    const TypeKind kind = table_.wire_kind(type);
    Extents out{};
    if (static_cast<std::uint32_t>(kind) < kPrimitiveKinds) {
      const std::size_t to = alignment(kind);
      for (std::uint64_t phase = 0; phase < 8; ++phase) {
        out[phase] = (to - phase % to) % to + primitive_size(kind);
      }
      return out;
    }
    if (kind == TypeKind::array) {
      const auto element = fixed(type.element);
      if (!element.has_value() || type.count > kMaxFixedBytes) return std::nullopt;
      for (std::uint64_t phase = 0; phase < 8; ++phase) {
        out[phase] = repeat(*element, phase, type.count);
        if (out[phase] > kMaxFixedBytes) return std::nullopt;
      }
      return out;
    }
    if (kind == TypeKind::structure && plain_structure(type)) {
      const Structure& structure = table_.structures[type.definition];
      std::vector<Extents> members;
      for (const Field& field : structure.fields) {
        const auto member = fixed(field.type);
        if (!member.has_value()) return std::nullopt;
        members.push_back(*member);
      }
      for (std::uint64_t phase = 0; phase < 8; ++phase) {
        std::uint64_t bytes = 0;
        for (const Extents& member : members) bytes += member[(phase + bytes) % 8];
        if (bytes > kMaxFixedBytes) return std::nullopt;
        out[phase] = bytes + (structure.placeholder ? 1 : 0);
      }
      return out;
    }
    return std::nullopt;
  }

  bool plain_structure(const Type& type) const {
    const Structure& structure = table_.structures[type.definition];
    // A type that says nothing is plain in the payloads that the program is for.
    return structure.extensibility <= Extensibility::final &&
           std::ranges::none_of(structure.fields, &Field::optional);
  }

  static void skip_extents(const Extents& extents, std::vector<Op>& out) {
    if (!out.empty() && out.back().code == OpCode::skip_fixed) {
      Extents& before = out.back().extents;
      for (std::uint64_t phase = 0; phase < 8; ++phase) {
        before[phase] += extents[(phase + before[phase]) % 8];
      }
      return;
    }
    Op op{.code = OpCode::skip_fixed};
    op.extents = extents;
    out.push_back(std::move(op));
  }

  void skip(std::uint32_t index, std::vector<Op>& out) {
    if (++steps_ > kMaxSteps) plain_ = false;
    if (!plain_) return;
    if (const auto extents = fixed(index)) return skip_extents(*extents, out);
    const Type& type = table_.types[index];
    switch (type.kind) {
      case TypeKind::string:
        out.push_back({.code = OpCode::skip_string});
        return;
      case TypeKind::structure:
        if (!plain_structure(type)) plain_ = false;
        for (const Field& field : table_.structures[type.definition].fields) skip(field.type, out);
        return;
      case TypeKind::sequence:
      case TypeKind::array: {
        const TypeKind kind = table_.wire_kind(table_.types[type.element]);
        if (type.kind == TypeKind::sequence && is_plain_number(kind)) {
          out.push_back(
              {.code = OpCode::skip_row, .size = static_cast<std::uint32_t>(primitive_size(kind))});
          return;
        }
        Op op{
            .code = OpCode::each, .sequence = type.kind == TypeKind::sequence, .count = type.count};
        skip(type.element, op.body);
        out.push_back(std::move(op));
        return;
      }
      default:
        plain_ = false;  // wide strings, unions
    }
  }

  void take_number(TypeKind kind, std::uint32_t field, std::vector<Op>& out) {
    out.push_back({.code = OpCode::take, .kind = kind, .slot = slots_[field], .field = field});
    --wanted_;
  }

  Status take(std::uint32_t index, std::vector<Request>& requests, std::vector<Op>& out) {
    if (requests.empty()) return skip(index, out), ok_status();
    const Type& type = table_.types[index];
    const TypeKind kind = table_.wire_kind(type);
    if (is_plain_number(kind)) {
      const Request& request = requests.front();
      if (!request.rest.empty()) return misses(request);
      if (requests.size() > 1) return twice(requests[1]);
      if (fields_[request.field].width != 1) return misfit(request, "1");
      take_number(kind, request.field, out);
      return ok_status();
    }
    switch (kind) {
      case TypeKind::structure:
        return take_members(type, requests, out);
      case TypeKind::time:
      case TypeKind::duration:
        return take_time(kind, requests, out);
      case TypeKind::sequence:
      case TypeKind::array:
        return take_elements(type, requests, out);
      default:
        return requests.front().rest.empty() ? misfit(requests.front(), table_.name_of(index))
                                             : misses(requests.front());
    }
  }

  Status twice(const Request& request) const {
    return invalid_argument(
        fmt::format("field '{}' is asked for twice", fields_[request.field].path));
  }

  Status take_members(const Type& type, const std::vector<Request>& requests,
                      std::vector<Op>& out) {
    if (!plain_structure(type)) plain_ = false;
    const Structure& structure = table_.structures[type.definition];
    std::vector<std::vector<Request>> by_field(structure.fields.size());
    for (const Request& request : requests) {
      const std::size_t end = std::min(request.rest.find_first_of(".["), request.rest.size());
      const auto found =
          std::ranges::find(structure.fields, request.rest.substr(0, end), &Field::name);
      if (found == structure.fields.end()) return misses(request);
      by_field[static_cast<std::size_t>(found - structure.fields.begin())].push_back(
          {without_dot(request.rest.substr(end)), request.field});
    }
    for (std::size_t i = 0; i < structure.fields.size(); ++i) {
      if (wanted_ == 0 && loops_ == 0) return ok_status();
      ROPEWALK_RETURN_IF_ERROR(take(structure.fields[i].type, by_field[i], out));
    }
    if (structure.placeholder) skip(TypeTable::primitive(TypeKind::uint8), out);
    return ok_status();
  }

  Status take_time(TypeKind kind, const std::vector<Request>& requests, std::vector<Op>& out) {
    const TypeKind part = kind == TypeKind::time ? TypeKind::uint32 : TypeKind::int32;
    for (const std::string_view name : {"sec", "nsec"}) {
      std::optional<std::uint32_t> field;
      for (const Request& request : requests) {
        if (request.rest != "sec" && request.rest != "nsec") return misses(request);
        if (request.rest != name) continue;
        if (field.has_value()) return twice(request);
        if (fields_[request.field].width != 1) return misfit(request, "1");
        field = request.field;
      }
      if (field.has_value()) {
        take_number(part, *field, out);
      } else {
        skip(TypeTable::primitive(part), out);
      }
    }
    return ok_status();
  }

  Status take_elements(const Type& type, std::vector<Request>& requests, std::vector<Op>& out) {
    const TypeKind kind = table_.wire_kind(table_.types[type.element]);
    const bool sequence = type.kind == TypeKind::sequence;
    if (requests.front().rest.empty()) {
      const Request& request = requests.front();
      const std::uint32_t width = fields_[request.field].width;
      if (requests.size() > 1) return twice(requests[1]);
      if (!is_plain_number(kind)) return misfit(request, table_.name_of(type.element) + "[]");
      if (!sequence && type.count != width) return misfit(request, fmt::to_string(type.count));
      out.push_back({.code = OpCode::take_row,
                     .kind = kind,
                     .sequence = sequence,
                     .size = static_cast<std::uint32_t>(primitive_size(kind)),
                     .count = width,
                     .slot = slots_[request.field],
                     .field = request.field});
      --wanted_;
      return ok_status();
    }
    Op op{.code = OpCode::pick,
          .sequence = sequence,
          .count = type.count,
          .field = requests.front().field};
    ++loops_;
    std::vector<std::pair<std::uint64_t, std::vector<Request>>> by_element;
    for (const Request& request : requests) {
      const std::size_t close = request.rest.find(']');
      std::uint64_t element = 0;
      if (request.rest.empty() || request.rest.front() != '[' || close == std::string_view::npos) {
        return misses(request);
      }
      const char* end = request.rest.data() + close;
      const auto read = std::from_chars(request.rest.data() + 1, end, element);
      if (read.ec != std::errc() || read.ptr != end) return misses(request);
      if (!sequence && element >= type.count) return misses(request);
      auto found = std::ranges::find(by_element, element,
                                     &std::pair<std::uint64_t, std::vector<Request>>::first);
      if (found == by_element.end()) found = by_element.insert(by_element.end(), {element, {}});
      found->second.push_back({without_dot(request.rest.substr(close + 1)), request.field});
    }
    std::ranges::sort(by_element, {}, &std::pair<std::uint64_t, std::vector<Request>>::first);
    for (auto& [element, wanted] : by_element) {
      std::vector<Op> body;
      ROPEWALK_RETURN_IF_ERROR(take(type.element, wanted, body));
      op.picks.emplace_back(element, std::move(body));
    }
    skip(type.element, op.body);
    --loops_;
    out.push_back(std::move(op));
    return ok_status();
  }

  const TypeTable& table_;
  const std::vector<RowField>& fields_;
  const std::vector<std::uint32_t>& slots_;
  std::size_t max_alignment_;
  std::size_t wanted_;
  std::uint32_t loops_ = 0;
  std::uint32_t steps_ = 0;
  std::map<std::uint32_t, std::optional<Extents>> fixed_;
  bool plain_ = true;
};

class Machine {
 public:
  Machine(ByteSpan payload, std::size_t origin, std::size_t max_alignment,
          const std::vector<RowField>& fields, std::span<double> row)
      : data_(payload.data()),
        position_(origin),
        end_(payload.size()),
        origin_(origin),
        max_alignment_(max_alignment),
        fields_(fields),
        row_(row) {}

  bool run(const std::vector<Op>& ops) {
    for (const Op& op : ops) {
      if (!step(op)) return false;
    }
    return true;
  }
  Status status() { return std::move(status_); }

 private:
  bool fail(Status status) {
    status_ = std::move(status);
    return false;
  }
  bool cut(std::uint64_t needed) {
    return fail(data_loss(
        fmt::format("byte {}: {} bytes expected, {} left", position_, needed, end_ - position_)));
  }
  bool align(std::size_t size) {
    const std::size_t to = std::min(size, max_alignment_);
    const std::size_t padding = (to - ((position_ - origin_) & (to - 1))) & (to - 1);
    if (padding > end_ - position_) return cut(padding);
    position_ += padding;
    return true;
  }
  bool length(std::uint64_t& out) {
    if (!align(4)) return false;
    if (end_ - position_ < 4) return cut(4);
    std::uint32_t read = 0;
    std::memcpy(&read, data_ + position_, 4);
    position_ += 4;
    out = read;
    return true;
  }

  bool step(const Op& op) {
    switch (op.code) {
      case OpCode::skip_fixed: {
        const std::uint64_t bytes = op.extents[(position_ - origin_) & 7];
        if (bytes > end_ - position_) return cut(bytes);
        position_ += bytes;
        return true;
      }
      case OpCode::skip_string: {
        std::uint64_t bytes = 0;
        if (!length(bytes)) return false;
        if (bytes > end_ - position_) return cut(bytes);
        position_ += bytes;
        return true;
      }
      case OpCode::skip_row: {
        std::uint64_t count = 0;
        if (!length(count)) return false;
        if (count == 0) return true;
        if (!align(op.size)) return false;
        if (count * op.size > end_ - position_) return cut(count * op.size);
        position_ += count * op.size;
        return true;
      }
      case OpCode::take: {
        const std::size_t size = primitive_size(op.kind);
        if (!align(size)) return false;
        if (size > end_ - position_) return cut(size);
        widen(op.kind, data_ + position_, 1, row_.data() + op.slot);
        position_ += size;
        return true;
      }
      case OpCode::take_row:
        return take_row(op);
      case OpCode::each:
      case OpCode::pick:
        return elements(op);
    }
    return false;
  }

  bool take_row(const Op& op) {
    std::uint64_t count = op.count;
    if (op.sequence && !length(count)) return false;
    if (count != op.count) {
      if (count != 0) {
        return fail(data_loss(fmt::format("{}: byte {}: {} elements expected, {} found",
                                          fields_[op.field].path, position_ - 4, op.count, count)));
      }
      std::fill_n(row_.begin() + op.slot, op.count, std::numeric_limits<double>::quiet_NaN());
      return true;
    }
    if (count == 0) return true;
    if (!align(op.size)) return false;
    if (count * op.size > end_ - position_) return cut(count * op.size);
    widen(op.kind, data_ + position_, count, row_.data() + op.slot);
    position_ += count * op.size;
    return true;
  }

  bool elements(const Op& op) {
    std::uint64_t count = op.count;
    if (op.sequence && !length(count)) return false;
    if (!op.picks.empty() && op.picks.back().first >= count) {
      return fail(data_loss(fmt::format("{}: byte {}: there are {} elements",
                                        fields_[op.field].path, position_, count)));
    }
    std::size_t pick = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::size_t before = position_;
      const bool picked = pick < op.picks.size() && op.picks[pick].first == i;
      if (!run(picked ? op.picks[pick].second : op.body)) return false;
      if (picked) ++pick;
      // Elements without bytes need not be counted.
      if (position_ == before && pick == op.picks.size()) break;
    }
    return true;
  }

  const std::uint8_t* data_;
  std::size_t position_;
  std::size_t end_;
  std::size_t origin_;
  std::size_t max_alignment_;
  const std::vector<RowField>& fields_;
  std::span<double> row_;
  Status status_;
};

// The values of one path in a decoded message.
Status take_values(const Value& root, const RowField& field, double* out) {
  std::string_view path = field.path;
  std::optional<std::size_t> element;
  const Value* value = root.find_path(path);
  if (value == nullptr && !path.empty() && path.back() == ']') {
    const std::size_t open = path.rfind('[');
    std::size_t index = 0;
    const auto read = std::from_chars(path.data() + open + 1, path.data() + path.size(), index);
    if (open != std::string_view::npos && read.ec == std::errc()) {
      element = index;
      value = root.find_path(path.substr(0, open));
    }
  }
  if (value == nullptr) return data_loss(fmt::format("{}: the message has no such field", path));
  if (const Value::Numbers* numbers = value->as_numbers()) {
    if (element.has_value()) {
      if (*element >= numbers->size()) {
        return data_loss(fmt::format("{}: there are {} elements", path, numbers->size()));
      }
      *out = numbers->at(*element);
      return ok_status();
    }
    if (numbers->size() == 0) {
      std::fill_n(out, field.width, std::numeric_limits<double>::quiet_NaN());
      return ok_status();
    }
    if (numbers->size() != field.width) {
      return data_loss(
          fmt::format("{}: {} elements expected, {} found", path, field.width, numbers->size()));
    }
    for (std::size_t i = 0; i < numbers->size(); ++i) out[i] = numbers->at(i);
    return ok_status();
  }
  if (const Value::Array* array = value->as_array()) {
    if (array->empty()) {
      std::fill_n(out, field.width, std::numeric_limits<double>::quiet_NaN());
      return ok_status();
    }
    if (array->size() != field.width) {
      return data_loss(
          fmt::format("{}: {} elements expected, {} found", path, field.width, array->size()));
    }
    for (std::size_t i = 0; i < array->size(); ++i) {
      const auto number = (*array)[i].as_double();
      if (!number.has_value()) return data_loss(fmt::format("{}[{}]: no number", path, i));
      out[i] = *number;
    }
    return ok_status();
  }
  const auto number = value->as_double();
  if (!number.has_value() || field.width != 1) {
    return data_loss(
        fmt::format("{}: {} numbers expected, a {} found", path, field.width, value->type_name()));
  }
  *out = *number;
  return ok_status();
}

}  // namespace

struct RowExtractor::Impl {
  std::shared_ptr<const MessageCodec> codec;
  std::vector<RowField> fields;
  std::vector<std::uint32_t> slots;  // where each field begins in the row
  std::size_t width = 0;
  bool ros1 = false;
  // For ROS 1 and XCDR1; absent where the type is none of plain members, or the encoding has names
  // in it.
  std::optional<std::vector<Op>> program;
};

RowExtractor::RowExtractor(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RowExtractor::RowExtractor(RowExtractor&&) noexcept = default;
RowExtractor& RowExtractor::operator=(RowExtractor&&) noexcept = default;
RowExtractor::~RowExtractor() = default;

Result<RowExtractor> RowExtractor::compile(std::shared_ptr<const MessageCodec> codec,
                                           std::vector<RowField> fields) {
  auto impl = std::make_unique<Impl>();
  impl->codec = std::move(codec);
  impl->fields = std::move(fields);
  for (const RowField& field : impl->fields) {
    impl->slots.push_back(static_cast<std::uint32_t>(impl->width));
    impl->width += field.width;
    if (impl->width > std::numeric_limits<std::uint32_t>::max()) {
      return invalid_argument("a row of more than 4294967295 numbers");
    }
  }
  if (const auto* wire = std::get_if<WireCodec>(&impl->codec->impl_->codec)) {
    impl->ros1 = wire->ros1;
    bool plain = true;
    std::vector<Op> ops;
    ROPEWALK_RETURN_IF_ERROR(
        Planner(wire->table, impl->fields, impl->slots, wire->ros1 ? 1 : 8).plan(ops, plain));
    if (plain) impl->program = std::move(ops);
  }
  return RowExtractor(std::move(impl));
}

std::size_t RowExtractor::width() const { return impl_->width; }

Status RowExtractor::extract(ByteSpan payload, std::span<double> row) const {
  if (row.size() != impl_->width) {
    return invalid_argument(
        fmt::format("a row of {} numbers expected, {} given", impl_->width, row.size()));
  }
  // Kind 1 is XCDR1, little-endian; everything else takes the long way.
  if (impl_->program.has_value() &&
      (impl_->ros1 || (payload.size() >= kEncapsulationBytes && payload[1] == 1))) {
    Machine machine(payload, impl_->ros1 ? 0 : kEncapsulationBytes, impl_->ros1 ? 1 : 8,
                    impl_->fields, row);
    return machine.run(*impl_->program) ? ok_status() : machine.status();
  }
  ROPEWALK_ASSIGN_OR_RETURN(const Message message, impl_->codec->decode(payload));
  for (std::size_t i = 0; i < impl_->fields.size(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(
        take_values(message.root(), impl_->fields[i], row.data() + impl_->slots[i]));
  }
  return ok_status();
}

}  // namespace ropewalk::message
