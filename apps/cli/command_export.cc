// `ropewalk export RAW --format F`: split, convert, prove, publish as a pair.
#include <fmt/format.h>

#include "ropewalk/engine/export.h"

#include "apps/cli/commands.h"

namespace ropewalk::cli {
namespace {

std::string episode_list(const std::vector<std::int64_t>& episodes) {
  std::string out;
  for (std::size_t i = 0; i < episodes.size();) {
    std::size_t last = i;
    while (last + 1 < episodes.size() && episodes[last + 1] == episodes[last] + 1) ++last;
    if (!out.empty()) out += ",";
    out += last == i ? fmt::format("{}", episodes[i])
                     : fmt::format("{}-{}", episodes[i], episodes[last]);
    i = last + 1;
    if (out.size() > 60 && i < episodes.size()) return out + ",…";
  }
  return out.empty() ? "none" : out;
}

std::string render(const ExportReport& report, bool dry_run) {
  std::string out;
  Table table({"half", "episodes", "frames", "source episodes", "path"});
  table.align_right(1);
  table.align_right(2);
  table.add({styled("accepted", Style::green), human_count(report.counts.accepted_episodes),
             human_count(report.counts.accepted_frames), episode_list(report.accepted_episodes),
             report.accepted.string()});
  table.add({styled("rejected", Style::red), human_count(report.counts.rejected_episodes),
             human_count(report.counts.rejected_frames), episode_list(report.rejected_episodes),
             report.rejected.string()});
  out += table.render();
  for (const Finding& finding : report.findings.entries()) out += "  " + to_line(finding) + "\n";
  for (const std::string& warning : report.warnings) {
    out += styled("warning: " + warning, Style::yellow) + "\n";
  }
  if (dry_run) {
    out += fmt::format("dry run: about {} would be written; nothing was\n",
                       human_bytes(report.estimated_bytes));
  } else {
    out += fmt::format("published {} ({} files, {}) in {}, switched in {:.1f} ms by {}\n",
                       report.format, human_count(report.files), human_bytes(report.bytes),
                       human_seconds(report.seconds), report.switch_seconds * 1e3,
                       report.publish_mode);
  }
  return out;
}

}  // namespace

void add_export(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "export", "Split by verdict and quality, convert both halves, prove and publish them");
  auto request = std::make_shared<ExportRequest>();
  auto source = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  auto episodes = std::make_shared<std::string>();
  auto proof = std::make_shared<std::string>("structure");
  auto selection = std::make_shared<std::string>("all");
  auto mode = std::make_shared<std::string>();
  auto no_replace = std::make_shared<bool>(false);
  command->add_option("raw", *source, "Raw LeRobot v2.1 dataset")->required();
  command->add_option("--format", request->format, "Format of both halves")
      ->required()
      ->check(CLI::IsMember(export_formats()));
  command->add_option("--out", *out, "Directory that gets accepted/ and rejected/");
  command->add_option("--episodes", *episodes, "Exactly these, for example 0-9,14");
  command->add_option("--selection", *selection, "Which episodes take part")
      ->check(CLI::IsMember({"all", "latest_per_slot"}))
      ->capture_default_str();
  command->add_flag("--dry-run", request->dry_run, "Validate and split, write nothing");
  command->add_flag("--no-replace", *no_replace, "Refuse when a pair is there already");
  command->add_option("--prove", *proof, "Proof before the switch; full decodes every frame")
      ->check(CLI::IsMember({"structure", "full"}))
      ->capture_default_str();
  command->add_option("--compression", request->sink.compression,
                      "hdf5: none, gzip, gzip:1 … gzip:9; mcap: none, lz4, zstd");
  command->add_flag("--camera-quantiles", request->sink.camera_quantiles,
                    "lerobot_v3: decode sampled frames for quantiles of cameras");
  command->add_flag("--repair-video", request->sink.repair_video,
                    "Re-encode clips that cannot be copied as they are");
  command->add_option("--publish-mode", *mode, "Force how the pair is switched")
      ->check(CLI::IsMember({"exchange", "noreplace", "renames"}))
      ->group("");
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk export demo/raw --format lerobot_v3 --prove full");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->source = *source;
      if (!out->empty()) request->out = *out;
      if (!episodes->empty()) {
        auto list = parse_episode_list(*episodes);
        if (!list.ok()) return session.fail(list.status());
        request->episodes = std::move(list).value();
      }
      request->replace_existing = !*no_replace;
      request->prove_full = *proof == "full";
      request->selection = *episode_selection_from_name(*selection);
      if (!mode->empty()) request->mode = publish_mode_from_name(*mode);
      const auto report = export_dataset(*request, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        session.print(render(*report, request->dry_run));
      }
      return kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
