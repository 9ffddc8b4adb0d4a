#include "ropewalk/dataset/lerobot/ledger.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/raw_lock.h"
#include "ropewalk/dataset/lerobot/revision.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;

// Rows as D writes them: spaced, with numbers whose spelling a rewrite would change.
std::string plain_row(int index, std::string_view more = "") {
  return fmt::format(
      R"({{"episode_index": {}, "tasks": ["t"], "length": 10, "collection_fps": 30.0, "x": 1e-3{}}})",
      index, more);
}

struct Dataset {
  explicit Dataset(int episodes) {
    std::string text;
    for (int i = 0; i < episodes; ++i) text += plain_row(i) + "\n";
    set_rows(text);
  }
  void set_rows(const std::string& text) { test::write_file(rows_path(), text); }
  std::string rows() const { return test::read_file(rows_path()); }
  std::string ledger() const { return test::read_file(dir / "meta/ledger.jsonl"); }
  std::filesystem::path rows_path() const { return dir / "meta/episodes.jsonl"; }
  Ledger write(std::string actor = "anna") const {
    auto ledger = Ledger::open_for_write(dir.path(), {std::move(actor), "cli"});
    EXPECT_TRUE(ledger.ok()) << ledger.status().to_string();
    return std::move(ledger).value();
  }
  Ledger read() const {
    auto ledger = Ledger::open_for_read(dir.path());
    EXPECT_TRUE(ledger.ok()) << ledger.status().to_string();
    return std::move(ledger).value();
  }
  TempDir dir{"ledger"};
};

void expect_ok(const Status& status) { ASSERT_TRUE(status.ok()) << status.to_string(); }

TEST(Ledger, ReadsADatasetThatWasNeverChangedWithRevisionZero) {
  Dataset data(2);
  data.set_rows(plain_row(0, R"(, "quality": "red", "quality_issues": [{"code": "x"}])") + "\n" +
                plain_row(7, R"(, "qc_verdict": "FAIL", "qc_note": "blurry")"));
  const Ledger ledger = data.read();
  EXPECT_EQ(ledger.revision(), 0);
  ASSERT_EQ(ledger.rows().size(), 2u);
  EXPECT_EQ(ledger.rows()[0].quality, "red");
  EXPECT_EQ(ledger.rows()[0].issues.size(), 1u);
  EXPECT_EQ(ledger.rows()[0].verdict, "");
  EXPECT_EQ(ledger.rows()[1].verdict, "fail");
  EXPECT_EQ(ledger.find(7)->note, "blurry");
  EXPECT_EQ(ledger.episode_revision(7), 0);
  EXPECT_FALSE(std::filesystem::exists(data.dir / "meta/ledger.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(data.dir / "meta/.ledger.lock"));
}

TEST(Ledger, SaysThatADatasetIsNoRawOne) {
  const TempDir dir("ledger");
  EXPECT_EQ(Ledger::open_for_read(dir.path()).status().reason(), "NOT_RAW_V21");
  EXPECT_EQ(Ledger::open_for_write(dir.path(), {"a"}).status().reason(), "NOT_RAW_V21");
}

TEST(Ledger, ImportsRowsAndRecordsAMarkWithItsActor) {
  Dataset data(3);
  Ledger ledger = data.write();
  EXPECT_EQ(ledger.revision(), 3);  // one `imported` line per row
  const auto change = ledger.mark({.episodes = {1}, .verdict = "pass", .note = "fine"});
  ASSERT_TRUE(change.ok());
  EXPECT_EQ(change->revision, 4);
  const std::string text = data.ledger();
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  const Json line = *parse_json(last);
  EXPECT_EQ(line.get_int64("rev"), 4);
  EXPECT_EQ(line.get_string("actor"), "anna");
  EXPECT_EQ(line.get_string("client"), "cli");
  EXPECT_EQ(line.get_string("kind"), "verdict");
  EXPECT_EQ(line.get_int64("episode_index"), 1);
  EXPECT_EQ(line.find("before")->dump(), R"({"qc_verdict":null,"qc_note":null})");
  EXPECT_EQ(line.find("after")->dump(), R"({"qc_verdict":"pass","qc_note":"fine"})");
  EXPECT_EQ(ledger.find(1)->verdict, "pass");
  EXPECT_EQ(ledger.episode_revision(1), 4);
  EXPECT_EQ(ledger.episode_revision(2), 3);
  EXPECT_EQ(data.read().find(1)->note, "fine");
}

TEST(Ledger, KeepsTheNoteWithoutOneAndClearsItWithAnEmptyOne) {
  Dataset data(1);
  Ledger ledger = data.write();
  expect_ok(ledger.mark({.episodes = {0}, .verdict = "pass", .note = "n"}).status());
  expect_ok(ledger.mark({.episodes = {0}, .verdict = "fail"}).status());
  EXPECT_EQ(ledger.find(0)->note, "n");
  expect_ok(ledger.mark({.episodes = {0}, .note = ""}).status());
  EXPECT_EQ(ledger.find(0)->note, "");
  EXPECT_EQ(ledger.find(0)->verdict, "fail");
  expect_ok(ledger.mark({.episodes = {0}, .verdict = "clear"}).status());
  EXPECT_EQ(ledger.find(0)->verdict, "");
  const auto nothing = ledger.mark({.episodes = {0}, .verdict = "clear"});
  EXPECT_TRUE(nothing->lines.empty());
  EXPECT_EQ(ledger.mark({.episodes = {0}}).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(ledger.mark({.episodes = {0}, .verdict = "maybe"}).status().code(),
            StatusCode::invalid_argument);
}

TEST(Ledger, RefusesUnknownEpisodesAndChangesNothing) {
  Dataset data(2);
  Ledger ledger = data.write();
  const std::string before = data.ledger();
  const auto change = ledger.mark({.episodes = {0, 5, 9}, .verdict = "pass"});
  EXPECT_EQ(change.status().code(), StatusCode::not_found);
  EXPECT_NE(change.status().message().find("[5, 9]"), std::string_view::npos);
  EXPECT_EQ(data.ledger(), before);
  EXPECT_EQ(data.read().mark({.episodes = {0}, .verdict = "pass"}).status().code(),
            StatusCode::failed_precondition);
}

TEST(Ledger, RefusesAMarkOnAnOlderRevisionOfTheEpisode) {
  Dataset data(2);
  Ledger ledger = data.write();
  const std::int64_t seen = ledger.revision();
  Ledger other = data.write("ben");
  expect_ok(other.mark({.episodes = {0}, .verdict = "fail"}).status());
  const auto refused = ledger.mark({.episodes = {0}, .verdict = "pass", .if_revision = seen});
  EXPECT_EQ(refused.status().reason(), "REVISION_CHANGED");
  expect_ok(ledger.mark({.episodes = {1}, .verdict = "pass", .if_revision = seen}).status());
  EXPECT_EQ(ledger.find(0)->verdict, "fail");  // what the other wrote was read
}

TEST(Ledger, ProjectsVerdictsAndKeepsAllOtherBytes) {
  Dataset data(3);
  Ledger ledger = data.write();
  expect_ok(ledger.mark({.episodes = {1}, .verdict = "pass", .note = "ok \"q\""}).status());
  expect_ok(ledger.project());
  EXPECT_EQ(data.rows(), plain_row(0) + "\n" +
                             plain_row(1, R"(, "qc_verdict": "pass", "qc_note": "ok \"q\"")") +
                             "\n" + plain_row(2) + "\n");
  const Json state = *parse_json(test::read_file(data.dir / "meta/ledger_state.json"));
  EXPECT_EQ(state.get_int64("rev"), 4);
  EXPECT_EQ(state.get_int64("size"), static_cast<std::int64_t>(data.rows().size()));
  EXPECT_EQ(state.get_string("sha256"), sha256_hex(as_bytes(data.rows())));
  EXPECT_EQ(state.get_int64("total_frames"), 30);

  expect_ok(ledger.mark({.episodes = {1}, .verdict = "clear", .note = ""}).status());
  expect_ok(ledger.project());
  EXPECT_EQ(data.rows(), plain_row(0) + "\n" + plain_row(1) + "\n" + plain_row(2) + "\n");
  // Projecting is no edit.
  EXPECT_EQ(data.write().revision(), 5);
}

TEST(Ledger, UndoesABulkMarkAsOneAction) {
  Dataset data(4);
  Ledger ledger = data.write();
  expect_ok(ledger.mark({.episodes = {2}, .verdict = "fail"}).status());
  const auto bulk = ledger.mark({.episodes = {0, 1, 2, 3, 3}, .verdict = "pass"});
  ASSERT_EQ(bulk->lines.size(), 4u);
  EXPECT_FALSE(bulk->lines[0].batch.empty());
  EXPECT_EQ(bulk->lines[0].batch, bulk->lines[3].batch);
  const auto undone = ledger.undo();
  ASSERT_TRUE(undone.ok()) << undone.status().to_string();
  EXPECT_EQ(undone->lines.size(), 4u);
  EXPECT_EQ(ledger.find(0)->verdict, "");
  EXPECT_EQ(ledger.find(2)->verdict, "fail");
  // Undoing the undo gives the bulk mark back.
  expect_ok(ledger.undo({.batch = undone->lines[0].batch}).status());
  EXPECT_EQ(ledger.find(2)->verdict, "pass");
  // With nothing named the last action that stands is undone: the bulk mark again.
  expect_ok(ledger.undo().status());
  EXPECT_EQ(ledger.find(2)->verdict, "fail");
  expect_ok(ledger.undo().status());
  EXPECT_EQ(ledger.find(2)->verdict, "");
  EXPECT_EQ(ledger.undo().status().code(), StatusCode::not_found);
}

TEST(Ledger, RefusesToUndoWhatWasChangedAgain) {
  Dataset data(1);
  Ledger ledger = data.write();
  const auto first = ledger.mark({.episodes = {0}, .verdict = "pass"});
  expect_ok(ledger.mark({.episodes = {0}, .verdict = "fail"}).status());
  const auto refused = ledger.undo({.rev = first->revision});
  EXPECT_EQ(refused.status().code(), StatusCode::failed_precondition);
  EXPECT_EQ(ledger.undo({.rev = 1}).status().code(), StatusCode::failed_precondition);  // imported
  EXPECT_EQ(ledger.undo({.rev = 99}).status().code(), StatusCode::not_found);
  expect_ok(ledger.undo({.rev = 3}).status());
  expect_ok(ledger.undo({.rev = first->revision}).status());
  EXPECT_EQ(ledger.undo({.rev = first->revision}).status().code(),
            StatusCode::failed_precondition);  // a second time
}

TEST(Ledger, RestoresAVerdictThatVanishedFromTheRow) {
  Dataset data(2);
  {
    Ledger ledger = data.write();
    expect_ok(ledger.mark({.episodes = {0}, .verdict = "pass"}).status());
    expect_ok(ledger.project());
  }
  const std::string projected = data.rows();
  data.set_rows(plain_row(0) + "\n" + plain_row(1) + "\n");  // an absent verdict clears nothing
  Ledger ledger = data.write();
  EXPECT_EQ(ledger.find(0)->verdict, "pass");
  EXPECT_EQ(ledger.revision(), 3);
  expect_ok(ledger.project());
  EXPECT_EQ(data.rows(), projected);
}

TEST(Ledger, RecordsAForeignEditThatIsNewer) {
  Dataset data(2);
  {
    Ledger ledger = data.write();
    expect_ok(ledger.mark({.episodes = {0}, .verdict = "pass"}).status());
    expect_ok(ledger.project());
  }
  data.set_rows(plain_row(0, R"(, "qc_verdict": "fail", "qc_note": "D says so")") + "\n" +
                plain_row(1) + "\n");
  {
    const Ledger reader = data.read();  // counts, is not written
    EXPECT_EQ(reader.find(0)->verdict, "fail");
    EXPECT_EQ(reader.revision(), 3);
    EXPECT_EQ(reader.findings().count("external_edit"), 1);
  }
  Ledger ledger = data.write();
  EXPECT_EQ(ledger.revision(), 4);
  EXPECT_EQ(ledger.find(0)->verdict, "fail");
  EXPECT_EQ(ledger.find(0)->note, "D says so");
  const LedgerLine line = ledger.log()->back();
  EXPECT_EQ(line.kind, LedgerKind::external_edit);
  EXPECT_EQ(line.actor, "system");
  EXPECT_EQ(line.before.dump(), R"({"qc_verdict":"pass","qc_note":null})");
  expect_ok(ledger.project());
  EXPECT_EQ(data.write().revision(), 4);
}

TEST(Ledger, TakesBackAForeignEditThatIsOlderThanTheLedger) {
  Dataset data(1);
  {
    Ledger ledger = data.write();
    expect_ok(ledger.mark({.episodes = {0}, .verdict = "pass"}).status());
    expect_ok(ledger.project());
    expect_ok(ledger.mark({.episodes = {0}, .note = "later"}).status());
  }
  data.set_rows(plain_row(0, R"(, "qc_verdict": "fail")") + "\n");
  const timespec old[2] = {{1'600'000'000, 0}, {1'600'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, data.rows_path().c_str(), old, 0), 0);
  Ledger ledger = data.write();
  EXPECT_EQ(ledger.find(0)->verdict, "pass");
  const auto log = *ledger.log({.last = 2});
  EXPECT_EQ(log[0].kind, LedgerKind::external_edit);
  EXPECT_EQ(log[1].kind, LedgerKind::verdict);
  EXPECT_EQ(log[1].after.get_string("qc_verdict"), "pass");
}

TEST(Ledger, ImportsNewRowsAndReportsVanishedOnes) {
  Dataset data(2);
  data.write();
  data.set_rows(plain_row(1) + "\n" + plain_row(5, R"(, "qc_verdict": "pass")") + "\n");
  const Ledger ledger = data.write();
  EXPECT_EQ(ledger.revision(), 3);
  EXPECT_EQ(ledger.find(5)->verdict, "pass");
  EXPECT_EQ(ledger.find(0), nullptr);
  EXPECT_EQ(ledger.findings().count("episode_row_vanished"), 1);
  EXPECT_EQ(ledger.log()->back().kind, LedgerKind::imported);
}

TEST(Ledger, ImportsReviewsOfQcJsonl) {
  Dataset data(3);
  test::write_file(
      data.dir / "meta/qc.jsonl",
      R"({"episode_index":0,"qc_verdict":"pass","qc_note":"hand","qc_auto":false,"qc_auto_verdict":"fail","qc_auto_note":"dark","qc_updated_at":"2026-01-02T03:04:05.000001+00:00"})"
      "\n"
      R"({"episode_index":1,"qc_verdict":"fail","qc_note":"camera offline","qc_auto":true})"
      "\n"
      R"({"episode_index":2,"qc_verdict":"unreviewed","qc_auto":false})"
      "\n");
  {
    const Ledger ledger = data.read();
    EXPECT_EQ(ledger.find(0)->verdict, "pass");
    EXPECT_EQ(ledger.find(1)->verdict, "fail");
    EXPECT_TRUE(ledger.find(1)->verdict_by_machine);
    EXPECT_EQ(ledger.find(1)->note, "camera offline");
    EXPECT_EQ(ledger.find(2)->verdict, "");
  }
  Ledger ledger = data.write();
  expect_ok(ledger.mark({.episodes = {1}, .verdict = "pass"}).status());
  EXPECT_EQ(ledger.find(1)->verdict, "pass");
  EXPECT_FALSE(ledger.find(1)->verdict_by_machine);
  expect_ok(ledger.mark({.episodes = {0, 1}, .verdict = "clear"}).status());
  EXPECT_EQ(ledger.find(0)->verdict, "fail");  // the machine's stands again
  expect_ok(ledger.project());
  const std::int64_t revision = ledger.revision();
  EXPECT_EQ(data.write().revision(), revision);  // an unchanged file is not read as an edit

  test::write_file(
      data.dir / "meta/qc.jsonl",
      R"({"episode_index":2,"qc_verdict":"fail","qc_auto":false,"qc_updated_at":"2099-01-02T03:04:05Z"})"
      "\n");
  const Ledger later = data.write();
  EXPECT_EQ(later.revision(), revision + 1);
  EXPECT_EQ(later.find(2)->verdict, "fail");
}

TEST(Ledger, LetsALaterScanOverrideTheQualityOfTheRow) {
  Dataset data(2);
  data.set_rows(plain_row(0, R"(, "quality": "green", "quality_issues": [])") + "\n" +
                plain_row(1) + "\n");
  Ledger ledger = data.write();
  Json issue;
  issue.set("code", "frozen_camera");
  const CheckRecord red{.episode_index = 0, .quality = "red", .issues = Json(Json::Array{issue})};
  const CheckRecord green{.episode_index = 1, .quality = "green"};
  EXPECT_EQ(ledger.record_checks({red, green})->lines.size(), 2u);
  EXPECT_EQ(ledger.find(0)->quality, "red");
  EXPECT_TRUE(ledger.find(0)->checked_later);
  EXPECT_EQ(ledger.find(1)->quality, "green");
  EXPECT_TRUE(ledger.record_checks({red, green})->lines.empty());  // nothing new, no line
  EXPECT_EQ(data.read().find(0)->issues.size(), 1u);

  EpisodeInfo info{.index = 0, .row = *parse_json(plain_row(0, R"(, "quality": "green")"))};
  ledger.apply(info);
  EXPECT_EQ(info.quality, "red");
  EXPECT_EQ(info.row.get_string("quality"), "red");

  expect_ok(ledger.undo().status());
  EXPECT_EQ(ledger.find(0)->quality, "green");
  EXPECT_EQ(ledger.find(1)->quality, "");
  // A foreign tool that changes the quality of the row has the last word again.
  data.set_rows(plain_row(0, R"(, "quality": "red")") + "\n" + plain_row(1) + "\n");
  const Ledger after = data.write();
  EXPECT_EQ(after.find(0)->quality, "red");
  EXPECT_EQ(after.log()->back().kind, LedgerKind::external_edit);
}

TEST(Ledger, ProjectsTrashedEpisodesAsFailedAndRestoresThem) {
  Dataset data(2);
  Ledger ledger = data.write();
  expect_ok(ledger.mark({.episodes = {1}, .verdict = "pass"}).status());
  expect_ok(ledger.project());
  const std::string before = data.rows();
  expect_ok(ledger.trash({1}).status());
  EXPECT_FALSE(ledger.find(1)->trashed_at.empty());
  expect_ok(ledger.project());
  const Json row = *parse_json(data.rows().substr(data.rows().find('\n') + 1));
  EXPECT_EQ(row.get_string("qc_verdict"), "fail");
  EXPECT_EQ(row.get_string("trashed_at"), ledger.find(1)->trashed_at);
  EXPECT_EQ(ledger.mark({.episodes = {1}, .verdict = "fail"}).status().code(),
            StatusCode::failed_precondition);
  expect_ok(ledger.undo().status());
  expect_ok(ledger.project());
  EXPECT_EQ(data.rows(), before);
  EXPECT_EQ(ledger.log()->back().kind, LedgerKind::restored);
}

TEST(Ledger, CutsATornOrZeroFilledTail) {
  for (const std::string& tail :
       {std::string("{\"rev\":4,\"at"), std::string(100, '\0'),
        std::string(40, '\0') + "\n" + R"({"rev":5,"at":"2026-01-01T00:00:00Z","kind":"verdict"})" +
            "\n"}) {
    Dataset data(2);
    data.write();
    const std::string good = data.ledger();
    test::write_file(data.dir / "meta/ledger.jsonl", good + tail);
    EXPECT_EQ(data.read().revision(), 2);
    EXPECT_EQ(data.ledger(), good + tail);  // a reader repairs nothing
    Ledger ledger = data.write();
    EXPECT_EQ(ledger.findings().count("ledger_torn_tail"), 1);
    expect_ok(ledger.mark({.episodes = {0}, .verdict = "pass"}).status());
    EXPECT_EQ(data.ledger().substr(0, good.size()), good);
    EXPECT_EQ(data.read().revision(), 3);
    EXPECT_EQ(data.read().findings().count("ledger_torn_tail"), 0);
  }
}

TEST(Ledger, SkipsAnInvalidLineInTheMiddle) {
  Dataset data(2);
  data.write().mark({.episodes = {0}, .verdict = "pass"}).value();
  std::string text = data.ledger();
  text.insert(text.find('\n') + 1, "{\"rev\": oops}\n");
  test::write_file(data.dir / "meta/ledger.jsonl", text);
  const Ledger ledger = data.read();
  EXPECT_EQ(ledger.revision(), 3);
  EXPECT_EQ(ledger.find(0)->verdict, "pass");
  EXPECT_EQ(ledger.findings().count("ledger_line_invalid"), 1);
}

TEST(Ledger, GivesStrictlyIncreasingTimesEvenWhenTheClockStandsBehind) {
  EXPECT_EQ(next_ledger_time("2999-12-31T23:59:59.999999Z"), "3000-01-01T00:00:00.000000Z");
  EXPECT_GT(next_ledger_time("2020-01-01T00:00:00.000000Z"), "2025");
  EXPECT_EQ(ledger_time_us("1970-01-02T00:00:01.5Z"), 86'401'500'000);
  EXPECT_EQ(ledger_time_us("yesterday"), std::nullopt);
}

TEST(Ledger, ReadsAReadOnlyDatasetAndRefusesToWriteIt) {
  Dataset data(1);
  data.write().mark({.episodes = {0}, .verdict = "fail"}).value();
  std::filesystem::permissions(
      data.dir / "meta", std::filesystem::perms::owner_read | std::filesystem::perms::owner_exec);
  std::filesystem::permissions(data.dir / "meta/.ledger.lock", std::filesystem::perms::owner_read);
  if (::geteuid() != 0) {
    EXPECT_EQ(Ledger::open_for_write(data.dir.path(), {"a"}).status().code(),
              StatusCode::permission_denied);
  }
  EXPECT_EQ(data.read().find(0)->verdict, "fail");
  std::filesystem::permissions(data.dir / "meta", std::filesystem::perms::owner_all);
}

TEST(Ledger, FiltersTheLog) {
  Dataset data(3);
  Ledger anna = data.write();
  expect_ok(anna.mark({.episodes = {0, 2}, .verdict = "pass"}).status());
  Ledger ben = data.write("ben");
  expect_ok(ben.mark({.episodes = {2}, .note = "n"}).status());
  EXPECT_EQ(anna.log({.episodes = {{2}}})->size(), 3u);
  EXPECT_EQ(anna.log({.actor = "ben"})->size(), 1u);
  EXPECT_EQ(anna.log({.kind = LedgerKind::verdict})->size(), 2u);
  EXPECT_EQ(anna.log({.after_rev = 5})->front().rev, 6);
  EXPECT_EQ(anna.log({.last = 1})->front().actor, "ben");
  EXPECT_EQ(anna.revision(), 5);
  expect_ok(anna.refresh());
  EXPECT_EQ(anna.revision(), 6);
}

TEST(RawLock, NamesTheHolderToASecondRecorder) {
  const Dataset data(1);
  auto first = lock_for_recording(data.dir.path());
  ASSERT_TRUE(first.ok());
  const auto second = lock_for_recording(data.dir.path());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().reason(), "DATASET_LOCKED");
  EXPECT_NE(second.status().message().find(std::to_string(::getpid())), std::string_view::npos)
      << second.status().message();
}

TEST(SourceDigest, ChangesWithEveryValueThatTakesPart) {
  const RevisionRow row{.episode_index = 3,
                        .length = 10,
                        .quality = "green",
                        .verdict = "pass",
                        .note = "n",
                        .files = {{"b", 2, 20}, {"a", 1, 10}}};
  const std::string canonical =
      R"([{"episode_index":3,"files":[{"modified_ns":10,"path":"a","size":1},)"
      R"({"modified_ns":20,"path":"b","size":2}],"length":10,"note":"n","quality":"green",)"
      R"("verdict":"pass"}])";
  EXPECT_EQ(source_digest(std::vector{row}), sha256_hex(as_bytes(canonical)));
  std::vector<RevisionRow> changed(6, row);
  changed[0].episode_index = 4;
  changed[1].length = 11;
  changed[2].quality = "";
  changed[3].verdict = "fail";
  changed[4].note = "";
  changed[5].files[0].modified_ns = 21;
  for (const RevisionRow& other : changed) {
    EXPECT_NE(source_digest(std::vector{other}), source_digest(std::vector{row}));
  }
  EXPECT_EQ(source_digest({}), sha256_hex(as_bytes("[]")));
}

}  // namespace
}  // namespace ropewalk
