// H01 to H07, H10, H15, H20 and the empty datasets of H09: what info.json and the lists of rows may
// hold.
#include <fmt/format.h>

#include "tests/hard_inputs/fixture.h"
#include "tests/hard_inputs/reports.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::test {
namespace {

Json parsed(const std::string& text) { return *parse_json(text); }

HardInput v21(std::string name, const std::function<void(Fixture&)>& change) {
  return {std::move(name), [change](const std::filesystem::path& root) {
            Fixture fixture = make_fixture();
            change(fixture);
            fixture.write_v21(root);
            return true;
          }};
}

void add_pair(Fixture& fixture, const std::string& name, const Json& names) {
  fixture.add_feature(name, "float32", parsed("[2]"), names);
  fixture.set_column(name, [](const FixtureEpisode& episode) {
    return fixed_list(float_array(std::vector<float>(static_cast<std::size_t>(episode.frames) * 2)),
                      2);
  });
}

std::string info_with(const std::string& from, const std::string& to) {
  std::string text = make_fixture().info.dump(4);
  const std::size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::vector<HardInput> metadata_inputs() {
  std::vector<HardInput> out;
  out.push_back(v21("h01_names", [](Fixture& f) {
    add_pair(f, "motors", parsed(R"({"motors": ["x", "y"]})"));
    add_pair(f, "axes", parsed(R"({"axes": ["x", "y"]})"));
    add_pair(f, "indexed", parsed(R"({"y": 1, "x": 0})"));
    add_pair(f, "nested", parsed(R"([["x", "y"]])"));
    add_pair(f, "too_many", parsed(R"(["x", "y", "z"])"));
    add_pair(f, "null_names", {});
    add_pair(f, "no_names", {});
    f.feature("no_names").erase("names");
    add_pair(f, "name_key", {});
    f.feature("name_key").erase("names");
    f.feature("name_key").set("name", parsed(R"(["x", "y"])"));
  }));

  out.push_back(v21("h02_camera_channels_first", [](Fixture& f) {
    f.feature("observation.images.top").set("shape", parsed("[3, 48, 64]"));
    f.feature("observation.images.top").set("names", parsed(R"(["channels","height","width"])"));
  }));
  out.push_back(v21("h02_camera_names_contradict", [](Fixture& f) {
    f.feature("observation.images.top").set("names", parsed(R"(["channels","height","width"])"));
  }));
  out.push_back(v21("h02_camera_two_extents", [](Fixture& f) {
    f.feature("observation.images.top").set("shape", parsed("[48, 64]"));
  }));
  out.push_back(v21("h02_camera_other_size", [](Fixture& f) {
    f.feature("observation.images.top").set("shape", parsed("[3, 720, 960]"));
  }));

  out.push_back(v21("h03_splits", [](Fixture& f) {
    f.info.set("splits", parsed(R"({"train": "None", "test": "0:1000000", "val": "0:3603",
                                    "train+val": "0:2", "odd": 5, "turned": "2:1"})"));
  }));

  out.push_back(v21("h04_totals_and_null_video_path", [](Fixture& f) {
    f.info.set("video_path", nullptr);
    f.info.set("total_videos", 0);
    f.info.set("total_frames", 99);
    f.info.set("total_tasks", 5);
  }));

  out.push_back(v21("h06_no_episode_statistics", [](Fixture& f) { f.has_statistics = false; }));
  out.push_back(v21("h06_v20_without_statistics", [](Fixture& f) {
    f.has_statistics = false;
    f.info.set("codebase_version", "v2.0");
  }));
  out.push_back(v21("h06_parts_missing", [](Fixture& f) {
    const Json part = parsed(R"({"action": {"min": [0], "max": [1], "mean": [0], "std": [1]}})");
    f.episode(0).statistics = part;
    f.episode(1).statistics = part;
  }));

  out.push_back(v21("h07_task_texts", [](Fixture& f) {
    f.tasks = {{0, "line\nbreak"},
               {1, "tab\there"},
               {2,
                "sep\xE2\x80\xA8"
                "arator"},
               {3, "\xF0\x9F\xA4\x96 robot"},
               {4, "\"quoted\""},
               {5, ""},
               {6, "\"quoted\""}};
    f.info.set("total_tasks", 7);
  }));
  out.push_back(v21("h07_task_numbers", [](Fixture& f) {
    f.tasks = {{7, "seven"}, {0, "zero"}, {3, "three"}};
    f.info.set("total_tasks", 3);
  }));
  out.push_back(v21("h07_no_tasks", [](Fixture& f) {
    f.tasks.clear();
    f.info.set("total_tasks", 0);
    f.removed = {"meta/tasks.jsonl"};
  }));
  out.push_back(v21("h07_task_conflict", [](Fixture& f) {
    f.tasks = {{0, "first"}, {0, "second"}};
  }));

  out.push_back({"h09_no_episodes", [](const std::filesystem::path& root) {
                   make_fixture({}).write_v21(root);
                   return true;
                 }});
  out.push_back({"h09_no_episodes_v3", [](const std::filesystem::path& root) {
                   Fixture f = make_fixture({});
                   f.info.set("codebase_version", "v3.0");
                   f.info.set("data_path",
                              "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet");
                   write_file(root / "meta/info.json", f.info.dump(4));
                   return true;
                 }});

  for (const auto& [name, rate] : std::vector<std::pair<std::string, double>>{
           {"integral", 30.0}, {"ntsc", 29.97}, {"odd", 29.888130584676002}}) {
    out.push_back(v21("h10_fps_" + name, [rate](Fixture& f) {
      f.info.set("fps", rate);
      f.fps = rate;
      f.set_column("timestamp", [rate](const FixtureEpisode& e) {
        std::vector<float> stamps;
        for (std::int64_t i = 0; i < e.frames; ++i) {
          stamps.push_back(static_cast<float>(static_cast<double>(i) / rate));
        }
        return float_array(stamps);
      });
    }));
  }
  out.push_back(v21("h10_fps_60_video_30", [](Fixture& f) {
    f.info.set("fps", 60);
    f.set_column("timestamp", [](const FixtureEpisode& e) {
      std::vector<float> stamps;
      for (std::int64_t i = 0; i < e.frames; ++i) stamps.push_back(static_cast<float>(i) / 60.0F);
      return float_array(stamps);
    });
  }));
  out.push_back(v21("h10_fps_zero", [](Fixture& f) { f.info.set("fps", 0); }));

  out.push_back(v21("h15_chunks_of_one", [](Fixture& f) {
    f.info.set("chunks_size", 1);
    f.info.set("total_chunks", 2);
  }));
  out.push_back({"h15_all_in_chunk_000", [](const std::filesystem::path& root) {
                   Fixture f = make_fixture();
                   f.write_v21(root);
                   f.info.set("chunks_size", 1);
                   write_file(root / "meta/info.json", f.info.dump());
                   return true;
                 }});
  out.push_back(v21("h15_sizes_absent_or_small", [](Fixture& f) {
    f.info.erase("chunks_size");
    f.info.set("data_files_size_in_mb", 0.028);
    f.info.set("video_files_size_in_mb", 0);
  }));
  out.push_back(v21("h15_chunks_size_zero", [](Fixture& f) { f.info.set("chunks_size", 0); }));

  out.push_back(v21("h20_no_version_no_paths", [](Fixture& f) {
    f.info.erase("codebase_version");
    f.info.erase("data_path");
    f.info.erase("video_path");
    f.info.set("version", "2.1");
  }));
  out.push_back(v21("h20_version_of_the_software",
                    [](Fixture& f) { f.info.set("codebase_version", "0.4.0"); }));
  out.push_back(v21("h20_unknown_keys", [](Fixture& f) {
    f.info.set("license", "apache-2.0");
    f.feature("observation.images.top").set("info", parsed(R"({"codec": "avc1", "pix_fmt": "x"})"));
  }));
  out.push_back(v21("h20_byte_order_mark", [](Fixture& f) {
    f.files = {{"meta/info.json", "\xEF\xBB\xBF" + f.info.dump()}};
  }));
  out.push_back(v21("h20_nan_and_duplicated_keys", [](Fixture& f) {
    f.files = {
        {"meta/info.json", info_with("\"robot_type\"",
                                     "\"loss\": NaN, \"best\": -Infinity, \"robot_type\": \"g0\", "
                                     "\"robot_type\"")}};
  }));
  out.push_back(v21("h20_names_with_slash_and_task", [](Fixture& f) {
    add_pair(f, "arm/left", {});
    add_pair(f, "task", {});
    add_pair(f, "../up", {});
  }));
  out.push_back(v21("h20_template_leaves_the_root",
                    [](Fixture& f) { f.info.set("data_path", "../{episode_index:06d}.parquet"); }));
  out.push_back(v21("h20_template_absolute", [](Fixture& f) {
    f.info.set("video_path", "/videos/{video_key}/{episode_index:06d}.mp4");
  }));
  out.push_back(v21("h20_template_unknown_placeholder", [](Fixture& f) {
    f.info.set("data_path", "data/{shard:03d}/{episode_index:06d}.parquet");
  }));
  out.push_back(v21("h20_video_key_leaves_the_root", [](Fixture& f) {
    f.add_feature("../../secret", "video", parsed("[48, 64, 3]"));
  }));
  out.push_back(v21("h20_key_in_template", [](Fixture& f) {
    f.info.set(
        "video_path",
        "videos/chunk-{episode_chunk:03d}/observation.images.top/episode_{episode_index:06}.mp4");
  }));
  out.push_back(v21("h20_default_feature_odd", [](Fixture& f) {
    f.feature("timestamp").set("dtype", "float64");
    f.info.find("features")->erase("index");
  }));
  out.push_back(v21("h20_no_features", [](Fixture& f) { f.info.erase("features"); }));
  out.push_back(v21("h20_not_json", [](Fixture& f) {
    f.files = {{"meta/info.json", "{\"fps\": 30"}};
  }));
  out.push_back(v21("rows_broken_lines", [](Fixture& f) {
    f.files = {{"meta/episodes.jsonl",
                "\xEF\xBB\xBF" + f.episode(0).row.dump() + "\r\n\nnull\n{\"episode_index\": x}\n" +
                    f.episode(1).row.dump() + "\n{\"episode_index\": 2, \"len"}};
  }));
  out.push_back(v21("rows_with_nan", [](Fixture& f) {
    f.files = {{"meta/episodes.jsonl",
                "{\"episode_index\": 0, \"tasks\": [], \"length\": 9, \"score\": NaN}\n"
                "{\"episode_index\": 1, \"tasks\": [], \"length\": 6, \"a\": 1, \"a\": 2}\n"}};
  }));
  out.push_back(v21("rows_without_length", [](Fixture& f) { f.episode(1).row.erase("length"); }));
  return out;
}

}  // namespace ropewalk::test
