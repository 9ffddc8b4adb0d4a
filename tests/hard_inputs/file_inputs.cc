// H05, H08, H09, H16 to H19: what the files may be.
#include <fmt/format.h>

#include "ropewalk/format/parquet/parquet.h"

#include "tests/hard_inputs/fixture.h"
#include "tests/hard_inputs/reports.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::test {
namespace {

constexpr const char* kCamera = "observation.images.top";
constexpr const char* kVideo0 = "videos/chunk-000/observation.images.top/episode_000000.mp4";
constexpr const char* kVideo1 = "videos/chunk-000/observation.images.top/episode_000001.mp4";
constexpr const char* kTable1 = "data/chunk-000/episode_000001.parquet";
constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f"
    "32b1258daaa5e2ca24d17e2393\nsize 12345\n";

HardInput v21(std::string name, const std::function<void(Fixture&)>& change,
              const std::function<bool(const std::filesystem::path&)>& after = {}) {
  return {std::move(name), [change, after](const std::filesystem::path& root) {
            Fixture fixture = make_fixture();
            change(fixture);
            fixture.write_v21(root);
            return !after || after(root);
          }};
}

HardInput v3(std::string name, const std::function<void(Fixture&)>& change,
             const std::function<bool(const std::filesystem::path&)>& after = {}) {
  return {std::move(name), [change, after](const std::filesystem::path& root) {
            Fixture fixture = make_fixture();
            change(fixture);
            fixture.write_v3(root);
            return !after || after(root);
          }};
}

/// Encodes the first clip again with other arguments.
HardInput encoded(std::string name, const std::string& arguments) {
  return v21(
      std::move(name), [](Fixture&) {},
      [arguments](const std::filesystem::path& root) {
        const std::string to = (root / kVideo0).string();
        const std::string from = to + ".in.mp4";
        std::filesystem::rename(to, from);
        const bool made = run_ffmpeg(fmt::format("-i {} {} {}", from, arguments, to));
        std::filesystem::remove(from);
        return made;
      });
}

void cut_file(const std::filesystem::path& path, std::uintmax_t keep) {
  std::filesystem::resize_file(path, keep);
}

/// Replaces columns of a Parquet file.
void rewrite(const std::filesystem::path& path, const std::function<void(Columns&)>& change,
             const std::vector<std::int64_t>& group_rows = {}) {
  Columns columns;
  {
    const auto reader = *ParquetReader::open(path);
    const auto batch = *reader->read_all();
    for (int i = 0; i < batch->num_columns(); ++i) {
      columns.emplace_back(batch->column_name(i), batch->column(i));
    }
  }
  change(columns);
  std::filesystem::remove(path);
  write_parquet(path, columns, group_rows);
}

void set(Columns& columns, const std::string& name, std::shared_ptr<arrow::Array> array) {
  for (auto& [known, column] : columns) {
    if (known == name) column = array;
  }
}

constexpr const char* kMeta = "meta/episodes/chunk-000/file-000.parquet";
constexpr const char* kData = "data/chunk-000/file-000.parquet";

}  // namespace

std::vector<HardInput> file_inputs() {
  std::vector<HardInput> out;
  out.push_back(v21("h05_one_frame_more", [](Fixture& f) { ++f.episode(0).frames; }));
  out.push_back(v21("h05_one_frame_less", [](Fixture& f) { --f.episode(1).frames; }));
  out.push_back(v21("h05_three_frames_more", [](Fixture& f) { f.episode(0).frames += 3; }));
  out.push_back(v21("h05_length_differs", [](Fixture& f) { f.episode(0).row.set("length", 12); }));
  out.push_back(v3("h05_v3_one_frame_less", [](Fixture& f) { --f.episode(1).frames; }));

  out.push_back(v21("h08_gaps", [](Fixture& f) {
    f = make_fixture({3, 3, 3, 3, 3, 3});
    std::erase_if(f.episodes, [](const FixtureEpisode& e) {
      return e.index == 1 || e.index == 3 || e.index == 4;
    });
  }));
  out.push_back(v21("h08_duplicates_equal", [](Fixture& f) {
    f.files = {{"meta/episodes.jsonl", f.episode(0).row.dump() + "\n" + f.episode(1).row.dump() +
                                           "\n" + f.episode(0).row.dump_spaced() + "\n"}};
  }));
  out.push_back(v21("h08_duplicates_differ", [](Fixture& f) {
    Json other = f.episode(0).row;
    other.set("length", 8);
    f.files = {{"meta/episodes.jsonl", f.episode(0).row.dump() + "\n" + f.episode(1).row.dump() +
                                           "\n" + other.dump() + "\n"}};
  }));
  out.push_back(v21("h08_listed_without_files", [](Fixture& f) {
    f.episode(1).has_table = false;
    f.episode(1).has_videos = false;
  }));
  out.push_back(v21("h08_cameras_with_different_counts", [](Fixture& f) {
    f.add_feature("wrist", "video", *parse_json("[48, 64, 3]"),
                  *parse_json(R"(["height", "width", "channels"])"));
    f.cameras.emplace_back("wrist");
    f.removed = {"videos/chunk-000/wrist/episode_000001.mp4"};
  }));
  out.push_back(v21("h08_camera_not_recorded", [](Fixture& f) {
    f.add_feature("wrist", "video", *parse_json("[48, 64, 3]"),
                  *parse_json(R"(["height", "width", "channels"])"));
    f.cameras.emplace_back("wrist");
    f.episode(1).row.set("video_keys", Json(Json::Array{Json(kCamera)}));
    f.removed = {"videos/chunk-000/wrist/episode_000001.mp4"};
  }));
  out.push_back({"h09_empty_and_one_frame", [](const std::filesystem::path& root) {
                   make_fixture({4, 0, 1}).write_v21(root);
                   write_video(root / kVideo1, 64, 48, 30, 0, 1);
                   return true;
                 }});

  out.push_back(encoded("h16_mpeg4", "-c:v mpeg4 -q:v 3"));
  out.push_back(encoded("h16_vp9", "-c:v libvpx-vp9"));
  out.push_back(
      encoded("h16_hevc_10_bits", "-c:v libx265 -pix_fmt yuv420p10le -x265-params log-level=none"));
  out.push_back(encoded("h16_yuv444", "-c:v libx264 -pix_fmt yuv444p"));
  out.push_back(encoded("h16_b_frames", "-c:v libx264 -bf 3 -g 30"));
  out.push_back(encoded("h16_full_range", "-c:v libx264 -vf scale=out_range=full -color_range pc"));
  out.push_back(encoded("h16_odd_size", "-c:v libx264 -vf scale=63:47 -pix_fmt yuv444p"));
  out.push_back(v21("h16_codec_strings", [](Fixture& f) {
    f.feature(kCamera).set("info", *parse_json(R"({"video.codec": "libx264", "codec": "avc1"})"));
  }));

  out.push_back(encoded("h17_first_frame_late", "-c:v copy -output_ts_offset 0.5"));
  out.push_back(encoded("h17_audio_track",
                        "-f lavfi -i anullsrc -shortest -map 0:v -map 1:a -c:v copy -c:a aac"));
  out.push_back(
      encoded("h17_variable_rate", "-c:v libx264 -vf setpts='N*N*0.01/TB' -fps_mode passthrough"));
  out.push_back(v21(
      "h17_cut_in_the_media", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        cut_file(root / kVideo1, std::filesystem::file_size(root / kVideo1) - 40);
        return true;
      }));
  out.push_back(v21(
      "h17_cut_before_the_index", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        cut_file(root / kVideo1, 64);
        return true;
      }));
  out.push_back(v21(
      "h17_trailing_garbage", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        const std::string bytes = read_file(root / kVideo1) + "garbage";
        write_file(root / kVideo1, bytes);
        return true;
      }));
  out.push_back(v21(
      "h17_no_video_stream", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        return run_ffmpeg("-f lavfi -i anullsrc -t 0.3 -c:a aac " + (root / kVideo1).string());
      }));

  out.push_back(v3("h18_clean", [](Fixture&) {}));
  out.push_back(v3(
      "h18_task_index_unnamed", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / "meta/tasks.parquet", [](Columns& c) { c[1].first = "__index_level_0__"; });
        return true;
      }));
  out.push_back(v3(
      "h18_statistics_as_int64", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) {
          set(c, "stats/index/min", variable_list(int64_array({0, 9}), 1));
        });
        return true;
      }));
  out.push_back(v3(
      "h18_meta_columns_missing", [](Fixture& f) { f.has_statistics = false; },
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) {
          std::erase_if(c, [](const auto& column) {
            return column.first == "tasks" || column.first.starts_with("meta/");
          });
        });
        return true;
      }));
  out.push_back(v3(
      "h18_wrong_dataset_range", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) { set(c, "dataset_to_index", int64_array({9, 16})); });
        return true;
      }));
  out.push_back(v3(
      "h18_stale_file_index", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) { set(c, "data/file_index", int64_array({0, 1})); });
        return true;
      }));
  out.push_back(v3(
      "h18_from_timestamp_drift", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) {
          set(c, (std::string("videos/") + kCamera) + "/from_timestamp", double_array({0, 0.3001}));
        });
        return true;
      }));
  out.push_back(v3(
      "h18_from_timestamp_wrong", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) {
          set(c, (std::string("videos/") + kCamera) + "/from_timestamp", double_array({0, 460.0}));
          set(c, (std::string("videos/") + kCamera) + "/to_timestamp", double_array({0.3, 460.2}));
        });
        return true;
      }));
  out.push_back(v3(
      "h18_rows_out_of_order", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kData, [](Columns& c) {
          for (auto& [name, column] : c) {
            column =
                *arrow::Concatenate({column->Slice(9), column->Slice(5, 4), column->Slice(0, 5)});
          }
        });
        return true;
      }));
  out.push_back(v3(
      "h18_rows_without_meta", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        rewrite(root / kMeta, [](Columns& c) {
          for (auto& [name, column] : c) column = column->Slice(0, 1);
        });
        return true;
      }));
  out.push_back(v3("h18_meta_without_rows", [](Fixture& f) { f.episode(1).has_table = false; }));

  out.push_back(v21(
      "h19_table_without_footer", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        cut_file(root / kTable1, std::filesystem::file_size(root / kTable1) - 9);
        return true;
      }));
  out.push_back(v21("h19_lfs_pointers", [](Fixture& f) {
    f.files = {{kTable1, kPointer}, {kVideo0, kPointer}};
  }));
  out.push_back(v21("h19_interrupted_recording", [](Fixture& f) {
    f.info.set("total_episodes", 3);
    f.info.set("total_frames", 21);
    f.info.set("splits", *parse_json(R"({"train": "0:3"})"));
    f.files = {{"images/observation.images.top/episode_000002/frame_000000.png", "x"},
               {"meta/info.json.bak", "{}"},
               {"tmp_video.mp4", "x"},
               {"data/chunk-000/episode_000002.parquet", "PAR1"}};
  }));
  out.push_back(v21("h19_nested_dataset", [](Fixture& f) {
    f.files = {{"second/meta/info.json", "{}"}};
  }));
  out.push_back(v21("h19_only_a_backup", [](Fixture& f) {
    f.files = {{"meta/info.json.bak", "{}"}};
    f.removed = {"meta/info.json"};
  }));
  out.push_back(v3(
      "h19_v3_data_without_footer", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        cut_file(root / kData, std::filesystem::file_size(root / kData) - 9);
        return true;
      }));
  out.push_back(v3(
      "h19_v3_meta_without_footer", [](Fixture&) {},
      [](const std::filesystem::path& root) {
        cut_file(root / kMeta, std::filesystem::file_size(root / kMeta) - 9);
        return true;
      }));
  return out;
}

}  // namespace ropewalk::test
