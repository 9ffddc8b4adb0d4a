// Opening a ROS 1 bag: through its index where it holds, else by a walk over the file.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/bag/rosbag1_internal.h"

namespace ropewalk::bag {
namespace {

// One chunk as the index section tells it.
struct ChunkInfo {
  std::uint64_t record_offset = 0;
  std::uint64_t chunk_offset = 0;
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t messages = 0;
};

class Opener {
 public:
  explicit Opener(Rosbag1File& file) : file_(file), window_(*file.source) {}

  Status run() {
    const std::uint64_t size = file_.source->size();
    std::uint64_t index_offset = 0;
    auto head = read_head(window_, kRosbag1Magic.size());
    if (!head.ok() || head->op != Op::bag_header) {
      if (!head.ok() && head.status().code() != StatusCode::data_loss) return head.status();
      file_.problems.add(ProblemKind::bad_record, kRosbag1Magic.size(), 0,
                         "no bag header stands behind the version; the file is scanned");
      return scan_rosbag1(file_, kRosbag1Magic.size(), size);
    }
    if (const std::string encryptor = head->fields.text("encryptor"); !encryptor.empty()) {
      return unimplemented(
          fmt::format("{}: encrypted by {}; decrypt it first", file_.source->name(), encryptor));
    }
    index_offset = head->fields.number<std::uint64_t>("index_pos").value_or(0);
    chunk_count_ = head->fields.number<std::uint32_t>("chunk_count").value_or(0);
    connection_count_ = head->fields.number<std::uint32_t>("conn_count").value_or(0);
    const std::uint64_t begin = std::min(head->end(), size);
    if (index_offset == 0) {
      file_.problems.add(ProblemKind::unfinished, kRosbag1Magic.size(), 0,
                         "the recording was not closed: there is no index; the file is scanned");
      return scan_rosbag1(file_, begin, size);
    }
    if (index_offset > size || index_offset < begin) {
      file_.problems.add(ProblemKind::truncated, size, 0,
                         fmt::format("the index should stand at byte {}, the file has {}; the file "
                                     "is scanned",
                                     index_offset, size));
      return scan_rosbag1(file_, begin, size);
    }
    if (Status status = load_index(index_offset); !status.ok()) {
      if (status.code() != StatusCode::data_loss) return status;
      file_.problems.add(ProblemKind::bad_index, index_offset, size - index_offset,
                         fmt::format("{}; the file is scanned", status.message()));
      // Connections read from it stay: they are whole records.
      return scan_rosbag1(file_, begin, size);
    }
    return load_chunks(begin, index_offset);
  }

 private:
  Status load_index(std::uint64_t offset) {
    const std::uint64_t size = file_.source->size();
    std::uint32_t connections = 0;
    while (offset < size) {
      ROPEWALK_ASSIGN_OR_RETURN(const RecordHead head, read_head(window_, offset));
      if (head.end() > size) {
        return data_loss(fmt::format("byte {}: a record goes past the end of the file", offset));
      }
      const std::uint64_t end = head.end();
      if (head.op == Op::connection) {
        // The whole record in one view: the fields point into it.
        ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan whole, window_.view(offset, end - offset));
        ROPEWALK_ASSIGN_OR_RETURN(const RecordHead again, parse_head(whole, 0));
        ROPEWALK_RETURN_IF_ERROR(
            file_.define(again.fields, whole.subspan(static_cast<std::size_t>(again.data_offset)),
                         offset, end - offset));
        ++connections;
      } else if (head.op == Op::chunk_info) {
        ROPEWALK_RETURN_IF_ERROR(chunk_info(head));
      } else {
        return data_loss(
            fmt::format("byte {}: op {} in the index", offset, static_cast<int>(head.op)));
      }
      offset = end;
    }
    if (infos_.size() != chunk_count_ || connections != connection_count_) {
      return data_loss(fmt::format("{} chunks and {} connections stated, {} and {} found",
                                   chunk_count_, connection_count_, infos_.size(), connections));
    }
    return ok_status();
  }

  Status chunk_info(const RecordHead& head) {
    const auto version = head.fields.number<std::uint32_t>("ver");
    const auto position = head.fields.number<std::uint64_t>("chunk_pos");
    const auto first = head.fields.time("start_time");
    const auto last = head.fields.time("end_time");
    const auto count = head.fields.number<std::uint32_t>("count");
    if (version != 1U || !position || !first || !last || !count ||
        head.data_size != std::uint64_t{*count} * 8) {
      return data_loss(fmt::format("byte {}: a chunk info that is none", head.offset));
    }
    ChunkInfo info{.record_offset = head.offset,
                   .chunk_offset = *position,
                   .first_ns = *first,
                   .last_ns = *last};
    ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan data, window_.view(head.data_offset, head.data_size));
    for (std::size_t at = 0; at < data.size(); at += 8) {
      std::uint32_t messages = 0;
      std::memcpy(&messages, data.data() + at + 4, 4);
      info.messages += messages;
    }
    infos_.push_back(info);
    return ok_status();
  }

  // Looks at every chunk the index names and at what stands between them.
  Status load_chunks(std::uint64_t begin, std::uint64_t index_offset) {
    std::ranges::sort(infos_, {}, &ChunkInfo::chunk_offset);
    for (Channel& channel : file_.channels) channel.message_count = 0;
    std::uint64_t at = begin;
    for (std::size_t i = 0; i < infos_.size(); ++i) {
      const ChunkInfo& info = infos_[i];
      const std::uint64_t next = i + 1 < infos_.size() ? infos_[i + 1].chunk_offset : index_offset;
      if (info.chunk_offset < at || next > index_offset || info.chunk_offset >= next) {
        mismatch(info, fmt::format("chunks at {} and {}: expected one behind the other, before "
                                   "the index at {}",
                                   info.chunk_offset, next, index_offset));
        continue;
      }
      if (info.chunk_offset > at) ROPEWALK_RETURN_IF_ERROR(scan_gap(at, info.chunk_offset));
      at = info.chunk_offset;
      ROPEWALK_ASSIGN_OR_RETURN(at, load_chunk(info, next));
      if (at < next) ROPEWALK_RETURN_IF_ERROR(scan_gap(at, next));
      at = next;
    }
    if (at < index_offset) return scan_gap(at, index_offset);
    return ok_status();
  }

  void mismatch(const ChunkInfo& info, std::string detail) {
    file_.problems.add(ProblemKind::index_mismatch, info.record_offset, 0, std::move(detail));
  }

  Status scan_gap(std::uint64_t from, std::uint64_t to) {
    file_.problems.add(ProblemKind::unindexed, from, to - from,
                       "the index does not say what stands here; it is scanned");
    return scan_rosbag1(file_, from, to);
  }

  // Returns up to where the file is explained: the chunk and the index data behind it.
  Result<std::uint64_t> load_chunk(const ChunkInfo& info, std::uint64_t next) {
    auto head = read_head(window_, info.chunk_offset);
    if (!head.ok() && head.status().code() != StatusCode::data_loss) return head.status();
    if (!head.ok() || head->op != Op::chunk || head->end() > next) {
      mismatch(info, fmt::format("no whole chunk stands at byte {}", info.chunk_offset));
      return info.chunk_offset;
    }
    const auto size = head->fields.number<std::uint32_t>("size");
    const auto codec = rosbag1_codec(head->fields.text("compression"));
    if (!size || !codec) return info.chunk_offset;  // the scan names it
    Segment segment{.offset = info.chunk_offset,
                    .end = head->end(),
                    .data_offset = head->data_offset,
                    .data_size = head->data_size,
                    .decoded_size = *size,
                    .codec = *codec};
    std::uint64_t at = segment.end;
    std::uint64_t messages = 0;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> counts;
    while (at < next) {
      auto index = read_head(window_, at);
      if (!index.ok() || index->op != Op::index_data || index->end() > next) break;
      const auto connection = index->fields.number<std::uint32_t>("conn");
      const auto count = index->fields.number<std::uint32_t>("count");
      if (!connection || !count || index->data_size != std::uint64_t{*count} * 12) break;
      const std::uint64_t end = index->end();
      ROPEWALK_ASSIGN_OR_RETURN(const ByteSpan data,
                                window_.view(index->data_offset, index->data_size));
      for (std::size_t i = 0; i < data.size(); i += 12, ++messages) {
        std::uint32_t parts[2];
        std::memcpy(parts, data.data() + i, sizeof parts);
        const std::int64_t time = ros1_time(parts[0], parts[1]);
        if (messages == 0) segment.first_ns = segment.last_ns = time;
        segment.first_ns = std::min(segment.first_ns, time);
        segment.last_ns = std::max(segment.last_ns, time);
      }
      counts.emplace_back(*connection, *count);
      at = end;
    }
    segment.empty = messages == 0;
    const bool agrees =
        messages == info.messages &&
        (messages == 0 || (segment.first_ns == info.first_ns && segment.last_ns == info.last_ns));
    if (!agrees) {
      mismatch(info, fmt::format("{} messages in the chunk info, {} in the index data behind the "
                                 "chunk at byte {}, or other times; the chunk is read",
                                 info.messages, messages, info.chunk_offset));
      ROPEWALK_RETURN_IF_ERROR(scan_rosbag1(file_, segment.offset, segment.end));
      return at;
    }
    for (const auto& [connection, count] : counts) {
      const auto channel = file_.channel_of_connection.find(connection);
      if (channel == file_.channel_of_connection.end()) continue;  // told when it is read
      *file_.channels[channel->second].message_count += count;
    }
    if (!segment.empty) file_.extend_range(segment.first_ns, segment.last_ns);
    file_.segments.push_back(segment);
    return at;
  }

  Rosbag1File& file_;
  Window window_;
  std::uint32_t chunk_count_ = 0;
  std::uint32_t connection_count_ = 0;
  std::vector<ChunkInfo> infos_;
};

}  // namespace

bool is_rosbag1(ByteSpan head) { return as_text(head).starts_with("#ROSBAG V"); }

Status Rosbag1File::define(const Fields& head, ByteSpan data, std::uint64_t offset,
                           std::uint64_t length) {
  const auto id = head.number<std::uint32_t>("conn");
  if (!id) return data_loss("a connection without conn");
  ROPEWALK_ASSIGN_OR_RETURN(const Fields fields, Fields::parse(data));
  Channel channel{.topic = head.text("topic"),
                  .type = fields.text("type"),
                  .message_encoding = "ros1",
                  .schema = fields.text("message_definition"),
                  .md5sum = fields.text("md5sum"),
                  .callerid = fields.text("callerid"),
                  .latching = fields.text("latching") == "1",
                  .message_count = 0};
  if (channel.topic.empty()) channel.topic = fields.text("topic");
  if (channel.topic.empty() || channel.type.empty()) {
    return data_loss(fmt::format("connection {} without topic or type", *id));
  }
  if (fields.find("message_definition")) channel.schema_encoding = "ros1msg";
  const auto known = channel_of_connection.find(*id);
  if (known == channel_of_connection.end()) {
    if (channel.schema_encoding.empty()) {
      problems.add(ProblemKind::missing_schema, offset, length,
                   fmt::format("connection {} ({}) has no message_definition", *id, channel.topic));
    }
    channel_of_connection.emplace(*id, static_cast<std::uint32_t>(channels.size()));
    channels.push_back(std::move(channel));
    return ok_status();
  }
  const Channel& first = channels[known->second];
  if (first.topic != channel.topic || first.type != channel.type ||
      first.md5sum != channel.md5sum || first.schema != channel.schema) {
    problems.add(ProblemKind::conflicting_definition, offset, length,
                 fmt::format("connection {} is {} of {} here and {} of {} before; the first holds",
                             *id, channel.topic, channel.type, first.topic, first.type));
  }
  return ok_status();
}

Result<std::unique_ptr<BagFile>> open_rosbag1(std::shared_ptr<const Source> source,
                                              const ReaderOptions& options) {
  Bytes magic(
      static_cast<std::size_t>(std::min<std::uint64_t>(source->size(), kRosbag1Magic.size())));
  ROPEWALK_RETURN_IF_ERROR(source->read_at(0, magic));
  if (as_text(magic) != kRosbag1Magic) {
    return unimplemented(fmt::format(
        "{}: a ROS 1 bag of another version than 2.0 (\"{}\"); bring it up to date with `rosbag "
        "migrate`",
        source->name(), as_text(magic).substr(0, as_text(magic).find('\n'))));
  }
  auto file = std::make_unique<Rosbag1File>(std::move(source), options);
  file->kind = BagKind::rosbag1;
  file->problems = ProblemLog(file->source->name());
  ROPEWALK_RETURN_IF_ERROR(Opener(*file).run().with_context(file->source->name()));
  return std::unique_ptr<BagFile>(std::move(file));
}

}  // namespace ropewalk::bag
