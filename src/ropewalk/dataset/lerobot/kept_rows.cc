#include <algorithm>

#include "ropewalk/dataset/lerobot/kept_rows_internal.h"

namespace ropewalk::lerobot {
namespace {

/// Whether a column has nothing to show for this value: a null, or nothing but nulls.
bool is_blank(const Json& value) {
  if (value.is_null()) return true;
  if (const Json::Object* members = value.as_object()) {
    return std::ranges::all_of(*members,
                               [](const auto& member) { return is_blank(member.second); });
  }
  const Json::Array* items = value.as_array();
  return items != nullptr && std::ranges::all_of(*items, is_blank);
}

/// Whether `column` is what a typed column makes of `kept`.
bool same(const Json& kept, const Json& column) {
  if (kept.is_number() && column.is_number()) {
    if (kept.is_integer() && column.is_integer()) return kept == column;
    return kept.as_double() == column.as_double();
  }
  const Json::Object* kept_members = kept.as_object();
  const Json::Object* column_members = column.as_object();
  if (kept_members != nullptr && column_members != nullptr) {
    const auto agree = [](const auto& member, const Json& other) {
      const Json* found = other.find(member.first);
      return found != nullptr ? same(member.second, *found) : is_blank(member.second);
    };
    return std::ranges::all_of(*kept_members,
                               [&](const auto& member) { return agree(member, column); }) &&
           std::ranges::all_of(*column_members, [&](const auto& member) {
             return kept.find(member.first) != nullptr || is_blank(member.second);
           });
  }
  const Json::Array* kept_items = kept.as_array();
  const Json::Array* column_items = column.as_array();
  if (kept_items != nullptr && column_items != nullptr) {
    return std::ranges::equal(*kept_items, *column_items, same);
  }
  // Where rows disagree about a type the column holds JSON as text.
  if (const std::string* text = column.as_string()) {
    return kept == column || *text == kept.dump();
  }
  return kept == column || (is_blank(kept) && is_blank(column));
}

}  // namespace

Json restore_row(Json table_row, const Json& kept) {
  if (!kept.is_object() || kept.get_int64("length") != table_row.get_int64("length")) {
    return table_row;
  }
  Json out = Json::object();
  for (const auto& [key, value] : *kept.as_object()) {
    const Json* found = table_row.find(key);
    if (found != nullptr) {
      out.set(key, same(value, *found) ? value : *found);
    } else if (is_blank(value)) {
      out.set(key, value);
    }
  }
  for (auto& [key, value] : *table_row.as_object()) {
    if (kept.find(key) == nullptr) out.set(key, std::move(value));
  }
  return out;
}

KeptRows KeptRows::read(const std::filesystem::path& root, const Limits& limits) {
  KeptRows out;
  out.limits_ = limits;
  FindingLog unheard(false);  // nothing here is the dataset's own metadata
  auto rows = EpisodesV2::read(root, limits, unheard);
  if (!rows.ok()) return out;
  for (std::size_t row = 0; row < rows->size(); ++row) out.places_.emplace(rows->index(row), row);
  out.rows_ = std::move(rows).value();
  return out;
}

Json KeptRows::restore(std::int64_t episode_index, Json table_row) const {
  const auto at = places_.find(episode_index);
  if (at == places_.end()) return table_row;
  auto kept = rows_->info(at->second, TaskList(), limits_);
  return kept.ok() ? restore_row(std::move(table_row), kept->row) : table_row;
}

}  // namespace ropewalk::lerobot
