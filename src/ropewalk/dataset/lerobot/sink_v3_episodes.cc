#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/sink_v3_episodes_internal.h"
#include "ropewalk/format/parquet/writer.h"

namespace ropewalk::lerobot_internal {
namespace {

constexpr std::array<std::string_view, 3> kOwnKeys{"episode_index", "tasks", "length"};
constexpr const char* kLinesPath = "meta/episodes.jsonl";
constexpr const char* kSpoolPath = ".episodes.spool";
constexpr std::int64_t kMostRowsPerGroup = 1000;
constexpr std::array<const char*, 4> kMomentNames{"min", "max", "mean", "std"};
// Values of one element in a spooled row: the four moments and the five quantiles.
constexpr std::size_t kValuesPerElement = kMomentNames.size() + kQuantileLevels.size();
constexpr std::size_t kIntegersBeforeVideos = 5;
constexpr std::size_t kIntegersPerVideo = 3;

std::shared_ptr<arrow::DataType> values_type(bool camera) {
  const auto list = [](const std::shared_ptr<arrow::DataType>& item) {
    return arrow::list(arrow::field("item", item));
  };
  return camera ? list(list(list(arrow::float64()))) : list(arrow::float64());
}

Status check(const arrow::Status& status) {
  return status.ok() ? ok_status() : resource_exhausted(status.ToString());
}

/// Reads lines of a file in order, in steps.
class LineReader {
 public:
  explicit LineReader(std::unique_ptr<Source> source) : source_(std::move(source)) {}

  Result<std::string> next() {
    while (true) {
      const std::size_t end = buffer_.find('\n', at_);
      if (end != std::string::npos) {
        std::string line = buffer_.substr(at_, end - at_);
        at_ = end + 1;
        return line;
      }
      const std::uint64_t left = source_->size() - offset_;
      if (left == 0) return internal(source_->name() + ": fewer lines than episodes");
      buffer_.erase(0, at_);
      at_ = 0;
      const auto step = static_cast<std::size_t>(std::min<std::uint64_t>(left, 1 << 20));
      const std::size_t before = buffer_.size();
      buffer_.resize(before + step);
      ROPEWALK_RETURN_IF_ERROR(source_->read_at(
          offset_, {reinterpret_cast<std::uint8_t*>(buffer_.data()) + before, step}));
      offset_ += step;
    }
  }

 private:
  std::unique_ptr<Source> source_;
  std::uint64_t offset_ = 0;
  std::string buffer_;
  std::size_t at_ = 0;
};

}  // namespace

struct EpisodeRows::Block {
  std::int64_t rows = 0;
  std::vector<std::int64_t> integers;
  std::vector<double> doubles;
  std::vector<Json> json;
};

Result<EpisodeRows> EpisodeRows::create(std::filesystem::path root) {
  ROPEWALK_ASSIGN_OR_RETURN(auto lines, HashingSink::create(root, kLinesPath));
  ROPEWALK_ASSIGN_OR_RETURN(auto spool, create_sink(root / kSpoolPath));
  return EpisodeRows(std::move(root), std::move(lines), std::move(spool));
}

void EpisodeRows::begin(std::vector<std::string> videos, std::vector<StatisticsColumn> statistics,
                        std::int64_t fps) {
  videos_ = std::move(videos);
  statistics_ = std::move(statistics);
  fps_ = fps;
}

std::size_t EpisodeRows::integers_per_row() const {
  return kIntegersBeforeVideos + kIntegersPerVideo * videos_.size() + statistics_.size();
}

std::size_t EpisodeRows::doubles_per_row() const {
  std::size_t out = 0;
  for (const StatisticsColumn& column : statistics_) out += column.width * kValuesPerElement;
  return out;
}

Status EpisodeRows::add(const EpisodeNumbers& numbers, const Json& row,
                        const StatisticsMap& statistics) {
  std::vector<std::int64_t> integers{numbers.episode_index, numbers.length, numbers.data_file.chunk,
                                     numbers.data_file.file, numbers.index_begin};
  for (const std::optional<ClipPlace>& place : numbers.videos) {
    integers.push_back(place ? place->file.chunk : -1);
    integers.push_back(place ? place->file.file : -1);
    integers.push_back(place ? place->first_frame : -1);
  }
  std::vector<double> doubles;
  doubles.reserve(doubles_per_row());
  for (const StatisticsColumn& column : statistics_) {
    const auto at = statistics.find(column.feature);
    const FeatureStatistics* found =
        at != statistics.end() && at->second.mean.size() == column.width ? &at->second : nullptr;
    integers.push_back(found != nullptr ? found->count : -1);
    const auto put = [&](const std::vector<double>* values) {
      for (std::size_t d = 0; d < column.width; ++d) {
        doubles.push_back(values != nullptr && values->size() == column.width
                              ? (*values)[d]
                              : std::numeric_limits<double>::quiet_NaN());
      }
    };
    for (const auto* values : {found ? &found->min : nullptr, found ? &found->max : nullptr,
                               found ? &found->mean : nullptr, found ? &found->std : nullptr}) {
      put(values);
    }
    for (std::size_t i = 0; i < kQuantileLevels.size(); ++i) {
      put(found != nullptr ? &found->quantiles[i] : nullptr);
    }
  }
  const auto bytes_of = [](const auto& values) {
    return ByteSpan(reinterpret_cast<const std::uint8_t*>(values.data()),
                    values.size() * sizeof(values[0]));
  };
  ROPEWALK_RETURN_IF_ERROR(spool_->append(bytes_of(integers)));
  ROPEWALK_RETURN_IF_ERROR(spool_->append(bytes_of(doubles)));
  columns_.observe(row, kOwnKeys);
  ++rows_;
  return lines_->append(as_bytes(row.dump_spaced() + "\n"));
}

Status EpisodeRows::finish(std::uint64_t file_bytes, std::int64_t chunks_size,
                           const RunContext& context, Written& written) {
  ROPEWALK_RETURN_IF_ERROR(spool_->close());
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile lines, lines_->finish());
  written.add(std::move(lines));
  if (rows_ > 0) {
    ROPEWALK_RETURN_IF_ERROR(write_files(file_bytes, chunks_size, context, written));
  }
  return remove_file(root_ / kSpoolPath);
}

Status EpisodeRows::write_files(std::uint64_t file_bytes, std::int64_t chunks_size,
                                const RunContext& context, Written& written) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto spool, open_source(root_ / kSpoolPath));
  ROPEWALK_ASSIGN_OR_RETURN(auto line_source, open_source(root_ / kLinesPath));
  LineReader lines(std::move(line_source));
  const auto schema = arrow::schema(fields());
  const std::uint64_t row_bytes = 8 * (integers_per_row() + doubles_per_row());
  const auto rows_per_group = std::clamp<std::int64_t>(
      static_cast<std::int64_t>(file_bytes / row_bytes), 1, kMostRowsPerGroup);

  FileNumber number;
  std::unique_ptr<HashingSink> sink;
  std::unique_ptr<ParquetWriter> writer;
  const std::uint64_t footer =
      kFooterBytesPerColumn * static_cast<std::uint64_t>(schema->num_fields());
  std::uint64_t group_bytes = 0;  // of the last row group, compressed, with its part of the footer
  std::uint64_t file_size = 0;
  const auto close = [&]() -> Status {
    if (writer == nullptr) return ok_status();
    ROPEWALK_RETURN_IF_ERROR(writer->close());
    ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, sink->finish());
    written.add(std::move(file));
    writer.reset();
    return ok_status();
  };
  std::uint64_t offset = 0;
  for (std::int64_t first = 0; first < rows_; first += rows_per_group) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    Block block{.rows = std::min(rows_per_group, rows_ - first)};
    for (std::int64_t i = 0; i < block.rows; ++i) {
      const auto read = [&](auto& values, std::size_t count) {
        const std::size_t before = values.size();
        values.resize(before + count);
        const std::size_t bytes = count * sizeof(values[0]);
        const Status status = spool->read_at(
            offset, {reinterpret_cast<std::uint8_t*>(values.data() + before), bytes});
        offset += bytes;
        return status;
      };
      ROPEWALK_RETURN_IF_ERROR(read(block.integers, integers_per_row()));
      ROPEWALK_RETURN_IF_ERROR(read(block.doubles, doubles_per_row()));
      ROPEWALK_ASSIGN_OR_RETURN(const std::string line, lines.next());
      ROPEWALK_ASSIGN_OR_RETURN(Json row, parse_json(line));
      block.json.push_back(std::move(row));
    }
    if (writer != nullptr && file_size + group_bytes >= file_bytes) {
      ROPEWALK_RETURN_IF_ERROR(close());
    }
    if (writer == nullptr) {
      number.advance(chunks_size);
      file_size = 0;
      ROPEWALK_ASSIGN_OR_RETURN(
          sink, HashingSink::create(root_, fmt::format("meta/episodes/{}.parquet", number.text())));
      ROPEWALK_ASSIGN_OR_RETURN(writer, ParquetWriter::create(*sink, schema));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const auto batch, build(block, number, schema));
    const std::uint64_t before = writer->size_bytes();
    ROPEWALK_RETURN_IF_ERROR(writer->write_row_group(*batch));
    group_bytes = writer->size_bytes() - before + footer;
    file_size += group_bytes;
  }
  return close();
}

arrow::FieldVector EpisodeRows::fields() const {
  const auto integer = [](std::string name) {
    return arrow::field(std::move(name), arrow::int64());
  };
  arrow::FieldVector out{integer("episode_index"),
                         arrow::field("tasks", arrow::list(arrow::field("item", arrow::utf8()))),
                         integer("length"),
                         integer("data/chunk_index"),
                         integer("data/file_index"),
                         integer("dataset_from_index"),
                         integer("dataset_to_index")};
  for (const std::string& video : videos_) {
    out.push_back(integer("videos/" + video + "/chunk_index"));
    out.push_back(integer("videos/" + video + "/file_index"));
    for (const char* name : {"/from_timestamp", "/to_timestamp"}) {
      out.push_back(arrow::field("videos/" + video + name, arrow::float64()));
    }
  }
  for (const StatisticsColumn& column : statistics_) {
    const std::string prefix = "stats/" + column.feature + "/";
    const auto type = values_type(column.camera);
    for (const char* name : kMomentNames) out.push_back(arrow::field(prefix + name, type));
    out.push_back(
        arrow::field(prefix + "count", arrow::list(arrow::field("item", arrow::int64()))));
    for (const std::string_view name : kQuantileNames) {
      out.push_back(arrow::field(prefix + std::string(name), type));
    }
  }
  out.push_back(integer("meta/episodes/chunk_index"));
  out.push_back(integer("meta/episodes/file_index"));
  for (auto& field : columns_.fields()) out.push_back(std::move(field));
  return out;
}

Result<std::shared_ptr<arrow::RecordBatch>> EpisodeRows::build(
    const Block& block, FileNumber number, const std::shared_ptr<arrow::Schema>& schema) const {
  arrow::ArrayVector columns;
  const std::size_t stride = integers_per_row();
  const auto rows = static_cast<std::size_t>(block.rows);
  const auto finish = [&columns](arrow::ArrayBuilder& builder) {
    std::shared_ptr<arrow::Array> array;
    const Status status = check(builder.Finish(&array));
    columns.push_back(std::move(array));
    return status;
  };
  // Appends int64 values; negative ones are null.
  const auto integers = [&](const auto& value) -> Status {
    arrow::Int64Builder builder;
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int64_t one = value(block.integers.data() + row * stride);
      ROPEWALK_RETURN_IF_ERROR(check(one < 0 ? builder.AppendNull() : builder.Append(one)));
    }
    return finish(builder);
  };
  const auto at = [](std::size_t i) { return [i](const std::int64_t* row) { return row[i]; }; };

  ROPEWALK_RETURN_IF_ERROR(integers(at(0)));
  auto texts = std::make_shared<arrow::StringBuilder>();
  arrow::ListBuilder tasks(arrow::default_memory_pool(), texts,
                           arrow::list(arrow::field("item", arrow::utf8())));
  for (const Json& row : block.json) {
    ROPEWALK_RETURN_IF_ERROR(check(tasks.Append()));
    const Json* list = row.find("tasks");
    for (const Json& task : *list->as_array()) {
      ROPEWALK_RETURN_IF_ERROR(check(texts->Append(*task.as_string())));
    }
  }
  ROPEWALK_RETURN_IF_ERROR(finish(tasks));
  ROPEWALK_RETURN_IF_ERROR(integers(at(1)));
  ROPEWALK_RETURN_IF_ERROR(integers(at(2)));
  ROPEWALK_RETURN_IF_ERROR(integers(at(3)));
  ROPEWALK_RETURN_IF_ERROR(integers(at(4)));
  ROPEWALK_RETURN_IF_ERROR(integers([](const std::int64_t* row) { return row[4] + row[1]; }));
  for (std::size_t v = 0; v < videos_.size(); ++v) {
    const std::size_t place = kIntegersBeforeVideos + kIntegersPerVideo * v;
    ROPEWALK_RETURN_IF_ERROR(integers(at(place)));
    ROPEWALK_RETURN_IF_ERROR(integers(at(place + 1)));
    for (const bool end : {false, true}) {
      arrow::DoubleBuilder builder;
      for (std::size_t row = 0; row < rows; ++row) {
        const std::int64_t* found = block.integers.data() + row * stride;
        const std::int64_t frame = found[place + 2] + (end ? found[1] : 0);
        ROPEWALK_RETURN_IF_ERROR(check(found[place + 2] < 0
                                           ? builder.AppendNull()
                                           : builder.Append(frame_seconds(frame, {fps_, 1}))));
      }
      ROPEWALK_RETURN_IF_ERROR(finish(builder));
    }
  }

  const std::size_t doubles = doubles_per_row();
  std::size_t first = 0;  // of the feature, in a row of doubles
  for (std::size_t s = 0; s < statistics_.size(); ++s) {
    const StatisticsColumn& column = statistics_[s];
    for (std::size_t value = 0; value < kValuesPerElement; ++value) {
      if (value == kMomentNames.size()) {
        auto counts = std::make_shared<arrow::Int64Builder>();
        arrow::ListBuilder builder(arrow::default_memory_pool(), counts,
                                   arrow::list(arrow::field("item", arrow::int64())));
        const std::size_t place = kIntegersBeforeVideos + kIntegersPerVideo * videos_.size() + s;
        for (std::size_t row = 0; row < rows; ++row) {
          const std::int64_t count = block.integers[row * stride + place];
          ROPEWALK_RETURN_IF_ERROR(check(count < 0 ? builder.AppendNull() : builder.Append()));
          if (count >= 0) ROPEWALK_RETURN_IF_ERROR(check(counts->Append(count)));
        }
        ROPEWALK_RETURN_IF_ERROR(finish(builder));
      }
      std::unique_ptr<arrow::ArrayBuilder> made;
      ROPEWALK_RETURN_IF_ERROR(check(
          arrow::MakeBuilder(arrow::default_memory_pool(), values_type(column.camera), &made)));
      auto& outer = static_cast<arrow::ListBuilder&>(*made);
      for (std::size_t row = 0; row < rows; ++row) {
        const double* values = block.doubles.data() + row * doubles + first + value * column.width;
        if (std::isnan(values[0])) {
          ROPEWALK_RETURN_IF_ERROR(check(outer.AppendNull()));
          continue;
        }
        ROPEWALK_RETURN_IF_ERROR(check(outer.Append()));
        for (std::size_t d = 0; d < column.width; ++d) {
          arrow::ArrayBuilder* leaf = outer.value_builder();
          for (int level = 0; column.camera && level < 2; ++level) {
            ROPEWALK_RETURN_IF_ERROR(check(static_cast<arrow::ListBuilder*>(leaf)->Append()));
            leaf = static_cast<arrow::ListBuilder*>(leaf)->value_builder();
          }
          ROPEWALK_RETURN_IF_ERROR(
              check(static_cast<arrow::DoubleBuilder*>(leaf)->Append(values[d])));
        }
      }
      ROPEWALK_RETURN_IF_ERROR(finish(outer));
    }
    first += column.width * kValuesPerElement;
  }
  ROPEWALK_RETURN_IF_ERROR(integers([&](const std::int64_t*) { return number.chunk; }));
  ROPEWALK_RETURN_IF_ERROR(integers([&](const std::int64_t*) { return number.file; }));
  ROPEWALK_ASSIGN_OR_RETURN(auto others, columns_.build(block.json));
  for (auto& other : others) columns.push_back(std::move(other));
  return arrow::RecordBatch::Make(schema, block.rows, std::move(columns));
}

}  // namespace ropewalk::lerobot_internal
