#pragma once
// What the readers of the two kinds of bags have in common.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/format/bag/reader.h"

namespace ropewalk::bag {

// Collects problems; a hostile file may have millions, of which the first of each kind are told and
// the rest is counted.
class ProblemLog {
 public:
  explicit ProblemLog(std::string file = {}) : file_(std::move(file)) {}
  void add(ProblemKind kind, std::uint64_t offset, std::uint64_t length, std::string detail);
  void append(const std::vector<Problem>& problems);
  /// Entries as told so far; the counts of those left out are brought up to date.
  const std::vector<Problem>& entries() const { return entries_; }

 private:
  struct Folded {
    std::uint64_t seen = 0;
    std::size_t last_entry = 0;
  };
  std::string file_;
  std::vector<Problem> entries_;
  std::map<ProblemKind, Folded> folded_;
};

// What a query selects: one flag per channel, and times.
struct Selection {
  Order order = Order::time;
  std::int64_t begin_ns = 0;
  std::int64_t last_ns = 0;
  std::vector<bool> channels;

  bool wants(std::uint32_t channel, std::int64_t time_ns) const {
    return channels[channel] && time_ns >= begin_ns && time_ns <= last_ns;
  }
};

// Messages of one file, one after the other.
class MessageStream {
 public:
  virtual ~MessageStream() = default;
  /// Sets channel_index, time_ns, data and unverified; false at the end.
  virtual Result<bool> next(MessageView& out) = 0;

  ProblemLog problems;
};

// One opened bag, shared by its readers and never changed after opening.
class BagFile {
 public:
  virtual ~BagFile() = default;
  virtual Result<std::unique_ptr<MessageStream>> stream(const Selection& selection) const = 0;

  BagKind kind = BagKind::rosbag1;
  std::vector<Channel> channels;
  std::optional<TimeRange> range;
  std::optional<BagMetadata> metadata;
  ProblemLog problems;

  /// Sums the channels; nullopt when one is not counted.
  std::optional<std::uint64_t> message_count() const;
  void extend_range(std::int64_t first_ns, std::int64_t last_ns);
};

bool is_rosbag1(ByteSpan head);
bool is_sqlite(ByteSpan head);
Result<std::unique_ptr<BagFile>> open_rosbag1(std::shared_ptr<const Source> source,
                                              const ReaderOptions& options);
/// `messages_compressed` as metadata.yaml says; without it the database's own metadata decides.
Result<std::unique_ptr<BagFile>> open_db3(std::shared_ptr<const Source> source,
                                          const ReaderOptions& options,
                                          std::optional<bool> messages_compressed);
Result<std::unique_ptr<BagFile>> open_directory(const std::filesystem::path& directory,
                                                const ReaderOptions& options);

/// Opens a file of a database: unpacked when it is zstd, recovered when a write-ahead log lies
/// beside it, which is told in `problems`.
Result<std::shared_ptr<const Source>> open_db3_source(const std::filesystem::path& path,
                                                      const ReaderOptions& options,
                                                      ProblemLog& problems);
/// Unpacks a zstd file into a temporary one that is gone when it is closed.
Result<std::shared_ptr<const Source>> unpack_source(const Source& packed,
                                                    const ReaderOptions& options);
/// Opens a temporary file and takes its name away: it is gone when the source is closed.
Result<std::shared_ptr<const Source>> open_and_unlink(const std::filesystem::path& path);

}  // namespace ropewalk::bag
