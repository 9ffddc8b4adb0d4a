#pragma once
// Protobuf payloads by the descriptors that a file carries. libprotobuf reads and checks the
// descriptors; the payload is walked here, so that its bytes stay in place and errors name theirs.
// Spec: mcap 5.5; protobuf.dev/programming-guides/encoding.
#include <memory>

#include "ropewalk/format/message/codec.h"

namespace google::protobuf {
class Descriptor;
}  // namespace google::protobuf

namespace ropewalk::message {

/// Fields with presence (messages, optional, oneof) are members only where the payload has them;
/// the others have their default. Extensions are named [pkg.name], unknown fields #number: their
/// varints are integers, their fixed values rows of one number, their texts and messages bytes.
class ProtobufCodec {
 public:
  static Result<ProtobufCodec> compile(std::string_view name, ByteSpan schema,
                                       const Limits& limits);
  Status decode(ByteSpan payload, const Limits& limits, Message& out) const;
  Result<Bytes> encode(const Value& value) const;

 private:
  std::shared_ptr<const void> pool_;
  const google::protobuf::Descriptor* root_ = nullptr;
};

constexpr std::uint32_t kMaxProtobufDepth = 100;

Status decode_protobuf(const google::protobuf::Descriptor& type, ByteSpan payload,
                       const Limits& limits, Message& out);
Result<Bytes> encode_protobuf(const google::protobuf::Descriptor& type, const Value& value);

}  // namespace ropewalk::message
