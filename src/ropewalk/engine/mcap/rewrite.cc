#include "ropewalk/engine/mcap/rewrite.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/copy_internal.h"

namespace ropewalk {

void ProblemLog::add(const std::string& file, const std::vector<mcap::Problem>& problems) {
  for (const mcap::Problem& problem : problems) {
    if (!seen_.emplace(file, problem.kind, problem.offset, problem.length).second) continue;
    problems_.push_back({.file = file, .problem = problem});
  }
}

Status CopyProgress::step(std::size_t payload_bytes) {
  bytes_ += payload_bytes + mcap::kRecordHeadBytes + mcap::kMessageHeadBytes;
  ++messages_;
  if (bytes_ - reported_ < (4ULL << 20)) return ok_status();
  reported_ = bytes_;
  ROPEWALK_RETURN_IF_ERROR(context_.check_stop());
  context_.report({.phase = phase_,
                   .item = {},
                   .done = static_cast<std::int64_t>(messages_),
                   .total = 0,
                   .unit = "messages",
                   .bytes_done = bytes_,
                   .bytes_total = std::max(bytes_total_, bytes_total_ == 0 ? 0 : bytes_)});
  return ok_status();
}

std::uint64_t content_bytes(const std::vector<McapInput>& inputs) {
  std::uint64_t bytes = 0;
  for (const McapInput& input : inputs) {
    for (const mcap::ChunkIndex& chunk : input.reader.chunks()) bytes += chunk.uncompressed_size;
  }
  return bytes;
}

Result<std::vector<McapInput>> open_inputs(const std::vector<std::string>& paths, bool lenient,
                                           ProblemLog& log) {
  if (paths.empty()) return invalid_argument("no input file is given");
  if (std::ranges::count(paths, kStandardStream) > 1) {
    return invalid_argument("standard input can be read only once");
  }
  mcap::ReaderOptions options;
  options.lenient = lenient;
  options.cache_bytes = std::max<std::uint64_t>(8ULL << 20, options.cache_bytes / paths.size());
  std::vector<McapInput> inputs;
  for (const std::string& path : paths) {
    ROPEWALK_ASSIGN_OR_RETURN(McapInput input, open_mcap(path, options));
    log.add(input.name, input.reader.problems());
    inputs.push_back(std::move(input));
  }
  return inputs;
}

bool RewriteReport::lossy() const {
  return std::ranges::any_of(problems,
                             [](const FileProblem& p) { return is_copy_loss(p.problem.kind); });
}

Json RewriteReport::to_json() const {
  Json json = Json::object();
  json.set("output", output);
  json.set("messages", messages);
  json.set("metadata", metadata);
  json.set("attachments", attachments);
  json.set("bytes_read", bytes_read);
  json.set("bytes_written", bytes_written);
  json.set("seconds", seconds);
  Json per_topic = Json::object();
  for (const auto& [topic, count] : topics) {
    Json entry = Json::object();
    entry.set("messages", count.messages);
    entry.set("bytes", count.bytes);
    per_topic.set(topic, std::move(entry));
  }
  json.set("topics", std::move(per_topic));
  json.set("problems", ropewalk::to_json(problems));
  json.set("loss", lossy());
  return json;
}

Result<RewriteReport> rewrite_mcap(const RewriteRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  ROPEWALK_RETURN_IF_ERROR(request.selection.validate());
  ROPEWALK_RETURN_IF_ERROR(request.writing.validate());
  if (request.output.empty()) return invalid_argument("no output is given");
  RewriteReport report;
  ProblemLog log;
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<McapInput> inputs,
                            open_inputs(request.inputs, request.lenient, log));
  for (const McapInput& input : inputs) report.bytes_read += input.source->size();
  const CopyPlan plan{.inputs = &inputs,
                      .selection = &request.selection,
                      .writing = request.writing,
                      .kept = kept_compression(inputs),
                      .coalescing = request.coalescing,
                      .allow_duplicate_metadata = request.allow_duplicate_metadata,
                      .flush_between_passes = request.order == McapOrder::topic,
                      .log = &log,
                      .context = &context};
  ROPEWALK_ASSIGN_OR_RETURN(PartWriter part,
                            PartWriter::create(plan, request.output, request.replace));
  ROPEWALK_ASSIGN_OR_RETURN(MessageFlow flow,
                            MessageFlow::create(inputs, request.selection, request.order, log));
  ROPEWALK_RETURN_IF_ERROR(part.register_definitions(flow));
  ROPEWALK_RETURN_IF_ERROR(part.copy_metadata());
  ROPEWALK_RETURN_IF_ERROR(
      part.copy_attachments(request.selection.begin_time, request.selection.last_time()));
  const bool everything =
      request.selection.begin_time == 0 && !request.selection.end_time.has_value() &&
      request.selection.include_topics.empty() && request.selection.exclude_topics.empty();
  CopyProgress progress(context, "writing", everything ? content_bytes(inputs) : 0);
  for (FlowMessage message;;) {
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, flow.next(message));
    if (!more) break;
    ROPEWALK_RETURN_IF_ERROR(part.write(message, flow.pass()));
    ROPEWALK_RETURN_IF_ERROR(progress.step(message.view.data.size()));
  }
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  ROPEWALK_RETURN_IF_ERROR(part.finish());
  ROPEWALK_RETURN_IF_ERROR(part.publish());

  report.output = part.path();
  report.messages = part.messages();
  report.metadata = part.metadata_count();
  report.attachments = part.attachment_count();
  report.bytes_written = part.bytes();
  report.topics = part.topics();
  report.problems = log.take();
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace ropewalk
