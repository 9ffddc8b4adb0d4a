#pragma once
// The table that a LeRobot sink writes: which features of a source go into it, under which name and
// type, and how a batch of the source becomes a batch of that table.
// Spec: lerobot-formats 2.3, 2.4, 4.1; hard inputs H13, H14, H20.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <arrow/type_fwd.h>

#include "ropewalk/base/core/finding.h"
#include "ropewalk/episode/schema.h"

namespace ropewalk::lerobot_internal {

/// How a feature is stored.
enum class Storage : std::uint8_t { column, inline_image, video };

struct OutputFeature {
  Feature feature;     ///< as declared in the output
  std::string source;  ///< name in the source
  Storage storage = Storage::column;
};

struct OutputTable {
  std::vector<OutputFeature> features;    ///< in the order of the source, cameras included
  std::shared_ptr<arrow::Schema> schema;  ///< of the data files: all but the videos

  /// Features stored as video, in order.
  std::vector<const OutputFeature*> videos() const;
  /// The declarations as written, with the rest of `source`.
  Schema declared(const Schema& source) const;
};

/// Decides for every feature of `schema`. Features that the format has no place for are dropped and
/// names it does not allow are changed, each with a finding; the five default features are added
/// where they are absent. `first` is a batch of the source: an image with a column in it stays
/// inline, another one becomes a video. Null: images stay what they are declared.
OutputTable plan_table(const Schema& schema, const arrow::RecordBatch* first,
                       const std::vector<std::string>& drop, Findings& findings);

/// Returns `batch` with the columns, types and order of `table`. The time stamps become
/// float32(row / fps) where they are absent or disagree, the latter with a finding.
/// Errors: data_loss naming column and row for nulls, missing columns and rows of a wrong length.
Result<std::shared_ptr<arrow::RecordBatch>> conform(const OutputTable& table,
                                                    const arrow::RecordBatch& batch, Rational fps,
                                                    std::int64_t source_episode,
                                                    Findings& findings);

/// Returns the first row whose step to the next one fails upstream's check of v2.1 in float32, or
/// nullopt. Spec: lerobot-formats 2.6.
std::optional<std::int64_t> first_bad_step(const arrow::RecordBatch& batch, Rational fps);

/// The text behind the footer key `huggingface`: {"info": {"features": …}} in the spelling that old
/// and new readers take ("Sequence"). Spec: lerobot-formats 2.4.
std::string huggingface_metadata(const OutputTable& table);

/// Returns whether a key of an episode row says where a v3.0 dataset stores that episode; such keys
/// mean nothing in another dataset.
bool is_locator_key(std::string_view key);

}  // namespace ropewalk::lerobot_internal
