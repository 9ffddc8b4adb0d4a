#include "ropewalk/episode/numbering.h"

#include <algorithm>

#include <arrow/api.h>
#include <arrow/compute/api_scalar.h>
#include <arrow/compute/cast.h>
#include <fmt/format.h>

namespace ropewalk {
namespace {

Result<std::shared_ptr<arrow::Array>> int64_array(const std::vector<std::int64_t>& values) {
  arrow::Int64Builder builder;
  std::shared_ptr<arrow::Array> array;
  arrow::Status status = builder.AppendValues(values);
  if (status.ok()) status = builder.Finish(&array);
  if (!status.ok()) return resource_exhausted(status.ToString());
  return array;
}

std::vector<std::int64_t> counting(std::int64_t first, std::int64_t count) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) out[static_cast<std::size_t>(i)] = first + i;
  return out;
}

Status replace_column(std::shared_ptr<arrow::RecordBatch>& batch, const std::string& name,
                      const std::vector<std::int64_t>& values) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto array, int64_array(values));
  const int at = batch->schema()->GetFieldIndex(name);
  auto replaced = at < 0 ? batch->AddColumn(batch->num_columns(), name, array)
                         : batch->SetColumn(at, arrow::field(name, arrow::int64()), array);
  if (!replaced.ok()) return internal(replaced.status().ToString());
  batch = *replaced;
  return ok_status();
}

}  // namespace

std::int64_t Numbering::task_index_of(const std::string& text) {
  const auto [at, added] =
      task_indices_.try_emplace(text, static_cast<std::int64_t>(tasks_.size()));
  if (added) tasks_.push_back(text);
  return at->second;
}

Result<NumberedEpisode> Numbering::number(const Episode& episode) {
  ROPEWALK_ASSIGN_OR_RETURN(auto batch, episode.columns({0, episode.info().length}));
  return number(episode, std::move(batch));
}

Result<NumberedEpisode> Numbering::number_without_pictures(const Episode& episode) {
  std::vector<std::string> names;
  for (const Feature* feature : episode.schema().of_kind(FeatureKind::column)) {
    names.push_back(feature->name);
  }
  ROPEWALK_ASSIGN_OR_RETURN(auto batch, episode.columns_of(names, {0, episode.info().length}));
  return number(episode, std::move(batch));
}

Result<NumberedEpisode> Numbering::number(const Episode& episode,
                                          std::shared_ptr<arrow::RecordBatch> batch) {
  const EpisodeInfo& info = episode.info();
  if (batch->num_rows() != info.length) {
    return data_loss(fmt::format("episode {}: table has {} rows, metadata says length {}",
                                 info.index, batch->num_rows(), info.length));
  }
  NumberedEpisode out;
  out.episode_index = episodes_;
  out.index_begin = frames_;
  out.length = info.length;

  for (const std::string& text : info.tasks) {
    task_index_of(text);
    if (std::ranges::find(out.tasks, text) == out.tasks.end()) out.tasks.push_back(text);
  }
  std::vector<std::int64_t> task_column(static_cast<std::size_t>(info.length), 0);
  if (const auto found = batch->GetColumnByName("task_index")) {
    if (found->type_id() != arrow::Type::INT64) {
      return internal("column task_index was not cast to int64 by its source");
    }
    const auto& values = static_cast<const arrow::Int64Array&>(*found);
    std::unordered_map<std::int64_t, std::int64_t> known;
    for (std::int64_t row = 0; row < info.length; ++row) {
      if (values.IsNull(row)) {
        return data_loss(fmt::format("episode {}: task_index: row {} is null", info.index, row));
      }
      const std::int64_t old_index = values.Value(row);
      auto at = known.find(old_index);
      if (at == known.end()) {
        ROPEWALK_ASSIGN_OR_RETURN_CTX(const std::string text, episode.task_text(old_index),
                                      fmt::format("episode {}: row {}", info.index, row));
        at = known.emplace(old_index, task_index_of(text)).first;
        if (std::ranges::find(out.tasks, text) == out.tasks.end()) out.tasks.push_back(text);
      }
      task_column[static_cast<std::size_t>(row)] = at->second;
    }
  } else {
    if (out.tasks.empty()) out.tasks.emplace_back();
    std::ranges::fill(task_column, task_index_of(out.tasks.front()));
  }

  ROPEWALK_RETURN_IF_ERROR(replace_column(batch, "frame_index", counting(0, info.length)));
  ROPEWALK_RETURN_IF_ERROR(replace_column(
      batch, "episode_index",
      std::vector<std::int64_t>(static_cast<std::size_t>(info.length), out.episode_index)));
  ROPEWALK_RETURN_IF_ERROR(replace_column(batch, "index", counting(frames_, info.length)));
  ROPEWALK_RETURN_IF_ERROR(replace_column(batch, "task_index", task_column));
  out.columns = std::move(batch);

  out.row = info.row;
  Json tasks = Json::array();
  for (const std::string& text : out.tasks) tasks.push_back(text);
  out.row.set("episode_index", out.episode_index);
  out.row.set("tasks", std::move(tasks));
  out.row.set("length", out.length);

  ++episodes_;
  frames_ += info.length;
  return out;
}

}  // namespace ropewalk
