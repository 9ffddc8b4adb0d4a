#pragma once
// FlatBuffers payloads by a reflection schema (.bfbs). The schema is verified and copied into plain
// tables at compile; every offset of a payload is checked where it is followed. Spec: mcap 5.5.
#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/format/message/codec.h"

namespace ropewalk::message {

class FlatbufferCodec {
 public:
  /// The kinds of a reflection schema, in its numbering.
  enum class Base : std::uint8_t {
    none,
    utype,
    boolean,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float32,
    float64,
    string,
    vector,
    object,
    choice,
    array,
  };
  struct Field {
    std::string name;
    Base base = Base::none;
    Base element = Base::none;
    std::int32_t index = -1;   ///< of an object, or of an enumeration
    std::uint16_t offset = 0;  ///< of a table: into its vtable; of a struct: into its bytes
    std::uint16_t length = 0;  ///< of an array
    std::int64_t integer = 0;  ///< default
    double real = 0;           ///< default
    bool optional = false;
    std::uint16_t type_offset = 0;  ///< of a union or a vector of unions: where its types are
  };
  struct Object {
    std::string name;
    bool is_struct = false;
    std::uint32_t bytes = 0;  ///< of a struct
    std::vector<Field> fields;
  };
  struct Choice {
    std::int64_t value = 0;
    std::string name;
    Base base = Base::none;   ///< of a union
    std::int32_t index = -1;  ///< of a union
  };
  struct Enumeration {
    std::vector<Choice> choices;
    const Choice* find(std::int64_t value) const;
  };

  /// Errors: data_loss for a schema that does not verify or refers to what it does not hold;
  /// not_found for the name of a table that it does not have.
  static Result<FlatbufferCodec> compile(std::string_view name, ByteSpan schema,
                                         const Limits& limits);
  Status decode(ByteSpan payload, const Limits& limits, Message& out) const;
  Result<Bytes> encode(const Value& value) const;

  const std::vector<Object>& objects() const { return objects_; }
  const std::vector<Enumeration>& enumerations() const { return enumerations_; }

 private:
  std::vector<Object> objects_;
  std::vector<Enumeration> enumerations_;
  std::size_t root_ = 0;
};

/// Units: bytes of a scalar; 4 for what stands behind an offset, 0 for structs and arrays.
std::size_t flatbuffer_size(FlatbufferCodec::Base base);

}  // namespace ropewalk::message
