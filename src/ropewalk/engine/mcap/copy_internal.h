#pragma once
// The machinery of rewrite and split: MessageFlow gives the selected messages of all inputs in one
// order, PartWriter writes one file, with ids of its own.
#include <deque>
#include <memory>
#include <set>
#include <tuple>
#include <unordered_map>

#include "ropewalk/engine/mcap/rewrite.h"

namespace ropewalk {

/// Problems of all inputs, each once, though several passes meet them.
class ProblemLog {
 public:
  void add(const std::string& file, const std::vector<mcap::Problem>& problems);
  std::vector<FileProblem> take() { return std::move(problems_); }
  const std::vector<FileProblem>& entries() const { return problems_; }

 private:
  std::vector<FileProblem> problems_;
  std::set<std::tuple<std::string, mcap::ProblemKind, std::uint64_t, std::uint64_t>> seen_;
};

struct FlowMessage {
  mcap::MessageView view;
  std::size_t input = 0;
};

/// Lifetime: inputs, selection and log must outlive it. Not thread-safe.
class MessageFlow {
 public:
  /// `topics` narrows the selection to these names; without it all that the selection lets in.
  static Result<MessageFlow> create(const std::vector<McapInput>& inputs,
                                    const McapSelection& selection, McapOrder order,
                                    ProblemLog& log,
                                    const std::optional<std::vector<std::string>>& topics = {});
  MessageFlow(MessageFlow&&) noexcept;
  ~MessageFlow();

  /// Returns false at the end. `out` is valid until the next call.
  Result<bool> next(FlowMessage& out);
  /// Counts up whenever definitions seen before may have died: caches by pointer start anew. In
  /// topic order it does so at each topic.
  std::uint64_t pass() const;
  /// The topics let in of one input; nullopt: all.
  const std::optional<std::vector<std::string>>& topics_of(std::size_t input) const;

 private:
  struct Impl;
  explicit MessageFlow(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// How the codec of the inputs is kept: the codec of most compressed bytes; none where nothing is
/// compressed. Chunks that do not shrink are stored as they are in any case.
Compression kept_compression(const std::vector<McapInput>& inputs);

/// What the parts of one command share.
struct CopyPlan {
  const std::vector<McapInput>* inputs = nullptr;
  const McapSelection* selection = nullptr;
  McapWriting writing;
  Compression kept = Compression::none;
  ChannelCoalescing coalescing = ChannelCoalescing::automatic;
  bool allow_duplicate_metadata = false;
  bool flush_between_passes = false;
  ProblemLog* log = nullptr;
  const RunContext* context = nullptr;
};

/// One file being written. Not thread-safe.
class PartWriter {
 public:
  static Result<PartWriter> create(const CopyPlan& plan, const std::string& path, bool replace);
  PartWriter(PartWriter&&) noexcept;
  PartWriter& operator=(PartWriter&&) noexcept;
  ~PartWriter();

  /// Registers the definitions of all inputs that `flow` lets in, or those of one topic of them, so
  /// that ids stay.
  Status register_definitions(const MessageFlow& flow,
                              const std::optional<std::string>& topic = {});
  Status copy_metadata();
  /// Copies attachments whose log time the range holds.
  Status copy_attachments(std::uint64_t begin_time, std::uint64_t last_time);
  Status write(const FlowMessage& message, std::uint64_t pass);
  /// Writes the summary and makes the file durable under its temporary name.
  Status finish();
  Status publish();

  std::uint64_t messages() const;
  /// Bytes of the file so far, those of open chunks included.
  std::uint64_t bytes() const;
  const std::map<std::string, TopicCount>& topics() const;
  std::uint64_t metadata_count() const;
  std::uint64_t attachment_count() const;
  const std::string& path() const;

 private:
  struct Impl;
  explicit PartWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Opens all inputs and notes their problems. Errors: invalid_argument when none or when standard
/// input is named twice.
Result<std::vector<McapInput>> open_inputs(const std::vector<std::string>& paths, bool lenient,
                                           ProblemLog& log);

/// Progress by payload bytes. `total` of 0: unknown.
class CopyProgress {
 public:
  CopyProgress(const RunContext& context, std::string phase, std::uint64_t bytes_total)
      : context_(context), phase_(std::move(phase)), bytes_total_(bytes_total) {}
  /// Errors: cancelled.
  Status step(std::size_t payload_bytes);

 private:
  const RunContext& context_;
  std::string phase_;
  std::uint64_t bytes_total_;
  std::uint64_t bytes_ = 0;
  std::uint64_t messages_ = 0;
  std::uint64_t reported_ = 0;
};

/// Uncompressed bytes of all chunks, for progress.
std::uint64_t content_bytes(const std::vector<McapInput>& inputs);

}  // namespace ropewalk
