#include <algorithm>

#include "ropewalk/dataset/lerobot/sink_v3_json_columns_internal.h"
#include "ropewalk/dataset/lerobot/table_schema_internal.h"

namespace ropewalk::lerobot_internal {
namespace {

using Kind = JsonType::Kind;

Kind kind_of(const Json& value) {
  if (value.is_bool()) return Kind::boolean;
  if (value.as_int64() && value.is_integer()) return Kind::integer;
  if (value.is_number()) return Kind::number;
  if (value.is_string()) return Kind::string;
  if (value.is_array()) return Kind::list;
  if (value.is_object()) return Kind::object;
  return Kind::none;
}

JsonType& member_of(JsonType& type, std::string_view key) {
  for (auto& [name, member] : type.members) {
    if (name == key) return member;
  }
  return type.members.emplace_back(JsonType::Member{std::string(key), {}}).type;
}

arrow::Status append(arrow::ArrayBuilder& builder, const JsonType& type, const Json* value) {
  if (value == nullptr || value->is_null()) return builder.AppendNull();
  switch (type.kind) {
    case Kind::none:
      return builder.AppendNull();
    case Kind::boolean:
      return static_cast<arrow::BooleanBuilder&>(builder).Append(*value->as_bool());
    case Kind::integer:
      return static_cast<arrow::Int64Builder&>(builder).Append(*value->as_int64());
    case Kind::number:
      return static_cast<arrow::DoubleBuilder&>(builder).Append(*value->as_double());
    case Kind::string:
      return static_cast<arrow::StringBuilder&>(builder).Append(*value->as_string());
    case Kind::text:
      return static_cast<arrow::StringBuilder&>(builder).Append(value->dump());
    case Kind::list: {
      auto& list = static_cast<arrow::ListBuilder&>(builder);
      ARROW_RETURN_NOT_OK(list.Append());
      for (const Json& item : *value->as_array()) {
        ARROW_RETURN_NOT_OK(append(*list.value_builder(), type.members.front().type, &item));
      }
      return arrow::Status::OK();
    }
    case Kind::object: {
      auto& record = static_cast<arrow::StructBuilder&>(builder);
      ARROW_RETURN_NOT_OK(record.Append());
      int field = 0;
      for (const auto& [name, member] : type.members) {
        if (member.arrow_type() == nullptr) continue;
        ARROW_RETURN_NOT_OK(append(*record.field_builder(field++), member, value->find(name)));
      }
      return arrow::Status::OK();
    }
  }
  return arrow::Status::OK();
}

}  // namespace

void JsonType::unite(const Json& value) {
  const Kind found = kind_of(value);
  if (found == Kind::none || kind == Kind::text) return;
  const bool numeric = (kind == Kind::integer || kind == Kind::number) &&
                       (found == Kind::integer || found == Kind::number);
  if (kind == Kind::none) {
    kind = found;
    if (kind == Kind::list) members.push_back({"item", {}});
  } else if (numeric && kind != found) {
    kind = Kind::number;
  } else if (kind != found) {
    kind = Kind::text;
    members.clear();
    return;
  }
  if (found == Kind::list) {
    for (const Json& item : *value.as_array()) members.front().type.unite(item);
  } else if (found == Kind::object) {
    for (const auto& [key, item] : *value.as_object()) member_of(*this, key).unite(item);
  }
}

std::shared_ptr<arrow::DataType> JsonType::arrow_type() const {
  switch (kind) {
    case Kind::boolean:
      return arrow::boolean();
    case Kind::integer:
      return arrow::int64();
    case Kind::number:
      return arrow::float64();
    case Kind::none:  // only nulls were seen: some type is needed
    case Kind::string:
    case Kind::text:
      return arrow::utf8();
    case Kind::list: {
      const auto item = members.front().type.arrow_type();
      return item == nullptr ? nullptr : arrow::list(arrow::field("item", item));
    }
    case Kind::object: {
      arrow::FieldVector fields;
      for (const auto& [name, member] : members) {
        if (const auto type = member.arrow_type()) fields.push_back(arrow::field(name, type));
      }
      return fields.empty() ? nullptr : arrow::struct_(std::move(fields));
    }
  }
  return nullptr;
}

void JsonColumns::observe(const Json& row, std::span<const std::string_view> skipped_keys) {
  if (!row.is_object()) return;
  for (const auto& [key, value] : *row.as_object()) {
    if (is_locator_key(key) || std::ranges::find(skipped_keys, key) != skipped_keys.end()) continue;
    JsonType& type = member_of(type_, key);
    type.unite(value);
    if (key != "quality_issues" || type.kind != Kind::list) continue;
    // An issue has these even where no row has an issue.
    JsonType& item = type.members.front().type;
    if (item.kind == Kind::none) item.kind = Kind::object;
    if (item.kind != Kind::object) continue;
    for (const char* name : {"severity", "code", "detail"}) {
      JsonType& member = member_of(item, name);
      if (member.kind == Kind::none) member.kind = Kind::string;
    }
  }
}

arrow::FieldVector JsonColumns::fields() const {
  arrow::FieldVector out;
  for (const auto& [name, member] : type_.members) {
    if (const auto type = member.arrow_type()) out.push_back(arrow::field(name, type));
  }
  return out;
}

Result<arrow::ArrayVector> JsonColumns::build(std::span<const Json> rows) const {
  arrow::ArrayVector out;
  for (const auto& [name, member] : type_.members) {
    const auto type = member.arrow_type();
    if (type == nullptr) continue;
    std::unique_ptr<arrow::ArrayBuilder> builder;
    arrow::Status status = arrow::MakeBuilder(arrow::default_memory_pool(), type, &builder);
    for (const Json& row : rows) {
      if (status.ok()) status = append(*builder, member, row.find(name));
    }
    std::shared_ptr<arrow::Array> column;
    if (status.ok()) status = builder->Finish(&column);
    if (!status.ok()) return resource_exhausted(name + ": " + status.ToString());
    out.push_back(std::move(column));
  }
  return out;
}

}  // namespace ropewalk::lerobot_internal
