#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "ropewalk/format/message/idl_internal.h"

namespace ropewalk::message::idl {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Result<std::vector<Token>> run() {
    std::vector<Token> out;
    while (true) {
      ROPEWALK_RETURN_IF_ERROR(skip_blank());
      if (at_ == text_.size()) break;
      const char c = text_[at_];
      if (is_letter(c)) {
        out.push_back(word());
      } else if (is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]))) {
        out.push_back(number());
      } else if (c == '"' || c == '\'' ||
                 (c == 'L' && at_ + 1 < text_.size() && text_[at_ + 1] == '"')) {
        ROPEWALK_ASSIGN_OR_RETURN(Token token, quoted(c));
        out.push_back(token);
      } else {
        const std::size_t length = text_.substr(at_, 2) == "::" ? 2 : 1;
        out.push_back({.kind = TokenKind::sign, .text = text_.substr(at_, length), .line = line_});
        at_ += length;
      }
    }
    out.push_back({.kind = TokenKind::end, .text = "the end", .line = line_});
    return out;
  }

 private:
  Status skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
        line_begins_ = true;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
        ++at_;
      } else if (text_.substr(at_, 2) == "//" || (c == '#' && line_begins_)) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (text_.substr(at_, 2) == "/*") {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) {
          return data_loss(fmt::format("line {}: a comment has no end", line_));
        }
        const std::string_view comment = text_.substr(at_, end - at_);
        line_ += static_cast<std::size_t>(std::ranges::count(comment, '\n'));
        at_ = end + 2;
      } else {
        line_begins_ = false;
        return ok_status();
      }
    }
    return ok_status();
  }
  Token word() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    return {.kind = TokenKind::word, .text = text_.substr(begin, at_ - begin), .line = line_};
  }
  Token number() {
    const std::size_t begin = at_;
    const auto part = [](char c) { return is_letter(c) || is_digit(c) || c == '.'; };
    while (at_ < text_.size() &&
           (part(text_[at_]) ||
            ((text_[at_] == '+' || text_[at_] == '-') && at_ > begin &&
             (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E') && text_.substr(begin, 2) != "0x"))) {
      ++at_;
    }
    Token token{.kind = TokenKind::real, .text = text_.substr(begin, at_ - begin), .line = line_};
    std::string_view digits = token.text;
    int base = 10;
    if (digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) {
      base = 16;
      digits.remove_prefix(2);
    } else if (digits.size() > 1 && digits[0] == '0') {
      base = 8;
    }
    const char* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, token.integer, base);
    if (read.ec == std::errc() && read.ptr == end) token.kind = TokenKind::integer;
    return token;
  }
  Result<Token> quoted(char mark) {
    const std::size_t first = line_;
    const std::size_t begin = ++at_;
    while (at_ < text_.size() && text_[at_] != mark) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++line_;
      ++at_;
    }
    if (at_ >= text_.size()) return data_loss(fmt::format("line {}: a text has no end", first));
    return Token{
        .kind = TokenKind::text, .text = text_.substr(begin, at_++ - begin), .line = first};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  bool line_begins_ = true;
};

class Parser {
 public:
  Parser(Document& out, const Limits& limits) : out_(out), limits_(limits) {}

  Status run() {
    while (peek().kind != TokenKind::end) {
      ROPEWALK_RETURN_IF_ERROR(definition("", 0));
    }
    return ok_status();
  }

 private:
  const Token& peek(std::size_t ahead = 0) const {
    return out_.tokens[std::min(at_ + ahead, out_.tokens.size() - 1)];
  }
  bool sees(std::string_view text) const {
    return peek().text == text && peek().kind != TokenKind::text;
  }
  bool accept(std::string_view text) {
    if (!sees(text) || peek().kind == TokenKind::end) return false;
    ++at_;
    return true;
  }
  Status unexpected(std::string_view wanted) const {
    return data_loss(
        fmt::format("line {}: {} expected, '{}' found", peek().line, wanted, peek().text));
  }
  Status expect(std::string_view text) {
    return accept(text) ? ok_status() : unexpected(fmt::format("'{}'", text));
  }
  Result<std::string> identifier() {
    if (peek().kind != TokenKind::word) return unexpected("a name");
    // An escaped identifier is the name of a keyword.
    std::string_view text = out_.tokens[at_++].text;
    return std::string(text);
  }
  Result<std::string> scoped_name() {
    std::string out;
    if (accept("::")) out = "::";
    while (true) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::string part, identifier());
      out += part;
      if (!accept("::")) return out;
      out += "::";
    }
  }
  static std::string join(const std::string& scope, const std::string& name) {
    return scope.empty() ? name : scope + "::" + name;
  }

  // Everything up to a sign that ends an expression; in a bound, '>' is one of them.
  Result<Expression> expression(bool bound = false) {
    Expression out{.begin = at_};
    int depth = 0;
    while (peek().kind != TokenKind::end) {
      const bool sign = peek().kind == TokenKind::sign;
      const std::string_view text = peek().text;
      if (sign && depth == 0 &&
          (text == "," || text == "]" || text == ";" || text == ":" || text == "}" || text == ")" ||
           (bound && text == ">"))) {
        break;
      }
      if (sign && text == "(") ++depth;
      if (sign && text == ")") --depth;
      ++at_;
    }
    out.end = at_;
    if (!out.given()) return unexpected("an expression");
    return out;
  }

  Result<Annotations> annotations() {
    Annotations out;
    while (accept("@")) {
      ROPEWALK_ASSIGN_OR_RETURN(std::string name, scoped_name());
      Annotation annotation{.name = std::move(name)};
      if (accept("(")) {
        while (!accept(")")) {
          const bool named = peek().kind == TokenKind::word && peek(1).text == "=";
          const std::string_view parameter = named ? peek().text : "value";
          if (named) at_ += 2;
          ROPEWALK_ASSIGN_OR_RETURN(const Expression value, expression());
          if (parameter == "value") annotation.value = value;
          if (!accept(",") && !sees(")")) return unexpected("')'");
        }
      }
      out.push_back(std::move(annotation));
    }
    return out;
  }

  Status refuse(std::string_view what) const {
    return unimplemented(fmt::format("line {}: there is no decoder for '{}'", peek().line, what));
  }

  Result<TypeSpec> type_spec(std::uint32_t depth) {
    if (depth > limits_.max_json_depth) {
      return resource_exhausted(fmt::format("line {}: types nest too deep", peek().line));
    }
    TypeSpec out;
    if (accept("sequence")) {
      out.form = TypeSpec::Form::sequence;
      ROPEWALK_RETURN_IF_ERROR(expect("<"));
      ROPEWALK_RETURN_IF_ERROR(annotations().status());
      ROPEWALK_ASSIGN_OR_RETURN(TypeSpec element, type_spec(depth + 1));
      out.element = std::make_shared<TypeSpec>(std::move(element));
      if (accept(",")) {
        ROPEWALK_ASSIGN_OR_RETURN(out.bound, expression(true));
      }
      ROPEWALK_RETURN_IF_ERROR(expect(">"));
      return out;
    }
    if (sees("string") || sees("wstring")) {
      out.form = sees("string") ? TypeSpec::Form::string : TypeSpec::Form::wstring;
      ++at_;
      if (accept("<")) {
        ROPEWALK_ASSIGN_OR_RETURN(out.bound, expression(true));
        ROPEWALK_RETURN_IF_ERROR(expect(">"));
      }
      return out;
    }
    for (const std::string_view word : {"map", "any", "Object", "fixed", "ValueBase"}) {
      if (sees(word)) return refuse(word);
    }
    if (const auto kind = base_type()) {
      out.kind = *kind;
      return out;
    }
    out.form = TypeSpec::Form::name;
    ROPEWALK_ASSIGN_OR_RETURN(out.name, scoped_name());
    return out;
  }

  std::optional<TypeKind> base_type() {
    static constexpr std::pair<std::string_view, TypeKind> kWords[] = {
        {"boolean", TypeKind::boolean},  {"octet", TypeKind::uint8},
        {"byte", TypeKind::uint8},       {"char", TypeKind::uint8},
        {"wchar", TypeKind::wchar},      {"int8", TypeKind::int8},
        {"uint8", TypeKind::uint8},      {"int16", TypeKind::int16},
        {"uint16", TypeKind::uint16},    {"int32", TypeKind::int32},
        {"uint32", TypeKind::uint32},    {"int64", TypeKind::int64},
        {"uint64", TypeKind::uint64},    {"float", TypeKind::float32},
        {"double", TypeKind::float64},   {"short", TypeKind::int16},
        {"float128", TypeKind::float128}};
    for (const auto& [word, kind] : kWords) {
      if (accept(word)) return kind;
    }
    if (accept("unsigned")) {
      if (accept("short")) return TypeKind::uint16;
      if (!accept("long")) return std::nullopt;
      return accept("long") ? TypeKind::uint64 : TypeKind::uint32;
    }
    if (accept("long")) {
      if (accept("double")) return TypeKind::float128;
      return accept("long") ? TypeKind::int64 : TypeKind::int32;
    }
    return std::nullopt;
  }

  // Declarators of one type: a, b[3], c;
  Status declarators(const TypeSpec& type, const Annotations& annotations,
                     std::vector<Member>& out) {
    do {
      Member member{.type = type, .annotations = annotations};
      ROPEWALK_ASSIGN_OR_RETURN(member.name, identifier());
      while (accept("[")) {
        ROPEWALK_ASSIGN_OR_RETURN(const Expression dim, expression());
        member.dims.push_back(dim);
        ROPEWALK_RETURN_IF_ERROR(expect("]"));
      }
      out.push_back(std::move(member));
    } while (accept(","));
    return expect(";");
  }

  Status definition(const std::string& scope, std::uint32_t depth) {
    if (depth > limits_.max_json_depth) {
      return resource_exhausted(fmt::format("line {}: modules nest too deep", peek().line));
    }
    Definition out{.scope = scope, .line = peek().line};
    ROPEWALK_ASSIGN_OR_RETURN(out.annotations, annotations());
    if (accept(";")) return ok_status();
    if (accept("module")) {
      ROPEWALK_ASSIGN_OR_RETURN(const std::string name, identifier());
      ROPEWALK_RETURN_IF_ERROR(expect("{"));
      while (!accept("}")) {
        if (peek().kind == TokenKind::end) return unexpected("'}'");
        ROPEWALK_RETURN_IF_ERROR(definition(join(scope, name), depth + 1));
      }
      accept(";");
      return ok_status();
    }
    if (accept("struct")) return structure(std::move(out));
    if (accept("union")) return choice(std::move(out));
    if (accept("enum")) return choices(std::move(out), DefinitionKind::enumeration);
    if (accept("bitmask")) return choices(std::move(out), DefinitionKind::bitmask);
    if (accept("typedef")) {
      ROPEWALK_RETURN_IF_ERROR(annotations().status());
      ROPEWALK_ASSIGN_OR_RETURN(const TypeSpec type, type_spec(0));
      std::vector<Member> names;
      ROPEWALK_RETURN_IF_ERROR(declarators(type, {}, names));
      for (Member& alias : names) {
        Definition one = out;
        one.kind = DefinitionKind::alias;
        one.name = join(scope, alias.name);
        one.members.push_back(std::move(alias));
        out_.definitions.push_back(std::move(one));
      }
      return ok_status();
    }
    if (accept("const")) {
      out.kind = DefinitionKind::constant;
      ROPEWALK_ASSIGN_OR_RETURN(out.type, type_spec(0));
      ROPEWALK_ASSIGN_OR_RETURN(const std::string name, identifier());
      out.name = join(scope, name);
      ROPEWALK_RETURN_IF_ERROR(expect("="));
      ROPEWALK_ASSIGN_OR_RETURN(out.value, expression());
      out_.definitions.push_back(std::move(out));
      return expect(";");
    }
    for (const std::string_view word :
         {"bitset", "interface", "valuetype", "exception", "native"}) {
      if (sees(word)) return refuse(word);
    }
    return unexpected("a definition");
  }

  Status structure(Definition out) {
    ROPEWALK_ASSIGN_OR_RETURN(const std::string name, identifier());
    out.name = join(out.scope, name);
    if (accept(";")) return ok_status();  // a forward declaration
    if (accept(":")) {
      ROPEWALK_ASSIGN_OR_RETURN(out.base, scoped_name());
    }
    ROPEWALK_RETURN_IF_ERROR(expect("{"));
    while (!accept("}")) {
      ROPEWALK_ASSIGN_OR_RETURN(const Annotations notes, annotations());
      if (accept("const")) return unexpected("a member");
      ROPEWALK_ASSIGN_OR_RETURN(const TypeSpec type, type_spec(0));
      ROPEWALK_RETURN_IF_ERROR(declarators(type, notes, out.members));
    }
    out_.definitions.push_back(std::move(out));
    return expect(";");
  }

  Status choice(Definition out) {
    out.kind = DefinitionKind::choice;
    ROPEWALK_ASSIGN_OR_RETURN(const std::string name, identifier());
    out.name = join(out.scope, name);
    if (accept(";")) return ok_status();
    ROPEWALK_RETURN_IF_ERROR(expect("switch"));
    ROPEWALK_RETURN_IF_ERROR(expect("("));
    ROPEWALK_RETURN_IF_ERROR(annotations().status());
    ROPEWALK_ASSIGN_OR_RETURN(out.type, type_spec(0));
    ROPEWALK_RETURN_IF_ERROR(expect(")"));
    ROPEWALK_RETURN_IF_ERROR(expect("{"));
    while (!accept("}")) {
      std::vector<Expression> labels;
      bool is_default = false;
      while (sees("case") || sees("default")) {
        if (accept("default")) {
          is_default = true;
        } else {
          accept("case");
          ROPEWALK_ASSIGN_OR_RETURN(const Expression label, expression());
          labels.push_back(label);
        }
        ROPEWALK_RETURN_IF_ERROR(expect(":"));
      }
      if (labels.empty() && !is_default) return unexpected("'case'");
      ROPEWALK_ASSIGN_OR_RETURN(const Annotations notes, annotations());
      ROPEWALK_ASSIGN_OR_RETURN(const TypeSpec type, type_spec(0));
      ROPEWALK_RETURN_IF_ERROR(declarators(type, notes, out.members));
      out.members.back().labels = std::move(labels);
      out.members.back().is_default = is_default;
    }
    out_.definitions.push_back(std::move(out));
    return expect(";");
  }

  Status choices(Definition out, DefinitionKind kind) {
    out.kind = kind;
    ROPEWALK_ASSIGN_OR_RETURN(const std::string name, identifier());
    out.name = join(out.scope, name);
    ROPEWALK_RETURN_IF_ERROR(expect("{"));
    while (!accept("}")) {
      Member value;
      ROPEWALK_ASSIGN_OR_RETURN(value.annotations, annotations());
      ROPEWALK_ASSIGN_OR_RETURN(value.name, identifier());
      if (accept("=")) {
        ROPEWALK_ASSIGN_OR_RETURN(const Expression number, expression());
        value.dims.push_back(number);
      }
      out.members.push_back(std::move(value));
      if (!accept(",") && !sees("}")) return unexpected("','");
    }
    out_.definitions.push_back(std::move(out));
    return expect(";");
  }

  Document& out_;
  const Limits& limits_;
  std::size_t at_ = 0;
};

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view text) { return Lexer(text).run(); }

Result<Document> parse(std::string_view text, const Limits& limits) {
  Document out;
  ROPEWALK_ASSIGN_OR_RETURN(out.tokens, tokenize(text));
  ROPEWALK_RETURN_IF_ERROR(Parser(out, limits).run());
  return out;
}

}  // namespace ropewalk::message::idl
