// `ropewalk simulate OUT`: a raw dataset drawn and written as a recorder would.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ropewalk/engine/simulate.h"

#include "apps/cli/commands.h"

namespace ropewalk::cli {
namespace {

// "640x480" to width and height.
Status parse_size(const std::string& text, int& width, int& height) {
  const std::size_t cross = text.find('x');
  const auto number = [](const std::string& digits) {
    return !digits.empty() && digits.size() <= 5 &&
                   digits.find_first_not_of("0123456789") == std::string::npos
               ? std::stoi(digits)
               : 0;
  };
  width = cross == std::string::npos ? 0 : number(text.substr(0, cross));
  height = cross == std::string::npos ? 0 : number(text.substr(cross + 1));
  if (width > 0 && height > 0) return ok_status();
  return invalid_argument(fmt::format("--size '{}': expected WIDTHxHEIGHT, such as 320x240", text));
}

// Names in order, each once.
template <typename Entries, typename Name>
std::string joined(const Entries& entries, Name name) {
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    std::string text(name(entry));
    if (std::ranges::find(names, text) == names.end()) names.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string render(const SimulateReport& report) {
  constexpr std::size_t kMostRows = 40;
  Table table({"episode", "frames", "injected", "quality", "issues", "findings"});
  table.align_right(0);
  table.align_right(1);
  const bool all = report.episodes.size() <= kMostRows;
  std::size_t shown = 0;
  for (const SimulatedEpisode& episode : report.episodes) {
    // Of many episodes only those with something to tell.
    if (!all && episode.faults.empty() && episode.quality.issues.empty()) continue;
    if (++shown > kMostRows) continue;
    const bool red = !episode.quality.issues.empty();
    const auto code = [](const QualityEntry& entry) { return entry.code; };
    table.add({fmt::format("{}", episode.episode_index), human_count(episode.length),
               episode.faults.empty() ? styled("–", Style::dim)
                                      : joined(episode.faults, simulated_fault_name),
               report.scanned ? styled(red ? "red" : "green", red ? Style::red : Style::green)
                              : styled("unchecked", Style::dim),
               joined(episode.quality.issues, code), joined(episode.quality.findings, code)});
  }
  std::string text = shown > 0 ? table.render() : "";
  if (shown > kMostRows) text += fmt::format("… and {} more\n", shown - kMostRows);
  text += fmt::format("{}: {} episodes, {} frames, {} pictures, {} in {}; {} red\n",
                      report.out.string(), human_count(std::ssize(report.episodes)),
                      human_count(report.frames), human_count(report.pictures),
                      human_bytes(report.bytes), human_seconds(report.seconds), report.red);
  return text;
}

}  // namespace

void add_simulate(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "simulate", "Draw a two-arm scene and write it as a raw dataset, with faults if asked");
  auto request = std::make_shared<SimulateRequest>();
  auto out = std::make_shared<std::string>();
  auto size = std::make_shared<std::string>("320x240");
  auto images = std::make_shared<std::string>("video");
  auto faults = std::make_shared<std::string>("none");
  SimulatedOptions& options = request->options;
  command->add_option("out", *out, "Root of the dataset to create")->required();
  command->add_option("--episodes", options.episodes, "How many")->capture_default_str();
  command->add_option("--seconds", options.seconds, "Length of each, give or take 5 %")
      ->capture_default_str();
  command->add_option("--fps", options.fps, "Frames per second")->capture_default_str();
  command
      ->add_option("--cameras", options.cameras,
                   "1 to 8: top, left wrist, right wrist, then views around the table")
      ->capture_default_str();
  command->add_option("--size", *size, "WIDTHxHEIGHT of the pictures")->capture_default_str();
  command->add_option("--seed", options.seed, "The same seed gives the same dataset")
      ->capture_default_str();
  command->add_option("--tasks", options.tasks, "How many prompts")->capture_default_str();
  command->add_option("--robot", options.robot, "robot_type")->capture_default_str();
  command->add_option("--images", *images, "Pictures as H.264 video, or as PNG inside the table")
      ->check(CLI::IsMember({"video", "inline"}))
      ->capture_default_str();
  command
      ->add_option("--faults", *faults,
                   "none, some (such as leave a dataset that exports), all, or a list: " +
                       joined(all_faults(), simulated_fault_name))
      ->capture_default_str();
  add_common_flags(*command, session, true);
  set_example(*command,
              "ropewalk simulate demo/raw --episodes 8 --seconds 8 --faults some\n"
              "  ropewalk simulate many/raw --episodes 1200 --seconds 0.4 --fps 10 --size 32x24");
  command->callback([=, &session] {
    session.run = [=, &session] {
      request->out = *out;
      request->options.inline_images = *images == "inline";
      if (Status parsed = parse_size(*size, request->options.width, request->options.height);
          !parsed.ok()) {
        return session.fail(parsed);
      }
      auto chosen = parse_faults(*faults);
      if (!chosen.ok()) return session.fail(chosen.status());
      request->options.faults = std::move(chosen).value();
      const auto report = simulate(*request, session.context());
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
