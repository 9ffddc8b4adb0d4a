#pragma once
// Numbering: the dense numbers that every sink gives to what it receives: episodes 0, 1, 2 …, rows
// counted over the whole dataset, tasks in order of first use.
// Spec: review-export-upload 5.4: an episode's own `tasks` register first, then the texts behind
// each frame's task_index; the columns episode_index, index, frame_index and task_index are
// rewritten.
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

/// One episode with its new numbers.
struct NumberedEpisode {
  std::int64_t episode_index = 0;
  std::int64_t index_begin = 0;  ///< value of `index` in its first row
  std::int64_t length = 0;
  std::vector<std::string> tasks;  ///< as registered, in order of first use in this episode
  /// All grid columns, T rows, with the four number columns replaced (added where absent).
  std::shared_ptr<arrow::RecordBatch> columns;
  Json row;  ///< the source's row with episode_index, tasks and length replaced
};

class Numbering {
 public:
  /// Reads the columns of `episode` and numbers them. Errors: those of columns(); data_loss for a
  /// task_index without a text; data_loss when rows differ from info().length.
  Result<NumberedEpisode> number(const Episode& episode);
  /// The same without columns of kind image: their bytes are not read.
  Result<NumberedEpisode> number_without_pictures(const Episode& episode);

  /// Texts by new task_index.
  const std::vector<std::string>& tasks() const { return tasks_; }
  std::int64_t episodes() const { return episodes_; }
  std::int64_t frames() const { return frames_; }

 private:
  Result<NumberedEpisode> number(const Episode& episode, std::shared_ptr<arrow::RecordBatch> batch);
  std::int64_t task_index_of(const std::string& text);

  std::vector<std::string> tasks_;
  std::unordered_map<std::string, std::int64_t> task_indices_;
  std::int64_t episodes_ = 0;
  std::int64_t frames_ = 0;
};

}  // namespace ropewalk
