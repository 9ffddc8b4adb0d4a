#pragma once
// What both LeRobot sinks do with files: write and hash in one pass, copy, remux and encode clips,
// and keep a bounded number of these jobs under way.
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/dataset/lerobot/prove.h"
#include "ropewalk/episode/episode.h"
#include "ropewalk/format/video/encoder.h"
#include "ropewalk/format/video/mp4_writer.h"

namespace ropewalk::lerobot_internal {

/// A new file that is hashed while it is written.
class HashingSink final : public Sink {
 public:
  /// Creates `root`/`path` and the directories above it.
  static Result<std::unique_ptr<HashingSink>> create(const std::filesystem::path& root,
                                                     std::string path);
  Status append(ByteSpan bytes) override;
  Status sync() override { return file_->sync(); }
  Status close() override { return file_->close(); }
  std::uint64_t size() const override { return file_->size(); }
  const std::string& name() const override { return file_->name(); }

  /// Syncs and closes the file and returns its entry for the manifest.
  Result<WrittenFile> finish();

 private:
  HashingSink(std::unique_ptr<Sink> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)) {}
  std::unique_ptr<Sink> file_;
  std::string path_;
  Sha256 hash_;
};

/// What jobs of a sink write, gathered from all threads.
class Written {
 public:
  void add(WrittenFile file);
  void add(ClipRecord clip);
  /// Sorted by path (clips by path and first frame), so that thread timing does not show.
  std::vector<WrittenFile> take_files();
  std::vector<ClipRecord> take_clips();

 private:
  std::mutex mutex_;
  std::vector<WrittenFile> files_;
  std::vector<ClipRecord> clips_;
};

/// Runs jobs on a pool, or inline without one, with a bound on how many are under way: two batches
/// of at most `batch` jobs or `batch_bytes`. The first error stops everything behind it.
/// Not thread-safe.
class JobWindow {
 public:
  explicit JobWindow(std::size_t batch = 32, std::uint64_t batch_bytes = 64ULL << 20)
      : batch_(batch), batch_bytes_(batch_bytes) {}
  /// `memory_bytes` is what the job holds until it has run.
  Status run(ThreadPool* pool, std::uint64_t memory_bytes, std::function<Status()> job);
  Status wait();

 private:
  std::size_t batch_;
  std::uint64_t batch_bytes_;
  std::size_t jobs_ = 0;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<TaskGroup> running_;
  std::unique_ptr<TaskGroup> previous_;
};

/// One camera of one episode, ready to be written after the Episode is gone.
struct Clip {
  std::optional<std::filesystem::path> file;  ///< holds exactly this clip
  std::unique_ptr<PacketReader> reader;       ///< it may outlive its Episode
  std::shared_ptr<const Mp4Index> index;      ///< of `file`, once load_index() read it
  VideoParams params;
  std::int64_t frames = 0;
  bool encoded_here = false;  ///< `file` is ours and temporary
};

struct EncodeOptions {
  EncoderSettings settings;
  bool repair_video = false;  ///< encode anew what cannot be copied
};

/// Opens the encoded form of a camera and checks that it has a packet for every row. Returns
/// nullopt when the camera has to be encoded: there is no encoded form, or it cannot be copied and
/// `repair_video` is on (with a finding).
/// Errors: data_loss when packets and rows differ; those of Episode::packets.
Result<std::optional<Clip>> open_clip(const Episode& episode, const std::string& camera,
                                      const EncodeOptions& options, Findings& findings);

/// Reads the packet table of `clip.file` and lets go of the reader and what it keeps open; does
/// nothing for a clip without a file.
Status load_index(Clip& clip);

/// Decodes a camera and encodes it as `path`, which is relative to `root`. Returns the manifest
/// entry through `written` unless that is null. Errors: data_loss when frames and rows differ.
Result<EncodedVideo> encode_clip(const Episode& episode, const std::string& camera,
                                 const std::filesystem::path& root, const std::string& path,
                                 const EncodeOptions& options, std::stop_token stop,
                                 WrittenFile* written);

/// Appends all packets of `clip` to `writer` and returns their SHA-256.
Result<std::string> append_packets(Clip& clip, Mp4Writer& writer, std::stop_token stop);

/// Fills the declaration of a camera from the stream: shape and, where they disagree or are absent,
/// the keys of `info`. Returns whether shape or codec had said something else.
bool describe_camera(Feature& feature, const VideoParams& params, Rational fps);

/// Writes a small file below `root`, fsynced. Returns its manifest entry.
Result<WrittenFile> put_text(const std::filesystem::path& root, const std::string& path,
                             std::string_view text);

}  // namespace ropewalk::lerobot_internal
