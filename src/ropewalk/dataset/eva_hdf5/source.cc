#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/eva_hdf5/eva_hdf5.h"
#include "ropewalk/dataset/eva_hdf5/items_internal.h"
#include "ropewalk/episode/dense_column.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/episode/side_files_reader.h"

namespace ropewalk {
namespace {

using eva_hdf5::Item;
using eva_hdf5::ItemKind;

/// The open readers of one file: each serves one caller at a time, so frames are read in parallel.
class ReaderPool {
 public:
  ReaderPool(std::filesystem::path path, const Limits& limits, const Hdf5ReaderOptions& options)
      : path_(std::move(path)), limits_(limits), options_(options) {}

  Result<std::unique_ptr<Hdf5Reader>> take() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto reader = std::move(idle_.back());
        idle_.pop_back();
        return reader;
      }
    }
    ROPEWALK_ASSIGN_OR_RETURN(Hdf5Reader reader, Hdf5Reader::open(path_, limits_, options_));
    return std::make_unique<Hdf5Reader>(std::move(reader));
  }
  void give_back(std::unique_ptr<Hdf5Reader> reader) {
    const std::lock_guard lock(mutex_);
    if (idle_.size() < 2) idle_.push_back(std::move(reader));
  }

 private:
  const std::filesystem::path path_;
  const Limits limits_;
  const Hdf5ReaderOptions options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Hdf5Reader>> idle_;
};

/// Says whether stored pixels can be handed out in the form that was asked for.
Status check_form(const FrameForm& form, const FrameShape& stored) {
  const int crop_width = form.crop_width > 0 ? form.crop_width : stored.width - form.crop_x;
  const int crop_height = form.crop_height > 0 ? form.crop_height : stored.height - form.crop_y;
  if (form.crop_x < 0 || form.crop_y < 0 || crop_width <= 0 || crop_height <= 0 ||
      crop_width > stored.width - form.crop_x || crop_height > stored.height - form.crop_y) {
    return invalid_argument(
        fmt::format("the crop lies outside the picture of {}x{}", stored.width, stored.height));
  }
  if ((form.width != 0 && form.width != crop_width) ||
      (form.height != 0 && form.height != crop_height)) {
    return unimplemented("frames of an HDF5 export are not scaled; ask for the stored size");
  }
  if (form.layout == FrameLayout::luma && stored.channels != 1) {
    return unimplemented("frames of an HDF5 export have no luma; ask for hwc or chw");
  }
  return ok_status();
}

class EvaHdf5Frames final : public FrameReader {
 public:
  EvaHdf5Frames(std::shared_ptr<ReaderPool> pool, std::unique_ptr<Hdf5Reader> reader, Item item,
                FrameShape stored, FrameRange range, FrameForm form)
      : pool_(std::move(pool)),
        reader_(std::move(reader)),
        item_(std::move(item)),
        stored_(stored),
        shape_(stored),
        next_(range.begin),
        end_(range.end),
        form_(form) {
    shape_.width = form.crop_width > 0 ? form.crop_width : stored.width - form.crop_x;
    shape_.height = form.crop_height > 0 ? form.crop_height : stored.height - form.crop_y;
    // One request moves about 4 MiB: small pictures are not asked for one by one.
    constexpr std::size_t kBatchBytes = 4 << 20;
    batch_frames_ = static_cast<std::int64_t>(
        std::max<std::size_t>(1, kBatchBytes / std::max<std::size_t>(1, stored.frame_bytes())));
  }
  ~EvaHdf5Frames() override { pool_->give_back(std::move(reader_)); }

  FrameShape shape() const override { return shape_; }

  Result<bool> next(MutableByteSpan out) override {
    if (next_ >= end_) return false;
    if (out.size() != shape_.frame_bytes()) {
      return invalid_argument(
          fmt::format("a frame has {} bytes, {} are given", shape_.frame_bytes(), out.size()));
    }
    if (next_ >= batch_end_) ROPEWALK_RETURN_IF_ERROR(load());
    const std::size_t bytes = stored_.frame_bytes();
    copy(ByteSpan(batch_).subspan(static_cast<std::size_t>(next_ - batch_begin_) * bytes, bytes),
         out);
    ++next_;
    return true;
  }

 private:
  Status load() {
    batch_begin_ = next_;
    batch_end_ = std::min(end_, next_ + batch_frames_);
    batch_.resize(static_cast<std::size_t>(batch_end_ - batch_begin_) * stored_.frame_bytes());
    Status status =
        reader_->read_rows(item_.value_path, item_.value, batch_begin_, batch_end_, batch_);
    if (!status.ok()) {
      batch_end_ = batch_begin_;
      return status.with_context(fmt::format("{}: frames [{}, {})", item_.key, next_,
                                             std::min(end_, next_ + batch_frames_)));
    }
    return ok_status();
  }

  void copy(ByteSpan from, MutableByteSpan out) const {
    const auto sample = static_cast<std::size_t>(stored_.bytes_per_sample);
    const auto channels = static_cast<std::size_t>(stored_.channels);
    const auto width = static_cast<std::size_t>(shape_.width);
    const auto height = static_cast<std::size_t>(shape_.height);
    const std::size_t stride = static_cast<std::size_t>(stored_.width) * channels * sample;
    for (std::size_t y = 0; y < height; ++y) {
      const std::uint8_t* row = from.data() +
                                (y + static_cast<std::size_t>(form_.crop_y)) * stride +
                                static_cast<std::size_t>(form_.crop_x) * channels * sample;
      if (form_.layout != FrameLayout::chw) {
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

  std::shared_ptr<ReaderPool> pool_;
  std::unique_ptr<Hdf5Reader> reader_;
  Item item_;
  FrameShape stored_;
  FrameShape shape_;
  std::int64_t next_;
  std::int64_t end_;
  FrameForm form_;
  std::int64_t batch_frames_ = 1;
  Bytes batch_;
  std::int64_t batch_begin_ = 0;
  std::int64_t batch_end_ = 0;
};

class EvaHdf5Episode final : public Episode {
 public:
  static Result<std::unique_ptr<EvaHdf5Episode>> open(
      const std::filesystem::path& path, std::shared_ptr<const SideFileContents> contents,
      std::int64_t index, const Limits& limits, const Hdf5ReaderOptions& options) {
    auto pool = std::make_shared<ReaderPool>(path, limits, options);
    ROPEWALK_ASSIGN_OR_RETURN(auto reader, pool->take());
    auto episode = std::make_unique<EvaHdf5Episode>(std::move(contents), index, limits, pool);
    ROPEWALK_ASSIGN_OR_RETURN(episode->columns_, eva_hdf5::read_items(*reader, "columns"));
    ROPEWALK_ASSIGN_OR_RETURN(episode->images_, eva_hdf5::read_items(*reader, "images"));
    ROPEWALK_RETURN_IF_ERROR(episode->check_metadata(*reader));
    ROPEWALK_RETURN_IF_ERROR(episode->check_shapes(*reader));
    pool->give_back(std::move(reader));
    return episode;
  }

  EvaHdf5Episode(std::shared_ptr<const SideFileContents> contents, std::int64_t index,
                 const Limits& limits, std::shared_ptr<ReaderPool> pool)
      : contents_(std::move(contents)),
        info_(contents_->episode(index)),
        limits_(limits),
        pool_(std::move(pool)) {}

  const EpisodeInfo& info() const override { return info_; }
  const Schema& schema() const override { return contents_->schema; }

  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    std::vector<std::string> names;
    for (const Feature* feature : contents_->schema.of_kind(FeatureKind::column)) {
      names.push_back(feature->name);
    }
    return columns_of(names, range);
  }

  Result<std::shared_ptr<arrow::RecordBatch>> columns_of(const std::vector<std::string>& names,
                                                         FrameRange range) const override {
    for (const std::string& name : names) {
      const Feature* feature = contents_->schema.find(name);
      if (feature == nullptr || feature->kind != FeatureKind::column) {
        return not_found(fmt::format("episode {}: no column \"{}\"", info_.index, name));
      }
    }
    if (range.begin < 0 || range.end < range.begin || range.end > info_.length) {
      return out_of_range(fmt::format("episode {}: rows [{}, {}) of {}", info_.index, range.begin,
                                      range.end, info_.length));
    }
    ROPEWALK_ASSIGN_OR_RETURN(auto reader, pool_->take());
    arrow::FieldVector fields;
    arrow::ArrayVector arrays;
    for (const Feature* feature : contents_->schema.of_kind(FeatureKind::column)) {
      if (std::ranges::find(names, feature->name) == names.end()) continue;
      const auto item = std::ranges::find(columns_, feature->name, &Item::key);
      if (item == columns_.end()) continue;
      auto array = read_column(*reader, *item, *feature);
      if (!array.ok()) return array.status();
      fields.push_back(arrow::field(feature->name, (*array)->type()));
      arrays.push_back((*array)->Slice(range.begin, range.size()));
    }
    pool_->give_back(std::move(reader));
    return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), range.size(),
                                    std::move(arrays));
  }

  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm form) const override {
    const auto item = std::ranges::find(images_, camera, &Item::key);
    if (item == images_.end()) {
      return not_found(fmt::format("episode {}: there is no camera {}", info_.index, camera));
    }
    if (range.begin < 0 || range.end < range.begin || range.end > info_.length) {
      return out_of_range(fmt::format("episode {}: camera {}: frames [{}, {}) of {}", info_.index,
                                      camera, range.begin, range.end, info_.length));
    }
    ROPEWALK_ASSIGN_OR_RETURN(auto reader, pool_->take());
    const std::string place = fmt::format("{}: camera {}", reader->name(), camera);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const FrameShape stored, frame_shape(*item), place);
    ROPEWALK_RETURN_IF_ERROR(check_form(form, stored).with_context(place));
    return std::unique_ptr<FrameReader>(
        std::make_unique<EvaHdf5Frames>(pool_, std::move(reader), *item, stored, range, form));
  }

  Result<std::string> task_text(std::int64_t task_index) const override {
    if (task_index >= 0 && std::cmp_less(task_index, contents_->tasks.size())) {
      return contents_->tasks[static_cast<std::size_t>(task_index)];
    }
    return data_loss(fmt::format("task_index {} is in no line of meta/tasks.jsonl, which has {}",
                                 task_index, contents_->tasks.size()));
  }

  bool has_camera(std::string_view camera) const override {
    return std::ranges::find(images_, camera, &Item::key) != images_.end();
  }

 private:
  Result<std::shared_ptr<arrow::Array>> read_column(const Hdf5Reader& reader, const Item& item,
                                                    const Feature& feature) const {
    ROPEWALK_ASSIGN_OR_RETURN(const DenseColumn column,
                              eva_hdf5::read_column(reader, item, limits_));
    const std::string place = fmt::format("{}: column {}", reader.name(), feature.name);
    if (column.shape.empty() || column.shape[0] != info_.length) {
      return data_loss(fmt::format("{}: expected {} rows, found shape [{}]", place, info_.length,
                                   fmt::join(column.shape, ", ")));
    }
    auto array = arrow_column(column, feature);
    if (!array.ok()) return array.status().with_context(place);
    return array;
  }

  /// The row inside the file must be about this episode.
  Status check_metadata(const Hdf5Reader& reader) const {
    ROPEWALK_ASSIGN_OR_RETURN(const auto items, eva_hdf5::read_items(reader, "metadata"));
    for (const auto& [key, expected] :
         {std::pair<std::string_view, std::int64_t>{"episode_index", info_.index},
          std::pair<std::string_view, std::int64_t>{"length", info_.length}}) {
      const auto item = std::ranges::find(items, key, &Item::key);
      if (item == items.end()) continue;
      ROPEWALK_ASSIGN_OR_RETURN(const Json value, eva_hdf5::read_json(reader, *item, limits_));
      if (value.as_int64() != expected) {
        return data_loss(fmt::format("{}: metadata: {}: expected {}, found {}", reader.name(), key,
                                     expected, value.dump()));
      }
    }
    return ok_status();
  }

  /// Compares the shapes of all items with the number of rows.
  Status check_shapes(const Hdf5Reader& reader) const {
    for (const Item& item : columns_) {
      if (item.kind != ItemKind::array) continue;  // text: its length is inside
      if (item.value.shape.empty() || item.value.shape[0] != info_.length) {
        return data_loss(fmt::format("{}: column {}: expected {} rows, found shape [{}]",
                                     reader.name(), item.key, info_.length,
                                     fmt::join(item.value.shape, ", ")));
      }
    }
    for (const Item& item : images_) {
      const auto shape = frame_shape(item);
      if (!shape.ok()) {
        return shape.status().with_context(fmt::format("{}: camera {}", reader.name(), item.key));
      }
      // Chunks that were never written read as zeros; their bytes are missing in the file.
      if (item.value.filtered || info_.length == 0) continue;
      const auto expected = static_cast<std::uint64_t>(info_.length) *
                            static_cast<std::uint64_t>(shape->frame_bytes());
      if (item.value.stored_bytes != expected) {
        return data_loss(fmt::format("{}: camera {}: expected {} bytes of pictures, found {}",
                                     reader.name(), item.key, expected, item.value.stored_bytes));
      }
    }
    return ok_status();
  }

  Result<FrameShape> frame_shape(const Item& item) const {
    const std::vector<std::int64_t>& shape = item.value.shape;
    if (info_.length == 0) return FrameShape{};
    const bool typed = item.value.dtype == DType::uint8 || item.value.dtype == DType::uint16;
    if (item.kind != ItemKind::array || !typed || shape.size() < 3 || shape.size() > 4) {
      return data_loss(fmt::format("expected uint8 [T, H, W, C], found {} [{}]",
                                   item.value.type_name, fmt::join(shape, ", ")));
    }
    if (shape[0] != info_.length) {
      return data_loss(
          fmt::format("expected {} frames, one per row, found {}", info_.length, shape[0]));
    }
    const std::int64_t channels = shape.size() == 4 ? shape[3] : 1;
    constexpr std::int64_t kMaxSide = 1 << 20;
    if (shape[1] < 1 || shape[1] > kMaxSide || shape[2] < 1 || shape[2] > kMaxSide ||
        channels < 1 || channels > 4 ||
        static_cast<std::uint64_t>(shape[1] * shape[2]) > limits_.max_image_pixels) {
      return resource_exhausted(fmt::format("pictures of [{}] are beyond the limit of {} pixels",
                                            fmt::join(shape, ", "), limits_.max_image_pixels));
    }
    FrameShape out;
    out.height = static_cast<int>(shape[1]);
    out.width = static_cast<int>(shape[2]);
    out.channels = static_cast<int>(channels);
    out.bytes_per_sample = item.value.dtype == DType::uint16 ? 2 : 1;
    return out;
  }

  const std::shared_ptr<const SideFileContents> contents_;
  const EpisodeInfo info_;
  const Limits limits_;
  std::shared_ptr<ReaderPool> pool_;
  std::vector<Item> columns_;
  std::vector<Item> images_;
};

class EvaHdf5Source final : public EpisodeSource {
 public:
  EvaHdf5Source(std::filesystem::path root, SideFileContents contents, const Limits& limits,
                const Hdf5ReaderOptions& options)
      : root_(std::move(root)),
        name_(root_.string()),
        contents_(std::make_shared<const SideFileContents>(std::move(contents))),
        limits_(limits),
        options_(options) {}

  const Schema& schema() const override { return contents_->schema; }
  const std::string& name() const override { return name_; }
  std::string_view format() const override { return "hdf5"; }
  std::int64_t size() const override { return contents_->size(); }
  EpisodeInfo info(std::int64_t i) const override { return contents_->episode(i); }
  Json statistics() const override { return contents_->statistics; }
  const Findings& findings() const override { return contents_->findings; }

  Result<std::unique_ptr<Episode>> open(std::int64_t i) const override {
    if (i < 0 || i >= size()) {
      return out_of_range(fmt::format("{}: episode {} of {}", name_, i, size()));
    }
    auto path = root_ / eva_hdf5_path(i);
    ROPEWALK_ASSIGN_OR_RETURN(const auto found, file_info(path));
    if (!found) {
      // EVA's recorder puts everything into the first chunk.
      const auto first = root_ / "data" / "chunk-000" / path.filename();
      ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(first));
      if (there) path = first;
    }
    ROPEWALK_ASSIGN_OR_RETURN(auto episode,
                              EvaHdf5Episode::open(path, contents_, i, limits_, options_));
    return std::unique_ptr<Episode>(std::move(episode));
  }

 private:
  const std::filesystem::path root_;
  const std::string name_;
  const std::shared_ptr<const SideFileContents> contents_;
  const Limits limits_;
  const Hdf5ReaderOptions options_;
};

}  // namespace

Result<std::unique_ptr<EpisodeSource>> open_eva_hdf5(const std::filesystem::path& root,
                                                     const Limits& limits,
                                                     const Hdf5ReaderOptions& reader) {
  ROPEWALK_RETURN_IF_ERROR(reader.validate());
  ROPEWALK_ASSIGN_OR_RETURN(SideFileContents contents, read_side_files(root, limits));
  if (contents.dataset_format != "hdf5" && contents.codebase_version != "hdf5") {
    return failed_precondition(fmt::format(
        "{}: meta/info.json says codebase_version '{}', dataset_format '{}'; expected hdf5",
        root.string(), contents.codebase_version, contents.dataset_format));
  }
  return std::unique_ptr<EpisodeSource>(
      std::make_unique<EvaHdf5Source>(root, std::move(contents), limits, reader));
}

}  // namespace ropewalk
