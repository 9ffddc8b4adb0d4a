// Pictures stored in the table: found behind paths, decoded, cropped and scaled.
#include <algorithm>
#include <cmath>
#include <cstring>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/source_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk::lerobot {
namespace {

constexpr std::int64_t kBlockRows = 16;

/// Finds the file that a stored path means. Errors: permission_denied for one outside of the root.
Result<std::filesystem::path> picture_path(const LerobotSource::Impl& impl, std::int64_t episode,
                                           const Feature& feature, std::string_view stored,
                                           std::int64_t frame) {
  std::string relative(stored);
  const std::filesystem::path given(relative);
  if (given.is_absolute()) {
    relative = given.lexically_normal().lexically_relative(impl.root.lexically_normal());
    if (relative.empty()) relative = "..";
  }
  ROPEWALK_RETURN_IF_ERROR(check_inside_root(relative));
  const std::string& key = impl.info.physical_name(feature.name);
  const std::string basename = given.filename().string();
  const std::filesystem::path candidates[] = {
      impl.root / relative,
      impl.root / "images" / key / fmt::format("episode_{:06d}", episode) / basename,
      impl.root / "images" / key / fmt::format("episode-{:06d}", episode) / basename,
      impl.root / "images" / key / fmt::format("episode_{:06d}", episode) /
          fmt::format("frame_{:06d}.png", frame),
  };
  std::error_code error;
  for (const auto& candidate : candidates) {
    if (std::filesystem::is_regular_file(candidate, error)) return candidate;
  }
  return not_found(fmt::format("{}: picture \"{}\" is not there", impl.name, stored));
}

struct Shaper {
  FrameForm form;
  FrameShape stored;
  FrameShape shape;
  int crop_x = 0, crop_y = 0, crop_width = 0, crop_height = 0;

  static Result<Shaper> create(const FrameForm& form, const FrameShape& stored) {
    Shaper out;
    out.form = form;
    out.stored = stored;
    out.crop_x = form.crop_x;
    out.crop_y = form.crop_y;
    out.crop_width = form.crop_width > 0 ? form.crop_width : stored.width - form.crop_x;
    out.crop_height = form.crop_height > 0 ? form.crop_height : stored.height - form.crop_y;
    if (out.crop_x < 0 || out.crop_y < 0 || out.crop_width <= 0 || out.crop_height <= 0 ||
        out.crop_x + out.crop_width > stored.width ||
        out.crop_y + out.crop_height > stored.height) {
      return invalid_argument(
          fmt::format("crop outside of the picture of {}x{}", stored.width, stored.height));
    }
    out.shape = stored;
    out.shape.width = form.width > 0 ? form.width : out.crop_width;
    out.shape.height = form.height > 0 ? form.height : out.crop_height;
    return out;
  }
  bool is_plain() const {
    return form.layout != FrameLayout::chw && shape == stored && crop_x == 0 && crop_y == 0;
  }

  /// Area average when it shrinks, bilinear when it grows.
  template <typename Sample>
  void apply(const Sample* in, Sample* out) const {
    const auto channels = static_cast<std::size_t>(stored.channels);
    const double step_x = static_cast<double>(crop_width) / shape.width;
    const double step_y = static_cast<double>(crop_height) / shape.height;
    const auto plane =
        static_cast<std::size_t>(shape.width) * static_cast<std::size_t>(shape.height);
    const auto taps = [](int i, double step, int extent, int& begin, int& end, double& first,
                         double& last) {
      double from = i * step;
      double to = from + step;
      if (step < 1) {  // a window of one sample around the centre
        from = (i + 0.5) * step - 0.5;
        to = from + 1;
      }
      from = std::clamp(from, 0.0, static_cast<double>(extent) - 1e-9);
      to = std::clamp(to, from + 1e-9, static_cast<double>(extent));
      begin = static_cast<int>(from);
      end = std::min(extent, static_cast<int>(std::ceil(to)));
      first = std::min(to, begin + 1.0) - from;
      last = end - begin > 1 ? to - (end - 1) : first;
    };
    for (int y = 0; y < shape.height; ++y) {
      int y0 = 0, y1 = 0;
      double wy0 = 0, wy1 = 0;
      taps(y, step_y, crop_height, y0, y1, wy0, wy1);
      for (int x = 0; x < shape.width; ++x) {
        int x0 = 0, x1 = 0;
        double wx0 = 0, wx1 = 0;
        taps(x, step_x, crop_width, x0, x1, wx0, wx1);
        for (std::size_t c = 0; c < channels; ++c) {
          double sum = 0;
          double weight = 0;
          for (int v = y0; v < y1; ++v) {
            const double wy = v == y0 ? wy0 : v == y1 - 1 ? wy1 : 1.0;
            for (int u = x0; u < x1; ++u) {
              const double w = wy * (u == x0 ? wx0 : u == x1 - 1 ? wx1 : 1.0);
              const std::size_t at =
                  (static_cast<std::size_t>(v + crop_y) * static_cast<std::size_t>(stored.width) +
                   static_cast<std::size_t>(u + crop_x)) *
                      channels +
                  c;
              sum += w * in[at];
              weight += w;
            }
          }
          const std::size_t pixel =
              static_cast<std::size_t>(y) * static_cast<std::size_t>(shape.width) +
              static_cast<std::size_t>(x);
          const std::size_t to =
              form.layout == FrameLayout::chw ? c * plane + pixel : pixel * channels + c;
          out[to] = static_cast<Sample>(std::lround(sum / weight));
        }
      }
    }
  }
};

class TableFrames final : public FrameReader {
 public:
  TableFrames(const LerobotSource::Impl& impl, std::size_t row, std::int64_t length,
              std::string camera, FrameRange range, const FrameForm& form)
      : impl_(impl),
        row_(row),
        length_(length),
        camera_(std::move(camera)),
        range_(range),
        at_(range.begin),
        form_(form),
        channels_(form.layout == FrameLayout::luma ? ImageChannels::gray : ImageChannels::rgb) {}

  /// Decodes the first picture, whose shape all others must have.
  Status start() {
    if (range_.size() == 0) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, bytes_of(at_));
    ROPEWALK_ASSIGN_OR_RETURN_CTX(Image image, decode_image(bytes, impl_.options.limits, channels_),
                                  fmt::format("{}: frame {}", camera_, at_));
    ROPEWALK_ASSIGN_OR_RETURN(shaper_, Shaper::create(form_, image.shape));
    pixels_ = std::move(image.pixels);
    return ok_status();
  }

  FrameShape shape() const override { return shaper_.shape; }

  Result<bool> next(MutableByteSpan out) override {
    if (at_ == range_.end) return false;
    if (out.size() != shaper_.shape.frame_bytes()) {
      return invalid_argument(fmt::format("{}: {} bytes for a frame of {}", camera_, out.size(),
                                          shaper_.shape.frame_bytes()));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan bytes, bytes_of(at_));
    const std::string context = fmt::format("{}: frame {}", camera_, at_);
    if (shaper_.is_plain()) {
      const Status decoded =
          decode_image_into(bytes, shaper_.stored, out, impl_.options.limits, channels_);
      if (!decoded.ok()) return decoded.with_context(context);
    } else {
      const Status decoded =
          decode_image_into(bytes, shaper_.stored, pixels_, impl_.options.limits, channels_);
      if (!decoded.ok()) return decoded.with_context(context);
      if (shaper_.stored.bytes_per_sample == 2) {
        wide_in_.resize(pixels_.size() / 2);
        std::memcpy(wide_in_.data(), pixels_.data(), pixels_.size());
        wide_out_.resize(out.size() / 2);
        shaper_.apply(wide_in_.data(), wide_out_.data());
        std::memcpy(out.data(), wide_out_.data(), out.size());
      } else {
        shaper_.apply(pixels_.data(), out.data());
      }
    }
    ++at_;
    return true;
  }

 private:
  Result<ByteSpan> bytes_of(std::int64_t frame) {
    if (block_ == nullptr || frame < block_begin_ || frame >= block_begin_ + block_->num_rows()) {
      block_begin_ = frame;
      const FrameRange rows{frame, std::min(range_.end, frame + kBlockRows)};
      ROPEWALK_ASSIGN_OR_RETURN(block_, impl_.read(row_, length_, rows, {camera_}, nullptr));
    }
    const auto& pictures = static_cast<const arrow::StructArray&>(*block_->column(0));
    const auto bytes = pictures.field(0);
    const std::int64_t at = frame - block_begin_;
    if (pictures.IsNull(at) || bytes->IsNull(at)) {
      return data_loss(fmt::format("{}: frame {} has no picture", camera_, frame))
          .with_reason("value_missing");
    }
    return as_bytes(static_cast<const arrow::BinaryArray&>(*bytes).GetView(at));
  }

  const LerobotSource::Impl& impl_;
  std::size_t row_;
  std::int64_t length_;
  std::string camera_;
  FrameRange range_;
  std::int64_t at_;
  FrameForm form_;
  ImageChannels channels_;
  Shaper shaper_;
  Bytes pixels_;
  std::vector<std::uint16_t> wide_in_, wide_out_;
  std::shared_ptr<arrow::RecordBatch> block_;
  std::int64_t block_begin_ = 0;
};

}  // namespace

Result<std::shared_ptr<arrow::Array>> embed_images(const LerobotSource::Impl& impl,
                                                   std::int64_t episode, const Feature& feature,
                                                   const std::shared_ptr<arrow::Array>& column,
                                                   std::int64_t first_row) {
  const auto& pictures = static_cast<const arrow::StructArray&>(*column);
  const auto bytes = std::static_pointer_cast<arrow::BinaryArray>(pictures.field(0));
  const auto paths = std::static_pointer_cast<arrow::StringArray>(pictures.field(1));
  bool complete = true;
  for (std::int64_t i = 0; i < pictures.length(); ++i) {
    if (bytes->IsNull(i)) complete = false;
  }
  if (complete) return column;
  arrow::BinaryBuilder bytes_builder;
  arrow::StringBuilder path_builder;
  for (std::int64_t i = 0; i < pictures.length(); ++i) {
    arrow::Status status;
    if (!bytes->IsNull(i)) {
      status = bytes_builder.Append(bytes->GetView(i));
    } else if (paths->IsNull(i)) {
      return data_loss(fmt::format("row {} has no picture", first_row + i))
          .with_reason("value_missing");
    } else {
      ROPEWALK_ASSIGN_OR_RETURN_CTX(
          const auto path, picture_path(impl, episode, feature, paths->GetView(i), first_row + i),
          fmt::format("row {}", first_row + i));
      ROPEWALK_ASSIGN_OR_RETURN(const Bytes file,
                                read_file(path, impl.options.limits.max_packet_bytes));
      status = bytes_builder.Append(as_text(file));
    }
    if (status.ok()) {
      if (paths->IsNull(i)) {
        status = path_builder.AppendNull();
      } else {
        const std::string_view stored = paths->GetView(i);
        status = path_builder.Append(stored.substr(stored.rfind('/') + 1));
      }
    }
    if (!status.ok()) return resource_exhausted(status.message());
  }
  std::shared_ptr<arrow::Array> all_bytes;
  std::shared_ptr<arrow::Array> all_paths;
  arrow::Status status = bytes_builder.Finish(&all_bytes);
  if (status.ok()) status = path_builder.Finish(&all_paths);
  if (!status.ok()) return resource_exhausted(status.message());
  return std::shared_ptr<arrow::Array>(std::make_shared<arrow::StructArray>(
      column->type(), column->length(), arrow::ArrayVector{all_bytes, all_paths}));
}

Result<std::unique_ptr<FrameReader>> image_frames(const LerobotSource::Impl& impl, std::size_t row,
                                                  std::int64_t length, const std::string& camera,
                                                  FrameRange range, const FrameForm& form) {
  auto reader = std::make_unique<TableFrames>(impl, row, length, camera, range, form);
  ROPEWALK_RETURN_IF_ERROR(reader->start());
  return std::unique_ptr<FrameReader>(std::move(reader));
}

}  // namespace ropewalk::lerobot
