#include "ropewalk/format/bag/rosbag1_writer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/bag/definitions.h"
#include "ropewalk/format/bag/rosbag1_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// A record header under construction.
class Header {
 public:
  explicit Header(Op op) { field("op", static_cast<std::uint8_t>(op)); }
  template <std::integral T>
  Header& field(std::string_view name, T value) {
    ByteWriter out(bytes_);
    out.write_le(static_cast<std::uint32_t>(name.size() + 1 + sizeof(T)));
    out.write(name);
    out.write("=");
    out.write_le(value);
    return *this;
  }
  Header& text(std::string_view name, std::string_view value) {
    append_text(bytes_, name, value);
    return *this;
  }
  static void append_text(Bytes& to, std::string_view name, std::string_view value) {
    ByteWriter out(to);
    out.write_le(static_cast<std::uint32_t>(name.size() + 1 + value.size()));
    out.write(name);
    out.write("=");
    out.write(value);
  }
  Header& time(std::string_view name, std::int64_t time_ns) {
    const auto seconds = static_cast<std::uint64_t>(time_ns / kSecond);
    const auto rest = static_cast<std::uint64_t>(time_ns % kSecond);
    return field(name, seconds | (rest << 32));
  }
  /// Appends the header and the length of the data that follows.
  void append_to(Bytes& to, std::uint64_t data_size) const {
    ByteWriter out(to);
    out.write_le(static_cast<std::uint32_t>(bytes_.size()));
    out.write(bytes_);
    out.write_le(static_cast<std::uint32_t>(data_size));
  }
  std::size_t size() const { return bytes_.size(); }

 private:
  Bytes bytes_;
};

Bytes bag_header(std::uint64_t index_offset, std::uint32_t connections, std::uint32_t chunks) {
  const Header header = Header(Op::bag_header)
                            .field("index_pos", index_offset)
                            .field("conn_count", connections)
                            .field("chunk_count", chunks);
  Bytes out;
  // Length fields count too: the record ends where the first chunk starts.
  const std::uint64_t padding = kRosbag1HeaderRecordBytes - 8 - header.size();
  header.append_to(out, padding);
  out.insert(out.end(), static_cast<std::size_t>(padding), ' ');
  return out;
}

struct IndexEntry {
  std::int64_t time_ns = 0;
  std::uint32_t offset = 0;
};

struct WrittenChunk {
  std::uint64_t offset = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> counts;
};

}  // namespace

Status Rosbag1WriterOptions::validate() const {
  if (compression != Compression::none && compression != Compression::lz4_frame &&
      compression != Compression::bzip2) {
    return invalid_argument(fmt::format("compression {}: ROS 1 bags have none, lz4 and bz2",
                                        compression_name(compression)));
  }
  if (chunk_bytes == 0 || chunk_bytes > (1ULL << 30)) {
    return invalid_argument(
        fmt::format("chunk_bytes {}: expected 1 to {}", chunk_bytes, 1ULL << 30));
  }
  return ok_status();
}

struct Rosbag1Writer::Impl {
  std::filesystem::path path;
  std::filesystem::path active_path;
  Rosbag1WriterOptions options;
  std::unique_ptr<Sink> sink;
  Status error;
  bool finished = false;
  std::vector<Channel> channels;
  std::vector<WrittenChunk> chunks;
  Bytes chunk;
  std::map<std::uint32_t, std::vector<IndexEntry>> index;  // of the open chunk
  Bytes stored;
  Bytes scratch;

  void append_connection(std::uint32_t id, Bytes& to) const {
    const Channel& channel = channels[id];
    Bytes data;
    Header::append_text(data, "topic", channel.topic);
    Header::append_text(data, "type", channel.type);
    Header::append_text(data, "md5sum", channel.md5sum);
    Header::append_text(data, "message_definition", channel.schema);
    if (!channel.callerid.empty()) Header::append_text(data, "callerid", channel.callerid);
    if (channel.latching || !channel.callerid.empty()) {
      Header::append_text(data, "latching", channel.latching ? "1" : "0");
    }
    Header(Op::connection)
        .field("conn", id)
        .text("topic", channel.topic)
        .append_to(to, data.size());
    to.insert(to.end(), data.begin(), data.end());
  }

  Status close_chunk() {
    if (index.empty()) return ok_status();
    WrittenChunk written{.offset = sink->size(),
                         .first_ns = std::numeric_limits<std::int64_t>::max(),
                         .last_ns = std::numeric_limits<std::int64_t>::min()};
    stored.clear();
    std::string_view name = "none";
    ByteSpan data = chunk;
    if (options.compression == Compression::lz4_frame) {
      name = "lz4";
      ROPEWALK_RETURN_IF_ERROR(compress_lz4_checked(chunk, stored));
      data = stored;
    } else if (options.compression == Compression::bzip2) {
      name = "bz2";
      ROPEWALK_RETURN_IF_ERROR(compress(Compression::bzip2, chunk, 0, stored));
      data = stored;
    }
    scratch.clear();
    Header(Op::chunk)
        .text("compression", name)
        .field("size", static_cast<std::uint32_t>(chunk.size()))
        .append_to(scratch, data.size());
    ROPEWALK_RETURN_IF_ERROR(sink->append(scratch));
    ROPEWALK_RETURN_IF_ERROR(sink->append(data));
    scratch.clear();
    for (const auto& [id, entries] : index) {
      const auto count = static_cast<std::uint32_t>(entries.size());
      Header(Op::index_data)
          .field("ver", std::uint32_t{1})
          .field("conn", id)
          .field("count", count)
          .append_to(scratch, std::uint64_t{count} * 12);
      ByteWriter out(scratch);
      for (const IndexEntry& entry : entries) {
        out.write_le(static_cast<std::uint32_t>(entry.time_ns / kSecond));
        out.write_le(static_cast<std::uint32_t>(entry.time_ns % kSecond));
        out.write_le(entry.offset);
        written.first_ns = std::min(written.first_ns, entry.time_ns);
        written.last_ns = std::max(written.last_ns, entry.time_ns);
      }
      written.counts.emplace_back(id, count);
    }
    ROPEWALK_RETURN_IF_ERROR(sink->append(scratch));
    chunks.push_back(std::move(written));
    chunk.clear();
    index.clear();
    return ok_status();
  }

  Status write(std::uint32_t id, std::int64_t time_ns, ByteSpan data) {
    // Connections stand again in every chunk that needs them: each chunk can be read by itself.
    auto& entries = index[id];
    if (entries.empty()) append_connection(id, chunk);
    entries.push_back({.time_ns = time_ns, .offset = static_cast<std::uint32_t>(chunk.size())});
    Header(Op::message).field("conn", id).time("time", time_ns).append_to(chunk, data.size());
    chunk.insert(chunk.end(), data.begin(), data.end());
    return chunk.size() >= options.chunk_bytes ? close_chunk() : ok_status();
  }

  Status finish() {
    ROPEWALK_RETURN_IF_ERROR(close_chunk());
    const std::uint64_t index_offset = sink->size();
    scratch.clear();
    for (std::uint32_t id = 0; id < channels.size(); ++id) append_connection(id, scratch);
    for (const WrittenChunk& written : chunks) {
      Header(Op::chunk_info)
          .field("ver", std::uint32_t{1})
          .field("chunk_pos", written.offset)
          .time("start_time", written.first_ns)
          .time("end_time", written.last_ns)
          .field("count", static_cast<std::uint32_t>(written.counts.size()))
          .append_to(scratch, written.counts.size() * 8);
      ByteWriter out(scratch);
      for (const auto& [id, count] : written.counts) {
        out.write_le(id);
        out.write_le(count);
      }
    }
    ROPEWALK_RETURN_IF_ERROR(sink->append(scratch));
    ROPEWALK_RETURN_IF_ERROR(sink->sync());
    ROPEWALK_RETURN_IF_ERROR(sink->close());
    // Only now: an index that is named before it is on disk would be believed.
    ROPEWALK_RETURN_IF_ERROR(
        overwrite_durably(active_path, kRosbag1Magic.size(),
                          bag_header(index_offset, static_cast<std::uint32_t>(channels.size()),
                                     static_cast<std::uint32_t>(chunks.size()))));
    ROPEWALK_RETURN_IF_ERROR(rename_no_replace(active_path, path));
    return sync_directory(path.has_parent_path() ? path.parent_path() : ".");
  }
};

Rosbag1Writer::Rosbag1Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rosbag1Writer::Rosbag1Writer(Rosbag1Writer&&) noexcept = default;
Rosbag1Writer& Rosbag1Writer::operator=(Rosbag1Writer&&) noexcept = default;
Rosbag1Writer::~Rosbag1Writer() = default;

Result<Rosbag1Writer> Rosbag1Writer::create(const std::filesystem::path& path,
                                            Rosbag1WriterOptions options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(path));
  if (there) return already_exists(path.string() + ": is there already");
  auto impl = std::make_unique<Impl>();
  impl->path = path;
  impl->active_path = path.string() + ".active";
  impl->options = options;
  ROPEWALK_ASSIGN_OR_RETURN(impl->sink, create_sink(impl->active_path));
  ROPEWALK_RETURN_IF_ERROR(impl->sink->append(as_bytes(kRosbag1Magic)));
  ROPEWALK_RETURN_IF_ERROR(impl->sink->append(bag_header(0, 0, 0)));
  return Rosbag1Writer(std::move(impl));
}

Result<std::uint32_t> Rosbag1Writer::add_channel(const Channel& channel) {
  if (channel.message_encoding != "ros1") {
    return failed_precondition(fmt::format("{}: messages are {}; a ROS 1 bag holds ros1 alone",
                                           channel.topic, channel.message_encoding));
  }
  if (channel.topic.empty() || channel.type.empty()) {
    return invalid_argument("a channel needs a topic and a type");
  }
  Channel complete = channel;
  if (complete.md5sum.empty()) {
    auto md5 = ros1_md5(channel.type, channel.schema);
    if (!md5.ok()) return std::move(md5).status().with_context(channel.topic);
    complete.md5sum = std::move(md5).value();
  }
  impl_->channels.push_back(std::move(complete));
  return static_cast<std::uint32_t>(impl_->channels.size() - 1);
}

Status Rosbag1Writer::write(std::uint32_t channel, std::int64_t time_ns, ByteSpan data) {
  ROPEWALK_RETURN_IF_ERROR(impl_->error);
  if (impl_->finished) return failed_precondition(impl_->path.string() + ": is finished");
  if (channel >= impl_->channels.size()) {
    return not_found(fmt::format("channel {}: {} are added", channel, impl_->channels.size()));
  }
  if (time_ns < 0 || time_ns / kSecond > std::numeric_limits<std::uint32_t>::max()) {
    return out_of_range(fmt::format("time {} ns: ROS 1 has seconds from 0 to 2^32 - 1", time_ns));
  }
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max() - (2ULL << 30);
  if (data.size() > kMost) {
    return resource_exhausted(
        fmt::format("a message of {} bytes: a chunk holds {}", data.size(), kMost));
  }
  impl_->error = impl_->write(channel, time_ns, data);
  return impl_->error;
}

Status Rosbag1Writer::finish() {
  ROPEWALK_RETURN_IF_ERROR(impl_->error);
  if (impl_->finished) return failed_precondition(impl_->path.string() + ": is finished");
  impl_->finished = true;
  impl_->error = impl_->finish();
  return impl_->error;
}

}  // namespace ropewalk::bag
