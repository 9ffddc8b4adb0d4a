#include <algorithm>
#include <atomic>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/sink_files_internal.h"

namespace ropewalk::lerobot_internal {
namespace {

Json rate_of(Rational fps) {
  if (fps.is_integral()) return fps.num;
  return fps.to_double();
}

}  // namespace

Result<std::unique_ptr<HashingSink>> HashingSink::create(const std::filesystem::path& root,
                                                         std::string path) {
  const std::filesystem::path full = root / path;
  ROPEWALK_RETURN_IF_ERROR(make_directories(full.parent_path()));
  ROPEWALK_ASSIGN_OR_RETURN(auto file, create_sink(full));
  return std::unique_ptr<HashingSink>(new HashingSink(std::move(file), std::move(path)));
}

Status HashingSink::append(ByteSpan bytes) {
  hash_.update(bytes);
  return file_->append(bytes);
}

Result<WrittenFile> HashingSink::finish() {
  ROPEWALK_RETURN_IF_ERROR(file_->sync());
  ROPEWALK_RETURN_IF_ERROR(file_->close());
  return WrittenFile{path_, file_->size(), hash_.finish_hex()};
}

void Written::add(WrittenFile file) {
  const std::lock_guard lock(mutex_);
  files_.push_back(std::move(file));
}

void Written::add(ClipRecord clip) {
  const std::lock_guard lock(mutex_);
  clips_.push_back(std::move(clip));
}

std::vector<WrittenFile> Written::take_files() {
  const std::lock_guard lock(mutex_);
  std::ranges::sort(files_, {}, &WrittenFile::path);
  return std::move(files_);
}

std::vector<ClipRecord> Written::take_clips() {
  const std::lock_guard lock(mutex_);
  std::ranges::sort(clips_, [](const ClipRecord& a, const ClipRecord& b) {
    return std::tie(a.path, a.first_frame) < std::tie(b.path, b.first_frame);
  });
  return std::move(clips_);
}

Status JobWindow::run(ThreadPool* pool, std::uint64_t memory_bytes, std::function<Status()> job) {
  if (pool == nullptr) return job();
  if (jobs_ >= batch_ || bytes_ + memory_bytes > batch_bytes_) {
    if (previous_ != nullptr) ROPEWALK_RETURN_IF_ERROR(previous_->wait());
    previous_ = std::move(running_);
    jobs_ = 0;
    bytes_ = 0;
  }
  if (running_ == nullptr) running_ = std::make_unique<TaskGroup>(pool);
  running_->run(std::move(job));
  ++jobs_;
  bytes_ += memory_bytes;
  return ok_status();
}

Status JobWindow::wait() {
  Status first = previous_ != nullptr ? previous_->wait() : ok_status();
  Status second = running_ != nullptr ? running_->wait() : ok_status();
  previous_.reset();
  running_.reset();
  return first.ok() ? second : first;
}

Result<std::optional<Clip>> open_clip(const Episode& episode, const std::string& camera,
                                      const EncodeOptions& options, Findings& findings) {
  const std::int64_t length = episode.info().length;
  auto opened = episode.packets(camera);
  Status status = opened.ok() ? ok_status() : opened.status();
  if (opened.ok() && (*opened)->count() != length) {
    return data_loss(fmt::format("camera {}: {} encoded frames for {} rows; run a repair first",
                                 camera, (*opened)->count(), length));
  }
  if (opened.ok() && (!(*opened)->entry(0).keyframe || (*opened)->entry(0).ordinal != 0)) {
    status = failed_precondition(
                 fmt::format("camera {}: does not begin with a keyframe shown first", camera))
                 .with_reason("NOT_REMUXABLE");
  }
  if (status.ok()) {
    Clip clip;
    clip.file = (*opened)->whole_file();
    clip.params = (*opened)->params();
    clip.frames = length;
    clip.reader = std::move(*opened);
    return std::optional<Clip>(std::move(clip));
  }
  if (status.code() != StatusCode::failed_precondition) return status;
  // Without a reason there simply is no encoded form; with one it cannot be copied.
  if (!status.reason().empty()) {
    if (!options.repair_video) return status;
    findings.add({.code = "video_reencoded",
                  .episode = episode.info().index,
                  .feature = camera,
                  .found = std::string(status.message()),
                  .decision = "decoded and encoded anew, as asked"});
  }
  return std::optional<Clip>();
}

Status load_index(Clip& clip) {
  if (!clip.file || clip.index != nullptr) return ok_status();
  ROPEWALK_ASSIGN_OR_RETURN(Mp4Index index, probe_mp4(*clip.file));
  clip.index = std::make_shared<const Mp4Index>(std::move(index));
  clip.reader.reset();
  return ok_status();
}

Result<EncodedVideo> encode_clip(const Episode& episode, const std::string& camera,
                                 const std::filesystem::path& root, const std::string& path,
                                 const EncodeOptions& options, std::stop_token stop,
                                 WrittenFile* written) {
  const std::int64_t length = episode.info().length;
  ROPEWALK_ASSIGN_OR_RETURN(const auto reader, episode.frames(camera, {0, length}));
  const FrameShape shape = reader->shape();
  if (shape.bytes_per_sample != 1 || (shape.channels != 3 && shape.channels != 1)) {
    return unimplemented(fmt::format(
        "camera {}: frames of {} channels and {} bytes a sample have no form as colour video",
        camera, shape.channels, shape.bytes_per_sample));
  }
  static std::atomic<std::uint64_t> spills{0};
  EncoderSettings settings = options.settings;
  if (settings.spill_path.empty()) {
    settings.spill_path = root / fmt::format(".spill-{}", spills.fetch_add(1));
  }
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, HashingSink::create(root, path));
  ROPEWALK_ASSIGN_OR_RETURN(
      const auto encoder,
      VideoEncoder::create(*sink, shape.width, shape.height, episode.schema().fps, settings));
  Bytes frame(shape.frame_bytes());
  Bytes colour(shape.channels == 1 ? frame.size() * 3 : 0);
  for (std::int64_t i = 0; i < length; ++i) {
    if (stop.stop_requested()) return cancelled();
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const bool more, reader->next(frame), "camera " + camera);
    if (!more) {
      return data_loss(fmt::format("camera {}: {} frames for {} rows", camera, i, length));
    }
    for (std::size_t p = 0; p * 3 < colour.size(); ++p) {
      colour[p * 3] = colour[p * 3 + 1] = colour[p * 3 + 2] = frame[p];
    }
    ROPEWALK_RETURN_IF_ERROR(encoder->write(colour.empty() ? ByteSpan(frame) : ByteSpan(colour)));
  }
  ROPEWALK_ASSIGN_OR_RETURN(EncodedVideo encoded, encoder->finish());
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, sink->finish());
  if (written != nullptr) *written = std::move(file);
  return encoded;
}

Result<std::string> append_packets(Clip& clip, Mp4Writer& writer, std::stop_token stop) {
  if (clip.index != nullptr) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(*clip.file));
    return copy_packets(*clip.index, *source, {0, clip.index->packets.size()}, writer);
  }
  Sha256 hash;
  for (std::int64_t i = 0; i < clip.frames; ++i) {
    if (stop.stop_requested()) return cancelled();
    ROPEWALK_ASSIGN_OR_RETURN(const auto packet, clip.reader->next());
    if (!packet) return data_loss(fmt::format("packet {} of {} is missing", i, clip.frames));
    hash.update(packet->data);
    ROPEWALK_RETURN_IF_ERROR(writer.append(packet->data));
  }
  return hash.finish_hex();
}

bool describe_camera(Feature& feature, const VideoParams& params, Rational fps) {
  const bool gray = params.pix_fmt.starts_with("gray");
  const std::vector<std::int64_t> shape{
      params.height, params.width,
      gray && !feature.shape.empty() && feature.shape.back() == 1 ? 1 : 3};
  bool differed = feature.shape != shape;
  feature.shape = shape;
  const std::array<std::pair<const char*, Json>, 8> members{
      {{"video.height", Json(params.height)},
       {"video.width", Json(params.width)},
       {"video.codec", Json(params.codec)},
       {"video.pix_fmt", Json(params.pix_fmt)},
       {"video.is_depth_map", Json(false)},
       {"video.fps", rate_of(fps)},
       {"video.channels", Json(gray ? 1 : 3)},
       {"has_audio", Json(false)}}};
  if (!feature.info.is_object() || feature.info.size() == 0) {
    feature.info = Json::object();
    for (const auto& [key, value] : members) feature.info.set(key, value);
    return differed;
  }
  for (const auto& [key, value] : members) {
    const std::string_view name = key;
    const Json* found = feature.info.find(name);
    if (found == nullptr || *found == value || name == "video.is_depth_map" ||
        name == "has_audio" || name == "video.channels" || name == "video.fps") {
      continue;
    }
    differed = true;
    feature.info.set(std::string(name), value);
  }
  return differed;
}

Result<WrittenFile> put_text(const std::filesystem::path& root, const std::string& path,
                             std::string_view text) {
  ROPEWALK_RETURN_IF_ERROR(make_directories((root / path).parent_path()));
  ROPEWALK_RETURN_IF_ERROR(write_new_file(root / path, as_bytes(text)));
  return WrittenFile{path, text.size(), sha256_hex(as_bytes(text))};
}

}  // namespace ropewalk::lerobot_internal
