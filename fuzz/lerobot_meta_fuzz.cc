// The parsers of LeRobot's metadata: info.json, episodes.jsonl, tasks.jsonl, episodes_stats.jsonl.
// The first byte chooses the parser, the rest is the file.
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "ropewalk/dataset/lerobot/episodes_internal.h"
#include "ropewalk/dataset/lerobot/info_internal.h"
#include "ropewalk/dataset/lerobot/tasks_internal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ropewalk;
  if (size == 0) return 0;
  const ByteSpan file(data + 1, size - 1);
  Limits limits;
  limits.max_json_bytes = 1 << 20;
  limits.max_json_line_bytes = 1 << 16;
  limits.max_episodes = 1 << 16;
  lerobot::FindingLog log((data[0] & 0x80) != 0);
  switch (data[0] & 0x03) {
    case 0: {
      const auto document =
          lerobot::parse_json_document(as_text(file), "meta/info.json", limits, log);
      if (!document.ok()) break;
      const auto generation =
          (data[0] & 0x04) != 0 ? LerobotGeneration::v30 : LerobotGeneration::v21;
      const auto info = lerobot::parse_info(*document, generation, log);
      if (!info.ok()) break;
      lerobot::check_splits(*info, 7, log);
      std::ignore = info->video_path.format({.episode_index = 12, .video_key = "k"});
      break;
    }
    case 1: {
      const auto rows =
          lerobot::EpisodesV2::parse(std::shared_ptr<const Source>(view_source(file)), limits, log);
      if (!rows.ok()) break;
      std::ignore = rows->note_oddities(limits, log);
      for (std::size_t i = 0; i < rows->size() && i < 100; ++i) {
        std::ignore = rows->info(i, lerobot::TaskList(), limits);
      }
      break;
    }
    case 2:
      std::ignore = lerobot::TaskList::parse_v2(*view_source(file), limits, log);
      break;
    case 3: {
      const auto statistics = lerobot::EpisodeStatisticsV2::parse(
          std::shared_ptr<const Source>(view_source(file)), limits);
      if (statistics.ok()) std::ignore = statistics->find(0, limits);
      break;
    }
  }
  std::ignore = log.refusal("fuzz");
  return 0;
}
