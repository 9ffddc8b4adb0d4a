// stuck_joint and idle_span.
#include <algorithm>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "ropewalk/stage/quality/signals_internal.h"

namespace ropewalk::quality {
namespace {

// A state follows its command so much later; the end of a standstill says nothing for that long.
constexpr double kResponseSeconds = 0.3;
// A command of absolute positions begins where the joint is; anything farther is another quantity.
constexpr double kSameQuantityRadians = 0.3;

std::int64_t frames_of(double seconds, double fps) {
  return std::max<std::int64_t>(1, std::llround(seconds * fps));
}

struct Stuck {
  Spans spans;
  double widest_command = 0;  ///< radians
};

Stuck find_stuck(const Joint& joint, double fps, const QualityOptions& options) {
  Stuck out;
  const auto count = static_cast<std::int64_t>(joint.state.size());
  const std::int64_t least = frames_of(options.stuck_min_seconds, fps);
  const std::int64_t response = frames_of(kResponseSeconds, fps);
  const auto state = [&](std::int64_t i) { return joint.state[static_cast<std::size_t>(i)]; };
  const auto command = [&](std::int64_t i) { return joint.command[static_cast<std::size_t>(i)]; };
  for (std::int64_t begin = 0; begin < count;) {
    std::int64_t end = begin + 1;
    while (end < count && state(end) == state(begin)) ++end;
    const std::int64_t judged_end = end == count ? end : end - response;
    if (judged_end - begin >= least) {
      float low = INFINITY;
      float high = -INFINITY;
      for (std::int64_t i = begin; i < judged_end; ++i) {
        low = std::min(low, command(i));
        high = std::max(high, command(i));
      }
      const double moved = static_cast<double>(high - low) / joint.unit;
      const double apart =
          std::abs(static_cast<double>(command(begin) - state(begin))) / joint.unit;
      if (moved >= options.stuck_min_command_rad && apart <= kSameQuantityRadians) {
        out.spans.add({begin, end});
        out.widest_command = std::max(out.widest_command, moved);
      }
    }
    begin = end;
  }
  return out;
}

// Keeps the smallest and largest of the values in a window that only moves forward.
class WindowRange {
 public:
  void push(std::int64_t at, float value) {
    while (!low_.empty() && low_.back().second >= value) low_.pop_back();
    low_.emplace_back(at, value);
    while (!high_.empty() && high_.back().second <= value) high_.pop_back();
    high_.emplace_back(at, value);
  }
  void drop_before(std::int64_t begin) {
    while (!low_.empty() && low_.front().first < begin) low_.pop_front();
    while (!high_.empty() && high_.front().first < begin) high_.pop_front();
  }
  double range() const {
    return low_.empty() ? 0.0 : static_cast<double>(high_.front().second - low_.front().second);
  }

 private:
  std::deque<std::pair<std::int64_t, float>> low_;
  std::deque<std::pair<std::int64_t, float>> high_;
};

Spans find_idle(const Signals& signals, const QualityOptions& options) {
  Spans spans;
  const std::int64_t least = frames_of(options.idle_min_seconds, signals.fps);
  std::vector<WindowRange> windows(signals.joints.size());
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < signals.frames; ++i) {
    for (std::size_t j = 0; j < windows.size(); ++j) {
      const Joint& joint = signals.joints[j];
      windows[j].push(i, joint.state[static_cast<std::size_t>(i)]);
      windows[j].drop_before(begin);
      while (windows[j].range() / joint.unit > options.idle_max_travel_rad) {
        windows[j].drop_before(++begin);
      }
    }
    if (i + 1 - begin >= least) spans.add({begin, i + 1});
  }
  return spans;
}

}  // namespace

void check_joints(const Signals& signals, const QualityOptions& options, QualityReport& report) {
  if (signals.joints.empty()) return;
  // One issue per column: a dead arm stops all its joints at once.
  for (std::size_t i = 0; i < signals.joints.size();) {
    const std::string& column = signals.joints[i].column;
    std::vector<std::string> names;
    std::vector<FrameRange> ranges;
    double widest = 0;
    for (; i < signals.joints.size() && signals.joints[i].column == column; ++i) {
      const Joint& joint = signals.joints[i];
      if (joint.is_gripper || joint.command.empty()) continue;
      const Stuck stuck = find_stuck(joint, signals.fps, options);
      if (stuck.spans.empty()) continue;
      names.push_back(joint.name);
      widest = std::max(widest, stuck.widest_command);
      ranges.insert(ranges.end(), stuck.spans.list().begin(), stuck.spans.list().end());
    }
    if (names.empty()) continue;
    std::ranges::sort(ranges, {}, &FrameRange::begin);
    Spans all;
    for (const FrameRange& range : ranges) all.add(range);
    QualityEntry issue{.code = "stuck_joint", .max = widest, .stream = column};
    all.put(issue);
    std::string listed = names.front();
    for (std::size_t n = 1; n < std::min<std::size_t>(names.size(), 4); ++n) {
      listed += ", " + names[n];
    }
    if (names.size() > 4) listed += fmt::format(" and {} more", names.size() - 4);
    issue.detail = fmt::format("{} did not move at all for {} while the command moved {:.3f} rad",
                               listed, describe(all, signals.fps), widest);
    report.issues.push_back(std::move(issue));
  }
  const Spans idle = find_idle(signals, options);
  if (!idle.empty()) {
    QualityEntry issue{.severity = "info", .code = "idle_span"};
    idle.put(issue);
    issue.max = static_cast<double>(idle.longest()) / signals.fps;
    issue.detail = fmt::format("no joint moves more than {} rad for {}",
                               options.idle_max_travel_rad, describe(idle, signals.fps));
    report.findings.push_back(std::move(issue));
  }
}

}  // namespace ropewalk::quality
