#include "ropewalk/format/parquet/parquet.h"

#include <thread>

#include <arrow/api.h>
#include <arrow/util/key_value_metadata.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;

std::shared_ptr<arrow::Schema> two_columns() {
  return arrow::schema({arrow::field("index", arrow::int64()),
                        arrow::field("action", arrow::fixed_size_list(arrow::float32(), 2))});
}

/// Rows first..first+count: index i, action [i, -i].
std::shared_ptr<arrow::RecordBatch> batch_of(std::int64_t first, std::int64_t count) {
  arrow::Int64Builder index;
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder action(arrow::default_memory_pool(), values, 2);
  for (std::int64_t i = first; i < first + count; ++i) {
    EXPECT_TRUE(index.Append(i).ok());
    EXPECT_TRUE(action.Append().ok());
    EXPECT_TRUE(values->Append(static_cast<float>(i)).ok());
    EXPECT_TRUE(values->Append(static_cast<float>(-i)).ok());
  }
  return arrow::RecordBatch::Make(two_columns(), count, {*index.Finish(), *action.Finish()});
}

Bytes file_of(std::vector<std::int64_t> group_rows, ParquetWriterOptions options = {}) {
  Bytes bytes;
  const auto sink = memory_sink(bytes);
  auto writer = ParquetWriter::create(*sink, two_columns(), options);
  EXPECT_TRUE(writer.ok()) << writer.status().to_string();
  std::int64_t first = 0;
  for (const std::int64_t rows : group_rows) {
    EXPECT_TRUE((*writer)->write_row_group(*batch_of(first, rows)).ok());
    first += rows;
  }
  EXPECT_TRUE((*writer)->close().ok());
  EXPECT_EQ((*writer)->size_bytes(), bytes.size());
  return bytes;
}

std::unique_ptr<ParquetReader> reader_of(Bytes bytes, const Limits& limits = {}) {
  auto reader =
      ParquetReader::open(std::shared_ptr<const Source>(memory_source(std::move(bytes))), limits);
  EXPECT_TRUE(reader.ok()) << reader.status().to_string();
  return reader.ok() ? std::move(*reader) : nullptr;
}

TEST(ParquetWriter, MakesOneRowGroupPerBatchAndKeepsListLengths) {
  const auto reader = reader_of(file_of({3, 5}, {.metadata = {{"huggingface", "{}"}}}));
  ASSERT_EQ(reader->row_groups().size(), 2U);
  EXPECT_EQ(reader->row_groups()[1].first_row, 3);
  EXPECT_EQ(reader->row_groups()[1].rows, 5);
  EXPECT_TRUE(reader->schema()->Equals(*two_columns(), false)) << reader->schema()->ToString();
  EXPECT_EQ(reader->metadata("huggingface"), "{}");
  // Arrow's own readers look into the schema.
  ASSERT_NE(reader->schema()->metadata(), nullptr);
  EXPECT_EQ(reader->schema()->metadata()->Get("huggingface").ValueOr("none"), "{}");
  EXPECT_EQ(reader->metadata("pandas"), std::nullopt);
  const auto bounds = reader->int64_bounds(1, "index");
  ASSERT_TRUE(bounds.has_value());
  EXPECT_EQ(bounds->min, 3);
  EXPECT_EQ(bounds->max, 7);
  EXPECT_FALSE(reader->int64_bounds(1, "action").has_value());
}

TEST(ParquetWriter, RefusesABatchOfAnotherSchemaNamingTheColumn) {
  Bytes bytes;
  const auto sink = memory_sink(bytes);
  auto writer = *ParquetWriter::create(*sink, two_columns());
  const auto other =
      arrow::RecordBatch::Make(arrow::schema({arrow::field("index", arrow::int32())}), 0,
                               {*arrow::MakeEmptyArray(arrow::int32())});
  const Status status = writer->write_row_group(*other);
  EXPECT_EQ(status.code(), StatusCode::invalid_argument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("int32"));
}

TEST(ParquetWriter, LeavesNoFooterWithoutClose) {
  TempDir dir;
  const auto path = dir / "a.parquet";
  {
    auto writer = *ParquetWriter::create(path, two_columns());
    ASSERT_TRUE(writer->write_row_group(*batch_of(0, 4)).ok());
  }
  const auto reader = ParquetReader::open(path);
  ASSERT_FALSE(reader.ok());
  EXPECT_EQ(reader.status().code(), StatusCode::data_loss);
  EXPECT_EQ(reader.status().reason(), "NO_FOOTER");
}

TEST(ParquetWriter, RefusesAnExistingFile) {
  TempDir dir;
  test::write_file(dir / "a.parquet", "x");
  EXPECT_EQ(ParquetWriter::create(dir / "a.parquet", two_columns()).status().code(),
            StatusCode::already_exists);
}

TEST(ParquetReader, ReadsAnyRangeAcrossRowGroupsInTheOrderAskedFor) {
  const auto reader = reader_of(file_of({3, 5, 2}));
  const std::vector<std::string> columns{"action", "index"};
  for (std::int64_t begin = 0; begin <= 10; ++begin) {
    for (std::int64_t end = begin; end <= 10; ++end) {
      auto batch = reader->read({begin, end}, columns);
      ASSERT_TRUE(batch.ok()) << batch.status().to_string();
      ASSERT_EQ((*batch)->num_rows(), end - begin);
      EXPECT_EQ((*batch)->column_name(0), "action");
      const auto& index = static_cast<const arrow::Int64Array&>(*(*batch)->column(1));
      for (std::int64_t row = 0; row < end - begin; ++row) {
        EXPECT_EQ(index.Value(row), begin + row);
      }
    }
  }
  EXPECT_EQ(reader->read({4, 11}).status().code(), StatusCode::out_of_range);
  const std::vector<std::string> missing{"state"};
  EXPECT_EQ(reader->read({0, 1}, missing).status().code(), StatusCode::not_found);
}

TEST(ParquetReader, WalksThroughARowGroupTooLargeToKeep) {
  const std::int64_t rows = 5'000'000;
  const auto reader = reader_of(file_of({rows}, {.dictionary = false}));
  auto batch = reader->read({rows - 5, rows - 2});
  ASSERT_TRUE(batch.ok()) << batch.status().to_string();
  const auto& index = static_cast<const arrow::Int64Array&>(*(*batch)->GetColumnByName("index"));
  ASSERT_EQ(index.length(), 3);
  EXPECT_EQ(index.Value(0), rows - 5);
  EXPECT_EQ(index.Value(2), rows - 3);
  // Forward, then back, with and without a walker that fits.
  for (const std::int64_t begin : {std::int64_t{0}, std::int64_t{4095}, std::int64_t{20'000},
                                   std::int64_t{8191}, std::int64_t{8193}}) {
    auto part = reader->read({begin, begin + 9000});
    ASSERT_TRUE(part.ok()) << part.status().to_string();
    const auto& values = static_cast<const arrow::Int64Array&>(*(*part)->GetColumnByName("index"));
    ASSERT_EQ(values.length(), 9000);
    for (std::int64_t i = 0; i < 9000; ++i) ASSERT_EQ(values.Value(i), begin + i);
  }
}

TEST(ParquetReader, ServesSeveralThreadsFromOneRowGroup) {
  const auto reader = reader_of(file_of({4000}));
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&reader, t] {
      for (std::int64_t i = t; i < 4000; i += 97) {
        const auto batch = reader->read({i, i + 1});
        ASSERT_TRUE(batch.ok());
        EXPECT_EQ(static_cast<const arrow::Int64Array&>(*(*batch)->column(0)).Value(0), i);
      }
    });
  }
}

TEST(ParquetReader, NamesALfsPointer) {
  const std::string text = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 123\n";
  const auto reader = ParquetReader::open(std::shared_ptr<const Source>(
      memory_source(Bytes(text.begin(), text.end()), "episode_000001.parquet")));
  EXPECT_EQ(reader.status().reason(), "LFS_POINTER");
  EXPECT_THAT(std::string(reader.status().message()), testing::HasSubstr("episode_000001.parquet"));
}

TEST(ParquetReader, RefusesARowGroupAboveTheLimit) {
  Limits limits;
  limits.max_row_group_bytes = 100;
  const auto reader = reader_of(file_of({1000}), limits);
  EXPECT_EQ(reader->read_all().status().code(), StatusCode::resource_exhausted);
}

TEST(ParquetReader, SurvivesEveryTruncationAndDamage) {
  const Bytes whole = file_of({4, 4});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(
        ParquetReader::open(std::shared_ptr<const Source>(memory_source(std::move(cut)))).ok());
  }
  for (std::size_t at = 0; at < whole.size(); ++at) {
    Bytes damaged = whole;
    damaged[at] ^= 0x55;
    const auto reader =
        ParquetReader::open(std::shared_ptr<const Source>(memory_source(std::move(damaged))));
    if (reader.ok()) (void)(*reader)->read_all();
  }
}

}  // namespace
}  // namespace ropewalk
