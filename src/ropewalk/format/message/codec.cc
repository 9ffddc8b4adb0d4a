#include "ropewalk/format/message/codec.h"

#include <fmt/format.h>

#include "ropewalk/format/message/codec_internal.h"
#include "ropewalk/format/message/wire_internal.h"

namespace ropewalk::message {
namespace {

Status no_decoder(const SchemaRef& schema) {
  return unimplemented(fmt::format(
      "{}: there is no decoder for message encoding '{}' with schema encoding '{}'; the payload "
      "stays as it is",
      schema.schema_name.empty() ? "a channel without schema" : schema.schema_name,
      schema.message_encoding, schema.schema_encoding));
}

Result<AnyCodec> compile_codec(const SchemaRef& schema, const Limits& limits) {
  const std::string_view text = as_text(schema.schema);
  const std::string_view encoding = schema.schema_encoding;
  if (schema.schema.size() > limits.max_json_bytes) {
    return resource_exhausted(fmt::format("a schema of {} bytes, at most {} are read",
                                          schema.schema.size(), limits.max_json_bytes));
  }
  if (schema.message_encoding == "cdr") {
    WireCodec codec;
    if (encoding == "ros2msg") {
      ROPEWALK_ASSIGN_OR_RETURN(codec.table, parse_ros_msg(text, schema.schema_name, true, limits));
    } else if (encoding == "ros2idl" || encoding == "omgidl") {
      codec.idl = true;
      ROPEWALK_ASSIGN_OR_RETURN(codec.table,
                                parse_idl(text, schema.schema_name, encoding == "ros2idl", limits));
    } else {
      return no_decoder(schema);
    }
    return AnyCodec(std::move(codec));
  }
  if (schema.message_encoding == "ros1" && encoding == "ros1msg") {
    WireCodec codec{.ros1 = true};
    ROPEWALK_ASSIGN_OR_RETURN(codec.table, parse_ros_msg(text, schema.schema_name, false, limits));
    return AnyCodec(std::move(codec));
  }
  if (schema.message_encoding == "json" && (encoding == "jsonschema" || encoding.empty())) {
    ROPEWALK_ASSIGN_OR_RETURN(
        JsonCodec codec, JsonCodec::compile(encoding.empty() ? ByteSpan() : schema.schema, limits));
    return AnyCodec(std::move(codec));
  }
  if (schema.message_encoding == "protobuf" && encoding == "protobuf") {
    ROPEWALK_ASSIGN_OR_RETURN(ProtobufCodec codec,
                              ProtobufCodec::compile(schema.schema_name, schema.schema, limits));
    return AnyCodec(std::move(codec));
  }
  if (schema.message_encoding == "flatbuffer" && encoding == "flatbuffer") {
    ROPEWALK_ASSIGN_OR_RETURN(FlatbufferCodec codec,
                              FlatbufferCodec::compile(schema.schema_name, schema.schema, limits));
    return AnyCodec(std::move(codec));
  }
  if (schema.message_encoding == "cbor") return AnyCodec(CborCodec());
  if (schema.message_encoding == "msgpack") return AnyCodec(MsgpackCodec());
  return no_decoder(schema);
}

}  // namespace

Status WireCodec::decode(ByteSpan payload, const Limits& limits, Message& out) const {
  return ros1 ? decode_ros1(table, payload, limits, out)
              : decode_cdr(table, idl, payload, limits, out);
}

Result<Bytes> WireCodec::encode(const Value& value) const {
  return ros1 ? encode_wire(table, ros1_format(), value) : encode_cdr(table, value);
}

MessageCodec::MessageCodec(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageCodec::~MessageCodec() = default;

std::string_view MessageCodec::message_encoding() const { return impl_->message_encoding; }
std::string_view MessageCodec::schema_name() const { return impl_->schema_name; }

Result<std::shared_ptr<const MessageCodec>> MessageCodec::compile(const SchemaRef& schema,
                                                                  const Limits& limits) {
  auto codec = compile_codec(schema, limits);
  if (!codec.ok()) {
    if (codec.status().code() == StatusCode::unimplemented) return std::move(codec).status();
    return std::move(codec).status().with_context(
        fmt::format("schema {} ({})", schema.schema_name, schema.schema_encoding));
  }
  return std::shared_ptr<const MessageCodec>(new MessageCodec(
      std::make_unique<Impl>(Impl{.message_encoding = std::string(schema.message_encoding),
                                  .schema_name = std::string(schema.schema_name),
                                  .limits = limits,
                                  .codec = std::move(codec).value()})));
}

Result<Message> MessageCodec::decode(ByteSpan payload) const {
  Message out;
  ROPEWALK_RETURN_IF_ERROR(std::visit(
      [&](const auto& codec) { return codec.decode(payload, impl_->limits, out); }, impl_->codec));
  return out;
}

Result<Bytes> MessageCodec::encode(const Value& value) const {
  return std::visit([&](const auto& codec) { return codec.encode(value); }, impl_->codec);
}

}  // namespace ropewalk::message
