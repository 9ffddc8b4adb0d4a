// The messages of a .db3 file: by its index of times, or row by row where it is damaged.
#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/base/codec/compression.h"
#include "ropewalk/format/bag/db3_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::uint64_t kMaxFailures = 1'000'000;
// No CDR message starts like this: its second byte would name an encoding that does not exist.
constexpr std::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);

class Db3Stream final : public MessageStream {
 public:
  Db3Stream(const Db3File& file, Database db, const Selection& selection)
      : file_(file), db_(std::move(db)), selection_(selection) {
    problems = ProblemLog(file.source->name());
  }

  Status start() {
    if (file_.damaged) return start_salvage("the table is damaged");
    const bool by_time = selection_.order == Order::time;
    const std::string from =
        fmt::format("FROM messages {} WHERE timestamp BETWEEN ?1 AND ?2 ORDER BY {}",
                    by_time && !file_.index_damaged ? "" : "NOT INDEXED",
                    by_time ? "timestamp, rowid" : "rowid");
    // Sorting rows with their data would hold all of it: then the order comes first, and the data
    // row by row.
    ROPEWALK_ASSIGN_OR_RETURN(const bool sorts, sorts_rows("SELECT rowid " + from));
    ROPEWALK_ASSIGN_OR_RETURN(Statement rows,
                              db_.prepare(fmt::format("SELECT rowid, topic_id, timestamp{} {}",
                                                      sorts ? "" : ", data", from)));
    rows.bind(1, selection_.begin_ns);
    rows.bind(2, selection_.last_ns);
    rows_.emplace(std::move(rows));
    if (!sorts) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(Statement data,
                              db_.prepare("SELECT data FROM messages WHERE rowid = ?1"));
    data_.emplace(std::move(data));
    return ok_status();
  }

  Result<bool> next(MessageView& out) override {
    for (;;) {
      if (salvage_) {
        ROPEWALK_ASSIGN_OR_RETURN(const bool more, next_salvaged(out));
        return more;
      }
      const int code = rows_->step();
      if (code == SQLITE_DONE) return false;
      if (code != SQLITE_ROW || ++rows_seen_ > file_.max_rows()) {
        const Status fault =
            code == SQLITE_ROW ? data_loss("more rows than the file can hold") : db_.error(code);
        ROPEWALK_RETURN_IF_ERROR(start_salvage(fault.message()));
        continue;
      }
      const std::int64_t row = rows_->integer(0);
      const std::int64_t time = rows_->integer(2);
      const auto channel = wanted_channel(*rows_, 1, time);
      if (channel) {
        auto found = data_ ? data_of(row) : blob_of(*rows_, 3);
        if (!found.ok()) {
          // This row is lost; those behind it may be whole.
          ROPEWALK_RETURN_IF_ERROR(start_salvage(found.status().message()));
          continue;
        }
        last_time_ = time;
        last_row_ = row;
        any_delivered_ = true;
        if (deliver(*channel, row, time, *found, out)) return true;
      }
    }
  }

 private:
  Result<bool> sorts_rows(const std::string& sql) {
    ROPEWALK_ASSIGN_OR_RETURN(Statement plan, db_.prepare("EXPLAIN QUERY PLAN " + sql));
    bool sorts = false;
    int code = SQLITE_ROW;
    while ((code = plan.step()) == SQLITE_ROW) {
      sorts = sorts || plan.text(3).find("TEMP B-TREE") != std::string::npos;
    }
    if (code != SQLITE_DONE) return db_.error(code);
    return sorts;
  }

  std::optional<std::uint32_t> wanted_channel(const Statement& row, int topic_column,
                                              std::int64_t time) const {
    if (!row.is_integer(topic_column)) return std::nullopt;
    const auto channel = file_.channel_of_topic.find(row.integer(topic_column));
    if (channel == file_.channel_of_topic.end()) return std::nullopt;  // told at opening
    if (!selection_.wants(channel->second, time)) return std::nullopt;
    return channel->second;
  }

  // A blob that cannot be had comes back as nothing, with the error set.
  Result<ByteSpan> blob_of(const Statement& row, int column) const {
    if (row.is_null(column)) return ByteSpan();
    const ByteSpan blob = row.blob(column);
    if (blob.empty()) {
      const int code = sqlite3_errcode(db_.get());
      if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) return db_.error(code);
    }
    return blob;
  }

  Result<ByteSpan> data_of(std::int64_t row) {
    data_->reset();
    data_->bind(1, row);
    const int code = data_->step();
    if (code != SQLITE_ROW) return code == SQLITE_DONE ? data_loss("row is gone") : db_.error(code);
    return blob_of(*data_, 0);
  }

  bool deliver(std::uint32_t channel, std::int64_t row, std::int64_t time, ByteSpan data,
               MessageView& out) {
    const bool looks_packed =
        file_.channels[channel].message_encoding == "cdr" && as_text(data).starts_with(kZstdMagic);
    if (file_.messages_compressed || looks_packed) {
      auto unpacked = decompress(Compression::zstd, data, file_.options.limits.max_record_bytes);
      if (!unpacked.ok()) {
        problems.add(ProblemKind::message_damaged, 0, 0,
                     fmt::format("row {} ({}): {}", row, file_.channels[channel].topic,
                                 unpacked.status().message()));
        return false;
      }
      unpacked_ = std::move(unpacked).value();
      data = unpacked_;
    }
    out.channel_index = channel;
    out.time_ns = time;
    out.data = data;
    out.unverified = false;
    return true;
  }

  // --- row by row ---

  Status start_salvage(std::string_view why) {
    rows_.reset();
    data_.reset();
    problems.add(ProblemKind::database_damaged, 0, 0,
                 fmt::format("{}; from here on messages come row by row, not by time", why));
    ROPEWALK_ASSIGN_OR_RETURN(Statement rows,
                              db_.prepare("SELECT rowid, topic_id, timestamp, data FROM messages "
                                          "NOT INDEXED WHERE rowid >= ?1 ORDER BY rowid LIMIT 1"));
    salvage_.emplace(std::move(rows));
    return ok_status();
  }

  Result<bool> next_salvaged(MessageView& out) {
    while (!salvage_done_) {
      salvage_->reset();
      salvage_->bind(1, next_row_);
      const int code = salvage_->step();
      if (code == SQLITE_DONE) {
        end_lost_rows(next_row_, true);
        break;
      }
      Result<ByteSpan> data = ByteSpan();
      std::int64_t row = next_row_;
      std::optional<std::uint32_t> channel;
      if (code == SQLITE_ROW) {
        row = salvage_->integer(0);
        const std::int64_t time = salvage_->integer(2);
        const bool told =
            any_delivered_ && (time < last_time_ || (time == last_time_ && row <= last_row_));
        if (salvage_->is_integer(2) && !told) channel = wanted_channel(*salvage_, 1, time);
        if (channel) data = blob_of(*salvage_, 3);
      }
      if (code != SQLITE_ROW || !data.ok() || row < next_row_ ||
          ++rows_salvaged_ > file_.max_rows()) {
        lose_row(row);
        continue;
      }
      end_lost_rows(row, false);
      step_behind(row);
      if (channel && deliver(*channel, row, salvage_->integer(2), *data, out)) return true;
    }
    return false;
  }

  void step_behind(std::int64_t row) {
    if (row == std::numeric_limits<std::int64_t>::max()) {
      salvage_done_ = true;
    } else {
      next_row_ = row + 1;
    }
  }

  void lose_row(std::int64_t row) {
    row = std::max(row, next_row_);
    if (!first_lost_) first_lost_ = row;
    step_behind(row);
    if (++failures_ >= std::min(kMaxFailures, file_.source->size() / 16 + 1000)) {
      end_lost_rows(next_row_, true);
      salvage_done_ = true;
    }
  }

  void end_lost_rows(std::int64_t next, bool at_end) {
    if (!first_lost_) return;
    problems.add(ProblemKind::rows_lost, 0, 0,
                 at_end ? fmt::format("rows from {} on cannot be read", *first_lost_)
                        : fmt::format("rows {} to {} cannot be read", *first_lost_, next - 1));
    first_lost_.reset();
  }

  const Db3File& file_;
  Database db_;
  Selection selection_;
  std::optional<Statement> rows_;
  std::optional<Statement> data_;
  std::optional<Statement> salvage_;
  Bytes unpacked_;
  std::uint64_t rows_seen_ = 0;
  bool any_delivered_ = false;
  std::int64_t last_time_ = 0;
  std::int64_t last_row_ = 0;

  bool salvage_done_ = false;
  std::int64_t next_row_ = 0;
  std::uint64_t rows_salvaged_ = 0;
  std::uint64_t failures_ = 0;
  std::optional<std::int64_t> first_lost_;
};

}  // namespace

Result<std::unique_ptr<MessageStream>> Db3File::stream(const Selection& selection) const {
  ROPEWALK_ASSIGN_OR_RETURN(Database db, Database::open(source, options.limits));
  auto out = std::make_unique<Db3Stream>(*this, std::move(db), selection);
  ROPEWALK_RETURN_IF_ERROR(out->start());
  return std::unique_ptr<MessageStream>(std::move(out));
}

}  // namespace ropewalk::bag
