#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/dataset/eva_mcap/body_reader_internal.h"
#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk::eva_mcap {
namespace {

constexpr std::uint32_t kMaxDepth = 32;
/// Binaries of `images` from this size on stay in the file.
constexpr std::uint64_t kLeftInFileBytes = 64ULL << 10;
constexpr std::uint64_t kWindowBytes = 256ULL << 10;

// Note [Skeleton]: the body is copied value by value; a large binary inside `images` is replaced by
// the array [place in the file, size], so that the copy decodes as MessagePack like the original.
class SkeletonReader {
 public:
  SkeletonReader(const Source& source, mcap::StoredData stored, const Limits& limits)
      : window_(source), at_(stored.offset), end_(stored.offset + stored.size), limits_(limits) {}

  Result<Bytes> read() {
    ROPEWALK_RETURN_IF_ERROR(copy_value(0, false));
    if (at_ != end_) return data_loss(fmt::format("{} bytes after the body", end_ - at_));
    return std::move(out_);
  }

 private:
  // What follows a tag: bytes of length, payload bytes, and values.
  struct Form {
    std::uint64_t length_bytes = 0;
    std::uint64_t extra_bytes = 0;  // of payload beside the stated length
    bool is_binary = false;
    bool is_text = false;
    bool is_array = false;
    bool is_map = false;
  };

  static std::optional<Form> form_of(std::uint8_t tag) {
    if (tag <= 0x7F || tag >= 0xE0 || tag == 0xC0 || tag == 0xC2 || tag == 0xC3) return Form{};
    if (tag <= 0x8F) return Form{.is_map = true};
    if (tag <= 0x9F) return Form{.is_array = true};
    if (tag <= 0xBF) return Form{.is_text = true};
    switch (tag) {
      case 0xC4:
      case 0xC5:
      case 0xC6:
        return Form{.length_bytes = 1ULL << (tag - 0xC4), .is_binary = true};
      case 0xC7:
      case 0xC8:
      case 0xC9:
        return Form{.length_bytes = 1ULL << (tag - 0xC7), .extra_bytes = 1, .is_text = true};
      case 0xCA:
        return Form{.extra_bytes = 4};
      case 0xCB:
        return Form{.extra_bytes = 8};
      case 0xCC:
      case 0xCD:
      case 0xCE:
      case 0xCF:
        return Form{.extra_bytes = 1ULL << (tag - 0xCC)};
      case 0xD0:
      case 0xD1:
      case 0xD2:
      case 0xD3:
        return Form{.extra_bytes = 1ULL << (tag - 0xD0)};
      case 0xD4:
      case 0xD5:
      case 0xD6:
      case 0xD7:
      case 0xD8:
        return Form{.extra_bytes = (1ULL << (tag - 0xD4)) + 1};
      case 0xD9:
      case 0xDA:
      case 0xDB:
        return Form{.length_bytes = 1ULL << (tag - 0xD9), .is_text = true};
      case 0xDC:
      case 0xDD:
        return Form{.length_bytes = 2ULL << (tag - 0xDC), .is_array = true};
      case 0xDE:
      case 0xDF:
        return Form{.length_bytes = 2ULL << (tag - 0xDE), .is_map = true};
      default:
        return std::nullopt;
    }
  }

  Result<ByteSpan> view(std::uint64_t size) {
    if (size > end_ - at_) {
      return data_loss(fmt::format("byte {}: {} bytes expected, {} left", at_, size, end_ - at_));
    }
    return window_.view(at_, size, std::min(kWindowBytes, end_ - at_));
  }

  Status copy(std::uint64_t size) {
    if (out_.size() + size > limits_.max_record_bytes) {
      return resource_exhausted(
          fmt::format("the columns are above the limit of {} bytes", limits_.max_record_bytes));
    }
    while (size > 0) {
      const std::uint64_t part = std::min(size, kWindowBytes);
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, view(part));
      out_.insert(out_.end(), bytes.begin(), bytes.end());
      at_ += part;
      size -= part;
    }
    return ok_status();
  }

  Status copy_value(std::uint32_t depth, bool in_images) {
    if (depth > kMaxDepth) {
      return resource_exhausted(fmt::format("byte {}: nested deeper than {}", at_, kMaxDepth));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan first, view(1));
    const std::uint8_t tag = first[0];
    const auto form = form_of(tag);
    if (!form.has_value()) {
      return data_loss(fmt::format("byte {}: tag {:#04x} is no MessagePack value", at_, tag));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan head, view(1 + form->length_bytes));
    std::uint64_t length = 0;
    for (std::size_t i = 1; i < head.size(); ++i) length = length << 8 | head[i];
    if (form->length_bytes == 0) {
      if (form->is_text) length = tag & 0x1F;
      if (form->is_map || form->is_array) length = tag & 0x0F;
    }
    if (form->is_binary && in_images && length >= kLeftInFileBytes) {
      at_ += head.size();
      if (length > end_ - at_) {
        return data_loss(
            fmt::format("byte {}: {} bytes expected, {} left", at_, length, end_ - at_));
      }
      msgpack::Writer writer(out_);
      ROPEWALK_RETURN_IF_ERROR(writer.array_head(2));
      writer.unsigned_integer(at_);
      writer.unsigned_integer(length);
      at_ += length;
      return ok_status();
    }
    ROPEWALK_RETURN_IF_ERROR(copy(head.size()));
    if (!form->is_map && !form->is_array) return copy(form->extra_bytes + length);
    for (std::uint64_t i = 0; i < length; ++i) {
      bool images = in_images;
      if (form->is_map) {
        const std::size_t key_at = out_.size();
        ROPEWALK_RETURN_IF_ERROR(copy_value(depth + 1, false));
        if (depth == 0) {
          // "images" as a short string: a6 and six letters.
          images = as_text(ByteSpan(out_).subspan(key_at)) == "\xA6images";
        }
      }
      ROPEWALK_RETURN_IF_ERROR(copy_value(depth + 1, images));
    }
    return ok_status();
  }

  mcap::SourceWindow window_;
  std::uint64_t at_;
  std::uint64_t end_;
  Limits limits_;
  Bytes out_;
};

}  // namespace

Result<std::shared_ptr<const EpisodeBody>> EpisodeBody::read(const mcap::Reader& reader,
                                                             const Source& source,
                                                             const mcap::MessageRef& ref,
                                                             const Limits& limits) {
  std::shared_ptr<EpisodeBody> out(new EpisodeBody());
  ROPEWALK_ASSIGN_OR_RETURN(const auto stored, reader.stored_data(ref));
  ByteSpan bytes;
  if (stored.has_value()) {
    ROPEWALK_ASSIGN_OR_RETURN_CTX(out->skeleton_, SkeletonReader(source, *stored, limits).read(),
                                  "message 'episode'");
    bytes = out->skeleton_;
  } else {
    out->loader_.emplace(reader.loader());
    ROPEWALK_ASSIGN_OR_RETURN(const mcap::MessageView message, out->loader_->load(ref));
    bytes = message.data;
  }
  ROPEWALK_ASSIGN_OR_RETURN_CTX(out->value_, msgpack::decode(bytes, limits), "message 'episode'");
  if (out->value_.as_map() == nullptr) {
    return data_loss(
        fmt::format("message 'episode': a map expected, a {} found", out->value_.type_name()));
  }
  return std::shared_ptr<const EpisodeBody>(std::move(out));
}

const msgpack::Value* EpisodeBody::find(std::string_view part, std::string_view key) const {
  const msgpack::Value* values = value_.find(part);
  return values == nullptr ? nullptr : values->find(key);
}

const msgpack::Value::Map* EpisodeBody::map(std::string_view part) const {
  const msgpack::Value* values = value_.find(part);
  return values == nullptr ? nullptr : values->as_map();
}

Result<InlineArray> EpisodeBody::inline_array(std::string_view key, const Limits& limits) const {
  const msgpack::Value* value = find("images", key);
  if (value == nullptr) return not_found(fmt::format("no inline pictures of {}", key));
  InlineArray out;
  const msgpack::Value* data = value->find("data");
  const msgpack::Value::Array* place = data == nullptr ? nullptr : data->as_array();
  if (place == nullptr) {
    ROPEWALK_ASSIGN_OR_RETURN(auto array, msgpack::as_ndarray(*value, limits));
    // Foreign byte order would need a copy that lives on; pictures have one byte per sample.
    if (!array.has_value() || !array->texts.empty() || !array->swapped.empty()) {
      return data_loss("an array of pictures expected");
    }
    out.dtype = array->dtype;
    out.shape = std::move(array->shape);
    out.data = array->data;
    return out;
  }
  const msgpack::Value* type = value->find("dtype");
  const msgpack::Value* shape = value->find("shape");
  const auto name = type == nullptr ? std::nullopt : type->as_text();
  const msgpack::Value::Array* extents = shape == nullptr ? nullptr : shape->as_array();
  if (!name.has_value() || extents == nullptr) return data_loss("an array of pictures expected");
  bool big_endian = false;
  const auto dtype = dtype_from_numpy(*name, big_endian);
  if (!dtype.has_value() || big_endian) {
    return unimplemented(fmt::format("inline pictures of dtype {}", name->substr(0, 32)));
  }
  out.dtype = *dtype;
  for (const msgpack::Value& extent : *extents) out.shape.push_back(extent.as_int64().value_or(-1));
  if (place->size() != 2) return data_loss("an array of pictures expected");
  const auto count = element_count(out.shape);
  const auto file_offset = (*place)[0].as_int64();
  const auto size = (*place)[1].as_int64();
  const auto item = static_cast<std::int64_t>(dtype_size(out.dtype));
  if (!count || !file_offset || !size || item == 0 || *size % item != 0 || *count != *size / item) {
    return data_loss(fmt::format("inline pictures: shape [{}] does not fit {} bytes",
                                 fmt::join(out.shape, ", "), size.value_or(0)));
  }
  out.file_offset = static_cast<std::uint64_t>(*file_offset);
  return out;
}

}  // namespace ropewalk::eva_mcap
