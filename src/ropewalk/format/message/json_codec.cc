// JSON payloads, with the help of a JSON Schema where there is one.
#include <map>

#include <fmt/format.h>

#include "ropewalk/format/message/codec_internal.h"
#include "ropewalk/format/message/scalar_internal.h"
#include "ropewalk/format/message/value_json.h"

namespace ropewalk::message {
namespace {

constexpr std::size_t kMaxHints = 1 << 16;

// Follows the parts of a schema that say something about a value; everything else is advice.
class HintCompiler {
 public:
  HintCompiler(const Json& document, std::vector<JsonCodec::Hint>& hints)
      : document_(document), hints_(hints) {}

  std::size_t compile(const Json& schema) {
    const Json* at = &schema;
    // A reference to a reference is rare, a ring of them is an attack.
    for (int hops = 0; hops < 16; ++hops) {
      const auto reference = at->get_string("$ref");
      if (!reference.has_value()) break;
      const Json* target = follow(*reference);
      if (target == nullptr) return 0;
      at = target;
    }
    if (at->as_object() == nullptr || hints_.size() >= kMaxHints) return 0;
    if (const auto known = known_.find(at); known != known_.end()) return known->second;
    const std::size_t index = hints_.size();
    hints_.emplace_back();
    known_.emplace(at, index);
    hints_[index].base64 = at->get_string("contentEncoding") == "base64";
    const auto type = at->get_string("type");
    hints_[index].number = type == "number";
    if (const Json* items = at->find("items")) {
      const std::size_t hint = compile(*items);
      hints_[index].items = hint;
    }
    if (const Json* properties = at->find("properties"); properties && properties->as_object()) {
      for (const auto& [name, property] : *properties->as_object()) {
        const std::size_t hint = compile(property);
        if (hint != 0) hints_[index].properties.emplace_back(name, hint);
      }
    }
    return index;
  }

 private:
  const Json* follow(std::string_view reference) const {
    if (reference.empty() || reference.front() != '#') return nullptr;
    reference.remove_prefix(1);
    const Json* at = &document_;
    while (at != nullptr && !reference.empty()) {
      if (reference.front() != '/') return nullptr;
      reference.remove_prefix(1);
      const std::size_t end = std::min(reference.find('/'), reference.size());
      at = at->find(reference.substr(0, end));
      reference.remove_prefix(end);
    }
    return at;
  }

  const Json& document_;
  std::vector<JsonCodec::Hint>& hints_;
  std::map<const Json*, std::size_t> known_;
};

void apply(const std::vector<JsonCodec::Hint>& hints, std::size_t index, Arena& arena,
           Value& value) {
  if (index == 0) return;
  const JsonCodec::Hint& hint = hints[index];
  if (auto* members = std::get_if<Value::Object>(&value.variant())) {
    for (Value::Member& member : *members) {
      for (const auto& [name, property] : hint.properties) {
        if (name == member.name) apply(hints, property, arena, member.value);
      }
    }
  } else if (auto* elements = std::get_if<Value::Array>(&value.variant())) {
    for (Value& element : *elements) apply(hints, hint.items, arena, element);
  } else if (const auto text = value.as_string()) {
    if (hint.base64) {
      if (const auto bytes = from_base64(*text)) {
        value = Value(ByteSpan(as_bytes(arena.keep(as_text(*bytes)))));
      }
    } else if (hint.number && (*text == "NaN" || *text == "Infinity" || *text == "-Infinity")) {
      value = Value(*real_of(value));
    }
  }
}

}  // namespace

Result<JsonCodec> JsonCodec::compile(ByteSpan schema, const Limits& limits) {
  JsonCodec out;
  if (schema.empty()) return out;
  ROPEWALK_ASSIGN_OR_RETURN(const Json document, parse_json(as_text(schema), limits));
  out.hints.emplace_back();
  HintCompiler(document, out.hints).compile(document);
  return out;
}

Status JsonCodec::decode(ByteSpan payload, const Limits& limits, Message& out) const {
  ROPEWALK_ASSIGN_OR_RETURN(Json parsed, parse_json(as_text(payload), limits));
  const auto document = std::make_shared<const Json>(std::move(parsed));
  out.root() = value_of_json(*document);
  out.arena().keep(document);
  if (hints.size() > 1) apply(hints, 1, out.arena(), out.root());
  return ok_status();
}

Result<Bytes> JsonCodec::encode(const Value& value) const {
  const std::string text = to_json_text(value, {.wide_integers_as_text = false});
  return Bytes(text.begin(), text.end());
}

}  // namespace ropewalk::message
