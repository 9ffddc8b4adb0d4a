#pragma once
// ROS 1 bags of version 2.0: records, and what is known of an opened file.
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/format/bag/bag_internal.h"

namespace ropewalk::bag {

inline constexpr std::string_view kRosbag1Magic = "#ROSBAG V2.0\n";
// The header record is padded, so that the first chunk starts here.
inline constexpr std::uint64_t kRosbag1DataBegin = 4117;
inline constexpr std::uint64_t kRosbag1HeaderRecordBytes = kRosbag1DataBegin - 13;

enum class Op : std::uint8_t {
  message = 0x02,
  bag_header = 0x03,
  index_data = 0x04,
  chunk = 0x05,
  chunk_info = 0x06,
  connection = 0x07,
};

// The fields of a record header: `u32 length | name=value` in a row. Lifetime: views into it.
class Fields {
 public:
  /// Errors: data_loss when the lengths do not add up or a name is missing.
  static Result<Fields> parse(ByteSpan header);

  std::optional<ByteSpan> find(std::string_view name) const;
  std::string text(std::string_view name) const;
  template <std::integral T>
  std::optional<T> number(std::string_view name) const {
    const auto value = find(name);
    if (!value || value->size() != sizeof(T)) return std::nullopt;
    T out;
    std::memcpy(&out, value->data(), sizeof(T));
    return out;
  }
  /// Nanoseconds; ROS 1 has two u32.
  std::optional<std::int64_t> time(std::string_view name) const;
  std::optional<Op> op() const;

 private:
  std::vector<std::pair<std::string_view, ByteSpan>> fields_;
};

std::int64_t ros1_time(std::uint32_t seconds, std::uint32_t nanoseconds);

// `u32 header length | header | u32 data length | data`.
struct RecordHead {
  std::uint64_t offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t data_size = 0;
  Fields fields;  ///< valid until the next view of the same window
  Op op = Op::message;
  std::uint64_t end() const { return data_offset + data_size; }
};

// Reads a source through one buffer, or from its map.
class Window {
 public:
  explicit Window(const Source& source) : source_(source) {}
  /// Lifetime: valid until the next call. Errors: out_of_range past the end.
  Result<ByteSpan> view(std::uint64_t offset, std::uint64_t size);
  /// At most `size` bytes, fewer at the end of the file.
  Result<ByteSpan> view_up_to(std::uint64_t offset, std::uint64_t size);
  const Source& source() const { return source_; }

 private:
  const Source& source_;
  Bytes buffer_;
  std::uint64_t begin_ = 0;
};

/// Parses the head at `offset`. Errors: data_loss; the data may go past the end of the file.
Result<RecordHead> read_head(Window& window, std::uint64_t offset);
/// Parses the head at the front of `bytes`, records of a chunk. Offsets count from its begin.
Result<RecordHead> parse_head(ByteSpan bytes, std::uint64_t offset);

// A chunk, or a run of messages and connections that stand outside of one.
struct Segment {
  std::uint64_t offset = 0;  ///< of the record, or of the first of the run
  std::uint64_t end = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t data_size = 0;     ///< as stored
  std::uint64_t decoded_size = 0;  ///< as stated
  Compression codec = Compression::none;
  bool is_chunk = true;
  bool cut = false;  ///< the file ends inside of it
  bool empty = false;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
};

// A message in the decoded records of a segment.
struct Entry {
  std::int64_t time_ns = 0;
  std::uint32_t channel = 0;
  std::uint32_t data_size = 0;
  std::uint64_t data_offset = 0;
};

struct Decoded {
  Bytes buffer;
  ByteSpan records;  ///< into the buffer, or into the mapped file
  bool unverified = false;
};

class Rosbag1File final : public BagFile {
 public:
  Rosbag1File(std::shared_ptr<const Source> opened, const ReaderOptions& with)
      : source(std::move(opened)), options(with) {}
  Result<std::unique_ptr<MessageStream>> stream(const Selection& selection) const override;

  /// Defines a connection from its record. Errors: data_loss.
  Status define(const Fields& head, ByteSpan data, std::uint64_t offset, std::uint64_t length);
  /// Decodes a segment; what is wrong goes to `log` and leaves no records. Errors: of the source.
  Status decode(const Segment& segment, Decoded& out, ProblemLog& log) const;
  /// Lists the messages of a decoded segment; `definer` gets its connections when given.
  void walk(const Segment& segment, const Decoded& decoded, std::vector<Entry>& out,
            ProblemLog& log, Rosbag1File* definer) const;

  std::shared_ptr<const Source> source;
  ReaderOptions options;
  std::vector<Segment> segments;  ///< in file order
  std::unordered_map<std::uint32_t, std::uint32_t> channel_of_connection;
};

/// "none", "lz4" or "bz2".
std::optional<Compression> rosbag1_codec(std::string_view name);
/// Walks [begin, end) and appends its segments, their connections, counts and times.
Status scan_rosbag1(Rosbag1File& file, std::uint64_t begin, std::uint64_t end);

}  // namespace ropewalk::bag
