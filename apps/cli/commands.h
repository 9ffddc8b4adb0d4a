#pragma once
// The commands, one function each: it adds the subcommand with its options, help and example, and
// installs what runs when it is chosen.
#include "apps/cli/session.h"

namespace ropewalk::cli {

void add_simulate(CLI::App& app, Session& session);
void add_info(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_review(CLI::App& app, Session& session);
void add_export(CLI::App& app, Session& session);
void add_verify(CLI::App& app, Session& session);
void add_convert(CLI::App& app, Session& session);
void add_recover(CLI::App& app, Session& session);
void add_mcap(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

}  // namespace ropewalk::cli
