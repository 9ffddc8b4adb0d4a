#include "ropewalk/format/mcap/edit.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/mcap/reader_internal.h"

namespace ropewalk::mcap {
namespace {

namespace fs = std::filesystem;

// The side file: the bytes that belong behind `cut` of the file, then this trailer:
//   cut u64 | length of the bytes u64 | CRC-32 of everything before it u32 | kTailMagic
constexpr std::array<std::uint8_t, 8> kTailMagic{'R', 'W', 'T', 'A', 'I', 'L', '0', '1'};
constexpr std::uint64_t kTrailerBytes = 8 + 8 + 4 + 8;
constexpr std::uint64_t kPart = 1ULL << 20;

fs::path side_of(const fs::path& path) {
  return path.parent_path() / fmt::format(".{}.tail", path.filename().string());
}

fs::path parent_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Passes everything on and keeps the CRC of it.
class SumSink final : public Sink {
 public:
  explicit SumSink(Sink& inner) : inner_(inner) {}
  Status append(ByteSpan bytes) override {
    crc_ = crc32(crc_, bytes);
    return inner_.append(bytes);
  }
  Status sync() override { return inner_.sync(); }
  Status close() override { return inner_.close(); }
  std::uint64_t size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }
  std::uint32_t crc() const { return crc_; }

 private:
  Sink& inner_;
  std::uint32_t crc_ = 0;
};

// Writes and syncs a side file whose bytes come from `fill`.
template <typename Fill>
Status write_side(const fs::path& side, std::uint64_t cut, Fill fill) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto file, create_sink(side));
  SumSink sink(*file);
  ROPEWALK_RETURN_IF_ERROR(fill(sink));
  Bytes trailer;
  ByteWriter writer(trailer);
  const std::uint64_t length = sink.size();
  writer.write_le(cut);
  writer.write_le(length);
  writer.write_le(crc32(sink.crc(), trailer));
  writer.write(kTailMagic);
  ROPEWALK_RETURN_IF_ERROR(file->append(trailer));
  ROPEWALK_RETURN_IF_ERROR(file->sync());
  ROPEWALK_RETURN_IF_ERROR(file->close());
  return sync_directory(parent_of(side));
}

struct Tail {
  std::uint64_t cut = 0;
  std::uint64_t length = 0;
};

// Returns nullopt when the side file is not whole: nothing was changed by its means then.
Result<std::optional<Tail>> read_side(const Source& side) {
  if (side.size() < kTrailerBytes) return std::optional<Tail>();
  Bytes trailer(kTrailerBytes);
  ROPEWALK_RETURN_IF_ERROR(side.read_at(side.size() - kTrailerBytes, trailer));
  ByteCursor cursor(trailer);
  Tail tail;
  ROPEWALK_ASSIGN_OR_RETURN(tail.cut, cursor.read_le<std::uint64_t>());
  ROPEWALK_ASSIGN_OR_RETURN(tail.length, cursor.read_le<std::uint64_t>());
  ROPEWALK_ASSIGN_OR_RETURN(const auto stored, cursor.read_le<std::uint32_t>());
  if (!std::ranges::equal(ByteSpan(trailer).last(8), kTailMagic) ||
      tail.length != side.size() - kTrailerBytes) {
    return std::optional<Tail>();
  }
  std::uint32_t crc = 0;
  Bytes part;
  for (std::uint64_t at = 0; at < tail.length; at += kPart) {
    part.resize(static_cast<std::size_t>(std::min(kPart, tail.length - at)));
    ROPEWALK_RETURN_IF_ERROR(side.read_at(at, part));
    crc = crc32(crc, part);
  }
  if (crc32(crc, ByteSpan(trailer).first(16)) != stored) return std::optional<Tail>();
  return std::optional<Tail>(tail);
}

// Puts the bytes of the side file behind `cut`, makes that durable, and removes the side file.
Status apply_side(const fs::path& path, const fs::path& side, const Source& bytes, Tail tail) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, continue_sink(path, tail.cut));
  Bytes part;
  for (std::uint64_t at = 0; at < tail.length; at += kPart) {
    part.resize(static_cast<std::size_t>(std::min(kPart, tail.length - at)));
    ROPEWALK_RETURN_IF_ERROR(bytes.read_at(at, part));
    ROPEWALK_RETURN_IF_ERROR(sink->append(part));
  }
  ROPEWALK_RETURN_IF_ERROR(sink->sync());
  ROPEWALK_RETURN_IF_ERROR(sink->close());
  ROPEWALK_RETURN_IF_ERROR(remove_file(side));
  return sync_directory(parent_of(side));
}

// Opens a whole file for an edit and says where its data section ends.
struct Opened {
  Reader reader;
  std::uint64_t data_end = 0;
};

Result<Opened> open_finished(const fs::path& path) {
  ROPEWALK_RETURN_IF_ERROR(complete_edit(path).status());
  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, open_source(path));
  ROPEWALK_ASSIGN_OR_RETURN(Reader reader, Reader::open(std::move(source)));
  const FileMap& map = file_map_of(reader);
  if (!reader.finished() || !map.data_end_offset.has_value()) {
    return failed_precondition(fmt::format(
        "{}: the file is not finished: recover it first, or append to it", path.string()));
  }
  for (const Problem& p : reader.problems()) {
    if (is_loss(p.kind) || p.kind == ProblemKind::trailing_data) {
      return failed_precondition(
          fmt::format("{}: the file is damaged: recover it first: {}", path.string(), to_line(p)));
    }
  }
  const std::uint64_t data_end = *map.data_end_offset;
  return Opened{.reader = std::move(reader), .data_end = data_end};
}

// Options under which a Writer writes an end like the one the file has.
WriterOptions options_like(const Reader& reader) {
  WriterOptions out;
  out.repeat_channels = out.repeat_schemas = out.statistics = out.summary_offsets = true;
  out.recording_marks = file_map_of(reader).recording.has_value();
  return out;
}

// Writes the new end of a finished file through the side file.
template <typename Change>
Status edit(const fs::path& path, Change change) {
  ROPEWALK_ASSIGN_OR_RETURN(Opened opened, open_finished(path));
  const fs::path side = side_of(path);
  const auto fill = [&](Sink& sink) -> Status {
    ROPEWALK_ASSIGN_OR_RETURN(Writer writer, Writer::create(options_like(opened.reader)));
    ROPEWALK_RETURN_IF_ERROR(writer.resume(sink, opened.reader, opened.data_end));
    ROPEWALK_RETURN_IF_ERROR(change(writer));
    return writer.finish();
  };
  if (Status written = write_side(side, opened.data_end, fill); !written.ok()) {
    static_cast<void>(remove_file(side));
    return written;
  }
  return complete_edit(path).status();
}

}  // namespace

Result<bool> complete_edit(const fs::path& path) {
  const fs::path side = side_of(path);
  ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(side));
  if (!there.has_value()) return false;
  ROPEWALK_ASSIGN_OR_RETURN(const auto bytes, open_source(side));
  ROPEWALK_ASSIGN_OR_RETURN(const auto tail, read_side(*bytes));
  if (!tail.has_value()) {
    ROPEWALK_RETURN_IF_ERROR(remove_file(side));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(parent_of(side)));
    return true;
  }
  ROPEWALK_RETURN_IF_ERROR(apply_side(path, side, *bytes, *tail));
  return true;
}

Status add_metadata(const fs::path& path, const Metadata& metadata) {
  return edit(path, [&](Writer& writer) { return writer.write_metadata(metadata); });
}

Status add_attachment(const fs::path& path, const AttachmentHead& head, const Source& data) {
  return edit(path, [&](Writer& writer) -> Status {
    AttachmentHead whole = head;
    whole.data_size = data.size();
    ROPEWALK_RETURN_IF_ERROR(writer.begin_attachment(whole));
    Bytes part;
    for (std::uint64_t at = 0; at < data.size(); at += kPart) {
      part.resize(static_cast<std::size_t>(std::min(kPart, data.size() - at)));
      ROPEWALK_RETURN_IF_ERROR(data.read_at(at, part));
      ROPEWALK_RETURN_IF_ERROR(writer.append_attachment(part));
    }
    return writer.end_attachment();
  });
}

// --- going on with a file

namespace {

// A sink that is there before its file may be touched.
class LateSink final : public Sink {
 public:
  LateSink(std::uint64_t size, std::string name) : size_(size), name_(std::move(name)) {}
  void start(std::unique_ptr<Sink> inner) { inner_ = std::move(inner); }
  Status append(ByteSpan bytes) override { return inner_->append(bytes); }
  Status append_parts(std::span<const ByteSpan> parts) override {
    return inner_->append_parts(parts);
  }
  Status flush() override { return inner_->flush(); }
  Status sync() override { return inner_->sync(); }
  Status sync_data() override { return inner_->sync_data(); }
  Status close() override { return inner_->close(); }
  std::uint64_t size() const override { return inner_ == nullptr ? size_ : inner_->size(); }
  const std::string& name() const override { return name_; }

 private:
  std::unique_ptr<Sink> inner_;
  std::uint64_t size_;
  std::string name_;
};

}  // namespace

struct Appender::Impl {
  std::unique_ptr<LateSink> sink;
  std::optional<Writer> writer;
};

Appender::Appender(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Appender::Appender(Appender&&) noexcept = default;
Appender& Appender::operator=(Appender&&) noexcept = default;
Appender::~Appender() = default;
Writer& Appender::writer() { return *impl_->writer; }

Status Appender::finish() {
  ROPEWALK_RETURN_IF_ERROR(impl_->writer->finish());
  ROPEWALK_RETURN_IF_ERROR(impl_->sink->sync());
  return impl_->sink->close();
}

namespace {

// Where an unfinished file holds whole records up to, for one that ends in a cut or in zeros.
std::uint64_t end_of_records(const FileMap& map) {
  std::uint64_t end = map.source->size();
  for (const Problem& p : map.problems) {
    if (p.kind == ProblemKind::chunk_cut || p.kind == ProblemKind::truncated ||
        (p.kind == ProblemKind::zero_run && p.offset + p.length == map.source->size())) {
      end = std::min(end, p.offset);
    }
  }
  return end;
}

struct Salvaged {
  Channel channel;
  std::optional<Schema> schema;
  MessageHead head;
  Bytes data;
};

// The messages of the chunk that the end of the file cuts.
Result<std::vector<Salvaged>> salvage(const Reader& reader, std::uint64_t end) {
  std::vector<Salvaged> out;
  const FileMap& map = file_map_of(reader);
  if (map.segments.empty() || !map.segments.back().cut || map.segments.back().offset < end) {
    return out;
  }
  MessageReader messages = reader.messages({.order = Order::file});
  for (MessageView m; messages.next(m);) {
    if (m.segment + 1 != map.segments.size()) continue;
    out.push_back({.channel = *m.channel, .schema = {}, .head = m, .data = {}});
    if (m.schema != nullptr) out.back().schema = *m.schema;
    out.back().data.assign(m.data.begin(), m.data.end());
  }
  ROPEWALK_RETURN_IF_ERROR(messages.status());
  return out;
}

Status write_again(Writer& writer, const std::vector<Salvaged>& messages) {
  for (const Salvaged& m : messages) {
    Channel channel = m.channel;
    channel.schema_id = 0;
    if (m.schema.has_value()) {
      ROPEWALK_ASSIGN_OR_RETURN(
          channel.schema_id, writer.add_schema(m.schema->name, m.schema->encoding, m.schema->data));
    }
    MessageHead head = m.head;
    ROPEWALK_ASSIGN_OR_RETURN(head.channel_id, writer.add_channel(channel));
    ROPEWALK_RETURN_IF_ERROR(writer.write(head, m.data));
  }
  return writer.sync();
}

}  // namespace

Result<Appender> Appender::open(const fs::path& path, WriterOptions options, Limits limits) {
  ROPEWALK_RETURN_IF_ERROR(complete_edit(path).status());
  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, open_source(path));
  ReaderOptions reading;
  reading.limits = limits;
  ROPEWALK_ASSIGN_OR_RETURN(const Reader reader, Reader::open(source, reading));
  const FileMap& map = file_map_of(reader);
  std::uint64_t cut = end_of_records(map);
  if (reader.finished() && map.data_end_offset.has_value()) cut = *map.data_end_offset;
  for (const Problem& p : reader.problems()) {
    if (p.kind == ProblemKind::trailing_data) {
      return failed_precondition(
          fmt::format("{}: something stands behind the file: {}", path.string(), to_line(p)));
    }
  }
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<Salvaged> cut_messages, salvage(reader, cut));

  auto impl = std::make_unique<Impl>();
  ROPEWALK_ASSIGN_OR_RETURN(Writer writer, Writer::create(std::move(options)));
  impl->writer.emplace(std::move(writer));
  impl->sink = std::make_unique<LateSink>(cut, path.string());
  ROPEWALK_RETURN_IF_ERROR(impl->writer->resume(*impl->sink, reader, cut));

  // The old end, until the file stands without it.
  const fs::path side = side_of(path);
  const auto old_end = [&](Sink& sink) -> Status {
    Bytes part;
    for (std::uint64_t at = cut; at < source->size(); at += kPart) {
      part.resize(static_cast<std::size_t>(std::min(kPart, source->size() - at)));
      ROPEWALK_RETURN_IF_ERROR(source->read_at(at, part));
      ROPEWALK_RETURN_IF_ERROR(sink.append(part));
    }
    return ok_status();
  };
  if (Status written = write_side(side, cut, old_end); !written.ok()) {
    static_cast<void>(remove_file(side));
    return written;
  }
  ROPEWALK_ASSIGN_OR_RETURN(auto sink, continue_sink(path, cut));
  impl->sink->start(std::move(sink));
  if (cut_messages.empty()) {
    ROPEWALK_RETURN_IF_ERROR(impl->sink->sync());
  } else {
    ROPEWALK_RETURN_IF_ERROR(write_again(*impl->writer, cut_messages));
  }
  ROPEWALK_RETURN_IF_ERROR(remove_file(side));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(parent_of(side)));
  return Appender(std::move(impl));
}

}  // namespace ropewalk::mcap
