#include <sys/stat.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/base/io/fault.h"
#include "ropewalk/format/hdf5/reader.h"
#include "ropewalk/format/hdf5/writer.h"

#include "tests/support/temp_dir.h"

namespace ropewalk {
namespace {

using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
Bytes bytes_of(const std::vector<T>& values) {
  Bytes out(values.size() * sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}

Bytes frame(std::size_t bytes, std::int64_t ordinal) {
  Bytes out(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    out[i] = static_cast<std::uint8_t>(i * 7 + static_cast<std::size_t>(ordinal) * 31 + i / 97);
  }
  return out;
}

constexpr std::int64_t kMiB = 1 << 20;

/// Writes a small file in the shape of an export and returns its record.
Result<Hdf5FileRecord> write_sample(const std::filesystem::path& path,
                                    Hdf5Compression compression = {}) {
  ROPEWALK_ASSIGN_OR_RETURN(Hdf5Writer writer, Hdf5Writer::create(path));
  ROPEWALK_RETURN_IF_ERROR(writer.create_group("columns"));
  ROPEWALK_RETURN_IF_ERROR(writer.create_group("columns/item_000000"));
  ROPEWALK_RETURN_IF_ERROR(
      writer.set_text_attribute("columns/item_000000", "key", "observation.state"));
  ROPEWALK_RETURN_IF_ERROR(writer.set_text_attribute("columns/item_000000", "kind", "array"));
  const Bytes state = bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6});
  ROPEWALK_RETURN_IF_ERROR(
      writer.write_array("columns/item_000000/value", {DType::float32, {3, 2}, state}));
  ROPEWALK_RETURN_IF_ERROR(writer.create_group("images"));
  const std::vector<std::int64_t> shape{6, 8, 3};
  ROPEWALK_ASSIGN_OR_RETURN(
      const auto frames, writer.create_frames("images/top", shape, 3, DType::uint8, compression));
  for (std::int64_t i = 0; i < 3; ++i) ROPEWALK_RETURN_IF_ERROR(frames->write(i, frame(144, i)));
  ROPEWALK_RETURN_IF_ERROR(frames->finish());
  ROPEWALK_RETURN_IF_ERROR(writer.write_text("task", "fold the läge cloth"));
  ROPEWALK_ASSIGN_OR_RETURN(const Hdf5ClosedFile closed, writer.close());
  return seal(closed);
}

TEST(Hdf5, RoundTripsEveryNumericType) {
  const TempDir dir("hdf5");
  const auto path = dir / "types.hdf5";
  const std::vector<DType> types{DType::boolean, DType::int8,    DType::int16,   DType::int32,
                                 DType::int64,   DType::uint8,   DType::uint16,  DType::uint32,
                                 DType::uint64,  DType::float16, DType::float32, DType::float64};
  std::vector<Bytes> data;
  auto writer = Hdf5Writer::create(path);
  ASSERT_TRUE(writer.ok()) << writer.status().to_string();
  for (const DType type : types) {
    Bytes bytes = frame(6 * dtype_size(type), 5);
    if (type == DType::boolean) {
      for (auto& b : bytes) b &= 1;
    }
    if (type == DType::float16)
      bytes = bytes_of(std::vector<std::uint16_t>{0x3c00, 0xc000, 0x7bff, 0x0001, 0, 0x8000});
    if (type == DType::float32)
      bytes = bytes_of(std::vector<float>{1.5F, -0.0F, NAN, INFINITY, 1e-40F, 3.4e38F});
    if (type == DType::float64)
      bytes = bytes_of(std::vector<double>{1.5, -0.0, 1e-310, -INFINITY, 0.1, 1.7e308});
    const Status status = writer->write_array(dtype_name(type), {type, {2, 3}, bytes});
    ASSERT_TRUE(status.ok()) << status.to_string();
    data.push_back(std::move(bytes));
  }
  auto closed = writer->close();
  ASSERT_TRUE(closed.ok()) << closed.status().to_string();
  ASSERT_TRUE(seal(*closed).ok());
  const auto reader = Hdf5Reader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  for (std::size_t i = 0; i < types.size(); ++i) {
    const auto value = reader->read(dtype_name(types[i]), kMiB);
    ASSERT_TRUE(value.ok()) << value.status().to_string();
    EXPECT_EQ(value->dtype, types[i]);
    EXPECT_THAT(value->shape, ElementsAre(2, 3));
    EXPECT_EQ(value->data, data[i]) << dtype_name(types[i]);
  }
}

TEST(Hdf5, RoundTripsScalarsEmptyArraysAndText) {
  const TempDir dir("hdf5");
  const auto path = dir / "small.hdf5";
  auto writer = Hdf5Writer::create(path);
  ASSERT_TRUE(writer.ok()) << writer.status().to_string();
  ASSERT_TRUE(
      writer->write_array("scalar", {DType::int64, {}, bytes_of(std::vector<std::int64_t>{-7})})
          .ok());
  ASSERT_TRUE(writer->write_array("empty", {DType::uint8, {0}, {}}).ok());
  ASSERT_TRUE(writer->write_array("rows", {DType::float32, {0, 7}, {}}).ok());
  ASSERT_TRUE(writer->write_text("text", "héllo\n日本").ok());
  ASSERT_TRUE(writer->write_text("nothing", "").ok());
  EXPECT_EQ(writer->write_text("nul", std::string_view("a\0b", 3)).code(),
            StatusCode::invalid_argument);
  EXPECT_EQ(
      writer->write_array("short", {DType::int64, {2}, bytes_of(std::vector<std::int64_t>{1})})
          .code(),
      StatusCode::invalid_argument);
  auto closed = writer->close();
  ASSERT_TRUE(closed.ok() && seal(*closed).ok());

  const auto reader = Hdf5Reader::open(path);
  ASSERT_TRUE(reader.ok()) << reader.status().to_string();
  const auto names = reader->list("/");
  ASSERT_TRUE(names.ok()) << names.status().to_string();
  EXPECT_THAT(*names, ElementsAre("empty", "nothing", "rows", "scalar", "text"));
  const auto scalar = reader->read("scalar", kMiB);
  ASSERT_TRUE(scalar.ok());
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_EQ(scalar->data, bytes_of(std::vector<std::int64_t>{-7}));
  EXPECT_THAT(reader->read("empty", kMiB)->shape, ElementsAre(0));
  EXPECT_THAT(reader->read("rows", kMiB)->shape, ElementsAre(0, 7));
  EXPECT_THAT(reader->read("text", kMiB)->texts, ElementsAre("héllo\n日本"));
  EXPECT_THAT(reader->read("nothing", kMiB)->texts, ElementsAre(""));
}

TEST(Hdf5, ReadsWhatItWroteInTheShapeOfAnExport) {
  const TempDir dir("hdf5");
  for (const int level : {0, 1, 9}) {
    const auto path = dir / ("episode_" + std::to_string(level) + ".hdf5");
    const auto record = write_sample(path, {level});
    ASSERT_TRUE(record.ok()) << record.status().to_string();
    const std::string content = test::read_file(path);
    EXPECT_EQ(record->size_bytes, content.size());
    EXPECT_EQ(record->sha256, sha256_hex(as_bytes(content)));
    EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));

    const auto reader = Hdf5Reader::open(path);
    ASSERT_TRUE(reader.ok()) << reader.status().to_string();
    const auto item = reader->describe("columns/item_000000");
    ASSERT_TRUE(item.ok()) << item.status().to_string();
    EXPECT_EQ(item->kind, Hdf5ObjectKind::group);
    EXPECT_EQ(item->text_attribute("key"), "observation.state");
    EXPECT_EQ(item->text_attribute("kind"), "array");
    EXPECT_EQ(item->text_attribute("other"), std::nullopt);
    const auto images = reader->describe("images/top");
    ASSERT_TRUE(images.ok()) << images.status().to_string();
    EXPECT_EQ(images->dtype, DType::uint8);
    EXPECT_THAT(images->shape, ElementsAre(3, 6, 8, 3));
    EXPECT_THAT(images->chunk, ElementsAre(1, 6, 8, 3));
    EXPECT_EQ(images->filtered, level > 0);
    Bytes two(288);
    ASSERT_TRUE(reader->read_rows("images/top", *images, 1, 3, two).ok());
    EXPECT_TRUE(std::equal(two.begin(), two.begin() + 144, frame(144, 1).begin()));
    EXPECT_TRUE(std::equal(two.begin() + 144, two.end(), frame(144, 2).begin()));
    EXPECT_EQ(reader->read_rows("images/top", *images, 2, 4, two).code(), StatusCode::out_of_range);
    EXPECT_EQ(reader->read_rows("images/top", *images, 0, 1, two).code(),
              StatusCode::invalid_argument);
  }
}

TEST(Hdf5, SameContentGivesTheSameBytes) {
  const TempDir dir("hdf5");
  const auto first = write_sample(dir / "a.hdf5");
  const auto second = write_sample(dir / "b.hdf5");
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->sha256, second->sha256);
}

TEST(Hdf5, ThreadsFillTwoDatasetsAtOnce) {
  const TempDir dir("hdf5");
  const auto path = dir / "parallel.hdf5";
  const std::vector<std::int64_t> shape{40, 30, 2};
  const std::size_t bytes = 40 * 30 * 2 * 2;
  auto writer = Hdf5Writer::create(path);
  ASSERT_TRUE(writer.ok());
  auto plain = writer->create_frames("plain", shape, 300, DType::uint16);
  auto packed = writer->create_frames("packed", shape, 300, DType::uint16, {3});
  ASSERT_TRUE(plain.ok() && packed.ok());
  ThreadPool pool(4);
  const Status status = parallel_for(&pool, 600, [&](std::int64_t i) {
    // Backwards, so that places do not come in the order of writing.
    return (i % 2 == 0 ? *plain : *packed)->write(299 - i / 2, frame(bytes, 299 - i / 2));
  });
  ASSERT_TRUE(status.ok()) << status.to_string();
  ASSERT_TRUE((*plain)->finish().ok());
  ASSERT_TRUE((*packed)->finish().ok());
  auto closed = writer->close();
  ASSERT_TRUE(closed.ok() && seal(*closed).ok());
  const auto reader = Hdf5Reader::open(path);
  ASSERT_TRUE(reader.ok());
  for (const char* name : {"plain", "packed"}) {
    const auto value = reader->read(name, 64 * kMiB);
    ASSERT_TRUE(value.ok()) << value.status().to_string();
    EXPECT_THAT(value->shape, ElementsAre(300, 40, 30, 2));
    for (std::int64_t i = 0; i < 300; ++i) {
      const ByteSpan one =
          ByteSpan(value->data).subspan(static_cast<std::size_t>(i) * bytes, bytes);
      ASSERT_TRUE(std::ranges::equal(one, frame(bytes, i))) << name << " frame " << i;
    }
  }
}

TEST(Hdf5, ReportsMissingRepeatedAndMisfitFrames) {
  const TempDir dir("hdf5");
  const std::vector<std::int64_t> shape{2, 2, 3};
  auto writer = Hdf5Writer::create(dir / "x.hdf5");
  ASSERT_TRUE(writer.ok());
  auto frames = writer->create_frames("top", shape, 3);
  ASSERT_TRUE(frames.ok());
  EXPECT_TRUE((*frames)->write(0, frame(12, 0)).ok());
  EXPECT_EQ((*frames)->write(0, frame(12, 0)).code(), StatusCode::failed_precondition);
  EXPECT_EQ((*frames)->write(3, frame(12, 0)).code(), StatusCode::out_of_range);
  EXPECT_EQ((*frames)->write(1, frame(11, 0)).code(), StatusCode::invalid_argument);
  const Status status = (*frames)->finish();
  EXPECT_EQ(status.code(), StatusCode::data_loss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("1 of 3 frames"));
}

TEST(Hdf5, WriterWithoutCloseLeavesNothing) {
  const TempDir dir("hdf5");
  {
    auto writer = Hdf5Writer::create(dir / "x.hdf5");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE(writer->create_group("columns").ok());
  }
  EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  test::write_file(dir / "there.hdf5", "x");
  EXPECT_EQ(Hdf5Writer::create(dir / "there.hdf5").status().code(), StatusCode::already_exists);
  EXPECT_EQ(Hdf5Writer::create(dir / "no/x.hdf5").status().code(), StatusCode::not_found);
}

TEST(Hdf5, FullDiskAtAnyWriteIsOneErrorAndLeavesNothing) {
  int failures = 0;
  for (int n = 0;; ++n) {
    ASSERT_LT(n, 1000);
    const TempDir dir("hdf5");
    int left = n;
    set_fault_hook([&left](std::string_view point) {
      return point == "io.write" && left-- <= 0 ? resource_exhausted("no space left on device")
                                                : ok_status();
    });
    const auto record = write_sample(dir / "x.hdf5");
    set_fault_hook(nullptr);
    if (record.ok()) {
      EXPECT_TRUE(std::filesystem::exists(dir / "x.hdf5"));
      break;
    }
    ++failures;
    EXPECT_EQ(record.status().code(), StatusCode::resource_exhausted)
        << record.status().to_string();
    EXPECT_TRUE(std::filesystem::is_empty(dir.path()));
  }
  EXPECT_GT(failures, 3);
}

TEST(Hdf5, RefusesWhatIsNoFileOfItsKind) {
  const TempDir dir("hdf5");
  EXPECT_EQ(Hdf5Reader::open(dir / "absent").status().code(), StatusCode::not_found);
  EXPECT_EQ(Hdf5Reader::open(dir.path()).status().code(), StatusCode::failed_precondition);
  ASSERT_EQ(::mkfifo((dir / "pipe").c_str(), 0600), 0);
  EXPECT_EQ(Hdf5Reader::open(dir / "pipe").status().code(), StatusCode::failed_precondition);
  test::write_file(dir / "text", "version https://git-lfs.github.com/spec/v1");
  const auto text = Hdf5Reader::open(dir / "text");
  EXPECT_EQ(text.status().code(), StatusCode::data_loss);
  EXPECT_THAT(std::string(text.status().message()), HasSubstr("text: is not a readable HDF5 file"));
  test::write_file(dir / "empty", "");
  EXPECT_EQ(Hdf5Reader::open(dir / "empty").status().code(), StatusCode::data_loss);

  ASSERT_TRUE(write_sample(dir / "x.hdf5").ok());
  const auto reader = Hdf5Reader::open(dir / "x.hdf5");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->list("columns/item_000009").status().code(), StatusCode::not_found);
  EXPECT_EQ(reader->list("task").status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(reader->describe("task/deeper").status().code(), StatusCode::not_found);
  EXPECT_EQ(reader->read("columns", kMiB).status().code(), StatusCode::invalid_argument);
  EXPECT_EQ(reader->read("images/top", 100).status().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(reader->describe(std::string(100'000, 'x')).status().code(),
            StatusCode::invalid_argument);
  // After all these errors it still answers.
  EXPECT_TRUE(reader->read("images/top", kMiB).ok());
}

/// Makes a file through the library itself: what a foreign writer could have written.
class ForeignFile {
 public:
  explicit ForeignFile(const std::filesystem::path& path)
      : file_(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT)) {}
  ~ForeignFile() { H5Fclose(file_); }
  hid_t id() const { return file_; }
  hid_t dataset(const char* name, hid_t type, std::vector<hsize_t> dims,
                std::vector<hsize_t> chunk = {}, bool deflate = false) const {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    if (!chunk.empty()) H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    if (deflate) H5Pset_deflate(creation, 1);
    const hid_t space = H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr);
    const hid_t out = H5Dcreate2(file_, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    H5Pclose(creation);
    return out;
  }

 private:
  hid_t file_;
};

TEST(Hdf5, DoesNotBelieveShapesThatNothingStands) {
  const TempDir dir("hdf5");
  {
    const ForeignFile file(dir / "claims.hdf5");
    H5Dclose(file.dataset("sparse", H5T_STD_U8LE, {1'000'000, 480, 640, 3}, {1, 480, 640, 3}));
    H5Dclose(file.dataset("packed", H5T_STD_U8LE, {4000, 480, 640}, {1, 480, 640}, true));
    H5Dclose(file.dataset("small", H5T_STD_I32LE, {10}, {5}));
  }
  const auto reader = Hdf5Reader::open(dir / "claims.hdf5");
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->read("sparse", 4ULL << 30).status().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(reader->read("sparse", UINT64_MAX).status().code(), StatusCode::resource_exhausted);
  EXPECT_EQ(reader->read("packed", 4ULL << 30).status().code(), StatusCode::data_loss);
  const auto small = reader->read("small", kMiB);  // fill values stand for what is not stored
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->data, Bytes(40, 0));
}

TEST(Hdf5, ReadsForeignTypesAndRefusesLinksOutOfTheFile) {
  const TempDir dir("hdf5");
  {
    const ForeignFile file(dir / "foreign.hdf5");
    const hid_t big = file.dataset("big_endian", H5T_STD_I16BE, {3});
    const std::vector<std::int16_t> values{1, -2, 300};
    H5Dwrite(big, H5T_NATIVE_INT16, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(big);
    const hid_t fixed = H5Tcopy(H5T_C_S1);
    H5Tset_size(fixed, 4);
    const hid_t texts = file.dataset("fixed_texts", fixed, {2});
    H5Dwrite(texts, fixed, H5S_ALL, H5S_ALL, H5P_DEFAULT, "ab\0\0wxyz");
    H5Dclose(texts);
    H5Tclose(fixed);
    const hid_t pair = H5Tcreate(H5T_COMPOUND, 8);
    H5Tinsert(pair, "re", 0, H5T_IEEE_F32LE);
    H5Tinsert(pair, "im", 4, H5T_IEEE_F32LE);
    H5Dclose(file.dataset("complex", pair, {2}));
    H5Tclose(pair);
    H5Lcreate_external("other.hdf5", "/x", file.id(), "external", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/big_endian", file.id(), "soft", H5P_DEFAULT, H5P_DEFAULT);
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, "/etc/hostname", 0, 4);
    const hsize_t four = 4;
    const hid_t space = H5Screate_simple(1, &four, nullptr);
    H5Dclose(
        H5Dcreate2(file.id(), "outside", H5T_STD_U8LE, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(creation);
    const hid_t scalar = H5Screate(H5S_SCALAR);
    const hid_t attribute =
        H5Acreate2(file.id(), "total", H5T_STD_I64BE, scalar, H5P_DEFAULT, H5P_DEFAULT);
    const std::int64_t total = 41;
    H5Awrite(attribute, H5T_NATIVE_INT64, &total);
    H5Aclose(attribute);
    H5Sclose(scalar);
  }
  const auto reader = Hdf5Reader::open(dir / "foreign.hdf5");
  ASSERT_TRUE(reader.ok());
  const auto big = reader->read("big_endian", kMiB);
  ASSERT_TRUE(big.ok()) << big.status().to_string();
  EXPECT_EQ(big->dtype, DType::int16);
  EXPECT_EQ(big->data, bytes_of(std::vector<std::int16_t>{1, -2, 300}));
  EXPECT_THAT(reader->read("fixed_texts", kMiB)->texts, ElementsAre("ab", "wxyz"));
  EXPECT_EQ(reader->read("complex", kMiB).status().code(), StatusCode::unimplemented);
  for (const char* name : {"external", "soft", "outside"}) {
    EXPECT_EQ(reader->read(name, kMiB).status().code(), StatusCode::unimplemented) << name;
  }
  const auto root = reader->describe("/");
  ASSERT_TRUE(root.ok());
  ASSERT_EQ(root->attributes.size(), 1U);
  EXPECT_EQ(root->attributes[0].first, "total");
  EXPECT_EQ(root->attributes[0].second.data, bytes_of(std::vector<std::int64_t>{41}));
}

TEST(Hdf5, ChildThatEndsOrIsSilentIsDataLossNamingTheFile) {
  const TempDir dir("hdf5");
  ASSERT_TRUE(write_sample(dir / "x.hdf5").ok());
  Hdf5ReaderOptions options;
  options.program = "/bin/false";
  const auto ended = Hdf5Reader::open(dir / "x.hdf5", {}, options);
  EXPECT_EQ(ended.status().code(), StatusCode::data_loss);
  EXPECT_THAT(std::string(ended.status().message()),
              testing::AllOf(HasSubstr("x.hdf5"), HasSubstr("exit code 1")));
  options.program = "/bin/sleep";  // gets two numbers, and sleeps
  options.max_wait = std::chrono::milliseconds(100);
  const auto silent = Hdf5Reader::open(dir / "x.hdf5", {}, options);
  EXPECT_EQ(silent.status().code(), StatusCode::data_loss);
  EXPECT_THAT(std::string(silent.status().message()),
              testing::AllOf(HasSubstr("x.hdf5"), HasSubstr("within 100 ms")));
  options.program = dir / "absent";
  EXPECT_EQ(Hdf5Reader::open(dir / "x.hdf5", {}, options).status().code(), StatusCode::not_found);
}

/// Reads everything that can be reached; returns the first error.
Status read_all(const std::filesystem::path& path) {
  Hdf5ReaderOptions options;
  options.max_wait = std::chrono::seconds(5);
  ROPEWALK_ASSIGN_OR_RETURN(const Hdf5Reader reader, Hdf5Reader::open(path, {}, options));
  Status first;
  std::vector<std::string> open{""};
  for (int visited = 0; !open.empty() && visited < 100; ++visited) {
    const std::string at = open.back();
    open.pop_back();
    auto info = reader.describe(at);
    Status status = info.status();
    if (info.ok() && info->kind == Hdf5ObjectKind::group) {
      auto names = reader.list(at);
      status = names.status();
      if (names.ok()) {
        for (const std::string& name : *names) open.push_back(at + "/" + name);
      }
    } else if (info.ok()) {
      status = reader.read(at, 64 * kMiB).status();
    }
    if (first.ok()) first = status;
  }
  return first;
}

TEST(Hdf5, DamagedCopiesGiveOkOrAStatus) {
  const TempDir dir("hdf5");
  ASSERT_TRUE(write_sample(dir / "x.hdf5", {6}).ok());
  const std::string good = test::read_file(dir / "x.hdf5");
  ASSERT_TRUE(read_all(dir / "x.hdf5").ok());
  std::mt19937 random(7);
  int fine = 0;
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string bad = good;
    const unsigned changes = 1 + random() % 4;
    for (unsigned k = 0; k < changes; ++k) bad[random() % bad.size()] = static_cast<char>(random());
    test::write_file(dir / "bad.hdf5", bad);
    const Status status = read_all(dir / "bad.hdf5");
    (status.ok() ? fine : refused)++;
    if (!status.ok()) {
      EXPECT_THAT(std::string(status.message()), HasSubstr("bad.hdf5"));
    }
  }
  EXPECT_GT(fine, 0);
  EXPECT_GT(refused, 0);
  for (std::size_t size = 0; size < good.size(); size += 97) {
    test::write_file(dir / "short.hdf5", good.substr(0, size));
    EXPECT_FALSE(read_all(dir / "short.hdf5").ok()) << size;
  }
}

TEST(Hdf5, ParsesCompression) {
  EXPECT_EQ(Hdf5Compression::parse("none")->gzip_level, 0);
  EXPECT_EQ(Hdf5Compression::parse("gzip:9")->gzip_level, 9);
  for (const char* text : {"", "gzip", "gzip:0", "gzip:10", "lzf"}) {
    EXPECT_EQ(Hdf5Compression::parse(text).status().code(), StatusCode::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace ropewalk
