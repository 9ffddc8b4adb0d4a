#pragma once
// Value: one decoded value of any message encoding; Message: a value with the memory behind it.
// Numbers in a row stay the bytes of the payload and are looked at as an array.
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/dtype.h"
#include "ropewalk/base/core/nd_view.h"

namespace ropewalk::message {

/// Lifetime: texts, bytes and numbers are views into the payload or into the Message that holds the
/// value; names of members belong to the codec.
class Value {
 public:
  /// A point in time or a span of time, as ROS 1 and the timestamp of MessagePack and CBOR have it.
  struct Time {
    std::int64_t sec = 0;
    std::int64_t nsec = 0;
    bool operator==(const Time&) const = default;
  };
  /// A value of an enumeration; `name` is empty when the schema has none for the number.
  struct Enumerator {
    std::int64_t number = 0;
    std::string_view name;
    bool operator==(const Enumerator&) const = default;
  };
  /// Numbers or booleans one after the other, little-endian, at any alignment.
  struct Numbers {
    DType dtype = DType::uint8;
    ByteSpan data;

    std::size_t size() const { return data.size() / dtype_size(dtype); }
    double at(std::size_t i) const;  ///< as double; 64-bit integers are rounded
    Value element(std::size_t i) const;
    NdView view() const {
      return {.dtype = dtype, .shape = {static_cast<std::int64_t>(size())}, .data = data};
    }
  };
  struct Member;
  using Array = std::vector<Value>;
  using Object = std::vector<Member>;  ///< in the order of the schema or of the bytes
  using Variant =
      std::variant<std::monostate, bool, std::int64_t, std::uint64_t, float, double,
                   std::string_view, ByteSpan, Time, Enumerator, Numbers, Array, Object>;

  Value() = default;
  template <typename T>
    requires std::is_constructible_v<Variant, T>
  explicit Value(T value) : value_(std::move(value)) {}

  bool is_nil() const { return std::holds_alternative<std::monostate>(value_); }
  /// "nil", "bool", "integer", "number", "string", "binary", "time", "enumerator", "numbers",
  /// "array", "object": for messages.
  std::string_view type_name() const;
  std::optional<bool> as_bool() const;
  std::optional<std::int64_t> as_int64() const;  ///< also of enumerators and integral numbers
  std::optional<std::uint64_t> as_uint64() const;
  std::optional<double> as_double() const;  ///< of any number, boolean or enumerator
  std::optional<std::string_view> as_string() const;
  std::optional<ByteSpan> as_binary() const;  ///< also of numbers of one byte each
  const Numbers* as_numbers() const { return std::get_if<Numbers>(&value_); }
  const Array* as_array() const { return std::get_if<Array>(&value_); }
  const Object* as_object() const { return std::get_if<Object>(&value_); }
  std::size_t size() const;  ///< elements or members; 0 for everything else

  /// Returns the first member of this name, or null.
  const Value* find(std::string_view name) const;
  /// Returns what stands at `pose.position.x` or `transforms[0].child_frame_id`, or null. An index
  /// into Numbers gives null: use `find_path` of the numbers and `at`.
  const Value* find_path(std::string_view path) const;

  const Variant& variant() const { return value_; }
  Variant& variant() { return value_; }
  /// Texts, bytes and numbers compare by content.
  bool operator==(const Value& other) const;

 private:
  Variant value_;
};

struct Value::Member {
  std::string_view name;
  Value value;
  bool operator==(const Member&) const = default;
};

/// Memory of a message for what the payload does not hold as it is: swapped numbers, unescaped
/// texts. Blocks do not move. Threads: one owner.
class Arena {
 public:
  MutableByteSpan allocate(std::size_t size);
  std::string_view keep(std::string_view text);
  /// Keeps any object alive as long as the arena.
  void keep(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }

 private:
  std::vector<std::unique_ptr<std::uint8_t[]>> blocks_;
  std::vector<std::shared_ptr<const void>> owners_;
};

/// One decoded message. Lifetime: the payload and the codec must outlive it.
class Message {
 public:
  Message() = default;
  Message(Message&&) noexcept = default;
  Message& operator=(Message&&) noexcept = default;

  const Value& root() const { return root_; }
  Value& root() { return root_; }
  Arena& arena() { return arena_; }

 private:
  Arena arena_;
  Value root_;
};

}  // namespace ropewalk::message
