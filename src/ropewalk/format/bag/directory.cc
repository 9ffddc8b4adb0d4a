// Directories of ROS 2 bags: several files as one bag. And the ways from a path to a database.
#include <stdio.h>
#include <unistd.h>

#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "ropewalk/base/codec/stream.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/format/bag/bag_internal.h"
#include "ropewalk/format/bag/sqlite_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

class DirectoryFile final : public BagFile {
 public:
  struct Part {
    std::unique_ptr<BagFile> file;
    std::vector<std::uint32_t> channels;  ///< of the file -> of the bag
  };
  Result<std::unique_ptr<MessageStream>> stream(const Selection& selection) const override;

  std::vector<Part> parts;
};

class DirectoryStream final : public MessageStream {
 public:
  DirectoryStream(const DirectoryFile& bag, Selection selection)
      : bag_(bag), selection_(std::move(selection)), slots_(bag.parts.size()) {}

  Result<bool> next(MessageView& out) override {
    if (last_) ROPEWALK_RETURN_IF_ERROR(advance(*std::exchange(last_, std::nullopt)));
    ROPEWALK_RETURN_IF_ERROR(open_due());
    std::optional<std::size_t> best;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].stream && (!best || before(i, *best))) best = i;
    }
    if (!best) return false;
    out = slots_[*best].head;
    out.channel_index = bag_.parts[*best].channels[out.channel_index];
    last_ = best;
    return true;
  }

 private:
  struct Slot {
    bool started = false;
    std::unique_ptr<MessageStream> stream;  ///< null before its time and after its end
    MessageView head;
  };

  bool before(std::size_t a, std::size_t b) const {
    return selection_.order == Order::time && slots_[a].head.time_ns < slots_[b].head.time_ns;
  }

  // Opens the files that may hold the next message: in file order the next one, in time order all
  // that start no later than what is at hand.
  Status open_due() {
    for (;;) {
      std::optional<std::int64_t> earliest;
      for (const Slot& slot : slots_) {
        if (!slot.stream) continue;
        earliest = std::min(earliest.value_or(slot.head.time_ns), slot.head.time_ns);
      }
      if (selection_.order == Order::file && earliest) return ok_status();
      std::optional<std::size_t> due;
      for (std::size_t i = 0; i < slots_.size(); ++i) {
        if (slots_[i].started) continue;
        if (!due || (selection_.order == Order::time && start_of(i) < start_of(*due))) due = i;
      }
      if (!due || (earliest && start_of(*due) > *earliest)) return ok_status();
      ROPEWALK_RETURN_IF_ERROR(open(*due));
    }
  }

  std::int64_t start_of(std::size_t part) const {
    const auto& range = bag_.parts[part].file->range;
    return range ? range->first_ns : std::numeric_limits<std::int64_t>::min();
  }

  Status open(std::size_t part) {
    slots_[part].started = true;
    Selection own = selection_;
    own.channels.clear();
    for (const std::uint32_t channel : bag_.parts[part].channels) {
      own.channels.push_back(selection_.channels[channel]);
    }
    ROPEWALK_ASSIGN_OR_RETURN(slots_[part].stream, bag_.parts[part].file->stream(own));
    return advance(part);
  }

  Status advance(std::size_t part) {
    Slot& slot = slots_[part];
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, slot.stream->next(slot.head));
    if (more) return ok_status();
    problems.append(slot.stream->problems.entries());
    slot.stream.reset();
    return ok_status();
  }

  const DirectoryFile& bag_;
  Selection selection_;
  std::vector<Slot> slots_;
  std::optional<std::size_t> last_;
};

Result<std::unique_ptr<MessageStream>> DirectoryFile::stream(const Selection& selection) const {
  return std::unique_ptr<MessageStream>(std::make_unique<DirectoryStream>(*this, selection));
}

// talk_10 after talk_9.
bool natural_before(std::string_view a, std::string_view b) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      while (i < a.size() && a[i] == '0') ++i;
      while (j < b.size() && b[j] == '0') ++j;
      std::size_t end_a = i;
      std::size_t end_b = j;
      while (end_a < a.size() && is_digit(a[end_a])) ++end_a;
      while (end_b < b.size() && is_digit(b[end_b])) ++end_b;
      if (end_a - i != end_b - j) return end_a - i < end_b - j;
      const int order = a.substr(i, end_a - i).compare(b.substr(j, end_b - j));
      if (order != 0) return order < 0;
      i = end_a;
      j = end_b;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i;
    ++j;
  }
  return a.size() - i < b.size() - j;
}

Status mcap_storage(const std::filesystem::path& directory, const std::vector<std::string>& files) {
  return failed_precondition(fmt::format("{}: a bag of MCAP files; open them as MCAP: {}",
                                         directory.string(), fmt::join(files, ", ")))
      .with_reason("MCAP_STORAGE");
}

// What metadata.yaml would say, from the names alone.
Result<std::vector<std::string>> list_databases(const std::filesystem::path& directory) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(directory));
  std::vector<std::string> databases;
  std::vector<std::string> mcaps;
  for (const std::string& name : names) {
    if (name.ends_with(".db3") || name.ends_with(".db3.zstd")) databases.push_back(name);
    if (name.ends_with(".mcap") || name.ends_with(".mcap.zstd")) mcaps.push_back(name);
  }
  std::ranges::sort(databases, natural_before);
  std::ranges::sort(mcaps, natural_before);
  if (databases.empty() && !mcaps.empty()) return mcap_storage(directory, mcaps);
  if (databases.empty()) {
    return not_found(
        fmt::format("{}: neither metadata.yaml nor a .db3 file is there; expected the "
                    "directory of a ROS 2 bag",
                    directory.string()));
  }
  return databases;
}

auto identity(const Channel& c) {
  return std::tie(c.topic, c.type, c.message_encoding, c.schema_encoding, c.schema,
                  c.offered_qos_profiles, c.type_hash);
}

void add_part(DirectoryFile& bag, std::unique_ptr<BagFile> file) {
  DirectoryFile::Part part;
  for (const Channel& channel : file->channels) {
    auto same = std::ranges::find_if(
        bag.channels, [&](const Channel& c) { return identity(c) == identity(channel); });
    if (same == bag.channels.end()) {
      bag.channels.push_back(channel);
      same = std::prev(bag.channels.end());
    } else if (same->message_count && channel.message_count) {
      *same->message_count += *channel.message_count;
    } else {
      same->message_count.reset();
    }
    part.channels.push_back(static_cast<std::uint32_t>(same - bag.channels.begin()));
  }
  if (file->range) bag.extend_range(file->range->first_ns, file->range->last_ns);
  bag.problems.append(file->problems.entries());
  part.file = std::move(file);
  bag.parts.push_back(std::move(part));
}

}  // namespace

Result<std::shared_ptr<const Source>> open_and_unlink(const std::filesystem::path& path) {
  auto source = open_source(path);
  Status removed = remove_file(path);
  if (!source.ok()) return std::move(source).status();
  ROPEWALK_RETURN_IF_ERROR(removed);
  return std::shared_ptr<const Source>(std::move(source).value());
}

Result<std::shared_ptr<const Source>> unpack_source(const Source& packed,
                                                    const ReaderOptions& options) {
  const auto path = options.temp_directory / fmt::format("ropewalk-{}.db3", random_uuid());
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, create_sink(path));
  Bytes piece(kPieceBytes);
  std::uint64_t at = 0;
  const PieceReader read = [&]() -> Result<ByteSpan> {
    const auto size =
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), packed.size() - at));
    ROPEWALK_RETURN_IF_ERROR(packed.read_at(at, MutableByteSpan(piece).first(size)));
    at += size;
    return ByteSpan(piece).first(size);
  };
  Status status = decompress_stream(Compression::zstd, read,
                                    [&](ByteSpan bytes) { return sink->append(bytes); });
  // A file that is cut is still a database, as far as it goes.
  if (status.code() == StatusCode::data_loss && sink->size() >= 100) status = ok_status();
  if (status.ok()) status = sink->close();
  if (!status.ok()) {
    std::ignore = remove_file(path);
    return status.with_context(packed.name());
  }
  return open_and_unlink(path);
}

Result<std::shared_ptr<const Source>> open_db3_source(const std::filesystem::path& path,
                                                      const ReaderOptions& options,
                                                      ProblemLog& problems) {
  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, open_source(path));
  Bytes head(static_cast<std::size_t>(std::min<std::uint64_t>(source->size(), 16)));
  ROPEWALK_RETURN_IF_ERROR(source->read_at(0, head));
  if (as_text(head).starts_with("\x28\xb5\x2f\xfd")) return unpack_source(*source, options);
  const std::filesystem::path log = path.string() + "-wal";
  const std::filesystem::path journal = path.string() + "-journal";
  ROPEWALK_ASSIGN_OR_RETURN(const auto log_info, file_info(log));
  ROPEWALK_ASSIGN_OR_RETURN(const auto journal_info, file_info(journal));
  if (journal_info && journal_info->size_bytes > 0) {
    problems.add(ProblemKind::unfinished, 0, 0,
                 fmt::format("{} lies beside it: its last transaction was not finished; the "
                             "database is read as it is",
                             journal.filename().string()));
  }
  if (!log_info || log_info->size_bytes == 0 || !is_sqlite(head)) return source;
  problems.add(ProblemKind::unfinished, 0, 0,
               fmt::format("{} lies beside it: the recording was not closed; what it holds is read "
                           "too",
                           log.filename().string()));
  // SQLite takes the log in by writing: into a copy.
  const auto copy = options.temp_directory / fmt::format("ropewalk-{}.db3", random_uuid());
  const std::filesystem::path copied_log = copy.string() + "-wal";
  Status status = ropewalk::copy_file(path, copy);
  if (status.ok()) status = ropewalk::copy_file(log, copied_log);
  if (status.ok()) {
    auto db = Database::open_copy(copy);
    status = db.ok() ? db->execute("PRAGMA wal_checkpoint(TRUNCATE)") : db.status();
  }
  std::ignore = remove_file(copied_log);
  std::ignore = remove_file(copy.string() + "-shm");
  if (!status.ok()) {
    std::ignore = remove_file(copy);
    return status.with_context(path.string());
  }
  return open_and_unlink(copy);
}

Result<std::unique_ptr<BagFile>> open_directory(const std::filesystem::path& directory,
                                                const ReaderOptions& options) {
  auto bag = std::make_unique<DirectoryFile>();
  bag->kind = BagKind::sqlite3;
  bag->problems = ProblemLog(directory.string());
  std::vector<std::string> files;
  std::optional<bool> messages_compressed;
  auto metadata = read_bag_metadata(directory, options.limits);
  if (metadata.ok()) {
    bag->metadata = std::move(metadata).value();
    const BagMetadata& known = *bag->metadata;
    if (known.storage_identifier == "mcap") return mcap_storage(directory, known.files);
    if (!known.storage_identifier.empty() && known.storage_identifier != "sqlite3") {
      return unimplemented(fmt::format("{}: storage {}: sqlite3 is read here", directory.string(),
                                       known.storage_identifier));
    }
    if (!known.compression_mode.empty() && known.compression_format != "zstd") {
      return unimplemented(fmt::format("{}: compression {}: zstd is read", directory.string(),
                                       known.compression_format));
    }
    messages_compressed = known.compression_mode == "message";
    files = known.files;
  } else {
    if (metadata.status().code() != StatusCode::not_found &&
        metadata.status().code() != StatusCode::data_loss) {
      return std::move(metadata).status();
    }
    ROPEWALK_ASSIGN_OR_RETURN(files, list_databases(directory));
    bag->problems.add(ProblemKind::metadata_mismatch, 0, 0,
                      fmt::format("{}; all databases are read, in the order of their names",
                                  metadata.status().message()));
  }
  std::size_t found = 0;
  for (const std::string& name : files) {
    auto source = open_db3_source(directory / name, options, bag->problems);
    if (source.status().code() == StatusCode::not_found && !source.ok()) {
      bag->problems.add(ProblemKind::missing_file, 0, 0, name + " is not there");
      continue;
    }
    if (!source.ok()) return std::move(source).status();
    ++found;
    auto file = open_db3(*source, options, messages_compressed);
    if (!file.ok() && file.status().code() == StatusCode::data_loss && files.size() > 1) {
      bag->problems.add(ProblemKind::database_damaged, 0, 0, std::string(file.status().message()));
      continue;
    }
    if (!file.ok()) return std::move(file).status();
    add_part(*bag, std::move(file).value());
  }
  if (found == 0 && !files.empty()) {
    return not_found(fmt::format("{}: none of its files is there: {}", directory.string(),
                                 fmt::join(files, ", ")));
  }
  const auto count = bag->message_count();
  if (bag->metadata && count && *count != bag->metadata->message_count) {
    bag->problems.add(ProblemKind::metadata_mismatch, 0, 0,
                      fmt::format("metadata.yaml says {} messages, the files hold {}",
                                  bag->metadata->message_count, *count));
  }
  return std::unique_ptr<BagFile>(std::move(bag));
}

}  // namespace ropewalk::bag
