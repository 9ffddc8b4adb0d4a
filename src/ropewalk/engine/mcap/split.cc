#include "ropewalk/engine/mcap/split.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/engine/mcap/copy_internal.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kLastTime = std::numeric_limits<std::uint64_t>::max();
// Parts by topic that are written at the same time; each holds an open chunk.
constexpr std::size_t kOpenParts = 64;

std::string file_name_of(const std::string& topic) {
  std::string out;
  for (const char c : topic) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_';
    if (!plain && out.empty()) continue;
    out += plain ? c : '_';
  }
  while (!out.empty() && out.front() == '.') out.erase(0, 1);
  if (out.empty()) out = "topic";
  if (out.size() > 150) out.resize(150);
  return out;
}

struct OpenPart {
  PartWriter writer;
  SplitPart report;
};

class Splitter {
 public:
  Splitter(const SplitRequest& request, const RunContext& context)
      : request_(request), context_(context) {}

  Result<SplitReport> run();

 private:
  Status by_duration();
  Status by_size_or_count();
  Status by_topic();

  Result<MessageFlow> flow(const McapSelection& selection,
                           const std::optional<std::vector<std::string>>& topics = {}) {
    return MessageFlow::create(inputs_, selection, request_.order, log_, topics);
  }
  Result<OpenPart> open(const std::string& name, const MessageFlow& flow,
                        const std::optional<std::string>& topic = {});
  Status write(OpenPart& part, const FlowMessage& message, std::uint64_t pass);
  Status close(OpenPart part);
  Result<std::optional<std::uint64_t>> first_time_from(std::uint64_t time);
  std::string numbered() { return fmt::format("{}_{:04}.mcap", stem_, ++number_); }

  const SplitRequest& request_;
  const RunContext& context_;
  ProblemLog log_;
  std::vector<McapInput> inputs_;
  CopyPlan plan_;
  std::string stem_;
  std::size_t number_ = 0;
  std::vector<OpenPart> finished_;
  std::optional<CopyProgress> progress_;
};

Result<OpenPart> Splitter::open(const std::string& name, const MessageFlow& flow,
                                const std::optional<std::string>& topic) {
  ROPEWALK_ASSIGN_OR_RETURN(
      PartWriter writer,
      PartWriter::create(plan_, (request_.output / name).string(), request_.replace));
  ROPEWALK_RETURN_IF_ERROR(writer.register_definitions(flow, topic));
  ROPEWALK_RETURN_IF_ERROR(writer.copy_metadata());
  return OpenPart{.writer = std::move(writer), .report = {.path = {}, .topic = topic.value_or("")}};
}

Status Splitter::write(OpenPart& part, const FlowMessage& message, std::uint64_t pass) {
  const std::uint64_t time = message.view.log_time;
  if (part.writer.messages() == 0) part.report.start_time = part.report.end_time = time;
  part.report.start_time = std::min(part.report.start_time, time);
  part.report.end_time = std::max(part.report.end_time, time);
  ROPEWALK_RETURN_IF_ERROR(part.writer.write(message, pass));
  return progress_->step(message.view.data.size());
}

Status Splitter::close(OpenPart part) {
  ROPEWALK_RETURN_IF_ERROR(part.writer.finish());
  part.report.path = part.writer.path();
  part.report.messages = part.writer.messages();
  part.report.bytes = part.writer.bytes();
  finished_.push_back(std::move(part));
  return ok_status();
}

// The log time of the first selected message from `time` on.
Result<std::optional<std::uint64_t>> Splitter::first_time_from(std::uint64_t time) {
  McapSelection selection = request_.selection;
  selection.last_per_channel.clear();
  selection.begin_time = std::max(selection.begin_time, time);
  if (selection.end_time.has_value() && *selection.end_time <= selection.begin_time) {
    return std::optional<std::uint64_t>();
  }
  ROPEWALK_ASSIGN_OR_RETURN(MessageFlow messages,
                            MessageFlow::create(inputs_, selection, McapOrder::log_time, log_));
  FlowMessage message;
  ROPEWALK_ASSIGN_OR_RETURN(const bool found, messages.next(message));
  return found ? std::optional(message.view.log_time) : std::nullopt;
}

Status Splitter::by_duration() {
  const std::uint64_t length = request_.duration_ns;
  ROPEWALK_ASSIGN_OR_RETURN(const auto first, first_time_from(0));
  if (!first.has_value()) return by_size_or_count();  // one part without messages
  const std::uint64_t origin = first.value();
  std::uint64_t at = origin;
  std::uint64_t attachments_from = 0;
  for (bool more_parts = true; more_parts;) {
    // Parts stay aligned to the first one, whatever gaps there are.
    const std::uint64_t begin = origin + (at - origin) / length * length;
    const bool open_end = begin > kLastTime - length;
    McapSelection selection = request_.selection;
    selection.begin_time = std::max(selection.begin_time, begin);
    if (!open_end) {
      selection.end_time = std::min(selection.end_time.value_or(kLastTime), begin + length);
    }
    const std::uint64_t last = selection.last_time();
    more_parts = false;
    if (!open_end && last != kLastTime) {
      ROPEWALK_ASSIGN_OR_RETURN(const auto next, first_time_from(last + 1));
      more_parts = next.has_value();
      at = next.value_or(0);
    }
    ROPEWALK_ASSIGN_OR_RETURN(MessageFlow messages, flow(selection));
    ROPEWALK_ASSIGN_OR_RETURN(OpenPart part, open(numbered(), messages));
    ROPEWALK_RETURN_IF_ERROR(
        part.writer.copy_attachments(attachments_from, more_parts ? last : kLastTime));
    attachments_from = last + 1;
    for (FlowMessage message;;) {
      ROPEWALK_ASSIGN_OR_RETURN(const bool more, messages.next(message));
      if (!more) break;
      ROPEWALK_RETURN_IF_ERROR(write(part, message, messages.pass()));
    }
    ROPEWALK_RETURN_IF_ERROR(close(std::move(part)));
  }
  return ok_status();
}

Status Splitter::by_size_or_count() {
  ROPEWALK_ASSIGN_OR_RETURN(MessageFlow messages, flow(request_.selection));
  std::optional<OpenPart> part;
  for (FlowMessage message;;) {
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, messages.next(message));
    if (more && part.has_value() && part->writer.messages() > 0 &&
        ((request_.count > 0 && part->writer.messages() >= request_.count) ||
         (request_.bytes > 0 && part->writer.bytes() >= request_.bytes))) {
      ROPEWALK_RETURN_IF_ERROR(close(std::move(*part)));
      part.reset();
    }
    if (!part.has_value()) {
      const bool first = number_ == 0;
      ROPEWALK_ASSIGN_OR_RETURN(part, open(numbered(), messages));
      if (first) {
        ROPEWALK_RETURN_IF_ERROR(part->writer.copy_attachments(0, kLastTime));
      }
    }
    if (!more) break;
    ROPEWALK_RETURN_IF_ERROR(write(*part, message, messages.pass()));
  }
  return close(std::move(*part));
}

Status Splitter::by_topic() {
  std::vector<std::string> topics;
  ROPEWALK_ASSIGN_OR_RETURN(
      const TopicFilter filter,
      TopicFilter::create(request_.selection.include_topics, request_.selection.exclude_topics));
  ROPEWALK_ASSIGN_OR_RETURN(const auto selected, selected_topics(inputs_.front().reader, filter));
  if (selected.has_value()) {
    topics = *selected;
  } else {
    for (const auto& [id, channel] : inputs_.front().reader.channels()) {
      topics.push_back(channel.topic);
    }
  }
  std::ranges::sort(topics);
  topics.erase(std::ranges::unique(topics).begin(), topics.end());
  std::set<std::string> names;
  bool first = true;
  for (std::size_t begin = 0; begin < topics.size(); begin += kOpenParts) {
    const std::vector<std::string> some(
        topics.begin() + static_cast<std::ptrdiff_t>(begin),
        topics.begin() + static_cast<std::ptrdiff_t>(std::min(topics.size(), begin + kOpenParts)));
    ROPEWALK_ASSIGN_OR_RETURN(MessageFlow messages, flow(request_.selection, some));
    std::map<std::string, OpenPart> parts;
    for (FlowMessage message;;) {
      ROPEWALK_ASSIGN_OR_RETURN(const bool more, messages.next(message));
      if (!more) break;
      const std::string& topic = message.view.channel->topic;
      auto part = parts.find(topic);
      if (part == parts.end()) {
        const std::string base = stem_ + "_" + file_name_of(request_.selection.renamed(topic));
        std::string name = base;
        for (int i = 2; !names.insert(name).second; ++i) name = fmt::format("{}-{}", base, i);
        ROPEWALK_ASSIGN_OR_RETURN(OpenPart opened, open(name + ".mcap", messages, topic));
        if (first) {
          ROPEWALK_RETURN_IF_ERROR(opened.writer.copy_attachments(0, kLastTime));
        }
        first = false;
        part = parts.emplace(topic, std::move(opened)).first;
      }
      ROPEWALK_RETURN_IF_ERROR(write(part->second, message, messages.pass()));
    }
    for (auto& [topic, part] : parts) {
      ROPEWALK_RETURN_IF_ERROR(close(std::move(part)));
    }
  }
  return ok_status();
}

Result<SplitReport> Splitter::run() {
  SplitReport report;
  ROPEWALK_ASSIGN_OR_RETURN(inputs_, open_inputs({request_.input}, request_.lenient, log_));
  report.bytes_read = inputs_.front().source->size();
  stem_ = request_.stem;
  if (stem_.empty()) {
    stem_ = request_.input == kStandardStream
                ? "split"
                : std::filesystem::path(request_.input).stem().string();
  }
  plan_ = {.inputs = &inputs_,
           .selection = &request_.selection,
           .writing = request_.writing,
           .kept = kept_compression(inputs_),
           .flush_between_passes = request_.order == McapOrder::topic,
           .log = &log_,
           .context = &context_};
  progress_.emplace(context_, "splitting", content_bytes(inputs_));
  ROPEWALK_RETURN_IF_ERROR(make_durable_directories(request_.output));
  if (request_.by_topic) {
    ROPEWALK_RETURN_IF_ERROR(by_topic());
  } else if (request_.duration_ns > 0) {
    ROPEWALK_RETURN_IF_ERROR(by_duration());
  } else {
    ROPEWALK_RETURN_IF_ERROR(by_size_or_count());
  }
  ROPEWALK_RETURN_IF_ERROR(context_.check_stop());
  for (OpenPart& part : finished_) {
    ROPEWALK_RETURN_IF_ERROR(part.writer.publish());
    report.messages += part.report.messages;
    report.bytes_written += part.report.bytes;
    report.parts.push_back(std::move(part.report));
  }
  report.problems = log_.take();
  return report;
}

}  // namespace

Status SplitRequest::validate() const {
  const int ways =
      (duration_ns > 0 ? 1 : 0) + (bytes > 0 ? 1 : 0) + (count > 0 ? 1 : 0) + (by_topic ? 1 : 0);
  if (ways != 1) {
    return invalid_argument("say one of duration, size, count and topic as the way to split");
  }
  if (stem.find('/') != std::string::npos) {
    return invalid_argument(fmt::format("stem '{}': a file name without directories", stem));
  }
  ROPEWALK_RETURN_IF_ERROR(selection.validate());
  return writing.validate();
}

bool SplitReport::lossy() const {
  return std::ranges::any_of(problems,
                             [](const FileProblem& p) { return is_copy_loss(p.problem.kind); });
}

Json SplitReport::to_json() const {
  Json json = Json::object();
  Json list = Json::array();
  for (const SplitPart& part : parts) {
    Json entry = Json::object();
    entry.set("path", part.path);
    if (!part.topic.empty()) entry.set("topic", part.topic);
    entry.set("messages", part.messages);
    entry.set("start_time", part.start_time);
    entry.set("end_time", part.end_time);
    entry.set("bytes", part.bytes);
    list.push_back(std::move(entry));
  }
  json.set("parts", std::move(list));
  json.set("messages", messages);
  json.set("bytes_read", bytes_read);
  json.set("bytes_written", bytes_written);
  json.set("seconds", seconds);
  json.set("problems", ropewalk::to_json(problems));
  json.set("loss", lossy());
  return json;
}

Result<SplitReport> split_mcap(const SplitRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  ROPEWALK_RETURN_IF_ERROR(request.validate());
  Splitter splitter(request, context);
  ROPEWALK_ASSIGN_OR_RETURN(SplitReport report, splitter.run());
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace ropewalk
