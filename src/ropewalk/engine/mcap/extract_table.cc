// extract: the numbers and texts of a topic as a Parquet table.
#include <algorithm>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/engine/mcap/extract_internal.h"
#include "ropewalk/engine/mcap/inspect.h"
#include "ropewalk/format/parquet/writer.h"

namespace ropewalk {
namespace {

constexpr std::int64_t kRowsPerGroup = 65'536;
constexpr std::size_t kMaxColumns = 4096;

Status of(const arrow::Status& status) {
  if (status.ok()) return ok_status();
  if (status.IsOutOfMemory()) return resource_exhausted(status.ToString());
  return internal(status.ToString());
}

std::shared_ptr<arrow::DataType> arrow_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return arrow::boolean();
    case DType::int8:
      return arrow::int8();
    case DType::int16:
      return arrow::int16();
    case DType::int32:
      return arrow::int32();
    case DType::int64:
      return arrow::int64();
    case DType::uint8:
      return arrow::uint8();
    case DType::uint16:
      return arrow::uint16();
    case DType::uint32:
      return arrow::uint32();
    case DType::uint64:
      return arrow::uint64();
    case DType::float32:
      return arrow::float32();
    default:
      return arrow::float64();
  }
}

// One column: where its value stands in a message and what it becomes.
struct Column {
  std::string path;
  std::shared_ptr<arrow::DataType> type;
  std::unique_ptr<arrow::ArrayBuilder> builder;
};

template <typename Builder, typename T>
Status append(arrow::ArrayBuilder& builder, T value) {
  return of(static_cast<Builder&>(builder).Append(value));
}

// Appends a number as the type of the column says; what does not fit it is null.
Status append_scalar(arrow::ArrayBuilder& builder, const arrow::DataType& type,
                     const message::Value& value) {
  switch (type.id()) {
    case arrow::Type::BOOL:
      if (const auto v = value.as_bool()) return append<arrow::BooleanBuilder>(builder, *v);
      break;
    case arrow::Type::INT8:
      if (const auto v = value.as_int64()) {
        return append<arrow::Int8Builder>(builder, static_cast<std::int8_t>(*v));
      }
      break;
    case arrow::Type::INT16:
      if (const auto v = value.as_int64()) {
        return append<arrow::Int16Builder>(builder, static_cast<std::int16_t>(*v));
      }
      break;
    case arrow::Type::INT32:
      if (const auto v = value.as_int64()) {
        return append<arrow::Int32Builder>(builder, static_cast<std::int32_t>(*v));
      }
      break;
    case arrow::Type::INT64:
      if (const auto* time = std::get_if<message::Value::Time>(&value.variant())) {
        return append<arrow::Int64Builder>(builder, time->sec * 1'000'000'000 + time->nsec);
      }
      if (const auto v = value.as_int64()) return append<arrow::Int64Builder>(builder, *v);
      break;
    case arrow::Type::UINT16:
      if (const auto v = value.as_uint64()) {
        return append<arrow::UInt16Builder>(builder, static_cast<std::uint16_t>(*v));
      }
      break;
    case arrow::Type::UINT32:
      if (const auto v = value.as_uint64()) {
        return append<arrow::UInt32Builder>(builder, static_cast<std::uint32_t>(*v));
      }
      break;
    case arrow::Type::UINT64:
      if (const auto v = value.as_uint64()) return append<arrow::UInt64Builder>(builder, *v);
      break;
    case arrow::Type::FLOAT:
      if (const auto v = value.as_double()) {
        return append<arrow::FloatBuilder>(builder, static_cast<float>(*v));
      }
      break;
    case arrow::Type::DOUBLE:
      if (const auto v = value.as_double()) return append<arrow::DoubleBuilder>(builder, *v);
      break;
    case arrow::Type::STRING:
      if (const auto v = value.as_string()) {
        return of(static_cast<arrow::StringBuilder&>(builder).Append(valid_utf8(*v)));
      }
      break;
    default:
      break;
  }
  return of(builder.AppendNull());
}

class Table {
 public:
  Table(ExtractReport& report, Sink& sink) : report_(report), sink_(sink) {}

  Status add(const mcap::MessageView& view, const message::Value& root);
  Status finish();

 private:
  void find_columns(const std::string& path, const message::Value& value);
  void add_column(const std::string& path, std::shared_ptr<arrow::DataType> type);
  Status start(const message::Value& root);
  Status append_value(Column& column, const message::Value* value);
  Status flush();

  ExtractReport& report_;
  Sink& sink_;
  std::vector<Column> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::unique_ptr<ParquetWriter> writer_;
  std::int64_t rows_ = 0;
  std::uint64_t nulls_ = 0;
};

void Table::add_column(const std::string& path, std::shared_ptr<arrow::DataType> type) {
  if (columns_.size() >= kMaxColumns) return;
  columns_.push_back({.path = path, .type = std::move(type), .builder = nullptr});
}

// The columns of a message: numbers, texts, times and lists of numbers.
void Table::find_columns(const std::string& path, const message::Value& value) {
  if (const auto* object = value.as_object()) {
    for (const auto& member : *object) {
      find_columns(path.empty() ? std::string(member.name) : path + "." + std::string(member.name),
                   member.value);
    }
    return;
  }
  if (const auto* numbers = value.as_numbers()) {
    if (numbers->dtype == DType::uint8) {
      report_.losses.push_back(fmt::format("field {} holds bytes: no column", path));
    } else {
      add_column(path, arrow::list(arrow_type(numbers->dtype)));
    }
    return;
  }
  if (const auto* array = value.as_array()) {
    // Lists of JSON and MessagePack hold single values.
    const bool numeric = !array->empty() && std::ranges::all_of(*array, [](const auto& element) {
      return element.as_double().has_value();
    });
    if (numeric) {
      add_column(path, arrow::list(arrow::float64()));
    } else {
      report_.losses.push_back(
          fmt::format("field {} is a list of other things than numbers: no column", path));
    }
    return;
  }
  const auto& variant = value.variant();
  if (std::holds_alternative<bool>(variant)) {
    add_column(path, arrow::boolean());
  } else if (std::holds_alternative<std::uint64_t>(variant)) {
    add_column(path, arrow::uint64());
  } else if (std::holds_alternative<std::int64_t>(variant) ||
             std::holds_alternative<message::Value::Time>(variant) ||
             std::holds_alternative<message::Value::Enumerator>(variant)) {
    add_column(path, arrow::int64());
  } else if (std::holds_alternative<float>(variant)) {
    add_column(path, arrow::float32());
  } else if (std::holds_alternative<double>(variant)) {
    add_column(path, arrow::float64());
  } else if (std::holds_alternative<std::string_view>(variant)) {
    add_column(path, arrow::utf8());
  } else {
    report_.losses.push_back(fmt::format("field {} has no number or text: no column", path));
  }
}

Status Table::start(const message::Value& root) {
  add_column("log_time", arrow::uint64());
  add_column("publish_time", arrow::uint64());
  add_column("sequence", arrow::uint32());
  find_columns("", root);
  arrow::FieldVector fields;
  std::set<std::string> names;
  for (Column& column : columns_) {
    std::string name = column.path.empty() ? "value" : column.path;
    while (!names.insert(name).second) name = "message." + name;
    fields.push_back(arrow::field(name, column.type));
    report_.columns.push_back(name);
    ROPEWALK_RETURN_IF_ERROR(
        of(arrow::MakeBuilder(arrow::default_memory_pool(), column.type, &column.builder)));
  }
  if (columns_.size() == 3) {
    return failed_precondition(
        fmt::format("messages of the schema '{}' have no numbers for a table", report_.schema));
  }
  schema_ = arrow::schema(fields);
  ROPEWALK_ASSIGN_OR_RETURN(writer_, ParquetWriter::create(sink_, schema_));
  return ok_status();
}

Status Table::append_value(Column& column, const message::Value* value) {
  if (value == nullptr || value->is_nil()) {
    ++nulls_;
    return of(column.builder->AppendNull());
  }
  if (column.type->id() != arrow::Type::LIST) {
    return append_scalar(*column.builder, *column.type, *value);
  }
  auto& list = static_cast<arrow::ListBuilder&>(*column.builder);
  const arrow::DataType& element = *column.type->field(0)->type();
  ROPEWALK_RETURN_IF_ERROR(of(list.Append()));
  if (const auto* numbers = value->as_numbers()) {
    for (std::size_t i = 0; i < numbers->size(); ++i) {
      ROPEWALK_RETURN_IF_ERROR(append_scalar(*list.value_builder(), element, numbers->element(i)));
    }
  } else if (const auto* array = value->as_array()) {
    for (const message::Value& item : *array) {
      ROPEWALK_RETURN_IF_ERROR(append_scalar(*list.value_builder(), element, item));
    }
  }
  return ok_status();
}

Status Table::add(const mcap::MessageView& view, const message::Value& root) {
  if (writer_ == nullptr) {
    ROPEWALK_RETURN_IF_ERROR(start(root));
  }
  ROPEWALK_RETURN_IF_ERROR(append<arrow::UInt64Builder>(*columns_[0].builder, view.log_time));
  ROPEWALK_RETURN_IF_ERROR(append<arrow::UInt64Builder>(*columns_[1].builder, view.publish_time));
  ROPEWALK_RETURN_IF_ERROR(append<arrow::UInt32Builder>(*columns_[2].builder, view.sequence));
  for (std::size_t i = 3; i < columns_.size(); ++i) {
    Column& column = columns_[i];
    ROPEWALK_RETURN_IF_ERROR(
        append_value(column, column.path.empty() ? &root : root.find_path(column.path)));
  }
  ++report_.written;
  return ++rows_ < kRowsPerGroup ? ok_status() : flush();
}

Status Table::flush() {
  if (rows_ == 0) return ok_status();
  arrow::ArrayVector arrays;
  for (Column& column : columns_) {
    std::shared_ptr<arrow::Array> array;
    ROPEWALK_RETURN_IF_ERROR(of(column.builder->Finish(&array)));
    arrays.push_back(std::move(array));
  }
  const auto batch = arrow::RecordBatch::Make(schema_, rows_, arrays);
  rows_ = 0;
  return writer_->write_row_group(*batch);
}

Status Table::finish() {
  if (writer_ == nullptr) return failed_precondition("the topic has no messages: no table");
  ROPEWALK_RETURN_IF_ERROR(flush());
  if (nulls_ > 0) {
    report_.notes.push_back(fmt::format("{} fields are missing in their messages: null", nulls_));
  }
  return writer_->close();
}

}  // namespace

Status extract_table(const ExtractRequest& request, const RunContext& context,
                     ExtractReport& report) {
  ROPEWALK_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(request.output, request.replace));
  Table table(report, output.sink());
  ROPEWALK_RETURN_IF_ERROR(for_each_decoded(
      request, context, report, [&](const mcap::MessageView& view, const message::Value& root) {
        return table.add(view, root);
      }));
  ROPEWALK_RETURN_IF_ERROR(table.finish().with_context("topic " + request.topic));
  return output.publish();
}

}  // namespace ropewalk
