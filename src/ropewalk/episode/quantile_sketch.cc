#include "ropewalk/episode/quantile_sketch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ropewalk {
namespace {

constexpr double kShrinkPerLevel = 2.0 / 3.0;
constexpr std::size_t kSmallestLevel = 8;

}  // namespace

QuantileSketch::QuantileSketch(std::size_t exact_values)
    : exact_values_(std::max(exact_values, kSketchWidth)), levels_(1), odd_(1, false) {}

std::size_t QuantileSketch::capacity(std::size_t level) const {
  if (levels_.size() == 1) return exact_values_;
  // The highest level is the widest; those below shrink geometrically.
  const auto depth = static_cast<double>(levels_.size() - 1 - level);
  const double width = static_cast<double>(kSketchWidth) * std::pow(kShrinkPerLevel, depth);
  return std::max(kSmallestLevel, static_cast<std::size_t>(width));
}

void QuantileSketch::add(std::span<const double> values) {
  // In steps, so that a long span does not outgrow the memory promised.
  while (!values.empty()) {
    const auto step = values.first(std::min(values.size(), exact_values_));
    values = values.subspan(step.size());
    for (const double value : step) {
      if (!std::isfinite(value)) continue;
      levels_[0].push_back(value);
      ++count_;
    }
    if (levels_[0].size() > capacity(0)) shrink();
  }
}

void QuantileSketch::merge(const QuantileSketch& other) {
  if (levels_.size() < other.levels_.size()) {
    levels_.resize(other.levels_.size());
    odd_.resize(other.levels_.size(), false);
  }
  for (std::size_t level = 0; level < other.levels_.size(); ++level) {
    levels_[level].insert(levels_[level].end(), other.levels_[level].begin(),
                          other.levels_[level].end());
  }
  count_ += other.count_;
  shrink();
}

void QuantileSketch::shrink() {
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    if (levels_[level].size() <= capacity(level)) continue;
    if (level + 1 == levels_.size()) {
      levels_.emplace_back();
      odd_.push_back(false);
    }
    std::vector<double>& from = levels_[level];
    std::vector<double>& to = levels_[level + 1];
    std::ranges::sort(from);
    // With an odd number of values the smallest stays behind.
    const std::size_t left = from.size() % 2;
    for (std::size_t i = left + (odd_[level] ? 1 : 0); i < from.size(); i += 2) {
      to.push_back(from[i]);
    }
    odd_[level] = !odd_[level];
    from.resize(left);
  }
}

std::vector<double> QuantileSketch::quantiles(std::span<const double> levels) const {
  std::vector<double> out(levels.size(), 0.0);
  if (count_ == 0) return out;
  std::vector<std::pair<double, std::uint64_t>> weighted;
  for (std::size_t level = 0; level < levels_.size(); ++level) {
    for (const double value : levels_[level]) {
      weighted.emplace_back(value, std::uint64_t{1} << level);
    }
  }
  std::ranges::sort(weighted);
  std::size_t at = 0;
  std::uint64_t below = 0;  // total weight before weighted[at]
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const double rank = levels[i] * static_cast<double>(count_ - 1);
    const auto lower = static_cast<std::uint64_t>(rank);
    while (at + 1 < weighted.size() && below + weighted[at].second <= lower) {
      below += weighted[at].second;
      ++at;
    }
    const double low = weighted[at].first;
    const bool next_is_same = below + weighted[at].second > lower + 1 || at + 1 == weighted.size();
    const double high = next_is_same ? low : weighted[at + 1].first;
    out[i] = low + (high - low) * (rank - static_cast<double>(lower));
  }
  return out;
}

}  // namespace ropewalk
