#include <yaml.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include <fmt/format.h>

#include "ropewalk/format/bag/yaml_internal.h"

namespace ropewalk::bag {
namespace {

constexpr int kMaxDepth = 32;
constexpr std::size_t kMaxNodes = 1'000'000;

class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { yaml_event_delete(&event_); }
  yaml_event_t* get() { return &event_; }
  yaml_event_t* operator->() { return &event_; }

 private:
  yaml_event_t event_{};
};

class Parser {
 public:
  explicit Parser(std::string_view text) {
    ready_ = yaml_parser_initialize(&parser_) == 1;
    if (!ready_) return;
    if (text.empty()) text = "";  // the library takes no null pointer
    yaml_parser_set_input_string(&parser_, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;
  ~Parser() {
    if (ready_) yaml_parser_delete(&parser_);
  }

  Result<YamlNode> document() {
    if (!ready_) return resource_exhausted("no memory for a YAML parser");
    for (;;) {
      Event event;
      ROPEWALK_RETURN_IF_ERROR(next(event));
      if (event->type == YAML_STREAM_START_EVENT || event->type == YAML_DOCUMENT_START_EVENT) {
        continue;
      }
      if (event->type == YAML_STREAM_END_EVENT || event->type == YAML_DOCUMENT_END_EVENT) {
        return data_loss("YAML: there is no document");
      }
      YamlNode out;
      ROPEWALK_RETURN_IF_ERROR(node(event, out, 0));
      return out;
    }
  }

 private:
  Status next(Event& event) {
    if (yaml_parser_parse(&parser_, event.get()) == 1) return ok_status();
    return data_loss(fmt::format("YAML: line {}, column {}: {}", parser_.problem_mark.line + 1,
                                 parser_.problem_mark.column + 1,
                                 parser_.problem != nullptr ? parser_.problem : "damaged"));
  }

  Status node(Event& event, YamlNode& out, int depth) {
    if (depth > kMaxDepth || ++nodes_ > kMaxNodes) {
      return resource_exhausted(
          fmt::format("YAML: more than {} levels or {} nodes", kMaxDepth, kMaxNodes));
    }
    switch (event->type) {
      case YAML_SCALAR_EVENT: {
        const auto& scalar = event->data.scalar;
        out.kind = YamlNode::Kind::scalar;
        out.plain = scalar.style == YAML_PLAIN_SCALAR_STYLE;
        out.text.assign(reinterpret_cast<const char*>(scalar.value), scalar.length);
        return ok_status();
      }
      case YAML_SEQUENCE_START_EVENT:
        out.kind = YamlNode::Kind::sequence;
        for (;;) {
          Event inner;
          ROPEWALK_RETURN_IF_ERROR(next(inner));
          if (inner->type == YAML_SEQUENCE_END_EVENT) return ok_status();
          ROPEWALK_RETURN_IF_ERROR(node(inner, out.items.emplace_back(), depth + 1));
        }
      case YAML_MAPPING_START_EVENT:
        out.kind = YamlNode::Kind::mapping;
        for (;;) {
          Event key_event;
          ROPEWALK_RETURN_IF_ERROR(next(key_event));
          if (key_event->type == YAML_MAPPING_END_EVENT) return ok_status();
          YamlNode key;
          ROPEWALK_RETURN_IF_ERROR(node(key_event, key, depth + 1));
          if (key.kind != YamlNode::Kind::scalar) {
            return data_loss("YAML: a key that is no text");
          }
          Event value_event;
          ROPEWALK_RETURN_IF_ERROR(next(value_event));
          out.keys.push_back(std::move(key.text));
          ROPEWALK_RETURN_IF_ERROR(node(value_event, out.items.emplace_back(), depth + 1));
        }
      case YAML_ALIAS_EVENT:
        return unimplemented("YAML: aliases are not read");
      default:
        return data_loss("YAML: the document ends early");
    }
  }

  yaml_parser_t parser_{};
  bool ready_ = false;
  std::size_t nodes_ = 0;
};

bool is_safe_plain(std::string_view text) {
  return !text.empty() && text.front() != '-' && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key);
  if (found == keys.end()) return nullptr;
  return &items[static_cast<std::size_t>(found - keys.begin())];
}

bool YamlNode::is_null() const {
  return kind == Kind::scalar && plain &&
         (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL");
}

std::optional<std::int64_t> YamlNode::integer() const {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (kind != Kind::scalar || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return out;
}

Result<YamlNode> parse_yaml(std::string_view text) { return Parser(text).document(); }

std::string quote_yaml(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string emit_yaml(const YamlNode& node, std::size_t indent) {
  const std::string pad(indent, ' ');
  std::string out;
  const auto append_child = [&](const YamlNode& child) {
    const bool block = !child.items.empty();
    if (block) {
      out += '\n' + emit_yaml(child, indent + 2);
    } else {
      out += ' ' + emit_yaml(child);
    }
  };
  switch (node.kind) {
    case YamlNode::Kind::scalar:
      return (node.plain && is_safe_plain(node.text)) ? node.text : quote_yaml(node.text);
    case YamlNode::Kind::sequence:
      if (node.items.empty()) return "[]";
      for (const YamlNode& item : node.items) {
        if (!out.empty()) out += '\n';
        if (item.kind == YamlNode::Kind::mapping && !item.items.empty()) {
          // The first key stands on the line of the dash.
          std::string body = emit_yaml(item, indent + 2);
          body[indent] = '-';
          out += body;
        } else {
          out += pad + '-';
          append_child(item);
        }
      }
      return out;
    case YamlNode::Kind::mapping:
      if (node.items.empty()) return "{}";
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        const std::string& key = node.keys[i];
        if (!out.empty()) out += '\n';
        out += pad + (is_safe_plain(key) ? key : quote_yaml(key)) + ':';
        append_child(node.items[i]);
      }
      return out;
  }
  return out;
}

}  // namespace ropewalk::bag
