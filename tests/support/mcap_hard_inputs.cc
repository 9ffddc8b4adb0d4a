#include "tests/support/mcap_hard_inputs.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <random>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/codec/compression.h"

namespace ropewalk::mcap {
namespace {

constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr Compression kCodecs[] = {Compression::none, Compression::lz4_frame, Compression::zstd};

std::vector<TestMessage> sample(std::size_t count, std::size_t bytes = 60) {
  std::mt19937 random(17);
  std::vector<TestMessage> out;
  for (std::size_t i = 0; i < count; ++i) {
    std::string data(bytes, 'x');
    for (char& c : data) c = static_cast<char>('a' + random() % 16);
    out.push_back({.topic = "t" + std::to_string(i % 3),
                   .time = i * 10,
                   .sequence = static_cast<std::uint32_t>(i),
                   .data = std::move(data)});
  }
  return out;
}

std::vector<TestMessage> first(const std::vector<TestMessage>& messages, std::size_t count) {
  return {messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(count)};
}

struct Found {
  std::uint64_t offset = 0;
  std::uint64_t end = 0;
  std::uint64_t length() const { return end - offset; }
};

Found find(const Bytes& file, Opcode opcode, int number = 0) {
  const auto source = view_source(file);
  RecordReader records(*source, 0, file.size());
  for (;;) {
    const auto head = records.next();
    if (!head.ok() || !head->has_value()) std::abort();  // the generator is wrong
    if ((*head)->is(opcode) && number-- == 0) {
      return {.offset = (*head)->offset, .end = (*head)->end()};
    }
  }
}

Bytes cut(Bytes file, std::uint64_t size) {
  file.resize(static_cast<std::size_t>(size));
  return file;
}
Bytes unfinished(Bytes file) { return cut(file, find(file, Opcode::data_end).offset); }

template <typename T>
void put(Bytes& file, std::uint64_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
}

void append(Bytes& out, const Bytes& more) { out.insert(out.end(), more.begin(), more.end()); }

// --- files from single records

Bytes begin() {
  Bytes out(kMagic.begin(), kMagic.end());
  static_cast<void>(append_record(out, Header{}).ok());
  return out;
}
void channel(Bytes& out, std::uint16_t id, std::string topic, std::uint16_t schema = 0) {
  static_cast<void>(append_record(out, Channel{.id = id,
                                               .schema_id = schema,
                                               .topic = std::move(topic),
                                               .message_encoding = "raw",
                                               .metadata = {}})
                        .ok());
}
void message(Bytes& out, std::uint16_t id, const TestMessage& m) {
  append_message_head(
      out, {.channel_id = id, .sequence = m.sequence, .log_time = m.time, .publish_time = m.time},
      m.data.size());
  out.insert(out.end(), m.data.begin(), m.data.end());
}
void chunk(Bytes& out, const Bytes& records, Compression codec = Compression::none,
           const std::function<void(ChunkHead&)>& change = {}) {
  Bytes stored;
  static_cast<void>(compress(codec, records, 0, stored).ok());
  ChunkHead head{
      .message_start_time = 0,
      .message_end_time = 1'000'000,
      .uncompressed_size = records.size(),
      .uncompressed_crc = crc32(0, records),
      .compression = codec == Compression::none ? "" : std::string(compression_name(codec)),
      .records_size = stored.size()};
  if (change) change(head);
  static_cast<void>(append_chunk_head(out, head).ok());
  append(out, stored);
}
void end(Bytes& out) {
  static_cast<void>(append_record(out, DataEnd{}).ok());
  static_cast<void>(append_record(out, Footer{}).ok());
  out.insert(out.end(), kMagic.begin(), kMagic.end());
}

class Generator {
 public:
  std::vector<HardInput> all() {
    nothing();
    unfinished_files();
    zeros();
    damaged_chunks();
    footers();
    placeholders();
    lengths();
    bombs();
    odd_chunks();
    lying_indexes();
    definitions();
    times();
    appended();
    attachments();
    mixed();
    return std::move(out_);
  }

 private:
  HardInput& add(int group, std::string name, Bytes file) {
    HardInput input;
    input.group = group;
    input.name = (group < 10 ? "0" : "") + std::to_string(group) + "-" + std::move(name);
    input.file = std::move(file);
    out_.push_back(std::move(input));
    return out_.back();
  }

  void nothing() {  // H1
    HardInput& empty = add(1, "empty", {});
    empty.opens = empty.recovers = false;
    HardInput& magic = add(1, "magic", Bytes(kMagic.begin(), kMagic.end()));
    magic.problems = {{ProblemKind::no_records, 8, {}}};
    magic.recovers = false;
    HardInput& header = add(1, "header", begin());
    header.problems = {{ProblemKind::unfinished, {}, {}}};
  }

  void unfinished_files() {  // H2, H3
    const auto messages = sample(900);
    for (const Compression codec : kCodecs) {
      const std::string name(compression_name(codec));
      const Bytes whole = write_messages({.chunk_bytes = 9000, .compression = codec}, messages);
      HardInput& footer = add(2, "no-footer-" + name, unfinished(whole));
      footer.messages = messages;
      footer.problems = {{ProblemKind::unfinished, footer.file.size(), {}}};
      HardInput& index =
          add(2, "no-last-index-" + name, cut(whole, find(whole, Opcode::data_end).offset - 20));
      index.messages = messages;
      index.problems = {{ProblemKind::unfinished, {}, {}}, {ProblemKind::truncated, {}, {}}};
      index.loses = true;

      const auto many = sample(12'000, 90);
      const Bytes large = write_messages({.chunk_bytes = 1 << 20, .compression = codec}, many);
      const Found last = find(large, Opcode::chunk);
      for (const std::uint64_t percent : {25u, 50u, 75u, 95u}) {
        HardInput& input = add(3, "cut-" + name + "-" + std::to_string(percent),
                               cut(large, last.offset + last.length() * percent / 100));
        // Whole blocks of 128 KiB (zstd) or 64 KiB (lz4): at least this part of 8,700 messages.
        input.messages = first(many, 8700 * (percent - std::min<std::uint64_t>(percent, 15)) / 100);
        input.prefix = true;
        input.problems = {{ProblemKind::chunk_cut, last.offset, last.length() * percent / 100}};
        input.loses = true;
      }
    }
  }

  void zeros() {  // H4, H5
    const auto messages = sample(400);
    const Bytes whole = unfinished(
        write_messages({.chunk_bytes = 4000, .compression = Compression::none}, messages));
    for (const std::size_t size : {std::size_t{9 * 1000}, std::size_t{10'001}}) {
      Bytes file = whole;
      file.resize(whole.size() + size, 0);
      HardInput& input = add(4, "zero-tail-" + std::to_string(size), std::move(file));
      input.messages = messages;
      input.problems = {{ProblemKind::zero_run, whole.size(), size}};
      input.loses = true;
    }
    Bytes more = whole;
    more.resize(whole.size() + 5000, 0);
    const auto later = sample(100, 70);
    const Bytes second = unfinished(write_messages({}, later));
    const Found chunk_there = find(second, Opcode::chunk);
    more.insert(more.end(), second.begin() + static_cast<std::ptrdiff_t>(chunk_there.offset),
                second.end());
    HardInput& hole = add(4, "zeros-then-a-chunk", std::move(more));
    hole.messages = messages;
    hole.messages.insert(hole.messages.end(), later.begin(), later.end());
    hole.problems = {{ProblemKind::zero_run, whole.size(), 5000 + 0}};
    hole.problems[0].length.reset();
    hole.loses = true;

    Bytes page =
        write_messages({.chunk_bytes = 20'000, .compression = Compression::none}, messages);
    const Found second_chunk = find(page, Opcode::chunk, 1);
    std::fill_n(page.begin() + static_cast<std::ptrdiff_t>(second_chunk.offset) + 6000, 4096, 0);
    HardInput& lost = add(5, "zero-page-in-a-chunk", page);
    lost.messages = without(messages, page, 1);
    lost.problems = {{ProblemKind::chunk_crc, second_chunk.offset, second_chunk.length()}};
    lost.loses = true;
    HardInput& also = add(5, "zero-page-in-a-chunk-unfinished", unfinished(page));
    also.messages = lost.messages;
    also.problems = lost.problems;
    also.loses = true;
  }

  // The messages that are not in chunk `number` of a file written in order.
  static std::vector<TestMessage> without(const std::vector<TestMessage>& messages,
                                          const Bytes& file, int number) {
    const auto reader = Reader::open(view_source(file));
    const ChunkIndex index = reader->chunks()[static_cast<std::size_t>(number)];
    std::vector<TestMessage> out;
    for (const TestMessage& m : messages) {
      if (m.time < index.message_start_time || m.time > index.message_end_time) out.push_back(m);
    }
    return out;
  }

  void damaged_chunks() {  // H6, H7
    const auto messages = sample(600);
    for (const Compression codec : kCodecs) {
      const std::string name(compression_name(codec));
      Bytes file = write_messages({.chunk_bytes = 9000, .compression = codec}, messages);
      const Found damaged = find(file, Opcode::chunk, 2);
      HardInput& crc = add(6, "wrong-crc-" + name, file);
      crc.file[damaged.offset + 9 + 24] ^= 1;
      crc.messages = without(messages, file, 2);
      crc.problems = {{ProblemKind::chunk_crc, damaged.offset, damaged.length()}};
      crc.loses = true;
      if (codec == Compression::none) continue;
      for (const std::uint64_t part : {30u, 60u, 90u}) {
        HardInput& flip = add(7, "flip-" + name + "-" + std::to_string(part), file);
        flip.file[damaged.offset + damaged.length() * part / 100] ^= 0x10;
        flip.messages = without(messages, file, 2);
        flip.loses = true;
      }
    }
  }

  void footers() {  // H8
    const auto messages = sample(300);
    const Bytes file = write_messages({.chunk_bytes = 3000}, messages);
    const std::uint64_t footer = file.size() - 8 - 29;
    const auto add_file = [&](std::string name, Bytes changed, ProblemKind kind) {
      HardInput& input = add(8, std::move(name), std::move(changed));
      input.messages = messages;
      input.problems = {{kind, {}, {}}};
    };
    Bytes into_chunk = file;
    put(into_chunk, footer + 9, std::uint64_t{200});
    add_file("summary-start-in-a-chunk", into_chunk, ProblemKind::bad_summary);
    put(into_chunk, footer + 9 + 16, std::uint32_t{0});
    add_file("summary-start-in-a-chunk-no-crc", into_chunk, ProblemKind::bad_summary);
    Bytes beyond = file;
    put(beyond, footer + 9, kMax);
    add_file("summary-start-beyond", beyond, ProblemKind::bad_footer);
    Bytes crc = file;
    crc[footer + 9 + 16] ^= 1;
    add_file("summary-crc", crc, ProblemKind::bad_summary);
    const Found data_end = find(file, Opcode::data_end);
    Bytes no_data_end = file;
    no_data_end.erase(no_data_end.begin() + static_cast<std::ptrdiff_t>(data_end.offset),
                      no_data_end.begin() + static_cast<std::ptrdiff_t>(data_end.end));
    add_file("no-data-end", no_data_end, ProblemKind::bad_summary);
    const Found statistics = find(file, Opcode::statistics);
    HardInput& truncated = add(8, "summary-cut", cut(file, statistics.offset + 20));
    truncated.messages = messages;
    truncated.problems = {{ProblemKind::unfinished, {}, {}}};
    truncated.loses = true;
  }

  void placeholders() {  // H9
    const auto messages = sample(2000, 90);
    for (const Compression codec : kCodecs) {
      Bytes file = write_messages({.chunk_bytes = 1 << 20, .compression = codec}, messages);
      const Found there = find(file, Opcode::chunk);
      file.resize(there.end);
      const std::size_t codec_size =
          codec == Compression::none ? 0 : compression_name(codec).size();
      put(file, there.offset + 1, kMax);              // record length
      put(file, there.offset + 9, std::uint64_t{0});  // times
      put(file, there.offset + 9 + 8, std::uint64_t{0});
      put(file, there.offset + 9 + 16, kMax);  // uncompressed size
      put(file, there.offset + 9 + 24, std::uint32_t{0xFFFFFFFF});
      put(file, there.offset + 9 + 32 + codec_size, kMax);  // records size
      HardInput& input = add(9, "placeholder-" + std::string(compression_name(codec)), file);
      input.messages = messages;
      input.problems = {{ProblemKind::chunk_cut, there.offset, there.length()}};
      input.loses = true;
    }
  }

  void lengths() {  // H10
    const TestMessage m{"t", 5, 1, "payload"};
    for (const std::uint64_t length :
         {kMax, kMax - 8, std::uint64_t{1} << 63, std::uint64_t{1} << 32}) {
      Bytes file = begin();
      channel(file, 1, "t");
      message(file, 1, m);
      const std::uint64_t at = file.size();
      message(file, 1, m);
      put(file, at + 1, length);
      HardInput& input = add(10, "record-" + std::to_string(length), file);
      input.messages = {m};
      input.problems = {{ProblemKind::truncated, at, file.size() - at}};
      input.loses = true;
    }
    struct Inner {
      const char* name;
      Opcode opcode;
      std::size_t field;  // of a u32 length in the content
    };
    for (const Inner inner :
         {Inner{"schema-name", Opcode::schema, 2}, Inner{"channel-topic", Opcode::channel, 4},
          Inner{"metadata-name", Opcode::metadata, 0}}) {
      Bytes file = begin();
      channel(file, 1, "t");
      message(file, 1, m);
      const std::uint64_t at = file.size();
      static_cast<void>(
          append_record(file, Schema{.id = 1, .name = "n", .encoding = "e", .data = {1}}).ok());
      channel(file, 2, "u");
      static_cast<void>(append_record(file, Metadata{.name = "m", .metadata = {{"k", "v"}}}).ok());
      message(file, 1, m);
      const Found record = find(file, inner.opcode, inner.opcode == Opcode::channel ? 1 : 0);
      put(file, record.offset + 9 + inner.field, std::uint32_t{0xFFFFFFFF});
      end(file);
      HardInput& input = add(10, std::string("text-") + inner.name, file);
      input.messages = {m, m};
      input.problems = {{ProblemKind::bad_record, record.offset, record.length()}};
      input.loses = true;
      static_cast<void>(at);
    }
    Bytes file = write_messages({.compression = Compression::none}, sample(50));
    const Found index = find(file, Opcode::message_index);
    put(file, index.offset + 9 + 2, std::uint32_t{17});
    HardInput& input = add(10, "index-not-a-multiple-of-16", file);
    input.messages = sample(50);
    input.problems = {{ProblemKind::index_mismatch, {}, {}}};
  }

  void bombs() {  // H11
    const TestMessage m{"t", 5, 1, "payload"};
    Bytes records;
    channel(records, 1, "t");
    message(records, 1, m);
    const auto bomb = [&](std::string name, ProblemKind kind,
                          const std::function<void(Bytes&)>& add_chunk) {
      Bytes file = begin();
      chunk(file, records);
      const std::uint64_t at = file.size();
      add_chunk(file);
      const std::uint64_t length = file.size() - at;
      chunk(file, records);
      end(file);
      HardInput& input = add(11, std::move(name), file);
      input.messages = {m, m};
      input.problems = {{kind, at, length}};
      input.loses = true;
    };
    bomb("zeros-of-256-mib-claimed-small", ProblemKind::chunk_damaged, [&](Bytes& file) {
      chunk(file, Bytes(std::size_t{256} << 20, 0), Compression::zstd,
            [](ChunkHead& head) { head.uncompressed_size = 1000; });
    });
    bomb("size-2-62", ProblemKind::limit, [&](Bytes& file) {
      chunk(file, records, Compression::zstd,
            [](ChunkHead& head) { head.uncompressed_size = std::uint64_t{1} << 62; });
    });
    bomb("size-900-mib-of-nothing", ProblemKind::chunk_damaged, [&](Bytes& file) {
      chunk(file, records, Compression::lz4_frame,
            [](ChunkHead& head) { head.uncompressed_size = std::uint64_t{900} << 20; });
    });
    bomb("uncompressed-larger-than-stored", ProblemKind::chunk_damaged, [&](Bytes& file) {
      chunk(file, records, Compression::none,
            [](ChunkHead& head) { head.uncompressed_size += 4096; });
    });
    bomb("uncompressed-smaller-than-stored", ProblemKind::chunk_damaged, [&](Bytes& file) {
      chunk(file, records, Compression::none, [](ChunkHead& head) { head.uncompressed_size -= 4; });
    });
  }

  void odd_chunks() {  // H12, H13
    const TestMessage m{"t", 500, 1, "payload"};
    Bytes records;
    channel(records, 1, "t");
    message(records, 1, m);
    Bytes file = begin();
    Bytes definitions;
    channel(definitions, 1, "t");
    chunk(file, definitions, Compression::none, [](ChunkHead& head) {
      head.message_start_time = kMax;
      head.message_end_time = 0;
    });
    chunk(file, records, Compression::none, [](ChunkHead& head) {
      head.message_start_time = kMax;
      head.message_end_time = 0;
    });
    chunk(file, records, Compression::zstd, [](ChunkHead& head) {
      head.message_start_time = 900;
      head.message_end_time = 100;
    });
    chunk(file, {});
    end(file);
    HardInput& input = add(12, "start-after-end", file);
    input.messages = {m, m};

    std::vector<TestMessage> overlapping;
    for (std::uint32_t c = 0; c < 400; ++c) {
      for (std::uint32_t i = 0; i < 5; ++i) {
        overlapping.push_back({"t" + std::to_string(c % 7), i * 400 + (c * 37) % 400, c * 5 + i,
                               "message " + std::to_string(c * 5 + i)});
      }
    }
    const Bytes many = write_file({}, [&](Writer& writer) {
      for (std::size_t i = 0; i < overlapping.size(); ++i) {
        write_message(writer, overlapping[i]);
        if (i % 5 == 4) static_cast<void>(writer.flush().ok());
      }
    });
    add(13, "400-overlapping-chunks", many).messages = overlapping;
    std::vector<TestMessage> by_topic;
    for (std::uint32_t t = 0; t < 4; ++t) {
      for (std::uint32_t i = 0; i < 200; ++i) {
        by_topic.push_back({"t" + std::to_string(t), i * 10 + t, i, "message"});
      }
    }
    add(13, "sorted-by-topic", write_messages({.chunk_bytes = 2000}, by_topic)).messages = by_topic;
  }

  void lying_indexes() {  // H14
    const auto messages = sample(300);
    const Bytes file = write_messages({.chunk_bytes = 2000, .summary_crc = false}, messages);
    struct Lie {
      const char* name;
      std::size_t field;
      std::uint64_t value;
    };
    const Found third = find(file, Opcode::chunk, 3);
    for (const Lie lie :
         {Lie{"start-time", 0, 900}, Lie{"start-time-max", 0, kMax}, Lie{"end-time", 8, 1},
          Lie{"offset-small", 16, 3}, Lie{"offset-misaligned", 16, third.offset + 5},
          Lie{"offset-of-another", 16, third.offset}, Lie{"offset-beyond", 16, kMax},
          Lie{"length-small", 24, 7}, Lie{"length-beyond", 24, kMax}}) {
      Bytes lying = file;
      const Found index = find(lying, Opcode::chunk_index, 2);
      put(lying, index.offset + 9 + lie.field, lie.value);
      HardInput& input = add(14, std::string("chunk-index-") + lie.name, lying);
      input.messages = messages;
      input.problems = {{ProblemKind::index_mismatch, {}, {}}};
    }
    const Found index = find(file, Opcode::message_index, 3);
    for (const std::uint64_t offset : {std::uint64_t{1} << 40, kMax}) {
      Bytes lying = file;
      put(lying, index.offset + 9 + 6 + 8, offset);
      HardInput& input = add(14, "message-index-offset-" + std::to_string(offset), lying);
      input.messages = messages;
      input.problems = {{ProblemKind::index_mismatch, {}, {}}};
    }
    Bytes misaligned = file;
    put(misaligned, index.offset + 9 + 6 + 8, std::uint64_t{1});
    add(14, "message-index-misaligned", misaligned).messages = messages;
    Bytes time = file;
    put(time, index.offset + 9 + 6, std::uint64_t{7});
    HardInput& wrong_time = add(14, "message-index-time", time);
    wrong_time.messages = messages;
    wrong_time.problems = {{ProblemKind::index_mismatch, {}, {}}};
  }

  void definitions() {  // H15, H16
    const TestMessage a{"first", 10, 0, "of the first"};
    const TestMessage b{"second", 5, 1, "of the second"};
    Bytes loose = begin();
    channel(loose, 1, "first");
    message(loose, 1, a);
    channel(loose, 1, "second");
    message(loose, 1, b);
    end(loose);
    HardInput& redefined = add(15, "channel-redefined-loose", loose);
    redefined.messages = {a, b};
    redefined.problems = {{ProblemKind::conflicting_definition, {}, {}}};

    Bytes chunked = begin();
    for (const TestMessage& m : {a, b}) {
      Bytes records;
      channel(records, 1, m.topic);
      message(records, 1, m);
      chunk(chunked, records, Compression::zstd,
            [&](ChunkHead& head) { head.message_start_time = head.message_end_time = m.time; });
    }
    // A third chunk that defines nothing: the last definition before it holds.
    Bytes records;
    message(records, 1, b);
    chunk(chunked, records, Compression::none,
          [&](ChunkHead& head) { head.message_start_time = head.message_end_time = b.time; });
    end(chunked);
    HardInput& in_chunks = add(15, "channel-redefined-in-chunks", chunked);
    in_chunks.messages = {a, b, b};
    in_chunks.problems = {{ProblemKind::conflicting_definition, {}, {}}};

    const TestMessage early{"late", 1, 0, "before its channel"};
    Bytes before = begin();
    message(before, 3, early);
    channel(before, 3, "late");
    message(before, 3, early);
    end(before);
    add(16, "message-before-channel", before).messages = {early, early};

    const TestMessage lost{"unknown/9", 1, 0, "no channel"};
    Bytes nowhere = begin();
    message(nowhere, 9, lost);
    end(nowhere);
    HardInput& unknown = add(16, "no-channel", nowhere);
    unknown.messages = {lost};
    unknown.problems = {{ProblemKind::unknown_channel, {}, {}}};

    const TestMessage m{"t", 1, 0, "no schema"};
    Bytes schemaless = begin();
    static_cast<void>(
        append_record(schemaless, Schema{.id = 0, .name = "zero", .encoding = "", .data = {}})
            .ok());
    channel(schemaless, 1, "t", 77);
    message(schemaless, 1, m);
    end(schemaless);
    HardInput& missing = add(16, "no-schema-and-schema-0", schemaless);
    missing.messages = {m};
    missing.problems = {{ProblemKind::missing_schema, {}, {}}, {ProblemKind::bad_record, {}, {}}};
    missing.loses = true;
  }

  void times() {  // H17
    std::mt19937_64 random(3);
    std::vector<TestMessage> messages{{"t", 0, 0, "zero"}, {"t", kMax, 1, "max"}};
    for (std::uint32_t i = 2; i < 200; ++i) {
      messages.push_back({"t", i % 3 == 0 ? random() : 1000 + i % 5, i, "m" + std::to_string(i)});
    }
    messages.push_back({"t", kMax, 200, "max again"});
    messages.push_back({"t", 0, 201, "zero again"});
    add(17, "random-equal-zero-max", write_messages({.chunk_bytes = 900}, messages)).messages =
        messages;
  }

  void appended() {  // H18
    const auto messages = sample(100);
    const Bytes one = write_messages({.chunk_bytes = 2000}, messages);
    Bytes two = one;
    append(two, write_messages({}, {{"other", 1, 0, "second file"}}));
    HardInput& second = add(18, "two-files", two);
    second.messages = messages;
    second.problems = {{ProblemKind::trailing_data, one.size(), two.size() - one.size()}};
    Bytes garbage = one;
    append(garbage, Bytes(777, 0x5A));
    HardInput& tail = add(18, "trailing-garbage", garbage);
    tail.messages = messages;
    tail.problems = {{ProblemKind::trailing_data, one.size(), 777}};
    Bytes statistics = write_messages({.summary_crc = false}, messages);
    const Found found = find(statistics, Opcode::statistics);
    const Bytes copy(statistics.begin() + static_cast<std::ptrdiff_t>(found.offset),
                     statistics.begin() + static_cast<std::ptrdiff_t>(found.end));
    statistics.insert(statistics.begin() + static_cast<std::ptrdiff_t>(found.end), copy.begin(),
                      copy.end());
    put(statistics, statistics.size() - 8 - 20 + 8, std::uint64_t{0});
    HardInput& twice = add(18, "two-statistics", statistics);
    twice.messages = messages;
    twice.problems = {{ProblemKind::bad_summary, {}, {}}};
  }

  void attachments() {  // H19
    const auto messages = sample(200);
    const Bytes file = write_file({.chunk_bytes = 2000}, [&](Writer& writer) {
      for (std::size_t i = 0; i < messages.size(); ++i) {
        write_message(writer, messages[i]);
        if (i % 60 == 30) {
          static_cast<void>(writer
                                .write_attachment({.log_time = i,
                                                   .create_time = i,
                                                   .name = "same name",
                                                   .media_type = "text/plain",
                                                   .data_size = 0},
                                                  as_bytes("attached " + std::to_string(i)))
                                .ok());
          static_cast<void>(writer.write_metadata({"same name", {{"i", std::to_string(i)}}}).ok());
        }
      }
    });
    add(19, "attachments-between-chunks", file).messages = messages;
    HardInput& crc = add(19, "attachment-crc", file);
    crc.file[find(file, Opcode::attachment, 1).end - 6] ^= 1;
    crc.messages = messages;
    crc.loses = true;
    HardInput& open = add(19, "attachments-unfinished", unfinished(file));
    open.messages = messages;
  }

  void mixed() {  // H20
    const auto messages = sample(60);
    const auto write_mixed = [&](const WriterOptions& options) {
      Bytes out = unfinished(write_messages(options, first(messages, 30)));
      Bytes rest = begin();
      for (std::size_t i = 30; i < 60; ++i) {
        message(rest, static_cast<std::uint16_t>(i % 3 + 1), messages[i]);
      }
      out.insert(out.end(), rest.begin() + static_cast<std::ptrdiff_t>(begin().size()), rest.end());
      return out;
    };
    HardInput& loose = add(20, "loose-behind-chunks", write_mixed({.chunk_bytes = 1000}));
    loose.messages = messages;
    for (int bits = 0; bits < 8; ++bits) {
      WriterOptions options{.chunk_bytes = 1000};
      options.message_index = (bits & 1) != 0;
      options.repeat_channels = (bits & 2) != 0;
      options.statistics = (bits & 4) != 0;
      options.definitions_in_every_chunk = false;
      add(20, "summary-lacks-" + std::to_string(bits), write_messages(options, messages)).messages =
          messages;
    }
    const TestMessage m{"t", 5, 1, "payload"};
    const auto in_chunk = [&](std::string name, const Bytes& inserted, bool complete,
                              std::vector<ExpectedProblem> problems) {
      Bytes records;
      channel(records, 1, "t");
      message(records, 1, m);
      append(records, inserted);
      message(records, 1, m);
      Bytes file = begin();
      chunk(file, records);
      end(file);
      HardInput& input = add(20, std::move(name), file);
      if (complete) input.messages = {m, m};
      input.loses = !complete || !problems.empty();
      input.problems = std::move(problems);
    };
    Bytes unknown;
    for (const std::uint8_t opcode : {std::uint8_t{0x7E}, std::uint8_t{0x90}, std::uint8_t{0x91}}) {
      append_raw_record(unknown, opcode, as_bytes("content"));
    }
    in_chunk("unknown-opcodes", unknown, true, {});
    Bytes nested;
    Bytes inner;
    message(inner, 1, m);
    chunk(nested, inner);
    in_chunk("nested-chunk", nested, true, {{ProblemKind::nested_record, {}, {}}});

    Bytes brotli = begin();
    Bytes records;
    channel(records, 1, "t");
    message(records, 1, m);
    chunk(brotli, records);
    const std::uint64_t at = brotli.size();
    chunk(brotli, records, Compression::none, [](ChunkHead& head) { head.compression = "brotli"; });
    const std::uint64_t length = brotli.size() - at;
    end(brotli);
    HardInput& codec = add(20, "unknown-compression", brotli);
    codec.messages = {m};
    codec.problems = {{ProblemKind::unknown_compression, at, length}};
    codec.loses = true;

    const TestMessage bad{"bad \xFF\xFE topic", 5, 1, "payload"};
    Bytes utf8 = begin();
    channel(utf8, 1, bad.topic);
    message(utf8, 1, bad);
    end(utf8);
    add(20, "invalid-utf8", utf8).messages = {bad};
  }

  std::vector<HardInput> out_;
};

}  // namespace

std::vector<HardInput> mcap_hard_inputs() { return Generator().all(); }

}  // namespace ropewalk::mcap
