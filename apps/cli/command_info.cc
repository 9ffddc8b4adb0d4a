// `ropewalk info PATH`: what a path is and what it holds.
#include <fmt/format.h>

#include "ropewalk/engine/info.h"

#include "apps/cli/commands.h"

namespace ropewalk::cli {
namespace {

std::string counts(const std::map<std::string, std::int64_t>& values) {
  std::string out;
  for (const auto& [key, count] : values) {
    if (!out.empty()) out += ", ";
    out += fmt::format("{} {}", human_count(count), key);
  }
  return out.empty() ? "none" : out;
}

std::string shape_text(const Feature& feature) {
  std::string out = "[";
  for (std::size_t i = 0; i < feature.shape.size(); ++i) {
    if (i > 0) out += ", ";
    out += feature.shape[i] < 0 ? "*" : fmt::format("{}", feature.shape[i]);
  }
  return out + "]";
}

std::string render(const InfoReport& report) {
  std::string out = styled(
      fmt::format("{}  {}\n", path_kind_title(report.kind), report.path.string()), Style::bold);
  if (!report.halves.empty()) {
    for (const InfoReport& half : report.halves) out += "\n" + render(half);
    return out;
  }
  const double seconds = static_cast<double>(report.summary.frames) / report.schema.fps.to_double();
  const auto line = [&](const char* name, const std::string& value) {
    out += fmt::format("  {} {}\n", styled(fmt::format("{:<10}", name), Style::dim), value);
  };
  line("robot", report.schema.robot_type.empty() ? "unknown" : report.schema.robot_type);
  line("episodes", fmt::format("{} ({} frames, {} at {} Hz)", human_count(report.summary.episodes),
                               human_count(report.summary.frames), human_seconds(seconds),
                               to_string(report.schema.fps)));
  line("quality", counts(report.summary.qualities));
  line("verdicts", counts(report.summary.verdicts));
  line("outcome", fmt::format("{} accepted, {} rejected", human_count(report.summary.accepted),
                              human_count(report.summary.rejected)));
  if (report.summary.revision > 0) line("revision", fmt::format("{}", report.summary.revision));
  out += "\n";
  Table features({"feature", "kind", "type", "shape"});
  for (const Feature& feature : report.schema.features) {
    features.add({feature.name, std::string(feature_kind_name(feature.kind)),
                  std::string(dtype_name(feature.dtype)), shape_text(feature)});
  }
  out += features.render() + "\n";
  Table tasks({"episodes", "task"});
  tasks.align_right(0);
  std::size_t shown = 0;
  for (const auto& [task, count] : report.summary.tasks) {
    if (++shown > 20) break;
    tasks.add({human_count(count), task});
  }
  out += tasks.render();
  if (shown > 20) out += fmt::format("… {} tasks in all\n", report.summary.tasks.size());
  for (const Finding& finding : report.findings.entries()) out += "  " + to_line(finding) + "\n";
  return out;
}

}  // namespace

void add_info(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "info", "Say what a path is: format, totals, features, tasks, quality and verdicts");
  auto path = std::make_shared<std::string>();
  command->add_option("path", *path, "Dataset, export pair, or episode file")->required();
  add_common_flags(*command, session, false);
  set_example(*command, "ropewalk info demo/raw");
  command->callback([&session, path] {
    session.run = [&session, path] {
      const auto report = dataset_info(*path);
      if (!report.ok()) return session.fail(report.status());
      if (session.json) {
        session.print_json(report->to_json());
      } else {
        session.print(render(*report));
      }
      return kExitDone;
    };
  });
}

}  // namespace ropewalk::cli
