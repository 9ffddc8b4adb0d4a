#include "ropewalk/engine/mcap/cat.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/copy_internal.h"
#include "ropewalk/engine/mcap/inspect.h"
#include "ropewalk/format/message/message.h"

namespace ropewalk {
namespace {

constexpr std::size_t kFlushBytes = 256 << 10;
constexpr std::size_t kMaxColumns = 16'384;

// A channel with the decoder of its payloads, or why there is none.
struct Decoder {
  std::shared_ptr<const message::MessageCodec> codec;
  std::string topic_json;
};

// A message as named cells, in the order of its schema.
using Cells = std::vector<std::pair<std::string, std::string>>;

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

class Printer {
 public:
  Printer(const CatRequest& request, const std::function<Status(std::string_view)>& write,
          CatReport& report)
      : request_(request), write_(write), report_(report) {
    json_.bytes = request.elide_bytes ? message::BytesForm::elided : message::BytesForm::base64;
  }

  Status print(const FlowMessage& flow, std::uint64_t pass);
  Status flush() {
    const Status status = write_(out_);
    out_.clear();
    return status;
  }

 private:
  const Decoder& decoder_of(const mcap::MessageView& view, std::uint64_t pass);
  std::string time_text(std::uint64_t time) const;
  std::string json_time(std::uint64_t time) const;
  void print_text(const mcap::MessageView& view, const message::Value* value);
  void print_ndjson(const mcap::MessageView& view, const Decoder& decoder,
                    const message::Value* value, std::string_view error);
  void print_csv(const mcap::MessageView& view, const message::Value* value);
  void flatten(const std::string& path, const message::Value& value, Cells& cells);

  const CatRequest& request_;
  const std::function<Status(std::string_view)>& write_;
  CatReport& report_;
  message::JsonOptions json_;
  std::string out_;
  std::uint64_t pass_ = 0;
  std::unordered_map<const mcap::Channel*, Decoder> decoders_;
  std::vector<std::string> columns_;
  bool has_header_ = false;
};

const Decoder& Printer::decoder_of(const mcap::MessageView& view, std::uint64_t pass) {
  if (pass != pass_) decoders_.clear();
  pass_ = pass;
  const auto known = decoders_.find(view.channel);
  if (known != decoders_.end()) return known->second;
  Decoder decoder;
  decoder.topic_json = Json(valid_utf8(view.channel->topic)).dump();
  message::SchemaRef schema{.message_encoding = view.channel->message_encoding,
                            .schema_name = {},
                            .schema_encoding = {},
                            .schema = {}};
  if (view.schema != nullptr) {
    schema.schema_name = view.schema->name;
    schema.schema_encoding = view.schema->encoding;
    schema.schema = view.schema->data;
  }
  auto codec = message::MessageCodec::compile(schema);
  if (codec.ok()) {
    decoder.codec = std::move(*codec);
  } else {
    report_.raw_topics.emplace(view.channel->topic, std::string(codec.status().message()));
  }
  return decoders_.emplace(view.channel, std::move(decoder)).first->second;
}

std::string Printer::time_text(std::uint64_t time) const {
  return format_time(time, request_.time_format);
}

std::string Printer::json_time(std::uint64_t time) const {
  switch (request_.time_format) {
    case TimeFormat::nanoseconds:
      return fmt::format("{}", time);
    case TimeFormat::rfc3339:
      return '"' + format_time(time, TimeFormat::rfc3339) + '"';
    case TimeFormat::automatic:
    case TimeFormat::seconds:
      return format_time(time, TimeFormat::seconds);
  }
  return "0";
}

void Printer::print_text(const mcap::MessageView& view, const message::Value* value) {
  out_ += fmt::format("{} {} [{}] ", time_text(view.log_time), valid_utf8(view.channel->topic),
                      view.schema == nullptr ? "no schema" : valid_utf8(view.schema->name));
  if (value != nullptr) {
    message::append_json(*value, json_, out_);
  } else if (request_.elide_bytes) {
    out_ += fmt::format("<{} bytes>", view.data.size());
  } else {
    out_ += message::to_base64(view.data);
  }
  out_ += '\n';
}

void Printer::print_ndjson(const mcap::MessageView& view, const Decoder& decoder,
                           const message::Value* value, std::string_view error) {
  out_ += fmt::format(R"({{"topic":{},"sequence":{},"log_time":{},"publish_time":{},)",
                      decoder.topic_json, view.sequence, json_time(view.log_time),
                      json_time(view.publish_time));
  if (value != nullptr) {
    out_ += R"("data":)";
    message::append_json(*value, json_, out_);
  } else if (request_.elide_bytes) {
    out_ += fmt::format(R"("data_size":{})", view.data.size());
  } else {
    out_ += R"("data_base64":")";
    out_ += message::to_base64(view.data);
    out_ += '"';
  }
  if (!error.empty()) out_ += R"(,"error":)" + Json(valid_utf8(error)).dump();
  out_ += "}\n";
}

void Printer::flatten(const std::string& path, const message::Value& value, Cells& cells) {
  if (cells.size() >= kMaxColumns) return;
  const auto inside = [&](std::string_view name) {
    return path.empty() ? std::string(name) : path + "." + std::string(name);
  };
  if (const auto* object = value.as_object()) {
    for (const auto& member : *object) flatten(inside(member.name), member.value, cells);
    return;
  }
  if (const auto* array = value.as_array()) {
    for (std::size_t i = 0; i < array->size(); ++i) {
      flatten(fmt::format("{}[{}]", path, i), (*array)[i], cells);
    }
    return;
  }
  const auto* numbers = value.as_numbers();
  if (numbers != nullptr && numbers->dtype != DType::uint8) {
    for (std::size_t i = 0; i < numbers->size() && cells.size() < kMaxColumns; ++i) {
      flatten(fmt::format("{}[{}]", path, i), numbers->element(i), cells);
    }
    return;
  }
  if (const auto* time = std::get_if<message::Value::Time>(&value.variant())) {
    cells.emplace_back(inside("sec"), fmt::format("{}", time->sec));
    cells.emplace_back(inside("nsec"), fmt::format("{}", time->nsec));
    return;
  }
  std::string text;
  if (const auto string = value.as_string()) {
    text = valid_utf8(*string);
  } else if (!value.is_nil()) {
    message::JsonOptions plain = json_;
    plain.wide_integers_as_text = false;
    message::append_json(value, plain, text);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') {
      text = text.substr(1, text.size() - 2);
    }
  }
  cells.emplace_back(path.empty() ? "value" : path, std::move(text));
}

void Printer::print_csv(const mcap::MessageView& view, const message::Value* value) {
  Cells cells;
  if (value != nullptr) {
    flatten("", *value, cells);
  } else {
    cells.emplace_back("data_base64", message::to_base64(view.data));
  }
  if (!has_header_) {
    has_header_ = true;
    out_ += "log_time,publish_time,sequence";
    for (const auto& [name, text] : cells) {
      columns_.push_back(name);
      out_ += ',' + csv_cell(name);
    }
    out_ += '\n';
  }
  out_ += fmt::format("{},{},{}", time_text(view.log_time), time_text(view.publish_time),
                      view.sequence);
  const bool same = std::ranges::equal(
      columns_, cells, {}, {}, [](const auto& cell) -> const std::string& { return cell.first; });
  if (same) {
    for (const auto& [name, text] : cells) out_ += ',' + csv_cell(text);
  } else {
    std::unordered_map<std::string_view, std::string_view> by_name;
    for (const auto& [name, text] : cells) by_name.emplace(name, text);
    std::size_t found = 0;
    for (const std::string& column : columns_) {
      out_ += ',';
      const auto cell = by_name.find(column);
      if (cell == by_name.end()) continue;
      ++found;
      out_ += csv_cell(cell->second);
    }
    if (found < cells.size()) ++report_.ragged_rows;
  }
  out_ += '\n';
}

Status Printer::print(const FlowMessage& flow, std::uint64_t pass) {
  const mcap::MessageView& view = flow.view;
  const Decoder& decoder = decoder_of(view, pass);
  std::string error;
  std::optional<message::Message> decoded;
  if (decoder.codec != nullptr) {
    auto result = decoder.codec->decode(view.data);
    if (result.ok()) {
      decoded.emplace(std::move(*result));
    } else {
      error = std::string(result.status().message());
      ++report_.undecodable;
      report_.undecodable_topics.emplace(view.channel->topic, error);
    }
  }
  const message::Value* value = decoded.has_value() ? &decoded->root() : nullptr;
  switch (request_.format) {
    case CatFormat::text:
      print_text(view, value);
      break;
    case CatFormat::ndjson:
      print_ndjson(view, decoder, value, error);
      break;
    case CatFormat::csv:
      print_csv(view, value);
      break;
  }
  ++report_.messages;
  return out_.size() < kFlushBytes ? ok_status() : flush();
}

}  // namespace

std::optional<CatFormat> cat_format_from_name(std::string_view name) {
  if (name == "text") return CatFormat::text;
  if (name == "ndjson" || name == "json") return CatFormat::ndjson;
  if (name == "csv") return CatFormat::csv;
  return std::nullopt;
}

bool CatReport::lossy() const {
  return undecodable > 0 || ragged_rows > 0 ||
         std::ranges::any_of(problems,
                             [](const FileProblem& p) { return is_copy_loss(p.problem.kind); });
}

Result<CatReport> cat_mcap(const CatRequest& request,
                           const std::function<Status(std::string_view)>& write,
                           const RunContext& context) {
  CatReport report;
  ProblemLog log;
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<McapInput> inputs,
                            open_inputs(request.inputs, request.lenient, log));
  std::optional<std::vector<std::string>> only;
  if (!request.topics.empty()) only = request.topics;
  ROPEWALK_ASSIGN_OR_RETURN(
      MessageFlow flow, MessageFlow::create(inputs, request.selection, request.order, log, only));
  if (request.format == CatFormat::csv) {
    std::set<std::string> topics;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (const auto& [id, channel] : inputs[i].reader.channels()) {
        const auto& wanted = flow.topics_of(i);
        if (!wanted.has_value() || std::ranges::find(*wanted, channel.topic) != wanted->end()) {
          topics.insert(channel.topic);
        }
      }
    }
    if (topics.size() != 1) {
      return invalid_argument(
          fmt::format("csv is a table of one topic, and {} are selected: choose one with --topics",
                      topics.size()));
    }
  }
  Printer printer(request, write, report);
  std::size_t since_check = 0;
  for (FlowMessage message; request.limit == 0 || report.messages < request.limit;) {
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, flow.next(message));
    if (!more) break;
    ROPEWALK_RETURN_IF_ERROR(printer.print(message, flow.pass()));
    if ((since_check += message.view.data.size() + 64) >= (4U << 20)) {
      since_check = 0;
      ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    }
  }
  ROPEWALK_RETURN_IF_ERROR(printer.flush());
  report.problems = log.take();
  return report;
}

}  // namespace ropewalk
