// Opening a .db3 file: schema versions 1 (Crystal) to 4 (Iron and later), told by their columns.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "ropewalk/format/bag/db3_internal.h"
#include "ropewalk/format/bag/definitions.h"

namespace ropewalk::bag {
namespace {

constexpr std::size_t kMaxTopics = 100'000;

class Opener {
 public:
  Opener(Db3File& file, const Database& db) : file_(file), db_(db) {}

  Status run(std::optional<bool> messages_compressed) {
    ROPEWALK_RETURN_IF_ERROR(check_tables());
    ROPEWALK_RETURN_IF_ERROR(read_metadata());
    ROPEWALK_RETURN_IF_ERROR(read_definitions());
    ROPEWALK_RETURN_IF_ERROR(read_topics());
    ROPEWALK_RETURN_IF_ERROR(find_definitions());
    file_.messages_compressed = messages_compressed.value_or(
        file_.metadata && file_.metadata->compression_mode == "message");
    return count_messages();
  }

 private:
  using Columns = std::set<std::string>;

  Result<Columns> columns_of(std::string_view table) const {
    Columns out;
    ROPEWALK_ASSIGN_OR_RETURN(Statement rows,
                              db_.prepare(fmt::format("PRAGMA table_info({})", table)));
    for (;;) {
      const int code = rows.step();
      if (code == SQLITE_DONE) return out;
      if (code != SQLITE_ROW) return db_.error(code);
      out.insert(rows.text(1));
    }
  }

  Status check_tables() const {
    // Only true tables: neither views nor virtual ones, which run code of their own.
    ROPEWALK_ASSIGN_OR_RETURN(
        Statement rows,
        db_.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"));
    std::set<std::string> tables;
    int code = SQLITE_ROW;
    while ((code = rows.step()) == SQLITE_ROW && tables.size() < 1000) tables.insert(rows.text(0));
    if (code != SQLITE_DONE) return db_.error(code);
    for (const char* table : {"topics", "messages"}) {
      if (!tables.contains(table)) {
        return data_loss(fmt::format("{}: a database without the table {} is no ROS 2 bag",
                                     file_.source->name(), table));
      }
    }
    ROPEWALK_ASSIGN_OR_RETURN(const Columns messages, columns_of("messages"));
    ROPEWALK_ASSIGN_OR_RETURN(const Columns topics, columns_of("topics"));
    for (const char* column : {"topic_id", "timestamp", "data"}) {
      if (!messages.contains(column)) return no_column("messages", column);
    }
    for (const char* column : {"id", "name", "type", "serialization_format"}) {
      if (!topics.contains(column)) return no_column("topics", column);
    }
    return ok_status();
  }

  Status no_column(std::string_view table, std::string_view column) const {
    return data_loss(
        fmt::format("{}: table {} has no column {}", file_.source->name(), table, column));
  }

  // Tells that part of the database cannot be read; what was read of it counts.
  void damaged(std::string_view what, const Status& status) {
    file_.problems.add(ProblemKind::database_damaged, 0, 0,
                       fmt::format("{}: {}", what, status.message()));
  }

  Status read_metadata() {
    ROPEWALK_ASSIGN_OR_RETURN(const Columns columns, columns_of("metadata"));
    if (!columns.contains("metadata")) return ok_status();
    // The last one counts: one is written at the start and one at each split and at the end.
    auto rows = db_.prepare("SELECT metadata FROM metadata ORDER BY id DESC LIMIT 1");
    if (!rows.ok()) return ok_status();
    const int code = rows->step();
    if (code == SQLITE_DONE) return ok_status();
    if (code != SQLITE_ROW) {
      damaged("metadata", db_.error(code));
      return ok_status();
    }
    auto metadata = parse_bag_metadata(rows->text(0), file_.options.limits);
    if (metadata.ok()) {
      file_.metadata = std::move(metadata).value();
    } else {
      file_.problems.add(ProblemKind::metadata_mismatch, 0, 0,
                         fmt::format("the metadata inside of the database is not used: {}",
                                     metadata.status().message()));
    }
    return ok_status();
  }

  Status read_definitions() {
    ROPEWALK_ASSIGN_OR_RETURN(const Columns columns, columns_of("message_definitions"));
    if (!columns.contains("encoded_message_definition")) return ok_status();
    auto rows = db_.prepare(
        "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions");
    if (!rows.ok()) return ok_status();
    int code = SQLITE_ROW;
    while ((code = rows->step()) == SQLITE_ROW && definitions_.size() < kMaxTopics) {
      definitions_.emplace(rows->text(0),
                           Definition{.encoding = rows->text(1), .text = rows->text(2)});
    }
    if (code != SQLITE_DONE) damaged("message_definitions", db_.error(code));
    return ok_status();
  }

  Status read_topics() {
    ROPEWALK_ASSIGN_OR_RETURN(const Columns columns, columns_of("topics"));
    const auto optional_column = [&](const std::string& name) {
      return columns.contains(name) ? name : std::string("''");
    };
    ROPEWALK_ASSIGN_OR_RETURN(
        Statement rows,
        db_.prepare(fmt::format("SELECT id, name, type, serialization_format, {}, {} FROM topics "
                                "ORDER BY id",
                                optional_column("offered_qos_profiles"),
                                optional_column("type_description_hash"))));
    int code = SQLITE_ROW;
    while ((code = rows.step()) == SQLITE_ROW && file_.channels.size() < kMaxTopics) {
      const auto index = static_cast<std::uint32_t>(file_.channels.size());
      if (!file_.channel_of_topic.emplace(rows.integer(0), index).second) {
        file_.problems.add(ProblemKind::conflicting_definition, 0, 0,
                           fmt::format("topic {} stands twice; the first holds", rows.integer(0)));
        continue;
      }
      file_.channels.push_back({.topic = rows.text(1),
                                .type = rows.text(2),
                                .message_encoding = rows.text(3),
                                .offered_qos_profiles = rows.text(4),
                                .type_hash = rows.text(5)});
    }
    if (code != SQLITE_DONE) damaged("topics", db_.error(code));
    return ok_status();
  }

  Status find_definitions() {
    for (Channel& channel : file_.channels) {
      std::optional<Definition> found = embedded(channel.type);
      if (!found && !file_.options.definitions.empty()) {
        auto sought = find_definition(file_.options.definitions, channel.type);
        if (sought.ok()) {
          found = std::move(sought).value();
        } else if (sought.status().code() != StatusCode::invalid_argument) {
          return std::move(sought).status();
        }
      }
      if (found) {
        channel.schema_encoding = std::move(found->encoding);
        channel.schema = std::move(found->text);
        continue;
      }
      file_.problems.add(
          ProblemKind::missing_schema, 0, 0,
          fmt::format("{}: {} is not defined in the bag{}", channel.topic, channel.type,
                      file_.options.definitions.empty() ? "; give a folder with its definition"
                                                        : ", nor in the folder of definitions"));
    }
    return ok_status();
  }

  // The events of a service have its type in the database, and their own in the topic.
  std::optional<Definition> embedded(const std::string& type) const {
    auto found = definitions_.find(type);
    constexpr std::string_view kEvent = "_Event";
    if (found == definitions_.end() && type.ends_with(kEvent)) {
      found = definitions_.find(type.substr(0, type.size() - kEvent.size()));
    }
    if (found == definitions_.end() || found->second.encoding.empty() ||
        found->second.encoding == "unknown") {
      return std::nullopt;
    }
    return found->second;
  }

  Status count_messages() {
    std::vector<std::uint64_t> counts(file_.channels.size());
    std::map<std::int64_t, std::uint64_t> strangers;
    std::uint64_t rows_seen = 0;
    std::uint64_t without_time = 0;
    ROPEWALK_ASSIGN_OR_RETURN(Statement rows,
                              db_.prepare("SELECT topic_id, timestamp FROM messages NOT INDEXED"));
    int code = SQLITE_ROW;
    while ((code = rows.step()) == SQLITE_ROW && rows_seen <= file_.max_rows()) {
      ++rows_seen;
      if (!rows.is_integer(1)) {
        ++without_time;
        continue;
      }
      const auto channel = file_.channel_of_topic.find(rows.integer(0));
      if (!rows.is_integer(0) || channel == file_.channel_of_topic.end()) {
        if (strangers.size() < kMaxTopics) ++strangers[rows.integer(0)];
        continue;
      }
      ++counts[channel->second];
      file_.extend_range(rows.integer(1), rows.integer(1));
    }
    if (code != SQLITE_DONE) {
      // Counts and times are those of a part.
      file_.damaged = true;
      file_.range.reset();
      damaged("messages",
              code == SQLITE_ROW ? data_loss("more rows than the file can hold") : db_.error(code));
      if (db_.asked_past_end()) {
        file_.problems.add(ProblemKind::truncated, file_.source->size(), 0,
                           "the database has pages behind the end of the file");
      }
      return ok_status();
    }
    for (std::size_t i = 0; i < counts.size(); ++i) file_.channels[i].message_count = counts[i];
    if (without_time > 0) {
      file_.problems.add(ProblemKind::bad_record, 0, 0,
                         fmt::format("{} messages without a time are not delivered", without_time));
    }
    for (const auto& [topic, count] : strangers) {
      file_.problems.add(
          ProblemKind::unknown_channel, 0, 0,
          fmt::format("{} messages of topic {}, which is nowhere defined", count, topic));
    }
    return check_index(rows_seen - without_time);
  }

  // An index that lists fewer rows than there are would lose the others in silence.
  Status check_index(std::uint64_t rows_with_time) {
    auto count = db_.prepare(
        "SELECT count(timestamp) FROM messages INDEXED BY timestamp_idx WHERE timestamp >= ?1");
    if (!count.ok()) return ok_status();  // there is none: rows are sorted
    count->bind(1, std::numeric_limits<std::int64_t>::min());
    const int code = count->step();
    if (code == SQLITE_ROW && static_cast<std::uint64_t>(count->integer(0)) == rows_with_time) {
      return ok_status();
    }
    file_.index_damaged = true;
    file_.problems.add(ProblemKind::bad_index, 0, 0,
                       code == SQLITE_ROW
                           ? fmt::format("the index of times lists {} messages, the table holds "
                                         "{}; it is not used",
                                         count->integer(0), rows_with_time)
                           : std::string(db_.error(code).message()));
    return ok_status();
  }

  Db3File& file_;
  const Database& db_;
  std::map<std::string, Definition> definitions_;
};

}  // namespace

bool is_sqlite(ByteSpan head) {
  return as_text(head).starts_with(std::string_view("SQLite format 3\0", 16));
}

Result<std::unique_ptr<BagFile>> open_db3(std::shared_ptr<const Source> source,
                                          const ReaderOptions& options,
                                          std::optional<bool> messages_compressed) {
  auto file = std::make_unique<Db3File>(source, options);
  file->kind = BagKind::sqlite3;
  file->problems = ProblemLog(source->name());
  ROPEWALK_ASSIGN_OR_RETURN(const Database db, Database::open(std::move(source), options.limits));
  ROPEWALK_RETURN_IF_ERROR(Opener(*file, db).run(messages_compressed));
  return std::unique_ptr<BagFile>(std::move(file));
}

}  // namespace ropewalk::bag
