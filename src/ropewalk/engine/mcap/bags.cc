#include "ropewalk/engine/mcap/bags.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/engine/mcap/copy_internal.h"
#include "ropewalk/engine/mcap/inspect.h"
#include "ropewalk/format/bag/bag.h"

namespace ropewalk {
namespace {

std::string_view target_name(BagTarget target) {
  switch (target) {
    case BagTarget::mcap:
      return "mcap";
    case BagTarget::rosbag1:
      return "rosbag1";
    case BagTarget::rosbag2:
      return "rosbag2";
  }
  return "mcap";
}

BagTarget target_of(const BagConvertRequest& request) {
  if (request.target.has_value()) return *request.target;
  if (request.output == kStandardStream || request.output.ends_with(".mcap")) {
    return BagTarget::mcap;
  }
  return request.output.ends_with(".bag") ? BagTarget::rosbag1 : BagTarget::rosbag2;
}

bool is_loss(bag::ProblemKind kind) {
  switch (kind) {
    case bag::ProblemKind::truncated:
    case bag::ProblemKind::bad_record:
    case bag::ProblemKind::lost_range:
    case bag::ProblemKind::chunk_damaged:
    case bag::ProblemKind::chunk_cut:
    case bag::ProblemKind::unknown_compression:
    case bag::ProblemKind::limit:
    case bag::ProblemKind::unknown_channel:
    case bag::ProblemKind::database_damaged:
    case bag::ProblemKind::rows_lost:
    case bag::ProblemKind::message_damaged:
    case bag::ProblemKind::missing_file:
      return true;
    case bag::ProblemKind::unfinished:
    case bag::ProblemKind::bad_index:
    case bag::ProblemKind::index_mismatch:
    case bag::ProblemKind::unindexed:
    case bag::ProblemKind::missing_schema:
    case bag::ProblemKind::conflicting_definition:
    case bag::ProblemKind::metadata_mismatch:
      return false;
  }
  return true;
}

void add_problems(BagConvertReport& report, const std::vector<bag::Problem>& problems) {
  for (const bag::Problem& problem : problems) {
    std::string line = bag::to_line(problem);
    if (std::ranges::find(report.problems, line) != report.problems.end()) continue;
    report.lossy = report.lossy || is_loss(problem.kind);
    report.problems.push_back(std::move(line));
  }
}

mcap::Channel mcap_channel(const bag::Channel& channel, bag::BagKind kind) {
  mcap::Channel out;
  out.topic = channel.topic;
  out.message_encoding = channel.message_encoding;
  const auto put = [&](const char* key, const std::string& value) {
    if (!value.empty()) out.metadata.emplace_back(key, value);
  };
  if (kind == bag::BagKind::rosbag1) {
    put("callerid", channel.callerid);
    if (channel.latching) put("latching", "1");
    put("md5sum", channel.md5sum);
  } else {
    put("offered_qos_profiles", channel.offered_qos_profiles);
    put("topic_type_hash", channel.type_hash);
  }
  return out;
}

Status write_metadata_record(mcap::Writer& writer, const bag::BagReader& bag) {
  if (!bag.metadata().has_value()) return ok_status();
  return writer.write_metadata(
      {.name = "rosbag2",
       .metadata = {{"serialized_metadata", bag::to_yaml(*bag.metadata(), false)}}});
}

Status bag_to_mcap(const BagConvertRequest& request, const bag::BagReader& bag,
                   const RunContext& context, BagConvertReport& report) {
  mcap::WriterOptions options;
  options.profile = bag.kind() == bag::BagKind::rosbag1 ? "ros1" : "ros2";
  options.compression = request.writing.compression == "preserve"
                            ? Compression::zstd
                            : *compression_from_name(request.writing.compression);
  options.level = request.writing.level;
  options.chunk_bytes = request.writing.chunk_bytes;
  options.chunked = request.writing.chunked;
  options.chunk_crc = options.attachment_crc = options.summary_crc = request.writing.crc;
  options.unused_definitions = true;
  options.detect_incompressible = false;  // the order of the messages stays
  options.pool = context.pool;
  ROPEWALK_ASSIGN_OR_RETURN(mcap::Writer writer, mcap::Writer::create(options));
  ROPEWALK_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(request.output, request.replace));
  ROPEWALK_RETURN_IF_ERROR(writer.open(output.sink()));
  ROPEWALK_RETURN_IF_ERROR(write_metadata_record(writer, bag));
  std::vector<std::uint16_t> ids;
  for (const bag::Channel& channel : bag.channels()) {
    mcap::Channel out = mcap_channel(channel, bag.kind());
    if (!channel.type.empty()) {
      ROPEWALK_ASSIGN_OR_RETURN(
          out.schema_id,
          writer.add_schema(channel.type, channel.schema_encoding, as_bytes(channel.schema)));
    }
    if (channel.schema_encoding.empty()) {
      report.notes.push_back(
          fmt::format("topic {}: no definition of {} is known; --definitions "
                      "takes a folder of them",
                      channel.topic, channel.type));
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint16_t id, writer.add_channel(out));
    ids.push_back(id);
  }
  std::uint64_t before_epoch = 0;
  CopyProgress progress(context, "converting", 0);
  bag::MessageReader messages = bag.messages({.order = bag::Order::file});
  for (bag::MessageView m; messages.next(m);) {
    if (m.time_ns < 0) {
      ++before_epoch;
      continue;
    }
    const auto time = static_cast<std::uint64_t>(m.time_ns);
    ROPEWALK_RETURN_IF_ERROR(writer.write({.channel_id = ids.at(m.channel_index),
                                           .sequence = 0,
                                           .log_time = time,
                                           .publish_time = time},
                                          m.data));
    TopicCount& count = report.topics[m.channel->topic];
    ++count.messages;
    count.bytes += m.data.size();
    ++report.messages;
    ROPEWALK_RETURN_IF_ERROR(progress.step(m.data.size()));
  }
  add_problems(report, messages.problems());
  ROPEWALK_RETURN_IF_ERROR(messages.status());
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  if (before_epoch > 0) {
    report.dropped.push_back(fmt::format("{} messages before 1970", before_epoch));
  }
  ROPEWALK_RETURN_IF_ERROR(writer.finish());
  report.bytes_written = writer.bytes_written();
  report.output = output.path();
  return output.publish();
}

// A bag writer of either kind, under a temporary name.
class BagOutput {
 public:
  static Result<BagOutput> create(const BagConvertRequest& request, BagTarget target);
  Result<std::uint32_t> add_channel(const bag::Channel& channel) {
    return one_.has_value() ? one_->add_channel(channel) : two_->add_channel(channel);
  }
  Status write(std::uint32_t id, std::int64_t time_ns, ByteSpan data) {
    return one_.has_value() ? one_->write(id, time_ns, data) : two_->write(id, time_ns, data);
  }
  Status publish() {
    ROPEWALK_RETURN_IF_ERROR(one_.has_value() ? one_->finish() : two_->finish());
    return staged_.publish();
  }

 private:
  explicit BagOutput(StagedPath staged) : staged_(std::move(staged)) {}
  StagedPath staged_;  // outlives the writers
  std::optional<bag::Rosbag1Writer> one_;
  std::optional<bag::Rosbag2Writer> two_;
};

Result<BagOutput> BagOutput::create(const BagConvertRequest& request, BagTarget target) {
  ROPEWALK_ASSIGN_OR_RETURN(StagedPath staged, StagedPath::create(request.output, request.replace));
  BagOutput out(std::move(staged));
  if (target == BagTarget::rosbag1) {
    bag::Rosbag1WriterOptions options;
    options.compression = request.bag_compression == "lz4"   ? Compression::lz4_frame
                          : request.bag_compression == "bz2" ? Compression::bzip2
                                                             : Compression::none;
    ROPEWALK_ASSIGN_OR_RETURN(out.one_, bag::Rosbag1Writer::create(out.staged_.path(), options));
  } else {
    ROPEWALK_ASSIGN_OR_RETURN(out.two_, bag::Rosbag2Writer::create(out.staged_.path()));
  }
  return out;
}

bag::Channel bag_channel(const mcap::Channel& channel, const mcap::Schema* schema) {
  bag::Channel out;
  out.topic = channel.topic;
  out.message_encoding = channel.message_encoding;
  if (schema != nullptr) {
    out.type = schema->name;
    out.schema_encoding = schema->encoding;
    out.schema = std::string(as_text(schema->data));
  }
  for (const auto& [key, value] : channel.metadata) {
    if (key == "md5sum") out.md5sum = value;
    if (key == "callerid") out.callerid = value;
    if (key == "latching") out.latching = value == "1" || value == "true";
    if (key == "offered_qos_profiles") out.offered_qos_profiles = value;
    if (key == "topic_type_hash") out.type_hash = value;
  }
  return out;
}

// Why a bag cannot hold the channel; empty when it can.
std::string refusal(const mcap::Channel& channel, const mcap::Schema* schema, BagTarget target) {
  const char* wanted = target == BagTarget::rosbag1 ? "ros1" : "cdr";
  if (channel.message_encoding != wanted) {
    return fmt::format("{} (encoding '{}', expected '{}')", channel.topic, channel.message_encoding,
                       wanted);
  }
  if (schema == nullptr) return channel.topic + " (no schema)";
  return {};
}

Status mcap_to_bag(const BagConvertRequest& request, BagTarget target,
                   const std::vector<McapInput>& inputs, const RunContext& context,
                   BagConvertReport& report) {
  std::string refused;
  for (const McapInput& input : inputs) {
    const mcap::Reader& reader = input.reader;
    for (const auto& [id, channel] : reader.channels()) {
      const auto schema = reader.schemas().find(channel.schema_id);
      const std::string why =
          refusal(channel, schema == reader.schemas().end() ? nullptr : &schema->second, target);
      if (!why.empty()) refused += (refused.empty() ? "" : ", ") + why;
    }
  }
  if (!refused.empty() && !request.skip_unsupported) {
    return failed_precondition(
        fmt::format("a {} bag cannot hold: {}; --skip-unsupported leaves them out",
                    target_name(target), refused));
  }
  ROPEWALK_ASSIGN_OR_RETURN(BagOutput output, BagOutput::create(request, target));
  ProblemLog log;
  const McapSelection selection;
  ROPEWALK_ASSIGN_OR_RETURN(MessageFlow flow,
                            MessageFlow::create(inputs, selection, McapOrder::log_time, log));
  std::unordered_map<const mcap::Channel*, std::optional<std::uint32_t>> ids;
  std::uint64_t pass = 0;
  std::uint64_t skipped = 0;
  std::uint64_t publish_times = 0;
  std::uint64_t sequences = 0;
  CopyProgress progress(context, "converting", content_bytes(inputs));
  for (FlowMessage message;;) {
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, flow.next(message));
    if (!more) break;
    const mcap::MessageView& view = message.view;
    if (flow.pass() != pass) ids.clear();
    pass = flow.pass();
    auto id = ids.find(view.channel);
    if (id == ids.end()) {
      std::optional<std::uint32_t> made;
      if (refusal(*view.channel, view.schema, target).empty()) {
        ROPEWALK_ASSIGN_OR_RETURN(made,
                                  output.add_channel(bag_channel(*view.channel, view.schema)));
      }
      id = ids.emplace(view.channel, made).first;
    }
    ROPEWALK_RETURN_IF_ERROR(progress.step(view.data.size()));
    if (!id->second.has_value()) {
      ++skipped;
      continue;
    }
    if (view.log_time > static_cast<std::uint64_t>(INT64_MAX)) {
      return out_of_range(fmt::format("topic {}: log time {} is later than a bag can say",
                                      view.channel->topic, view.log_time));
    }
    if (view.publish_time != view.log_time) ++publish_times;
    if (view.sequence != 0) ++sequences;
    ROPEWALK_RETURN_IF_ERROR(
        output.write(*id->second, static_cast<std::int64_t>(view.log_time), view.data));
    TopicCount& count = report.topics[view.channel->topic];
    ++count.messages;
    count.bytes += view.data.size();
    ++report.messages;
  }
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  std::uint64_t attachments = 0;
  std::uint64_t metadata = 0;
  for (const McapInput& input : inputs) {
    attachments += input.reader.attachments().size();
    for (const auto& index : input.reader.metadata())
      if (index.name != "rosbag2") ++metadata;
  }
  const auto dropped = [&](std::uint64_t count, const char* what) {
    if (count > 0) report.dropped.push_back(fmt::format("{} {}", count, what));
  };
  dropped(skipped, "messages of channels that a bag cannot hold");
  dropped(attachments, "attachments");
  dropped(metadata, "metadata records");
  report.lossy = report.lossy || !report.dropped.empty();
  if (publish_times > 0) {
    report.notes.push_back(
        fmt::format("publish times of {} messages that differ from their log times are not kept",
                    publish_times));
  }
  if (sequences > 0) {
    report.notes.push_back(fmt::format("sequence numbers of {} messages are not kept", sequences));
  }
  for (const McapInput& input : inputs) log.add(input.name, input.reader.problems());
  for (const FileProblem& problem : log.entries()) {
    report.problems.push_back(to_line(problem));
    report.lossy = report.lossy || is_copy_loss(problem.problem.kind);
  }
  report.output = request.output;
  return output.publish();
}

bool looks_like_mcap(const Source& source) {
  std::array<std::uint8_t, 8> head{};
  return source.size() >= head.size() && source.read_at(0, head).ok() &&
         std::ranges::equal(std::span(head).first(5), std::span(mcap::kMagic).first(5));
}

Status convert_mcaps(const BagConvertRequest& request, BagTarget target,
                     const std::vector<std::string>& paths, const RunContext& context,
                     BagConvertReport& report) {
  report.from = "mcap";
  if (target == BagTarget::mcap) {
    RewriteRequest rewrite{.inputs = paths,
                           .output = request.output,
                           .replace = request.replace,
                           .order = McapOrder::log_time,
                           .writing = request.writing,
                           .allow_duplicate_metadata = true,
                           .lenient = request.lenient};
    ROPEWALK_ASSIGN_OR_RETURN(const RewriteReport done, rewrite_mcap(rewrite, context));
    report.messages = done.messages;
    report.bytes_written = done.bytes_written;
    report.topics = done.topics;
    report.output = done.output;
    report.lossy = done.lossy();
    for (const FileProblem& problem : done.problems) report.problems.push_back(to_line(problem));
    return ok_status();
  }
  ProblemLog log;
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<McapInput> inputs,
                            open_inputs(paths, request.lenient, log));
  return mcap_to_bag(request, target, inputs, context, report);
}

// Standard input can be read only once: what it gave is used as it is.
Status convert_mcap_stream(const BagConvertRequest& request, BagTarget target,
                           const std::shared_ptr<const Source>& source, const RunContext& context,
                           BagConvertReport& report) {
  if (target == BagTarget::mcap) {
    return invalid_argument("standard input is MCAP already: `ropewalk mcap filter` copies it");
  }
  report.from = "mcap";
  mcap::ReaderOptions options;
  options.lenient = request.lenient;
  ROPEWALK_ASSIGN_OR_RETURN(mcap::Reader reader, mcap::Reader::open(source, options));
  std::vector<McapInput> inputs;
  inputs.push_back({.name = "standard input", .source = source, .reader = std::move(reader)});
  return mcap_to_bag(request, target, inputs, context, report);
}

}  // namespace

std::optional<BagTarget> bag_target_from_name(std::string_view name) {
  if (name == "mcap") return BagTarget::mcap;
  if (name == "bag" || name == "rosbag1") return BagTarget::rosbag1;
  if (name == "db3" || name == "rosbag2") return BagTarget::rosbag2;
  return std::nullopt;
}

Status BagConvertRequest::validate() const {
  if (bag_compression != "none" && bag_compression != "lz4" && bag_compression != "bz2") {
    return invalid_argument(
        fmt::format("bag compression '{}': expected none, lz4 or bz2", bag_compression));
  }
  if (output.empty()) return invalid_argument("no output is given");
  return writing.validate();
}

Result<BagConvertReport> convert_bag(const BagConvertRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  ROPEWALK_RETURN_IF_ERROR(request.validate());
  const BagTarget target = target_of(request);
  if (target != BagTarget::mcap && request.output == kStandardStream) {
    return invalid_argument("only MCAP goes to standard output");
  }
  BagConvertReport report;
  report.to = target_name(target);
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(request.input));
  const bool directory = info.has_value() && std::filesystem::is_directory(request.input);
  const bool from_stream = request.input == kStandardStream;
  std::shared_ptr<const Source> source;
  if (!directory) {
    ROPEWALK_ASSIGN_OR_RETURN(source, open_stream(request.input));
    if (looks_like_mcap(*source)) {
      ROPEWALK_RETURN_IF_ERROR(
          from_stream ? convert_mcap_stream(request, target, source, context, report)
                      : convert_mcaps(request, target, {request.input}, context, report));
      report.seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
      return report;
    }
  }
  const bag::ReaderOptions options{.lenient = request.lenient, .definitions = request.definitions};
  auto bag = from_stream ? bag::BagReader::open(source, options)
                         : bag::BagReader::open(std::filesystem::path(request.input), options);
  if (!bag.ok() && bag.status().reason() == "MCAP_STORAGE") {
    ROPEWALK_ASSIGN_OR_RETURN(const bag::BagMetadata metadata,
                              bag::read_bag_metadata(request.input));
    std::vector<std::string> files;
    for (const std::string& file : metadata.files) {
      files.push_back((std::filesystem::path(request.input) / file).string());
    }
    ROPEWALK_RETURN_IF_ERROR(convert_mcaps(request, target, files, context, report));
  } else if (!bag.ok()) {
    return bag.status();
  } else {
    report.from = bag->kind() == bag::BagKind::rosbag1 ? "rosbag1" : "rosbag2";
    if (target != BagTarget::mcap) {
      return unimplemented(
          fmt::format("{} to {}: bags are converted to MCAP and from it", report.from, report.to));
    }
    add_problems(report, bag->problems());
    ROPEWALK_RETURN_IF_ERROR(bag_to_mcap(request, *bag, context, report));
    report.lossy = report.lossy || !report.dropped.empty();
  }
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

Json BagConvertReport::to_json() const {
  Json json = Json::object();
  json.set("from", from);
  json.set("to", to);
  json.set("output", output);
  json.set("messages", messages);
  json.set("bytes_written", bytes_written);
  json.set("seconds", seconds);
  Json per_topic = Json::object();
  for (const auto& [topic, count] : topics) {
    Json entry = Json::object();
    entry.set("messages", count.messages);
    entry.set("bytes", count.bytes);
    per_topic.set(valid_utf8(topic), std::move(entry));
  }
  json.set("topics", std::move(per_topic));
  const auto list = [](const std::vector<std::string>& lines) {
    Json out = Json::array();
    for (const std::string& line : lines) out.push_back(valid_utf8(line));
    return out;
  };
  json.set("dropped", list(dropped));
  json.set("notes", list(notes));
  json.set("problems", list(problems));
  json.set("loss", lossy);
  return json;
}

}  // namespace ropewalk
