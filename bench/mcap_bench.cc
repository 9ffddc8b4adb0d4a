// MCAP against the bare loops that bound it, in one run: what is done, its time, the time of the
// loop, and the ratio (loop / ours; 1 is the limit). Times are CPU seconds of this process, the
// best of three; files lie in the directory given (a memory file system tells most).
//   mcap_bench DIR [small|image|robot]
#include <libdeflate.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <lz4frame.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/format/mcap/mcap.h"

namespace {

using namespace ropewalk;
using namespace ropewalk::mcap;
namespace fs = std::filesystem;

constexpr std::uint64_t kChunkBytes = 1ULL << 20;

void check(const Status& status) {
  if (status.ok()) return;
  fmt::print(stderr, "{}\n", status.to_string());
  std::exit(1);
}

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}
double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double best(const std::function<void()>& body, bool wall = false) {
  double out = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double start = wall ? wall_seconds() : cpu_seconds();
    body();
    out = std::min(out, (wall ? wall_seconds() : cpu_seconds()) - start);
  }
  return out;
}

void row(std::string_view what, double ours, double loop, std::uint64_t messages,
         std::uint64_t bytes) {
  fmt::print(
      "{{\"what\": \"{}\", \"seconds\": {:.4f}, \"loop_seconds\": {:.4f}, \"ratio\": {:.2f}, "
      "\"million_messages_per_second\": {:.2f}, \"mb_per_second\": {:.0f}}}\n",
      what, ours, loop, loop / ours, static_cast<double>(messages) / ours * 1e-6,
      static_cast<double>(bytes) / ours * 1e-6);
  std::fflush(stdout);
}

volatile std::uint64_t g_sink = 0;  // what is read ends here

// --- workloads

struct Topic {
  std::string name;
  std::size_t bytes = 0;
  std::uint64_t period_ns = 0;
};
struct Workload {
  std::string name;
  std::vector<Topic> topics;
  struct Item {
    std::uint16_t topic;
    std::uint64_t time;
    std::uint64_t offset;  // of its payload in `payload`
  };
  std::vector<Item> items;
  Bytes payload;
  std::uint64_t bytes = 0;
};

// Telemetry like a robot's: floats that drift; pictures: gradients with noise.
Bytes payloads(std::size_t size) {
  Bytes out(size);
  std::mt19937 random(1);
  float value = 0;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    value += static_cast<float>(static_cast<int>(random() % 2001) - 1000) * 1e-4F;
    const float rounded = i % 16 == 0 ? static_cast<float>(i / 16)
                                      : static_cast<float>(static_cast<int>(value * 256)) / 256;
    std::memcpy(out.data() + i, &rounded, 4);
  }
  return out;
}

Workload make(const std::string& name) {
  Workload out{.name = name};
  if (name == "robot") {
    out.topics = {{"imu", 320, 5'000'000},
                  {"odom", 680, 20'000'000},
                  {"tf", 160, 10'000'000},
                  {"lidar", 230'000, 100'000'000},
                  {"camera", 512'000, 66'666'667}};
  } else {
    const std::size_t bytes = name == "small" ? 100 : 100'000;
    for (int i = 0; i < 10; ++i) out.topics.push_back({"t" + std::to_string(i), bytes, 10'000});
  }
  out.payload = payloads(std::size_t{64} << 20);
  std::uint64_t at = 0;
  const auto add = [&](std::uint16_t topic, std::uint64_t time) {
    const std::size_t size = out.topics[topic].bytes;
    if (at + size > out.payload.size()) at = (at + 4096) % 65536;
    out.items.push_back({.topic = topic, .time = time, .offset = at});
    at += size;
    out.bytes += size;
  };
  if (name == "robot") {
    for (std::uint64_t t = 0; t < 10'000'000'000ULL; t += 1'000'000) {
      for (std::uint16_t i = 0; i < out.topics.size(); ++i) {
        const std::uint64_t period = out.topics[i].period_ns;
        if (t / period != (t + 1'000'000) / period) add(i, t + i);
      }
    }
  } else {
    const std::size_t count = name == "small" ? 1'000'000 : 4'000;
    for (std::size_t i = 0; i < count; ++i) add(static_cast<std::uint16_t>(i % 10), i * 1000);
  }
  return out;
}

ByteSpan data_of(const Workload& w, const Workload::Item& item) {
  return ByteSpan(w.payload).subspan(item.offset, w.topics[item.topic].bytes);
}

std::uint64_t write_with(const Workload& w, const fs::path& path, WriterOptions options,
                         bool grouped = false) {
  fs::remove(path);
  auto sink = create_sink(path);
  check(sink.status());
  auto writer = Writer::create(options);
  check(writer.status());
  check(writer->open(**sink));
  std::vector<std::uint16_t> ids;
  for (std::size_t t = 0; t < w.topics.size(); ++t) {
    const auto id = writer->add_channel({.topic = w.topics[t].name, .message_encoding = "raw"},
                                        {.group = grouped ? static_cast<std::uint32_t>(t) : 0U});
    check(id.status());
    ids.push_back(*id);
  }
  std::uint32_t sequence = 0;
  for (const Workload::Item& item : w.items) {
    const Status status = writer->write({.channel_id = ids[item.topic],
                                         .sequence = sequence++,
                                         .log_time = item.time,
                                         .publish_time = item.time},
                                        data_of(w, item));
    if (!status.ok()) check(status);
  }
  check(writer->finish());
  check((*sink)->close());
  return (*sink)->size();
}

// --- bare loops

// Frames, message index and CRC into one reused buffer, then write().
void frame_loop(const Workload& w, const fs::path& path, bool crc) {
  fs::remove(path);
  auto sink = create_sink(path);
  std::vector<std::uint8_t> chunk(2 * kChunkBytes + 2'000'000);
  std::vector<std::vector<MessageIndex::Entry>> index(w.topics.size());
  std::size_t used = 0;
  std::uint32_t sequence = 0;
  const auto close = [&] {
    if (crc) g_sink = g_sink + crc32(0, {chunk.data(), used});
    check((*sink)->append({chunk.data(), used}));
    for (auto& entries : index) {
      check((*sink)->append({reinterpret_cast<const std::uint8_t*>(entries.data()),
                             entries.size() * sizeof(MessageIndex::Entry)}));
      entries.clear();
    }
    used = 0;
  };
  for (const Workload::Item& item : w.items) {
    const ByteSpan data = data_of(w, item);
    std::uint8_t* to = chunk.data() + used;
    const auto put = [&to](auto value) {
      std::memcpy(to, &value, sizeof value);
      to += sizeof value;
    };
    put(std::uint8_t{5});
    put(std::uint64_t{22 + data.size()});
    put(item.topic);
    put(sequence++);
    put(item.time);
    put(item.time);
    std::memcpy(to, data.data(), data.size());
    index[item.topic].push_back({.log_time = item.time, .offset = used});
    used += 31 + data.size();
    if (used >= kChunkBytes) close();
  }
  close();
  check((*sink)->close());
}

struct Chunk {
  ByteSpan stored;
  std::uint64_t size;
  std::string codec;
};
std::vector<Chunk> chunks_of(const Source& source) {
  std::vector<Chunk> out;
  RecordReader records(source, 0, source.size());
  for (;;) {
    const auto head = records.next();
    if (!head.ok() || !head->has_value() || (*head)->is(Opcode::footer)) return out;
    if (!(*head)->is(Opcode::chunk)) continue;
    const auto content = records.content();
    std::size_t at = 0;
    const auto chunk = parse_chunk_head(*content, &at);
    out.push_back({.stored = content->subspan(at, chunk->records_size),
                   .size = chunk->uncompressed_size,
                   .codec = chunk->compression});
  }
}

void walk(ByteSpan records) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + 9 <= records.size();) {
    std::uint64_t size = 0;
    std::memcpy(&size, records.data() + at + 1, 8);
    if (records[at] == 5) {
      std::uint64_t time = 0;
      std::memcpy(&time, records.data() + at + 15, 8);
      sum += time + size;
    }
    at += 9 + size;
  }
  g_sink = g_sink + sum;
}

void decode(const Chunk& chunk, Bytes& out) {
  if (chunk.codec == "zstd") {
    thread_local ZSTD_DCtx* context = ZSTD_createDCtx();
    ZSTD_decompressDCtx(context, out.data(), chunk.size, chunk.stored.data(), chunk.stored.size());
  } else {
    thread_local LZ4F_dctx* context = [] {
      LZ4F_dctx* raw = nullptr;
      LZ4F_createDecompressionContext(&raw, LZ4F_VERSION);
      return raw;
    }();
    LZ4F_decompressOptions_t stable{};
    stable.stableDst = 1;
    std::size_t out_at = 0;
    std::size_t in_at = 0;
    while (in_at < chunk.stored.size()) {
      std::size_t out_size = chunk.size - out_at;
      std::size_t in_size = chunk.stored.size() - in_at;
      if (LZ4F_decompress(context, out.data() + out_at, &out_size, chunk.stored.data() + in_at,
                          &in_size, &stable) == 0) {
        break;
      }
      out_at += out_size;
      in_at += in_size;
    }
  }
}

// Decodes, checks and walks every chunk on `threads` threads.
void decode_loop(const std::vector<Chunk>& chunks, int threads, bool with_walk) {
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    Bytes out(4 * kChunkBytes);
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      ByteSpan records = chunks[i].stored;
      if (!chunks[i].codec.empty()) {
        decode(chunks[i], out);
        records = ByteSpan(out).first(chunks[i].size);
      }
      g_sink = g_sink + crc32(0, records);
      if (with_walk) walk(records);
    }
  };
  std::vector<std::jthread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(work);
  work();
}

// Compresses and sums the same chunks on `threads` threads, with one write() each.
void encode_loop(const std::vector<Bytes>& chunks, Compression codec, const fs::path& path,
                 int threads) {
  fs::remove(path);
  auto sink = create_sink(path);
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  const auto work = [&] {
    Bytes out(2 * kChunkBytes + (1 << 20));
    ZSTD_CCtx* context = ZSTD_createCCtx();
    for (std::size_t i = next++; i < chunks.size(); i = next++) {
      g_sink = g_sink + crc32(0, chunks[i]);
      std::size_t size = 0;
      if (codec == Compression::zstd) {
        size = ZSTD_compressCCtx(context, out.data(), out.size(), chunks[i].data(),
                                 chunks[i].size(), 1);
      } else {
        LZ4F_preferences_t preferences{};
        preferences.frameInfo.contentSize = chunks[i].size();
        size = LZ4F_compressFrame(out.data(), out.size(), chunks[i].data(), chunks[i].size(),
                                  &preferences);
      }
      const std::lock_guard lock(mutex);
      check((*sink)->append({out.data(), size}));
    }
    ZSTD_freeCCtx(context);
  };
  {
    std::vector<std::jthread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(work);
    work();
  }
  check((*sink)->close());
}

std::shared_ptr<const Source> mapped(const fs::path& path) {
  auto source = open_source(path, {.map = true});
  check(source.status());
  return std::move(*source);
}

std::uint64_t read_with(const std::shared_ptr<const Source>& source, const MessageQuery& query,
                        ThreadPool* pool = nullptr) {
  ReaderOptions options;
  options.pool = pool;
  const auto reader = Reader::open(source, options);
  check(reader.status());
  MessageReader messages = reader->messages(query);
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
  for (MessageView m; messages.next(m); ++count) sum += m.log_time + m.data.size();
  check(messages.status());
  g_sink = g_sink + sum;
  return count;
}

// --- what is measured

void uncompressed(const Workload& w, const fs::path& dir) {
  const fs::path path = dir / "none.mcap";
  const WriterOptions options{.compression = Compression::none};
  row(w.name + ": write, none, CRC and index", best([&] { write_with(w, path, options); }),
      best([&] { frame_loop(w, dir / "loop", true); }), w.items.size(), w.bytes);
  WriterOptions no_crc = options;
  no_crc.chunk_crc = false;
  row(w.name + ": write, none, index, no CRC", best([&] { write_with(w, path, no_crc); }),
      best([&] { frame_loop(w, dir / "loop", false); }), w.items.size(), w.bytes);
  const auto plain = mapped(path);
  const auto chunks_plain = chunks_of(*plain);
  const double walked = best([&] {
    for (const Chunk& c : chunks_plain) walk(c.stored);
  });
  const double file_order = best([&] { read_with(plain, {.order = Order::file}); });
  row(w.name + ": read, file order, mapped, no CRC", file_order, walked, w.items.size(), w.bytes);
  row(w.name + ": read, log-time order, mapped, no CRC (loop: own file order)",
      best([&] { read_with(plain, {}); }), file_order, w.items.size(), w.bytes);
  write_with(w, path, options);
  const auto summed = mapped(path);
  const auto chunks = chunks_of(*summed);
  const double with_crc = best([&] { decode_loop(chunks, 1, true); });
  row(w.name + ": read, file order, mapped, CRC",
      best([&] { read_with(summed, {.order = Order::file}); }), with_crc, w.items.size(), w.bytes);
  row(w.name + ": read, log-time order, mapped, CRC (loop: walk and CRC)",
      best([&] { read_with(summed, {}); }), with_crc, w.items.size(), w.bytes);
}

void compressed(const Workload& w, const fs::path& dir) {
  const fs::path path = dir / "codec.mcap";
  ThreadPool pool(1);  // and the calling thread
  for (const Compression codec : {Compression::lz4_frame, Compression::zstd}) {
    const std::string name = w.name + ": " + std::string(compression_name(codec));
    WriterOptions options{.compression = codec};
    options.detect_incompressible = false;
    write_with(w, path, options);
    std::vector<Bytes> plain;
    {
      const auto source = mapped(path);
      for (const Chunk& c : chunks_of(*source)) {
        Bytes out(c.size);
        if (c.codec.empty()) {
          std::copy(c.stored.begin(), c.stored.end(), out.begin());
        } else {
          decode(c, out);
        }
        plain.push_back(std::move(out));
      }
    }
    row(name + " write, one thread", best([&] { write_with(w, path, options); }),
        best([&] { encode_loop(plain, codec, dir / "loop", 1); }), w.items.size(), w.bytes);
    WriterOptions on_pool = options;
    on_pool.pool = &pool;
    row(name + " write, two threads (wall)",
        best([&] { write_with(w, dir / "pool.mcap", on_pool); }, true),
        best([&] { encode_loop(plain, codec, dir / "loop", 2); }, true), w.items.size(), w.bytes);
    plain.clear();
    const auto source = mapped(path);
    const auto chunks = chunks_of(*source);
    const double loop = best([&] { decode_loop(chunks, 1, true); });
    row(name + " read, file order, one thread",
        best([&] { read_with(source, {.order = Order::file}); }), loop, w.items.size(), w.bytes);
    row(name + " read, log-time order, one thread", best([&] { read_with(source, {}); }), loop,
        w.items.size(), w.bytes);
    row(name + " read, file order, two threads (wall)",
        best([&] { read_with(source, {.order = Order::file}, &pool); }, true),
        best([&] { decode_loop(chunks, 2, true); }, true), w.items.size(), w.bytes);
    const MessageQuery one{.topics = {{w.topics[3].name}}};
    const double interleaved = best([&] { read_with(source, one); });
    row(name + " read, one topic, interleaved (loop: decode and CRC)", interleaved,
        best([&] { decode_loop(chunks, 1, false); }), w.items.size(), w.bytes);
    write_with(w, dir / "grouped.mcap", options, true);
    const auto grouped = mapped(dir / "grouped.mcap");
    row(name + " read, one topic, own chunks (loop: interleaved)",
        best([&] { read_with(grouped, one); }), interleaved, w.items.size(), w.bytes);
  }
}

void opening(const Workload& w, const fs::path& dir) {
  const fs::path path = dir / "recording.mcap";
  WriterOptions options = WriterOptions::recording();
  options.max_chunk_age_ns = options.sync_interval_ns = 0;
  options.compression = Compression::none;
  write_with(w, path, options);
  const auto open = [&] { check(Reader::open(*open_source(path)).status()); };
  const auto repeated = [&] {
    for (int i = 0; i < 20; ++i) open();
  };
  const double finished = best(repeated);
  fs::resize_file(path, fs::file_size(path) - 100);  // the footer is gone
  const double unfinished = best(repeated);
  row(w.name + ": open unfinished, checkpoints (loop: open finished) x20", unfinished, finished, 20,
      fs::file_size(path));
  options.recording_marks = false;
  write_with(w, path, options);
  fs::resize_file(path, fs::file_size(path) - 100);
  row(w.name + ": open unfinished, no checkpoints (loop: read the file)", best(open), best([&] {
        const auto source = open_source(path);
        Bytes part(1 << 20);
        for (std::uint64_t at = 0; at + part.size() <= (*source)->size(); at += part.size()) {
          check((*source)->read_at(at, part));
        }
      }),
      1, fs::file_size(path));
}

void sums(const Workload& w) {
  const ByteSpan bytes(w.payload);
  row("CRC-32 (loop: libdeflate)", best([&] { g_sink = g_sink + crc32(0, bytes); }),
      best([&] { g_sink = g_sink + libdeflate_crc32(0, bytes.data(), bytes.size()); }), 0,
      bytes.size());
}

// 400 chunks of 4 MiB over the same time, read in order with 64 MiB.
void overlapping(const fs::path& dir) {
  const fs::path path = dir / "overlap.mcap";
  constexpr std::uint32_t kChunks = 400;
  constexpr std::uint32_t kPerChunk = 64;
  constexpr std::size_t kMessageBytes = 65'000;
  {
    fs::remove(path);
    auto sink = create_sink(path);
    auto writer =
        Writer::create({.chunk_bytes = 8ULL << 20, .compression = Compression::lz4_frame});
    check(writer->open(**sink));
    const auto id = writer->add_channel({.topic = "t", .message_encoding = "raw"});
    const Bytes payload = payloads(kMessageBytes * 2);
    for (std::uint32_t c = 0; c < kChunks; ++c) {
      for (std::uint32_t i = 0; i < kPerChunk; ++i) {
        const std::uint64_t time = std::uint64_t{i} * kChunks + c;
        check(
            writer->write({.channel_id = *id, .sequence = c * kPerChunk + i, .log_time = time},
                          ByteSpan(payload).subspan((c * 37 + i) % kMessageBytes, kMessageBytes)));
      }
      check(writer->flush());
    }
    check(writer->finish());
    check((*sink)->close());
  }
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    // A process of its own, so that its peak is that of the reading alone.
    ::execl("/proc/self/exe", "mcap_bench", dir.c_str(), "overlapping-child", nullptr);
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) std::exit(1);
}

int overlapping_child(const fs::path& dir) {
  auto source = open_source(dir / "overlap.mcap");
  check(source.status());
  const double start = cpu_seconds();
  const auto reader = Reader::open(std::move(*source));
  check(reader.status());
  MessageReader messages = reader->messages();
  std::uint64_t count = 0;
  bool ordered = true;
  for (MessageView m; messages.next(m); ++count) ordered = ordered && m.log_time == count;
  check(messages.status());
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  fmt::print(
      "{{\"what\": \"400 overlapping chunks of 4 MiB, budget 64 MiB\", \"messages\": {}, "
      "\"in_order\": {}, \"peak_mib\": {}, \"seconds\": {:.2f}}}\n",
      count, ordered, usage.ru_maxrss / 1024, cpu_seconds() - start);
  return count == 400 * 64 && ordered ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: mcap_bench DIR [small|image|robot|overlapping]\n");
    return 2;
  }
  const fs::path dir = argv[1];
  const std::string only = argc > 2 ? argv[2] : "";
  if (only == "overlapping-child") return overlapping_child(dir);
  fs::create_directories(dir);
  for (const std::string name : {"small", "image", "robot"}) {
    if (!only.empty() && only != name) continue;
    const Workload w = make(name);
    if (name == "small") sums(w);
    uncompressed(w, dir);
    compressed(w, dir);
    if (name == "small") opening(w, dir);
  }
  if (only.empty() || only == "overlapping") overlapping(dir);
  return 0;
}
