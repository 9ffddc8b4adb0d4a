#include "ropewalk/episode/episode.h"

#include <algorithm>

#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <fmt/format.h>

namespace ropewalk {

Result<std::shared_ptr<arrow::RecordBatch>> Episode::columns_of(
    const std::vector<std::string>& names, FrameRange range) const {
  ROPEWALK_ASSIGN_OR_RETURN(const auto all, columns(range));
  for (const std::string& name : names) {
    // A declared column that this episode lacks is left out, as columns() does.
    if (all->schema()->GetFieldIndex(name) < 0 && schema().find(name) == nullptr) {
      return not_found(fmt::format("episode {}: no column \"{}\"", info().index, name));
    }
  }
  arrow::FieldVector fields;
  arrow::ArrayVector arrays;
  for (int i = 0; i < all->num_columns(); ++i) {
    if (std::ranges::find(names, all->schema()->field(i)->name()) == names.end()) continue;
    fields.push_back(all->schema()->field(i));
    arrays.push_back(all->column(i));
  }
  return arrow::RecordBatch::Make(arrow::schema(std::move(fields)), range.size(),
                                  std::move(arrays));
}

Result<std::shared_ptr<arrow::RecordBatch>> Episode::stream(std::string_view feature,
                                                            TimeRange) const {
  return not_found(fmt::format("episode {}: feature {} has no timeline of its own; read columns()",
                               info().index, feature));
}

Result<std::unique_ptr<PacketReader>> Episode::packets(std::string_view camera) const {
  return failed_precondition(
      fmt::format("episode {}: camera {} is not stored as encoded video", info().index, camera));
}

FrameRange Episode::decode_unit(std::string_view, std::int64_t frame) const {
  return {frame, frame + 1};
}

const Findings& EpisodeSource::findings() const {
  static const Findings none;
  return none;
}

Status copy(const EpisodeSource& source, EpisodeSink& sink, const RunContext& context) {
  Progress progress{.phase = "converting", .item = {}, .done = 0, .total = source.size()};
  context.report(progress);
  for (std::int64_t i = 0; i < source.size(); ++i) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    const std::string place = fmt::format("episode {}", source.info(i).index);
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const auto episode, source.open(i), place);
    if (Status status = sink.write(*episode, context); !status.ok()) {
      return status.with_context(place);
    }
    progress.done = i + 1;
    progress.item = place;
    context.report(progress);
  }
  return sink.finish(context);
}

}  // namespace ropewalk
