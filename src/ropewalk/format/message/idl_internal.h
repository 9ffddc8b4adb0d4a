#pragma once
// IDL text to a list of definitions, names not yet looked up. Spec: OMG IDL 4.2; mcap 5.3.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/result.h"
#include "ropewalk/format/message/type_table_internal.h"

namespace ropewalk::message::idl {

enum class TokenKind : std::uint8_t { word, integer, real, text, sign, end };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;  ///< of a text: without its quotes
  std::uint64_t integer = 0;
  std::size_t line = 0;
};

/// Errors: data_loss naming the line.
Result<std::vector<Token>> tokenize(std::string_view text);

/// A constant expression: tokens [begin, end), evaluated when all names are known.
struct Expression {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool given() const { return end > begin; }
};

struct TypeSpec {
  enum class Form : std::uint8_t { base, name, sequence, string, wstring };
  Form form = Form::base;
  TypeKind kind = TypeKind::uint8;
  std::string name;
  std::shared_ptr<TypeSpec> element;
  Expression bound;
};

struct Annotation {
  std::string name;
  Expression value;  ///< of the only parameter, or of `value = …`
};
using Annotations = std::vector<Annotation>;

struct Member {
  std::string name;
  TypeSpec type;
  std::vector<Expression> dims;
  Annotations annotations;
  std::vector<Expression> labels;  ///< of a branch of a union
  bool is_default = false;
};

enum class DefinitionKind : std::uint8_t {
  structure,
  choice,
  enumeration,
  bitmask,
  alias,
  constant
};

struct Definition {
  DefinitionKind kind = DefinitionKind::structure;
  std::string name;             ///< a::b::T
  std::string scope;            ///< a::b
  std::string base;             ///< of a structure
  TypeSpec type;                ///< of an alias or constant; the discriminator of a union
  std::vector<Member> members;  ///< of an enumeration or bitmask: names, with an expression in dims
  Annotations annotations;
  Expression value;  ///< of a constant
  std::size_t line = 0;
};

struct Document {
  std::vector<Token> tokens;
  std::vector<Definition> definitions;
};

/// Errors: data_loss naming the line; unimplemented for map, bitset, any, interface.
Result<Document> parse(std::string_view text, const Limits& limits);

}  // namespace ropewalk::message::idl
