#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/dataset/lerobot/video_shard_internal.h"

namespace ropewalk::lerobot_internal {
namespace {

/// What a packet adds to the index of a file: its size, composition offset and keyframe entry.
constexpr std::uint64_t kIndexBytesPerPacket = 16;

Status not_remuxable(std::string_view name, std::string_view what) {
  return failed_precondition(fmt::format("{}: {}; allow it to be encoded anew", name, what))
      .with_reason("NOT_REMUXABLE");
}

}  // namespace

void FileNumber::advance(std::int64_t chunks_size) {
  if (file + 1 < chunks_size) {
    ++file;
    return;
  }
  ++chunk;
  file = 0;
}

std::string FileNumber::text() const {
  return fmt::format("chunk-{:03d}/file-{:03d}", chunk, file);
}

Status check_copyable(Clip& clip) {
  ROPEWALK_RETURN_IF_ERROR(load_index(clip));
  if (clip.index == nullptr) return ok_status();  // open_clip looked at its first packet
  const Mp4Index& index = *clip.index;
  if (index.hidden_packets > 0) return not_remuxable(index.name, "an edit list hides frames");
  if (index.rate == RateKind::variable) return not_remuxable(index.name, "a rate that varies");
  ROPEWALK_ASSIGN_OR_RETURN(const auto source, open_source(*clip.file));
  const Status status = check_remuxable(index, *source, {0, index.packets.size()});
  return status.code() == StatusCode::failed_precondition
             ? not_remuxable(index.name, status.message())
             : status;
}

Result<ClipPlace> VideoShards::add(Clip clip, std::int64_t episode_index, const RunContext& context,
                                   JobWindow& jobs, Written& written) {
  std::vector<Mp4PacketPlan> packets;
  packets.reserve(static_cast<std::size_t>(clip.frames));
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < clip.frames; ++i) {
    PacketReader::PacketEntry entry;
    if (clip.index != nullptr) {
      const Mp4Packet& packet = clip.index->packets[static_cast<std::size_t>(i)];
      entry = {packet.size, packet.keyframe, packet.rank};
    } else {
      entry = clip.reader->entry(i);
    }
    packets.push_back(
        {entry.size_bytes, static_cast<std::uint32_t>(entry.ordinal), entry.keyframe});
    bytes += entry.size_bytes + kIndexBytesPerPacket;
  }
  const bool fits = open_ != nullptr && can_share_file(open_->plan.params, clip.params) &&
                    open_->bytes + bytes < limits_.file_bytes &&
                    open_->frames + clip.frames <= limits_.file_frames;
  if (!fits) {
    ROPEWALK_RETURN_IF_ERROR(close(context, jobs, written));
    number_.advance(limits_.chunks_size);
    open_ = std::make_unique<Shard>();
    open_->plan.params = clip.params;
    open_->plan.fps = fps_;
    open_->path = fmt::format("videos/{}/{}.mp4", camera_, number_.text());
  }
  const ClipPlace place{number_, open_->frames};
  for (Mp4PacketPlan& packet : packets) packet.rank += static_cast<std::uint32_t>(open_->frames);
  open_->plan.packets.insert(open_->plan.packets.end(), packets.begin(), packets.end());
  open_->bytes += bytes;
  open_->frames += clip.frames;
  open_->clips.push_back({std::move(clip), episode_index, place.first_frame});
  return place;
}

Status VideoShards::close(const RunContext& context, JobWindow& jobs, Written& written) {
  if (open_ == nullptr) return ok_status();
  const std::shared_ptr<Shard> shard(std::move(open_));
  const auto memory = static_cast<std::uint64_t>(shard->frames) * 52 + (2 << 20);
  return jobs.run(
      context.pool, memory, [root = root_, camera = camera_, shard, stop = context.stop, &written] {
        return write_shard(root, camera, *shard, stop, written).with_context(shard->path);
      });
}

Status VideoShards::write_shard(const std::filesystem::path& root, const std::string& camera,
                                Shard& shard, std::stop_token stop, Written& written) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto sink, HashingSink::create(root, shard.path));
  ROPEWALK_ASSIGN_OR_RETURN(Mp4Writer writer, Mp4Writer::create(*sink, shard.plan));
  for (Entry& entry : shard.clips) {
    if (stop.stop_requested()) return cancelled();
    ROPEWALK_ASSIGN_OR_RETURN_CTX(std::string sha256, append_packets(entry.clip, writer, stop),
                                  fmt::format("clip of episode {}", entry.episode_index));
    written.add(ClipRecord{.path = shard.path,
                           .camera = camera,
                           .episode_index = entry.episode_index,
                           .first_frame = entry.first_frame,
                           .frames = entry.clip.frames,
                           .encoded = entry.clip.encoded_here,
                           .sha256 = std::move(sha256)});
    if (entry.clip.encoded_here) ROPEWALK_RETURN_IF_ERROR(remove_file(*entry.clip.file));
    entry.clip.reader.reset();
    entry.clip.index.reset();
  }
  ROPEWALK_RETURN_IF_ERROR(writer.finish());
  ROPEWALK_ASSIGN_OR_RETURN(WrittenFile file, sink->finish());
  written.add(std::move(file));
  return ok_status();
}

}  // namespace ropewalk::lerobot_internal
