#pragma once
// mcap::Writer: writes MCAP files strictly forward through a Sink: no seeking back, no
// placeholders. Schema and Channel stand again in every chunk that needs them, so that each chunk
// decodes by itself; a chunk without messages is never written; every call that can fail returns a
// Status.
//
//   ROPEWALK_ASSIGN_OR_RETURN(mcap::Writer writer, mcap::Writer::create({.compression = …}));
//   ROPEWALK_RETURN_IF_ERROR(writer.open(*sink));
//   ROPEWALK_ASSIGN_OR_RETURN(std::uint16_t id, writer.add_channel({.topic = "joints", …}));
//   ROPEWALK_RETURN_IF_ERROR(writer.write({.channel_id = id, .log_time = t, …}, payload));
//   ROPEWALK_RETURN_IF_ERROR(writer.finish());
//   // then sink->sync(), sink->close()
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {

class Reader;

struct WriterOptions {
  std::string profile;
  std::string library = "ropewalk";

  bool chunked = true;
  std::uint64_t chunk_bytes = 1ULL << 20;  ///< a threshold: a chunk closes after reaching it
  /// A message of at least this size goes alone into a chunk and, uncompressed, straight to the
  /// sink.
  std::uint64_t large_message_bytes = 256ULL << 10;
  std::uint64_t max_chunk_span_ns = 0;  ///< of log times in one chunk; 0: no bound
  /// By the clock of this machine, from the first message of a chunk: it closes then, whatever its
  /// size. Looked at on every write and by tick(). 0: no bound.
  std::uint64_t max_chunk_age_ns = 0;

  Compression compression = Compression::zstd;  ///< none, lz4_frame or zstd
  int level = 0;                                ///< 0: lz4 fast mode, zstd 1
  /// Keeps compressed even a chunk below 1 KiB or one that shrinks by less than 2 %.
  bool force_compression = false;
  /// Notices topics whose messages do not shrink, such as JPEG and video, and stores them as they
  /// are, in chunks of their own. Looks at messages of 4 KiB and more.
  bool detect_incompressible = true;

  bool chunk_crc = true;
  bool attachment_crc = true;
  bool data_crc = false;  ///< one more pass over every byte of the data section
  bool summary_crc = true;
  bool message_index = true;
  bool chunk_index = true;
  bool attachment_index = true;
  bool metadata_index = true;
  bool repeat_schemas = true;   ///< in the summary
  bool repeat_channels = true;  ///< in the summary
  bool statistics = true;
  bool summary_offsets = true;
  bool definitions_in_every_chunk = true;  ///< off: only before the first use, for minimal files
  /// Writes definitions that no message used as plain records at the end of the data.
  bool unused_definitions = false;

  /// Hands every chunk to the system when it closes: it then survives the death of the process.
  bool flush_chunks = false;
  /// Makes the file durable (fdatasync) when so many bytes were written since the last time, or
  /// when so much time passed and something was written. 0: never by this measure.
  std::uint64_t sync_bytes = 0;
  std::uint64_t sync_interval_ns = 0;
  /// Puts the private records of private_records.h into the file: a sync record before each chunk,
  /// and checkpoints, so that an unfinished file opens without a walk over all of it.
  bool recording_marks = false;
  std::uint64_t checkpoint_bytes = 4ULL << 20;  ///< between two checkpoints

  ThreadPool* pool = nullptr;  ///< compresses chunks there; null: on the calling thread

  /// What a recorder wants: at most 50 ms in a chunk, each handed to the system when it closes and
  /// made durable every second, with recording marks.
  static WriterOptions recording();

  /// Errors: invalid_argument for a codec that MCAP does not know or a chunk size of 0.
  Status validate() const;
};

struct ChannelOptions {
  /// Channels of one group share chunks. A group of its own makes reading one topic cheap.
  std::uint32_t group = 0;
  /// Off for what does not shrink, such as JPEG and video.
  bool compress = true;
};

/// Not thread-safe. After a failed write every call returns that first error: the file is readable
/// up to the last whole chunk. Limits: memory is the open chunk of each group, 16 bytes per message
/// in it, two chunks per thread of the pool, and the index of the file (about 100 bytes per chunk).
/// The bytes of the file do not depend on the pool. Spec: Ropewalk's MCAP page,
/// section 4.
class Writer {
 public:
  static Result<Writer> create(WriterOptions options);
  Writer(Writer&&) noexcept;
  Writer& operator=(Writer&&) noexcept;
  ~Writer();  ///< writes nothing: a file without finish() is an unfinished MCAP file

  /// Starts a file. Schemas and channels registered before stay and are written again when used.
  /// Lifetime: `sink` must outlive finish(). Errors: failed_precondition while a file is open.
  Status open(Sink& sink);
  /// Goes on with the file of `reader`, whose data section ends at `data_end`: what is written
  /// belongs there. The definitions of the file are registered. edit.h does this in place and
  /// crash-safe. Errors: failed_precondition when ids of the file have several meanings;
  /// already_exists when ids registered before collide with those of the file.
  Status resume(Sink& sink, const Reader& reader, std::uint64_t data_end);

  /// Registers a schema, or finds the same one again. Returns its id, from 1.
  /// Errors: resource_exhausted when all 65,535 ids are taken.
  Result<std::uint16_t> add_schema(std::string_view name, std::string_view encoding, ByteSpan data);
  /// Registers a schema under `schema.id`. Errors: already_exists when the id means another schema.
  Status add_schema_with_id(const Schema& schema);
  /// Registers a channel, or finds the same one again; `channel.id` is ignored. Ids start at 1.
  /// Errors: not_found for an unknown schema id; resource_exhausted when all ids are taken.
  Result<std::uint16_t> add_channel(const Channel& channel, ChannelOptions options = {});
  /// Registers a channel under `channel.id`, which may be 0.
  Status add_channel_with_id(const Channel& channel, ChannelOptions options = {});

  /// Sets the codec of the chunks from here on; the open ones are closed when it changes.
  /// Errors: as WriterOptions::validate; whatever the sink says.
  Status set_compression(Compression codec, int level = 0);

  /// Errors: not_found for an unknown channel; whatever the sink says.
  Status write(const MessageHead& head, ByteSpan data);
  /// Writes one message whose data is the parts in a row.
  Status write(const MessageHead& head, std::span<const ByteSpan> parts);
  /// Returns room for `size` bytes inside the open chunk, to be filled before the next call.
  /// Errors: failed_precondition without chunks; resource_exhausted when the room cannot be had.
  Result<MutableByteSpan> reserve(const MessageHead& head, std::uint64_t size);

  /// Writes a message of any size in parts, alone in an uncompressed chunk, in bounded memory.
  /// `data_crc` is the CRC-32 of the whole data, from an earlier pass over it; without it the chunk
  /// carries no CRC, since its header comes first. Errors of end_message: failed_precondition when
  /// the parts were not `size` bytes or have another CRC; the file is then unusable.
  Status begin_message(const MessageHead& head, std::uint64_t size,
                       std::optional<std::uint32_t> data_crc = {});
  Status append_message(ByteSpan part);
  Status end_message();

  /// Writes an attachment in parts. Errors of end_attachment: as end_message.
  Status begin_attachment(const AttachmentHead& head);
  Status append_attachment(ByteSpan part);
  Status end_attachment();
  Status write_attachment(const AttachmentHead& head,
                          ByteSpan data);  ///< data_size is set from data

  Status write_metadata(const Metadata& metadata);
  /// Writes a record of your own. Errors: invalid_argument for an opcode below 0x80.
  Status write_private(std::uint8_t opcode, ByteSpan content);

  /// Closes the open chunks and hands everything written so far to the system.
  Status flush();
  /// Closes chunks that are too old and makes the file durable where that is due: to be called now
  /// and then while no messages come.
  Status tick();
  /// flush(), and waits for the disk.
  Status sync();
  /// Writes the rest of the file: DataEnd, summary, footer. The sink stays open for its owner.
  Status finish();

  /// Units: bytes handed to the sink so far.
  std::uint64_t bytes_written() const;
  /// What the file holds so far; complete after finish().
  const Statistics& statistics() const;

 private:
  struct Impl;
  explicit Writer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk::mcap
