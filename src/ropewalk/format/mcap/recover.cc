#include "ropewalk/format/mcap/recover.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/format/mcap/reader_internal.h"
#include "ropewalk/format/mcap/writer.h"

namespace ropewalk::mcap {
namespace {

// The rest of a source from an offset on: a file behind another one has its own offsets.
class RestOfSource final : public Source {
 public:
  RestOfSource(std::shared_ptr<const Source> whole, std::uint64_t begin)
      : whole_(std::move(whole)),
        begin_(begin),
        name_(fmt::format("{} from byte {}", whole_->name(), begin)) {}
  std::uint64_t size() const override { return whole_->size() - begin_; }
  const std::string& name() const override { return name_; }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    if (offset > size() || out.size() > size() - offset) {
      return out_of_range(fmt::format("{}: {} bytes at {}", name_, out.size(), offset));
    }
    return whole_->read_at(begin_ + offset, out);
  }
  ByteSpan mapped() const override {
    const ByteSpan all = whole_->mapped();
    return all.empty() ? all : all.subspan(static_cast<std::size_t>(begin_));
  }

 private:
  std::shared_ptr<const Source> whole_;
  std::uint64_t begin_;
  std::string name_;
};

StringMap without_duplicates(const StringMap& map) {
  StringMap out;
  std::unordered_set<std::string_view> seen;
  for (const auto& entry : map) {
    if (seen.insert(entry.first).second) out.push_back(entry);
  }
  return out;
}

// Copies one file, or one of several that stand one after the other, into a Writer.
class Recovery {
 public:
  Recovery(Writer& writer, const RecoverOptions& options, RecoverReport& report)
      : writer_(writer), options_(options), report_(report) {}

  /// Returns where the next file begins in this one, or nullopt.
  Result<std::optional<std::uint64_t>> copy(const Reader& reader, std::uint64_t base) {
    base_ = base;
    channels_.clear();
    tracked_.clear();
    const FileMap& map = file_map_of(reader);
    collect_items(reader);
    MessageReader messages = reader.messages({.order = Order::file});
    std::size_t told = 0;
    std::optional<std::uint32_t> segment;
    std::map<std::uint16_t, std::uint64_t>* tracked = nullptr;
    for (MessageView m; messages.next(m);) {
      if (segment != m.segment) {
        segment = m.segment;
        if (options_.stop.stop_requested()) return cancelled();
        ROPEWALK_RETURN_IF_ERROR(copy_items(reader, map.segments[*segment].offset));
        ROPEWALK_RETURN_IF_ERROR(choose_codec(m.chunk));
        tracked = messages.problems().size() > told ? &tracked_[*segment] : nullptr;
        told = messages.problems().size();
      }
      if (tracked != nullptr) ++(*tracked)[m.channel_id];
      ROPEWALK_RETURN_IF_ERROR(copy_message(m));
    }
    ROPEWALK_RETURN_IF_ERROR(messages.status());
    ROPEWALK_RETURN_IF_ERROR(copy_items(reader, map.source->size()));
    ROPEWALK_RETURN_IF_ERROR(count_losses(reader, messages.problems()));
    ROPEWALK_ASSIGN_OR_RETURN(const auto data_crc, reader.check_data_crc());
    if (data_crc.has_value()) tell(*data_crc);
    return next_file(reader);
  }

 private:
  struct Item {
    std::uint64_t offset = 0;
    const AttachmentIndex* attachment = nullptr;
    const MetadataIndex* metadata = nullptr;
    const PrivateRecord* private_record = nullptr;
  };
  struct Key {
    const Channel* channel = nullptr;
    const Schema* schema = nullptr;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.channel) * 31 + std::hash<const void*>()(key.schema);
    }
  };
  struct Target {
    std::uint16_t id = 0;
    std::size_t topic = 0;  // in report_.topics
  };

  void tell(Problem problem) {
    problem.offset += base_;
    report_.problems.push_back(std::move(problem));
  }

  void collect_items(const Reader& reader) {
    items_.clear();
    next_item_ = 0;
    for (const AttachmentIndex& a : reader.attachments()) {
      items_.push_back({.offset = a.offset, .attachment = &a});
    }
    for (const MetadataIndex& m : reader.metadata()) {
      items_.push_back({.offset = m.offset, .metadata = &m});
    }
    for (const PrivateRecord& p : reader.private_records()) {
      items_.push_back({.offset = p.offset, .private_record = &p});
    }
    std::ranges::stable_sort(items_, {}, &Item::offset);
  }

  // Attachments, metadata and private records keep their places between the messages.
  Status copy_items(const Reader& reader, std::uint64_t before) {
    for (; next_item_ < items_.size() && items_[next_item_].offset < before; ++next_item_) {
      const Item& item = items_[next_item_];
      if (item.attachment != nullptr) {
        ROPEWALK_RETURN_IF_ERROR(copy_attachment(reader, *item.attachment));
      } else if (item.metadata != nullptr) {
        ROPEWALK_RETURN_IF_ERROR(copy_metadata(reader, *item.metadata));
      } else {
        ROPEWALK_ASSIGN_OR_RETURN(const Bytes content, reader.read_private(*item.private_record));
        ROPEWALK_RETURN_IF_ERROR(writer_.write_private(item.private_record->opcode, content));
      }
    }
    return ok_status();
  }

  Status copy_attachment(const Reader& reader, const AttachmentIndex& index) {
    bool begun = false;
    Status written;
    const auto begin = [&] {
      begun = true;
      return writer_.begin_attachment({.log_time = index.log_time,
                                       .create_time = index.create_time,
                                       .name = index.name,
                                       .media_type = index.media_type,
                                       .data_size = index.data_size});
    };
    const Status read = reader.read_attachment(index, [&](ByteSpan part) {
      written = begun ? ok_status() : begin();
      if (written.ok()) written = writer_.append_attachment(part);
      return written;
    });
    ROPEWALK_RETURN_IF_ERROR(written);
    const bool bad_crc = read.reason() == "attachment_crc";
    if (!read.ok() && read.code() != StatusCode::data_loss) return read;
    if (!read.ok()) {
      tell({.kind = bad_crc ? ProblemKind::attachment_crc : ProblemKind::bad_record,
            .offset = index.offset,
            .length = index.length,
            .detail = std::string(read.message())});
    }
    if (!read.ok() && !bad_crc) {
      // Its data cannot be had whole; a part that is begun cannot be taken back.
      return begun ? read : ok_status();
    }
    if (!begun) ROPEWALK_RETURN_IF_ERROR(begin());
    return writer_.end_attachment();
  }

  Status copy_metadata(const Reader& reader, const MetadataIndex& index) {
    auto metadata = reader.read_metadata(index);
    if (!metadata.ok()) {
      if (metadata.status().code() != StatusCode::data_loss) return std::move(metadata).status();
      tell({.kind = ProblemKind::bad_record,
            .offset = index.offset,
            .length = index.length,
            .detail = std::string(metadata.status().message())});
      return ok_status();
    }
    metadata->metadata = without_duplicates(metadata->metadata);
    return writer_.write_metadata(*metadata);
  }

  Status choose_codec(const ChunkIndex* chunk) {
    if (options_.compression.has_value()) return ok_status();
    Compression codec = Compression::zstd;
    if (chunk != nullptr) {
      codec = chunk->compression.empty()    ? Compression::none
              : chunk->compression == "lz4" ? Compression::lz4_frame
                                            : Compression::zstd;
    }
    return writer_.set_compression(codec, options_.level);
  }

  // Ids stay as they are unless they mean something else already.
  Result<Target> target_of(const MessageView& m) {
    const Key key{.channel = m.channel, .schema = m.schema};
    if (const auto known = channels_.find(key); known != channels_.end()) return known->second;
    Channel channel = *m.channel;
    channel.metadata = without_duplicates(channel.metadata);
    channel.schema_id = 0;
    if (m.schema != nullptr) {
      channel.schema_id = m.schema->id;
      if (Status added = writer_.add_schema_with_id(*m.schema); !added.ok()) {
        if (added.code() != StatusCode::already_exists) return added;
        ROPEWALK_ASSIGN_OR_RETURN(
            channel.schema_id,
            writer_.add_schema(m.schema->name, m.schema->encoding, m.schema->data));
      }
    }
    Target target{.id = channel.id};
    if (Status added = writer_.add_channel_with_id(channel); !added.ok()) {
      if (added.code() != StatusCode::already_exists) return added;
      ROPEWALK_ASSIGN_OR_RETURN(target.id, writer_.add_channel(channel));
    }
    target.topic = topic_entry(channel.topic, m.schema == nullptr ? std::string() : m.schema->name);
    channels_.emplace(key, target);
    return target;
  }

  std::size_t topic_entry(const std::string& topic, const std::string& schema) {
    auto& topics = report_.topics;
    const auto found = std::ranges::find_if(
        topics, [&](const auto& t) { return t.topic == topic && t.schema == schema; });
    if (found != topics.end()) return static_cast<std::size_t>(found - topics.begin());
    topics.push_back({.topic = topic, .schema = schema});
    return topics.size() - 1;
  }

  Status copy_message(const MessageView& m) {
    ROPEWALK_ASSIGN_OR_RETURN(const Target target, target_of(m));
    MessageHead head = m;
    head.channel_id = target.id;
    ROPEWALK_RETURN_IF_ERROR(writer_.write(head, m.data));
    RecoveredTopic& topic = report_.topics[target.topic];
    ++topic.messages;
    if (m.verified == Verified::unverified) {
      ++topic.unverified;
      ++report_.unverified_messages;
    }
    ++recovered_[m.channel_id];
    return ok_status();
  }

  // Message indexes of damaged chunks, and statistics, tell what should have been there.
  Status count_losses(const Reader& reader, const std::vector<Problem>& met) {
    for (const Problem& p : reader.problems()) tell(p);
    for (const Problem& p : met) tell(p);
    const FileMap& map = file_map_of(reader);
    std::map<std::uint16_t, std::uint64_t> lost;
    std::unordered_set<std::uint64_t> damaged;
    for (const Problem& p : met) {
      if (is_loss(p.kind)) damaged.insert(p.offset);
    }
    for (std::size_t i = 0; i < map.segments.size(); ++i) {
      if (!damaged.contains(map.segments[i].offset)) continue;
      ProblemList ignored;
      ROPEWALK_ASSIGN_OR_RETURN(const auto indexes,
                                read_message_indexes(map, map.segments[i], ignored));
      if (!indexes.has_value()) continue;
      for (const MessageIndex& index : *indexes) {
        const auto& found = tracked_[static_cast<std::uint32_t>(i)];
        const auto count = found.find(index.channel_id);
        const std::uint64_t here = count == found.end() ? 0 : count->second;
        if (index.records.size() > here) lost[index.channel_id] += index.records.size() - here;
      }
    }
    if (reader.has_summary() && reader.statistics().has_value()) {
      for (const auto& [id, count] : reader.statistics()->channel_message_counts) {
        const std::uint64_t found = recovered_[id];
        if (count > found) lost[id] = std::max(lost[id], count - found);
      }
    }
    for (const auto& [id, count] : lost) {
      const auto channel = reader.channels().find(id);
      std::string topic = fmt::format("unknown/{}", id);
      std::string schema;
      if (channel != reader.channels().end()) {
        topic = channel->second.topic;
        const auto it = reader.schemas().find(channel->second.schema_id);
        if (it != reader.schemas().end()) schema = it->second.name;
      }
      report_.topics[topic_entry(topic, schema)].lost += count;
      report_.lost_messages += count;
    }
    recovered_.clear();
    return ok_status();
  }

  // A second file whose magic stands where the first one ends.
  Result<std::optional<std::uint64_t>> next_file(const Reader& reader) {
    for (const Problem& p : reader.problems()) {
      if (p.kind != ProblemKind::trailing_data || p.length < kMagic.size()) continue;
      std::array<std::uint8_t, kMagic.size()> magic{};
      ROPEWALK_RETURN_IF_ERROR(file_map_of(reader).source->read_at(p.offset, magic));
      if (magic == kMagic) return std::optional<std::uint64_t>(p.offset);
    }
    return std::optional<std::uint64_t>();
  }

  Writer& writer_;
  const RecoverOptions& options_;
  RecoverReport& report_;
  std::uint64_t base_ = 0;
  std::unordered_map<Key, Target, KeyHash> channels_;
  std::vector<Item> items_;
  std::size_t next_item_ = 0;
  std::map<std::uint16_t, std::uint64_t> recovered_;  // by id in the damaged file
  // What was delivered of segments that are damaged.
  std::map<std::uint32_t, std::map<std::uint16_t, std::uint64_t>> tracked_;
};

void merge_lost_ranges(RecoverReport& report) {
  std::ranges::stable_sort(report.problems, {}, &Problem::offset);
  for (const Problem& p : report.problems) {
    if (!is_loss(p.kind)) continue;
    if (!report.lost_ranges.empty()) {
      LostRange& last = report.lost_ranges.back();
      if (p.offset <= last.offset + last.length) {
        last.length = std::max(last.length, p.offset - last.offset + p.length);
        continue;
      }
    }
    report.lost_ranges.push_back({.offset = p.offset, .length = p.length});
  }
  for (const LostRange& range : report.lost_ranges) report.lost_bytes += range.length;
  std::ranges::sort(report.topics, [](const RecoveredTopic& a, const RecoveredTopic& b) {
    return a.topic != b.topic ? a.topic < b.topic : a.schema < b.schema;
  });
}

}  // namespace

Result<RecoverReport> recover(std::shared_ptr<const Source> in, Sink& sink,
                              const RecoverOptions& options) {
  ReaderOptions reading;
  reading.limits = options.limits;
  reading.lenient = true;
  ROPEWALK_ASSIGN_OR_RETURN(Reader reader, Reader::open(in, reading));
  if (std::ranges::any_of(reader.problems(),
                          [](const Problem& p) { return p.kind == ProblemKind::no_records; })) {
    return data_loss(fmt::format("{}: no records: nothing stands behind the magic", in->name()));
  }
  WriterOptions writing{.profile = reader.header().profile};
  writing.chunk_bytes = options.chunk_bytes;
  writing.compression = options.compression.value_or(Compression::zstd);
  writing.level = options.level;
  ROPEWALK_ASSIGN_OR_RETURN(Writer writer, Writer::create(writing));
  ROPEWALK_RETURN_IF_ERROR(writer.open(sink));
  RecoverReport report;
  Recovery recovery(writer, options, report);
  for (std::uint64_t base = 0;;) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto next, recovery.copy(reader, base));
    if (!next.has_value()) break;
    base += *next;
    auto rest = Reader::open(std::make_shared<RestOfSource>(in, base), reading);
    if (!rest.ok()) {
      if (rest.status().code() != StatusCode::data_loss) return std::move(rest).status();
      break;  // told as trailing data
    }
    reader = std::move(*rest);
    ++report.files;
  }
  ROPEWALK_RETURN_IF_ERROR(writer.finish());
  report.written = writer.statistics();
  merge_lost_ranges(report);
  return report;
}

Result<RecoverReport> recover_file(const std::filesystem::path& input,
                                   const std::filesystem::path& output,
                                   const RecoverOptions& options) {
  if (!options.replace) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto there, file_info(output));
    if (there.has_value()) {
      return already_exists(fmt::format("{}: exists; it is not replaced", output.string()));
    }
  }
  // Not mapped: a failing disk is then an error and not the end of the process.
  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, open_source(input));
  const std::filesystem::path parent =
      output.has_parent_path() ? output.parent_path() : std::filesystem::path(".");
  const std::filesystem::path temporary =
      parent / fmt::format(".{}.tmp.{}", output.filename().string(), random_uuid());
  const auto write = [&]() -> Result<RecoverReport> {
    ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_sink(temporary));
    ROPEWALK_ASSIGN_OR_RETURN(RecoverReport report, recover(std::move(source), *sink, options));
    ROPEWALK_RETURN_IF_ERROR(sink->sync());
    ROPEWALK_RETURN_IF_ERROR(sink->close());
    ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> written, open_source(temporary));
    if (Status verified = verify_file(std::move(written), options.limits); !verified.ok()) {
      return internal(fmt::format("the recovered file does not read back: {}", verified.message()));
    }
    ROPEWALK_RETURN_IF_ERROR(options.replace ? rename_path(temporary, output)
                                             : rename_no_replace(temporary, output));
    ROPEWALK_RETURN_IF_ERROR(sync_directory(parent));
    return report;
  };
  auto report = write();
  if (!report.ok()) static_cast<void>(remove_file(temporary));
  return report;
}

Status verify_file(std::shared_ptr<const Source> source, const Limits& limits) {
  const std::string name = source->name();
  const auto wrong = [&](std::string what) { return data_loss(fmt::format("{}: {}", name, what)); };
  ReaderOptions options;
  options.limits = limits;
  ROPEWALK_ASSIGN_OR_RETURN(const Reader reader, Reader::open(std::move(source), options));
  const FileMap& map = file_map_of(reader);
  if (!reader.problems().empty()) return wrong(to_line(reader.problems().front()));
  if (!reader.finished() || !reader.has_summary() || !reader.statistics().has_value()) {
    return wrong("it has no footer, no summary or no statistics");
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto data_crc, reader.check_data_crc());
  if (data_crc.has_value()) return wrong(to_line(*data_crc));
  ProblemList problems;
  for (Segment segment : map.segments) {
    ROPEWALK_RETURN_IF_ERROR(verify_segment(map, segment, problems));
    if (!problems.empty()) return wrong(to_line(problems.front()));
  }
  for (const AttachmentIndex& index : reader.attachments()) {
    ROPEWALK_RETURN_IF_ERROR(reader.read_attachment(index, [](ByteSpan) { return ok_status(); }));
  }
  for (const MetadataIndex& index : reader.metadata()) {
    ROPEWALK_RETURN_IF_ERROR(reader.read_metadata(index).status());
  }
  const Statistics& stated = *reader.statistics();
  std::map<std::uint16_t, std::uint64_t> expected(stated.channel_message_counts.begin(),
                                                  stated.channel_message_counts.end());
  for (const Order order : {Order::file, Order::log_time}) {
    std::map<std::uint16_t, std::uint64_t> counted;
    std::uint64_t total = 0;
    std::uint64_t last_time = 0;
    MessageReader messages = reader.messages({.order = order});
    for (MessageView m; messages.next(m); ++total) {
      ++counted[m.channel_id];
      if (order == Order::log_time && m.log_time < last_time) return wrong("messages out of order");
      last_time = m.log_time;
    }
    ROPEWALK_RETURN_IF_ERROR(messages.status());
    if (!messages.problems().empty()) return wrong(to_line(messages.problems().front()));
    if (total != stated.message_count || counted != expected) {
      return wrong(fmt::format("{} messages stated, {} found", stated.message_count, total));
    }
  }
  return ok_status();
}

}  // namespace ropewalk::mcap
