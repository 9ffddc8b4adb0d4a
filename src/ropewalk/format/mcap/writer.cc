#include "ropewalk/format/mcap/writer.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/format/mcap/private_records.h"
#include "ropewalk/format/mcap/record_writer.h"
#include "ropewalk/format/mcap/writer_internal.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kMaxIds = 1U << 16;

std::string content_key(std::string_view a, std::string_view b, ByteSpan c) {
  return fmt::format("{}:{}{}:{}{}", a.size(), a, b.size(), b, as_text(c));
}

}  // namespace

Status WriterOptions::validate() const {
  if (compression != Compression::none && compression != Compression::lz4_frame &&
      compression != Compression::zstd) {
    return invalid_argument(fmt::format("compression: {} is not one of none, lz4, zstd",
                                        compression_name(compression)));
  }
  if (chunk_bytes == 0) return invalid_argument("chunk_bytes: 0; turn chunks off with chunked");
  if (chunk_bytes > (1ULL << 30)) {
    return invalid_argument(fmt::format("chunk_bytes: {} is more than 1 GiB", chunk_bytes));
  }
  if (recording_marks && !(chunk_index && message_index && attachment_index && metadata_index)) {
    return invalid_argument("recording_marks: checkpoints need all indexes to be on");
  }
  if (recording_marks && checkpoint_bytes == 0) return invalid_argument("checkpoint_bytes: 0");
  return ok_status();
}

WriterOptions WriterOptions::recording() {
  WriterOptions out;
  out.max_chunk_age_ns = 50'000'000;
  out.flush_chunks = true;
  out.sync_interval_ns = 1'000'000'000;
  out.recording_marks = true;
  return out;
}

Writer::Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Writer::Writer(Writer&&) noexcept = default;
Writer& Writer::operator=(Writer&&) noexcept = default;
Writer::~Writer() = default;

Result<Writer> Writer::create(WriterOptions options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  return Writer(std::make_unique<Impl>(std::move(options)));
}

void Writer::Impl::start_file(Sink& to) {
  sink = &to;
  failure = ok_status();
  offset = 0;
  sink_start = to.size();
  synced_at = 0;
  synced_ns = has_clock() ? clock_ns() : 0;
  checkpoint_end = 0;
  blocks.clear();
  checkpoints.clear();
  pending.clear();
  data_crc = 0;
  in_data_section = true;
  chunk_serial = 0;
  statistics = {};
  chunk_indexes.clear();
  attachment_indexes.clear();
  metadata_indexes.clear();
  parts = {};
  for (auto& [id, schema] : schemas) {
    schema->in_data = false;
    schema->checkpoint = 0;
    schema->last_chunk = 0;
  }
  for (auto& channel : channels) {
    if (channel == nullptr) continue;
    channel->in_data = false;
    channel->checkpoint = 0;
    channel->last_chunk = 0;
    channel->messages = 0;
    channel->entries.clear();
  }
  for (auto& [key, chunk] : groups) start_chunk(*chunk);
}

Status Writer::open(Sink& sink) {
  Impl& w = *impl_;
  if (w.sink != nullptr) {
    return failed_precondition(
        fmt::format("{} is still open: call finish() first", w.sink->name()));
  }
  w.start_file(sink);
  w.scratch.assign(kMagic.begin(), kMagic.end());
  Status status =
      append_record(w.scratch, Header{.profile = w.options.profile, .library = w.options.library});
  if (!status.ok()) return w.fail(std::move(status));
  ROPEWALK_RETURN_IF_ERROR(w.emit(w.scratch));
  // The first one tells that this is a recording.
  if (w.options.recording_marks) ROPEWALK_RETURN_IF_ERROR(w.write_checkpoint());
  if (!w.options.flush_chunks) return ok_status();
  status = sink.flush();
  return status.ok() ? ok_status() : w.fail(std::move(status));
}

Result<std::uint16_t> Writer::add_schema(std::string_view name, std::string_view encoding,
                                         ByteSpan data) {
  Impl& w = *impl_;
  const auto known = w.schema_ids.find(content_key(name, encoding, data));
  if (known != w.schema_ids.end()) return known->second;
  while (w.next_schema_id < kMaxIds &&
         w.schemas.contains(static_cast<std::uint16_t>(w.next_schema_id))) {
    ++w.next_schema_id;
  }
  if (w.next_schema_id >= kMaxIds) return resource_exhausted("all 65535 schema ids are taken");
  const auto id = static_cast<std::uint16_t>(w.next_schema_id);
  ROPEWALK_RETURN_IF_ERROR(add_schema_with_id({.id = id,
                                               .name = std::string(name),
                                               .encoding = std::string(encoding),
                                               .data = Bytes(data.begin(), data.end())}));
  return id;
}

Status Writer::add_schema_with_id(const Schema& schema) {
  Impl& w = *impl_;
  if (schema.id == 0) return invalid_argument("schema id 0 means \"no schema\"");
  if (auto it = w.schemas.find(schema.id); it != w.schemas.end()) {
    if (it->second->schema == schema) return ok_status();
    return already_exists(fmt::format("schema {} is \"{}\" with other content than \"{}\"",
                                      schema.id, it->second->schema.name, schema.name));
  }
  auto state = std::make_unique<SchemaState>();
  state->schema = schema;
  ROPEWALK_RETURN_IF_ERROR(append_record(state->record, schema));
  w.schemas.emplace(schema.id, std::move(state));
  w.schema_ids.emplace(content_key(schema.name, schema.encoding, schema.data), schema.id);
  return ok_status();
}

Result<std::uint16_t> Writer::add_channel(const Channel& channel, ChannelOptions options) {
  Impl& w = *impl_;
  Channel wanted = channel;
  wanted.id = 0;
  Bytes key;
  ROPEWALK_RETURN_IF_ERROR(append_record(key, wanted));
  if (const auto known = w.channel_ids.find(std::string(as_text(key)));
      known != w.channel_ids.end()) {
    return known->second;
  }
  while (w.next_channel_id < kMaxIds && w.next_channel_id < w.channels.size() &&
         w.channels[w.next_channel_id] != nullptr) {
    ++w.next_channel_id;
  }
  if (w.next_channel_id >= kMaxIds) return resource_exhausted("all 65535 channel ids are taken");
  wanted.id = static_cast<std::uint16_t>(w.next_channel_id);
  ROPEWALK_RETURN_IF_ERROR(add_channel_with_id(wanted, options));
  return wanted.id;
}

Status Writer::add_channel_with_id(const Channel& channel, ChannelOptions options) {
  Impl& w = *impl_;
  if (channel.id < w.channels.size() && w.channels[channel.id] != nullptr) {
    if (w.channels[channel.id]->channel == channel) return ok_status();
    return already_exists(fmt::format("channel {} is \"{}\" and not \"{}\"", channel.id,
                                      w.channels[channel.id]->channel.topic, channel.topic));
  }
  auto state = std::make_unique<ChannelState>();
  if (channel.schema_id != 0) {
    const auto schema = w.schemas.find(channel.schema_id);
    if (schema == w.schemas.end()) {
      return not_found(fmt::format("channel \"{}\": no schema {} is registered", channel.topic,
                                   channel.schema_id));
    }
    state->schema = schema->second.get();
  }
  state->channel = channel;
  ROPEWALK_RETURN_IF_ERROR(append_record(state->record, channel));
  state->group = options.group;
  state->compress = options.compress;
  state->chunk = w.group_of(options.group, options.compress);
  Channel anonymous = channel;
  anonymous.id = 0;
  Bytes key;
  ROPEWALK_RETURN_IF_ERROR(append_record(key, anonymous));
  w.channel_ids.emplace(std::string(as_text(key)), channel.id);
  if (w.channels.size() <= channel.id) w.channels.resize(channel.id + std::size_t{1});
  w.channels[channel.id] = std::move(state);
  return ok_status();
}

Status Writer::set_compression(Compression codec, int level) {
  Impl& w = *impl_;
  if (codec == w.options.compression && level == w.options.level) return ok_status();
  WriterOptions changed = w.options;
  changed.compression = codec;
  changed.level = level;
  ROPEWALK_RETURN_IF_ERROR(changed.validate());
  if (w.sink != nullptr) {
    ROPEWALK_RETURN_IF_ERROR(flush());
  }
  w.options = std::move(changed);
  return ok_status();
}

Status Writer::write_metadata(const Metadata& metadata) {
  Impl& w = *impl_;
  ROPEWALK_RETURN_IF_ERROR(w.ready());
  ROPEWALK_RETURN_IF_ERROR(w.emit_pending(true));
  w.scratch.clear();
  ROPEWALK_RETURN_IF_ERROR(append_record(w.scratch, metadata));
  const MetadataIndex index{.offset = w.offset, .length = w.scratch.size(), .name = metadata.name};
  ROPEWALK_RETURN_IF_ERROR(w.emit(w.scratch));
  ++w.statistics.metadata_count;
  if (w.options.metadata_index) w.metadata_indexes.push_back(index);
  return w.after_chunk();
}

Status Writer::write_private(std::uint8_t opcode, ByteSpan content) {
  Impl& w = *impl_;
  if (opcode < 0x80) {
    return invalid_argument(fmt::format("opcode {:#04x} is not private (0x80 to 0xff)", opcode));
  }
  if (is_own_record(opcode)) {
    return invalid_argument(fmt::format("opcode {:#04x} is one of Ropewalk's own", opcode));
  }
  ROPEWALK_RETURN_IF_ERROR(w.ready());
  ROPEWALK_RETURN_IF_ERROR(w.emit_pending(true));
  w.scratch.clear();
  append_raw_record(w.scratch, opcode, content);
  return w.emit(w.scratch);
}

Status Writer::flush() {
  Impl& w = *impl_;
  ROPEWALK_RETURN_IF_ERROR(w.ready());
  ROPEWALK_RETURN_IF_ERROR(w.close_all());
  Status status = w.sink->flush();
  return status.ok() ? ok_status() : w.fail(std::move(status));
}

Status Writer::sync() {
  ROPEWALK_RETURN_IF_ERROR(flush());
  return impl_->sync_now(false);
}

Status Writer::tick() {
  ROPEWALK_RETURN_IF_ERROR(impl_->ready());
  return impl_->run_clock();
}

// --- the end of the file

Status Writer::finish() {
  Impl& w = *impl_;
  Status status = w.ready();
  if (status.ok()) status = w.finish();
  // A file that failed is over as well: open() may start the next one.
  if (!w.failure.ok() && w.tasks != nullptr) static_cast<void>(w.tasks->wait());
  if (status.ok() || !w.failure.ok()) w.sink = nullptr;
  return status;
}

Status Writer::Impl::append_unused_definitions() {
  for (auto& [id, schema] : schemas) {
    if (schema->in_data) continue;
    schema->in_data = true;
    ROPEWALK_RETURN_IF_ERROR(emit(schema->record));
  }
  for (auto& channel : channels) {
    if (channel == nullptr || channel->in_data) continue;
    channel->in_data = true;
    ROPEWALK_RETURN_IF_ERROR(emit(channel->record));
  }
  return ok_status();
}

void Writer::Impl::finish_statistics() {
  statistics.schema_count = 0;
  statistics.channel_count = 0;
  statistics.channel_message_counts.clear();
  for (const auto& [id, schema] : schemas) {
    if (schema->in_data) ++statistics.schema_count;
  }
  for (const auto& channel : channels) {
    if (channel == nullptr || !channel->in_data) continue;
    ++statistics.channel_count;
    if (channel->messages > 0) {
      statistics.channel_message_counts.emplace_back(channel->channel.id, channel->messages);
    }
  }
}

Status Writer::Impl::finish() {
  ROPEWALK_RETURN_IF_ERROR(close_all());
  if (options.unused_definitions) {
    ROPEWALK_RETURN_IF_ERROR(append_unused_definitions());
  }
  in_data_section = false;
  finish_statistics();

  Bytes out;
  ROPEWALK_RETURN_IF_ERROR(append_record(out, DataEnd{.data_section_crc = data_crc}));
  const std::size_t summary_at = out.size();
  const std::uint64_t summary_start = offset + summary_at;
  std::vector<SummaryOffset> groups_written;
  const auto group = [&](Opcode opcode, auto&& append_all) -> Status {
    const std::size_t at = out.size();
    ROPEWALK_RETURN_IF_ERROR(append_all());
    if (out.size() == at) return ok_status();
    groups_written.push_back({.group_opcode = static_cast<std::uint8_t>(opcode),
                              .group_start = offset + at,
                              .group_length = out.size() - at});
    return ok_status();
  };
  const auto all = [&](const auto& records) {
    return [&]() -> Status {
      for (const auto& record : records) {
        ROPEWALK_RETURN_IF_ERROR(append_record(out, record));
      }
      return ok_status();
    };
  };
  ROPEWALK_RETURN_IF_ERROR(group(Opcode::schema, [&]() -> Status {
    for (const auto& [id, schema] : schemas) {
      if (!options.repeat_schemas || !schema->in_data) continue;
      out.insert(out.end(), schema->record.begin(), schema->record.end());
    }
    return ok_status();
  }));
  ROPEWALK_RETURN_IF_ERROR(group(Opcode::channel, [&]() -> Status {
    for (const auto& channel : channels) {
      if (!options.repeat_channels || channel == nullptr || !channel->in_data) continue;
      out.insert(out.end(), channel->record.begin(), channel->record.end());
    }
    return ok_status();
  }));
  ROPEWALK_RETURN_IF_ERROR(group(Opcode::statistics, [&]() -> Status {
    return options.statistics ? append_record(out, statistics) : ok_status();
  }));
  ROPEWALK_RETURN_IF_ERROR(group(Opcode::chunk_index, all(chunk_indexes)));
  ROPEWALK_RETURN_IF_ERROR(group(Opcode::attachment_index, all(attachment_indexes)));
  ROPEWALK_RETURN_IF_ERROR(group(Opcode::metadata_index, all(metadata_indexes)));

  if (options.recording_marks || !checkpoints.empty()) {
    append_recording(out, {.sync_length = static_cast<std::uint32_t>(kSyncRecordBytes),
                           .checkpoints = checkpoints});
  }

  Footer footer;
  if (out.size() > summary_at) footer.summary_start = summary_start;
  if (options.summary_offsets && !groups_written.empty()) {
    footer.summary_offset_start = offset + out.size();
    ROPEWALK_RETURN_IF_ERROR(all(groups_written)());
  }
  const std::size_t footer_at = out.size();
  ROPEWALK_RETURN_IF_ERROR(append_record(out, footer));
  if (options.summary_crc) {
    const std::size_t end = out.size() - sizeof footer.summary_crc;
    footer.summary_crc = crc32(0, ByteSpan(out).subspan(summary_at, end - summary_at));
    out.resize(footer_at);
    ROPEWALK_RETURN_IF_ERROR(append_record(out, footer));
  }
  out.insert(out.end(), kMagic.begin(), kMagic.end());
  return emit(out);
}

std::uint64_t Writer::bytes_written() const { return impl_->offset; }
const Statistics& Writer::statistics() const { return impl_->statistics; }

}  // namespace ropewalk::mcap
