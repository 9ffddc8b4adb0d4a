// extract: streamed video becomes an MP4 with the same packets, pictures become files, numbers a
// table.
#include <arrow/api.h>
#include <gtest/gtest.h>

#include "ropewalk/engine/mcap/extract.h"
#include "ropewalk/format/image/image.h"
#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/video/video.h"

#include "tests/support/mcap_files.h"
#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kStart = 1'700'000'000'000'000'000;
constexpr int kFrames = 25;
constexpr int kSize = 64;

// A payload in CDR, little-endian.
class Cdr {
 public:
  template <typename T>
  Cdr& number(T value) {
    while ((bytes_.size() - 4) % sizeof(T) != 0) bytes_.push_back(0);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  Cdr& text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size() + 1));
    ByteWriter(bytes_).write(value);
    bytes_.push_back(0);
    return *this;
  }
  Cdr& data(ByteSpan value) {
    number(static_cast<std::uint32_t>(value.size()));
    ByteWriter(bytes_).write(value);
    return *this;
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  Bytes bytes_{0, 1, 0, 0};
};

constexpr std::string_view kTime =
    "\n================================================================================\n"
    "MSG: builtin_interfaces/Time\nint32 sec\nuint32 nanosec\n";

std::uint16_t add_topic(mcap::Writer& writer, const std::string& topic, const std::string& type,
                        const std::string& definition) {
  const auto schema = writer.add_schema(type, "ros2msg", as_bytes(definition));
  EXPECT_TRUE(schema.ok());
  const auto id =
      writer.add_channel({.schema_id = *schema, .topic = topic, .message_encoding = "cdr"});
  EXPECT_TRUE(id.ok());
  return *id;
}

Bytes picture(int i) {
  Bytes rgb(std::size_t{kSize} * kSize * 3);
  for (std::size_t k = 0; k < rgb.size(); ++k) {
    rgb[k] = static_cast<std::uint8_t>(static_cast<std::size_t>(i) * 5 + k / 50);
  }
  return rgb;
}

void append_start_code(Bytes& out, ByteSpan nal) {
  out.insert(out.end(), {0, 0, 0, 1});
  out.insert(out.end(), nal.begin(), nal.end());
}

// The packets of a clip as a robot streams them: Annex B, parameter sets before each keyframe.
std::vector<Bytes> streamed_frames(std::string* packet_sha) {
  Bytes file;
  const auto sink = memory_sink(file);
  auto encoder = VideoEncoder::create(*sink, kSize, kSize, {25, 1});
  EXPECT_TRUE(encoder.ok());
  for (int i = 0; i < kFrames; ++i) EXPECT_TRUE((*encoder)->write(picture(i)).ok());
  const auto encoded = (*encoder)->finish();
  EXPECT_TRUE(encoded.ok());
  *packet_sha = encoded->packet_sha256;
  const Bytes& avcc = encoded->params.extradata;
  Bytes parameter_sets;
  std::size_t at = 5;
  for (int group = 0; group < 2; ++group) {
    const int count = group == 0 ? avcc[at] & 0x1F : avcc[at];
    ++at;
    for (int i = 0; i < count; ++i) {
      const std::size_t size = std::size_t{avcc[at]} * 256 + avcc[at + 1];
      append_start_code(parameter_sets, ByteSpan(avcc).subspan(at + 2, size));
      at += 2 + size;
    }
  }
  const std::shared_ptr<const Source> source = memory_source(file);
  auto index = probe_mp4(*source);
  EXPECT_TRUE(index.ok());
  auto reader = Mp4PacketReader::open(std::make_shared<const Mp4Index>(std::move(*index)), source);
  std::vector<Bytes> frames;
  while (true) {
    const auto packet = reader->next();
    EXPECT_TRUE(packet.ok());
    if (!packet->has_value()) break;
    const VideoPacket& frame = packet->value();
    EXPECT_EQ(frame.ordinal, static_cast<std::int64_t>(frames.size()));  // no B-frames
    Bytes out;
    if (frame.keyframe) out = parameter_sets;
    for (std::size_t k = 0; k + 4 <= frame.data.size();) {
      const std::size_t size = std::size_t{frame.data[k]} << 24 |
                               std::size_t{frame.data[k + 1]} << 16 |
                               std::size_t{frame.data[k + 2]} << 8 | frame.data[k + 3];
      append_start_code(out, frame.data.subspan(k + 4, size));
      k += 4 + size;
    }
    frames.push_back(std::move(out));
  }
  return frames;
}

class McapExtract : public ::testing::Test {
 protected:
  std::string put(const Bytes& bytes) {
    test::write_file(dir_ / "in.mcap", as_text(bytes));
    return (dir_ / "in.mcap").string();
  }
  test::TempDir dir_;
  RunContext context_;
};

TEST_F(McapExtract, StreamedVideoBecomesMp4WithItsTimes) {
  std::string sha;
  std::vector<Bytes> frames = streamed_frames(&sha);
  ASSERT_EQ(frames.size(), std::size_t{kFrames});
  const auto time_of = [](std::size_t i) { return kStart + i * 40'000'000 + (i % 3) * 1'000'000; };
  const Bytes file = mcap::write_file({}, [&](mcap::Writer& writer) {
    const auto id = add_topic(writer, "/cam", "foxglove_msgs/msg/CompressedVideo",
                              "builtin_interfaces/Time timestamp\nstring frame_id\nuint8[] data\n"
                              "string format\n" +
                                  std::string(kTime));
    // A stream that is joined in the middle begins with frames that cannot be shown.
    for (std::size_t i = 0; i <= frames.size(); ++i) {
      const Bytes& frame = i == 0 ? frames[1] : frames[i - 1];
      const std::uint64_t time = i == 0 ? kStart - 40'000'000 : time_of(i - 1);
      Cdr payload;
      payload.number(std::int32_t{1}).number(std::uint32_t{2}).text("cam").data(frame).text("h264");
      ASSERT_TRUE(
          writer.write({.channel_id = id, .log_time = time, .publish_time = time}, payload.bytes())
              .ok());
    }
  });
  const std::string out = (dir_ / "cam.mp4").string();
  const auto report = extract_mcap({.input = put(file), .topic = "/cam", .output = out}, context_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->written, std::uint64_t{kFrames});
  EXPECT_EQ(report->width, kSize);
  EXPECT_EQ(report->losses, (std::vector<std::string>{"1 frames stand before the first keyframe"}));
  const auto index = probe_mp4(std::filesystem::path(out));
  ASSERT_TRUE(index.ok()) << index.status().to_string();
  EXPECT_EQ(index->params.codec, "h264");
  EXPECT_EQ(index->frame_count(), kFrames);
  EXPECT_EQ(index->params.height, kSize);
  // 25 frames in a second and 40 ms, give or take what the times wander.
  EXPECT_NEAR(index->fps.to_double(), 25.0, 0.2);
  const auto source = open_source(out);
  ASSERT_TRUE(source.ok());
  auto decoder = VideoDecoder::open(std::make_shared<const Mp4Index>(*index),
                                    std::shared_ptr<const Source>(open_source(out).value()));
  ASSERT_TRUE(decoder.ok()) << decoder.status().to_string();
  Bytes pixels(std::size_t{kSize} * kSize * 3);
  ASSERT_TRUE((*decoder)->read({kFrames - 1, kFrames}, pixels).ok());
  const Bytes expected = picture(kFrames - 1);
  std::int64_t difference = 0;
  for (std::size_t i = 0; i < pixels.size(); ++i) difference += std::abs(pixels[i] - expected[i]);
  EXPECT_LT(difference / static_cast<std::int64_t>(pixels.size()), 12);

  EXPECT_EQ(
      extract_mcap({.input = put(file), .topic = "/cam", .output = out}, context_).status().code(),
      StatusCode::already_exists);
  EXPECT_EQ(
      extract_mcap({.input = put(file), .topic = "/x", .output = out, .replace = true}, context_)
          .status()
          .code(),
      StatusCode::not_found);
  std::size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
    ++entries;
  }
  EXPECT_EQ(entries, 2U);  // in.mcap and cam.mp4
}

TEST_F(McapExtract, PicturesBecomeFiles) {
  const FrameShape shape{.height = kSize, .width = kSize, .channels = 3};
  const auto jpeg = encode_jpeg(shape, picture(3));
  ASSERT_TRUE(jpeg.ok());
  const std::string header =
      "std_msgs/Header header\nuint32 height\nuint32 width\nstring encoding\nuint8 is_bigendian\n"
      "uint32 step\nuint8[] data\n"
      "================================================================================\n"
      "MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n";
  const Bytes file = mcap::write_file({}, [&](mcap::Writer& writer) {
    const auto compressed = add_topic(
        writer, "/jpeg", "sensor_msgs/msg/CompressedImage",
        "std_msgs/Header header\nstring format\nuint8[] data\n"
        "================================================================================\n"
        "MSG: std_msgs/Header\nbuiltin_interfaces/Time stamp\nstring frame_id\n" +
            std::string(kTime));
    const auto raw =
        add_topic(writer, "/depth", "sensor_msgs/msg/Image", header + std::string(kTime));
    Cdr one;
    one.number(std::int32_t{1}).number(std::uint32_t{2}).text("f").text("jpeg").data(*jpeg);
    ASSERT_TRUE(writer.write({.channel_id = compressed, .log_time = 7}, one.bytes()).ok());
    Cdr two;
    two.number(std::int32_t{1}).number(std::uint32_t{2}).text("f");
    two.number(std::uint32_t{2}).number(std::uint32_t{3}).text("16UC1").number(std::uint8_t{0});
    two.number(std::uint32_t{6}).data(Bytes{1, 0, 2, 0, 3, 0, 4, 1, 5, 1, 6, 1});
    ASSERT_TRUE(writer.write({.channel_id = raw, .log_time = 9}, two.bytes()).ok());
  });
  const std::string in = put(file);
  const auto jpegs =
      extract_mcap({.input = in, .topic = "/jpeg", .output = (dir_ / "j").string()}, context_);
  ASSERT_TRUE(jpegs.ok()) << jpegs.status().to_string();
  EXPECT_FALSE(jpegs->lossy());
  EXPECT_EQ(test::read_file(dir_ / "j/000000_7.jpg"), as_text(*jpeg));
  const auto depth =
      extract_mcap({.input = in, .topic = "/depth", .output = (dir_ / "d").string()}, context_);
  ASSERT_TRUE(depth.ok()) << depth.status().to_string();
  const std::string png = test::read_file(dir_ / "d/000000_9.png");
  const auto image = decode_image(as_bytes(png));
  ASSERT_TRUE(image.ok());
  EXPECT_EQ(image->shape.width, 3);
  EXPECT_EQ(image->shape.bytes_per_sample, 2);
  EXPECT_EQ(image->pixels, (Bytes{1, 0, 2, 0, 3, 0, 4, 1, 5, 1, 6, 1}));
  EXPECT_EQ(
      extract_mcap({.input = in, .topic = "/jpeg", .output = (dir_ / "x.mp4").string()}, context_)
          .status()
          .code(),
      StatusCode::failed_precondition);
}

TEST_F(McapExtract, NumbersBecomeATable) {
  const Bytes file = mcap::write_file({}, [&](mcap::Writer& writer) {
    const auto id = add_topic(writer, "/joints", "demo/msg/Joints",
                              "string name\nfloat64[] position\nfloat32 load\nint8 mode\n"
                              "uint8[] blob\nbuiltin_interfaces/Time stamp\n" +
                                  std::string(kTime));
    for (std::uint32_t i = 0; i < 3; ++i) {
      Cdr payload;
      payload.text("arm").number(std::uint32_t{2}).number(0.5 + i).number(-1.0 * i);
      payload.number(1.5F).number(std::int8_t{-3}).data(Bytes{1});
      payload.number(static_cast<std::int32_t>(i)).number(std::uint32_t{7});
      ASSERT_TRUE(
          writer
              .write({.channel_id = id, .sequence = i, .log_time = 100 + i, .publish_time = 50},
                     payload.bytes())
              .ok());
    }
  });
  const std::string out = (dir_ / "t.parquet").string();
  const auto report =
      extract_mcap({.input = put(file), .topic = "/joints", .output = out}, context_);
  ASSERT_TRUE(report.ok()) << report.status().to_string();
  EXPECT_EQ(report->written, 3U);
  ASSERT_EQ(report->losses.size(), 1U);
  EXPECT_NE(report->losses[0].find("blob"), std::string::npos);
  const auto reader = ParquetReader::open(out);
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  const auto table = (*reader)->read_all();
  ASSERT_TRUE(table.ok());
  const auto& batch = **table;
  EXPECT_EQ(batch.num_rows(), 3);
  const auto column = [&](const char* name) {
    const auto found = batch.GetColumnByName(name);
    EXPECT_NE(found, nullptr) << name;
    return found;
  };
  EXPECT_EQ(static_cast<const arrow::UInt64Array&>(*column("log_time")).Value(2), 102U);
  EXPECT_EQ(static_cast<const arrow::UInt32Array&>(*column("sequence")).Value(1), 1U);
  EXPECT_EQ(static_cast<const arrow::StringArray&>(*column("name")).GetString(0), "arm");
  EXPECT_EQ(static_cast<const arrow::FloatArray&>(*column("load")).Value(0), 1.5F);
  EXPECT_EQ(static_cast<const arrow::Int64Array&>(*column("mode")).Value(0), -3);
  const auto& position = static_cast<const arrow::ListArray&>(*column("position"));
  const auto values = std::static_pointer_cast<arrow::DoubleArray>(position.value_slice(2));
  EXPECT_EQ(values->length(), 2);
  EXPECT_EQ(values->Value(0), 2.5);
  EXPECT_EQ(values->Value(1), -2.0);
}

}  // namespace
}  // namespace ropewalk
