// message_codec: format/message as a program, for cross-checks with other decoders. Reads one JSON
// document a line and answers each with one line.
//
//   {"schema": {"message_encoding", "schema_name", "schema_encoding", "data": base64}}   {"ok":
//   true}
//   {"decode": base64}                                         {"value": …}
//   {"encode": …}                                              {"payload": base64}
//   {"rows": [[path, width], …], "payload": base64, "repeat": n}   {"row": […], "ns": per message}
//
// An answer {"error": text} takes the place of any of them. Numbers beyond 2^53 and non-finite ones
// are texts, bytes are base64.
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>

#include "ropewalk/format/message/message.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::message;

Result<Bytes> bytes_member(const Json& request, std::string_view name) {
  const auto text = request.get_string(name);
  const auto bytes = text.has_value() ? from_base64(*text) : std::nullopt;
  if (!bytes.has_value()) return invalid_argument(std::string(name) + ": base64 expected");
  return *bytes;
}

std::string quoted(std::string_view text) { return to_json_text(Value(text)); }

class Session {
 public:
  Result<std::string> answer(const Json& request) {
    if (const Json* schema = request.find("schema")) return compile(*schema);
    if (codec_ == nullptr) return failed_precondition("a schema comes first");
    if (request.find("decode") != nullptr) {
      ROPEWALK_ASSIGN_OR_RETURN(const Bytes payload, bytes_member(request, "decode"));
      ROPEWALK_ASSIGN_OR_RETURN(const Message message, codec_->decode(payload));
      return "{\"value\":" + to_json_text(message.root()) + "}";
    }
    if (const Json* value = request.find("encode")) {
      ROPEWALK_ASSIGN_OR_RETURN(const Bytes payload, codec_->encode(value_of_json(*value)));
      return "{\"payload\":\"" + to_base64(payload) + "\"}";
    }
    if (const Json* fields = request.find("rows")) return rows(request, *fields);
    return invalid_argument("schema, decode, encode or rows expected");
  }

 private:
  Result<std::string> compile(const Json& schema) {
    ROPEWALK_ASSIGN_OR_RETURN(const Bytes data, bytes_member(schema, "data"));
    const std::string message_encoding = schema.get_string("message_encoding").value_or("");
    const std::string name = schema.get_string("schema_name").value_or("");
    const std::string encoding = schema.get_string("schema_encoding").value_or("");
    codec_ = nullptr;
    ROPEWALK_ASSIGN_OR_RETURN(codec_,
                              MessageCodec::compile({message_encoding, name, encoding, data}));
    return std::string("{\"ok\":true}");
  }

  Result<std::string> rows(const Json& request, const Json& fields) {
    std::vector<RowField> wanted;
    for (std::size_t i = 0; fields.as_array() != nullptr && i < fields.size(); ++i) {
      const Json& field = (*fields.as_array())[i];
      if (field.as_array() == nullptr || field.size() != 2) {
        return invalid_argument("rows: [path, width] expected");
      }
      const std::string* path = (*field.as_array())[0].as_string();
      const auto width = (*field.as_array())[1].as_int64();
      if (path == nullptr || !width.has_value()) return invalid_argument("rows: [path, width]");
      wanted.push_back({*path, static_cast<std::uint32_t>(*width)});
    }
    ROPEWALK_ASSIGN_OR_RETURN(const RowExtractor extractor, RowExtractor::compile(codec_, wanted));
    ROPEWALK_ASSIGN_OR_RETURN(const Bytes payload, bytes_member(request, "payload"));
    const std::int64_t repeat = request.get_int64("repeat").value_or(1);
    std::vector<double> row(extractor.width());
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < repeat; ++i) {
      ROPEWALK_RETURN_IF_ERROR(extractor.extract(payload, row));
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    std::string out = "{\"row\":[";
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) out += ',';
      append_json(Value(row[i]), {}, out);
    }
    out += "],\"ns\":";
    append_json(Value(took.count() / static_cast<double>(repeat)), {}, out);
    return out + "}";
  }

  std::shared_ptr<const MessageCodec> codec_;
};

}  // namespace

int main() {
  Session session;
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = parse_json(line);
    const auto answer =
        request.ok() ? session.answer(*request) : Result<std::string>(request.status());
    std::cout << (answer.ok() ? *answer : "{\"error\":" + quoted(answer.status().to_string()) + "}")
              << std::endl;
  }
  return 0;
}
