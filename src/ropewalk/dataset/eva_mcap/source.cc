#include <algorithm>
#include <map>
#include <utility>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/eva_mcap/body_reader_internal.h"
#include "ropewalk/dataset/eva_mcap/eva_mcap.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/side_files_reader.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/message/msgpack_numpy.h"

namespace ropewalk {
namespace {

using eva_mcap::EpisodeBody;
using eva_mcap::InlineArray;

constexpr std::string_view kImagePrefix = "episode/image/";

/// Decoded chunks that one reader of frames keeps.
constexpr std::uint64_t kCacheBytes = 4ULL << 20;

Result<FrameShape> shape_of(std::span<const std::int64_t> extents, DType dtype,
                            const Limits& limits) {
  constexpr std::int64_t kMaxSide = 1 << 20;
  const bool typed = dtype == DType::uint8 || dtype == DType::uint16;
  if (!typed || extents.size() < 2 || extents.size() > 3) {
    return data_loss(fmt::format("expected uint8 [H, W, C], found {} [{}]", dtype_name(dtype),
                                 fmt::join(extents, ", ")));
  }
  const std::int64_t channels = extents.size() == 3 ? extents[2] : 1;
  if (extents[0] < 1 || extents[0] > kMaxSide || extents[1] < 1 || extents[1] > kMaxSide ||
      channels < 1 || channels > 4 ||
      static_cast<std::uint64_t>(extents[0] * extents[1]) > limits.max_image_pixels) {
    return resource_exhausted(fmt::format("a picture of [{}] is beyond the limit of {} pixels",
                                          fmt::join(extents, ", "), limits.max_image_pixels));
  }
  FrameShape out;
  out.height = static_cast<int>(extents[0]);
  out.width = static_cast<int>(extents[1]);
  out.channels = static_cast<int>(channels);
  out.bytes_per_sample = dtype == DType::uint16 ? 2 : 1;
  return out;
}

/// Whether stored pixels can be handed out in the form that was asked for, and its shape.
Result<FrameShape> shape_in(const FrameForm& form, const FrameShape& stored) {
  FrameShape out = stored;
  out.width = form.crop_width > 0 ? form.crop_width : stored.width - form.crop_x;
  out.height = form.crop_height > 0 ? form.crop_height : stored.height - form.crop_y;
  if (form.crop_x < 0 || form.crop_y < 0 || out.width <= 0 || out.height <= 0 ||
      out.width > stored.width - form.crop_x || out.height > stored.height - form.crop_y) {
    return invalid_argument(
        fmt::format("the crop lies outside the picture of {}x{}", stored.width, stored.height));
  }
  if ((form.width != 0 && form.width != out.width) ||
      (form.height != 0 && form.height != out.height)) {
    return unimplemented("frames of an MCAP export are not scaled; ask for the stored size");
  }
  if (form.layout == FrameLayout::luma && stored.channels != 1) {
    return unimplemented("frames of an MCAP export have no luma; ask for hwc or chw");
  }
  return out;
}

void copy_pixels(ByteSpan from, const FrameShape& stored, const FrameForm& form,
                 const FrameShape& shape, MutableByteSpan out) {
  const auto sample = static_cast<std::size_t>(stored.bytes_per_sample);
  const auto channels = static_cast<std::size_t>(stored.channels);
  const auto width = static_cast<std::size_t>(shape.width);
  const auto height = static_cast<std::size_t>(shape.height);
  const std::size_t stride = static_cast<std::size_t>(stored.width) * channels * sample;
  for (std::size_t y = 0; y < height; ++y) {
    const std::uint8_t* row = from.data() + (y + static_cast<std::size_t>(form.crop_y)) * stride +
                              static_cast<std::size_t>(form.crop_x) * channels * sample;
    if (form.layout != FrameLayout::chw) {
      std::copy_n(row, width * channels * sample, out.data() + y * width * channels * sample);
      continue;
    }
    for (std::size_t x = 0; x < width; ++x) {
      for (std::size_t c = 0; c < channels; ++c) {
        std::copy_n(row + (x * channels + c) * sample, sample,
                    out.data() + ((c * height + y) * width + x) * sample);
      }
    }
  }
}

/// Hands out frames one after the other; `Fetch` gives the stored pixels of an ordinal.
class Frames : public FrameReader {
 public:
  Frames(FrameShape stored, FrameShape shape, FrameRange range, FrameForm form)
      : stored_(stored), shape_(shape), next_(range.begin), end_(range.end), form_(form) {}

  FrameShape shape() const override { return shape_; }
  Result<bool> next(MutableByteSpan out) override {
    if (next_ >= end_) return false;
    if (out.size() != shape_.frame_bytes()) {
      return invalid_argument(
          fmt::format("a frame has {} bytes, {} are given", shape_.frame_bytes(), out.size()));
    }
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const ByteSpan pixels, fetch(next_),
                                  fmt::format("frame {}", next_));
    copy_pixels(pixels, stored_, form_, shape_, out);
    ++next_;
    return true;
  }

 protected:
  virtual Result<ByteSpan> fetch(std::int64_t ordinal) = 0;
  const FrameShape stored_;

 private:
  FrameShape shape_;
  std::int64_t next_;
  std::int64_t end_;
  FrameForm form_;
};

using Refs = std::vector<mcap::MessageRef>;

class MessageFrames final : public Frames {
 public:
  MessageFrames(mcap::MessageLoader loader, std::shared_ptr<const Refs> refs, Limits limits,
                FrameShape stored, FrameShape shape, FrameRange range, FrameForm form)
      : Frames(stored, shape, range, form),
        loader_(std::move(loader)),
        refs_(std::move(refs)),
        limits_(limits) {}

  /// Returns the array in the message of one frame. Lifetime: until the next call of the loader.
  static Result<msgpack::NdArray> array_of(mcap::MessageLoader& loader, const mcap::MessageRef& ref,
                                           const Limits& limits) {
    ROPEWALK_ASSIGN_OR_RETURN(const mcap::MessageView message, loader.load(ref));
    ROPEWALK_ASSIGN_OR_RETURN(const msgpack::Value value, msgpack::decode(message.data, limits));
    ROPEWALK_ASSIGN_OR_RETURN(auto array, msgpack::as_ndarray(value, limits));
    if (!array.has_value()) {
      return data_loss(fmt::format("expected an array, found a {}", value.type_name()));
    }
    return std::move(*array);
  }

 protected:
  Result<ByteSpan> fetch(std::int64_t ordinal) override {
    ROPEWALK_ASSIGN_OR_RETURN(
        array_, array_of(loader_, (*refs_)[static_cast<std::size_t>(ordinal)], limits_));
    ROPEWALK_ASSIGN_OR_RETURN(const FrameShape found,
                              shape_of(array_.shape, array_.dtype, limits_));
    if (!(found == stored_)) {
      return data_loss(fmt::format("{}x{}x{} expected as in the first frame, {}x{}x{} found",
                                   stored_.height, stored_.width, stored_.channels, found.height,
                                   found.width, found.channels));
    }
    return array_.data;
  }

 private:
  mcap::MessageLoader loader_;
  std::shared_ptr<const Refs> refs_;
  Limits limits_;
  msgpack::NdArray array_;
};

/// Inline pictures: slices of one array of the `episode` message, in memory or in the file.
class InlineFrames final : public Frames {
 public:
  InlineFrames(std::shared_ptr<const Source> source, std::shared_ptr<const EpisodeBody> body,
               InlineArray array, FrameShape stored, FrameShape shape, FrameRange range,
               FrameForm form)
      : Frames(stored, shape, range, form),
        source_(std::move(source)),
        body_(std::move(body)),
        array_(std::move(array)) {}

 protected:
  Result<ByteSpan> fetch(std::int64_t ordinal) override {
    const std::size_t bytes = stored_.frame_bytes();
    const std::size_t offset = static_cast<std::size_t>(ordinal) * bytes;
    if (!array_.data.empty()) return array_.data.subspan(offset, bytes);
    pixels_.resize(bytes);
    ROPEWALK_RETURN_IF_ERROR(source_->read_at(array_.file_offset + offset, pixels_));
    return ByteSpan(pixels_);
  }

 private:
  std::shared_ptr<const Source> source_;
  std::shared_ptr<const EpisodeBody> body_;  // array_ may be a view into it
  InlineArray array_;
  Bytes pixels_;
};

class EvaMcapEpisode final : public Episode {
 public:
  static Result<std::unique_ptr<Episode>> open(const std::filesystem::path& path,
                                               std::shared_ptr<const SideFileContents> contents,
                                               std::int64_t index, const Limits& limits) {
    ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, open_source(path));
    mcap::ReaderOptions options;
    options.limits = limits;
    options.cache_bytes = kCacheBytes;
    ROPEWALK_ASSIGN_OR_RETURN(mcap::Reader reader, mcap::Reader::open(source, options));
    auto episode = std::make_unique<EvaMcapEpisode>(std::move(source), std::move(reader),
                                                    std::move(contents), index, limits);
    if (Status status = episode->prepare(); !status.ok()) {
      return status.with_context(path.string());
    }
    return std::unique_ptr<Episode>(std::move(episode));
  }

  EvaMcapEpisode(std::shared_ptr<const Source> source, mcap::Reader reader,
                 std::shared_ptr<const SideFileContents> contents, std::int64_t index,
                 const Limits& limits)
      : source_(std::move(source)),
        reader_(std::move(reader)),
        name_(source_->name()),
        contents_(std::move(contents)),
        info_(contents_->episode(index)),
        limits_(limits) {}

  const EpisodeInfo& info() const override { return info_; }
  const Schema& schema() const override { return contents_->schema; }

  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    if (range.begin < 0 || range.end < range.begin || range.end > info_.length) {
      return out_of_range(fmt::format("episode {}: rows [{}, {}) of {}", info_.index, range.begin,
                                      range.end, info_.length));
    }
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const Feature* feature : contents_->schema.of_kind(FeatureKind::column)) {
      const msgpack::Value* value = body_->find("columns", feature->name);
      if (value == nullptr) continue;
      ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto array, read_column(*value, *feature),
                                    fmt::format("{}: column {}", name_, feature->name));
      fields.push_back(arrow::field(feature->name, array->type()));
      arrays.push_back(array->Slice(range.begin, range.size()));
    }
    return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), range.size(),
                                    std::move(arrays));
  }

  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm form) const override {
    const auto at = cameras_.find(camera);
    if (at == cameras_.end()) {
      return not_found(fmt::format("episode {}: there is no camera {}", info_.index, camera));
    }
    if (range.begin < 0 || range.end < range.begin || range.end > info_.length) {
      return out_of_range(fmt::format("episode {}: camera {}: frames [{}, {}) of {}", info_.index,
                                      camera, range.begin, range.end, info_.length));
    }
    auto reader = open_frames(std::string(camera), at->second, range, form);
    if (!reader.ok()) {
      return reader.status().with_context(fmt::format("{}: camera {}", name_, camera));
    }
    return reader;
  }

  Result<std::string> task_text(std::int64_t task_index) const override {
    if (task_index >= 0 && std::cmp_less(task_index, contents_->tasks.size())) {
      return contents_->tasks[static_cast<std::size_t>(task_index)];
    }
    return data_loss(fmt::format("task_index {} is in no line of meta/tasks.jsonl, which has {}",
                                 task_index, contents_->tasks.size()));
  }

  bool has_camera(std::string_view camera) const override { return cameras_.contains(camera); }

 private:
  /// The messages of a camera; null for inline pictures.
  using Camera = std::shared_ptr<const Refs>;

  // Finds the episode message and the cameras and compares them with the side files.
  Status prepare() {
    ROPEWALK_ASSIGN_OR_RETURN(const Refs episodes, reader_.locate("episode"));
    if (episodes.size() != 1) {
      const auto& problems = reader_.problems();
      return data_loss(fmt::format("one message on the topic 'episode' expected, {} found{}",
                                   episodes.size(),
                                   problems.empty() ? "" : "; " + mcap::to_line(problems.front())));
    }
    ROPEWALK_ASSIGN_OR_RETURN(body_,
                              EpisodeBody::read(reader_, *source_, episodes.front(), limits_));
    ROPEWALK_RETURN_IF_ERROR(check_metadata());
    for (const auto& [id, channel] : reader_.channels()) {
      if (!channel.topic.starts_with(kImagePrefix)) continue;
      const std::string camera = channel.topic.substr(kImagePrefix.size());
      ROPEWALK_ASSIGN_OR_RETURN(Refs refs, reader_.locate(channel.topic));
      if (!std::cmp_equal(refs.size(), info_.length)) {
        return data_loss(fmt::format("camera {}: {} frames expected, one per row, {} found", camera,
                                     info_.length, refs.size()));
      }
      cameras_.insert_or_assign(camera, std::make_shared<const Refs>(std::move(refs)));
    }
    if (const msgpack::Value::Map* images = body_->map("images"); images != nullptr) {
      for (const auto& [key, value] : *images) {
        if (const auto camera = key.as_text()) cameras_.try_emplace(std::string(*camera), nullptr);
      }
    }
    // A camera without frames has a channel only where a message was written on it.
    if (info_.length == 0) {
      for (const std::string& camera : contents_->schema.cameras()) {
        cameras_.try_emplace(camera, std::make_shared<const Refs>());
      }
    }
    return ok_status();
  }

  // The row inside the file must be about this episode.
  Status check_metadata() const {
    for (const auto& [key, expected] :
         {std::pair<std::string_view, std::int64_t>{"episode_index", info_.index},
          std::pair<std::string_view, std::int64_t>{"length", info_.length}}) {
      const msgpack::Value* value = body_->find("metadata", key);
      if (value == nullptr) continue;
      const msgpack::Value* plain = msgpack::as_scalar(*value);
      const auto found = (plain == nullptr ? value : plain)->as_int64();
      if (found != expected) {
        return data_loss(fmt::format("metadata: {}: {} expected by meta/episodes.jsonl, {} found",
                                     key, expected,
                                     found ? fmt::to_string(*found) : value->type_name()));
      }
    }
    return ok_status();
  }

  Result<std::shared_ptr<arrow::Array>> read_column(const msgpack::Value& value,
                                                    const Feature& feature) const {
    ROPEWALK_ASSIGN_OR_RETURN(auto array, msgpack::as_ndarray(value, limits_));
    if (!array.has_value()) {
      return data_loss(fmt::format("an array expected, a {} found", value.type_name()));
    }
    if (array->shape.empty() || array->shape[0] != info_.length) {
      return data_loss(fmt::format("{} rows expected, shape [{}] found", info_.length,
                                   fmt::join(array->shape, ", ")));
    }
    DenseColumn column;
    column.dtype = array->dtype;
    column.shape = std::move(array->shape);
    column.data.assign(array->data.begin(), array->data.end());
    column.texts = std::move(array->texts);
    return arrow_column(column, feature);
  }

  Result<std::unique_ptr<FrameReader>> open_frames(const std::string& name, const Camera& camera,
                                                   FrameRange range, const FrameForm& form) const {
    if (info_.length == 0) {
      return std::unique_ptr<FrameReader>(std::make_unique<MessageFrames>(
          reader_.loader(), camera, limits_, FrameShape{}, FrameShape{}, range, form));
    }
    if (camera != nullptr) {
      mcap::MessageLoader loader = reader_.loader();
      const auto first = static_cast<std::size_t>(std::min(range.begin, info_.length - 1));
      ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto array,
                                    MessageFrames::array_of(loader, (*camera)[first], limits_),
                                    fmt::format("frame {}", first));
      ROPEWALK_ASSIGN_OR_RETURN(const FrameShape stored,
                                shape_of(array.shape, array.dtype, limits_));
      ROPEWALK_ASSIGN_OR_RETURN(const FrameShape shape, shape_in(form, stored));
      return std::unique_ptr<FrameReader>(std::make_unique<MessageFrames>(
          std::move(loader), camera, limits_, stored, shape, range, form));
    }
    ROPEWALK_ASSIGN_OR_RETURN(InlineArray array, body_->inline_array(name, limits_));
    if (array.shape.empty() || array.shape[0] != info_.length) {
      return data_loss(fmt::format("an array of {} pictures expected, shape [{}] found",
                                   info_.length, fmt::join(array.shape, ", ")));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const FrameShape stored,
                              shape_of(std::span(array.shape).subspan(1), array.dtype, limits_));
    ROPEWALK_ASSIGN_OR_RETURN(const FrameShape shape, shape_in(form, stored));
    return std::unique_ptr<FrameReader>(std::make_unique<InlineFrames>(
        source_, body_, std::move(array), stored, shape, range, form));
  }

  const std::shared_ptr<const Source> source_;
  const mcap::Reader reader_;
  const std::string name_;
  const std::shared_ptr<const SideFileContents> contents_;
  const EpisodeInfo info_;
  const Limits limits_;
  std::shared_ptr<const EpisodeBody> body_;
  std::map<std::string, Camera, std::less<>> cameras_;
};

class EvaMcapSource final : public EpisodeSource {
 public:
  EvaMcapSource(std::filesystem::path root, SideFileContents contents, const Limits& limits)
      : root_(std::move(root)),
        name_(root_.string()),
        contents_(std::make_shared<const SideFileContents>(std::move(contents))),
        limits_(limits) {}

  const Schema& schema() const override { return contents_->schema; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "mcap"; }
  std::int64_t size() const override { return contents_->size(); }
  EpisodeInfo info(std::int64_t i) const override { return contents_->episode(i); }
  Json statistics() const override { return contents_->statistics; }
  const Findings& findings() const override { return contents_->findings; }

  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    if (i < 0 || i >= size()) {
      return out_of_range(fmt::format("{}: episode {} of {}", name_, i, size()));
    }
    auto path = root_ / eva_mcap_path(i);
    ROPEWALK_ASSIGN_OR_RETURN(const auto found, file_info(path));
    if (!found) {
      // EVA's recorder puts everything into the first chunk.
      const auto first = root_ / "data" / "chunk-000" / path.filename();
      ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(first));
      if (there) path = first;
    }
    return EvaMcapEpisode::open(path, contents_, i, limits_);
  }

 private:
  const std::filesystem::path root_;
  const std::string name_;
  const std::shared_ptr<const SideFileContents> contents_;
  const Limits limits_;
};

}  // namespace

Result<std::unique_ptr<EpisodeSource>> open_eva_mcap(const std::filesystem::path& root,
                                                     const Limits& limits) {
  ROPEWALK_ASSIGN_OR_RETURN(SideFileContents contents, read_side_files(root, limits));
  if (contents.dataset_format != "mcap" && contents.codebase_version != "mcap") {
    return failed_precondition(fmt::format(
        "{}: meta/info.json says codebase_version '{}', dataset_format '{}'; expected mcap",
        root.string(), contents.codebase_version, contents.dataset_format));
  }
  return std::unique_ptr<EpisodeSource>(
      std::make_unique<EvaMcapSource>(root, std::move(contents), limits));
}

}  // namespace ropewalk
