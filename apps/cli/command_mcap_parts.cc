// `ropewalk mcap get`: attachments and metadata out of a file.
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

}  // namespace

void add_mcap_parts(CLI::App& mcap, Session& session) {
  auto* get = mcap.add_subcommand("get", "Take an attachment or metadata out of a file");
  get->require_subcommand(1);
  set_example(*get, "ropewalk mcap get attachment run.mcap -n map.png -o map.png");
  add_get_attachment(*get, session);
  add_get_metadata(*get, session);
}

}  // namespace ropewalk::cli
