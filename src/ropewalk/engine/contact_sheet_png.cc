// The PNG form of a contact sheet, drawn by hand: text, bars, strips, lines.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/engine/contact_sheet_font_internal.h"
#include "ropewalk/engine/contact_sheet_internal.h"
#include "ropewalk/format/image/image.h"

namespace ropewalk::sheet {
namespace {

struct Colour {
  std::uint8_t r, g, b;
};
constexpr Colour kBackground{244, 244, 240};
constexpr Colour kCard{255, 255, 255};
constexpr Colour kInk{29, 33, 37};
constexpr Colour kDim{106, 113, 120};
constexpr Colour kLine{222, 222, 214};
constexpr Colour kAccepted{11, 122, 99};
constexpr Colour kRejected{184, 64, 14};
constexpr Colour kWarning{190, 130, 20};
constexpr Colour kTrashed{150, 155, 160};

constexpr int kWidth = 1440;
constexpr int kMargin = 24;
constexpr int kLabel = 266;  // of the column with names
constexpr int kRightLabel = 12;
constexpr int kLaneHeight = 20;
constexpr int kPlotHeight = 64;
constexpr int kGap = 8;

Colour outcome_colour(const Entry& entry) {
  if (entry.is_trashed) return kTrashed;
  return entry.decision.outcome == Outcome::accepted ? kAccepted : kRejected;
}

Colour line_colour(std::size_t i) {
  const double hue = std::fmod(205.0 + static_cast<double>(i) * 137.508, 360.0) / 60.0;
  const auto part = [&](double shift) {
    const double k = std::fmod(shift + hue, 6.0);
    const double v = 0.75 - 0.75 * 0.72 * std::max(0.0, std::min({k, 4.0 - k, 1.0}));
    return static_cast<std::uint8_t>(std::lround(v * 255));
  };
  return {part(5), part(3), part(1)};
}

class Canvas {
 public:
  Canvas(int width, int height) : shape_{height, width, 3, 1}, pixels_(shape_.frame_bytes(), 0) {
    fill(0, 0, width, height, kBackground);
  }
  void fill(int x, int y, int width, int height, Colour colour) {
    const int right = std::min(x + width, shape_.width);
    const int bottom = std::min(y + height, shape_.height);
    for (int row = std::max(0, y); row < bottom; ++row) {
      for (int column = std::max(0, x); column < right; ++column) put(column, row, colour);
    }
  }
  void text(int x, int y, std::string_view text, Colour colour, int scale = 2) {
    for (const char c : text) {
      if ((static_cast<unsigned char>(c) & 0xC0U) == 0x80U) continue;  // one box per letter
      const auto& glyph = glyph_of(c);
      for (int row = 0; row < kGlyphHeight; ++row) {
        for (int column = 0; column < kGlyphWidth; ++column) {
          if ((glyph[static_cast<std::size_t>(row)] >> (kGlyphWidth - 1 - column) & 1) == 0)
            continue;
          fill(x + column * scale, y + row * scale, scale, scale, colour);
        }
      }
      x += (kGlyphWidth + 1) * scale;
    }
  }
  // Draws a line one and a half pixels thick.
  void line(double x0, double y0, double x1, double y1, Colour colour) {
    const int steps =
        std::max(1, static_cast<int>(std::ceil(std::max(std::abs(x1 - x0), std::abs(y1 - y0)))));
    for (int i = 0; i <= steps; ++i) {
      const double at = static_cast<double>(i) / steps;
      const int x = static_cast<int>(std::lround(x0 + (x1 - x0) * at));
      const int y = static_cast<int>(std::lround(y0 + (y1 - y0) * at));
      put_inside(x, y, colour);
    }
  }
  // Draws `from` scaled to the given size, nearest sample.
  void picture(int x, int y, int width, int height, const FrameShape& shape, ByteSpan from) {
    for (int row = 0; row < height; ++row) {
      for (int column = 0; column < width; ++column) {
        const auto at =
            (static_cast<std::size_t>(row * shape.height / height) *
                 static_cast<std::size_t>(shape.width) +
             static_cast<std::size_t>(column * static_cast<std::int64_t>(shape.width) / width)) *
            3;
        put_inside(x + column, y + row, {from[at], from[at + 1], from[at + 2]});
      }
    }
  }
  Result<Bytes> encode() const { return encode_png(shape_, pixels_, 6); }

 private:
  void put(int x, int y, Colour colour) {
    std::uint8_t* at =
        pixels_.data() + (static_cast<std::size_t>(y) * static_cast<std::size_t>(shape_.width) +
                          static_cast<std::size_t>(x)) *
                             3;
    at[0] = colour.r;
    at[1] = colour.g;
    at[2] = colour.b;
  }
  void put_inside(int x, int y, Colour colour) {
    if (x >= 0 && y >= 0 && x < shape_.width && y < shape_.height) put(x, y, colour);
  }
  FrameShape shape_;
  Bytes pixels_;
};

constexpr int kAdvance = (kGlyphWidth + 1) * 2;  // of one letter at scale 2

std::string cut(std::string_view text, int pixels) {
  const auto most = static_cast<std::size_t>(std::max(1, pixels / kAdvance));
  if (text.size() <= most) return std::string(text);
  return std::string(text.substr(0, most - 1)) + "~";
}

int content_width() { return kWidth - 2 * kMargin - kLabel - kRightLabel - 14; }

int strip_height(const Strip& strip) {
  if (strip.pixels.empty() || strip.shape.width == 0) return 22;
  // Strips keep their shape up to twice their size.
  return std::min(2 * strip.shape.height,
                  static_cast<int>(static_cast<std::int64_t>(content_width()) * strip.shape.height /
                                   strip.shape.width));
}

int card_height(const Entry& entry) {
  int height = 14 + 22 + (entry.task.empty() && entry.note.empty() ? 0 : 22);
  for (const Strip& strip : entry.strips) height += strip_height(strip) + 4;
  height += static_cast<int>(entry.issues.size() + entry.findings.size()) * kLaneHeight;
  height += static_cast<int>(entry.plots.size()) * (kPlotHeight + 4);
  if (!entry.fault.empty()) height += 22;
  return height + 10;
}

void draw_lane(Canvas& canvas, int x, int y, const QualityEntry& issue, bool is_red,
               std::int64_t length) {
  const Colour colour = is_red ? kRejected : kWarning;
  canvas.text(x, y + 2, cut(issue.code, kLabel - 8), colour, 2);
  const int left = x + kLabel;
  canvas.fill(left, y + 3, content_width(), 12, kLine);
  for (const auto& [begin, end] : marks_of(issue, length)) {
    const int from = left + static_cast<int>(std::lround(begin * content_width()));
    const int to = left + static_cast<int>(std::lround(end * content_width()));
    canvas.fill(from, y + 3, std::max(3, to - from), 12, colour);
  }
  if (!issue.stream.empty()) {
    canvas.text(left + 4, y + 6, cut(short_name(issue.stream), content_width()), kCard, 1);
  }
}

void draw_plot(Canvas& canvas, int x, int y, const Plot& plot) {
  canvas.text(x, y + 24, cut(short_name(plot.column), kLabel - 8), kDim, 2);
  const int left = x + kLabel;
  canvas.fill(left, y, content_width(), kPlotHeight, kLine);
  canvas.fill(left + 1, y + 1, content_width() - 2, kPlotHeight - 2, kCard);
  const double range = plot.high > plot.low ? static_cast<double>(plot.high - plot.low) : 1.0;
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const std::vector<float>& line = plot.lines[i];
    const auto place_x = [&](std::size_t p) {
      return left + 2.0 +
             (content_width() - 4.0) * static_cast<double>(p) /
                 static_cast<double>(std::max<std::size_t>(1, line.size() - 1));
    };
    const auto place_y = [&](std::size_t p) {
      return y + kPlotHeight - 4.0 -
             (kPlotHeight - 8.0) * static_cast<double>(line[p] - plot.low) / range;
    };
    for (std::size_t p = 1; p < line.size(); ++p) {
      if (std::isnan(line[p]) || std::isnan(line[p - 1])) continue;
      canvas.line(place_x(p - 1), place_y(p - 1), place_x(p), place_y(p), line_colour(i));
    }
  }
}

void draw_card(Canvas& canvas, int y, const Entry& entry) {
  const int height = card_height(entry);
  const int x = kMargin + 18;
  canvas.fill(kMargin, y, kWidth - 2 * kMargin, height, kLine);
  canvas.fill(kMargin + 1, y + 1, kWidth - 2 * kMargin - 2, height - 2, kCard);
  canvas.fill(kMargin, y, 7, height, outcome_colour(entry));
  int at = y + 12;
  canvas.text(x, at, fmt::format("EPISODE {}", entry.index), kInk, 2);
  canvas.text(x + kLabel, at, outcome_text(entry), outcome_colour(entry), 2);
  const std::string length =
      fmt::format("{}, {} frames", duration_text(entry.seconds), entry.length);
  canvas.text(kWidth - kMargin - 14 - static_cast<int>(length.size()) * kAdvance, at, length, kDim,
              2);
  at += 22;
  if (!entry.task.empty() || !entry.note.empty()) {
    std::string text = entry.task;
    if (!entry.note.empty()) text += (text.empty() ? "" : "  -  ") + entry.note;
    canvas.text(x + kLabel, at, cut(text, content_width()), kDim, 2);
    at += 22;
  }
  if (!entry.fault.empty()) {
    canvas.text(x + kLabel, at, cut(entry.fault, content_width()), kRejected, 2);
    at += 22;
  }
  for (const Strip& strip : entry.strips) {
    const int tall = strip_height(strip);
    canvas.text(x, at + tall / 2 - 8, cut(short_name(strip.camera), kLabel - 8), kDim, 2);
    if (strip.pixels.empty()) {
      canvas.text(x + kLabel, at + 2,
                  cut(strip.fault.empty() ? "no pictures" : strip.fault, content_width()),
                  kRejected, 2);
    } else {
      canvas.picture(x + kLabel, at, content_width(), tall, strip.shape, strip.pixels);
    }
    at += tall + 4;
  }
  for (const QualityEntry& issue : entry.issues) {
    draw_lane(canvas, x, at, issue, true, entry.length);
    at += kLaneHeight;
  }
  for (const QualityEntry& finding : entry.findings) {
    draw_lane(canvas, x, at, finding, false, entry.length);
    at += kLaneHeight;
  }
  for (const Plot& plot : entry.plots) {
    draw_plot(canvas, x, at, plot);
    at += kPlotHeight + 4;
  }
}

}  // namespace

Result<Bytes> render_png(const Sheet& sheet) {
  constexpr int kHead = 118;
  // PNG readers and our own limit end at 64 megapixels or so.
  constexpr std::int64_t kMostPixels = 60'000'000;
  std::int64_t height = kHead + kMargin;
  for (const Entry& entry : sheet.entries) height += card_height(entry) + kGap;
  if (height * kWidth > kMostPixels) {
    return invalid_argument(
        fmt::format("the sheet of {} episodes would be {} pixels tall; name fewer with --episodes, "
                    "or write .html",
                    sheet.entries.size(), height));
  }
  Canvas canvas(kWidth, static_cast<int>(height));
  const Sheet::Totals totals = sheet.totals();
  canvas.text(kMargin, 22, cut(sheet.title, kWidth - 2 * kMargin), kInk, 3);
  canvas.text(
      kMargin, 54,
      fmt::format("{}, {} episodes, {} frames, {} at {:g} fps", sheet.format, sheet.entries.size(),
                  totals.frames, duration_text(totals.seconds), sheet.fps),
      kDim, 2);
  const std::string accepted = fmt::format("{} accepted", totals.accepted);
  const std::string rejected = fmt::format("{} rejected", totals.rejected);
  int x = kMargin;
  canvas.text(x, 78, accepted, kAccepted, 2);
  x += (static_cast<int>(accepted.size()) + 2) * kAdvance;
  canvas.text(x, 78, rejected, kRejected, 2);
  x += (static_cast<int>(rejected.size()) + 2) * kAdvance;
  canvas.text(x, 78,
              fmt::format("{} red, {} without a verdict, {} verdicts over quality, {} trashed",
                          totals.red, totals.undecided, totals.overrides, totals.trashed),
              kDim, 2);
  // One block per episode, in order.
  const auto count = static_cast<int>(sheet.entries.size());
  for (int i = 0; i < count; ++i) {
    const int from = kMargin + (kWidth - 2 * kMargin) * i / count;
    const int to = kMargin + (kWidth - 2 * kMargin) * (i + 1) / count;
    canvas.fill(from, 100, std::max(1, to - from - (count < 300 ? 2 : 0)), 8,
                outcome_colour(sheet.entries[static_cast<std::size_t>(i)]));
  }
  int y = kHead;
  for (const Entry& entry : sheet.entries) {
    draw_card(canvas, y, entry);
    y += card_height(entry) + kGap;
  }
  return canvas.encode();
}

}  // namespace ropewalk::sheet
