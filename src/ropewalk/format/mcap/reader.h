#pragma once
// mcap::Reader: opens any MCAP file, finished or not, and delivers its messages in log-time order,
// reverse log-time order or file order. The summary is used where it holds; where it is missing or
// lies, the records are walked and the index is built in memory. Damage is told in problems() and
// costs only the messages it hit.
//
//   ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path));
//   ROPEWALK_ASSIGN_OR_RETURN(mcap::Reader reader, mcap::Reader::open(std::move(source)));
//   mcap::MessageReader messages = reader.messages({.topics = {{"joints"}}});
//   for (mcap::MessageView m; messages.next(m);) use(m.channel->topic, m.log_time, m.data);
//   ROPEWALK_RETURN_IF_ERROR(messages.status());
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/format/mcap/problem.h"
#include "ropewalk/format/mcap/record_reader.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {

struct ReaderOptions {
  Limits limits;
  /// Delivers what cannot be verified, marked Verified::unverified: chunks whose CRC differs, what
  /// can be decoded of damaged ones, loose records found after damage; and opens a file whose
  /// beginning is damaged. Off: all that is skipped and reported, but for the beginning of a chunk
  /// that the end of the file cuts, which is delivered, marked, in both cases.
  bool lenient = false;
  /// Decoded chunks that one MessageReader or MessageLoader keeps. When overlapping chunks need
  /// more, copies of their next messages are kept and they are decoded again; results do not depend
  /// on it.
  std::uint64_t cache_bytes = 64ULL << 20;
  ThreadPool* pool = nullptr;  ///< decodes chunks before their turn; null: on the calling thread
};

enum class Order : std::uint8_t { log_time, reverse_log_time, file };

struct MessageQuery {
  Order order = Order::log_time;  ///< equal times keep the order of the file
  std::uint64_t begin_time = 0;
  std::uint64_t last_time = std::numeric_limits<std::uint64_t>::max();  ///< inclusive
  /// Topics to deliver; without it all, and none when it is empty.
  std::optional<std::vector<std::string>> topics;
};

/// Where one message stands; read it again with a MessageLoader.
struct MessageRef {
  std::uint64_t log_time = 0;
  std::uint64_t offset = 0;   ///< in the decoded records of its segment
  std::uint32_t segment = 0;  ///< a chunk or a run of loose messages
  std::uint16_t channel_id = 0;
};

/// Lifetime: valid until the next call on the reader that gave it.
struct MessageView : Message {
  const Channel* channel = nullptr;
  const Schema* schema = nullptr;  ///< null where the channel has none
  Verified verified = Verified::no_crc;
  const ChunkIndex* chunk = nullptr;  ///< that it stands in; null for a loose message
  std::uint64_t offset = 0;           ///< in the decoded records of its segment
  std::uint32_t segment = 0;          ///< a chunk or a run of loose messages

  MessageRef place() const {
    return {.log_time = log_time, .offset = offset, .segment = segment, .channel_id = channel_id};
  }
};

/// A record with an opcode of 0x80 and above.
struct PrivateRecord {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< with the 9 bytes of the record head
  std::uint8_t opcode = 0;
};

/// The data of a message as it lies in the file.
struct StoredData {
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

struct FileMap;  // what is known of a file; shared by its readers

/// Not thread-safe; readers of one file may run beside each other. Limits: memory is about
/// ReaderOptions::cache_bytes and the largest chunk, however chunks overlap.
class MessageReader {
 public:
  MessageReader(MessageReader&&) noexcept;
  MessageReader& operator=(MessageReader&&) noexcept;
  ~MessageReader();

  /// Returns false at the end, and when the source fails, which status() then tells.
  bool next(MessageView& out);
  const Status& status() const;
  /// What was met while reading, beside Reader::problems().
  const std::vector<Problem>& problems() const;

 private:
  friend class Reader;
  struct Impl;
  explicit MessageReader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Reads single messages by their place. Not thread-safe.
class MessageLoader {
 public:
  MessageLoader(MessageLoader&&) noexcept;
  MessageLoader& operator=(MessageLoader&&) noexcept;
  ~MessageLoader();

  /// Errors: data_loss naming the chunk when it is damaged or when the index lies about it.
  Result<MessageView> load(const MessageRef& ref);

 private:
  friend class Reader;
  struct Impl;
  explicit MessageLoader(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Threads: const members may run concurrently. Copies are cheap and share the file.
/// Spec: Ropewalk's MCAP page, sections 3 and 9.
class Reader {
 public:
  /// Errors: data_loss when the file is empty or not MCAP at all; whatever the source says.
  static Result<Reader> open(std::shared_ptr<const Source> source, ReaderOptions options = {});

  const Header& header() const;
  bool finished() const;     ///< the file ends with a footer
  bool has_summary() const;  ///< a summary was there and held
  const std::map<std::uint16_t, Schema>& schemas() const;
  const std::map<std::uint16_t, Channel>& channels() const;
  /// As stored in the summary; nullopt when absent.
  const std::optional<Statistics>& statistics() const;
  /// All chunks, in file order, those included that no index lists.
  std::vector<ChunkIndex> chunks() const;
  const std::vector<AttachmentIndex>& attachments() const;
  const std::vector<MetadataIndex>& metadata() const;
  /// Private records outside chunks, but for those of Ropewalk's own recordings.
  const std::vector<PrivateRecord>& private_records() const;
  /// What was wrong while opening, in the order met.
  const std::vector<Problem>& problems() const;

  /// The channels with this topic: several are normal.
  std::vector<const Channel*> channels_of(std::string_view topic) const;

  MessageReader messages(MessageQuery query = {}) const;
  /// Lists the messages of one topic in log-time order, from message indexes where they hold.
  /// Limits: memory of 24 bytes per message.
  Result<std::vector<MessageRef>> locate(std::string_view topic) const;
  MessageLoader loader() const;
  /// Finds the data of a message in the file, so that a large one can be read in parts; nullopt
  /// when its chunk is compressed. Checks the CRC of the chunk, in bounded memory. Errors:
  /// data_loss naming the chunk when it is damaged or when the index lies about it.
  Result<std::optional<StoredData>> stored_data(const MessageRef& ref) const;

  Result<Metadata> read_metadata(const MetadataIndex& index) const;
  /// Returns the content of a private record.
  Result<Bytes> read_private(const PrivateRecord& record) const;
  /// Reads the whole data section and compares it with the CRC in DataEnd. Returns nullopt when
  /// there is nothing to compare or it agrees.
  Result<std::optional<Problem>> check_data_crc() const;
  /// Hands the data to `take` in parts and checks the CRC at the end.
  /// Errors: data_loss when the record or its CRC differs; what `take` returns.
  Status read_attachment(const AttachmentIndex& index,
                         const std::function<Status(ByteSpan)>& take) const;

 private:
  friend const FileMap& file_map_of(const Reader& reader);
  explicit Reader(std::shared_ptr<const FileMap> map) : map_(std::move(map)) {}
  std::shared_ptr<const FileMap> map_;
};

}  // namespace ropewalk::mcap
