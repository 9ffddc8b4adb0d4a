#pragma once
// MessageCodec: one schema, compiled once; then payload bytes to named values and back.
#include <memory>
#include <string_view>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/format/message/value.h"

namespace ropewalk::message {

/// What a container says about the payloads of a channel. Names are those of the MCAP registry.
struct SchemaRef {
  std::string_view message_encoding;  ///< cdr, ros1, protobuf, flatbuffer, json, msgpack, cbor
  std::string_view schema_name;       ///< sensor_msgs/msg/JointState, foxglove.RawImage, …
  std::string_view schema_encoding;   ///< ros2msg, ros2idl, omgidl, ros1msg, …, or ""
  ByteSpan schema;
};

class RowExtractor;

/// Threads: const members may run concurrently.
class MessageCodec {
 public:
  /// Compiles the schema. The bytes of `schema` are not needed afterwards.
  /// Errors: unimplemented for an encoding, or a pair of encodings, without a decoder (the caller
  /// keeps the raw bytes); data_loss for a schema that is not well-formed, with the place;
  /// not_found for a type that the schema uses and does not define; resource_exhausted (Limits).
  /// Spec: mcap 5.1.
  static Result<std::shared_ptr<const MessageCodec>> compile(const SchemaRef& schema,
                                                             const Limits& limits = {});
  ~MessageCodec();
  MessageCodec(const MessageCodec&) = delete;
  MessageCodec& operator=(const MessageCodec&) = delete;

  std::string_view message_encoding() const;
  std::string_view schema_name() const;

  /// Errors: data_loss with the path of the field and the byte; resource_exhausted (Limits).
  Result<Message> decode(ByteSpan payload) const;

  /// Returns the payload of `value`, which may come from another codec or from JSON: fields are
  /// found by name, missing ones are zero or absent. CDR is written little-endian, as XCDR1 or, for
  /// IDL types with extensions, as XCDR2.
  /// Errors: invalid_argument with the path of a field whose value does not fit its type or whose
  /// name the schema does not have; unimplemented for flatbuffer.
  Result<Bytes> encode(const Value& value) const;

 private:
  friend class RowExtractor;
  struct Impl;
  explicit MessageCodec(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk::message
