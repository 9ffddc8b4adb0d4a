#include "ropewalk/episode/dense_column.h"

#include <cstring>

#include <arrow/api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ropewalk {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Feature feature(DType dtype, std::vector<std::int64_t> shape) {
  Feature out;
  out.name = "x";
  out.dtype = dtype;
  out.shape = std::move(shape);
  return out;
}

template <typename T>
std::vector<T> values_of(const DenseColumn& column) {
  std::vector<T> out(column.data.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), column.data.data(), column.data.size());
  return out;
}

/// Rows [[0, 1], [2, 3], …] as list<float> or fixed_size_list<float>[2].
std::shared_ptr<arrow::Array> pairs(std::int64_t rows, bool fixed) {
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder fixed_builder(arrow::default_memory_pool(), values, 2);
  arrow::ListBuilder list_builder(arrow::default_memory_pool(), values);
  for (std::int64_t i = 0; i < rows; ++i) {
    EXPECT_TRUE((fixed ? fixed_builder.Append() : list_builder.Append()).ok());
    EXPECT_TRUE(values->Append(static_cast<float>(2 * i)).ok());
    EXPECT_TRUE(values->Append(static_cast<float>(2 * i + 1)).ok());
  }
  std::shared_ptr<arrow::Array> out;
  EXPECT_TRUE((fixed ? fixed_builder.Finish(&out) : list_builder.Finish(&out)).ok());
  return out;
}

TEST(DenseColumn, TakesVectorsOfSlicedLists) {
  for (const bool fixed : {true, false}) {
    const auto column = dense_column(*pairs(5, fixed)->Slice(2, 2));
    ASSERT_TRUE(column.ok()) << column.status().to_string();
    EXPECT_EQ(column->dtype, DType::float32);
    EXPECT_THAT(column->shape, ElementsAre(2, 2));
    EXPECT_THAT(values_of<float>(*column), ElementsAre(4, 5, 6, 7));
  }
}

TEST(DenseColumn, RoundTripsScalarsBooleansAndText) {
  arrow::BooleanBuilder builder;
  ASSERT_TRUE(builder.AppendValues(std::vector<bool>{true, false, true}).ok());
  std::shared_ptr<arrow::Array> flags;
  ASSERT_TRUE(builder.Finish(&flags).ok());
  const auto column = dense_column(*flags->Slice(1));
  ASSERT_TRUE(column.ok());
  EXPECT_THAT(values_of<std::uint8_t>(*column), ElementsAre(0, 1));
  const auto back = arrow_column(*column, feature(DType::boolean, {1}));
  ASSERT_TRUE(back.ok()) << back.status().to_string();
  EXPECT_TRUE((*back)->Equals(flags->Slice(1)));

  arrow::StringBuilder texts;
  ASSERT_TRUE(texts.Append("a").ok() && texts.AppendNull().ok());
  std::shared_ptr<arrow::Array> words;
  ASSERT_TRUE(texts.Finish(&words).ok());
  const auto text_column = dense_column(*words);
  ASSERT_TRUE(text_column.ok());
  EXPECT_THAT(text_column->texts, ElementsAre(std::optional<std::string>("a"), std::nullopt));
  EXPECT_TRUE((*arrow_column(*text_column, feature(DType::string, {1})))->Equals(words));
}

TEST(DenseColumn, CastsToTheDeclaredTypeAndShape) {
  DenseColumn column{DType::float64, {2, 3}, Bytes(48), {}};
  const double values[] = {0.5, 1, 2, 3, 4, 5};
  std::memcpy(column.data.data(), values, sizeof values);
  const auto array = arrow_column(column, feature(DType::float32, {3}));
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  EXPECT_TRUE((*array)->type()->Equals(arrow::fixed_size_list(arrow::float32(), 3)));
  const auto again = dense_column(**array);
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(values_of<float>(*again), ElementsAre(0.5F, 1, 2, 3, 4, 5));

  const auto nested =
      arrow_column({DType::uint8, {1, 2, 2}, {1, 2, 3, 4}, {}}, feature(DType::uint8, {2, 2}));
  ASSERT_TRUE(nested.ok());
  EXPECT_THAT(dense_column(**nested)->shape, ElementsAre(1, 2, 2));

  const auto wrong = arrow_column(column, feature(DType::float32, {4}));
  EXPECT_EQ(wrong.status().code(), StatusCode::data_loss);
  EXPECT_THAT(std::string(wrong.status().message()),
              HasSubstr("expected shape [T, 4], found [2, 3]"));
  // 0.5 is no integer: the cast would lose it.
  EXPECT_EQ(arrow_column(column, feature(DType::int64, {3})).status().code(),
            StatusCode::data_loss);
}

TEST(DenseColumn, KeepsTheTypeOfNoRows) {
  const auto column = dense_column(*pairs(0, true));
  ASSERT_TRUE(column.ok());
  EXPECT_THAT(column->shape, ElementsAre(0, 2));
  const auto of_lists = dense_column(*pairs(0, false));
  ASSERT_TRUE(of_lists.ok());
  const auto array = arrow_column(*of_lists, feature(DType::float32, {2}));
  ASSERT_TRUE(array.ok()) << array.status().to_string();
  EXPECT_TRUE((*array)->type()->Equals(arrow::fixed_size_list(arrow::float32(), 2)));
  EXPECT_EQ((*array)->length(), 0);
}

TEST(DenseColumn, RefusesNullsAndRowsOfDifferentLength) {
  auto values = std::make_shared<arrow::Int64Builder>();
  arrow::ListBuilder builder(arrow::default_memory_pool(), values);
  ASSERT_TRUE(builder.Append().ok() && values->Append(1).ok() && values->Append(2).ok());
  ASSERT_TRUE(builder.Append().ok() && values->Append(3).ok());
  std::shared_ptr<arrow::Array> ragged;
  ASSERT_TRUE(builder.Finish(&ragged).ok());
  EXPECT_THAT(std::string(dense_column(*ragged).status().message()),
              HasSubstr("row 1 has 1 values, expected 2"));

  arrow::Int64Builder numbers;
  ASSERT_TRUE(numbers.Append(1).ok() && numbers.AppendNull().ok());
  std::shared_ptr<arrow::Array> holes;
  ASSERT_TRUE(numbers.Finish(&holes).ok());
  EXPECT_THAT(std::string(dense_column(*holes).status().message()), HasSubstr("row 1 is null"));
}

}  // namespace
}  // namespace ropewalk
