#pragma once
// The files of the MCAP commands: inputs by path or from standard input, outputs that appear whole
// or not at all.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/base/core/json.h"
#include "ropewalk/format/mcap/mcap.h"

namespace ropewalk {

/// The name that stands for standard input or output.
inline constexpr const char* kStandardStream = "-";

/// An MCAP file that was opened. Lifetime: the reader shares the source.
struct McapInput {
  std::string name;  ///< the path, or "standard input"
  std::shared_ptr<const Source> source;
  mcap::Reader reader;
};

/// Opens a source: a regular file is mapped into memory; "-" and pipes are first spooled to a
/// temporary file that has no name. Errors: not_found, permission_denied, failed_precondition.
Result<std::shared_ptr<const Source>> open_stream(const std::string& path);
/// Errors: as open_stream; data_loss when the file is empty or no MCAP file.
Result<McapInput> open_mcap(const std::string& path, const mcap::ReaderOptions& options = {});

/// A file that is written under a temporary name beside its target, or straight to standard output.
/// Destroyed before publish() it leaves nothing.
class OutputFile {
 public:
  /// Errors: already_exists when the target is there and may not be replaced; as create_sink.
  static Result<OutputFile> create(const std::string& path, bool replace);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  Sink& sink() { return *sink_; }
  const std::string& path() const { return path_; }
  /// Where the bytes are now: to read them back before they are published. Empty for a stream.
  const std::filesystem::path& staged() const { return staged_; }
  /// Makes the bytes durable; publish() then only renames.
  Status seal();
  /// fsync, rename, fsync of the directory. Errors: already_exists when the name was taken since.
  Status publish();

 private:
  OutputFile(std::string path, std::filesystem::path staged, bool replace,
             std::unique_ptr<Sink> sink)
      : path_(std::move(path)),
        staged_(std::move(staged)),
        replace_(replace),
        sink_(std::move(sink)) {}
  std::string path_;
  std::filesystem::path staged_;
  bool replace_;
  bool sealed_ = false;
  bool published_ = false;
  std::unique_ptr<Sink> sink_;
};

/// A name beside the target, in a hidden directory of its own, for writers that make a file or a
/// directory by themselves. Destroyed before publish() it leaves nothing.
class StagedPath {
 public:
  /// Errors: already_exists when the target is there and may not be replaced. A directory is never
  /// replaced.
  static Result<StagedPath> create(const std::string& target, bool replace);
  StagedPath(StagedPath&& other) noexcept;
  StagedPath& operator=(StagedPath&&) = delete;
  ~StagedPath();

  const std::filesystem::path& path() const { return path_; }
  /// Renames and fsyncs the directory. What was written is durable already.
  Status publish();

 private:
  StagedPath(std::filesystem::path path, std::filesystem::path target, bool replace)
      : path_(std::move(path)), target_(std::move(target)), replace_(replace) {}
  std::filesystem::path path_;
  std::filesystem::path target_;
  bool replace_;
};

/// A problem with the file it was found in.
struct FileProblem {
  std::string file;
  mcap::Problem problem;
};

/// Whether a problem means that a copy lacks something: what is lost, and what a copy cannot hold.
bool is_copy_loss(mcap::ProblemKind kind);
/// One line: `robot.mcap: byte 40112 (+1024): chunk_crc: …`.
std::string to_line(const FileProblem& problem);
Json to_json(const FileProblem& problem);
Json to_json(const std::vector<FileProblem>& problems);

}  // namespace ropewalk
