#include "ropewalk/engine/mcap/extract.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/engine/mcap/extract_internal.h"
#include "ropewalk/engine/mcap/inspect.h"
#include "ropewalk/format/image/image.h"
#include "ropewalk/format/video/stream_writer.h"

namespace ropewalk {
namespace {

ExtractForm form_of(const ExtractRequest& request) {
  if (request.form.has_value()) return *request.form;
  if (request.output.ends_with(".mp4")) return ExtractForm::mp4;
  return request.output.ends_with(".parquet") ? ExtractForm::parquet : ExtractForm::images;
}

void note_once(std::vector<std::string>& notes, std::string text) {
  if (std::ranges::find(notes, text) == notes.end()) notes.push_back(std::move(text));
}

Status wrong_schema(const ExtractRequest& request, const ExtractReport& report,
                    const char* expected) {
  return failed_precondition(fmt::format("topic {} has the schema '{}', expected {}", request.topic,
                                         report.schema, expected));
}

// The file that holds one picture: its bytes and the ending of its name.
struct Picture {
  Bytes owned;
  ByteSpan bytes;
  std::string_view ending;
};

Result<Picture> encode_raw(const message::RawImage& image, int quality) {
  Picture out;
  const auto width = static_cast<int>(image.width);
  const auto height = static_cast<int>(image.height);
  if (image.width == 0 || image.height == 0 || image.width > 65'500 || image.height > 65'500 ||
      std::uint64_t{image.width} * image.height > Limits{}.max_image_pixels) {
    return resource_exhausted(
        fmt::format("a picture of {} x {} pixels", image.width, image.height));
  }
  if (image.encoding == "16UC1" || image.encoding == "mono16") {
    const std::size_t row = std::size_t{image.width} * 2;
    if (image.step < row || image.data.size() / image.step < image.height) {
      return data_loss(fmt::format("{} bytes are too few for {} rows of {} bytes",
                                   image.data.size(), image.height, image.step));
    }
    Bytes pixels(row * image.height);
    for (std::size_t y = 0; y < image.height; ++y) {
      std::copy_n(image.data.data() + y * image.step, row, pixels.data() + y * row);
    }
    if (image.is_big_endian) {
      for (std::size_t i = 0; i + 1 < pixels.size(); i += 2) std::swap(pixels[i], pixels[i + 1]);
    }
    ROPEWALK_ASSIGN_OR_RETURN(
        out.owned,
        encode_png({.height = height, .width = width, .channels = 1, .bytes_per_sample = 2},
                   pixels));
    out.ending = "png";
  } else {
    const FrameShape shape{.height = height, .width = width, .channels = 3};
    Bytes rgb(shape.frame_bytes());
    ROPEWALK_RETURN_IF_ERROR(message::to_rgb8(image, rgb));
    ROPEWALK_ASSIGN_OR_RETURN(out.owned, encode_jpeg(shape, rgb, quality));
    out.ending = "jpg";
  }
  out.bytes = out.owned;
  return out;
}

Result<Picture> picture_of(const message::RobotMessage& value, int quality) {
  if (const auto* raw = std::get_if<message::RawImage>(&value)) return encode_raw(*raw, quality);
  const auto& compressed = std::get<message::CompressedImage>(value);
  Picture out;
  out.bytes = compressed.data;
  switch (compressed.codec) {
    case message::CompressedImage::Codec::jpeg:
      out.ending = "jpg";
      break;
    case message::CompressedImage::Codec::png:
      out.ending = "png";
      break;
    case message::CompressedImage::Codec::webp:
      out.ending = "webp";
      break;
    case message::CompressedImage::Codec::avif:
      out.ending = "avif";
      break;
    case message::CompressedImage::Codec::unknown:
      return unimplemented(fmt::format("pictures of the format '{}'", compressed.format));
  }
  return out;
}

std::string_view codec_name(message::CompressedVideo::Codec codec) {
  switch (codec) {
    case message::CompressedVideo::Codec::h264:
      return "h264";
    case message::CompressedVideo::Codec::h265:
      return "hevc";
    case message::CompressedVideo::Codec::vp9:
      return "vp9";
    case message::CompressedVideo::Codec::av1:
      return "av1";
    case message::CompressedVideo::Codec::unknown:
      break;
  }
  return "";
}

}  // namespace

std::optional<ExtractForm> extract_form_from_name(std::string_view name) {
  if (name == "mp4") return ExtractForm::mp4;
  if (name == "images") return ExtractForm::images;
  if (name == "parquet") return ExtractForm::parquet;
  return std::nullopt;
}

Status for_each_decoded(const ExtractRequest& request, const RunContext& context,
                        ExtractReport& report, const TakeMessage& take) {
  ProblemLog log;
  ROPEWALK_ASSIGN_OR_RETURN(const std::vector<McapInput> inputs,
                            open_inputs({request.input}, request.lenient, log));
  const mcap::Reader& reader = inputs.front().reader;
  const auto channels = reader.channels_of(request.topic);
  if (channels.empty()) {
    return not_found(fmt::format("{}: no topic '{}'", inputs.front().name, request.topic));
  }
  for (const mcap::Channel* channel : channels) {
    const auto schema = reader.schemas().find(channel->schema_id);
    if (schema != reader.schemas().end()) report.schema = schema->second.name;
  }
  McapSelection selection;
  selection.begin_time = request.begin_time;
  selection.end_time = request.end_time;
  ROPEWALK_ASSIGN_OR_RETURN(MessageFlow flow,
                            MessageFlow::create(inputs, selection, McapOrder::log_time, log,
                                                std::vector<std::string>{request.topic}));
  std::unordered_map<const mcap::Channel*, std::shared_ptr<const message::MessageCodec>> codecs;
  CopyProgress progress(context, "extracting", 0);
  std::uint64_t undecodable = 0;
  std::string first_error;
  for (FlowMessage message;;) {
    ROPEWALK_ASSIGN_OR_RETURN(const bool more, flow.next(message));
    if (!more) break;
    const mcap::MessageView& view = message.view;
    auto& codec = codecs[view.channel];
    if (codec == nullptr) {
      message::SchemaRef schema{.message_encoding = view.channel->message_encoding,
                                .schema_name = {},
                                .schema_encoding = {},
                                .schema = {}};
      if (view.schema != nullptr) {
        schema.schema_name = view.schema->name;
        schema.schema_encoding = view.schema->encoding;
        schema.schema = view.schema->data;
      }
      ROPEWALK_ASSIGN_OR_RETURN_CTX(codec, message::MessageCodec::compile(schema),
                                    "topic " + request.topic);
    }
    ++report.messages;
    ROPEWALK_RETURN_IF_ERROR(progress.step(view.data.size()));
    const auto decoded = codec->decode(view.data);
    if (!decoded.ok()) {
      if (undecodable++ == 0) first_error = std::string(decoded.status().message());
      continue;
    }
    ROPEWALK_RETURN_IF_ERROR(take(view, decoded->root()));
  }
  ROPEWALK_RETURN_IF_ERROR(context.check_stop());
  if (undecodable > 0) {
    report.losses.push_back(
        fmt::format("{} messages cannot be decoded, the first: {}", undecodable, first_error));
  }
  report.problems = log.take();
  return ok_status();
}

Status extract_video(const ExtractRequest& request, const RunContext& context,
                     ExtractReport& report) {
  ROPEWALK_ASSIGN_OR_RETURN(StagedPath staged, StagedPath::create(request.output, request.replace));
  std::optional<VideoStreamWriter> writer;
  std::string codec;
  ROPEWALK_RETURN_IF_ERROR(for_each_decoded(
      request, context, report,
      [&](const mcap::MessageView& view, const message::Value& root) -> Status {
        ROPEWALK_ASSIGN_OR_RETURN(const auto value,
                                  message::read_robot_message(report.schema, root));
        const auto* video = std::get_if<message::CompressedVideo>(&value);
        if (video == nullptr) return wrong_schema(request, report, "CompressedVideo");
        const std::string name(codec_name(video->codec));
        if (name.empty()) {
          return unimplemented(fmt::format("video of the format '{}'", video->format));
        }
        if (!writer.has_value()) {
          codec = name;
          ROPEWALK_ASSIGN_OR_RETURN(writer, VideoStreamWriter::create(staged.path(), codec));
        }
        if (name != codec) {
          return failed_precondition(fmt::format(
              "topic {}: the video changes from {} to {}; extract ranges of time one by one",
              request.topic, codec, name));
        }
        return writer->append(video->data, static_cast<std::int64_t>(view.log_time));
      }));
  if (!writer.has_value()) {
    return failed_precondition(fmt::format("topic {} has no messages", request.topic));
  }
  ROPEWALK_RETURN_IF_ERROR(writer->finish());
  report.written = static_cast<std::uint64_t>(writer->frames());
  report.width = writer->width();
  report.height = writer->height();
  if (writer->skipped() > 0) {
    report.losses.push_back(
        fmt::format("{} frames stand before the first keyframe", writer->skipped()));
  }
  if (writer->moved_times() > 0) {
    report.notes.push_back(
        fmt::format("{} frames were not later than the one before them", writer->moved_times()));
  }
  return staged.publish();
}

Status extract_images(const ExtractRequest& request, const RunContext& context,
                      ExtractReport& report) {
  ROPEWALK_ASSIGN_OR_RETURN(StagedPath staged, StagedPath::create(request.output, false));
  ROPEWALK_RETURN_IF_ERROR(make_directories(staged.path()));
  std::uint64_t number = 0;
  std::uint64_t failed = 0;
  ROPEWALK_RETURN_IF_ERROR(for_each_decoded(
      request, context, report,
      [&](const mcap::MessageView& view, const message::Value& root) -> Status {
        auto value = message::read_robot_message(report.schema, root);
        if (!value.ok() && value.status().code() == StatusCode::not_found) {
          return wrong_schema(request, report, "Image, RawImage or CompressedImage");
        }
        ROPEWALK_RETURN_IF_ERROR(value.ok() ? ok_status() : value.status());
        if (std::holds_alternative<message::CompressedVideo>(*value)) {
          return wrong_schema(request, report,
                              "pictures; CompressedVideo goes to a file named .mp4");
        }
        if (!std::holds_alternative<message::RawImage>(*value) &&
            !std::holds_alternative<message::CompressedImage>(*value)) {
          return wrong_schema(request, report, "Image, RawImage or CompressedImage");
        }
        const auto picture = picture_of(*value, request.jpeg_quality);
        if (!picture.ok()) {
          if (picture.status().code() != StatusCode::data_loss) return picture.status();
          if (failed++ == 0) note_once(report.losses, std::string(picture.status().message()));
          return ok_status();
        }
        if (const auto info = probe_image(picture->bytes); info.ok()) {
          report.width = info->width;
          report.height = info->height;
        }
        const std::string name =
            fmt::format("{:06}_{}.{}", number++, view.log_time, picture->ending);
        ++report.written;
        return write_new_file(staged.path() / name, picture->bytes);
      }));
  if (failed > 0) report.losses.push_back(fmt::format("{} damaged pictures", failed));
  ROPEWALK_RETURN_IF_ERROR(sync_directory(staged.path()));
  return staged.publish();
}

bool ExtractReport::lossy() const {
  return !losses.empty() || std::ranges::any_of(problems, [](const FileProblem& p) {
    return is_copy_loss(p.problem.kind);
  });
}

Result<ExtractReport> extract_mcap(const ExtractRequest& request, const RunContext& context) {
  if (request.output.empty() || request.output == kStandardStream) {
    return invalid_argument("name a file or a directory as output");
  }
  if (request.jpeg_quality < 1 || request.jpeg_quality > 100) {
    return invalid_argument(
        fmt::format("JPEG quality {}: expected 1 to 100", request.jpeg_quality));
  }
  ExtractReport report;
  report.output = request.output;
  switch (form_of(request)) {
    case ExtractForm::mp4:
      report.form = "mp4";
      ROPEWALK_RETURN_IF_ERROR(extract_video(request, context, report));
      break;
    case ExtractForm::images:
      report.form = "images";
      ROPEWALK_RETURN_IF_ERROR(extract_images(request, context, report));
      break;
    case ExtractForm::parquet:
      report.form = "parquet";
      ROPEWALK_RETURN_IF_ERROR(extract_table(request, context, report));
      break;
  }
  return report;
}

Json ExtractReport::to_json() const {
  Json json = Json::object();
  json.set("output", output);
  json.set("form", form);
  json.set("schema", valid_utf8(schema));
  json.set("messages", messages);
  json.set("written", written);
  if (width > 0) {
    json.set("width", std::int64_t{width});
    json.set("height", std::int64_t{height});
  }
  const auto list = [](const std::vector<std::string>& lines) {
    Json out = Json::array();
    for (const std::string& line : lines) out.push_back(valid_utf8(line));
    return out;
  };
  if (!columns.empty()) json.set("columns", list(columns));
  json.set("notes", list(notes));
  json.set("losses", list(losses));
  json.set("problems", ropewalk::to_json(problems));
  json.set("loss", lossy());
  return json;
}

}  // namespace ropewalk
