#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/raw_files_internal.h"
#include "ropewalk/episode/side_files.h"
#include "ropewalk/format/parquet/writer.h"
#include "ropewalk/format/video/probe.h"

namespace ropewalk::lerobot_internal {
namespace {

constexpr std::uint64_t kSpillAboveBytes = 32ULL << 20;  // encoded packets kept in memory per clip

std::shared_ptr<arrow::Array> numbers_column(std::int64_t rows, std::int64_t first,
                                             std::int64_t step) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) {
    values[static_cast<std::size_t>(row)] = first + row * step;
  }
  return std::make_shared<arrow::Int64Array>(rows, arrow::Buffer::FromVector(std::move(values)));
}

// Replaces or adds the four number columns.
Result<std::shared_ptr<arrow::RecordBatch>> renumber(std::shared_ptr<arrow::RecordBatch> batch,
                                                     const RawNumbers& numbers) {
  struct Column {
    const char* name;
    std::int64_t first;
    std::int64_t step;
  };
  for (const Column& column :
       {Column{"frame_index", 0, 1}, Column{"episode_index", numbers.episode_index, 0},
        Column{"index", numbers.index_begin, 1}, Column{"task_index", numbers.task_index, 0}}) {
    const auto values = numbers_column(batch->num_rows(), column.first, column.step);
    const auto field = arrow::field(column.name, arrow::int64());
    const int at = batch->schema()->GetFieldIndex(column.name);
    auto changed = at >= 0 ? batch->SetColumn(at, field, values)
                           : batch->AddColumn(batch->num_columns(), field, values);
    if (!changed.ok()) return internal(changed.status().ToString());
    batch = *std::move(changed);
  }
  return batch;
}

// The declarations that a batch agrees with: features whose column is missing are left out, vectors
// have the length they have. Sets `differs` when anything is not as declared.
Schema schema_as_found(const Schema& declared, const arrow::RecordBatch& batch, bool& differs) {
  Schema out = declared;
  out.features.clear();
  for (Feature feature : declared.features) {
    if (feature.kind == FeatureKind::video) {
      out.features.push_back(std::move(feature));
      continue;
    }
    const auto column = batch.GetColumnByName(feature.name);
    if (column == nullptr) {
      differs = true;
      continue;
    }
    if (column->null_count() > 0) differs = true;
    if (column->type_id() == arrow::Type::FIXED_SIZE_LIST && feature.shape.size() == 1) {
      const std::int64_t width =
          static_cast<const arrow::FixedSizeListType&>(*column->type()).list_size();
      if (width != feature.shape.front()) {
        differs = true;
        feature.shape = {width};
        feature.names = {};
      }
    }
    out.features.push_back(std::move(feature));
  }
  return out;
}

// The columns of `batch` in the order of `table`, as they are.
Result<std::shared_ptr<arrow::RecordBatch>> as_found(const OutputTable& table,
                                                     const arrow::RecordBatch& batch) {
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (const auto& field : table.schema->fields()) {
    const auto column = batch.GetColumnByName(field->name());
    if (column == nullptr) return internal("column " + field->name() + " vanished");
    if (!column->type()->Equals(field->type())) {
      return data_loss(fmt::format("column {}: declared {}, found {}", field->name(),
                                   field->type()->ToString(), column->type()->ToString()));
    }
    fields.push_back(field);
    arrays.push_back(column);
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields), table.schema->metadata()),
                                  batch.num_rows(), std::move(arrays));
}

Status put_table(const std::filesystem::path& path, const OutputTable& table,
                 const arrow::RecordBatch& batch, bool durable) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_sink(path));
  ParquetWriterOptions options;
  options.metadata.emplace_back("huggingface", huggingface_metadata(table));
  ROPEWALK_ASSIGN_OR_RETURN(const auto writer,
                            ParquetWriter::create(*sink, batch.schema(), options));
  ROPEWALK_RETURN_IF_ERROR(writer->write_row_group(batch));
  ROPEWALK_RETURN_IF_ERROR(writer->close());
  if (durable) ROPEWALK_RETURN_IF_ERROR(sink->sync());
  return sink->close();
}

// Spec: review-export-upload 3.5 step 2.
Status prove_clip(const std::filesystem::path& path, std::int64_t frames, Rational fps) {
  ROPEWALK_ASSIGN_OR_RETURN(const Mp4Index index, probe_mp4(path));
  if (index.frame_count() != frames || index.packets.size() != static_cast<std::size_t>(frames)) {
    return data_loss(fmt::format("{}: {} packets were written, {} are found", path.string(), frames,
                                 index.packets.size()));
  }
  if (frames > 1 && (index.rate != RateKind::exact || !(index.fps == fps))) {
    return data_loss(fmt::format("{}: rate {}, expected {}", path.string(), to_string(index.fps),
                                 to_string(fps)));
  }
  if (index.first_pts != 0) {
    return data_loss(
        fmt::format("{}: the first picture is at tick {}", path.string(), index.first_pts));
  }
  return ok_status();
}

}  // namespace

std::int64_t raw_index_in_name(std::string_view path) {
  // "…/episode_000012.parquet"
  const std::size_t at = path.rfind("/episode_");
  if (at == std::string_view::npos) return -1;
  std::int64_t value = 0;
  std::size_t digits = 0;
  for (const char c : path.substr(at + 9)) {
    if (c < '0' || c > '9' || digits == 12) break;
    value = value * 10 + (c - '0');
    ++digits;
  }
  return digits == 0 ? -1 : value;
}

std::string raw_table_path(std::int64_t episode_index) {
  return fmt::format("data/chunk-{:03}/episode_{:06}.parquet", episode_index / kEpisodesPerChunk,
                     episode_index);
}

std::string raw_video_path(const std::string& camera, std::int64_t episode_index) {
  return fmt::format("videos/chunk-{:03}/{}/episode_{:06}.mp4", episode_index / kEpisodesPerChunk,
                     camera, episode_index);
}

Result<StatisticsMap> write_raw_table(const RawLayout& layout, const Episode& episode,
                                      const RawNumbers& numbers, const std::filesystem::path& base,
                                      Findings& findings) {
  const std::int64_t length = episode.info().length;
  ROPEWALK_ASSIGN_OR_RETURN(auto batch, episode.columns({0, length}));
  if (batch->num_rows() != length) {
    return data_loss(fmt::format("{} rows, expected {}", batch->num_rows(), length));
  }
  ROPEWALK_ASSIGN_OR_RETURN(batch, renumber(std::move(batch), numbers));
  bool differs = false;
  Schema schema = schema_as_found(layout.schema, *batch, differs);
  OutputTable table = layout.table;
  if (differs && layout.options.faithful) {
    table = plan_table(schema, batch.get(), {}, findings);
    ROPEWALK_ASSIGN_OR_RETURN(batch, as_found(table, *batch));
  } else {
    ROPEWALK_ASSIGN_OR_RETURN(
        batch, conform(table, *batch, layout.schema.fps, episode.info().index, findings));
  }
  const std::filesystem::path path = base / raw_table_path(numbers.episode_index);
  ROPEWALK_RETURN_IF_ERROR(make_directories(path.parent_path()));
  ROPEWALK_RETURN_IF_ERROR(put_table(path, table, *batch, layout.options.durable));
  return batch_statistics(*batch, table.declared(schema), {});
}

Result<RawClip> write_raw_clip(const RawLayout& layout, const Episode& episode,
                               const std::string& camera, std::int64_t episode_index,
                               const std::filesystem::path& base, std::stop_token stop) {
  const std::int64_t length = episode.info().length;
  const std::filesystem::path path = base / raw_video_path(camera, episode_index);
  ROPEWALK_RETURN_IF_ERROR(make_directories(path.parent_path()));
  ROPEWALK_ASSIGN_OR_RETURN(const auto reader, episode.frames(camera, {0, length}));
  const FrameShape shape = reader->shape();
  if (shape.channels != 3 || shape.bytes_per_sample != 1) {
    return unimplemented(
        fmt::format("camera {}: a raw dataset takes pictures of 3 channels of 8 bits, not {} of {}",
                    camera, shape.channels, 8 * shape.bytes_per_sample));
  }
  EncoderSettings settings = layout.options.encoder;
  settings.max_buffer_bytes = std::min(settings.max_buffer_bytes, kSpillAboveBytes);
  settings.spill_path = path.string() + ".packets";
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_sink(path));
  ROPEWALK_ASSIGN_OR_RETURN(
      const auto encoder,
      VideoEncoder::create(*sink, shape.width, shape.height, layout.schema.fps, settings));
  ROPEWALK_ASSIGN_OR_RETURN(CameraSamples samples, CameraSamples::create(shape));
  const std::vector<std::int64_t> sampled = sampled_frames(length);
  auto next_sample = sampled.begin();
  Bytes frame(shape.frame_bytes());
  RawClip out;
  for (; out.frames < length; ++out.frames) {
    if (stop.stop_requested()) return cancelled();
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, reader->next(frame));
    if (!more) break;
    if (next_sample != sampled.end() && *next_sample == out.frames) {
      samples.add(frame);
      while (next_sample != sampled.end() && *next_sample == out.frames) ++next_sample;
    }
    ROPEWALK_RETURN_IF_ERROR(encoder->write(frame));
  }
  if (out.frames != length && !layout.options.faithful) {
    return data_loss(fmt::format("camera {}: {} pictures for {} rows", camera, out.frames, length));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const EncodedVideo encoded, encoder->finish());
  if (layout.options.durable) ROPEWALK_RETURN_IF_ERROR(sink->sync());
  ROPEWALK_RETURN_IF_ERROR(sink->close());
  ROPEWALK_RETURN_IF_ERROR(prove_clip(path, out.frames, layout.schema.fps));
  out.padded_to_even = encoded.padded_to_even;
  out.statistics = std::move(samples).result({});
  return out;
}

Result<FeatureStatistics> inline_camera_statistics(const Episode& episode,
                                                   const std::string& camera,
                                                   std::stop_token stop) {
  std::unique_ptr<FrameReader> reader;
  std::optional<CameraSamples> samples;
  Bytes frame;
  const std::int64_t length = episode.info().length;
  for (const std::int64_t ordinal : sampled_frames(length)) {
    if (stop.stop_requested()) return cancelled();
    ROPEWALK_ASSIGN_OR_RETURN(reader, episode.frames(camera, {ordinal, ordinal + 1}));
    if (!samples) {
      frame.resize(reader->shape().frame_bytes());
      ROPEWALK_ASSIGN_OR_RETURN(samples, CameraSamples::create(reader->shape()));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, reader->next(frame));
    if (!more) break;  // the rest never came; the table says so with nulls
    samples->add(frame);
  }
  if (!samples) return failed_precondition(fmt::format("camera {}: no pictures", camera));
  return std::move(*samples).result({});
}

}  // namespace ropewalk::lerobot_internal
