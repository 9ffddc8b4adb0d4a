#include "ropewalk/stage/publish/publish.h"

#include <sys/stat.h>

#include <set>

#include <gtest/gtest.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/io/fault.h"
#include "ropewalk/base/io/file.h"

#include "tests/support/pair_fixture.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::codes;
using test::fill;
using test::generation_at;
using test::hidden_names;
using test::publish_generation;
using test::TempDir;

#define ASSERT_OK(expr)                             \
  do {                                              \
    const ::ropewalk::Status is_ok_ = (expr);       \
    ASSERT_TRUE(is_ok_.ok()) << is_ok_.to_string(); \
  } while (false)

PairTarget target_in(const TempDir& dir) {
  return derive_target(dir / "raw", "lerobot_v21").value();
}

TEST(DeriveTarget, FollowsTheNameOfTheSource) {
  const TempDir dir("target");
  EXPECT_EQ(derive_target(dir / "demo/raw", "hdf5")->directory(), dir / "demo/export/hdf5");
  EXPECT_EQ(derive_target(dir / "demo/raw/", "hdf5")->directory(), dir / "demo/export/hdf5");
  EXPECT_EQ(derive_target(dir / "demo", "mcap")->directory(), dir / "demo_export/mcap");
  const PairTarget explicit_dir = derive_target(dir / "demo", "mcap", dir / "out/pair/").value();
  EXPECT_EQ(explicit_dir.directory(), dir / "out/pair");
  EXPECT_EQ(explicit_dir.lock_file(), dir / "out/.pair.lock");
  EXPECT_EQ(explicit_dir.journal(), dir / "out/.publish.pair.json");
}

TEST(DeriveTarget, RefusesATargetThatIsNotApartFromTheSource) {
  const TempDir dir("target");
  for (const auto& out : {dir / "demo", dir / "demo/raw", dir / "demo/raw/below", dir.path()}) {
    const auto target = derive_target(dir / "demo/raw", "mcap", out);
    EXPECT_EQ(target.status().code(), StatusCode::invalid_argument) << out;
  }
  EXPECT_TRUE(derive_target(dir / "demo/raw", "mcap", dir / "demo/raw2").ok());
  for (const char* format : {"", ".", "..", "a/b", ".hidden"}) {
    EXPECT_EQ(derive_target(dir / "d", format).status().code(), StatusCode::invalid_argument);
  }
  EXPECT_EQ(derive_target(dir / "d", "mcap", "/").status().code(), StatusCode::invalid_argument);
}

TEST(CheckFreeSpace, NamesBothNumbers) {
  const TempDir dir("space");
  EXPECT_TRUE(check_free_space(dir / "not/yet/there", 1000, 1000).ok());
  const Status full = check_free_space(dir.path(), 1ULL << 60, 1ULL << 20);
  EXPECT_EQ(full.code(), StatusCode::resource_exhausted);
  const std::uint64_t needed = (1ULL << 60) + (1ULL << 60) / 20 + (1ULL << 20);
  EXPECT_NE(full.message().find(std::to_string(needed)), std::string::npos) << full.to_string();
  EXPECT_EQ(check_free_space(dir.path(), ~0ULL, ~0ULL).code(), StatusCode::resource_exhausted)
      << "sums that overflow are still too much";
}

TEST(Publish, WritesAFirstPairWithoutReplacing) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  const auto report = publish_generation(target, "g1");
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->mode, PublishMode::noreplace);
  EXPECT_FALSE(report->replaced);
  EXPECT_EQ(report->total_files, 6);
  EXPECT_GT(report->switch_ns, 0);
  EXPECT_EQ(generation_at(target.directory()), "g1");
  EXPECT_EQ(hidden_names(target), "");
  const Pair pair = read_pair(target.directory()).value();
  EXPECT_EQ(pair.accepted.export_id, report->export_id);
  EXPECT_EQ(pair.rejected.source_episode_indices, std::vector<std::int64_t>{1});
  EXPECT_EQ(list_directory(target.directory()).value(),
            (std::vector<std::string>{"accepted", "rejected"}));
}

TEST(Publish, ReplacesAPairInEveryMode) {
  for (const auto mode : {PublishMode::exchange, PublishMode::renames}) {
    const TempDir dir("publish");
    const PairTarget target = target_in(dir);
    ASSERT_TRUE(publish_generation(target, "g1").ok());
    const auto report = publish_generation(target, "g2", {.mode = mode});
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_EQ(report->mode, mode);
    EXPECT_TRUE(report->replaced);
    EXPECT_EQ(generation_at(target.directory()), "g2");
    EXPECT_EQ(hidden_names(target), "");
  }
}

TEST(Publish, ExchangesByDefault) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  EXPECT_EQ(publish_generation(target, "g2")->mode, PublishMode::exchange);
}

TEST(Publish, FallsBackToRenamesWhereExchangeIsUnknown) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  set_fault_hook([](std::string_view point) {
    return point == "io.exchange" ? unimplemented("no such flag") : ok_status();
  });
  const auto report = publish_generation(target, "g2");
  const auto forced = publish_generation(target, "g3", {.mode = PublishMode::exchange});
  set_fault_hook(nullptr);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->mode, PublishMode::renames);
  EXPECT_EQ(forced.status().code(), StatusCode::unimplemented);
  EXPECT_EQ(generation_at(target.directory()), "g2");
  EXPECT_EQ(hidden_names(target), "");
}

TEST(Publish, FillsAnEmptyDirectory) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  std::filesystem::create_directories(target.directory());
  ASSERT_TRUE(publish_generation(target, "g1", {.replace_existing = false}).ok());
  EXPECT_EQ(generation_at(target.directory()), "g1");
}

TEST(Publish, RefusesATargetThatIsNoPair) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  test::write_file(target.directory() / "thesis.txt", "years of work");
  auto report = publish_generation(target, "g1");
  EXPECT_EQ(report.status().code(), StatusCode::failed_precondition);
  EXPECT_NE(report.status().message().find("holds no pair"), std::string::npos);
  std::filesystem::create_directories(target.directory() / "accepted");
  report = publish_generation(target, "g1");
  EXPECT_EQ(report.status().code(), StatusCode::failed_precondition);
  EXPECT_NE(report.status().message().find("part of a pair"), std::string::npos);
  EXPECT_EQ(test::read_file(target.directory() / "thesis.txt"), "years of work");
  EXPECT_EQ(hidden_names(target), "");
}

TEST(Publish, KeepsAnExistingPairWhenAsked) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  const auto report = publish_generation(target, "g2", {.replace_existing = false});
  EXPECT_EQ(report.status().code(), StatusCode::already_exists);
  EXPECT_EQ(generation_at(target.directory()), "g1");
}

TEST(Publish, LetsOnePublicationRunAtATime) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  auto first = PairPublisher::begin(target);
  ASSERT_TRUE(first.ok());
  const auto second = PairPublisher::begin(target);
  EXPECT_EQ(second.status().code(), StatusCode::unavailable);
  EXPECT_EQ(second.status().reason(), "PAIR_LOCKED");
  PairTarget other = target;
  other.name = "hdf5";
  EXPECT_TRUE(PairPublisher::begin(other).ok()) << "another format has its own lock";
}

TEST(Publish, DeletesTheStageOfAnAbandonedPublication) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  {
    auto publisher = PairPublisher::begin(target);
    ASSERT_TRUE(publisher.ok());
    ASSERT_OK(fill(*publisher, "g1"));
    EXPECT_NE(hidden_names(target), "");
  }
  EXPECT_EQ(hidden_names(target), "");
  EXPECT_FALSE(std::filesystem::exists(target.directory()));
}

TEST(Publish, ChangesNothingWhenProofRecheckOrStopSayNo) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  ASSERT_TRUE(publish_generation(target, "g1").ok());
  const FileId before = file_info(target.directory())->value().id;
  std::stop_source stopped;
  stopped.request_stop();
  RunContext stop_context;
  stop_context.stop = stopped.get_token();
  const PairProof bad_proof = [](const auto&, const auto&) { return data_loss("packets differ"); };
  const SourceRecheck changed = [] {
    return failed_precondition("episode 3 was realigned").with_reason("SOURCE_CHANGED");
  };
  for (int round = 0; round < 3; ++round) {
    auto publisher = PairPublisher::begin(target);
    ASSERT_TRUE(publisher.ok()) << publisher.status().to_string();
    ASSERT_OK(fill(*publisher, "g2"));
    const auto report = publisher->publish(round == 0 ? bad_proof : PairProof(),
                                           round == 1 ? changed : SourceRecheck(),
                                           round == 2 ? stop_context : RunContext());
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.status().reason(), round == 1 ? "SOURCE_CHANGED" : "");
    EXPECT_EQ(report.status().code(), round == 0   ? StatusCode::data_loss
                                      : round == 1 ? StatusCode::failed_precondition
                                                   : StatusCode::cancelled);
    EXPECT_EQ(generation_at(target.directory()), "g1");
    EXPECT_EQ(file_info(target.directory())->value().id, before);
    EXPECT_EQ(hidden_names(target), "");
    EXPECT_EQ(publisher->publish({}, {}, {}).status().code(), StatusCode::failed_precondition);
  }
}

TEST(Publish, GivesTheProofBothHalvesWithTheirManifests) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  auto publisher = PairPublisher::begin(target);
  ASSERT_TRUE(publisher.ok());
  ASSERT_OK(fill(*publisher, "g1"));
  std::string seen;
  const auto report = publisher->publish(
      [&](const auto& accepted, const auto& rejected) {
        seen = test::read_file(accepted / "data/chunk-000/part") + ", " +
               test::read_file(rejected / "data/chunk-000/part");
        return read_manifest(accepted).status();
      },
      {}, {});
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(seen, "g1 accepted, g1 rejected");
}

TEST(Publish, RefusesAFileThatNobodyRecorded) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  auto publisher = PairPublisher::begin(target);
  ASSERT_TRUE(publisher.ok());
  ASSERT_OK(fill(*publisher, "g1"));
  test::write_file(publisher->rejected() / "data/stray", "x");
  const auto report = publisher->publish({}, {}, {});
  EXPECT_EQ(report.status().code(), StatusCode::internal);
  EXPECT_NE(report.status().message().find("data/stray"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(target.directory()));
}

TEST(Publish, RefusesMarkersOfAnotherExport) {
  const TempDir dir("publish");
  const PairTarget target = target_in(dir);
  auto publisher = PairPublisher::begin(target);
  ASSERT_TRUE(publisher.ok());
  ASSERT_OK(publisher->accepted_manifest().write_file(
      kMarkerPath, as_bytes(test::marker_text(publisher->export_id(), "accepted", 0))));
  ASSERT_OK(publisher->rejected_manifest().write_file(
      kMarkerPath, as_bytes(test::marker_text("another", "rejected", 1))));
  const auto report = publisher->publish({}, {}, {});
  EXPECT_EQ(report.status().reason(), "PAIR_MIXED") << report.status().to_string();
}

TEST(Publish, CarriesForeignEntriesOverAndReturnsOldRecords) {
  for (const auto mode : {PublishMode::exchange, PublishMode::renames}) {
    const TempDir dir("publish");
    const PairTarget target = target_in(dir);
    ASSERT_TRUE(publish_generation(target, "g1").ok());
    test::write_file(target.directory() / "NOTES.md", "by hand");
    test::write_file(target.directory() / ".accepted.previous.x/accepted/meta/info.json", "{}");
    test::write_file(target.directory() / "verify.json", "old verify");
    test::write_file(target.directory() / "upload_receipt.json", "old receipt");
    const auto report = publish_generation(target, "g2", {.mode = mode});
    ASSERT_TRUE(report.ok()) << report.status().to_string();
    EXPECT_EQ(report->old_verification, "old verify");
    EXPECT_EQ(report->old_receipt, "old receipt");
    EXPECT_EQ(report->findings.count("foreign_carried_over"), 2);
    EXPECT_EQ(test::read_file(target.directory() / "NOTES.md"), "by hand");
    EXPECT_EQ(
        list_directory(target.directory()).value(),
        (std::vector<std::string>{".accepted.previous.x", "NOTES.md", "accepted", "rejected"}));
    EXPECT_EQ(generation_at(target.directory()), "g2");
  }
}

TEST(ManifestBuilder, HashesWhatItWritesAndCopies) {
  const TempDir dir("manifest");
  test::write_file(dir / "video", "packets");
  ManifestBuilder builder(dir / "half", "id-1");
  ASSERT_OK(builder.write_file("meta/info.json", as_bytes("{}")));
  ASSERT_OK(builder.copy(dir / "video", "videos/a/v.mp4"));
  ASSERT_OK(builder.finish());
  const Manifest manifest = read_manifest(dir / "half").value();
  EXPECT_EQ(manifest.export_id, "id-1");
  ASSERT_EQ(manifest.files.size(), 2U);
  EXPECT_EQ(manifest.files[0].path, "meta/info.json");
  EXPECT_EQ(manifest.files[1].path, "videos/a/v.mp4");
  EXPECT_EQ(manifest.files[1].size_bytes, 7U);
  EXPECT_EQ(manifest.files[1].sha256, sha256_hex(as_bytes("packets")));
  EXPECT_EQ(manifest.total_bytes(), 9U);
  EXPECT_NE(file_info(dir / "video")->value().id,
            file_info(dir / "half/videos/a/v.mp4")->value().id)
      << "no published file shares an inode with its source";
  EXPECT_EQ(manifest_sha256(dir / "half").value(),
            sha256_hex(as_bytes(test::read_file(dir / "half" / kManifestPath))));

  ASSERT_OK(check_sizes(manifest, dir / "half"));
  test::write_file(dir / "half/videos/a/v.mp4", "packets!");
  const Status differs = check_sizes(manifest, dir / "half");
  EXPECT_EQ(differs.code(), StatusCode::data_loss);
  EXPECT_NE(differs.message().find("videos/a/v.mp4: expected 7 bytes, found 8"), std::string::npos)
      << differs.to_string();
}

TEST(ReadManifest, RefusesPathsThatLeaveTheRootAndBadEntries) {
  const TempDir dir("manifest");
  const std::string hash(64, 'a');
  const auto refused = [&](const std::string& text) {
    test::write_file(dir / kManifestPath, text);
    return read_manifest(dir.path()).status().code();
  };
  EXPECT_EQ(
      refused(R"({"export_id":"x","files":[{"path":"../up","size":1,"sha256":")" + hash + "\"}]}"),
      StatusCode::data_loss);
  EXPECT_EQ(
      refused(R"({"export_id":"x","files":[{"path":"a","size":-1,"sha256":")" + hash + "\"}]}"),
      StatusCode::data_loss);
  EXPECT_EQ(refused(R"({"export_id":"x","files":[{"path":"a","size":1,"sha256":"short"}]})"),
            StatusCode::data_loss);
  EXPECT_EQ(refused(R"({"files":[]})"), StatusCode::data_loss);
  EXPECT_EQ(refused("not json"), StatusCode::data_loss);
  EXPECT_EQ(read_manifest(dir / "absent").status().code(), StatusCode::not_found);
}

TEST(ReadPair, TellsHalvesThatDoNotBelongTogether) {
  const TempDir dir("pair");
  const auto mixed = [&](const std::string& accepted, const std::string& rejected) {
    test::write_file(dir / "accepted" / kMarkerPath, accepted);
    test::write_file(dir / "rejected" / kMarkerPath, rejected);
    return read_pair(dir.path())->mixed;
  };
  using test::marker_text;
  EXPECT_EQ(mixed(marker_text("", "accepted", 1), marker_text("", "rejected", 2)), "");
  EXPECT_EQ(mixed(marker_text("", "accepted", 1), marker_text("", "rejected", 1)),
            "source episode 1 is in both halves");
  EXPECT_EQ(mixed(marker_text("a", "accepted", 1), marker_text("b", "rejected", 2)),
            "accepted is of export \"a\", rejected of export \"b\"");
  EXPECT_NE(mixed(marker_text("a", "accepted", 1), marker_text("a", "accepted", 2)), "");
  EXPECT_EQ(verify_pair(dir.path()).reason(), "PAIR_MIXED");
}

TEST(Verification, RoundTrips) {
  const TempDir dir("verify");
  EXPECT_FALSE(read_verification(dir.path())->has_value());
  Verification written;
  written.export_id = "id";
  written.verified_at = "2026-01-02T03:04:05.000006Z";
  written.accepted_manifest_sha256 = "a";
  written.rejected_manifest_sha256 = "r";
  written.result = "failed";
  written.findings.push_back("one");
  ASSERT_OK(write_verification(dir.path(), written));
  const Verification read = read_verification(dir.path())->value();
  EXPECT_EQ(read.export_id, written.export_id);
  EXPECT_EQ(read.verified_at, written.verified_at);
  EXPECT_EQ(read.accepted_manifest_sha256, "a");
  EXPECT_EQ(read.rejected_manifest_sha256, "r");
  EXPECT_EQ(read.result, "failed");
  EXPECT_EQ(read.findings, written.findings);
  EXPECT_EQ(list_directory(dir.path()).value(), std::vector<std::string>{"verify.json"});
  test::write_file(dir / "verify.json", "[]");
  EXPECT_EQ(read_verification(dir.path()).status().code(), StatusCode::data_loss);
}

TEST(Journal, RoundTripsInodesOfAllSizes) {
  const TempDir dir("journal");
  const PairTarget target{dir.path(), "mcap"};
  EXPECT_FALSE(read_journal(target)->has_value());
  Journal journal;
  journal.export_id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
  journal.state = PublishState::switching;
  journal.mode = PublishMode::renames;
  journal.before = PairIds{{1, 0xFFFFFFFFFFFFFFFFULL}, {2, 3}, {0, 0}};
  journal.after = PairIds{{1, 0x8000000000000000ULL}, {2, 4}, {2, 5}};
  journal.source_revision = 42;
  journal.owner = this_process();
  ASSERT_OK(write_journal(target, journal));
  const Journal read = read_journal(target)->value();
  EXPECT_EQ(read.export_id, journal.export_id);
  EXPECT_EQ(read.state, journal.state);
  EXPECT_EQ(read.mode, journal.mode);
  EXPECT_EQ(read.before, journal.before);
  EXPECT_EQ(read.after, journal.after);
  EXPECT_EQ(read.source_revision, 42);
  EXPECT_EQ(read.owner, journal.owner);
  journal.before.reset();
  ASSERT_OK(write_journal(target, journal));
  EXPECT_FALSE(read_journal(target)->value().before.has_value());
  ASSERT_OK(remove_journal(target));
  EXPECT_TRUE(list_directory(dir.path())->empty());
}

}  // namespace
}  // namespace ropewalk
