#include "ropewalk/format/bag/rosbag2_writer.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <vector>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/format/bag/metadata.h"
#include "ropewalk/format/bag/sqlite_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::uint64_t kMaxMessageBytes = 1'000'000'000;
constexpr std::uint64_t kTransactionBytes = 8ULL << 20;
// As rosbag2 has it in a bag without messages.
constexpr std::int64_t kNoStart = std::numeric_limits<std::int64_t>::max();

constexpr const char* kTables[] = {
    "CREATE TABLE schema(schema_version INTEGER PRIMARY KEY,ros_distro TEXT NOT NULL)",
    "CREATE TABLE metadata(id INTEGER PRIMARY KEY,metadata_version INTEGER NOT NULL,metadata TEXT "
    "NOT NULL)",
    "CREATE TABLE topics(id INTEGER PRIMARY KEY,name TEXT NOT NULL,type TEXT NOT NULL,"
    "serialization_format TEXT NOT NULL,offered_qos_profiles TEXT NOT NULL,"
    "type_description_hash TEXT NOT NULL)",
    "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY,topic_type TEXT NOT NULL,"
    "encoding TEXT NOT NULL,encoded_message_definition TEXT NOT NULL,"
    "type_description_hash TEXT NOT NULL)",
    "CREATE TABLE messages(id INTEGER PRIMARY KEY,topic_id INTEGER NOT NULL,"
    "timestamp INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX timestamp_idx ON messages (timestamp ASC)",
};

auto identity(const Channel& c) {
  return std::tie(c.topic, c.type, c.message_encoding, c.schema_encoding, c.schema,
                  c.offered_qos_profiles, c.type_hash);
}

// Definitions of services stand under the service, the events of one have a type of their own.
std::string definition_name(const Channel& channel) {
  constexpr std::string_view kEvent = "_Event";
  std::string name = channel.type;
  if (name.ends_with(kEvent) && name.find("/srv/") != std::string::npos &&
      channel.schema.find("---\n") != std::string::npos) {
    name.resize(name.size() - kEvent.size());
  }
  return name;
}

// First and last time and the number of messages.
struct Extent {
  std::int64_t first_ns = kNoStart;
  std::int64_t last_ns = std::numeric_limits<std::int64_t>::min();
  std::uint64_t count = 0;

  void add(std::int64_t time_ns) {
    first_ns = std::min(first_ns, time_ns);
    last_ns = std::max(last_ns, time_ns);
    ++count;
  }
  std::int64_t duration() const { return count == 0 ? 0 : last_ns - first_ns; }
};

}  // namespace

Status Rosbag2WriterOptions::validate() const {
  if (max_file_bytes != 0 && max_file_bytes < 86016) {
    return invalid_argument(
        fmt::format("max_file_bytes {}: expected 0 or at least 86016", max_file_bytes));
  }
  return ok_status();
}

struct Rosbag2Writer::Impl {
  explicit Impl(StagedDirectory directory) : stage(std::move(directory)) {}

  StagedDirectory stage;
  Rosbag2WriterOptions options;
  Status error;
  bool finished = false;
  std::vector<Channel> channels;
  std::vector<std::uint64_t> counts;
  BagMetadata metadata;
  Extent whole;

  // The open file.
  std::optional<Database> db;
  std::optional<Statement> insert;
  std::set<std::string> defined;
  Extent extent;
  std::uint64_t bytes = 0;
  std::uint64_t bytes_in_transaction = 0;

  std::string name_of(std::size_t file) const {
    return fmt::format("{}_{}.db3", stage.target().filename().string(), file);
  }

  Status step(Statement& statement) const {
    const int code = statement.step();
    return code == SQLITE_DONE ? ok_status() : db->error(code);
  }

  Status open_file() {
    metadata.files.push_back(name_of(metadata.files.size()));
    extent = {};
    bytes = bytes_in_transaction = 0;
    defined.clear();
    ROPEWALK_ASSIGN_OR_RETURN(Database opened,
                              Database::create(stage.path() / metadata.files.back()));
    db.emplace(std::move(opened));
    ROPEWALK_RETURN_IF_ERROR(db->execute("BEGIN"));
    for (const char* table : kTables) ROPEWALK_RETURN_IF_ERROR(db->execute(table));
    ROPEWALK_ASSIGN_OR_RETURN(Statement schema,
                              db->prepare("INSERT INTO schema(schema_version, ros_distro) "
                                          "VALUES(4, ?1)"));
    schema.bind(1, std::string_view(options.ros_distro));
    ROPEWALK_RETURN_IF_ERROR(step(schema));
    for (std::size_t i = 0; i < channels.size(); ++i) ROPEWALK_RETURN_IF_ERROR(insert_channel(i));
    ROPEWALK_ASSIGN_OR_RETURN(
        Statement prepared,
        db->prepare("INSERT INTO messages(topic_id, timestamp, data) VALUES(?1, ?2, ?3)"));
    insert.emplace(std::move(prepared));
    return ok_status();
  }

  Status insert_channel(std::size_t index) {
    const Channel& channel = channels[index];
    ROPEWALK_ASSIGN_OR_RETURN(Statement topic,
                              db->prepare("INSERT INTO topics VALUES(?1, ?2, ?3, ?4, ?5, ?6)"));
    const std::string qos = qos_with_numbers(channel.offered_qos_profiles);
    topic.bind(1, static_cast<std::int64_t>(index + 1));
    topic.bind(2, std::string_view(channel.topic));
    topic.bind(3, std::string_view(channel.type));
    topic.bind(4, std::string_view(channel.message_encoding));
    topic.bind(5, std::string_view(qos));
    topic.bind(6, std::string_view(channel.type_hash));
    ROPEWALK_RETURN_IF_ERROR(step(topic));
    const std::string type = definition_name(channel);
    if (channel.schema_encoding.empty() || !defined.insert(type).second) return ok_status();
    ROPEWALK_ASSIGN_OR_RETURN(
        Statement definition,
        db->prepare("INSERT INTO message_definitions(topic_type, encoding, "
                    "encoded_message_definition, type_description_hash) VALUES(?1, ?2, ?3, ?4)"));
    definition.bind(1, std::string_view(type));
    definition.bind(2, std::string_view(channel.schema_encoding));
    definition.bind(3, std::string_view(channel.schema));
    definition.bind(4, std::string_view(channel.type_hash));
    return step(definition);
  }

  Status write(std::uint32_t channel, std::int64_t time_ns, ByteSpan data) {
    if (options.max_file_bytes != 0 && bytes >= options.max_file_bytes) {
      ROPEWALK_RETURN_IF_ERROR(close_file());
      ROPEWALK_RETURN_IF_ERROR(open_file());
    }
    insert->reset();
    insert->bind(1, std::int64_t{channel} + 1);
    insert->bind(2, time_ns);
    insert->bind(3, data);
    ROPEWALK_RETURN_IF_ERROR(step(*insert));
    extent.add(time_ns);
    whole.add(time_ns);
    ++counts[channel];
    bytes += data.size();
    bytes_in_transaction += data.size() + 64;
    if (bytes_in_transaction < kTransactionBytes) return ok_status();
    bytes_in_transaction = 0;
    ROPEWALK_RETURN_IF_ERROR(db->execute("COMMIT"));
    return db->execute("BEGIN");
  }

  void update_metadata() {
    metadata.storage_identifier = "sqlite3";
    metadata.ros_distro = options.ros_distro;
    metadata.starting_time_ns = whole.first_ns;
    metadata.duration_ns = whole.duration();
    metadata.message_count = whole.count;
    metadata.topics.clear();
    for (std::size_t i = 0; i < channels.size(); ++i) {
      metadata.topics.push_back({.name = channels[i].topic,
                                 .type = channels[i].type,
                                 .serialization_format = channels[i].message_encoding,
                                 .offered_qos_profiles = channels[i].offered_qos_profiles,
                                 .type_hash = channels[i].type_hash,
                                 .message_count = counts[i]});
    }
  }

  Status close_file() {
    metadata.file_details.push_back({.path = metadata.files.back(),
                                     .starting_time_ns = extent.first_ns,
                                     .duration_ns = extent.duration(),
                                     .message_count = extent.count});
    update_metadata();
    {
      ROPEWALK_ASSIGN_OR_RETURN(
          Statement statement,
          db->prepare("INSERT INTO metadata(metadata_version, metadata) VALUES(?1, ?2)"));
      const std::string text = to_yaml(metadata, false);
      statement.bind(1, metadata.version);
      statement.bind(2, std::string_view(text));
      ROPEWALK_RETURN_IF_ERROR(step(statement));
    }
    ROPEWALK_RETURN_IF_ERROR(db->execute("COMMIT"));
    insert.reset();
    ROPEWALK_RETURN_IF_ERROR(db->close());
    db.reset();
    return sync_file(stage.path() / metadata.files.back());
  }

  Status finish() {
    ROPEWALK_RETURN_IF_ERROR(close_file());
    ROPEWALK_RETURN_IF_ERROR(
        write_new_file(stage.path() / "metadata.yaml", as_bytes(to_yaml(metadata))));
    return stage.publish();
  }
};

Rosbag2Writer::Rosbag2Writer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Rosbag2Writer::Rosbag2Writer(Rosbag2Writer&&) noexcept = default;
Rosbag2Writer& Rosbag2Writer::operator=(Rosbag2Writer&&) noexcept = default;
Rosbag2Writer::~Rosbag2Writer() = default;

Result<Rosbag2Writer> Rosbag2Writer::create(const std::filesystem::path& directory,
                                            Rosbag2WriterOptions options) {
  ROPEWALK_RETURN_IF_ERROR(options.validate());
  ROPEWALK_ASSIGN_OR_RETURN(StagedDirectory stage, StagedDirectory::create(directory));
  auto impl = std::make_unique<Impl>(std::move(stage));
  impl->options = std::move(options);
  ROPEWALK_RETURN_IF_ERROR(impl->open_file());
  return Rosbag2Writer(std::move(impl));
}

Result<std::uint32_t> Rosbag2Writer::add_channel(const Channel& channel) {
  ROPEWALK_RETURN_IF_ERROR(impl_->error);
  if (impl_->finished) return failed_precondition("the bag is finished");
  if (channel.topic.empty() || channel.type.empty() || channel.message_encoding.empty()) {
    return invalid_argument("a channel needs a topic, a type and an encoding");
  }
  for (std::size_t i = 0; i < impl_->channels.size(); ++i) {
    if (identity(impl_->channels[i]) == identity(channel)) return static_cast<std::uint32_t>(i);
  }
  impl_->channels.push_back(channel);
  impl_->counts.push_back(0);
  impl_->error = impl_->insert_channel(impl_->channels.size() - 1);
  ROPEWALK_RETURN_IF_ERROR(impl_->error);
  return static_cast<std::uint32_t>(impl_->channels.size() - 1);
}

Status Rosbag2Writer::write(std::uint32_t channel, std::int64_t time_ns, ByteSpan data) {
  ROPEWALK_RETURN_IF_ERROR(impl_->error);
  if (impl_->finished) return failed_precondition("the bag is finished");
  if (channel >= impl_->channels.size()) {
    return not_found(fmt::format("channel {}: {} are added", channel, impl_->channels.size()));
  }
  if (data.size() > kMaxMessageBytes - 1024) {
    return resource_exhausted(
        fmt::format("a message of {} bytes: a row holds {}", data.size(), kMaxMessageBytes - 1024));
  }
  impl_->error = impl_->write(channel, time_ns, data);
  return impl_->error;
}

Status Rosbag2Writer::finish() {
  ROPEWALK_RETURN_IF_ERROR(impl_->error);
  if (impl_->finished) return failed_precondition("the bag is finished");
  impl_->finished = true;
  impl_->error = impl_->finish();
  return impl_->error;
}

}  // namespace ropewalk::bag
