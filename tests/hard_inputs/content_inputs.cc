// H11 to H14 and broken values: what the tables may hold.
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "ropewalk/base/core/rational.h"
#include "ropewalk/format/image/image.h"

#include "tests/hard_inputs/fixture.h"
#include "tests/hard_inputs/reports.h"
#include "tests/support/temp_dir.h"

namespace ropewalk::test {
namespace {

void check_ok(const arrow::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

Json parsed(const std::string& text) { return *parse_json(text); }

HardInput v21(std::string name, const std::function<void(Fixture&)>& change) {
  return {std::move(name), [change](const std::filesystem::path& root) {
            Fixture fixture = make_fixture();
            change(fixture);
            fixture.write_v21(root);
            return true;
          }};
}

std::shared_ptr<arrow::Array> floats(const FixtureEpisode& e, int each) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < e.frames * each; ++i) values.push_back(static_cast<float>(i));
  return float_array(values);
}

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> numbers(std::int64_t count, Value step) {
  Builder builder;
  for (std::int64_t i = 0; i < count; ++i) {
    check_ok(builder.Append(static_cast<Value>(i % 100 * step)));
  }
  return *builder.Finish();
}

/// An image feature stored in the table, one picture per row.
void add_pictures(Fixture& f, const std::function<std::optional<std::string>(int)>& bytes,
                  const std::function<std::optional<std::string>(int)>& path) {
  f.add_feature("wrist", "image", parsed("[8, 12, 3]"),
                parsed(R"(["height", "width", "channels"])"));
  f.set_column("wrist", [&](const FixtureEpisode& e) {
    std::vector<std::optional<std::string>> all_bytes, all_paths;
    for (int i = 0; i < e.frames; ++i) {
      all_bytes.push_back(bytes(i));
      all_paths.push_back(path(i));
    }
    return image_array(all_bytes, all_paths);
  });
}

std::optional<std::string> frame_name(int i) { return fmt::format("frame_{:06}.png", i); }
std::optional<std::string> none(int) { return std::nullopt; }
std::optional<std::string> png(int i) { return png_bytes(12, 8, i); }

std::string deep_png() {
  const FrameShape shape{.height = 8, .width = 12, .channels = 1, .bytes_per_sample = 2};
  const Bytes out = *encode_png(shape, Bytes(shape.frame_bytes(), 3));
  return {out.begin(), out.end()};
}

void set_timestamps(Fixture& f, const std::function<float(std::int64_t)>& at) {
  f.set_column("timestamp", [&](const FixtureEpisode& e) {
    std::vector<float> stamps;
    for (std::int64_t i = 0; i < e.frames; ++i) stamps.push_back(at(i));
    return float_array(stamps);
  });
}

}  // namespace

std::vector<HardInput> content_inputs() {
  std::vector<HardInput> out;
  out.push_back(v21("h11_variable_lists", [](Fixture& f) {
    f.set_column("action", [](const FixtureEpisode& e) { return variable_list(floats(e, 6), 6); });
  }));
  out.push_back(v21("h11_large_lists_of_double", [](Fixture& f) {
    f.set_column("action", [](const FixtureEpisode& e) {
      return large_list(
          double_array(std::vector<double>(static_cast<std::size_t>(e.frames) * 6, 1)), 6);
    });
  }));
  out.push_back(v21("h11_list_of_one_for_scalar", [](Fixture& f) {
    f.set_column("timestamp", [](const FixtureEpisode& e) {
      std::vector<float> stamps;
      for (std::int64_t i = 0; i < e.frames; ++i) stamps.push_back(frame_timestamp_f32(i, {30, 1}));
      return variable_list(float_array(stamps), 1);
    });
  }));
  out.push_back(v21("h11_int32_index", [](Fixture& f) {
    f.set_column("frame_index", [](const FixtureEpisode& e) {
      arrow::Int32Builder builder;
      for (int i = 0; i < e.frames; ++i) check_ok(builder.Append(i));
      return *builder.Finish();
    });
  }));
  out.push_back(v21("h11_null_in_vector", [](Fixture& f) {
    f.set_column("action", [](const FixtureEpisode& e) {
      arrow::FloatBuilder builder;
      for (std::int64_t i = 0; i < e.frames * 6; ++i) {
        check_ok(i == 6 * 4 + 2 ? builder.AppendNull() : builder.Append(1));
      }
      return fixed_list(*builder.Finish(), 6);
    });
  }));
  out.push_back(v21("h11_null_scalar", [](Fixture& f) {
    f.set_column("next.done", [](const FixtureEpisode& e) {
      arrow::BooleanBuilder builder;
      for (std::int64_t i = 0; i < e.frames; ++i) {
        check_ok(i == 3 ? builder.AppendNull() : builder.Append(false));
      }
      return *builder.Finish();
    });
  }));
  out.push_back(v21("h11_ragged_vector", [](Fixture& f) {
    f.set_column("action", [](const FixtureEpisode& e) {
      arrow::ListBuilder builder(arrow::default_memory_pool(),
                                 std::make_shared<arrow::FloatBuilder>());
      auto& values = static_cast<arrow::FloatBuilder&>(*builder.value_builder());
      for (std::int64_t i = 0; i < e.frames; ++i) {
        check_ok(builder.Append());
        for (int d = 0; d < (i == 2 ? 5 : 6); ++d) check_ok(values.Append(1));
      }
      return *builder.Finish();
    });
  }));
  out.push_back(v21("h11_text_for_number", [](Fixture& f) {
    f.set_column("next.done", [](const FixtureEpisode& e) {
      return string_array(std::vector<std::optional<std::string>>(
          static_cast<std::size_t>(e.frames), std::string("yes")));
    });
  }));

  out.push_back(v21("h12_png_bytes", [](Fixture& f) { add_pictures(f, png, frame_name); }));
  out.push_back(v21("h12_jpeg_with_absolute_path", [](Fixture& f) {
    add_pictures(
        f, [](int i) { return jpeg_bytes(12, 8, i); },
        [](int i) { return fmt::format("/srv/data/data/frame_{:06}.png", i); });
  }));
  out.push_back(v21("h12_path_only", [](Fixture& f) {
    add_pictures(f, none, frame_name);
    for (const FixtureEpisode& e : f.episodes) {
      for (int i = 0; i < e.frames; ++i) {
        f.files.emplace_back(fmt::format("images/wrist/episode_{:06}/frame_{:06}.png", e.index, i),
                             *png(i));
      }
    }
  }));
  out.push_back(v21("h12_path_leaves_the_root", [](Fixture& f) {
    add_pictures(f, none, [](int) { return std::string("../../secret.png"); });
  }));
  out.push_back(v21("h12_picture_missing", [](Fixture& f) { add_pictures(f, none, frame_name); }));
  out.push_back(v21("h12_sixteen_bits", [](Fixture& f) {
    add_pictures(
        f, [](int) { return deep_png(); }, none);
  }));
  out.push_back(v21("h12_no_picture", [](Fixture& f) {
    add_pictures(
        f, [](int i) { return i == 5 ? std::string("not a picture") : *png(i); }, none);
  }));
  out.push_back(v21("h12_image_shape_differs", [](Fixture& f) {
    add_pictures(f, png, none);
    f.feature("wrist").set("shape", parsed("[3, 80, 120]"));
  }));

  out.push_back(v21("h13_kinds_of_columns", [](Fixture& f) {
    f.add_feature("note", "string", parsed("[1]"));
    f.set_column("note", [](const FixtureEpisode& e) {
      return string_array(std::vector<std::optional<std::string>>(
          static_cast<std::size_t>(e.frames), std::string("a\nb")));
    });
    f.add_feature("depth", "uint16", parsed("[4, 5]"));
    f.set_column("depth", [](const FixtureEpisode& e) {
      return variable_list(
          variable_list(numbers<arrow::UInt16Builder, std::uint16_t>(e.frames * 20, 3), 5), 4);
    });
    f.add_feature("grid", "int8", parsed("[2, 3]"));
    f.set_column("grid", [](const FixtureEpisode& e) {  // stored flat
      return fixed_list(numbers<arrow::Int8Builder, std::int8_t>(e.frames * 6, 1), 6);
    });
    f.add_feature("bare", "float32", parsed("[]"));
    f.set_column("bare", [](const FixtureEpisode& e) { return floats(e, 1); });
    f.add_feature("shapeless", "float32", nullptr);
    f.set_column("shapeless", [](const FixtureEpisode& e) { return floats(e, 1); });
    f.add_feature("empty", "float32", parsed("[0]"));
    f.add_feature("deep", "float32", parsed("[1, 2, 1, 2, 1, 2]"));
    f.set_column("deep", [](const FixtureEpisode& e) {
      auto column = floats(e, 8);
      for (const int each : {2, 1, 2, 1, 2, 1}) column = variable_list(column, each);
      return column;
    });
    f.add_feature("complex", "complex64", parsed("[1]"));
  }));

  out.push_back(v21("h14_extra_and_missing_columns", [](Fixture& f) {
    f.set_column("reward", [](const FixtureEpisode& e) { return floats(e, 1); });
    f.remove_column("next.done");
  }));
  out.push_back(v21("h14_columns_shuffled", [](Fixture& f) {
    for (FixtureEpisode& e : f.episodes) std::ranges::reverse(e.columns);
  }));
  out.push_back(v21("h14_columns_differ_per_file", [](Fixture& f) {
    f.set_column("action", [](const FixtureEpisode& e) -> std::shared_ptr<arrow::Array> {
      if (e.index == 0) return fixed_list(floats(e, 6), 6);
      return variable_list(
          double_array(std::vector<double>(static_cast<std::size_t>(e.frames) * 6, 1)), 6);
    });
    std::erase_if(f.episode(1).columns, [](const auto& c) { return c.first == "next.done"; });
  }));
  out.push_back(v21("h14_default_columns_missing", [](Fixture& f) {
    for (const char* name : {"timestamp", "frame_index", "episode_index", "index", "task_index"}) {
      f.remove_column(name);
    }
  }));

  out.push_back(v21("values_not_finite", [](Fixture& f) {
    f.set_column("action", [](const FixtureEpisode& e) {
      std::vector<float> values(static_cast<std::size_t>(e.frames) * 6, 1);
      values[13] = std::numeric_limits<float>::quiet_NaN();
      values[14] = std::numeric_limits<float>::infinity();
      return fixed_list(float_array(values), 6);
    });
  }));
  out.push_back(v21("timestamps_since_epoch", [](Fixture& f) {
    set_timestamps(f, [](std::int64_t i) { return 1.7e9F + static_cast<float>(i) / 30.0F; });
  }));
  out.push_back(v21("timestamps_repeated", [](Fixture& f) {
    set_timestamps(f, [](std::int64_t i) { return frame_timestamp_f32(i / 2 * 2, {30, 1}); });
  }));
  out.push_back(v21("timestamps_with_jitter", [](Fixture& f) {
    set_timestamps(f, [](std::int64_t i) {
      return frame_timestamp_f32(i, {30, 1}) + (i % 2 == 1 ? 0.001F : 0.0F);
    });
  }));
  out.push_back(v21("task_index_unknown", [](Fixture& f) {
    f.set_column("task_index", [](const FixtureEpisode& e) {
      std::vector<std::int64_t> values(static_cast<std::size_t>(e.frames), 0);
      values.back() = 4;
      return int64_array(values);
    });
  }));
  out.push_back(v21("numbers_of_another_dataset", [](Fixture& f) {
    f.set_column("episode_index", [](const FixtureEpisode& e) {
      return int64_array(
          std::vector<std::int64_t>(static_cast<std::size_t>(e.frames), e.index + 7));
    });
    f.set_column("index", [](const FixtureEpisode& e) {
      std::vector<std::int64_t> values;
      for (std::int64_t i = 0; i < e.frames; ++i) values.push_back(i);
      return int64_array(values);
    });
  }));
  out.push_back(v21("frame_index_gap", [](Fixture& f) {
    f.set_column("frame_index", [](const FixtureEpisode& e) {
      std::vector<std::int64_t> values;
      for (std::int64_t i = 0; i < e.frames; ++i) values.push_back(i < 3 ? i : i + 2);
      return int64_array(values);
    });
  }));
  return out;
}

}  // namespace ropewalk::test
