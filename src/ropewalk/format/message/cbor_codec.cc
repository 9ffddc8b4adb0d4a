// CBOR payloads through libcbor's streaming decoder; the tree is built here, within limits.
// Spec: RFC 8949, RFC 8746 (typed arrays); mcap 5.5.
#include <cbor.h>

#include <bit>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/format/message/codec_internal.h"
#include "ropewalk/format/message/value_json.h"

namespace ropewalk::message {
namespace {

constexpr std::uint64_t kMaxValues = 1ULL << 24;
constexpr std::uint64_t kTagEpoch = 1;

// The element type of an RFC 8746 typed array that is stored as we store numbers.
std::optional<DType> typed_array(std::uint64_t tag) {
  switch (tag) {
    case 64:
    case 68:
      return DType::uint8;
    case 69:
      return DType::uint16;
    case 70:
      return DType::uint32;
    case 71:
      return DType::uint64;
    case 72:
      return DType::int8;
    case 77:
      return DType::int16;
    case 78:
      return DType::int32;
    case 79:
      return DType::int64;
    case 85:
      return DType::float32;
    case 86:
      return DType::float64;
    default:
      return std::nullopt;
  }
}

Value tagged(std::uint64_t tag, Value value) {
  if (tag == kTagEpoch) {
    if (const auto sec = value.as_int64();
        sec.has_value() && !std::holds_alternative<double>(value.variant())) {
      return Value(Value::Time{.sec = *sec, .nsec = 0});
    }
    const auto real = value.as_double();
    if (real.has_value() && std::fabs(*real) < 9e15) {
      const double sec = std::floor(*real);
      return Value(
          Value::Time{.sec = static_cast<std::int64_t>(sec),
                      .nsec = static_cast<std::int64_t>(std::llround((*real - sec) * 1e9))});
    }
  }
  if (const auto dtype = typed_array(tag)) {
    const auto* bytes = std::get_if<ByteSpan>(&value.variant());
    if (bytes != nullptr && bytes->size() % dtype_size(*dtype) == 0) {
      return Value(Value::Numbers{.dtype = *dtype, .data = *bytes});
    }
  }
  return value;
}

// What is open while the stream is read. The callbacks come from C: nothing may be thrown through
// them that is not caught there, so they only note what they saw.
class Builder {
 public:
  Builder(ByteSpan payload, const Limits& limits, Arena& arena)
      : payload_(payload), limits_(limits), arena_(arena) {}

  Status run(Value& out) {
    static const cbor_callbacks kCallbacks = callbacks();
    while (!done_) {
      const cbor_decoder_result read =
          cbor_stream_decode(payload_.data() + at_, payload_.size() - at_, &kCallbacks, this);
      if (read.status == CBOR_DECODER_ERROR) {
        return data_loss(fmt::format("byte {}: no CBOR item begins here", at_));
      }
      if (read.status != CBOR_DECODER_FINISHED || read.read == 0) {
        return data_loss(fmt::format("byte {}: an item is cut short, {} bytes left", at_,
                                     payload_.size() - at_));
      }
      if (!status_.ok()) return std::move(status_);
      at_ += read.read;
    }
    if (at_ != payload_.size()) {
      return data_loss(
          fmt::format("byte {}: {} bytes after the value", at_, payload_.size() - at_));
    }
    out = std::move(root_);
    return ok_status();
  }

 private:
  enum class Kind : std::uint8_t { array, map, text, bytes };
  struct Open {
    Kind kind = Kind::array;
    bool indefinite = false;
    std::uint64_t left = 0;  // values, keys included
    std::vector<std::uint64_t> tags;
    Value::Array elements;
    Value::Object members;
    std::string_view key;
    bool has_key = false;
    std::string parts;
  };

  static Builder& of(void* context) { return *static_cast<Builder*>(context); }

  static constexpr cbor_callbacks callbacks() {
    cbor_callbacks out{};
    out.uint8 = [](void* c, std::uint8_t v) { of(c).add(Value(std::uint64_t{v})); };
    out.uint16 = [](void* c, std::uint16_t v) { of(c).add(Value(std::uint64_t{v})); };
    out.uint32 = [](void* c, std::uint32_t v) { of(c).add(Value(std::uint64_t{v})); };
    out.uint64 = [](void* c, std::uint64_t v) { of(c).add(Value(v)); };
    out.negint8 = [](void* c, std::uint8_t v) { of(c).negative(v); };
    out.negint16 = [](void* c, std::uint16_t v) { of(c).negative(v); };
    out.negint32 = [](void* c, std::uint32_t v) { of(c).negative(v); };
    out.negint64 = [](void* c, std::uint64_t v) { of(c).negative(v); };
    out.byte_string_start = [](void* c) { of(c).open(Kind::bytes, true, 0); };
    out.string_start = [](void* c) { of(c).open(Kind::text, true, 0); };
    out.byte_string = [](void* c, cbor_data data, std::size_t size) {
      of(c).chunk(Kind::bytes, ByteSpan(data, size));
    };
    out.string = [](void* c, cbor_data data, std::size_t size) {
      of(c).chunk(Kind::text, ByteSpan(data, size));
    };
    out.indef_array_start = [](void* c) { of(c).open(Kind::array, true, 0); };
    out.array_start = [](void* c, std::size_t n) { of(c).open(Kind::array, false, n); };
    out.indef_map_start = [](void* c) { of(c).open(Kind::map, true, 0); };
    out.map_start = [](void* c, std::size_t n) {
      of(c).open(Kind::map, false, n > SIZE_MAX / 2 ? SIZE_MAX : 2 * n);
    };
    out.tag = [](void* c, std::uint64_t v) { of(c).tag(v); };
    out.float2 = [](void* c, float v) { of(c).add(Value(v)); };
    out.float4 = [](void* c, float v) { of(c).add(Value(v)); };
    out.float8 = [](void* c, double v) { of(c).add(Value(v)); };
    out.undefined = [](void* c) { of(c).add(Value()); };
    out.null = [](void* c) { of(c).add(Value()); };
    out.boolean = [](void* c, bool v) { of(c).add(Value(v)); };
    out.indef_break = [](void* c) { of(c).stop(); };
    return out;
  }

  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  Status here(std::string_view what) const {
    return data_loss(fmt::format("byte {}: {}", at_, what));
  }

  void negative(std::uint64_t below) {
    if (below <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      add(Value(-1 - static_cast<std::int64_t>(below)));
    } else if (below == std::numeric_limits<std::uint64_t>::max()) {
      add(Value(std::string_view("-18446744073709551616")));
    } else {
      add(Value(arena_.keep(fmt::format("-{}", below + 1))));
    }
  }

  void tag(std::uint64_t tag) {
    constexpr std::size_t kMaxTags = 16;
    if (in_text()) return fail(here("a tag within a text"));
    if (tags_.size() == kMaxTags) {
      return fail(resource_exhausted(fmt::format("byte {}: more than {} tags", at_, kMaxTags)));
    }
    tags_.push_back(tag);
  }

  bool in_text() const {
    return !open_.empty() && (open_.back().kind == Kind::text || open_.back().kind == Kind::bytes);
  }

  void chunk(Kind kind, ByteSpan bytes) {
    if (in_text()) {
      if (open_.back().kind != kind) return fail(here("a chunk of another kind than its text"));
      open_.back().parts += as_text(bytes);
      return;
    }
    add(kind == Kind::text ? Value(as_text(bytes)) : Value(bytes));
  }

  void open(Kind kind, bool indefinite, std::uint64_t left) {
    if (in_text()) return fail(here("no chunk of a text"));
    if (open_.size() >= limits_.max_json_depth) {
      return fail(resource_exhausted(
          fmt::format("byte {}: nested deeper than {} levels", at_, limits_.max_json_depth)));
    }
    // Each value takes at least one byte.
    if (left > payload_.size() - at_) {
      return fail(
          here(fmt::format("{} values announced, {} bytes left", left, payload_.size() - at_)));
    }
    open_.push_back(
        {.kind = kind, .indefinite = indefinite, .left = left, .tags = std::move(tags_)});
    tags_.clear();
    if (!indefinite && left == 0) close();
  }

  void stop() {
    if (open_.empty() || !open_.back().indefinite || open_.back().has_key || !tags_.empty()) {
      return fail(here("a break with nothing to end"));
    }
    close();
  }

  void close() {
    Open closed = std::move(open_.back());
    open_.pop_back();
    tags_ = std::move(closed.tags);
    switch (closed.kind) {
      case Kind::array:
        return add(Value(std::move(closed.elements)));
      case Kind::map:
        return add(Value(std::move(closed.members)));
      case Kind::text:
        return add(Value(arena_.keep(closed.parts)));
      case Kind::bytes:
        return add(Value(ByteSpan(as_bytes(arena_.keep(closed.parts)))));
    }
  }

  void add(Value value) {
    if (in_text()) return fail(here("no chunk of a text"));
    if (++values_ > kMaxValues) {
      return fail(resource_exhausted(fmt::format("byte {}: more than {} values", at_, kMaxValues)));
    }
    while (!tags_.empty()) {
      value = tagged(tags_.back(), std::move(value));
      tags_.pop_back();
    }
    if (open_.empty()) {
      root_ = std::move(value);
      done_ = true;
      return;
    }
    Open& around = open_.back();
    if (around.kind == Kind::array) {
      around.elements.push_back(std::move(value));
    } else if (!around.has_key) {
      // The text of a text of a text would double with each level.
      if (value.as_array() != nullptr || value.as_object() != nullptr) {
        return fail(here(fmt::format("a map key of type {}", value.type_name())));
      }
      const auto text = value.as_string();
      around.key = text.has_value() ? *text : arena_.keep(to_json_text(value));
      around.has_key = true;
    } else {
      around.members.push_back({around.key, std::move(value)});
      around.has_key = false;
    }
    if (!around.indefinite && --around.left == 0) close();
  }

  ByteSpan payload_;
  const Limits& limits_;
  Arena& arena_;
  std::size_t at_ = 0;
  std::uint64_t values_ = 0;
  std::vector<Open> open_;
  std::vector<std::uint64_t> tags_;
  Value root_;
  bool done_ = false;
  Status status_;
};

void put_head(std::uint8_t major, std::uint64_t number, Bytes& out) {
  const auto put = [&](std::uint8_t detail) {
    out.push_back(static_cast<std::uint8_t>(major << 5 | detail));
  };
  ByteWriter writer(out);
  if (number < 24) {
    put(static_cast<std::uint8_t>(number));
  } else if (number <= 0xFF) {
    put(24);
    out.push_back(static_cast<std::uint8_t>(number));
  } else if (number <= 0xFFFF) {
    put(25);
    writer.write_be(static_cast<std::uint16_t>(number));
  } else if (number <= 0xFFFFFFFF) {
    put(26);
    writer.write_be(static_cast<std::uint32_t>(number));
  } else {
    put(27);
    writer.write_be(number);
  }
}

void put_integer(std::int64_t number, Bytes& out) {
  if (number >= 0) return put_head(0, static_cast<std::uint64_t>(number), out);
  put_head(1, static_cast<std::uint64_t>(-1 - number), out);
}

void put_block(std::uint8_t major, ByteSpan bytes, Bytes& out) {
  put_head(major, bytes.size(), out);
  ByteWriter(out).write(bytes);
}

void put(const Value& value, Bytes& out) {
  if (const auto* object = value.as_object()) {
    put_head(5, object->size(), out);
    for (const Value::Member& member : *object) {
      put_block(3, as_bytes(member.name), out);
      put(member.value, out);
    }
  } else if (const auto* array = value.as_array()) {
    put_head(4, array->size(), out);
    for (const Value& element : *array) put(element, out);
  } else if (const auto bytes = value.as_binary()) {
    put_block(2, *bytes, out);
  } else if (const auto* numbers = value.as_numbers()) {
    put_head(4, numbers->size(), out);
    for (std::size_t i = 0; i < numbers->size(); ++i) put(numbers->element(i), out);
  } else if (const auto text = value.as_string()) {
    put_block(3, as_bytes(*text), out);
  } else if (const auto* time = std::get_if<Value::Time>(&value.variant())) {
    put_head(5, 2, out);
    put_block(3, as_bytes("sec"), out);
    put_integer(time->sec, out);
    put_block(3, as_bytes("nsec"), out);
    put_integer(time->nsec, out);
  } else if (const auto flag = value.as_bool()) {
    out.push_back(*flag ? 0xF5 : 0xF4);
  } else if (const auto* wide = std::get_if<std::uint64_t>(&value.variant())) {
    put_head(0, *wide, out);
  } else if (const auto* single = std::get_if<float>(&value.variant())) {
    out.push_back(0xFA);
    ByteWriter(out).write_be(std::bit_cast<std::uint32_t>(*single));
  } else if (const auto* real = std::get_if<double>(&value.variant())) {
    out.push_back(0xFB);
    ByteWriter(out).write_be(std::bit_cast<std::uint64_t>(*real));
  } else if (const auto whole = value.as_int64()) {
    put_integer(*whole, out);
  } else {
    out.push_back(0xF6);
  }
}

}  // namespace

Status CborCodec::decode(ByteSpan payload, const Limits& limits, Message& out) const {
  if (payload.empty()) return data_loss("byte 0: an empty payload is no CBOR value");
  return Builder(payload, limits, out.arena()).run(out.root());
}

Result<Bytes> CborCodec::encode(const Value& value) const {
  Bytes out;
  put(value, out);
  return out;
}

}  // namespace ropewalk::message
