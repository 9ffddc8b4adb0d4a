// PartWriter: one MCAP file being written from messages, metadata and attachments of others.
#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/engine/mcap/copy_internal.h"

namespace ropewalk {
namespace {

Result<mcap::WriterOptions> writer_options(const CopyPlan& plan) {
  mcap::WriterOptions options;
  const auto& inputs = *plan.inputs;
  options.profile = inputs.front().reader.header().profile;
  for (const McapInput& input : inputs) {
    if (input.reader.header().profile != options.profile) options.profile.clear();
  }
  if (plan.writing.compression == "preserve") {
    options.compression = plan.kept;
  } else {
    options.compression = *compression_from_name(plan.writing.compression);
  }
  options.level = options.compression == Compression::none ? 0 : plan.writing.level;
  options.force_compression = plan.writing.force_compression;
  options.chunked = plan.writing.chunked;
  options.chunk_bytes = plan.writing.chunk_bytes;
  options.chunk_crc = plan.writing.crc;
  options.attachment_crc = plan.writing.crc;
  options.summary_crc = plan.writing.crc;
  options.unused_definitions = plan.selection->unused_definitions;
  // One open chunk at a time: chunks of topics apart would not keep the order of the messages.
  options.detect_incompressible = false;
  options.pool = plan.context->pool;
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  return options;
}

// The format leaves a key that occurs twice undefined: the last value stays.
mcap::StringMap without_duplicates(const mcap::StringMap& map) {
  mcap::StringMap out;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const auto& [key, value] : map) {
    const auto [place, added] = places.try_emplace(key, out.size());
    if (added) {
      out.emplace_back(key, value);
    } else {
      out[place->second].second = value;
    }
  }
  return out;
}

}  // namespace

std::optional<McapOrder> mcap_order_from_name(std::string_view name) {
  if (name == "preserve") return McapOrder::preserve;
  if (name == "log_time") return McapOrder::log_time;
  if (name == "topic") return McapOrder::topic;
  return std::nullopt;
}

std::optional<ChannelCoalescing> coalescing_from_name(std::string_view name) {
  if (name == "auto") return ChannelCoalescing::automatic;
  if (name == "force") return ChannelCoalescing::force;
  if (name == "none") return ChannelCoalescing::none;
  return std::nullopt;
}

Status McapWriting::validate() const {
  if (compression != "preserve" && compression != "none" && compression != "lz4" &&
      compression != "zstd") {
    return invalid_argument(
        fmt::format("compression '{}': expected preserve, none, lz4 or zstd", compression));
  }
  if (chunk_bytes == 0 || chunk_bytes > Limits{}.max_chunk_bytes) {
    return invalid_argument(fmt::format("a chunk size of {} bytes: expected 1 to {}", chunk_bytes,
                                        Limits{}.max_chunk_bytes));
  }
  return ok_status();
}

Compression kept_compression(const std::vector<McapInput>& inputs) {
  std::map<std::string, std::uint64_t> bytes;
  for (const McapInput& input : inputs) {
    for (const mcap::ChunkIndex& chunk : input.reader.chunks()) {
      bytes[chunk.compression] += chunk.uncompressed_size;
    }
  }
  const std::uint64_t lz4 = bytes["lz4"];
  const std::uint64_t zstd = bytes["zstd"];
  if (lz4 == 0 && zstd == 0) return Compression::none;
  return lz4 > zstd ? Compression::lz4_frame : Compression::zstd;
}

struct PartWriter::Impl {
  CopyPlan plan;
  OutputFile output;
  mcap::Writer writer;

  std::uint64_t pass = 0;
  std::unordered_map<const mcap::Channel*, std::uint16_t> ids;  // of this pass
  std::map<std::tuple<std::string, std::uint16_t, std::string>, std::uint16_t> forced;
  // With coalescing none: the channels of each input by their content.
  std::map<std::pair<std::size_t, std::uint16_t>,
           std::vector<std::pair<mcap::Channel, std::uint16_t>>>
      apart;
  std::uint32_t next_apart_id = 1;

  std::uint64_t messages = 0;
  std::uint64_t metadata = 0;
  std::uint64_t attachments = 0;
  std::unordered_map<std::uint16_t, TopicCount*> counts;
  std::map<std::string, TopicCount> topics;
  std::uint64_t flushed = 0;  // bytes_written() when pending was 0
  std::uint64_t pending = 0;  // accepted since

  Impl(CopyPlan p, OutputFile o, mcap::Writer w)
      : plan(std::move(p)), output(std::move(o)), writer(std::move(w)) {}

  bool keeps_ids() const { return plan.inputs->size() == 1; }
  Result<std::uint16_t> schema_id(const mcap::Schema* schema);
  Result<std::uint16_t> channel_id(std::size_t input, const mcap::Channel& channel,
                                   const mcap::Schema* schema);
  Result<std::uint16_t> add_apart(std::size_t input, const mcap::Channel& source,
                                  mcap::Channel channel, mcap::ChannelOptions options);
};

Result<std::uint16_t> PartWriter::Impl::schema_id(const mcap::Schema* schema) {
  if (schema == nullptr) return std::uint16_t{0};
  if (keeps_ids()) {
    const Status kept = writer.add_schema_with_id(*schema);
    if (kept.ok()) return schema->id;
    if (kept.code() != StatusCode::already_exists) return kept;
  }
  return writer.add_schema(schema->name, schema->encoding, schema->data);
}

Result<std::uint16_t> PartWriter::Impl::add_apart(std::size_t input, const mcap::Channel& source,
                                                  mcap::Channel channel,
                                                  mcap::ChannelOptions options) {
  auto& known = apart[{input, source.id}];
  for (const auto& [content, id] : known) {
    if (content == channel) return id;
  }
  while (true) {
    if (next_apart_id > 0xFFFF) {
      return resource_exhausted("the inputs have more than 65,535 channels in all");
    }
    mcap::Channel own = channel;
    own.id = static_cast<std::uint16_t>(next_apart_id++);
    const Status added = writer.add_channel_with_id(own, options);
    if (added.code() == StatusCode::already_exists) continue;
    ROPEWALK_RETURN_IF_ERROR(added);
    known.emplace_back(std::move(channel), own.id);
    return own.id;
  }
}

Result<std::uint16_t> PartWriter::Impl::channel_id(std::size_t input, const mcap::Channel& channel,
                                                   const mcap::Schema* schema) {
  mcap::Channel own = channel;
  own.topic = plan.selection->renamed(channel.topic);
  own.metadata = without_duplicates(channel.metadata);
  ROPEWALK_ASSIGN_OR_RETURN(own.schema_id, schema_id(schema));
  const mcap::ChannelOptions options;
  switch (plan.coalescing) {
    case ChannelCoalescing::automatic:
      break;
    case ChannelCoalescing::force: {
      const auto key = std::tuple(own.topic, own.schema_id, own.message_encoding);
      const auto known = forced.find(key);
      if (known != forced.end()) return known->second;
      ROPEWALK_ASSIGN_OR_RETURN(const std::uint16_t id, writer.add_channel(own, options));
      forced.emplace(key, id);
      return id;
    }
    case ChannelCoalescing::none:
      if (!keeps_ids()) return add_apart(input, channel, std::move(own), options);
      break;
  }
  if (keeps_ids()) {
    const Status kept = writer.add_channel_with_id(own, options);
    if (kept.ok()) return own.id;
    if (kept.code() != StatusCode::already_exists) return kept;
  }
  return writer.add_channel(own, options);
}

PartWriter::PartWriter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PartWriter::PartWriter(PartWriter&&) noexcept = default;
PartWriter& PartWriter::operator=(PartWriter&&) noexcept = default;
PartWriter::~PartWriter() = default;
std::uint64_t PartWriter::messages() const { return impl_->messages; }
std::uint64_t PartWriter::bytes() const {
  return std::max(impl_->writer.bytes_written(), impl_->flushed) + impl_->pending;
}
const std::map<std::string, TopicCount>& PartWriter::topics() const { return impl_->topics; }
std::uint64_t PartWriter::metadata_count() const { return impl_->metadata; }
std::uint64_t PartWriter::attachment_count() const { return impl_->attachments; }
const std::string& PartWriter::path() const { return impl_->output.path(); }

Result<PartWriter> PartWriter::create(const CopyPlan& plan, const std::string& path, bool replace) {
  ROPEWALK_ASSIGN_OR_RETURN(mcap::WriterOptions options, writer_options(plan));
  ROPEWALK_ASSIGN_OR_RETURN(mcap::Writer writer, mcap::Writer::create(std::move(options)));
  ROPEWALK_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(path, replace));
  auto impl = std::make_unique<Impl>(plan, std::move(output), std::move(writer));
  ROPEWALK_RETURN_IF_ERROR(impl->writer.open(impl->output.sink()));
  return PartWriter(std::move(impl));
}

Status PartWriter::register_definitions(const MessageFlow& flow,
                                        const std::optional<std::string>& only) {
  Impl& part = *impl_;
  for (std::size_t i = 0; i < part.plan.inputs->size(); ++i) {
    const mcap::Reader& reader = (*part.plan.inputs)[i].reader;
    const auto& topics = flow.topics_of(i);
    if (!topics.has_value() && !only.has_value()) {
      for (const auto& [id, schema] : reader.schemas()) {
        ROPEWALK_ASSIGN_OR_RETURN([[maybe_unused]] const auto same, part.schema_id(&schema));
      }
    }
    for (const auto& [id, channel] : reader.channels()) {
      if (topics.has_value() && std::ranges::find(*topics, channel.topic) == topics->end()) {
        continue;
      }
      if (only.has_value() && channel.topic != *only) continue;
      const auto schema = reader.schemas().find(channel.schema_id);
      ROPEWALK_ASSIGN_OR_RETURN(
          [[maybe_unused]] const auto same,
          part.channel_id(i, channel,
                          channel.schema_id == 0 || schema == reader.schemas().end()
                              ? nullptr
                              : &schema->second));
    }
  }
  return ok_status();
}

Status PartWriter::copy_metadata() {
  Impl& part = *impl_;
  if (!part.plan.selection->metadata) return ok_status();
  struct Known {
    std::size_t input;
    mcap::Metadata metadata;
  };
  std::map<std::string, std::vector<Known>> known;
  for (std::size_t i = 0; i < part.plan.inputs->size(); ++i) {
    const McapInput& input = (*part.plan.inputs)[i];
    for (const mcap::MetadataIndex& index : input.reader.metadata()) {
      auto read = input.reader.read_metadata(index);
      if (!read.ok()) {
        part.plan.log->add(input.name, {{.kind = mcap::ProblemKind::bad_record,
                                         .offset = index.offset,
                                         .length = index.length,
                                         .detail = std::string(read.status().message())}});
        continue;
      }
      if (const auto key = mcap::duplicate_key(read->metadata)) {
        part.plan.log->add(input.name,
                           {{.kind = mcap::ProblemKind::duplicate_key,
                             .offset = index.offset,
                             .length = index.length,
                             .detail = fmt::format("metadata \"{}\": key \"{}\": the last value "
                                                   "is kept",
                                                   read->name, *key)}});
        read->metadata = without_duplicates(read->metadata);
      }
      auto& same_name = known[read->name];
      bool repeated = false;
      for (const Known& other : same_name) {
        if (other.input == i) continue;
        if (other.metadata.metadata == read->metadata) {
          repeated = true;
        } else if (!part.plan.allow_duplicate_metadata) {
          return failed_precondition(fmt::format(
              "metadata \"{}\" differs between {} and {}; --allow-duplicate-metadata keeps both",
              read->name, (*part.plan.inputs)[other.input].name, input.name));
        }
      }
      if (repeated) continue;
      ROPEWALK_RETURN_IF_ERROR(part.writer.write_metadata(*read));
      ++part.metadata;
      same_name.push_back({.input = i, .metadata = std::move(*read)});
    }
  }
  return ok_status();
}

Status PartWriter::copy_attachments(std::uint64_t begin_time, std::uint64_t last_time) {
  Impl& part = *impl_;
  if (!part.plan.selection->attachments) return ok_status();
  for (const McapInput& input : *part.plan.inputs) {
    for (const mcap::AttachmentIndex& index : input.reader.attachments()) {
      if (index.log_time < begin_time || index.log_time > last_time) continue;
      // A first pass proves the CRC: what is damaged does not get a new, right one.
      std::uint64_t size = 0;
      const Status sound = input.reader.read_attachment(index, [&](ByteSpan bytes) {
        size += bytes.size();
        return part.plan.context->check_stop();
      });
      if (sound.code() == StatusCode::cancelled) return sound;
      if (!sound.ok()) {
        part.plan.log->add(input.name, {{.kind = mcap::ProblemKind::attachment_crc,
                                         .offset = index.offset,
                                         .length = index.length,
                                         .detail = std::string(sound.message())}});
        continue;
      }
      ROPEWALK_RETURN_IF_ERROR(part.writer.begin_attachment({.log_time = index.log_time,
                                                             .create_time = index.create_time,
                                                             .name = index.name,
                                                             .media_type = index.media_type,
                                                             .data_size = size}));
      ROPEWALK_RETURN_IF_ERROR(input.reader.read_attachment(index, [&](ByteSpan bytes) {
        ROPEWALK_RETURN_IF_ERROR(part.plan.context->check_stop());
        return part.writer.append_attachment(bytes);
      }));
      ROPEWALK_RETURN_IF_ERROR(part.writer.end_attachment());
      ++part.attachments;
    }
  }
  return ok_status();
}

Status PartWriter::write(const FlowMessage& message, std::uint64_t pass) {
  Impl& part = *impl_;
  if (pass != part.pass) {
    part.ids.clear();
    if (part.plan.flush_between_passes && part.messages > 0) {
      ROPEWALK_RETURN_IF_ERROR(part.writer.flush());
    }
    part.pass = pass;
  }
  auto id = part.ids.find(message.view.channel);
  if (id == part.ids.end()) {
    ROPEWALK_ASSIGN_OR_RETURN(
        const std::uint16_t made,
        part.channel_id(message.input, *message.view.channel, message.view.schema));
    id = part.ids.emplace(message.view.channel, made).first;
    part.counts[made] = &part.topics[part.plan.selection->renamed(message.view.channel->topic)];
  }
  mcap::MessageHead head = message.view;
  head.channel_id = id->second;
  const std::uint64_t before = part.writer.bytes_written();
  ROPEWALK_RETURN_IF_ERROR(part.writer.write(head, message.view.data));
  const std::uint64_t after = part.writer.bytes_written();
  part.pending = after == before ? part.pending + mcap::kRecordHeadBytes + mcap::kMessageHeadBytes +
                                       message.view.data.size()
                                 : 0;
  part.flushed = after;
  ++part.messages;
  TopicCount& count = *part.counts[id->second];
  ++count.messages;
  count.bytes += message.view.data.size();
  return ok_status();
}

Status PartWriter::finish() {
  ROPEWALK_RETURN_IF_ERROR(impl_->writer.finish());
  impl_->pending = 0;
  return impl_->output.seal();
}

Status PartWriter::publish() { return impl_->output.publish(); }

}  // namespace ropewalk
