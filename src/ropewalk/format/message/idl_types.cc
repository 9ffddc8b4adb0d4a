// Definitions of IDL to a TypeTable: names are looked up, constants evaluated.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "ropewalk/format/message/idl_internal.h"

namespace ropewalk::message {
namespace {

using idl::Annotation;
using idl::Annotations;
using idl::Definition;
using idl::DefinitionKind;
using idl::Expression;
using idl::Member;
using idl::Token;
using idl::TokenKind;
using idl::TypeSpec;

constexpr std::uint32_t kMaxLookups = 128;
// Constants that refer to constants are evaluated anew each time, but only so often.
constexpr std::uint64_t kMaxSteps = 1 << 22;
constexpr std::size_t kSeparatorLength = 80;
constexpr std::uint32_t kMaxMemberId = 0x0FFFFFFF;

const Annotation* find(const Annotations& annotations, std::string_view name) {
  const auto found = std::ranges::find(annotations, name, &Annotation::name);
  return found == annotations.end() ? nullptr : &*found;
}

// Several files behind separators become one text; the lines keep their numbers.
std::string without_separators(std::string_view text) {
  std::string out;
  bool names = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.remove_suffix(1);
    const bool separator =
        line.size() >= kSeparatorLength && line.find_first_not_of('=') == std::string_view::npos;
    if (!separator && !(names && line.substr(0, 4) == "IDL:")) out += line;
    if (separator || !line.empty()) names = separator;
    out += '\n';
  }
  return out;
}

class Builder {
 public:
  Builder(const idl::Document& document, bool ros2, const Limits& limits)
      : document_(document), ros2_(ros2), limits_(limits) {
    for (std::size_t i = 0; i < document.definitions.size(); ++i) {
      const Definition& definition = document.definitions[i];
      by_name_.emplace(definition.name, i);
      if (definition.kind != DefinitionKind::enumeration) continue;
      // Enumerators are names of the scope around, and of the enumeration itself.
      for (std::size_t k = 0; k < definition.members.size(); ++k) {
        const std::string& name = definition.members[k].name;
        enumerators_.emplace(definition.scope.empty() ? name : definition.scope + "::" + name,
                             std::pair(i, k));
        enumerators_.emplace(definition.name + "::" + name, std::pair(i, k));
      }
    }
  }

  Result<TypeTable> run(std::string_view root) {
    std::string name;
    for (const char c : root) name += c == '/' ? std::string("::") : std::string(1, c);
    if (name.substr(0, 2) == "::") name = name.substr(2);
    std::vector<std::string> candidates = {name};
    if (const std::size_t split = name.find("::"); ros2_ && split != std::string::npos) {
      candidates.push_back(name.substr(0, split) + "::msg" + name.substr(split));
    }
    const Definition* found = nullptr;
    for (const std::string& candidate : candidates) {
      if (found == nullptr && by_name_.contains(candidate)) {
        found = &document_.definitions[by_name_.at(candidate)];
      }
    }
    if (found == nullptr) {
      return not_found(fmt::format("the schema does not define '{}'", name));
    }
    ROPEWALK_ASSIGN_OR_RETURN(table_.root, type_of(*found, 0));
    for (std::size_t next = 0; next < pending_.size(); ++next) {
      const Definition& definition = *pending_[next].first;
      Status status = fill(definition, pending_[next].second);
      if (!status.ok()) {
        return status.with_context(fmt::format("line {}: {}", definition.line, definition.name));
      }
    }
    ROPEWALK_RETURN_IF_ERROR(table_.finish(limits_));
    return std::move(table_);
  }

 private:
  // --- names ---
  template <typename Map>
  static const typename Map::mapped_type* lookup(const Map& map, std::string_view name,
                                                 std::string_view scope) {
    if (name.substr(0, 2) == "::") {
      const auto found = map.find(std::string(name.substr(2)));
      return found == map.end() ? nullptr : &found->second;
    }
    while (true) {
      const auto found =
          map.find(scope.empty() ? std::string(name) : fmt::format("{}::{}", scope, name));
      if (found != map.end()) return &found->second;
      if (scope.empty()) return nullptr;
      const std::size_t up = scope.rfind("::");
      scope = up == std::string_view::npos ? std::string_view() : scope.substr(0, up);
    }
  }
  Result<const Definition*> resolve(std::string_view name, std::string_view scope) const {
    const std::size_t* index = lookup(by_name_, name, scope);
    if (index == nullptr) return not_found(fmt::format("type '{}' is not defined", name));
    return &document_.definitions[*index];
  }

  // --- constants ---
  struct Reader {
    std::size_t at = 0;
    std::size_t end = 0;
    std::string_view scope;
    const Definition* labels = nullptr;  // an enumeration whose names are known
    std::uint32_t depth = 0;
  };
  const Token& token(const Reader& reader) const {
    static const Token kEnd{};
    return reader.at < reader.end ? document_.tokens[reader.at] : kEnd;
  }
  bool accept(Reader& reader, std::string_view sign) const {
    const Token& next = token(reader);
    if (next.kind != TokenKind::sign || next.text != sign) return false;
    ++reader.at;
    return true;
  }
  Status no_integer(const Reader& reader) const {
    const Token& next = token(reader);
    return data_loss(fmt::format(
        "line {}: an integer expected, '{}' found",
        document_.tokens[std::min(reader.at, document_.tokens.size() - 1)].line, next.text));
  }

  Result<std::int64_t> evaluate(const Expression& expression, std::string_view scope,
                                std::uint32_t depth, const Definition* labels = nullptr) const {
    Reader reader{.at = expression.begin,
                  .end = expression.end,
                  .scope = scope,
                  .labels = labels,
                  .depth = depth};
    ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t value, binary(reader, 0));
    if (reader.at != reader.end) return no_integer(reader);
    return value;
  }
  static constexpr int kLevels = 6;
  // Operators by rising precedence; arithmetic wraps as unsigned.
  Result<std::int64_t> binary(Reader& reader, int level) const {
    if (level == kLevels) return unary(reader);
    ROPEWALK_ASSIGN_OR_RETURN(std::int64_t left, binary(reader, level + 1));
    static constexpr std::string_view kSigns[kLevels] = {"|", "^", "&", "<>", "+-", "*/%"};
    while (token(reader).kind == TokenKind::sign && token(reader).text.size() == 1 &&
           kSigns[level].find(token(reader).text) != std::string_view::npos) {
      const char sign = token(reader).text.front();
      ++reader.at;
      if (level == 3 && !accept(reader, std::string_view(&sign, 1))) return no_integer(reader);
      ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t right, binary(reader, level + 1));
      const auto a = static_cast<std::uint64_t>(left);
      const auto b = static_cast<std::uint64_t>(right);
      switch (sign) {
        case '|':
          left = static_cast<std::int64_t>(a | b);
          break;
        case '^':
          left = static_cast<std::int64_t>(a ^ b);
          break;
        case '&':
          left = static_cast<std::int64_t>(a & b);
          break;
        case '<':
          left = b > 63 ? 0 : static_cast<std::int64_t>(a << b);
          break;
        case '>':
          left = b > 63 ? 0 : static_cast<std::int64_t>(a >> b);
          break;
        case '+':
          left = static_cast<std::int64_t>(a + b);
          break;
        case '-':
          left = static_cast<std::int64_t>(a - b);
          break;
        case '*':
          left = static_cast<std::int64_t>(a * b);
          break;
        default:
          if (right == 0 || (right == -1 && left == std::numeric_limits<std::int64_t>::min())) {
            return data_loss("a constant is divided by zero");
          }
          left = sign == '/' ? left / right : left % right;
      }
    }
    return left;
  }
  Result<std::int64_t> unary(Reader& reader) const {
    if (++reader.depth > kMaxLookups || ++steps_ > kMaxSteps)
      return resource_exhausted("a constant that is too deep");
    if (accept(reader, "-")) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t value, unary(reader));
      return static_cast<std::int64_t>(0 - static_cast<std::uint64_t>(value));
    }
    if (accept(reader, "+")) return unary(reader);
    if (accept(reader, "~")) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t value, unary(reader));
      return ~value;
    }
    if (accept(reader, "(")) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t value, binary(reader, 0));
      if (!accept(reader, ")")) return no_integer(reader);
      return value;
    }
    const Token& next = token(reader);
    if (next.kind == TokenKind::integer) {
      ++reader.at;
      return static_cast<std::int64_t>(next.integer);
    }
    if (next.kind == TokenKind::text && next.text.size() == 1) {  // a character
      ++reader.at;
      return std::int64_t{static_cast<std::uint8_t>(next.text.front())};
    }
    if (next.text == "TRUE" || next.text == "FALSE") {
      ++reader.at;
      return std::int64_t{next.text == "TRUE"};
    }
    return named(reader);
  }
  Result<std::int64_t> named(Reader& reader) const {
    const Reader begin = reader;
    std::string name = accept(reader, "::") ? "::" : "";
    while (token(reader).kind == TokenKind::word) {
      name += token(reader).text;
      ++reader.at;
      if (!accept(reader, "::")) break;
      name += "::";
    }
    if (name.empty()) return no_integer(begin);
    if (reader.labels != nullptr) {
      const auto& members = reader.labels->members;
      const auto found = std::ranges::find(members, name, &Member::name);
      if (found != members.end()) {
        return enumerator(*reader.labels, static_cast<std::size_t>(found - members.begin()),
                          reader.depth + 1);
      }
    }
    if (const std::size_t* index = lookup(by_name_, name, reader.scope)) {
      const Definition& constant = document_.definitions[*index];
      if (constant.kind == DefinitionKind::constant) {
        return evaluate(constant.value, constant.scope, reader.depth + 1);
      }
    }
    if (const auto* place = lookup(enumerators_, name, reader.scope)) {
      return enumerator(document_.definitions[place->first], place->second, reader.depth + 1);
    }
    return not_found(fmt::format("constant '{}' is not defined", name));
  }
  // The value of one enumerator: its own, or one more than the one before it.
  Result<std::int64_t> enumerator(const Definition& definition, std::size_t index,
                                  std::uint32_t depth) const {
    std::int64_t value = 0;
    std::size_t begin = index + 1;
    while (begin > 0) {
      ++steps_;
      const Member& member = definition.members[--begin];
      const Annotation* given = find(member.annotations, "value");
      const Expression expression = !member.dims.empty() ? member.dims.front()
                                    : given != nullptr   ? given->value
                                                         : Expression();
      if (!expression.given()) {
        if (begin == 0) value = static_cast<std::int64_t>(index);
        continue;
      }
      ROPEWALK_ASSIGN_OR_RETURN(value, evaluate(expression, definition.scope, depth));
      value = static_cast<std::int64_t>(static_cast<std::uint64_t>(value) + (index - begin));
      break;
    }
    return value;
  }

  Result<std::uint32_t> length(const Expression& expression, std::string_view scope) const {
    ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t value, evaluate(expression, scope, 0));
    if (value < 0 || value > std::numeric_limits<std::uint32_t>::max()) {
      return data_loss(fmt::format("{} is no length", value));
    }
    return static_cast<std::uint32_t>(value);
  }

  // --- types ---
  Result<std::uint32_t> type_of(const TypeSpec& spec, std::string_view scope, std::uint32_t depth) {
    if (depth > kMaxLookups) {
      return data_loss(fmt::format("'{}' is defined by itself, or too deep", spec.name));
    }
    std::uint64_t bound = 0;
    if (spec.bound.given()) {
      ROPEWALK_ASSIGN_OR_RETURN(bound, length(spec.bound, scope));
    }
    switch (spec.form) {
      case TypeSpec::Form::base:
        return TypeTable::primitive(spec.kind);
      case TypeSpec::Form::string:
        return table_.add({.kind = TypeKind::string, .count = bound});
      case TypeSpec::Form::wstring:
        return table_.add({.kind = TypeKind::wstring, .count = bound});
      case TypeSpec::Form::sequence: {
        ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t element,
                                  type_of(*spec.element, scope, depth + 1));
        return table_.sequence_of(element, bound);
      }
      case TypeSpec::Form::name:
        break;
    }
    ROPEWALK_ASSIGN_OR_RETURN(const Definition* definition, resolve(spec.name, scope));
    return type_of(*definition, depth + 1);
  }

  Result<std::uint32_t> type_of(const Member& member, std::string_view scope, std::uint32_t depth) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t element, type_of(member.type, scope, depth));
    if (member.dims.empty()) return element;
    std::vector<std::uint32_t> dims;
    for (const Expression& expression : member.dims) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t dim, length(expression, scope));
      dims.push_back(dim);
    }
    return table_.array_of(element, std::move(dims));
  }

  Result<std::uint32_t> type_of(const Definition& definition, std::uint32_t depth) {
    if (const auto known = types_.find(&definition); known != types_.end()) return known->second;
    std::uint32_t type = 0;
    switch (definition.kind) {
      case DefinitionKind::structure:
        type = table_.add({.kind = TypeKind::structure,
                           .definition = static_cast<std::uint32_t>(table_.structures.size())});
        table_.structures.push_back({.name = definition.name});
        pending_.emplace_back(&definition, type);
        break;
      case DefinitionKind::choice:
        type = table_.add({.kind = TypeKind::choice,
                           .definition = static_cast<std::uint32_t>(table_.unions.size())});
        table_.unions.push_back({.name = definition.name});
        pending_.emplace_back(&definition, type);
        break;
      case DefinitionKind::enumeration:
      case DefinitionKind::bitmask: {
        ROPEWALK_ASSIGN_OR_RETURN(type, enumeration(definition));
        break;
      }
      case DefinitionKind::alias: {
        ROPEWALK_ASSIGN_OR_RETURN(type,
                                  type_of(definition.members.front(), definition.scope, depth + 1));
        break;
      }
      case DefinitionKind::constant:
        return data_loss(fmt::format("'{}' is a constant and no type", definition.name));
    }
    types_.emplace(&definition, type);
    return type;
  }

  Result<std::uint32_t> enumeration(const Definition& definition) {
    const bool mask = definition.kind == DefinitionKind::bitmask;
    Enumeration out{.name = definition.name};
    std::int64_t bits = 32;
    if (const Annotation* bound = find(definition.annotations, "bit_bound")) {
      ROPEWALK_ASSIGN_OR_RETURN(bits, evaluate(bound->value, definition.scope, 0));
    }
    if (bits < 1 || bits > (mask ? 64 : 32)) {
      return data_loss(fmt::format("'{}': a bit_bound of {}", definition.name, bits));
    }
    if (mask) {
      out.storage = bits <= 8    ? TypeKind::uint8
                    : bits <= 16 ? TypeKind::uint16
                    : bits <= 32 ? TypeKind::uint32
                                 : TypeKind::uint64;
    } else {
      out.storage = bits <= 8 ? TypeKind::int8 : bits <= 16 ? TypeKind::int16 : TypeKind::int32;
    }
    std::int64_t next = 0;
    for (const Member& member : definition.members) {
      const Annotation* given = find(member.annotations, mask ? "position" : "value");
      if (!member.dims.empty()) {
        ROPEWALK_ASSIGN_OR_RETURN(next, evaluate(member.dims.front(), definition.scope, 0));
      } else if (given != nullptr) {
        ROPEWALK_ASSIGN_OR_RETURN(next, evaluate(given->value, definition.scope, 0));
      }
      out.values.emplace_back(member.name, next);
      next = static_cast<std::int64_t>(static_cast<std::uint64_t>(next) + 1);
    }
    table_.enumerations.push_back(std::move(out));
    return table_.add({.kind = mask ? TypeKind::bitmask : TypeKind::enumeration,
                       .definition = static_cast<std::uint32_t>(table_.enumerations.size() - 1)});
  }

  Result<Extensibility> extensibility(const Definition& definition) const {
    for (const Annotation& annotation : definition.annotations) {
      std::string_view kind = annotation.name;
      if (kind == "extensibility" && annotation.value.given()) {
        kind = document_.tokens[annotation.value.end - 1].text;
      }
      if (kind == "final" || kind == "FINAL") return Extensibility::final;
      if (kind == "appendable" || kind == "APPENDABLE") return Extensibility::appendable;
      if (kind == "mutable" || kind == "MUTABLE") return Extensibility::mutable_;
    }
    return ros2_ ? Extensibility::final : Extensibility::unspecified;
  }

  Status fill(const Definition& definition, std::uint32_t type) {
    const std::uint32_t index = table_.types[type].definition;
    if (definition.kind == DefinitionKind::choice) return fill_union(definition, index);
    std::vector<Field> fields;
    std::uint32_t next_id = 0;
    Extensibility kind = Extensibility::unspecified;
    ROPEWALK_RETURN_IF_ERROR(add_fields(definition, 0, fields, next_id, kind));
    std::set<std::string_view> names;
    for (const Field& field : fields) {
      if (!names.insert(field.name).second) {
        return data_loss(fmt::format("a second member '{}'", field.name));
      }
    }
    table_.structures[index].fields = std::move(fields);
    table_.structures[index].extensibility = kind;
    return ok_status();
  }

  Status add_fields(const Definition& definition, std::uint32_t depth, std::vector<Field>& out,
                    std::uint32_t& next_id, Extensibility& kind) {
    if (depth > kMaxLookups) return data_loss("inheritance goes in a ring, or too deep");
    if (!definition.base.empty()) {
      ROPEWALK_ASSIGN_OR_RETURN(const Definition* base, resolve(definition.base, definition.scope));
      if (base->kind != DefinitionKind::structure) {
        return data_loss(fmt::format("'{}' is no structure to inherit from", definition.base));
      }
      ROPEWALK_RETURN_IF_ERROR(add_fields(*base, depth + 1, out, next_id, kind));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const Extensibility own, extensibility(definition));
    if (own != Extensibility::unspecified) kind = own;
    const bool hashed_ids = find(definition.annotations, "autoid") != nullptr;
    for (const Member& member : definition.members) {
      ROPEWALK_ASSIGN_OR_RETURN(Field field, field_of(member, definition.scope, next_id));
      if (kind == Extensibility::mutable_ && find(member.annotations, "id") == nullptr &&
          (find(member.annotations, "hashid") != nullptr || hashed_ids)) {
        return unimplemented(fmt::format("member '{}': ids by hash are not read", member.name));
      }
      out.push_back(std::move(field));
    }
    return ok_status();
  }

  Result<Field> field_of(const Member& member, std::string_view scope, std::uint32_t& next_id) {
    Field field{.name = member.name};
    // A leading underscore escapes a keyword and is no part of the name.
    if (field.name.size() > 1 && field.name.front() == '_') field.name.erase(0, 1);
    ROPEWALK_ASSIGN_OR_RETURN(field.type, type_of(member, scope, 0));
    if (const Annotation* id = find(member.annotations, "id"); id != nullptr && id->value.given()) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t number, length(id->value, scope));
      next_id = number;
    }
    if (next_id > kMaxMemberId) return data_loss(fmt::format("{} is no id of a member", next_id));
    field.id = next_id++;
    const auto is_set = [&](std::string_view name) {
      const Annotation* annotation = find(member.annotations, name);
      return annotation != nullptr && !(annotation->value.given() &&
                                        document_.tokens[annotation->value.begin].text == "FALSE");
    };
    field.optional = is_set("optional");
    field.key = is_set("key");
    field.must_understand = field.key || is_set("must_understand");
    return field;
  }

  Status fill_union(const Definition& definition, std::uint32_t index) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint32_t discriminator,
                              type_of(definition.type, definition.scope, 0));
    const TypeKind kind = table_.wire_kind(table_.types[discriminator]);
    if (kind > TypeKind::uint64 && kind != TypeKind::wchar) {
      return data_loss(
          fmt::format("a union over {} is not possible", table_.name_of(discriminator)));
    }
    const Definition* labels = nullptr;
    if (table_.types[discriminator].kind == TypeKind::enumeration) {
      const std::string& name = table_.enumerations[table_.types[discriminator].definition].name;
      labels = &document_.definitions[by_name_.at(name)];
    }
    std::vector<Case> cases;
    std::uint32_t next_id = 1;  // the discriminator has id 0
    for (const Member& member : definition.members) {
      Case branch{.is_default = member.is_default};
      for (const Expression& label : member.labels) {
        ROPEWALK_ASSIGN_OR_RETURN(const std::int64_t value,
                                  evaluate(label, definition.scope, 0, labels));
        branch.labels.push_back(value);
      }
      ROPEWALK_ASSIGN_OR_RETURN(branch.field, field_of(member, definition.scope, next_id));
      cases.push_back(std::move(branch));
    }
    ROPEWALK_ASSIGN_OR_RETURN(table_.unions[index].extensibility, extensibility(definition));
    table_.unions[index].discriminator = discriminator;
    table_.unions[index].cases = std::move(cases);
    return ok_status();
  }

  const idl::Document& document_;
  bool ros2_;
  const Limits& limits_;
  std::map<std::string, std::size_t> by_name_;
  std::map<std::string, std::pair<std::size_t, std::size_t>> enumerators_;
  std::map<const Definition*, std::uint32_t> types_;
  std::vector<std::pair<const Definition*, std::uint32_t>> pending_;
  TypeTable table_;
  mutable std::uint64_t steps_ = 0;
};

}  // namespace

Result<TypeTable> parse_idl(std::string_view text, std::string_view name, bool ros2,
                            const Limits& limits) {
  const std::string joined = without_separators(text);
  ROPEWALK_ASSIGN_OR_RETURN(const idl::Document document, idl::parse(joined, limits));
  return Builder(document, ros2, limits).run(name);
}

}  // namespace ropewalk::message
