#include "ropewalk/dataset/lerobot/ledger_row_text_internal.h"

namespace ropewalk {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

std::size_t skip_space(std::string_view line, std::size_t at) {
  while (at < line.size() && is_space(line[at])) ++at;
  return at;
}

// Returns the offset past the closing quote of the string that begins at `at`, or npos.
std::size_t skip_string(std::string_view line, std::size_t at) {
  for (++at; at < line.size(); ++at) {
    if (line[at] == '\\') {
      ++at;
    } else if (line[at] == '"') {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

// Returns the offset past the value that begins at `at`, or npos.
std::size_t skip_value(std::string_view line, std::size_t at) {
  const std::size_t begin = at;
  std::size_t depth = 0;
  while (at < line.size()) {
    const char c = line[at];
    if (c == '"') {
      at = skip_string(line, at);
      if (at == std::string_view::npos) return at;
      if (depth == 0) return at;
    } else if (c == '{' || c == '[') {
      ++depth;
      ++at;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at > begin ? at : std::string_view::npos;
      ++at;
      if (--depth == 0) return at;
    } else if (depth == 0 && (c == ',' || is_space(c))) {
      return at > begin ? at : std::string_view::npos;
    } else {
      ++at;
    }
  }
  return std::string_view::npos;  // an object never ends in a bare value
}

std::string decode_key(std::string_view quoted) {
  const std::string_view inner = quoted.substr(1, quoted.size() - 2);
  if (inner.find('\\') == std::string_view::npos) return std::string(inner);
  const auto parsed = parse_json(quoted);
  const std::string* text = parsed.ok() ? parsed->as_string() : nullptr;
  return text ? *text : std::string(inner);
}

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Removes the member with the comma after it, or before it when it is the last.
void erase_member(std::string& text, const std::vector<RowMember>& members, std::size_t i) {
  if (i + 1 < members.size()) {
    text.erase(members[i].begin, members[i + 1].begin - members[i].begin);
  } else if (i > 0) {
    text.erase(members[i - 1].value_end, members[i].value_end - members[i - 1].value_end);
  } else {
    text.erase(members[i].begin, members[i].value_end - members[i].begin);
  }
}

}  // namespace

std::optional<std::vector<RowMember>> scan_row(std::string_view line) {
  std::size_t at = line.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  at = skip_space(line, at);
  if (at >= line.size() || line[at] != '{') return std::nullopt;
  std::vector<RowMember> members;
  at = skip_space(line, at + 1);
  if (at < line.size() && line[at] == '}') {
    return skip_space(line, at + 1) == line.size() ? std::optional(std::move(members))
                                                   : std::nullopt;
  }
  while (at < line.size() && line[at] == '"') {
    RowMember member;
    member.begin = at;
    const std::size_t key_end = skip_string(line, at);
    if (key_end == std::string_view::npos) return std::nullopt;
    member.key = decode_key(line.substr(at, key_end - at));
    at = skip_space(line, key_end);
    if (at >= line.size() || line[at] != ':') return std::nullopt;
    member.value_begin = skip_space(line, at + 1);
    member.value_end = skip_value(line, member.value_begin);
    if (member.value_end == std::string_view::npos) return std::nullopt;
    at = skip_space(line, member.value_end);
    members.push_back(std::move(member));
    if (at >= line.size()) return std::nullopt;
    if (line[at] == '}') {
      return skip_space(line, at + 1) == line.size() ? std::optional(std::move(members))
                                                     : std::nullopt;
    }
    if (line[at] != ',') return std::nullopt;
    at = skip_space(line, at + 1);
  }
  return std::nullopt;
}

Json row_value(std::string_view line, const std::vector<RowMember>& members, std::string_view key) {
  for (auto it = members.rbegin(); it != members.rend(); ++it) {
    if (it->key != key) continue;
    auto parsed = parse_json(line.substr(it->value_begin, it->value_end - it->value_begin));
    return parsed.ok() ? std::move(parsed).value() : Json();
  }
  return {};
}

std::string edit_row(std::string_view line, const std::vector<RowEdit>& edits) {
  std::string text(line);
  for (const RowEdit& edit : edits) {
    const auto members = scan_row(text);
    if (!members) return text;
    bool found = false;
    for (std::size_t i = members->size(); i-- > 0;) {
      const RowMember& member = (*members)[i];
      if (member.key != edit.key) continue;
      if (!edit.value) {
        erase_member(text, *members, i);
        return edit_row(text, edits);  // offsets have moved; the edits made so far are kept
      }
      found = true;
      const std::string_view old(text.data() + member.value_begin,
                                 member.value_end - member.value_begin);
      const auto parsed = parse_json(old);
      if (!parsed.ok() || !(*parsed == *edit.value)) {
        text.replace(member.value_begin, member.value_end - member.value_begin,
                     edit.value->dump_spaced());
      }
    }
    if (found || !edit.value) continue;
    const std::string key = Json(edit.key).dump();
    const bool spaced = members->empty() || text[members->front().value_begin - 1] == ' ';
    const std::string value = spaced ? edit.value->dump_spaced() : edit.value->dump();
    const std::string_view colon = spaced ? ": " : ":";
    const std::size_t close = text.rfind('}');
    const std::size_t at = members->empty() ? close : members->back().value_end;
    std::string added = members->empty() ? "" : (spaced ? ", " : ",");
    added.append(key).append(colon).append(value);
    text.insert(at, added);
  }
  return text;
}

}  // namespace ropewalk
