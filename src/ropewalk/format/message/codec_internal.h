#pragma once
// The codecs behind MessageCodec, one per message encoding, and what it keeps of them.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/format/message/codec.h"
#include "ropewalk/format/message/flatbuffer_internal.h"
#include "ropewalk/format/message/protobuf_internal.h"
#include "ropewalk/format/message/type_table_internal.h"

namespace ropewalk::message {

/// cdr and ros1.
struct WireCodec {
  TypeTable table;
  bool ros1 = false;
  bool idl = false;

  Status decode(ByteSpan payload, const Limits& limits, Message& out) const;
  Result<Bytes> encode(const Value& value) const;
};

/// json; a JSON Schema says which texts are bytes and which are numbers. Spec: mcap 5.5.
struct JsonCodec {
  struct Hint {
    bool base64 = false;
    bool number = false;
    std::vector<std::pair<std::string, std::size_t>> properties;  ///< to hints
    std::size_t items = 0;                                        ///< a hint, 0 for none
  };
  std::vector<Hint> hints;  ///< [0] says nothing, [1] is the document

  static Result<JsonCodec> compile(ByteSpan schema, const Limits& limits);
  Status decode(ByteSpan payload, const Limits& limits, Message& out) const;
  Result<Bytes> encode(const Value& value) const;
};

struct MsgpackCodec {
  Status decode(ByteSpan payload, const Limits& limits, Message& out) const;
  Result<Bytes> encode(const Value& value) const;
};

/// Keys that are no text become their JSON text; tags 1 and 64 to 86 become times and numbers.
struct CborCodec {
  Status decode(ByteSpan payload, const Limits& limits, Message& out) const;
  Result<Bytes> encode(const Value& value) const;
};

using AnyCodec =
    std::variant<WireCodec, JsonCodec, MsgpackCodec, CborCodec, ProtobufCodec, FlatbufferCodec>;

struct MessageCodec::Impl {
  std::string message_encoding;
  std::string schema_name;
  Limits limits;
  AnyCodec codec;
};

}  // namespace ropewalk::message
