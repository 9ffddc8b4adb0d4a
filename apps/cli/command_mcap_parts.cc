// `ropewalk mcap get` and `add`: attachments and metadata out of a file and into one.
#include <fmt/format.h>

#include "ropewalk/engine/mcap/inspect.h"
#include "ropewalk/engine/mcap/parts.h"

#include "apps/cli/mcap_commands.h"

namespace ropewalk::cli {
namespace {

void add_get_attachment(CLI::App& get, Session& session) {
  auto request = std::make_shared<GetAttachmentRequest>();
  auto* command = get.add_subcommand("attachment", "Write the data of an attachment");
  command->add_option("file", request->input, "MCAP file; '-' is standard input")->required();
  command->add_option("-n,--name", request->name, "Name of the attachment")->required();
  command->add_option("--offset", request->offset, "Byte of its record, where names repeat");
  command->add_option("-o,--output", request->output, "File to write; '-' is standard output")
      ->default_val(kStandardStream);
  command->add_flag("--force", request->replace, "Replace an existing file");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap get attachment run.mcap -n map.png -o map.png");
  command->callback([=, &session] {
    session.run = [=, &session] {
      if (const Status status = refuse_terminal(request->output); !status.ok()) {
        return session.fail(status);
      }
      const auto index = get_attachment(*request, session.context());
      if (!index.ok()) return session.fail(index.status());
      if (session.json && request->output != kStandardStream) session.print_json(to_json(*index));
      print_beside(session, request->output,
                   fmt::format("{}: {}\n", request->output, human_bytes(index->data_size)));
      return kExitDone;
    };
  });
}

void add_get_metadata(CLI::App& get, Session& session) {
  struct State {
    std::string input;
    std::string name;
    std::optional<std::uint64_t> offset;
  };
  auto state = std::make_shared<State>();
  auto* command = get.add_subcommand("metadata", "Print metadata as JSON");
  command->add_option("file", state->input, "MCAP file; '-' is standard input")->required();
  command->add_option("-n,--name", state->name, "Name of the metadata")->required();
  command->add_option("--offset", state->offset, "Byte of its record, where names repeat");
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap get metadata run.mcap -n robot");
  command->callback([=, &session] {
    session.run = [=, &session] {
      const auto records = get_metadata(state->input, state->name, state->offset);
      if (!records.ok()) return session.fail(records.status());
      Json document = Json::array();
      for (const auto& record : *records) {
        Json entry = to_json(record);
        document.push_back(*entry.find("metadata"));
      }
      session.print_json(document.size() == 1 ? (*document.as_array())[0] : document);
      return kExitDone;
    };
  });
}

void add_add_attachment(CLI::App& add, Session& session) {
  struct State {
    AddAttachmentRequest request;
    std::string log_time;
    std::string create_time;
  };
  auto state = std::make_shared<State>();
  auto* command = add.add_subcommand("attachment", "Add a file as an attachment, in place");
  command->add_option("file", state->request.file, "MCAP file")->required();
  command->add_option("-f,--file", state->request.attachment, "File to attach")->required();
  command->add_option("-n,--name", state->request.name, "Name (default: that of the file)");
  command->add_option("--content-type", state->request.media_type, "Media type")
      ->capture_default_str();
  command->add_option("--log-time", state->log_time, "Nanoseconds or RFC 3339 (default: now)");
  command->add_option("--creation-time", state->create_time,
                      "Likewise (default: when the file was modified)");
  add_common_flags(*command, session, false);
  set_example(*command,
              "ropewalk mcap add attachment run.mcap -f map.png --content-type image/png");
  command->callback([=, &session] {
    session.run = [=, &session] {
      for (const auto& [text, time] :
           {std::pair(&state->log_time, &state->request.log_time),
            std::pair(&state->create_time, &state->request.create_time)}) {
        if (text->empty()) continue;
        const auto parsed = parse_time(*text);
        if (!parsed.ok()) return session.fail(parsed.status());
        *time = *parsed;
      }
      const auto head = add_attachment_file(state->request);
      if (!head.ok()) return session.fail(head.status());
      if (session.json) {
        Json json = Json::object();
        json.set("name", valid_utf8(head->name));
        json.set("media_type", valid_utf8(head->media_type));
        json.set("log_time", head->log_time);
        json.set("create_time", head->create_time);
        json.set("data_size", head->data_size);
        session.print_json(json);
      }
      session.print(fmt::format("{}: attachment {} of {}\n", state->request.file,
                                printable(head->name), human_bytes(head->data_size)));
      return kExitDone;
    };
  });
}

void add_add_metadata(CLI::App& add, Session& session) {
  struct State {
    std::string file;
    std::string name;
    std::vector<std::string> pairs;
  };
  auto state = std::make_shared<State>();
  auto* command = add.add_subcommand("metadata", "Add a metadata record, in place");
  command->add_option("file", state->file, "MCAP file")->required();
  command->add_option("-n,--name", state->name, "Name of the record")->required();
  command->add_option("-k,--key", state->pairs, "KEY=VALUE; may be given again")
      ->allow_extra_args(false);
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk mcap add metadata run.mcap -n robot -k arm=left -k serial=7");
  command->callback([=, &session] {
    session.run = [=, &session] {
      mcap::Metadata metadata{.name = state->name, .metadata = {}};
      for (const std::string& pair : state->pairs) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos || equals == 0) {
          return session.fail(invalid_argument(fmt::format("--key {}: expected KEY=VALUE", pair)));
        }
        metadata.metadata.emplace_back(pair.substr(0, equals), pair.substr(equals + 1));
      }
      if (const Status status = add_metadata_record(state->file, metadata); !status.ok()) {
        return session.fail(status);
      }
      if (session.json) session.print_json(to_json(metadata));
      session.print(fmt::format("{}: metadata {} with {} keys\n", state->file,
                                printable(metadata.name), metadata.metadata.size()));
      return kExitDone;
    };
  });
}

}  // namespace

void add_mcap_parts(CLI::App& mcap, Session& session) {
  auto* get = mcap.add_subcommand("get", "Take an attachment or metadata out of a file");
  get->require_subcommand(1);
  set_example(*get, "ropewalk mcap get attachment run.mcap -n map.png -o map.png");
  add_get_attachment(*get, session);
  add_get_metadata(*get, session);
  auto* add = mcap.add_subcommand("add", "Put an attachment or metadata into a file, in place");
  add->require_subcommand(1);
  set_example(*add, "ropewalk mcap add metadata run.mcap -n robot -k arm=left");
  add_add_attachment(*add, session);
  add_add_metadata(*add, session);
}

}  // namespace ropewalk::cli
