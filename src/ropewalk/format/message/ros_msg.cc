// The parser of .msg definitions, concatenated as ROS bags and MCAP files carry them.
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "ropewalk/format/message/type_table_internal.h"

namespace ropewalk::message {
namespace {

constexpr std::size_t kSeparatorLength = 80;
constexpr std::string_view kSpaces = " \t\r\n\f\v";

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

struct Line {
  std::string_view text;
  std::size_t number = 0;
};

struct Definition {
  std::string name;
  std::vector<Line> lines;
};

// pkg/msg/Type and pkg/Type are one name.
std::string short_name(std::string_view name) {
  const std::size_t middle = name.find("/msg/");
  if (middle == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, middle)) + std::string(name.substr(middle + 4));
}

std::vector<Definition> split_definitions(std::string_view text, std::string_view root) {
  std::vector<Definition> out(1);
  out.back().name = short_name(root);
  bool named = true;  // the separator is followed by a line with the name
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.size() >= kSeparatorLength && line.find_first_not_of('=') == std::string_view::npos) {
      out.emplace_back();
      named = false;
      continue;
    }
    if (line.substr(0, 4) == "MSG:" && (!named || out.back().lines.empty())) {
      if (out.size() > 1) out.back().name = short_name(trim(line.substr(4)));
      named = true;
      continue;
    }
    if (!line.empty() && line.front() != '#') out.back().lines.push_back({line, number});
  }
  return out;
}

std::optional<TypeKind> base_kind(std::string_view name, bool ros2) {
  static const std::map<std::string_view, TypeKind> kKinds = {
      {"bool", TypeKind::boolean},    {"int8", TypeKind::int8},       {"uint8", TypeKind::uint8},
      {"int16", TypeKind::int16},     {"uint16", TypeKind::uint16},   {"int32", TypeKind::int32},
      {"uint32", TypeKind::uint32},   {"int64", TypeKind::int64},     {"uint64", TypeKind::uint64},
      {"float32", TypeKind::float32}, {"float64", TypeKind::float64}, {"char", TypeKind::uint8},
      {"string", TypeKind::string},   {"byte", TypeKind::int8}};
  if (ros2 && name == "byte") return TypeKind::uint8;
  if (ros2 && name == "wstring") return TypeKind::wstring;
  if (!ros2 && name == "time") return TypeKind::time;
  if (!ros2 && name == "duration") return TypeKind::duration;
  const auto found = kKinds.find(name);
  return found == kKinds.end() ? std::nullopt : std::optional(found->second);
}

bool is_identifier(std::string_view text) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (text.empty() || !letter(text.front())) return false;
  for (const char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

class Parser {
 public:
  Parser(std::vector<Definition> definitions, bool ros2, const Limits& limits)
      : definitions_(std::move(definitions)), ros2_(ros2), limits_(limits) {
    for (std::size_t i = 0; i < definitions_.size(); ++i) {
      if (!definitions_[i].name.empty()) by_name_.emplace(definitions_[i].name, i);
    }
  }

  Result<TypeTable> run() {
    table_.root = type_of(0);
    // Parsing a definition may ask for further ones.
    for (std::size_t next = 0; next < pending_.size(); ++next) {
      const auto [definition, structure] = pending_[next];
      ROPEWALK_ASSIGN_OR_RETURN(std::vector<Field> fields, parse(definition));
      table_.structures[structure].placeholder = ros2_ && fields.empty();
      table_.structures[structure].fields = std::move(fields);
    }
    ROPEWALK_RETURN_IF_ERROR(table_.finish(limits_));
    return std::move(table_);
  }

 private:
  // The type of a definition, which is parsed later.
  std::uint32_t type_of(std::size_t definition) {
    const auto found = types_.find(definition);
    if (found != types_.end()) return found->second;
    const auto structure = static_cast<std::uint32_t>(table_.structures.size());
    table_.structures.push_back(
        {.name = definitions_[definition].name, .extensibility = Extensibility::final});
    pending_.emplace_back(definition, structure);
    const std::uint32_t type = table_.add({.kind = TypeKind::structure, .definition = structure});
    types_.emplace(definition, type);
    return type;
  }

  Result<std::uint32_t> resolve(const std::string& name, const std::string& within) {
    const std::string wanted = short_name(name);
    std::vector<std::string> candidates;
    if (wanted.find('/') == std::string::npos) {
      const std::size_t slash = within.rfind('/');
      if (slash != std::string::npos) candidates.push_back(within.substr(0, slash + 1) + wanted);
      if (const std::size_t package = within.find('/'); package != slash) {
        candidates.push_back(within.substr(0, package + 1) + wanted);
      }
      if (wanted == "Header") candidates.insert(candidates.begin(), "std_msgs/Header");
      if (ros2_ && (wanted == "time" || wanted == "Time")) {
        candidates.emplace_back("builtin_interfaces/Time");
      }
      if (ros2_ && (wanted == "duration" || wanted == "Duration")) {
        candidates.emplace_back("builtin_interfaces/Duration");
      }
    }
    candidates.push_back(wanted);
    for (const std::string& candidate : candidates) {
      const auto found = by_name_.find(candidate);
      if (found != by_name_.end()) return type_of(found->second);
    }
    // Some writers leave the time types out: everybody knows them.
    for (const std::string& candidate : candidates) {
      if (ros2_ &&
          (candidate == "builtin_interfaces/Time" || candidate == "builtin_interfaces/Duration")) {
        definitions_.push_back(
            {.name = candidate, .lines = {{"int32 sec", 1}, {"uint32 nanosec", 2}}});
        by_name_.emplace(candidate, definitions_.size() - 1);
        return type_of(definitions_.size() - 1);
      }
    }
    return not_found(fmt::format("type '{}' has no definition in the schema", name));
  }

  Result<std::vector<Field>> parse(std::size_t definition) {
    const Definition wanted = definitions_[definition];  // a copy: the list grows
    std::vector<Field> fields;
    std::set<std::string> names;
    for (const Line& line : wanted.lines) {
      auto field = parse_line(line.text, wanted.name);
      if (!field.ok()) {
        return std::move(field).status().with_context(
            fmt::format("{}: line {}", wanted.name, line.number));
      }
      if (!field->has_value()) continue;
      if (!names.insert((*field)->name).second) {
        return data_loss(fmt::format("{}: line {}: a second field '{}'", wanted.name, line.number,
                                     (*field)->name));
      }
      (*field)->id = static_cast<std::uint32_t>(fields.size());
      fields.push_back(*std::move(*field));
    }
    return fields;
  }

  // A field, or nothing for a constant.
  Result<std::optional<Field>> parse_line(std::string_view text, const std::string& within) {
    const std::size_t space = text.find_first_of(kSpaces);
    if (space == std::string_view::npos) {
      return data_loss(fmt::format("'{}': a type and a name are expected", text));
    }
    std::string_view type = text.substr(0, space);
    std::string_view rest = trim(text.substr(space));
    const std::size_t name_end = std::min(
        rest.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"),
        rest.size());
    const std::string_view name = rest.substr(0, name_end);
    if (!is_identifier(name)) {
      return data_loss(fmt::format("'{}': '{}' is no name of a field", text, rest));
    }
    rest = trim(rest.substr(name_end));
    if (!rest.empty() && rest.front() == '=') return std::optional<Field>();
    Field field{.name = std::string(name)};
    ROPEWALK_ASSIGN_OR_RETURN(field.type, parse_type(type, within));
    return std::optional(std::move(field));
  }

  Result<std::uint32_t> parse_type(std::string_view text, const std::string& within) {
    const std::string_view whole = text;
    std::optional<std::string_view> brackets;
    if (!text.empty() && text.back() == ']') {
      const std::size_t open = text.rfind('[');
      if (open == std::string_view::npos) return data_loss(fmt::format("'{}': no '['", whole));
      brackets = text.substr(open + 1, text.size() - open - 2);
      text = text.substr(0, open);
    }
    std::uint64_t bound = 0;
    if (const std::size_t at = text.find("<="); at != std::string_view::npos) {
      ROPEWALK_ASSIGN_OR_RETURN(bound, number(text.substr(at + 2), whole));
      text = text.substr(0, at);
    }
    std::uint32_t element = 0;
    if (const auto kind = base_kind(text, ros2_)) {
      if (*kind == TypeKind::string || *kind == TypeKind::wstring) {
        element = table_.add({.kind = *kind, .count = bound});
      } else {
        element = TypeTable::primitive(*kind);
      }
    } else {
      ROPEWALK_ASSIGN_OR_RETURN(element, resolve(std::string(text), within));
    }
    if (!brackets.has_value()) return element;
    if (brackets->empty()) return table_.sequence_of(element, 0);
    if (brackets->substr(0, 2) == "<=") {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t limit, number(brackets->substr(2), whole));
      return table_.sequence_of(element, limit);
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint64_t count, number(*brackets, whole));
    return table_.array_of(element, {static_cast<std::uint32_t>(count)});
  }

  static Result<std::uint64_t> number(std::string_view text, std::string_view whole) {
    std::uint32_t value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec != std::errc() || read.ptr != text.data() + text.size()) {
      return data_loss(fmt::format("'{}': '{}' is no length", whole, text));
    }
    return std::uint64_t{value};
  }

  std::vector<Definition> definitions_;
  bool ros2_;
  const Limits& limits_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
  std::map<std::size_t, std::uint32_t> types_;
  std::vector<std::pair<std::size_t, std::uint32_t>> pending_;
  TypeTable table_;
};

}  // namespace

Result<TypeTable> parse_ros_msg(std::string_view text, std::string_view name, bool ros2,
                                const Limits& limits) {
  return Parser(split_definitions(text, name), ros2, limits).run();
}

}  // namespace ropewalk::message
