// `ropewalk mcap info`, `ls` (also `list`) and `du`: what files hold.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/inspect.h"

#include "apps/cli/commands.h"
#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {
namespace {

std::string hertz(double value) {
  return value >= 100 ? fmt::format("{:.0f} Hz", value) : fmt::format("{:.2f} Hz", value);
}

std::string render_info(const McapInfoReport& report, TimeFormat format, bool rates) {
  std::string out = styled(printable(report.name) + "\n", Style::bold);
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("  {} {}\n", styled(fmt::format("{:<12}", name), Style::dim), value);
  };
  line("size", human_bytes(report.size_bytes));
  line("library", printable(report.header.library));
  line("profile", printable(report.header.profile));
  line("messages", fmt::format("{}{}", human_count(static_cast<std::int64_t>(report.messages)),
                               report.counted_by_reading ? " (counted by reading)" : ""));
  if (report.messages > 0) {
    line("duration", format_duration(report.end_time - report.start_time));
    line("start", format_time(report.start_time, format));
    line("end", format_time(report.end_time, format));
  }
  std::string state = report.finished ? "finished" : "unfinished";
  if (!report.has_summary) state += ", no summary";
  line("state", report.finished && report.has_summary ? state : styled(state, Style::yellow));
  for (const auto& [codec, use] : report.codecs) {
    line(&codec == &report.codecs.begin()->first ? "chunks" : "",
         fmt::format("{}: {}, {} from {} ({:.1f} %)", printable(codec),
                     human_count(static_cast<std::int64_t>(use.chunks)),
                     human_bytes(use.compressed_bytes), human_bytes(use.uncompressed_bytes),
                     use.uncompressed_bytes == 0
                         ? 100.0
                         : 100.0 * static_cast<double>(use.compressed_bytes) /
                               static_cast<double>(use.uncompressed_bytes)));
  }
  if (report.chunks > 0) {
    line("largest", human_bytes(report.largest_chunk_bytes));
    line("overlap", report.overlap_depth <= 1
                        ? "none"
                        : fmt::format("up to {} chunks, {}", report.overlap_depth,
                                      human_bytes(report.overlap_bytes)));
  }
  line("schemas", fmt::format("{}", report.schemas));
  line("attachments", fmt::format("{}", report.attachments));
  line("metadata", fmt::format("{}", report.metadata));
  if (report.channels.empty()) return out;
  out += "\n";
  std::vector<std::string> header{"id", "topic", "messages", "rate"};
  if (rates) header.insert(header.end(), {"slowest", "fastest"});
  header.insert(header.end(), {"encoding", "schema"});
  Table table(header);
  for (const std::size_t column : {0U, 2U, 3U}) table.align_right(column);
  if (rates) table.align_right(4), table.align_right(5);
  const double seconds = report.duration_seconds();
  for (const ChannelInfo& info : report.channels) {
    const std::uint64_t count = info.messages.value_or(0);
    std::vector<std::string> row{
        fmt::format("{}", info.channel.id), printable(info.channel.topic),
        human_count(static_cast<std::int64_t>(count)),
        count > 1 && seconds > 0 ? hertz(static_cast<double>(count) / seconds) : "–"};
    if (rates) {
      row.push_back(info.min_hz > 0 ? hertz(info.min_hz) : "–");
      row.push_back(info.max_hz > 0 ? hertz(info.max_hz) : "–");
    }
    row.push_back(printable(info.channel.message_encoding));
    row.push_back(info.schema_name.empty()
                      ? "–"
                      : printable(info.schema_name + " [" + info.schema_encoding + "]"));
    table.add(std::move(row));
  }
  return out + table.render();
}

void add_info_command(CLI::App& mcap, Session& session) {
  auto* command = mcap.add_subcommand("info", "Say what files hold: times, channels, compression");
  auto inputs = std::make_shared<std::vector<std::string>>();
  auto format = std::make_shared<std::string>("auto");
  auto rates = std::make_shared<bool>(false);
  command->add_option("file", *inputs, "MCAP files; '-' is standard input")->required();
  command->add_flag("--rates", *rates, "Read message indexes for the range of rates per channel");
  command->add_option("--time-format", *format, "How times are printed")
      ->check(CLI::IsMember({"auto", "rfc3339", "seconds", "nanoseconds"}))
      ->capture_default_str();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap info run.mcap");
  command->callback([=, &session] {
    session.run = [=, &session] {
      Json documents = Json::array();
      int code = kExitDone;
      for (const std::string& input : *inputs) {
        const auto report = mcap_info({.input = input, .rates = *rates}, session.context());
        if (!report.ok()) return session.fail(report.status());
        documents.push_back(report->to_json());
        if (&input != &inputs->front()) session.print("\n");
        session.print(render_info(*report, *time_format_from_name(*format), *rates));
        print_problems(session, report->problems);
        for (const FileProblem& problem : report->problems) {
          if (is_copy_loss(problem.problem.kind)) code = kExitLossReported;
        }
      }
      if (session.json) {
        session.print_json(documents.size() == 1 ? (*documents.as_array())[0] : documents);
      }
      return code;
    };
  });
}

struct ListRequest {
  std::string input;
  TimeFormat format = TimeFormat::automatic;
  bool data = false;
};

std::string list_channels(const mcap::Reader& reader, const ListRequest&, Json& json) {
  Table table({"id", "schema", "topic", "encoding", "metadata"});
  table.align_right(0);
  for (const auto& [id, channel] : reader.channels()) {
    const auto found = reader.schemas().find(channel.schema_id);
    const auto* schema = found == reader.schemas().end() ? nullptr : &found->second;
    Json entry = to_json(channel, schema);
    table.add({fmt::format("{}", id), schema == nullptr ? "–" : printable(schema->name),
               printable(channel.topic), printable(channel.message_encoding),
               entry.find("metadata")->dump()});
    json.push_back(std::move(entry));
  }
  return table.render();
}

std::string list_schemas(const mcap::Reader& reader, const ListRequest& request, Json& json) {
  Table table({"id", "name", "encoding", "bytes"});
  table.align_right(0);
  table.align_right(3);
  std::string texts;
  for (const auto& [id, schema] : reader.schemas()) {
    json.push_back(to_json(schema, request.data));
    table.add({fmt::format("{}", id), printable(schema.name), printable(schema.encoding),
               fmt::format("{}", schema.data.size())});
    if (request.data) {
      texts += "\n" + styled(fmt::format("{} {}", id, printable(schema.name)), Style::bold) + "\n" +
               valid_utf8(as_text(schema.data)) + "\n";
    }
  }
  return table.render() + texts;
}

std::string list_chunks(const mcap::Reader& reader, const ListRequest& request, Json& json) {
  Table table({"offset", "length", "start", "end", "codec", "stored", "records", "ratio",
               "channels", "index"});
  for (const std::size_t column : {0U, 1U, 5U, 6U, 7U, 8U, 9U}) table.align_right(column);
  for (const auto& chunk : reader.chunks()) {
    json.push_back(to_json(chunk));
    const double ratio = chunk.uncompressed_size == 0
                             ? 1.0
                             : static_cast<double>(chunk.compressed_size) /
                                   static_cast<double>(chunk.uncompressed_size);
    table.add({fmt::format("{}", chunk.chunk_start_offset), fmt::format("{}", chunk.chunk_length),
               format_time(chunk.message_start_time, request.format),
               format_time(chunk.message_end_time, request.format),
               chunk.compression.empty() ? "none" : printable(chunk.compression),
               fmt::format("{}", chunk.compressed_size), fmt::format("{}", chunk.uncompressed_size),
               fmt::format("{:.1f} %", 100 * ratio),
               fmt::format("{}", chunk.message_index_offsets.size()),
               fmt::format("{}", chunk.message_index_length)});
  }
  return table.render();
}

std::string list_attachments(const mcap::Reader& reader, const ListRequest& request, Json& json) {
  Table table({"name", "media type", "log time", "created", "bytes", "offset"});
  table.align_right(4);
  table.align_right(5);
  for (const auto& index : reader.attachments()) {
    json.push_back(to_json(index));
    table.add({printable(index.name), printable(index.media_type),
               format_time(index.log_time, request.format),
               format_time(index.create_time, request.format), fmt::format("{}", index.data_size),
               fmt::format("{}", index.offset)});
  }
  return table.render();
}

std::string list_metadata(const mcap::Reader& reader, const ListRequest&, Json& json) {
  Table table({"name", "offset", "length", "metadata"});
  table.align_right(1);
  table.align_right(2);
  for (const auto& index : reader.metadata()) {
    const auto record = reader.read_metadata(index);
    Json entry = record.ok() ? to_json(*record) : Json::object();
    if (!record.ok()) entry.set("name", valid_utf8(index.name));
    entry.set("offset", index.offset);
    entry.set("length", index.length);
    if (!record.ok()) entry.set("error", valid_utf8(record.status().message()));
    const Json* content = entry.find("metadata");
    table.add({printable(index.name), fmt::format("{}", index.offset),
               fmt::format("{}", index.length),
               content == nullptr ? "cannot be read" : content->dump_spaced()});
    json.push_back(std::move(entry));
  }
  return table.render();
}

using Lister = std::string (*)(const mcap::Reader&, const ListRequest&, Json&);

void add_lister(CLI::App& list, Session& session, const std::string& what, Lister lister) {
  auto* command = list.add_subcommand(what, "List " + what);
  auto request = std::make_shared<ListRequest>();
  auto format = std::make_shared<std::string>("auto");
  command->add_option("file", request->input, "MCAP file; '-' is standard input")->required();
  command->add_option("--time-format", *format, "How times are printed")
      ->check(CLI::IsMember({"auto", "rfc3339", "seconds", "nanoseconds"}))
      ->capture_default_str();
  if (what == "schemas") command->add_flag("--data", request->data, "Print their texts too");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap ls " + what + " run.mcap");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->format = *time_format_from_name(*format);
      const auto input = open_mcap(request->input);
      if (!input.ok()) return session.fail(input.status());
      Json json = Json::array();
      const std::string text = lister(input->reader, *request, json);
      if (session.json) {
        session.print_json(json);
      } else {
        session.print(text);
      }
      std::vector<FileProblem> problems;
      for (const auto& problem : input->reader.problems()) {
        problems.push_back({.file = input->name, .problem = problem});
      }
      print_problems(session, problems);
      return kExitDone;
    };
  });
}

void add_list(CLI::App& mcap, Session& session) {
  auto* list = mcap.add_subcommand("ls", "List channels, schemas, chunks, attachments or metadata");
  list->alias("list");
  list->require_subcommand(1);
  set_example(*list, "ropewalk mcap ls channels run.mcap");
  add_lister(*list, session, "channels", list_channels);
  add_lister(*list, session, "schemas", list_schemas);
  add_lister(*list, session, "chunks", list_chunks);
  add_lister(*list, session, "attachments", list_attachments);
  add_lister(*list, session, "metadata", list_metadata);
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "–"
                    : fmt::format("{:.2f} %",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string render_usage(const UsageReport& report) {
  const auto kinds = [](const std::map<std::string, UsageReport::Use>& uses, const char* title,
                        std::uint64_t whole) {
    std::vector<std::pair<std::string, UsageReport::Use>> rows(uses.begin(), uses.end());
    std::ranges::stable_sort(rows, std::ranges::greater(),
                             [](const auto& row) { return row.second.bytes; });
    Table table({title, "records", "bytes", "share"});
    for (const std::size_t column : {1U, 2U, 3U}) table.align_right(column);
    for (const auto& [kind, use] : rows) {
      table.add({kind, human_count(static_cast<std::int64_t>(use.records)), human_bytes(use.bytes),
                 percent(use.bytes, whole)});
    }
    return table.render();
  };
  std::string out = kinds(report.records, "record in the file", report.size_bytes);
  if (!report.chunk_records.empty()) {
    std::uint64_t whole = 0;
    for (const auto& [kind, use] : report.chunk_records) whole += use.bytes;
    out += "\n" + kinds(report.chunk_records, "record in chunks", whole);
  }
  std::vector<std::pair<std::string, UsageReport::TopicUse>> topics(report.topics.begin(),
                                                                    report.topics.end());
  std::ranges::stable_sort(topics, std::ranges::greater(),
                           [](const auto& row) { return row.second.bytes; });
  std::uint64_t whole = 0;
  for (const auto& [topic, use] : topics) whole += use.bytes;
  Table table({"topic", "messages", "bytes", "share", "stored"});
  for (const std::size_t column : {1U, 2U, 3U, 4U}) table.align_right(column);
  for (const auto& [topic, use] : topics) {
    table.add({printable(topic), human_count(static_cast<std::int64_t>(use.messages)),
               human_bytes(use.bytes), percent(use.bytes, whole), human_bytes(use.stored_bytes)});
  }
  return out + "\n" + table.render();
}

void add_usage(CLI::App& mcap, Session& session) {
  auto* command = mcap.add_subcommand("du", "Measure bytes by kind of record and by topic");
  auto request = std::make_shared<UsageRequest>();
  command->add_option("file", request->input, "MCAP file; '-' is standard input")->required();
  command->add_flag("--approximate", request->approximate,
                    "Use message indexes instead of decoding chunks");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap du run.mcap");
  command->callback([=, &session] {
    session.run = [=, &session] {
      const auto report = mcap_usage(*request, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        session.print(render_usage(*report));
      }
      print_problems(session, report->problems);
      return report->lossy() ? kExitLossReported : kExitDone;
    };
  });
}

}  // namespace

void add_mcap_inspect(CLI::App& mcap, Session& session) {
  add_info_command(mcap, session);
  add_list(mcap, session);
  add_usage(mcap, session);
}

}  // namespace ropewalk::cli
