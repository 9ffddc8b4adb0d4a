#include "ropewalk/base/core/finding.h"

#include <fmt/format.h>

namespace ropewalk {

std::string_view severity_name(Severity severity) {
  switch (severity) {
    case Severity::info:
      return "info";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "error";
}

Json to_json(const Finding& finding) {
  Json out = Json::object();
  out.set("code", finding.code);
  out.set("severity", std::string(severity_name(finding.severity)));
  if (!finding.file.empty()) out.set("file", finding.file);
  if (finding.episode) out.set("episode", *finding.episode);
  if (!finding.feature.empty()) out.set("feature", finding.feature);
  if (finding.row) out.set("row", *finding.row);
  out.set("count", finding.count);
  if (!finding.declared.empty()) out.set("declared", finding.declared);
  if (!finding.found.empty()) out.set("found", finding.found);
  if (!finding.decision.empty()) out.set("decision", finding.decision);
  return out;
}

std::string to_line(const Finding& finding) {
  std::string line = fmt::format("{} {}", severity_name(finding.severity), finding.code);
  if (finding.episode) line += fmt::format(": episode {}", *finding.episode);
  if (!finding.file.empty()) line += ": " + finding.file;
  if (!finding.feature.empty()) line += ": " + finding.feature;
  if (finding.row) line += fmt::format(": row {}", *finding.row);
  if (!finding.declared.empty()) line += ": declared " + finding.declared;
  if (!finding.found.empty())
    line += (finding.declared.empty() ? ": found " : ", found ") + finding.found;
  if (finding.count != 1) line += fmt::format(" (x{})", finding.count);
  if (!finding.decision.empty()) line += "; " + finding.decision;
  return line;
}

namespace {
/// Entries at either end that a new one is compared with: equal entries come close together, and a
/// dataset with a fault in each of 50,000 episodes shall not take minutes to say so.
constexpr std::size_t kNeighbours = 512;
}  // namespace

void Findings::add(Finding finding) {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i == kNeighbours && entries_.size() > 2 * kNeighbours) i = entries_.size() - kNeighbours;
    Finding& entry = entries_[i];
    if (entry.code == finding.code && entry.file == finding.file &&
        entry.episode == finding.episode && entry.feature == finding.feature &&
        entry.severity == finding.severity && entry.decision == finding.decision &&
        entry.declared == finding.declared && entry.found == finding.found) {
      entry.count += finding.count;
      return;
    }
  }
  entries_.push_back(std::move(finding));
}

void Findings::append(const Findings& other) {
  for (const Finding& entry : other.entries_) add(entry);
}

bool Findings::has_errors() const {
  for (const Finding& entry : entries_) {
    if (entry.severity == Severity::error) return true;
  }
  return false;
}

std::int64_t Findings::count(std::string_view code) const {
  std::int64_t total = 0;
  for (const Finding& entry : entries_) {
    if (entry.code == code) total += entry.count;
  }
  return total;
}

Json Findings::to_json() const {
  Json out = Json::array();
  for (const Finding& entry : entries_) out.push_back(ropewalk::to_json(entry));
  return out;
}

}  // namespace ropewalk
