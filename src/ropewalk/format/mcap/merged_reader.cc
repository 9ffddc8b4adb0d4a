#include "ropewalk/format/mcap/merged_reader.h"

#include <algorithm>
#include <unordered_map>

#include <fmt/format.h>

#include "ropewalk/format/mcap/record_writer.h"

namespace ropewalk::mcap {

// The ids of the merged stream: by content, and by where a channel was met.
struct MergedReader::Tables {
  struct Met {
    std::size_t file = 0;
    const Channel* channel = nullptr;
    const Schema* schema = nullptr;
    bool operator==(const Met&) const = default;
  };
  struct MetHash {
    std::size_t operator()(const Met& met) const {
      return std::hash<const void*>()(met.channel) * 31 + std::hash<const void*>()(met.schema) +
             met.file;
    }
  };
  struct Merged {
    const Channel* channel = nullptr;
    const Schema* schema = nullptr;
  };

  MergeOptions options;
  std::vector<Reader> readers;
  std::map<std::uint16_t, Schema> schemas;
  std::map<std::uint16_t, Channel> channels;
  std::map<Bytes, std::uint16_t> schema_ids;   // by content
  std::map<Bytes, std::uint16_t> channel_ids;  // by content, and by file where they never coalesce
  std::uint32_t next_schema = 1;
  std::uint32_t next_channel = 1;

  // Keeps the id that a definition has in its file when it is free.
  template <typename Map>
  static Result<std::uint16_t> free_id(const Map& taken, std::uint16_t wanted, std::uint32_t& next,
                                       std::string_view what) {
    if (wanted != 0 && !taken.contains(wanted)) return wanted;
    while (next < 0x10000 && taken.contains(static_cast<std::uint16_t>(next))) ++next;
    if (next >= 0x10000) {
      return resource_exhausted(fmt::format("the files have more than 65535 {}", what));
    }
    return static_cast<std::uint16_t>(next);
  }

  Result<const Schema*> schema_of(const Schema& schema) {
    Schema anonymous = schema;
    anonymous.id = 0;
    Bytes key;
    ROPEWALK_RETURN_IF_ERROR(append_record(key, anonymous));
    if (const auto known = schema_ids.find(key); known != schema_ids.end()) {
      return &schemas.at(known->second);
    }
    ROPEWALK_ASSIGN_OR_RETURN(const std::uint16_t id,
                              free_id(schemas, schema.id, next_schema, "schemas"));
    anonymous.id = id;
    schema_ids.emplace(std::move(key), id);
    return &schemas.emplace(id, std::move(anonymous)).first->second;
  }

  Result<Merged> merged(const Met& met) {
    Merged out;
    if (met.schema != nullptr) {
      ROPEWALK_ASSIGN_OR_RETURN(out.schema, schema_of(*met.schema));
    }
    Channel channel = *met.channel;
    channel.schema_id = out.schema == nullptr ? 0 : out.schema->id;
    // A map with a key twice is legal to read and not to write: the key of the table is plain.
    Bytes key;
    ByteWriter writer(key);
    const auto text = [&](std::string_view part) {
      writer.write_le(static_cast<std::uint64_t>(part.size()));
      writer.write(part);
    };
    writer.write_le(channel.schema_id);
    text(channel.topic);
    text(channel.message_encoding);
    if (options.coalesce != Coalesce::ignore_metadata) {
      for (const auto& [name, value] : channel.metadata) {
        text(name);
        text(value);
      }
    }
    if (options.coalesce == Coalesce::none) {
      writer.write_le(static_cast<std::uint64_t>(met.file));
      writer.write_le(met.channel->id);
    }
    if (const auto known = channel_ids.find(key); known != channel_ids.end()) {
      out.channel = &channels.at(known->second);
      return out;
    }
    ROPEWALK_ASSIGN_OR_RETURN(channel.id, free_id(channels, channel.id, next_channel, "channels"));
    channel_ids.emplace(std::move(key), channel.id);
    out.channel = &channels.emplace(channel.id, std::move(channel)).first->second;
    return out;
  }
};

struct MergedMessages::Impl {
  struct Input {
    MessageReader reader;
    MessageView view;
    bool more = true;
  };
  std::shared_ptr<MergedReader::Tables> tables;
  Order order = Order::log_time;
  std::vector<Input> inputs;
  std::vector<std::size_t> heap;     // inputs that hold a message
  std::optional<std::size_t> taken;  // the input whose message is out
  Status status;
  std::unordered_map<MergedReader::Tables::Met, MergedReader::Tables::Merged,
                     MergedReader::Tables::MetHash>
      met;

  // Whether input a comes after input b.
  bool later(std::size_t a, std::size_t b) const {
    const std::uint64_t time_a = inputs[a].view.log_time;
    const std::uint64_t time_b = inputs[b].view.log_time;
    if (order == Order::file || time_a == time_b)
      return order == Order::reverse_log_time ? a < b : a > b;
    return order == Order::reverse_log_time ? time_a < time_b : time_a > time_b;
  }
  // Returns false when the source fails.
  bool advance(std::size_t i) {
    Input& input = inputs[i];
    if (input.reader.next(input.view)) {
      heap.push_back(i);
      std::ranges::push_heap(heap, [&](std::size_t a, std::size_t b) { return later(a, b); });
      return true;
    }
    status = input.reader.status();
    return status.ok();
  }
};

MergedMessages::MergedMessages(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MergedMessages::MergedMessages(MergedMessages&&) noexcept = default;
MergedMessages& MergedMessages::operator=(MergedMessages&&) noexcept = default;
MergedMessages::~MergedMessages() = default;
const Status& MergedMessages::status() const { return impl_->status; }
const std::vector<Problem>& MergedMessages::problems(std::size_t file) const {
  return impl_->inputs[file].reader.problems();
}

bool MergedMessages::next(MergedView& out) {
  Impl& m = *impl_;
  if (!m.status.ok()) return false;
  // Only now: the view handed out before stood in the buffers of this input.
  if (m.taken.has_value()) {
    const std::size_t input = *m.taken;
    m.taken.reset();
    if (!m.advance(input)) return false;
  }
  if (m.heap.empty()) return false;
  std::ranges::pop_heap(m.heap, [&](std::size_t a, std::size_t b) { return m.later(a, b); });
  const std::size_t file = m.heap.back();
  m.heap.pop_back();
  m.taken = file;
  static_cast<MessageView&>(out) = m.inputs[file].view;
  out.file = file;
  const MergedReader::Tables::Met met{.file = file, .channel = out.channel, .schema = out.schema};
  auto known = m.met.find(met);
  if (known == m.met.end()) {
    auto merged = m.tables->merged(met);
    if (!merged.ok()) {
      m.status = std::move(merged).status();
      return false;
    }
    known = m.met.emplace(met, *merged).first;
  }
  out.channel = known->second.channel;
  out.schema = known->second.schema;
  out.channel_id = out.channel->id;
  return true;
}

MergedReader::MergedReader(std::shared_ptr<Tables> tables) : tables_(std::move(tables)) {}
MergedReader::MergedReader(MergedReader&&) noexcept = default;
MergedReader& MergedReader::operator=(MergedReader&&) noexcept = default;
MergedReader::~MergedReader() = default;
std::size_t MergedReader::size() const { return tables_->readers.size(); }
const Reader& MergedReader::file(std::size_t index) const { return tables_->readers[index]; }
const std::map<std::uint16_t, Schema>& MergedReader::schemas() const { return tables_->schemas; }
const std::map<std::uint16_t, Channel>& MergedReader::channels() const { return tables_->channels; }

Result<MergedReader> MergedReader::open(std::vector<std::shared_ptr<const Source>> sources,
                                        MergeOptions options) {
  if (!sources.empty()) options.reader.cache_bytes /= sources.size();
  auto tables = std::make_shared<Tables>();
  tables->options = options;
  for (auto& source : sources) {
    ROPEWALK_ASSIGN_OR_RETURN(Reader reader, Reader::open(std::move(source), options.reader));
    tables->readers.push_back(std::move(reader));
  }
  for (std::size_t file = 0; file < tables->readers.size(); ++file) {
    const Reader& reader = tables->readers[file];
    for (const auto& [id, channel] : reader.channels()) {
      const auto schema = reader.schemas().find(channel.schema_id);
      ROPEWALK_RETURN_IF_ERROR(
          tables
              ->merged({.file = file,
                        .channel = &channel,
                        .schema = schema == reader.schemas().end() ? nullptr : &schema->second})
              .status());
    }
  }
  return MergedReader(std::move(tables));
}

MergedMessages MergedReader::messages(const MessageQuery& query) const {
  auto impl = std::make_unique<MergedMessages::Impl>();
  impl->tables = tables_;
  impl->order = query.order;
  for (const Reader& reader : tables_->readers) {
    impl->inputs.push_back({.reader = reader.messages(query), .view = {}});
  }
  for (std::size_t i = 0; i < impl->inputs.size(); ++i) {
    if (!impl->advance(i)) break;
  }
  return MergedMessages(std::move(impl));
}

}  // namespace ropewalk::mcap
