#include "ropewalk/engine/mcap/salvage.h"

#include <fmt/format.h>

#include "ropewalk/engine/mcap/inspect.h"

namespace ropewalk {

Result<McapRecoverReport> recover_mcap(const McapRecoverRequest& request,
                                       const RunContext& context) {
  mcap::RecoverOptions options;
  options.chunk_bytes = request.chunk_bytes;
  options.stop = context.stop;
  if (request.compression != "preserve") {
    options.compression = compression_from_name(request.compression);
    if (!options.compression.has_value()) {
      return invalid_argument(fmt::format("compression '{}': expected preserve, none, lz4 or zstd",
                                          request.compression));
    }
  }
  McapRecoverReport report;
  report.input = request.input == kStandardStream ? "standard input" : request.input;
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_stream(request.input));
  ROPEWALK_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(request.output, request.replace));
  context.report({.phase = "recovering", .item = {}, .unit = "messages"});
  ROPEWALK_ASSIGN_OR_RETURN_CTX(report.recovered, mcap::recover(source, output.sink(), options),
                                report.input);
  ROPEWALK_RETURN_IF_ERROR(output.seal());
  if (!output.staged().empty()) {
    context.report({.phase = "reading back", .item = {}, .unit = "messages"});
    ROPEWALK_ASSIGN_OR_RETURN(auto written, open_source(output.staged(), {.map = true}));
    const Status holds = mcap::verify_file(std::move(written));
    if (!holds.ok()) {
      return internal(fmt::format("{}: the recovered file does not read back: {}", output.path(),
                                  holds.message()));
    }
    report.read_back = true;
  }
  ROPEWALK_RETURN_IF_ERROR(output.publish());
  report.output = output.path();
  return report;
}

Json McapRecoverReport::to_json() const {
  Json json = Json::object();
  json.set("input", input);
  json.set("output", output);
  json.set("read_back", read_back);
  json.set("messages", recovered.written.message_count);
  json.set("channels", std::uint64_t{recovered.written.channel_count});
  json.set("chunks", std::uint64_t{recovered.written.chunk_count});
  json.set("attachments", std::uint64_t{recovered.written.attachment_count});
  json.set("metadata", std::uint64_t{recovered.written.metadata_count});
  json.set("files", recovered.files);
  json.set("lost_bytes", recovered.lost_bytes);
  json.set("lost_messages", recovered.lost_messages);
  json.set("unverified_messages", recovered.unverified_messages);
  json.set("loss", recovered.has_loss());
  Json topics = Json::array();
  for (const mcap::RecoveredTopic& topic : recovered.topics) {
    Json entry = Json::object();
    entry.set("topic", valid_utf8(topic.topic));
    entry.set("schema", valid_utf8(topic.schema));
    entry.set("messages", topic.messages);
    entry.set("unverified", topic.unverified);
    entry.set("lost", topic.lost);
    topics.push_back(std::move(entry));
  }
  json.set("topics", std::move(topics));
  Json ranges = Json::array();
  for (const mcap::LostRange& range : recovered.lost_ranges) {
    Json entry = Json::object();
    entry.set("offset", range.offset);
    entry.set("length", range.length);
    ranges.push_back(std::move(entry));
  }
  json.set("lost_ranges", std::move(ranges));
  Json problems = Json::array();
  for (const mcap::Problem& problem : recovered.problems) {
    problems.push_back(ropewalk::to_json(FileProblem{.file = input, .problem = problem}));
  }
  json.set("problems", std::move(problems));
  return json;
}

}  // namespace ropewalk
