#include "ropewalk/engine/convert.h"

#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/io/staged_directory.h"
#include "ropewalk/engine/open.h"
#include "ropewalk/engine/prove.h"

namespace ropewalk {

Json ConvertReport::to_json() const {
  Json json = Json::object();
  json.set("from", from);
  json.set("to", to);
  json.set("out", out.string());
  json.set("episodes", episodes);
  json.set("episodes_left_out", episodes_left_out);
  json.set("frames", frames);
  json.set("files", files);
  json.set("bytes", bytes);
  json.set("seconds", seconds);
  json.set("findings", findings.to_json());
  return json;
}

Result<ConvertReport> convert_dataset(const ConvertRequest& request, const RunContext& context) {
  const auto started = std::chrono::steady_clock::now();
  ROPEWALK_RETURN_IF_ERROR(validate_sink_options(request.format, request.sink));
  context.report({.phase = "reading", .item = {}});
  ROPEWALK_ASSIGN_OR_RETURN(
      const auto source,
      open_dataset(
          request.source,
          {.strict = request.strict, .survey = true, .pool = context.pool, .stop = context.stop}));
  ROPEWALK_ASSIGN_OR_RETURN(StagedDirectory stage, StagedDirectory::create(request.out));
  ROPEWALK_ASSIGN_OR_RETURN(const FormatSink made,
                            make_sink(request.format, stage.path(), *source, request.sink));
  const auto& sink = made.sink;
  ROPEWALK_RETURN_IF_ERROR(copy(*source, *sink, context));
  context.report({.phase = "proving", .item = {}});
  ROPEWALK_RETURN_IF_ERROR(made.prove(context));
  ROPEWALK_RETURN_IF_ERROR(prove_structure(stage.path(), request.format, *source, context));
  ROPEWALK_RETURN_IF_ERROR(stage.publish());

  ConvertReport report;
  report.from = source->format();
  report.to = request.format;
  report.out = request.out;
  const std::int64_t empty = sink->findings().count("empty_episode_dropped");
  report.episodes = source->size() - empty;
  report.episodes_left_out = source->left_out() + empty;
  for (std::int64_t i = 0; i < source->size(); ++i) report.frames += source->info(i).length;
  report.files = static_cast<std::int64_t>(sink->files().size());
  for (const WrittenFile& file : sink->files()) report.bytes += file.size_bytes;
  report.findings = source->findings();
  report.findings.append(sink->findings());
  report.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace ropewalk
