// The bare loops that the program is measured against, in the same run and on the same files:
//   ropewalk_loops copy SRC DST        copy every file with one SHA-256 pass and one fsync each
//   ropewalk_loops rgb SRC DST         decode every MP4 to RGB, SHA-256, write, fsync, on all cores
//   ropewalk_loops decode SRC          decode every MP4 and throw the pictures away, on all cores
//   ropewalk_loops statistics          moments and quantiles of columns in memory, one core
//   ropewalk_loops open PATH           open a dataset, metadata only
// Each prints one JSON object with its seconds and what it worked on.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <arrow/api.h>
#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/engine/open.h"
#include "ropewalk/episode/statistics.h"
#include "ropewalk/format/video/decoder.h"

namespace {

using namespace ropewalk;
namespace fs = std::filesystem;

struct Work {
  std::atomic<std::int64_t> items{0};
  std::atomic<std::uint64_t> bytes{0};
};

Status copy_one(const fs::path& from, const fs::path& to, Work& work) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(from));
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_sink(to));
  Sha256 hash;
  Bytes block(1 << 20);
  for (std::uint64_t at = 0; at < source->size();) {
    const auto step =
        static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), source->size() - at));
    const MutableByteSpan part = MutableByteSpan(block).first(step);
    ROPEWALK_RETURN_IF_ERROR(source->read_at(at, part));
    hash.update(part);
    ROPEWALK_RETURN_IF_ERROR(sink->append(part));
    at += step;
  }
  static_cast<void>(hash.finish_hex());
  ROPEWALK_RETURN_IF_ERROR(sink->sync());
  work.bytes += source->size();
  ++work.items;
  return sink->close();
}

Status decode_one(const fs::path& from, const fs::path* to, Work& work) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto decoder, VideoDecoder::open(from));
  std::unique_ptr<Sink> sink;
  if (to) {
    ROPEWALK_ASSIGN_OR_RETURN(sink, create_sink(*to));
  }
  Sha256 hash;
  Bytes frame(decoder->frame_shape().frame_bytes());
  for (std::int64_t i = 0; i < decoder->frame_count(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(decoder->read({i, i + 1}, frame));
    if (sink) {
      hash.update(frame);
      ROPEWALK_RETURN_IF_ERROR(sink->append(frame));
    }
    work.bytes += frame.size();
    ++work.items;
  }
  if (!sink) return ok_status();
  static_cast<void>(hash.finish_hex());
  ROPEWALK_RETURN_IF_ERROR(sink->sync());
  return sink->close();
}

Result<std::vector<fs::path>> files_below(const fs::path& root, std::string_view ending) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_tree(root));
  std::vector<fs::path> out;
  for (const std::string& name : names) {
    if (name.ends_with(ending)) out.push_back(name);
  }
  return out;
}

Status run_files(const std::string& verb, const fs::path& from, const fs::path& to, Work& work) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto files, files_below(from, verb == "copy" ? "" : ".mp4"));
  ThreadPool pool;
  return parallel_for(&pool, static_cast<std::int64_t>(files.size()),
                      [&](std::int64_t i) -> Status {
                        const fs::path& name = files[static_cast<std::size_t>(i)];
                        if (verb == "decode") return decode_one(from / name, nullptr, work);
                        const fs::path target = to / name;
                        ROPEWALK_RETURN_IF_ERROR(make_directories(target.parent_path()));
                        return verb == "copy" ? copy_one(from / name, target, work)
                                              : decode_one(from / name, &target, work);
                      });
}

Status run_statistics(bool quantiles, Work& work) {
  constexpr std::int64_t kRows = 200'000;
  constexpr int kWidth = 14;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(1000.0F, 3.0F);
  auto values = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder list(arrow::default_memory_pool(), values, kWidth);
  for (std::int64_t row = 0; row < kRows; ++row) {
    if (!list.Append().ok()) return internal("append");
    for (int i = 0; i < kWidth; ++i) {
      if (!values->Append(normal(random)).ok()) return internal("append");
    }
  }
  std::shared_ptr<arrow::Array> array;
  if (!list.Finish(&array).ok()) return internal("finish");
  const Feature feature{.name = "action", .dtype = DType::float32, .shape = {kWidth}};
  const auto started = std::chrono::steady_clock::now();
  const int rounds = quantiles ? 1 : 20;
  for (int round = 0; round < rounds; ++round) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto result,
                              column_statistics(*array, feature, {.quantiles = quantiles}));
    work.bytes += static_cast<std::uint64_t>(kRows) * kWidth * sizeof(float);
    ++work.items;
  }
  fmt::print("{{\"seconds\": {}, \"items\": {}, \"bytes\": {}}}\n",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
             work.items.load(), work.bytes.load());
  return ok_status();
}

int run(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  Work work;
  const auto started = std::chrono::steady_clock::now();
  Status status = invalid_argument("usage: ropewalk_loops copy|rgb|decode|statistics|open …");
  if (verb == "copy" || verb == "rgb") {
    if (argc == 4) status = run_files(verb, argv[2], argv[3], work);
  } else if (verb == "decode" && argc == 3) {
    status = run_files(verb, argv[2], {}, work);
  } else if (verb == "statistics" || verb == "quantiles") {
    status = run_statistics(verb == "quantiles", work);
    if (status.ok()) return 0;
  } else if (verb == "open" && argc == 3) {
    const auto source = open_dataset(argv[2]);
    status = source.ok() ? ok_status() : source.status();
    if (source.ok()) work.items = (*source)->size();
  }
  if (!status.ok()) {
    fmt::print(stderr, "{}\n", status.to_string());
    return 1;
  }
  fmt::print("{{\"seconds\": {}, \"items\": {}, \"bytes\": {}}}\n",
             std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count(),
             work.items.load(), work.bytes.load());
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return run(argc, argv); }
