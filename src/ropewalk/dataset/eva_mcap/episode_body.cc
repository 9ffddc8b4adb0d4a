#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/dataset/eva_mcap/episode_body_internal.h"
#include "ropewalk/episode/dense_column.h"

namespace ropewalk::eva_mcap {
namespace {

/// A unicode array pads every text to the longest: above this an object array is smaller.
constexpr std::uint64_t kMaxPaddedBytes = 64ULL << 20;

Status append_texts(Bytes& out, const DenseColumn& column) {
  std::vector<std::string> plain;
  std::size_t longest = 1;
  if (column.dtype == DType::string) {
    for (const auto& text : column.texts) {
      if (!text || text->ends_with('\0')) break;
      plain.push_back(*text);
      longest = std::max(longest, text->size());
    }
  }
  if (plain.size() == column.texts.size() && plain.size() * longest * 4 <= kMaxPaddedBytes) {
    const std::size_t before = out.size();
    if (msgpack::append_text_array(out, plain, column.shape).ok()) return ok_status();
    out.resize(before);  // not UTF-8
  }
  return msgpack::append_object_array(out, column.texts, column.shape,
                                      column.dtype == DType::bytes);
}

Status append_columns(Bytes& out, const NumberedEpisode& numbered, const Schema& schema) {
  const arrow::RecordBatch& batch = *numbered.columns;
  std::vector<int> wanted;
  for (int i = 0; i < batch.num_columns(); ++i) {
    const Feature* feature = schema.find(batch.schema()->field(i)->name());
    if (feature == nullptr || !feature->is_camera()) wanted.push_back(i);
  }
  msgpack::Writer writer(out);
  ROPEWALK_RETURN_IF_ERROR(writer.map_head(wanted.size()));
  for (const int i : wanted) {
    const std::string& name = batch.schema()->field(i)->name();
    ROPEWALK_RETURN_IF_ERROR(writer.string(name));
    const auto column = dense_column(*batch.column(i));
    if (!column.ok()) return column.status().with_context("column " + name);
    Status status = dtype_is_numeric(column->dtype) ? msgpack::append_ndarray(out, column->view())
                                                    : append_texts(out, *column);
    ROPEWALK_RETURN_IF_ERROR(status.with_context("column " + name));
  }
  return ok_status();
}

}  // namespace

Result<std::vector<BodyPiece>> episode_body(const NumberedEpisode& numbered, const Schema& schema,
                                            const std::vector<InlineCamera>& images) {
  std::vector<BodyPiece> out(1);
  const auto writer = [&] { return msgpack::Writer(out.back().bytes); };
  ROPEWALK_RETURN_IF_ERROR(writer().map_head(3));
  ROPEWALK_RETURN_IF_ERROR(writer().string("columns"));
  ROPEWALK_RETURN_IF_ERROR(append_columns(out.back().bytes, numbered, schema));

  ROPEWALK_RETURN_IF_ERROR(writer().string("images"));
  ROPEWALK_RETURN_IF_ERROR(writer().map_head(images.size()));
  for (const InlineCamera& camera : images) {
    ROPEWALK_RETURN_IF_ERROR(writer().string(camera.name));
    std::vector<std::int64_t> shape{0};
    if (numbered.length > 0) {
      shape = {numbered.length, camera.shape.height, camera.shape.width, camera.shape.channels};
    }
    const DType dtype = camera.shape.bytes_per_sample == 2 ? DType::uint16 : DType::uint8;
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const msgpack::NdFrame frame,
                                  msgpack::ndarray_frame(dtype, shape),
                                  fmt::format("inline pictures of {}", camera.name));
    BodyPiece& piece = out.back();
    piece.bytes.insert(piece.bytes.end(), frame.head.begin(), frame.head.end());
    piece.camera = camera.name;
    piece.frames_bytes = frame.data_bytes;
    out.emplace_back();
    out.back().bytes = frame.tail;
  }

  ROPEWALK_RETURN_IF_ERROR(writer().string("metadata"));
  Json metadata = numbered.row;
  metadata.erase("video_keys");
  metadata.erase("total_videos");
  metadata.erase("fps");
  metadata.set("fps", schema.fps.to_double());
  ROPEWALK_RETURN_IF_ERROR(writer().json(metadata));
  return out;
}

}  // namespace ropewalk::eva_mcap
