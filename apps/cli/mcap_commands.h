#pragma once
// The commands below `ropewalk mcap`, one function each, and what they share: options that several
// have, and how problems of a file reach the user.
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/engine/mcap/rewrite.h"

#include "apps/cli/session.h"

namespace ropewalk::cli {

void add_mcap_inspect(CLI::App& mcap, Session& session);  ///< info, ls, du
void add_mcap_rewrite(CLI::App& mcap,
                      Session& session);  ///< filter, sort, compress, …, merge, trim
void add_mcap_split(CLI::App& mcap, Session& session);
void add_mcap_proof(CLI::App& mcap, Session& session);  ///< doctor, diff
void add_mcap_parts(CLI::App& mcap, Session& session);  ///< get, add
void add_mcap_cat(CLI::App& mcap, Session& session);
void add_mcap_convert(CLI::App& mcap, Session& session);  ///< convert, recover
void add_mcap_extract(CLI::App& mcap, Session& session);

/// Texts of options, turned into requests after parsing.
struct SelectionFlags {
  std::vector<std::string> rename;  ///< "old:new"
  std::string start;
  std::string end;
  double start_seconds = -1;
  double end_seconds = -1;
  std::string chunk_size;
  bool exclude_metadata = false;
  bool exclude_attachments = false;
  bool drop_unused = false;
  bool no_chunks = false;
  bool no_crc = false;
  std::string order = "preserve";
};

/// -y, -n, -l, --rename, --topic-prefix, --exclude-metadata, --exclude-attachments, --drop-unused.
void add_topic_flags(CLI::App& command, McapSelection& selection, SelectionFlags& flags);
/// -S, -E, -s, -e.
void add_time_flags(CLI::App& command, SelectionFlags& flags);
/// --compression, --level, --chunk-size, --no-chunks, --no-crc.
void add_writing_flags(CLI::App& command, McapWriting& writing, SelectionFlags& flags);
void add_order_flag(CLI::App& command, SelectionFlags& flags);
/// Errors: invalid_argument for what cannot be read.
Status apply_flags(const SelectionFlags& flags, McapSelection& selection, McapWriting& writing,
                   McapOrder& order);

/// Prints problems of files on standard error, at most 20 of them. Silent with --json, which
/// carries them in its document.
void print_problems(Session& session, const std::vector<FileProblem>& problems);
/// Errors: invalid_argument when `path` is standard output and that is a terminal.
Status refuse_terminal(const std::string& path);
/// Whether results go to standard error because standard output carries a file.
void print_beside(Session& session, const std::string& output, const std::string& text);
/// "ropewalk mcap info" with a terminal: control characters of foreign names are made visible.
std::string printable(std::string_view text);

}  // namespace ropewalk::cli
