#pragma once
// SQLite over a Source, opened as a hostile file: read only, through a file system of its own that
// reaches no other file, without extensions, triggers, views or unbounded work. And the plain kind
// for the writer.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include "ropewalk/base/core/limits.h"
#include "ropewalk/base/io/file.h"

namespace ropewalk::bag {

class Statement;

class Database {
 public:
  /// Errors: data_loss when it is no database; resource_exhausted.
  static Result<Database> open(std::shared_ptr<const Source> source, const Limits& limits);
  /// Creates or opens a file of ours for writing, with no journal: it is nobody's until it is
  /// finished.
  static Result<Database> create(const std::filesystem::path& path);
  /// Opens a private copy for writing, so that SQLite takes its write-ahead log in.
  static Result<Database> open_copy(const std::filesystem::path& path);
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  Result<Statement> prepare(std::string_view sql) const;
  Status execute(std::string_view sql) const;
  /// The error of the last call, as a Status: data_loss for damage, resource_exhausted for limits.
  Status error(int code) const;
  sqlite3* get() const;
  /// Whether a page behind the end of the file was asked for: the file is cut.
  bool asked_past_end() const;
  /// Closes, and says whether everything was written.
  Status close();

 private:
  struct Impl;
  explicit Database(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Lifetime: the database must outlive it.
class Statement {
 public:
  Statement(Statement&&) noexcept = default;
  Statement& operator=(Statement&&) noexcept = default;

  void bind(int index, std::int64_t value);
  void bind(int index, std::string_view text);  ///< kept by the caller until the step
  void bind(int index, ByteSpan blob);          ///< likewise
  /// Steps, with a bound on the work; SQLITE_ROW, SQLITE_DONE or an error code.
  int step();
  void reset();

  bool is_integer(int column) const;
  bool is_null(int column) const;
  std::int64_t integer(int column) const;
  std::string text(int column) const;
  /// Lifetime: until the next step.
  ByteSpan blob(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(sqlite3_stmt* statement, std::uint64_t* work_left, std::uint64_t work_per_step)
      : statement_(statement), work_left_(work_left), work_per_step_(work_per_step) {}

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::uint64_t* work_left_ = nullptr;
  std::uint64_t work_per_step_ = 0;
};

}  // namespace ropewalk::bag
