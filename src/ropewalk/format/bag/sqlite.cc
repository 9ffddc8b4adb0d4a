#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/format/bag/sqlite_internal.h"

namespace ropewalk::bag {
namespace {

constexpr int kWorkUnit = 1000;  // instructions of SQLite's machine between two checks
constexpr std::uint64_t kPageCacheKib = 8192;
constexpr std::uint64_t kMinBlobLimit = 64ULL << 10;
constexpr std::uint64_t kMaxBlobLimit = 1'000'000'000;

// --- a file system that holds one read-only file ---

struct SourceFileSystem {
  sqlite3_vfs vfs{};
  std::string name;
  std::shared_ptr<const Source> source;
  std::uint64_t stated_size = 0;
  bool asked_past_end = false;
};

struct SourceFile {
  sqlite3_file base{};
  SourceFileSystem* system = nullptr;
};

SourceFileSystem& system_of(sqlite3_file* file) {
  return *reinterpret_cast<SourceFile*>(file)->system;
}

int read_source(sqlite3_file* file, void* out, int amount, sqlite3_int64 offset) {
  SourceFileSystem& system = system_of(file);
  const std::uint64_t size = system.source->size();
  const auto at = static_cast<std::uint64_t>(offset);
  const auto wanted = static_cast<std::size_t>(amount);
  if (at > size || wanted > size - at) {
    // SQLite looks at the first 100 bytes of whatever there is. Any other page must be whole: a
    // page of zeros would be taken for data.
    if (at != 0) {
      system.asked_past_end = true;
      return SQLITE_IOERR_READ;
    }
    std::memset(out, 0, wanted);
    const MutableByteSpan part(static_cast<std::uint8_t*>(out), static_cast<std::size_t>(size));
    return system.source->read_at(0, part).ok() ? SQLITE_IOERR_SHORT_READ : SQLITE_IOERR_READ;
  }
  const MutableByteSpan all(static_cast<std::uint8_t*>(out), wanted);
  return system.source->read_at(at, all).ok() ? SQLITE_OK : SQLITE_IOERR_READ;
}

int source_size(sqlite3_file* file, sqlite3_int64* out) {
  // What the header states: a cut file opens, and the pages that are lost are errors when read.
  *out = static_cast<sqlite3_int64>(system_of(file).stated_size);
  return SQLITE_OK;
}

int close_source(sqlite3_file* /*file*/) { return SQLITE_OK; }
int refuse_write(sqlite3_file* /*file*/, const void* /*data*/, int /*amount*/,
                 sqlite3_int64 /*offset*/) {
  return SQLITE_READONLY;
}
int refuse_truncate(sqlite3_file* /*file*/, sqlite3_int64 /*size*/) { return SQLITE_READONLY; }
int sync_nothing(sqlite3_file* /*file*/, int /*flags*/) { return SQLITE_OK; }
int lock_nothing(sqlite3_file* /*file*/, int /*level*/) { return SQLITE_OK; }
int nobody_locks(sqlite3_file* /*file*/, int* out) {
  *out = 0;
  return SQLITE_OK;
}
int no_control(sqlite3_file* /*file*/, int /*op*/, void* /*argument*/) { return SQLITE_NOTFOUND; }
int sector_size(sqlite3_file* /*file*/) { return 4096; }
int immutable(sqlite3_file* /*file*/) { return SQLITE_IOCAP_IMMUTABLE; }

const sqlite3_io_methods kSourceMethods = [] {
  sqlite3_io_methods methods{};
  methods.iVersion = 1;
  methods.xClose = close_source;
  methods.xRead = read_source;
  methods.xWrite = refuse_write;
  methods.xTruncate = refuse_truncate;
  methods.xSync = sync_nothing;
  methods.xFileSize = source_size;
  methods.xLock = lock_nothing;
  methods.xUnlock = lock_nothing;
  methods.xCheckReservedLock = nobody_locks;
  methods.xFileControl = no_control;
  methods.xSectorSize = sector_size;
  methods.xDeviceCharacteristics = immutable;
  return methods;
}();

int open_source_file(sqlite3_vfs* vfs, const char* /*name*/, sqlite3_file* file, int flags,
                     int* out_flags) {
  file->pMethods = nullptr;
  if ((flags & SQLITE_OPEN_MAIN_DB) == 0) return SQLITE_CANTOPEN;
  auto* opened = reinterpret_cast<SourceFile*>(file);
  opened->system = static_cast<SourceFileSystem*>(vfs->pAppData);
  opened->base.pMethods = &kSourceMethods;
  if (out_flags != nullptr) *out_flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_MAIN_DB;
  return SQLITE_OK;
}
int refuse_delete(sqlite3_vfs* /*vfs*/, const char* /*name*/, int /*sync*/) {
  return SQLITE_READONLY;
}
int nothing_exists(sqlite3_vfs* /*vfs*/, const char* /*name*/, int /*flags*/, int* out) {
  *out = 0;
  return SQLITE_OK;
}
int same_name(sqlite3_vfs* /*vfs*/, const char* name, int size, char* out) {
  sqlite3_snprintf(size, out, "%s", name);
  return SQLITE_OK;
}
int no_randomness(sqlite3_vfs* /*vfs*/, int size, char* out) {
  std::memset(out, 0, static_cast<std::size_t>(size));
  return size;
}
int no_sleep(sqlite3_vfs* /*vfs*/, int /*microseconds*/) { return 0; }
int no_time(sqlite3_vfs* /*vfs*/, double* out) {
  *out = 0;
  return SQLITE_OK;
}

// The size in pages that the header states, where it is to be believed.
std::uint64_t stated_size(const Source& source) {
  std::uint8_t header[100] = {};
  if (source.size() < sizeof header || !source.read_at(0, header).ok()) return source.size();
  const auto big = [&](std::size_t at, std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value << 8 | header[at + i];
    return value;
  };
  const std::uint64_t page = big(16, 2) == 1 ? 65536 : big(16, 2);
  // The page count holds when it was written with the last change.
  if (page < 512 || (page & (page - 1)) != 0 || big(24, 4) != big(92, 4)) return source.size();
  return std::max(source.size(), page * big(28, 4));
}

Result<std::unique_ptr<SourceFileSystem>> make_system(std::shared_ptr<const Source> source) {
  auto system = std::make_unique<SourceFileSystem>();
  system->stated_size = stated_size(*source);
  system->source = std::move(source);
  system->name = fmt::format("ropewalk-{}", static_cast<const void*>(system.get()));
  sqlite3_vfs& vfs = system->vfs;
  vfs.iVersion = 1;
  vfs.szOsFile = sizeof(SourceFile);
  vfs.mxPathname = 512;
  vfs.zName = system->name.c_str();
  vfs.pAppData = system.get();
  vfs.xOpen = open_source_file;
  vfs.xDelete = refuse_delete;
  vfs.xAccess = nothing_exists;
  vfs.xFullPathname = same_name;
  vfs.xRandomness = no_randomness;
  vfs.xSleep = no_sleep;
  vfs.xCurrentTime = no_time;
  if (sqlite3_vfs_register(&vfs, 0) != SQLITE_OK) {
    return resource_exhausted("no memory for a database");
  }
  return system;
}

int count_work(void* left) {
  auto& work = *static_cast<std::uint64_t*>(left);
  if (work < kWorkUnit) return 1;
  work -= kWorkUnit;
  return 0;
}

}  // namespace

struct Database::Impl {
  std::string name;
  std::unique_ptr<SourceFileSystem> system;
  sqlite3* db = nullptr;
  std::uint64_t work_left = 0;
  std::uint64_t work_per_step = ~std::uint64_t{0};

  ~Impl() {
    sqlite3_close(db);
    if (system) sqlite3_vfs_unregister(&system->vfs);
  }
};

Database::Database(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Result<Database> Database::open(std::shared_ptr<const Source> source, const Limits& limits) {
  auto impl = std::make_unique<Impl>();
  impl->name = source->name();
  const std::uint64_t size = source->size();
  ROPEWALK_ASSIGN_OR_RETURN(impl->system, make_system(std::move(source)));
  Database out(std::move(impl));
  Impl& state = *out.impl_;
  if (const int code =
          sqlite3_open_v2("bag", &state.db, SQLITE_OPEN_READONLY, state.system->name.c_str());
      code != SQLITE_OK) {
    return out.error(code);
  }
  sqlite3* db = state.db;
  sqlite3_extended_result_codes(db, 1);
  for (const auto& [option, value] :
       {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1}, std::pair{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
        std::pair{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0}, std::pair{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
        std::pair{SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0},
        std::pair{SQLITE_DBCONFIG_ENABLE_FTS3_TOKENIZER, 0}}) {
    sqlite3_db_config(db, option, value, nullptr);
  }
  // No value is larger than its file, whatever it states.
  const std::uint64_t blob = std::clamp(
      size, kMinBlobLimit, std::clamp(limits.max_record_bytes, kMinBlobLimit, kMaxBlobLimit));
  for (const auto& [limit, value] :
       {std::pair{SQLITE_LIMIT_LENGTH, static_cast<int>(blob)},
        std::pair{SQLITE_LIMIT_SQL_LENGTH, 100'000}, std::pair{SQLITE_LIMIT_COLUMN, 100},
        std::pair{SQLITE_LIMIT_EXPR_DEPTH, 50}, std::pair{SQLITE_LIMIT_COMPOUND_SELECT, 5},
        std::pair{SQLITE_LIMIT_VDBE_OP, 25'000}, std::pair{SQLITE_LIMIT_FUNCTION_ARG, 8},
        std::pair{SQLITE_LIMIT_ATTACHED, 0}, std::pair{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50},
        std::pair{SQLITE_LIMIT_VARIABLE_NUMBER, 10}, std::pair{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
        std::pair{SQLITE_LIMIT_WORKER_THREADS, 0}}) {
    sqlite3_limit(db, limit, value);
  }
  // Pages that point in circles would keep a query busy for ever. Honest work is in proportion to
  // the file: a row takes several bytes, and a few instructions to read or sort.
  state.work_per_step = 2'000'000 + 16 * size;
  state.work_left = state.work_per_step;
  sqlite3_progress_handler(db, kWorkUnit, count_work, &state.work_left);
  for (const std::string& pragma :
       {std::string("PRAGMA cell_size_check=ON"), std::string("PRAGMA mmap_size=0"),
        std::string("PRAGMA temp_store=MEMORY"),
        fmt::format("PRAGMA cache_size=-{}", kPageCacheKib)}) {
    ROPEWALK_RETURN_IF_ERROR(out.execute(pragma));
  }
  return out;
}

Result<Database> Database::create(const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->name = path.string();
  Database out(std::move(impl));
  if (const int code = sqlite3_open_v2(
          path.c_str(), &out.impl_->db,
          SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE, nullptr);
      code != SQLITE_OK) {
    return out.error(code);
  }
  for (const char* pragma : {"PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF",
                             "PRAGMA locking_mode=EXCLUSIVE", "PRAGMA temp_store=MEMORY"}) {
    ROPEWALK_RETURN_IF_ERROR(out.execute(pragma));
  }
  return out;
}

Result<Database> Database::open_copy(const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->name = path.string();
  Database out(std::move(impl));
  if (const int code =
          sqlite3_open_v2(path.c_str(), &out.impl_->db, SQLITE_OPEN_READWRITE, nullptr);
      code != SQLITE_OK) {
    return out.error(code);
  }
  sqlite3_db_config(out.impl_->db, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(out.impl_->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  return out;
}

Status Database::error(int code) const {
  const std::string message =
      fmt::format("{}: {}", impl_->name,
                  impl_->db != nullptr ? sqlite3_errmsg(impl_->db) : sqlite3_errstr(code));
  switch (code & 0xff) {
    case SQLITE_NOMEM:
    case SQLITE_FULL:
    case SQLITE_TOOBIG:
      return resource_exhausted(message);
    case SQLITE_INTERRUPT:
      return data_loss(impl_->name + ": its pages lead in circles");
    case SQLITE_PERM:
    case SQLITE_READONLY:
    case SQLITE_AUTH:
      return permission_denied(message);
    case SQLITE_CANTOPEN:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return unavailable(message);
    default:
      return data_loss(message);
  }
}

sqlite3* Database::get() const { return impl_->db; }
bool Database::asked_past_end() const { return impl_->system && impl_->system->asked_past_end; }

Status Database::close() {
  const int code = sqlite3_close(impl_->db);
  if (code != SQLITE_OK) return error(code);
  impl_->db = nullptr;
  return ok_status();
}

Result<Statement> Database::prepare(std::string_view sql) const {
  impl_->work_left = impl_->work_per_step;
  sqlite3_stmt* raw = nullptr;
  const int code =
      sqlite3_prepare_v2(impl_->db, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(raw, &impl_->work_left, impl_->work_per_step);
}

Status Database::execute(std::string_view sql) const {
  ROPEWALK_ASSIGN_OR_RETURN(Statement statement, prepare(sql));
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = statement.step();
  return code == SQLITE_DONE ? ok_status() : error(code);
}

void Statement::bind(int index, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), index, value);
}
void Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL.
  sqlite3_bind_text64(statement_.get(), index, text.empty() ? "" : text.data(), text.size(),
                      SQLITE_STATIC, SQLITE_UTF8);
}
void Statement::bind(int index, ByteSpan blob) {
  sqlite3_bind_blob64(statement_.get(), index,
                      blob.empty() ? "" : static_cast<const void*>(blob.data()), blob.size(),
                      SQLITE_STATIC);
}

int Statement::step() {
  *work_left_ = work_per_step_;
  return sqlite3_step(statement_.get());
}
void Statement::reset() { sqlite3_reset(statement_.get()); }

bool Statement::is_integer(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_INTEGER;
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}
std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}
std::string Statement::text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}
ByteSpan Statement::blob(int column) const {
  const auto* data =
      static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

}  // namespace ropewalk::bag
