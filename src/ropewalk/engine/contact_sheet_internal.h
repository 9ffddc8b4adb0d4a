#pragma once
// What a contact sheet shows, gathered, and the two ways to draw it.
#include <array>
#include <string>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/media.h"
#include "ropewalk/engine/contact_sheet.h"
#include "ropewalk/stage/quality/report.h"
#include "ropewalk/stage/quality/verdict.h"

namespace ropewalk::sheet {

/// Pictures of one camera side by side, evenly over the episode: RGB, uint8.
struct Strip {
  std::string camera;
  FrameShape shape;  ///< of the whole strip; empty when it could not be read
  Bytes pixels;      ///< kept for PNG
  Bytes jpeg;        ///< kept for HTML
  int pictures = 0;
  std::string fault;
};

/// One column as lines over time. Shape: lines[element][point]; NaN is a gap.
struct Plot {
  std::string column;
  std::vector<std::vector<float>> lines;
  float low = 0;
  float high = 0;
};

struct Entry {
  std::int64_t index = 0;
  std::int64_t length = 0;
  double seconds = 0;
  std::string task;
  std::string verdict;
  std::string quality;
  std::string note;
  bool is_trashed = false;
  Decision decision;
  std::vector<QualityEntry> issues;
  std::vector<QualityEntry> findings;
  std::vector<Strip> strips;
  std::vector<Plot> plots;
  std::string fault;
};

struct Sheet {
  std::string title;
  std::string format;
  std::string robot;
  std::int64_t revision = 0;
  bool has_ledger = false;
  double fps = 0;
  std::int64_t episodes_in_dataset = 0;
  std::vector<Entry> entries;

  struct Totals {
    std::int64_t episodes = 0, frames = 0, accepted = 0, rejected = 0, accepted_frames = 0,
                 overrides = 0, undecided = 0, unchecked = 0, trashed = 0, red = 0;
    double seconds = 0;
    /// Code and number of episodes, most first; issues before findings.
    std::vector<std::pair<std::string, std::int64_t>> codes;
  };
  Totals totals() const;
};

/// "accepted: pass over red", "rejected: red", …: the outcome and the rule that decided.
std::string outcome_text(const Entry& entry);
/// "1:04.2" or "6.3 s".
std::string duration_text(double seconds);
/// The stretches of an entry, or the whole episode when no frame is known. Fractions of the length.
std::vector<std::array<double, 2>> marks_of(const QualityEntry& issue, std::int64_t length);
/// The last part of a camera's name.
std::string short_name(std::string_view name);

std::string render_html(const Sheet& sheet);
/// The most episodes that a PNG holds.
inline constexpr std::size_t kMostPngEpisodes = 200;
Result<Bytes> render_png(const Sheet& sheet);

}  // namespace ropewalk::sheet
