#pragma once
// FileMap: what is known of an MCAP file after opening it: definitions, and the segments (chunks
// and runs of loose messages) that tile its data section. Segments are loaded and checked here.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "ropewalk/format/mcap/private_records.h"
#include "ropewalk/format/mcap/reader.h"

namespace ropewalk::mcap {

/// A loose run ends at this size, so that it loads like a chunk.
inline constexpr std::uint64_t kLooseRunBytes = 1ULL << 20;

/// A chunk, or a run of records outside chunks that begins and ends at record bounds.
struct Segment {
  bool is_chunk = true;
  bool cut = false;      ///< a chunk whose end is not in the file
  bool trusted = false;  ///< times and channel ids were compared with the content or its index
  bool suspect = false;  ///< looking at its content met problems: it is read, so that they are told
  bool index_crc = false;  ///< the index entry stands under a CRC that holds
  std::uint64_t offset = 0;
  std::uint64_t end =
      0;             ///< of the chunk record or of the run; MessageIndex records follow a chunk
  ChunkIndex index;  ///< times and ids also of a loose run

  std::uint64_t end_with_index() const { return is_chunk ? end + index.message_index_length : end; }
};

/// A Schema or Channel record outside chunks.
struct LooseDefinition {
  std::uint64_t offset = 0;
  std::optional<Schema> schema;
  std::optional<Channel> channel;
};

struct FileMap {
  std::shared_ptr<const Source> source;
  ReaderOptions options;
  Header header;
  bool finished = false;
  bool has_summary = false;
  std::map<std::uint16_t, Schema> schemas;
  std::map<std::uint16_t, Channel> channels;
  std::optional<Statistics> statistics;
  std::vector<Segment> segments;  // in file order
  std::vector<AttachmentIndex> attachments;
  std::vector<MetadataIndex> metadata;
  std::vector<PrivateRecord> private_records;
  std::vector<LooseDefinition> loose_definitions;  // in file order, of ids that have several
  std::set<std::uint16_t> ambiguous_channels;      // ids with several meanings
  std::set<std::uint16_t> ambiguous_schemas;
  std::optional<RecordingRecord> recording;  // what a finished recording says of its own records
  std::optional<std::uint64_t> data_end_offset;  // of the DataEnd record
  std::vector<Problem> problems;

  void report(ProblemKind kind, std::uint64_t offset, std::uint64_t length, std::string detail) {
    problems.push_back(
        {.kind = kind, .offset = offset, .length = length, .detail = std::move(detail)});
  }
  /// Keeps the first definition of an id; a differing one is reported. Those that stand outside
  /// chunks in the data section are `loose` and kept by their places where an id has several.
  void define(Schema schema, std::uint64_t offset, std::uint64_t length, bool loose = false);
  void define(Channel channel, std::uint64_t offset, std::uint64_t length, bool loose = false);
};

const FileMap& file_map_of(const Reader& reader);

/// Reads summary or records; fills the map. Errors: not MCAP at all, or the source fails.
Status open_file_map(FileMap& map);
/// Loads the summary that ends at the end of the file. Returns false, with a problem, when it is
/// not to be used. `data_end` is then where the data section ends.
Result<bool> load_summary(FileMap& map, std::uint64_t* data_end);
/// Takes what the checkpoints of an unfinished recording say. Returns where the walk has to go on,
/// or nullopt when there are none that hold; the map is then as it was.
Result<std::optional<std::uint64_t>> load_checkpoints(FileMap& map);
/// Parses summary records between two offsets of the file into the map.
Status parse_index_records(FileMap& map, std::uint64_t begin, ByteSpan records,
                           std::vector<ChunkIndex>& chunks);
/// Makes segments of chunk indexes; those that cannot be right are reported.
Status add_chunk_segments(FileMap& map, std::vector<ChunkIndex> chunks, std::uint64_t data_end,
                          bool index_crc);
/// Walks what lies between the segments, attachments and metadata listed before `data_end`.
Status scan_gaps(FileMap& map, std::uint64_t data_end);
/// Walks the records of [begin, end) and adds what it finds.
Status scan_range(FileMap& map, std::uint64_t begin, std::uint64_t end, bool whole_file);
/// Walks a file from its first plausible record on. Errors: `why` when there is none.
Status scan_damaged_start(FileMap& map, Status why);

/// The bytes of one segment in memory.
struct LoadedSegment {
  ByteSpan records;
  Verified verified = Verified::no_crc;
  bool damaged = false;  ///< its definitions do not replace others
  Bytes file_bytes;
  Bytes decoded;
  std::uint64_t bytes_held() const { return file_bytes.size() + decoded.size(); }
};

using ProblemList = std::vector<Problem>;

/// Loads a segment. Damage is reported and leaves `out.records` empty (strict) or marked unverified
/// (lenient, or a cut chunk). Errors: the source fails.
Status load_segment(const FileMap& map, const Segment& segment, LoadedSegment& out,
                    ProblemList& problems);

/// The MessageIndex records behind a chunk, when they hold: they tile the announced bytes, name the
/// announced channels, and every offset leaves room for a message.
/// Returns nullopt, with a problem, when they do not hold, and without one when there are none.
Result<std::optional<std::vector<MessageIndex>>> read_message_indexes(const FileMap& map,
                                                                      const Segment& segment,
                                                                      ProblemList& problems);

/// Makes times and channel ids of a segment true: from its message indexes where they agree with
/// chunk head and chunk index, else from its content. Errors: the source fails.
Status verify_segment(const FileMap& map, Segment& segment, ProblemList& problems);

/// Sets times and ids of a segment from records in memory.
void describe_segment(ByteSpan records, Segment& segment);

/// Parses the message at `offset` of records whose record bounds hold. Returns false when no
/// message stands there.
inline bool message_at(ByteSpan records, std::uint64_t offset, Message& out) {
  constexpr std::uint64_t kLeast = kRecordHeadBytes + kMessageHeadBytes;
  if (records.size() < kLeast || offset > records.size() - kLeast) return false;
  const std::uint8_t* at = records.data() + offset;
  std::uint64_t size = 0;
  std::memcpy(&size, at + 1, sizeof size);
  if (*at != static_cast<std::uint8_t>(Opcode::message) || size < kMessageHeadBytes ||
      size > records.size() - offset - kRecordHeadBytes) {
    return false;
  }
  at += kRecordHeadBytes;
  std::memcpy(&out.channel_id, at, sizeof out.channel_id);
  std::memcpy(&out.sequence, at + 2, sizeof out.sequence);
  std::memcpy(&out.log_time, at + 6, sizeof out.log_time);
  std::memcpy(&out.publish_time, at + 14, sizeof out.publish_time);
  out.data = {at + kMessageHeadBytes, static_cast<std::size_t>(size - kMessageHeadBytes)};
  return true;
}

}  // namespace ropewalk::mcap
