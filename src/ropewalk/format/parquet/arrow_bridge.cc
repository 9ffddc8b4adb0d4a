#include <algorithm>
#include <cstring>

#include <arrow/buffer.h>
#include <arrow/util/future.h>

#include "ropewalk/format/parquet/arrow_bridge_internal.h"

namespace ropewalk::parquet_bridge {
namespace {

constexpr std::int64_t kColumnMemoryBytes = std::int64_t{8} << 30;

/// Carries a Status of ours through the library.
class StatusCarrier : public arrow::StatusDetail {
 public:
  explicit StatusCarrier(Status status) : status_(std::move(status)) {}
  const char* type_id() const override { return "ropewalk::StatusCarrier"; }
  std::string ToString() const override { return status_.to_string(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

class SourceFile : public arrow::io::RandomAccessFile {
 public:
  explicit SourceFile(std::shared_ptr<const Source> source) : source_(std::move(source)) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override { return position_; }
  arrow::Status Seek(std::int64_t position) override {
    if (position < 0) return arrow::Status::Invalid("negative position");
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<std::int64_t> GetSize() override {
    return static_cast<std::int64_t>(source_->size());
  }
  arrow::Result<std::int64_t> ReadAt(std::int64_t position, std::int64_t count,
                                     void* out) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t bytes, clamp(position, count));
    if (bytes == 0) return 0;
    const Status status =
        source_->read_at(static_cast<std::uint64_t>(position),
                         {static_cast<std::uint8_t*>(out), static_cast<std::size_t>(bytes)});
    if (!status.ok()) return to_arrow(status);
    return bytes;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(std::int64_t position,
                                                       std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t bytes, clamp(position, count));
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(bytes, column_memory()));
    ARROW_RETURN_NOT_OK(ReadAt(position, bytes, buffer->mutable_data()).status());
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  arrow::Result<std::int64_t> Read(std::int64_t count, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const std::int64_t bytes, ReadAt(position_, count, out));
    position_ += bytes;
    return bytes;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(std::int64_t count) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, count));
    position_ += buffer->size();
    return buffer;
  }

 private:
  arrow::Result<std::int64_t> clamp(std::int64_t position, std::int64_t count) const {
    if (position < 0 || count < 0) return arrow::Status::Invalid("negative position or length");
    const auto size = static_cast<std::int64_t>(source_->size());
    return position >= size ? 0 : std::min(count, size - position);
  }

  std::shared_ptr<const Source> source_;
  std::int64_t position_ = 0;
  bool closed_ = false;
};

class SinkStream : public arrow::io::OutputStream {
 public:
  SinkStream(Sink& sink, std::shared_ptr<const bool> abandoned)
      : sink_(&sink), abandoned_(std::move(abandoned)), begin_(sink.size()) {}

  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }
  arrow::Result<std::int64_t> Tell() const override {
    if (*abandoned_) return 0;
    return static_cast<std::int64_t>(sink_->size() - begin_);
  }
  arrow::Status Write(const void* data, std::int64_t count) override {
    if (count < 0) return arrow::Status::Invalid("negative length");
    if (*abandoned_) return arrow::Status::Cancelled("the writer was given up");
    return to_arrow(
        sink_->append({static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(count)}));
  }
  using arrow::io::OutputStream::Write;

 private:
  Sink* sink_;
  std::shared_ptr<const bool> abandoned_;
  std::uint64_t begin_;
  bool closed_ = false;
};

}  // namespace

Status from_arrow(const arrow::Status& status, StatusCode otherwise, std::string_view context) {
  if (status.ok()) return ok_status();
  const std::string prefix = std::string(context) + ": ";
  if (status.detail() != nullptr &&
      std::strcmp(status.detail()->type_id(), "ropewalk::StatusCarrier") == 0) {
    return static_cast<const StatusCarrier&>(*status.detail()).status().with_context(context);
  }
  if (status.IsOutOfMemory() || status.IsCapacityError()) {
    return resource_exhausted(prefix + status.message());
  }
  if (status.IsNotImplemented()) return unimplemented(prefix + status.message());
  return {otherwise, prefix + status.message()};
}

arrow::Status to_arrow(const Status& status) {
  if (status.ok()) return arrow::Status::OK();
  return arrow::Status(arrow::StatusCode::IOError, std::string(status.message()),
                       std::make_shared<StatusCarrier>(status));
}

arrow::MemoryPool* column_memory() {
  // Never destroyed: buffers of batches may live as long as the process.
  static arrow::MemoryPool* const pool =
      new arrow::CappedMemoryPool(arrow::default_memory_pool(), kColumnMemoryBytes);
  return pool;
}

std::shared_ptr<arrow::io::RandomAccessFile> arrow_file(std::shared_ptr<const Source> source) {
  return std::make_shared<SourceFile>(std::move(source));
}

std::shared_ptr<arrow::io::OutputStream> arrow_stream(Sink& sink,
                                                      std::shared_ptr<const bool> abandoned) {
  return std::make_shared<SinkStream>(sink, std::move(abandoned));
}

}  // namespace ropewalk::parquet_bridge
