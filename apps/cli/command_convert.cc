// `ropewalk convert SRC OUT --to FORMAT`: any source to any sink, with a report of every repair.
#include <fmt/format.h>

#include "ropewalk/engine/convert.h"

#include "apps/cli/commands.h"
#include "apps/cli/findings_table.h"

namespace ropewalk::cli {

void add_convert(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "convert", "Write any readable dataset in another format, without a split");
  auto request = std::make_shared<ConvertRequest>();
  auto source = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  command->add_option("source", *source, "Dataset: LeRobot v2.0, v2.1, v3.0, HDF5 or MCAP export")
      ->required();
  command->add_option("out", *out, "Directory to create")->required();
  command->add_option("--to", request->format, "Format to write")
      ->required()
      ->check(CLI::IsMember(export_formats()));
  command->add_flag("--strict", request->strict, "Refuse what would otherwise be repaired");
  command->add_option("--compression", request->sink.compression,
                      "hdf5: none, gzip, gzip:1 … gzip:9; mcap: none, lz4, zstd");
  command->add_flag("--camera-quantiles", request->sink.camera_quantiles,
                    "lerobot_v3: decode sampled frames for quantiles of cameras");
  command->add_flag("--repair-video", request->sink.repair_video,
                    "Re-encode clips that cannot be copied as they are");
  add_common_flags(*command, session, true);
  set_example(*command, "ropewalk convert dataset_v3 dataset_v21 --to lerobot_v21");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->source = *source;
      request->out = *out;
      request->sink.strict = request->strict;
      const auto report = convert_dataset(*request, session.context());
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        std::string text;
        if (!report->findings.empty()) text += findings_table(report->findings, 100) + "\n";
        text += fmt::format("{} → {}: {} episodes, {} frames, {} files, {} in {}\n", report->from,
                            report->to, human_count(report->episodes), human_count(report->frames),
                            human_count(report->files), human_bytes(report->bytes),
                            human_seconds(report->seconds));
        if (report->episodes_left_out > 0) {
          text += styled(fmt::format("{} episode{} left out; the table says why\n",
                                     human_count(report->episodes_left_out),
                                     report->episodes_left_out == 1 ? "" : "s"),
                         Style::red);
        }
        session.print(text);
      }
      return report->episodes_left_out > 0 ? kExitLossReported : kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
