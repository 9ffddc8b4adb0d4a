#include "ropewalk/format/bag/definitions.h"

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"

namespace ropewalk::bag {
namespace {

constexpr std::uint64_t kMaxTextBytes = 16ULL << 20;
constexpr std::size_t kMaxTypes = 1000;
constexpr int kMaxDepth = 64;

// A line of 80 '=' stands between the definitions of one text.
std::string separator() { return std::string(80, '='); }

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string_view next_line(std::string_view& text) {
  const auto end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

// The first word of a line and the rest of it.
std::pair<std::string_view, std::string_view> split_word(std::string_view line) {
  line = trim(line);
  const auto end = line.find_first_of(" \t");
  if (end == std::string_view::npos) return {line, {}};
  return {line.substr(0, end), trim(line.substr(end))};
}

bool is_separator(std::string_view line) {
  line = trim(line);
  return line.size() >= 80 && line.find_first_not_of('=') == std::string_view::npos;
}

bool is_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

bool is_primitive(std::string_view type) {
  static const std::set<std::string_view> kNames = {
      "bool",  "byte",   "char",   "int8",    "uint8",   "int16", "uint16",  "int32",   "uint32",
      "int64", "uint64", "string", "float32", "float64", "time",  "wstring", "duration"};
  return kNames.contains(type);
}

// The type of a field without array bounds and without the bound of a string.
std::string_view bare_type(std::string_view type) {
  type = type.substr(0, type.find('['));
  return type.substr(0, type.find("<="));
}

// pkg/Type and pkg/msg/Type are one type: the first form is returned, in full.
std::string canonical(std::string_view type, std::string_view package) {
  if (type == "Header") return "std_msgs/Header";
  const auto first = type.find('/');
  if (first == std::string_view::npos) return fmt::format("{}/{}", package, type);
  const auto last = type.rfind('/');
  return fmt::format("{}/{}", type.substr(0, first), type.substr(last + 1));
}

std::string_view package_of(std::string_view type) { return type.substr(0, type.find('/')); }

// --- folders ---

struct TypeName {
  std::string package;
  std::string space;  ///< msg, srv or action
  std::string name;
};

Result<TypeName> parse_type(std::string_view type) {
  const auto first = type.find('/');
  const auto last = type.rfind('/');
  TypeName out;
  if (first != std::string_view::npos) {
    out.package = type.substr(0, first);
    out.space = first == last ? "msg" : std::string(type.substr(first + 1, last - first - 1));
    out.name = type.substr(last + 1);
  }
  if (!is_name(out.package) || !is_name(out.space) || !is_name(out.name)) {
    return invalid_argument(fmt::format("\"{}\" is no type; expected pkg/msg/Type", type));
  }
  return out;
}

// The directories that may hold packages: the folder, its share, and one level below.
Result<std::vector<std::filesystem::path>> roots_of(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out{folder, folder / "share"};
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(folder));
  for (const std::string& name : names) {
    if (name != "share") out.push_back(folder / name);
  }
  return out;
}

Result<std::optional<std::string>> read_definition(const std::vector<std::filesystem::path>& roots,
                                                   const TypeName& type,
                                                   std::string_view extension) {
  for (const auto& root : roots) {
    const auto path = root / type.package / type.space / fmt::format("{}{}", type.name, extension);
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) continue;
    ROPEWALK_ASSIGN_OR_RETURN(std::string text, read_text_file(path, kMaxTextBytes));
    return std::optional(std::move(text));
  }
  return std::optional<std::string>();
}

// The types that a .msg needs, in its order.
std::vector<std::string> needs_of_msg(std::string_view text, std::string_view package) {
  std::vector<std::string> out;
  while (!text.empty()) {
    std::string_view line = next_line(text);
    line = line.substr(0, line.find('#'));
    const auto [type, rest] = split_word(line);
    const std::string_view bare = bare_type(type);
    if (rest.empty() || is_primitive(bare)) continue;
    out.push_back(canonical(bare, package));
  }
  return out;
}

// The types whose files an .idl includes.
std::vector<std::string> needs_of_idl(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    std::string_view line = trim(next_line(text));
    if (!line.starts_with("#include")) continue;
    line = trim(line.substr(8));
    if (line.size() < 2 || line.front() != '"') continue;
    line = line.substr(1, line.find('"', 1) - 1);
    if (!line.ends_with(".idl")) continue;
    out.emplace_back(line.substr(0, line.size() - 4));
  }
  return out;
}

// --- MD5 ---

class Md5 {
 public:
  explicit Md5(std::string_view type, std::string_view text) {
    std::string name = canonical(type, "");
    std::size_t begin = 0;
    std::string_view rest = text;
    while (!rest.empty()) {
      const std::size_t line_at = text.size() - rest.size();
      const std::string_view line = next_line(rest);
      if (!is_separator(line)) continue;
      texts_.emplace(std::move(name), text.substr(begin, line_at - begin));
      const auto [key, value] = split_word(next_line(rest));
      name = key == "MSG:" ? canonical(value, "") : std::string();
      begin = text.size() - rest.size();
    }
    texts_.emplace(std::move(name), text.substr(std::min(begin, text.size())));
  }

  Result<std::string> of(const std::string& type, int depth) {
    if (const auto known = known_.find(type); known != known_.end()) return known->second;
    const auto text = texts_.find(type);
    if (text == texts_.end()) {
      return not_found(fmt::format("the definition does not contain {}", type));
    }
    if (depth > kMaxDepth) {
      return invalid_argument(fmt::format("{}: types are nested deeper than {}", type, kMaxDepth));
    }
    std::string constants;
    std::string fields;
    std::string_view rest = text->second;
    while (!rest.empty()) {
      ROPEWALK_RETURN_IF_ERROR(add_line(next_line(rest), type, depth, constants, fields));
    }
    const std::string joined = constants + fields;
    std::string md5 = md5_hex(as_bytes(trim(joined)));
    known_.emplace(type, md5);
    return md5;
  }

 private:
  Status add_line(std::string_view line, const std::string& owner, int depth,
                  std::string& constants, std::string& fields) {
    const std::string_view clean = trim(line.substr(0, line.find('#')));
    if (clean.empty()) return ok_status();
    const auto [type, rest] = split_word(clean);
    if (rest.empty()) {
      return invalid_argument(fmt::format("{}: \"{}\": expected a type and a name", owner, clean));
    }
    const auto equals = rest.find('=');
    if (equals != std::string_view::npos) {
      // The text of a string is everything behind the sign, '#' included.
      const std::string_view value =
          type == "string" ? line.substr(line.find('=') + 1) : rest.substr(equals + 1);
      constants += fmt::format("{} {}={}\n", type, trim(rest.substr(0, equals)), trim(value));
      return ok_status();
    }
    const std::string_view bare = bare_type(type);
    if (is_primitive(bare)) {
      fields += fmt::format("{} {}\n", type, rest);
      return ok_status();
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::string md5,
                              of(canonical(bare, package_of(owner)), depth + 1));
    fields += fmt::format("{} {}\n", md5, rest);
    return ok_status();
  }

  std::map<std::string, std::string_view> texts_;
  std::map<std::string, std::string> known_;
};

}  // namespace

Result<std::optional<Definition>> find_definition(const std::filesystem::path& folder,
                                                  std::string_view type) {
  ROPEWALK_ASSIGN_OR_RETURN(const TypeName root, parse_type(type));
  ROPEWALK_ASSIGN_OR_RETURN(const auto roots, roots_of(folder));
  ROPEWALK_ASSIGN_OR_RETURN(const auto msg, read_definition(roots, root, ".msg"));
  const bool idl = !msg;
  Definition out{.encoding = idl ? "ros2idl" : "ros2msg"};
  std::vector<std::string> wanted{std::string(type)};
  std::set<std::string> seen{canonical(type, "")};
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ROPEWALK_ASSIGN_OR_RETURN(const TypeName name, parse_type(wanted[i]));
    ROPEWALK_ASSIGN_OR_RETURN(auto text, read_definition(roots, name, idl ? ".idl" : ".msg"));
    if (!text) return std::optional<Definition>();
    auto needs = idl ? needs_of_idl(*text) : needs_of_msg(*text, name.package);
    for (std::string& need : needs) {
      if (seen.insert(canonical(need, "")).second) wanted.push_back(std::move(need));
    }
    if (idl) {
      out.text += fmt::format("{}{}\nIDL: {}/{}/{}\n", i == 0 ? "" : "\n", separator(),
                              name.package, name.space, name.name);
    } else if (i > 0) {
      out.text += fmt::format("\n{}\nMSG: {}/{}\n", separator(), name.package, name.name);
    }
    out.text += *text;
    if (out.text.size() > kMaxTextBytes || wanted.size() > kMaxTypes) {
      return resource_exhausted(
          fmt::format("{}: its definition needs more than {} types or {} "
                      "bytes",
                      type, kMaxTypes, kMaxTextBytes));
    }
  }
  return std::optional(std::move(out));
}

Result<std::string> ros1_md5(std::string_view type, std::string_view definition) {
  if (type.find('/') == std::string_view::npos) {
    return invalid_argument(fmt::format("\"{}\" is no type; expected pkg/Type", type));
  }
  auto md5 = Md5(type, definition).of(canonical(type, ""), 0);
  if (!md5.ok()) {
    return std::move(md5).status().with_context(fmt::format("MD5 of {}", type));
  }
  return md5;
}

}  // namespace ropewalk::bag
