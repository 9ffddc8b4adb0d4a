#pragma once
// An Episode that lies in memory: a table, pictures drawn on demand, statistics as given. For tests
// of what consumes episodes; no file format is involved.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <arrow/api.h>

#include "ropewalk/episode/episode.h"

namespace ropewalk::test {

/// Draws frame `ordinal` into `out`, which holds shape.frame_bytes().
using Painter = std::function<void(std::int64_t ordinal, MutableByteSpan out)>;

struct MemoryCamera {
  FrameShape shape;
  Painter paint;
};

class MemoryEpisode : public Episode {
 public:
  EpisodeInfo info_value;
  Schema schema_value;
  std::shared_ptr<arrow::RecordBatch> table;
  std::map<std::int64_t, std::string> tasks;
  std::map<std::string, MemoryCamera> cameras;
  Json statistics_value;

  const EpisodeInfo& info() const override { return info_value; }
  const Schema& schema() const override { return schema_value; }
  Result<std::shared_ptr<arrow::RecordBatch>> columns(FrameRange range) const override {
    return table->Slice(range.begin, range.size());
  }
  Result<std::unique_ptr<FrameReader>> frames(std::string_view camera, FrameRange range,
                                              FrameForm = {}) const override {
    const auto at = cameras.find(std::string(camera));
    if (at == cameras.end()) return not_found("camera " + std::string(camera));
    return std::unique_ptr<FrameReader>(std::make_unique<Reader>(at->second, range));
  }
  Result<std::string> task_text(std::int64_t task_index) const override {
    const auto at = tasks.find(task_index);
    if (at == tasks.end()) return data_loss("task_index is in no task list");
    return at->second;
  }
  bool has_camera(std::string_view camera) const override {
    return cameras.contains(std::string(camera));
  }
  Json statistics() const override { return statistics_value; }

 private:
  class Reader : public FrameReader {
   public:
    Reader(const MemoryCamera& camera, FrameRange range) : camera_(camera), range_(range) {}
    FrameShape shape() const override { return camera_.shape; }
    Result<bool> next(MutableByteSpan out) override {
      if (range_.begin >= range_.end) return false;
      camera_.paint(range_.begin++, out);
      return true;
    }

   private:
    const MemoryCamera& camera_;
    FrameRange range_;
  };
};

inline void must(const arrow::Status& status) {
  if (!status.ok()) status.Abort();
}

/// A fixed_size_list<float>[width] column whose value at (row, element) is `value(row, element)`.
inline std::shared_ptr<arrow::Array> vector_column(
    std::int64_t rows, int width, const std::function<float(std::int64_t, int)>& value) {
  auto leaves = std::make_shared<arrow::FloatBuilder>();
  arrow::FixedSizeListBuilder builder(arrow::default_memory_pool(), leaves, width);
  for (std::int64_t row = 0; row < rows; ++row) {
    must(builder.Append());
    for (int d = 0; d < width; ++d) must(leaves->Append(value(row, d)));
  }
  return builder.Finish().ValueOrDie();
}

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> scalar_column(std::int64_t rows, const Value& value) {
  Builder builder;
  for (std::int64_t row = 0; row < rows; ++row) must(builder.Append(value(row)));
  return builder.Finish().ValueOrDie();
}

}  // namespace ropewalk::test
