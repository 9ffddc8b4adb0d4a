#include "ropewalk/engine/mcap/inspect.h"

#include <algorithm>

#include <fmt/format.h>

namespace ropewalk {
namespace {

// Counts by reading: the file has no statistics, or they do not list its channels.
Status count_messages(const McapInput& input, const RunContext& context, McapInfoReport& report,
                      std::vector<mcap::Problem>& problems,
                      std::map<std::uint16_t, std::uint64_t>& counts) {
  mcap::MessageReader messages = input.reader.messages({.order = mcap::Order::file});
  std::uint64_t bytes = 0;
  report.counted_by_reading = true;
  for (mcap::MessageView m; messages.next(m);) {
    if (report.messages++ == 0) report.start_time = report.end_time = m.log_time;
    report.start_time = std::min(report.start_time, m.log_time);
    report.end_time = std::max(report.end_time, m.log_time);
    ++counts[m.channel_id];
    bytes += m.data.size() + mcap::kMessageHeadBytes;
    if (bytes >= (4ULL << 20)) {
      bytes = 0;
      ROPEWALK_RETURN_IF_ERROR(context.check_stop());
      context.report({.phase = "reading",
                      .item = {},
                      .done = static_cast<std::int64_t>(report.messages),
                      .unit = "messages"});
    }
  }
  problems.insert(problems.end(), messages.problems().begin(), messages.problems().end());
  return messages.status();
}

// How many chunks, and bytes of them, cover one moment at most.
void measure_overlap(const std::vector<mcap::ChunkIndex>& chunks, McapInfoReport& report) {
  struct Edge {
    std::uint64_t time;
    bool begins;
    std::uint64_t bytes;
  };
  std::vector<Edge> edges;
  for (const mcap::ChunkIndex& chunk : chunks) {
    if (chunk.message_start_time > chunk.message_end_time) continue;
    edges.push_back({chunk.message_start_time, true, chunk.uncompressed_size});
    edges.push_back({chunk.message_end_time, false, chunk.uncompressed_size});
  }
  // Both ends belong to a chunk: beginnings come first.
  std::ranges::sort(edges, [](const Edge& a, const Edge& b) {
    return a.time != b.time ? a.time < b.time : a.begins && !b.begins;
  });
  std::uint64_t depth = 0;
  std::uint64_t bytes = 0;
  for (const Edge& edge : edges) {
    if (edge.begins) {
      report.overlap_depth = std::max(report.overlap_depth, ++depth);
      bytes += edge.bytes;
      report.overlap_bytes = std::max(report.overlap_bytes, bytes);
    } else {
      --depth;
      bytes -= edge.bytes;
    }
  }
}

Status measure_rates(const McapInput& input, McapInfoReport& report) {
  std::map<std::string, std::vector<ChannelInfo*>> topics;
  for (ChannelInfo& channel : report.channels) {
    topics[channel.channel.topic].push_back(&channel);
  }
  for (auto& [topic, channels] : topics) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto refs, input.reader.locate(topic));
    for (ChannelInfo* channel : channels) {
      std::optional<std::uint64_t> last;
      std::uint64_t shortest = 0;
      for (const mcap::MessageRef& ref : refs) {
        if (ref.channel_id != channel->channel.id) continue;
        if (last.has_value() && ref.log_time > *last) {
          const std::uint64_t gap = ref.log_time - *last;
          shortest = shortest == 0 ? gap : std::min(shortest, gap);
          channel->longest_gap_ns = std::max(channel->longest_gap_ns, gap);
        }
        last = ref.log_time;
      }
      if (shortest > 0) channel->max_hz = 1e9 / static_cast<double>(shortest);
      if (channel->longest_gap_ns > 0) {
        channel->min_hz = 1e9 / static_cast<double>(channel->longest_gap_ns);
      }
    }
  }
  return ok_status();
}

Json to_json(const mcap::StringMap& map) {
  Json json = Json::object();
  for (const auto& [key, value] : map) json.set(valid_utf8(key), valid_utf8(value));
  return json;
}

}  // namespace

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned char lead = byte(i);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    bool sound = length > 0 && length <= text.size() - i;
    for (std::size_t k = 1; sound && k < length; ++k) sound = (byte(i + k) & 0xC0) == 0x80;
    if (sound && length == 3) {
      sound = !(lead == 0xE0 && byte(i + 1) < 0xA0) && !(lead == 0xED && byte(i + 1) >= 0xA0);
    }
    if (sound && length == 4) {
      sound = !(lead == 0xF0 && byte(i + 1) < 0x90) && !(lead == 0xF4 && byte(i + 1) >= 0x90);
    }
    if (sound) {
      out += text.substr(i, length);
      i += length;
    } else {
      out += "\xEF\xBF\xBD";
      ++i;
    }
  }
  return out;
}

Result<McapInfoReport> mcap_info(const McapInfoRequest& request, const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN(const McapInput input, open_mcap(request.input));
  const mcap::Reader& reader = input.reader;
  McapInfoReport report;
  report.name = input.name;
  report.size_bytes = input.source->size();
  report.header = reader.header();
  report.finished = reader.finished();
  report.has_summary = reader.has_summary();
  report.schemas = reader.schemas().size();
  report.attachments = reader.attachments().size();
  report.metadata = reader.metadata().size();
  std::vector<mcap::Problem> problems = reader.problems();

  const std::vector<mcap::ChunkIndex> chunks = reader.chunks();
  report.chunks = chunks.size();
  for (const mcap::ChunkIndex& chunk : chunks) {
    CodecUse& use = report.codecs[chunk.compression.empty() ? "none" : chunk.compression];
    ++use.chunks;
    use.compressed_bytes += chunk.compressed_size;
    use.uncompressed_bytes += chunk.uncompressed_size;
    report.largest_chunk_bytes = std::max(report.largest_chunk_bytes, chunk.uncompressed_size);
  }
  measure_overlap(chunks, report);

  std::map<std::uint16_t, std::uint64_t> counts;
  const auto& statistics = reader.statistics();
  const bool counted = statistics.has_value() && (statistics->message_count == 0 ||
                                                  !statistics->channel_message_counts.empty());
  if (counted) {
    report.messages = statistics->message_count;
    report.start_time = statistics->message_start_time;
    report.end_time = std::max(statistics->message_start_time, statistics->message_end_time);
    for (const auto& [id, count] : statistics->channel_message_counts) counts[id] = count;
  } else {
    ROPEWALK_RETURN_IF_ERROR(count_messages(input, context, report, problems, counts));
  }
  for (const auto& [id, channel] : reader.channels()) {
    ChannelInfo info;
    info.channel = channel;
    if (const auto schema = reader.schemas().find(channel.schema_id);
        schema != reader.schemas().end()) {
      info.schema_name = schema->second.name;
      info.schema_encoding = schema->second.encoding;
    }
    const auto count = counts.find(id);
    info.messages = count == counts.end() ? 0 : count->second;
    report.channels.push_back(std::move(info));
  }
  if (request.rates) {
    ROPEWALK_RETURN_IF_ERROR(measure_rates(input, report));
  }
  for (mcap::Problem& problem : problems) {
    report.problems.push_back({.file = input.name, .problem = std::move(problem)});
  }
  return report;
}

Json McapInfoReport::to_json() const {
  Json json = Json::object();
  json.set("name", name);
  json.set("size_bytes", size_bytes);
  json.set("library", valid_utf8(header.library));
  json.set("profile", valid_utf8(header.profile));
  json.set("finished", finished);
  json.set("has_summary", has_summary);
  json.set("counted_by_reading", counted_by_reading);
  json.set("messages", messages);
  json.set("start_time", start_time);
  json.set("end_time", end_time);
  json.set("duration_ns", end_time - start_time);
  Json compression = Json::object();
  for (const auto& [codec, use] : codecs) {
    Json entry = Json::object();
    entry.set("chunks", use.chunks);
    entry.set("compressed_bytes", use.compressed_bytes);
    entry.set("uncompressed_bytes", use.uncompressed_bytes);
    compression.set(valid_utf8(codec), std::move(entry));
  }
  json.set("compression", std::move(compression));
  json.set("chunks", chunks);
  json.set("largest_chunk_bytes", largest_chunk_bytes);
  json.set("overlap_depth", overlap_depth);
  json.set("overlap_bytes", overlap_bytes);
  json.set("schemas", schemas);
  json.set("attachments", attachments);
  json.set("metadata", metadata);
  Json list = Json::array();
  for (const ChannelInfo& info : channels) {
    Json entry = Json::object();
    entry.set("id", std::int64_t{info.channel.id});
    entry.set("topic", valid_utf8(info.channel.topic));
    entry.set("schema", valid_utf8(info.schema_name));
    entry.set("schema_encoding", valid_utf8(info.schema_encoding));
    entry.set("message_encoding", valid_utf8(info.channel.message_encoding));
    entry.set("messages", info.messages.value_or(0));
    if (info.max_hz > 0) {
      entry.set("min_hz", info.min_hz);
      entry.set("max_hz", info.max_hz);
      entry.set("longest_gap_ns", info.longest_gap_ns);
    }
    list.push_back(std::move(entry));
  }
  json.set("channels", std::move(list));
  json.set("problems", ropewalk::to_json(problems));
  return json;
}

Json to_json(const mcap::Channel& channel, const mcap::Schema* schema) {
  Json json = Json::object();
  json.set("id", std::int64_t{channel.id});
  json.set("schema_id", std::int64_t{channel.schema_id});
  json.set("topic", valid_utf8(channel.topic));
  json.set("message_encoding", valid_utf8(channel.message_encoding));
  json.set("metadata", to_json(channel.metadata));
  json.set("schema", schema == nullptr ? Json() : Json(valid_utf8(schema->name)));
  return json;
}

Json to_json(const mcap::Schema& schema, bool with_data) {
  Json json = Json::object();
  json.set("id", std::int64_t{schema.id});
  json.set("name", valid_utf8(schema.name));
  json.set("encoding", valid_utf8(schema.encoding));
  json.set("data_size", std::uint64_t{schema.data.size()});
  if (with_data) json.set("data", valid_utf8(as_text(schema.data)));
  return json;
}

Json to_json(const mcap::ChunkIndex& chunk) {
  Json json = Json::object();
  json.set("offset", chunk.chunk_start_offset);
  json.set("length", chunk.chunk_length);
  json.set("start_time", chunk.message_start_time);
  json.set("end_time", chunk.message_end_time);
  json.set("compression", valid_utf8(chunk.compression));
  json.set("compressed_size", chunk.compressed_size);
  json.set("uncompressed_size", chunk.uncompressed_size);
  json.set("message_index_length", chunk.message_index_length);
  json.set("channels", std::uint64_t{chunk.message_index_offsets.size()});
  return json;
}

Json to_json(const mcap::AttachmentIndex& attachment) {
  Json json = Json::object();
  json.set("name", valid_utf8(attachment.name));
  json.set("media_type", valid_utf8(attachment.media_type));
  json.set("log_time", attachment.log_time);
  json.set("create_time", attachment.create_time);
  json.set("data_size", attachment.data_size);
  json.set("offset", attachment.offset);
  json.set("length", attachment.length);
  return json;
}

Json to_json(const mcap::Metadata& metadata) {
  Json json = Json::object();
  json.set("name", valid_utf8(metadata.name));
  json.set("metadata", to_json(metadata.metadata));
  return json;
}

}  // namespace ropewalk
