// The HTML form of a contact sheet: one file, no network, readable without the script.
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "ropewalk/engine/contact_sheet_internal.h"

namespace ropewalk::sheet {
namespace {

constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#f4f4f0;--card:#fff;--ink:#1d2125;--dim:#6a7178;--line:#e1e1da;
--acc:#0b7a63;--acc-bg:#e2f3ee;--rej:#b8400e;--rej-bg:#fbe9e0;--warn:#a86f00;--tra:#7a7f86;--grid:#0000000f}
@media(prefers-color-scheme:dark){:root{--bg:#14171a;--card:#1d2125;--ink:#e8e8e3;--dim:#9aa1a8;
--line:#31363c;--acc:#4cc9a7;--acc-bg:#12352c;--rej:#ff9466;--rej-bg:#3f2014;--warn:#e0ab45;--tra:#8b9199;
--grid:#ffffff12}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);font:14px/1.45 system-ui,"Segoe UI",sans-serif}
main,.top{max-width:1720px;margin:0 auto;padding:0 20px}
.top{padding-top:26px}
h1{font-size:25px;letter-spacing:-.01em;margin:0 0 2px}
.sub{color:var(--dim);margin:0 0 16px}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin-bottom:14px}
.tile{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:8px 16px 9px;min-width:108px}
.tile b{display:block;font-size:23px;line-height:1.15;font-variant-numeric:tabular-nums}
.tile span{color:var(--dim);font-size:12px}
.tile.acc b{color:var(--acc)}.tile.rej b{color:var(--rej)}
.map{display:flex;flex-wrap:wrap;gap:2px;margin:0 0 14px}
.map a{flex:1 1 10px;min-width:8px;max-width:34px;height:16px;border-radius:3px;background:var(--acc)}
.map a.rej{background:var(--rej)}.map a.tra{background:var(--tra);opacity:.5}
.map a.ovr{box-shadow:inset 0 0 0 2px var(--bg)}
nav{display:flex;flex-wrap:wrap;gap:6px;padding:10px 0;margin-bottom:6px;position:sticky;top:0;z-index:2;
background:var(--bg);border-bottom:1px solid var(--line)}
button{font:inherit;font-size:13px;color:inherit;background:var(--card);border:1px solid var(--line);
border-radius:99px;padding:3px 12px;cursor:pointer}
button i{font-style:normal;color:var(--dim);margin-left:5px;font-variant-numeric:tabular-nums}
button[aria-pressed=true]{background:var(--ink);color:var(--bg);border-color:var(--ink)}
button[aria-pressed=true] i{color:inherit;opacity:.7}
.grid{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,600px),1fr));gap:14px;padding:10px 0 40px}
.card{background:var(--card);border:1px solid var(--line);border-left:5px solid var(--acc);border-radius:10px;
padding:11px 14px 12px;scroll-margin-top:60px;min-width:0}
.card.rej{border-left-color:var(--rej)}.card.tra{border-left-color:var(--tra);opacity:.65}
.card:target{outline:2px solid var(--ink)}
.head{display:flex;flex-wrap:wrap;align-items:baseline;gap:4px 10px}
.head h2{font-size:17px;margin:0;font-variant-numeric:tabular-nums}
.badge{font-size:12px;font-weight:600;padding:1px 9px;border-radius:99px;background:var(--acc-bg);color:var(--acc)}
.rej .badge{background:var(--rej-bg);color:var(--rej)}.tra .badge{background:none;color:var(--tra)}
.len{margin-left:auto;color:var(--dim);font-size:12.5px;font-variant-numeric:tabular-nums}
.task{margin:1px 0 0;color:var(--dim);overflow-wrap:anywhere}
.note{margin:4px 0 0;padding-left:9px;border-left:3px solid var(--line);overflow-wrap:anywhere}
.time{display:grid;grid-template-columns:136px minmax(0,1fr);gap:3px 8px;margin-top:8px;align-items:center}
.time>span{font-size:11px;color:var(--dim);text-align:right;overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.time>span.red{color:var(--rej);font-weight:600}.time>span.warn{color:var(--warn)}
.time img{display:block;width:100%;height:auto;border-radius:4px;background:var(--line)}
.gone{border:1px dashed var(--rej);color:var(--rej);border-radius:4px;font-size:12px;padding:6px 10px;
overflow:hidden;text-overflow:ellipsis;white-space:nowrap}
.lane{position:relative;height:11px;border-radius:3px;background:var(--grid)}
.lane i{position:absolute;top:0;bottom:0;min-width:3px;border-radius:2px;background:var(--rej)}
.lane.warn i{background:var(--warn)}
.lane.all i{opacity:.45}
.plot{height:54px;border:1px solid var(--line);border-radius:4px;background:repeating-linear-gradient(90deg,
var(--grid) 0 1px,transparent 1px var(--t))}
.plot svg{display:block;width:100%;height:100%}
.plot path{fill:none;stroke-width:1.15;vector-effect:non-scaling-stroke;opacity:.85}
.axis{display:flex;justify-content:space-between;font-size:11px;color:var(--dim);font-variant-numeric:tabular-nums}
details{margin-top:7px;font-size:12.5px}summary{cursor:pointer;color:var(--dim)}
ul{margin:4px 0 0;padding-left:18px}li{overflow-wrap:anywhere}li b{color:var(--rej);font-weight:600}
li.warn b{color:var(--warn)}
[hidden]{display:none!important}
.none{color:var(--dim);padding:30px 0}
@media print{:root{--bg:#fff;--card:#fff;--ink:#000}nav{display:none}.card{break-inside:avoid}
body{font-size:11px;print-color-adjust:exact;-webkit-print-color-adjust:exact}.grid{display:block}
.card{margin-bottom:10px}}
)css";

constexpr std::string_view kScript = R"js(
const cards=[...document.querySelectorAll('.card')],none=document.querySelector('.none');
for(const b of document.querySelectorAll('nav button'))b.onclick=()=>{
for(const o of document.querySelectorAll('nav button'))o.setAttribute('aria-pressed',o===b);
const f=b.dataset.f;let n=0;
for(const c of cards){const s=f==='all'||c.dataset.k.split(' ').includes(f);c.hidden=!s;n+=s}
none.hidden=n>0};
)js";

std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string base64(ByteSpan bytes) {
  static constexpr char kDigits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t group = static_cast<std::uint32_t>(bytes[i]) << 16 |
                                (left > 1 ? static_cast<std::uint32_t>(bytes[i + 1]) << 8 : 0U) |
                                (left > 2 ? static_cast<std::uint32_t>(bytes[i + 2]) : 0U);
    out += kDigits[group >> 18];
    out += kDigits[group >> 12 & 63];
    out += left > 1 ? kDigits[group >> 6 & 63] : '=';
    out += left > 2 ? kDigits[group & 63] : '=';
  }
  return out;
}

std::string with_commas(std::int64_t value) {
  std::string out = fmt::format("{}", value);
  for (std::ptrdiff_t at = std::ssize(out) - 3; at > 0; at -= 3) {
    out.insert(static_cast<std::size_t>(at), ",");
  }
  return out;
}

// The distance of time ticks: at most about eight in an episode.
double tick_seconds(double seconds) {
  for (const double step : {0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0}) {
    if (seconds / step <= 8) return step;
  }
  return 3600.0;
}

std::string_view card_class(const Entry& entry) {
  if (entry.is_trashed) return "tra";
  return entry.decision.outcome == Outcome::accepted ? "acc" : "rej";
}

// The words that filters look for.
std::string keywords(const Entry& entry) {
  if (entry.is_trashed) return "trashed";
  std::string out(outcome_name(entry.decision.outcome));
  if (entry.verdict.empty()) out += " undecided";
  if (entry.quality == "red") out += " red";
  if (entry.decision.overrides_quality) out += " override";
  for (const auto* list : {&entry.issues, &entry.findings}) {
    for (const QualityEntry& issue : *list) out += " c-" + issue.code;
  }
  return out;
}

void append_tile(std::string& out, std::string_view kind, std::string_view value,
                 std::string_view label) {
  out += fmt::format("<div class=\"tile {}\"><b>{}</b><span>{}</span></div>", kind, value, label);
}

void append_button(std::string& out, std::string_view filter, std::string_view label,
                   std::int64_t count, bool pressed = false) {
  out += fmt::format("<button data-f=\"{}\" aria-pressed=\"{}\">{}<i>{}</i></button>",
                     escaped(filter), pressed, escaped(label), count);
}

void append_head(std::string& out, const Sheet& sheet) {
  const Sheet::Totals totals = sheet.totals();
  out += fmt::format("<h1>{}</h1><p class=\"sub\">{}", escaped(sheet.title), escaped(sheet.format));
  if (!sheet.robot.empty()) out += " · " + escaped(sheet.robot);
  out += fmt::format(" · {} episode{} · {} frames · {} at {:g} fps",
                     with_commas(static_cast<std::int64_t>(sheet.entries.size())),
                     sheet.entries.size() == 1 ? "" : "s", with_commas(totals.frames),
                     duration_text(totals.seconds), sheet.fps);
  if (std::ssize(sheet.entries) != sheet.episodes_in_dataset) {
    out += fmt::format(" (of {} episodes)", with_commas(sheet.episodes_in_dataset));
  }
  if (sheet.has_ledger) out += fmt::format(" · revision {}", sheet.revision);
  out += "</p><div class=\"tiles\">";
  const double share = totals.episodes > 0 ? 100.0 * static_cast<double>(totals.accepted) /
                                                 static_cast<double>(totals.episodes)
                                           : 0.0;
  append_tile(out, "acc", with_commas(totals.accepted), fmt::format("accepted · {:.0f} %", share));
  append_tile(
      out, "rej", with_commas(totals.rejected),
      fmt::format("rejected · {} frames", with_commas(totals.frames - totals.accepted_frames)));
  append_tile(out, "", with_commas(totals.red), "red by the checks");
  append_tile(out, "", with_commas(totals.undecided), "without a verdict");
  append_tile(out, "", with_commas(totals.overrides), "verdict over quality");
  if (totals.unchecked > 0) append_tile(out, "", with_commas(totals.unchecked), "never checked");
  if (totals.trashed > 0) append_tile(out, "", with_commas(totals.trashed), "trashed");
  out += "</div><div class=\"map\">";
  for (const Entry& entry : sheet.entries) {
    out += fmt::format("<a href=\"#e{0}\" class=\"{1}{2}\" title=\"episode {0}: {3}\"></a>",
                       entry.index, card_class(entry),
                       entry.decision.overrides_quality && !entry.is_trashed ? " ovr" : "",
                       escaped(outcome_text(entry)));
  }
  out += "</div>";
}

void append_filters(std::string& out, const Sheet& sheet) {
  const Sheet::Totals totals = sheet.totals();
  out += "<nav>";
  append_button(out, "all", "all", static_cast<std::int64_t>(sheet.entries.size()), true);
  append_button(out, "accepted", "accepted", totals.accepted);
  append_button(out, "rejected", "rejected", totals.rejected);
  append_button(out, "undecided", "without verdict", totals.undecided);
  if (totals.overrides > 0)
    append_button(out, "override", "verdict over quality", totals.overrides);
  for (const auto& [code, count] : totals.codes) append_button(out, "c-" + code, code, count);
  out += "</nav>";
}

void append_lane(std::string& out, const QualityEntry& issue, bool is_red, std::int64_t length) {
  const auto marks = marks_of(issue, length);
  const bool unplaced = issue.spans.empty() && !issue.first_frame;
  out +=
      fmt::format("<span class=\"{}\" title=\"{}\">{}</span><div class=\"lane{}{}\" title=\"{}\">",
                  is_red ? "red" : "warn", escaped(issue.code), escaped(issue.code),
                  is_red ? "" : " warn", unplaced ? " all" : "", escaped(issue.detail));
  for (const auto& [begin, end] : marks) {
    out += fmt::format("<i style=\"left:{:.2f}%;width:{:.2f}%\"></i>", begin * 100,
                       (end - begin) * 100);
  }
  out += "</div>";
}

void append_plot(std::string& out, const Plot& plot, double tick_share) {
  out += fmt::format(
      "<span title=\"{}\">{}</span><div class=\"plot\" style=\"--t:{:.2f}%\" title=\"{} values "
      "from "
      "{:.4g} to {:.4g}\"><svg viewBox=\"0 0 1000 100\" preserveAspectRatio=\"none\">",
      escaped(plot.column), escaped(short_name(plot.column)), tick_share * 100, plot.lines.size(),
      plot.low, plot.high);
  const float range = plot.high > plot.low ? plot.high - plot.low : 1.0F;
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const std::vector<float>& line = plot.lines[i];
    const double hue = std::fmod(205.0 + static_cast<double>(i) * 137.508, 360.0);
    out += fmt::format("<path stroke=\"hsl({:.0f} 58% 50%)\" d=\"", hue);
    bool pen_down = false;
    for (std::size_t p = 0; p < line.size(); ++p) {
      if (std::isnan(line[p])) {
        pen_down = false;
        continue;
      }
      const double x = line.size() > 1
                           ? 1000.0 * static_cast<double>(p) / static_cast<double>(line.size() - 1)
                           : 500.0;
      const double y = 96.0 - 92.0 * static_cast<double>((line[p] - plot.low) / range);
      out += fmt::format("{}{:.0f} {:.0f}", pen_down ? "L" : "M", x, y);
      pen_down = true;
    }
    out += "\"/>";
  }
  out += "</svg></div>";
}

void append_card(std::string& out, const Entry& entry) {
  out += fmt::format(
      "<article class=\"card {}\" id=\"e{}\" data-k=\"{}\"><div class=\"head\"><h2>Episode {}</h2>"
      "<span class=\"badge\">{} {}</span><span class=\"len\">{} · {} frames</span></div>",
      card_class(entry), entry.index, escaped(keywords(entry)), entry.index,
      entry.is_trashed ? "–" : (entry.decision.outcome == Outcome::accepted ? "✓" : "✕"),
      escaped(outcome_text(entry)), duration_text(entry.seconds), with_commas(entry.length));
  if (!entry.task.empty()) out += fmt::format("<p class=\"task\">{}</p>", escaped(entry.task));
  if (!entry.note.empty()) out += fmt::format("<p class=\"note\">{}</p>", escaped(entry.note));
  out += "<div class=\"time\">";
  if (!entry.fault.empty()) {
    out +=
        fmt::format("<span class=\"red\">episode</span><div class=\"gone\" title=\"{0}\">{0}</div>",
                    escaped(entry.fault));
  }
  for (const Strip& strip : entry.strips) {
    out += fmt::format("<span title=\"{}\">{}</span>", escaped(strip.camera),
                       escaped(short_name(strip.camera)));
    if (strip.jpeg.empty()) {
      out += fmt::format("<div class=\"gone\" title=\"{0}\">{0}</div>",
                         escaped(strip.fault.empty() ? "no pictures" : strip.fault));
    } else {
      out += fmt::format(
          "<img loading=\"lazy\" width=\"{}\" height=\"{}\" alt=\"{} pictures of {}\" "
          "src=\"data:image/jpeg;base64,{}\">",
          strip.shape.width, strip.shape.height, strip.pictures, escaped(strip.camera),
          base64(strip.jpeg));
    }
  }
  for (const QualityEntry& issue : entry.issues) append_lane(out, issue, true, entry.length);
  for (const QualityEntry& finding : entry.findings) append_lane(out, finding, false, entry.length);
  const double tick = tick_seconds(entry.seconds);
  for (const Plot& plot : entry.plots) {
    append_plot(out, plot, entry.seconds > 0 ? tick / entry.seconds : 1.0);
  }
  out += fmt::format(
      "<span></span><div class=\"axis\"><span>0</span><span>ticks of {:g} s</span>"
      "<span>{}</span></div></div>",
      tick, duration_text(entry.seconds));
  if (!entry.issues.empty() || !entry.findings.empty()) {
    const auto counted = [](std::size_t count, std::string_view noun) {
      return count == 0 ? std::string()
                        : fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
    };
    const std::string issues = counted(entry.issues.size(), "issue");
    const std::string findings = counted(entry.findings.size(), "finding");
    out +=
        fmt::format("<details{}><summary>{}{}{}</summary><ul>", entry.issues.empty() ? "" : " open",
                    issues, issues.empty() || findings.empty() ? "" : ", ", findings);
    for (const auto* list : {&entry.issues, &entry.findings}) {
      for (const QualityEntry& issue : *list) {
        out += fmt::format("<li class=\"{}\"><b>{}</b> {}{}{}</li>",
                           list == &entry.issues ? "red" : "warn", escaped(issue.code),
                           escaped(short_name(issue.stream)), issue.stream.empty() ? "" : ": ",
                           escaped(issue.detail));
      }
    }
    out += "</ul></details>";
  }
  out += "</article>\n";
}

}  // namespace

std::string render_html(const Sheet& sheet) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>{} – contact sheet</title><style>{}"
      "</style></head><body><div class=\"top\">",
      escaped(sheet.title), kStyle);
  append_head(out, sheet);
  out += "</div><main>";
  append_filters(out, sheet);
  out += "<p class=\"none\"";
  out += sheet.entries.empty() ? ">" : " hidden>";
  out += "No episode is like that.</p><div class=\"grid\">\n";
  for (const Entry& entry : sheet.entries) append_card(out, entry);
  out += fmt::format("</div></main><script>{}</script></body></html>\n", kScript);
  return out;
}

}  // namespace ropewalk::sheet
