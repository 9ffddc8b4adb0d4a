// ropewalk: the command line. It parses, calls the engine and renders; work happens below.
#include <malloc.h>

#include <cstdlib>
#include <exception>
#include <new>

#include <fmt/format.h>

#include "ropewalk/engine/version.h"

#include "apps/cli/commands.h"

namespace {

int run(int argc, char** argv) {
  using namespace ropewalk::cli;
  Session session;
  CLI::App app(
      "Takes robot data from a recording to a training batch: review, split, export, prove.",
      "ropewalk");
  app.set_version_flag("--version", std::string("ropewalk ") + ropewalk::version());
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  app.footer(
      "Exit codes: 0 done, 1 faults found, 2 bad arguments, 3 done with loss, 4 damaged data;\n"
      "the whole table is docs/errors.md.\n\nExample:\n  ropewalk simulate demo/raw --episodes 8 "
      "--faults some\n  ropewalk review scan demo/raw --write\n  ropewalk export demo/raw --format "
      "lerobot_v3");
  add_simulate(app, session);
  add_info(app, session);
  add_check(app, session);
  add_review(app, session);
  add_export(app, session);
  add_verify(app, session);
  add_convert(app, session);
  add_recover(app, session);
  add_mcap(app, session);
  add_completion(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    app.exit(error);
    return exit_code(ropewalk::StatusCode::invalid_argument);
  }
  return session.run ? session.run() : exit_code(ropewalk::StatusCode::internal);
}

// Freed memory goes back to the system instead of into pools of each thread: what a command holds
// at its peak is then what it uses. An operator's own choice in the environment stands.
void keep_memory_low() {
  setenv("ARROW_DEFAULT_MEMORY_POOL", "system", 0);
  if (std::getenv("MALLOC_ARENA_MAX") == nullptr) mallopt(M_ARENA_MAX, 2);
}

}  // namespace

int main(int argc, char** argv) {
  keep_memory_low();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "error (resource_exhausted): out of memory\n");
    return ropewalk::cli::exit_code(ropewalk::StatusCode::resource_exhausted);
  } catch (const std::exception& error) {
    fmt::print(stderr, "error (internal): {}\n", error.what());
    return ropewalk::cli::exit_code(ropewalk::StatusCode::internal);
  }
}
