#include "ropewalk/stage/quality/report.h"

#include <algorithm>
#include <array>

namespace ropewalk {
namespace {

constexpr std::array<std::string_view, 9> kKeys{
    "severity", "code", "detail", "count", "first_frame", "last_frame", "max", "stream", "spans"};

Json list_of(const std::vector<QualityEntry>& issues) {
  Json out = Json::array();
  for (const QualityEntry& issue : issues) out.push_back(to_json(issue));
  return out;
}

}  // namespace

Json to_json(const QualityEntry& issue) {
  Json out;
  out.set("severity", issue.severity);
  out.set("code", issue.code);
  out.set("detail", issue.detail);
  if (issue.count > 0) out.set("count", issue.count);
  if (issue.first_frame) out.set("first_frame", *issue.first_frame);
  if (issue.last_frame) out.set("last_frame", *issue.last_frame);
  if (issue.max) out.set("max", *issue.max);
  if (!issue.stream.empty()) out.set("stream", issue.stream);
  if (issue.spans.size() > 1) {
    Json spans = Json::array();
    for (const FrameRange& span : issue.spans) {
      spans.push_back(Json(Json::Array{Json(span.begin), Json(span.end)}));
    }
    out.set("spans", std::move(spans));
  }
  if (const Json::Object* extra = issue.extra.as_object()) {
    for (const auto& [key, value] : *extra) out.set(key, value);
  }
  return out;
}

QualityEntry issue_from_json(const Json& json) {
  QualityEntry out;
  out.severity = json.get_string("severity").value_or("red");
  out.code = json.get_string("code").value_or("");
  out.detail = json.get_string("detail").value_or("");
  out.count = json.get_int64("count").value_or(0);
  out.first_frame = json.get_int64("first_frame");
  out.last_frame = json.get_int64("last_frame");
  out.max = json.get_double("max");
  out.stream = json.get_string("stream").value_or("");
  const Json* spans = json.find("spans");
  if (const Json::Array* list = spans ? spans->as_array() : nullptr) {
    for (const Json& entry : *list) {
      const Json::Array* pair = entry.as_array();
      if (pair == nullptr || pair->size() != 2 || out.spans.size() == kMaxSpans) continue;
      const auto begin = (*pair)[0].as_int64();
      const auto end = (*pair)[1].as_int64();
      if (begin && end) out.spans.push_back({*begin, *end});
    }
  }
  if (const Json::Object* members = json.as_object()) {
    for (const auto& [key, value] : *members) {
      if (std::ranges::find(kKeys, key) == kKeys.end()) out.extra.set(key, value);
    }
  }
  return out;
}

Json QualityReport::issues_json() const { return list_of(issues); }
Json QualityReport::findings_json() const { return list_of(findings); }

bool QualityReport::has(std::string_view code, std::string_view stream) const {
  const auto matches = [&](const QualityEntry& issue) {
    return issue.code == code && (stream.empty() || issue.stream == stream);
  };
  return std::ranges::any_of(issues, matches) || std::ranges::any_of(findings, matches);
}

}  // namespace ropewalk
