// Parsing of JSON text into Json values, over nlohmann's SAX interface.
#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "ropewalk/base/core/json.h"

namespace ropewalk {
namespace {

class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::uint32_t max_depth, JsonNotes* notes) : max_depth_(max_depth), notes_(notes) {}

  Json take() { return std::move(root_); }
  const Status& status() const { return status_; }

  bool null() override { return place(Json()); }
  bool boolean(bool value) override { return place(Json(value)); }
  bool number_integer(number_integer_t value) override { return place(Json(value)); }
  bool number_unsigned(number_unsigned_t value) override { return place(Json(value)); }
  bool number_float(number_float_t value, const string_t&) override { return place(Json(value)); }
  bool string(string_t& value) override { return place(Json(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    const std::string_view text = error.what();
    const std::size_t colon = text.find("] ");
    status_ = data_loss(fmt::format("invalid JSON near byte {}: {}", position,
                                    colon == text.npos ? text : text.substr(colon + 2)));
    return false;
  }

 private:
  bool open(Json container) {
    if (stack_.size() >= max_depth_) {
      status_ =
          resource_exhausted(fmt::format("JSON nested deeper than {} levels; refused", max_depth_));
      return false;
    }
    stack_.push_back(std::move(container));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    Json done = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    dedupe(done);
    return place(std::move(done));
  }
  // Of duplicated keys the last value wins, at the place of the first.
  void dedupe(Json& value) {
    auto* object = value.as_object();
    if (!object || object->size() < 2) return;
    if (object->size() > 32) {
      // Sorting first keeps wide objects linear-logarithmic: a hostile file may hold millions of
      // keys.
      std::vector<std::string_view> names;
      names.reserve(object->size());
      for (const auto& member : *object) names.push_back(member.first);
      std::ranges::sort(names);
      if (std::ranges::adjacent_find(names) == names.end()) return;
    }
    Json::Object unique;
    std::vector<std::pair<std::string, std::size_t>> places;
    for (auto& member : *object) {
      auto at = std::ranges::lower_bound(places, member.first, {},
                                         [](const auto& place) { return place.first; });
      if (at != places.end() && at->first == member.first) {
        if (notes_) notes_->duplicate_keys.push_back(member.first);
        unique[at->second].second = std::move(member.second);
      } else {
        places.insert(at, {member.first, unique.size()});
        unique.push_back(std::move(member));
      }
    }
    *object = std::move(unique);
  }
  bool place(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (auto* array = stack_.back().as_array()) {
      array->push_back(std::move(value));
    } else {
      stack_.back().as_object()->emplace_back(std::move(keys_.back()), std::move(value));
    }
    return true;
  }

  std::uint32_t max_depth_;
  JsonNotes* notes_;
  Json root_;
  std::vector<Json> stack_;
  std::vector<std::string> keys_;
  Status status_;
};

// Replaces NaN, Infinity and -Infinity outside strings by null. Returns how many there were.
std::int64_t replace_non_finite(std::string_view text, std::string& out) {
  std::int64_t count = 0;
  bool in_string = false;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
      continue;
    }
    if (c == '"') {
      in_string = true;
      continue;
    }
    std::size_t length = 0;
    for (const std::string_view literal : {"NaN", "-Infinity", "Infinity", "-NaN"}) {
      if (text.substr(i, literal.size()) == literal) length = literal.size();
    }
    if (length == 0) continue;
    out.append(text.substr(copied, i - copied));
    out += "null";
    i += length - 1;
    copied = i + 1;
    ++count;
  }
  if (count > 0) out.append(text.substr(copied));
  return count;
}

}  // namespace

Result<Json> parse_json(std::string_view text, const Limits& limits, JsonNotes* notes) {
  if (text.size() > limits.max_json_bytes) {
    return resource_exhausted(fmt::format("JSON of {} bytes exceeds the limit of {} bytes",
                                          text.size(), limits.max_json_bytes));
  }
  if (text.substr(0, 3) == "\xEF\xBB\xBF") {
    text.remove_prefix(3);
    if (notes) notes->byte_order_mark = true;
  }
  std::string replaced;
  if (text.find("NaN") != text.npos || text.find("Infinity") != text.npos) {
    const std::int64_t count = replace_non_finite(text, replaced);
    if (count > 0) text = replaced;
    if (notes) notes->non_finite_literals += count;
  }
  Builder builder(limits.max_json_depth, notes);
  bool parsed = false;
  try {
    parsed = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  } catch (const std::exception& error) {
    return data_loss(fmt::format("invalid JSON: {}", error.what()));
  }
  if (!builder.status().ok()) return builder.status();
  if (!parsed) return data_loss("invalid JSON");
  return builder.take();
}

}  // namespace ropewalk
