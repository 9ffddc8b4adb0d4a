// A FileDescriptorSet to a pool of descriptors.
#include <map>
#include <string>

#include <fmt/format.h>
#include <google/protobuf/any.pb.h>
#include <google/protobuf/api.pb.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/duration.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/source_context.pb.h>
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/type.pb.h>
#include <google/protobuf/wrappers.pb.h>

#include "ropewalk/format/message/protobuf_internal.h"

namespace ropewalk::message {
namespace {

namespace pb = google::protobuf;

constexpr int kMaxImportDepth = 256;

class FirstError : public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, const std::string& element, const pb::Message*,
                ErrorLocation, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("{}: {}: {}", file, element, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

// Files that everybody imports and some writers leave out.
const pb::FileDescriptor* well_known(const std::string& name) {
  static const std::map<std::string, const pb::FileDescriptor*> kFiles = [] {
    std::map<std::string, const pb::FileDescriptor*> files;
    for (const pb::Descriptor* type :
         {pb::Any::descriptor(), pb::Api::descriptor(), pb::Duration::descriptor(),
          pb::Empty::descriptor(), pb::FieldMask::descriptor(),
          pb::FileDescriptorProto::descriptor(), pb::SourceContext::descriptor(),
          pb::Struct::descriptor(), pb::Timestamp::descriptor(), pb::Type::descriptor(),
          pb::DoubleValue::descriptor()}) {
      files.emplace(type->file()->name(), type->file());
    }
    return files;
  }();
  const auto found = kFiles.find(name);
  return found == kFiles.end() ? nullptr : found->second;
}

// Builds files after what they import, whatever their order in the set.
class PoolBuilder {
 public:
  PoolBuilder(const pb::FileDescriptorSet& set, pb::DescriptorPool& pool) : pool_(pool) {
    for (const pb::FileDescriptorProto& file : set.file()) files_.emplace(file.name(), &file);
  }

  Status build_all() {
    for (const auto& [name, file] : files_) {
      ROPEWALK_RETURN_IF_ERROR(build(name, "", 0));
    }
    return ok_status();
  }

 private:
  Status build(const std::string& name, const std::string& importer, int depth) {
    if (pool_.FindFileByName(name) != nullptr) return ok_status();
    if (depth > kMaxImportDepth) {
      return data_loss(fmt::format("'{}': imports go in a ring, or deeper than {} files", name,
                                   kMaxImportDepth));
    }
    pb::FileDescriptorProto copy;
    const pb::FileDescriptorProto* file = nullptr;
    if (const auto found = files_.find(name); found != files_.end()) {
      file = found->second;
    } else if (const pb::FileDescriptor* known = well_known(name)) {
      known->CopyTo(&copy);
      file = &copy;
    } else {
      return not_found(
          fmt::format("'{}' imports '{}', which the schema does not hold", importer, name));
    }
    for (const std::string& import : file->dependency()) {
      ROPEWALK_RETURN_IF_ERROR(build(import, name, depth + 1));
    }
    FirstError errors;
    if (pool_.BuildFileCollectingErrors(*file, &errors) == nullptr) {
      return data_loss(errors.text());
    }
    return ok_status();
  }

  std::map<std::string, const pb::FileDescriptorProto*> files_;
  pb::DescriptorPool& pool_;
};

}  // namespace

Result<ProtobufCodec> ProtobufCodec::compile(std::string_view name, ByteSpan schema,
                                             const Limits&) {
  constexpr std::size_t kMaxSchemaBytes = 64 << 20;
  if (schema.size() > kMaxSchemaBytes) {
    return resource_exhausted(fmt::format("a FileDescriptorSet of {} bytes, at most {} are read",
                                          schema.size(), kMaxSchemaBytes));
  }
  const pb::LogSilencer silence;
  pb::FileDescriptorSet set;
  if (!set.ParsePartialFromArray(schema.data(), static_cast<int>(schema.size()))) {
    return data_loss("the schema is no FileDescriptorSet");
  }
  const auto pool = std::make_shared<pb::DescriptorPool>();
  ROPEWALK_RETURN_IF_ERROR(PoolBuilder(set, *pool).build_all());
  if (!name.empty() && name.front() == '.') name.remove_prefix(1);
  ProtobufCodec out;
  out.root_ = pool->FindMessageTypeByName(std::string(name));
  if (out.root_ == nullptr) {
    return not_found(fmt::format("the schema has no message type '{}'", name));
  }
  out.pool_ = pool;
  return out;
}

Status ProtobufCodec::decode(ByteSpan payload, const Limits& limits, Message& out) const {
  return decode_protobuf(*root_, payload, limits, out);
}

Result<Bytes> ProtobufCodec::encode(const Value& value) const {
  return encode_protobuf(*root_, value);
}

}  // namespace ropewalk::message
