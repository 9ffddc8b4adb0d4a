#pragma once
// QuantileSketch: quantiles of a stream of values in bounded memory, mergeable and deterministic.
// Exact while no more than `exact_values` came; beyond that a KLL sketch (Karnin, Lang, Liberty
// 2016) whose compactions alternate between odd and even positions instead of tossing a coin, so
// that the same values in the same order give the same file.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ropewalk {

/// Memory: 8 bytes for each value kept: at most `exact_values`, then about 3 · kSketchWidth.
class QuantileSketch {
 public:
  /// Values per full level once the sketch is inexact; a rank is then off by about 1 / 2,000 of n.
  static constexpr std::size_t kSketchWidth = 4096;

  explicit QuantileSketch(std::size_t exact_values = 65536);

  /// Adds finite values; others are left out.
  void add(std::span<const double> values);
  void add(double value) { add(std::span(&value, 1)); }
  /// Adds everything `other` has seen.
  void merge(const QuantileSketch& other);

  std::uint64_t count() const { return count_; }
  bool is_exact() const { return levels_.size() == 1; }
  /// Returns the value at each level of [0, 1], by linear interpolation between order statistics;
  /// all zero when nothing was added. `levels` must be ascending.
  std::vector<double> quantiles(std::span<const double> levels) const;

 private:
  std::size_t capacity(std::size_t level) const;
  void shrink();

  std::size_t exact_values_;
  std::uint64_t count_ = 0;
  std::vector<std::vector<double>> levels_;  ///< a value at level l stands for 2^l values
  std::vector<bool> odd_;                    ///< which half the next compaction of a level keeps
};

}  // namespace ropewalk
