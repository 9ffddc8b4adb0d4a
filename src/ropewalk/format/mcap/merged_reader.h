#pragma once
// MergedReader: several MCAP files as one stream in log-time order. Channels that are equal in
// everything but their id share one id, and so do schemas. Equal times keep the order of the files
// as given, and in each file that of the file.
//
//   ROPEWALK_ASSIGN_OR_RETURN(auto merged, mcap::MergedReader::open(sources));
//   mcap::MergedMessages messages = merged.messages();
//   for (mcap::MergedView m; messages.next(m);) use(m.file, m.channel->topic, m.data);
//   ROPEWALK_RETURN_IF_ERROR(messages.status());
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "ropewalk/format/mcap/reader.h"

namespace ropewalk::mcap {

/// When channels of different files become one.
enum class Coalesce : std::uint8_t {
  equal,            ///< topic, encodings, schema and metadata agree
  ignore_metadata,  ///< topic, encodings and schema agree; the metadata of the first is kept
  none,             ///< never: each file keeps channels of its own
};

struct MergeOptions {
  ReaderOptions reader;  ///< cache_bytes is shared by all files
  Coalesce coalesce = Coalesce::equal;
};

/// `channel`, `schema` and `channel_id` are those of the merged stream. Lifetime: as MessageView;
/// channel and schema live as long as the MergedReader or any of its messages.
struct MergedView : MessageView {
  std::size_t file = 0;  ///< in the order given
};

/// Not thread-safe.
class MergedMessages {
 public:
  MergedMessages(MergedMessages&&) noexcept;
  MergedMessages& operator=(MergedMessages&&) noexcept;
  ~MergedMessages();

  /// Returns false at the end, and when a source fails or ids run out, which status() then tells.
  bool next(MergedView& out);
  const Status& status() const;
  /// What was met while reading file `file`.
  const std::vector<Problem>& problems(std::size_t file) const;

 private:
  friend class MergedReader;
  struct Impl;
  explicit MergedMessages(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Threads: not thread-safe, its messages included: they share the tables of ids.
class MergedReader {
 public:
  /// Errors: as Reader::open, with the name of the file; resource_exhausted when more channels or
  /// schemas are needed than there are ids.
  static Result<MergedReader> open(std::vector<std::shared_ptr<const Source>> sources,
                                   MergeOptions options = {});
  MergedReader(MergedReader&&) noexcept;
  MergedReader& operator=(MergedReader&&) noexcept;
  ~MergedReader();

  std::size_t size() const;
  const Reader& file(std::size_t index) const;
  /// Those known so far: reading may add channels that only stand in chunks.
  const std::map<std::uint16_t, Schema>& schemas() const;
  const std::map<std::uint16_t, Channel>& channels() const;

  /// In Order::file the files follow each other.
  MergedMessages messages(const MessageQuery& query = {}) const;

 private:
  struct Tables;
  explicit MergedReader(std::shared_ptr<Tables> tables);
  friend class MergedMessages;
  friend struct MergedMessages::Impl;
  std::shared_ptr<Tables> tables_;
};

}  // namespace ropewalk::mcap
