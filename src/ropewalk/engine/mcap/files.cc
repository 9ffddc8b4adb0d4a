#include "ropewalk/engine/mcap/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/format/mcap/edit.h"

namespace ropewalk {
namespace {

constexpr std::size_t kSpoolBlockBytes = 1 << 20;

// Standard output, buffered. What is written can be neither taken back nor made durable.
class StreamSink final : public Sink {
 public:
  StreamSink(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  Status append(ByteSpan bytes) override {
    size_ += bytes.size();
    if (bytes.size() < kSpoolBlockBytes) {
      buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
      return buffer_.size() < kSpoolBlockBytes ? ok_status() : flush();
    }
    ROPEWALK_RETURN_IF_ERROR(flush());
    return write_all(bytes);
  }
  Status sync() override { return flush(); }
  Status close() override { return flush(); }
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

 private:
  Status flush() {
    const Status status = write_all(buffer_);
    buffer_.clear();
    return status;
  }
  Status write_all(ByteSpan bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return errno_status(errno, name_ + ": write");
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return ok_status();
  }

  int descriptor_;
  std::string name_;
  Bytes buffer_;
  std::uint64_t size_ = 0;
};

// Copies what a descriptor gives into a file without a name and maps that file.
Result<std::shared_ptr<const Source>> spool(int from, const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("ropewalk-spool-" + random_uuid());
  struct Removal {
    const std::filesystem::path& path;
    ~Removal() { static_cast<void>(remove_file(path)); }
  } const removal{path};
  {
    ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_sink(path));
    Bytes block(kSpoolBlockBytes);
    while (true) {
      const ssize_t got = ::read(from, block.data(), block.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_status(errno, name + ": read");
      if (got == 0) break;
      ROPEWALK_RETURN_IF_ERROR(sink->append(ByteSpan(block).first(static_cast<std::size_t>(got)))
                                   .with_context("spooling " + name));
    }
    ROPEWALK_RETURN_IF_ERROR(sink->close());
  }
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path, {.map = true}));
  return std::shared_ptr<const Source>(std::move(source));
}

// A hidden name beside `target` that nobody else uses.
std::filesystem::path hidden_beside(const std::filesystem::path& target) {
  return target.parent_path() / fmt::format(".{}.part.{}.{}", target.filename().string(),
                                            ::getpid(), random_uuid().substr(0, 8));
}

Status check_target(const std::string& path, bool replace) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(path));
  if (!there.has_value() || (replace && !there->is_directory)) return ok_status();
  return already_exists(
      fmt::format("{}: is there already{}", path,
                  there->is_directory ? " and is a directory" : "; --force replaces it"));
}

Status rename_to_target(const std::filesystem::path& staged, const std::filesystem::path& target,
                        bool replace) {
  Status renamed = replace ? rename_path(staged, target) : rename_no_replace(staged, target);
  if (renamed.code() == StatusCode::unimplemented) {
    // A file system without the exclusive rename: look, then rename.
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(target));
    if (there.has_value()) return already_exists(target.string() + ": appeared meanwhile");
    renamed = rename_path(staged, target);
  }
  ROPEWALK_RETURN_IF_ERROR(renamed);
  return sync_directory(target.has_parent_path() ? target.parent_path() : ".");
}

}  // namespace

Result<std::shared_ptr<const Source>> open_stream(const std::string& path) {
  struct stat info {};
  if (path == kStandardStream) {
    if (::fstat(STDIN_FILENO, &info) != 0) return errno_status(errno, "standard input");
    if (!S_ISREG(info.st_mode)) return spool(STDIN_FILENO, "standard input");
    ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source("/proc/self/fd/0", {.map = true}));
    return std::shared_ptr<const Source>(std::move(source));
  }
  if (::stat(path.c_str(), &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode))) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return errno_status(errno, path);
    auto source = spool(descriptor, path);
    ::close(descriptor);
    return source;
  }
  // An edit that died half way is finished before anybody looks.
  if (S_ISREG(info.st_mode)) {
    ROPEWALK_ASSIGN_OR_RETURN([[maybe_unused]] const bool edited, mcap::complete_edit(path));
  }
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path, {.map = true}));
  return std::shared_ptr<const Source>(std::move(source));
}

Result<McapInput> open_mcap(const std::string& path, const mcap::ReaderOptions& options) {
  const std::string name = path == kStandardStream ? "standard input" : path;
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_stream(path));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(mcap::Reader reader, mcap::Reader::open(source, options), name);
  return McapInput{.name = name, .source = source, .reader = std::move(reader)};
}

Result<OutputFile> OutputFile::create(const std::string& path, bool replace) {
  if (path == kStandardStream) {
    return OutputFile("standard output", {}, true,
                      std::make_unique<StreamSink>(STDOUT_FILENO, "standard output"));
  }
  ROPEWALK_RETURN_IF_ERROR(check_target(path, replace));
  std::filesystem::path staged = hidden_beside(path);
  ROPEWALK_ASSIGN_OR_RETURN(auto sink, create_sink(staged));
  return OutputFile(path, std::move(staged), replace, std::move(sink));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      staged_(std::exchange(other.staged_, {})),
      replace_(other.replace_),
      sealed_(other.sealed_),
      published_(other.published_),
      sink_(std::move(other.sink_)) {}

OutputFile::~OutputFile() {
  if (staged_.empty() || published_) return;
  sink_.reset();
  static_cast<void>(remove_file(staged_));
}

Status OutputFile::seal() {
  if (sealed_) return ok_status();
  ROPEWALK_RETURN_IF_ERROR(sink_->sync());
  ROPEWALK_RETURN_IF_ERROR(sink_->close());
  sealed_ = true;
  return ok_status();
}

Status OutputFile::publish() {
  ROPEWALK_RETURN_IF_ERROR(seal());
  if (staged_.empty()) return ok_status();
  ROPEWALK_RETURN_IF_ERROR(rename_to_target(staged_, path_, replace_));
  published_ = true;
  return ok_status();
}

Result<StagedPath> StagedPath::create(const std::string& target, bool replace) {
  ROPEWALK_RETURN_IF_ERROR(check_target(target, replace));
  const std::filesystem::path hidden = hidden_beside(target);
  ROPEWALK_RETURN_IF_ERROR(make_directories(hidden));
  return StagedPath(hidden / std::filesystem::path(target).filename(), target, replace);
}

StagedPath::StagedPath(StagedPath&& other) noexcept
    : path_(std::exchange(other.path_, {})),
      target_(std::move(other.target_)),
      replace_(other.replace_) {}

StagedPath::~StagedPath() {
  if (!path_.empty()) static_cast<void>(remove_tree(path_.parent_path()));
}

Status StagedPath::publish() { return rename_to_target(path_, target_, replace_); }

bool is_copy_loss(mcap::ProblemKind kind) {
  return mcap::is_loss(kind) || kind == mcap::ProblemKind::duplicate_key ||
         kind == mcap::ProblemKind::trailing_data;
}

std::string to_line(const FileProblem& problem) {
  return problem.file + ": " + mcap::to_line(problem.problem);
}

Json to_json(const FileProblem& problem) {
  Json json = Json::object();
  json.set("file", problem.file);
  json.set("kind", mcap::problem_kind_name(problem.problem.kind));
  json.set("offset", problem.problem.offset);
  json.set("length", problem.problem.length);
  json.set("detail", problem.problem.detail);
  json.set("loss", is_copy_loss(problem.problem.kind));
  return json;
}

Json to_json(const std::vector<FileProblem>& problems) {
  Json json = Json::array();
  for (const FileProblem& problem : problems) json.push_back(to_json(problem));
  return json;
}

}  // namespace ropewalk
