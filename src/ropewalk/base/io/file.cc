#include "ropewalk/base/io/file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <climits>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/base/io/fd_internal.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/base/io/staged_directory.h"

namespace ropewalk {
namespace {

Status check_range(std::uint64_t offset, std::size_t length, std::uint64_t size,
                   const std::string& name) {
  if (offset <= size && length <= size - offset) return ok_status();
  return out_of_range(fmt::format("{}: read of {} bytes at offset {} goes past the end at {}", name,
                                  length, offset, size));
}

class FileSource final : public Source {
 public:
  FileSource(Fd fd, std::uint64_t size, std::string name)
      : fd_(std::move(fd)), size_(size), name_(std::move(name)) {}

  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    ROPEWALK_RETURN_IF_ERROR(check_range(offset, out.size(), size_, name_));
    std::size_t done = 0;
    while (done < out.size()) {
      const auto at = static_cast<off_t>(offset + done);
      const ssize_t got = retry_interrupted(
          [&] { return ::pread(fd_.get(), out.data() + done, out.size() - done, at); });
      if (got < 0) return errno_status(errno, fmt::format("{}: read at offset {}", name_, at));
      if (got == 0) {
        return data_loss(
            fmt::format("{}: ends at byte {} although it had {} when opened", name_, at, size_));
      }
      done += static_cast<std::size_t>(got);
    }
    return ok_status();
  }

 private:
  Fd fd_;
  std::uint64_t size_;
  std::string name_;
};

class MappedSource final : public Source {
 public:
  MappedSource(const std::uint8_t* data, std::size_t size, std::string name)
      : data_(data), size_(size), name_(std::move(name)) {}
  ~MappedSource() override { ::munmap(const_cast<std::uint8_t*>(data_), size_); }

  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  ByteSpan mapped() const override { return {data_, size_}; }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    ROPEWALK_RETURN_IF_ERROR(check_range(offset, out.size(), size_, name_));
    if (!out.empty()) std::memcpy(out.data(), data_ + offset, out.size());
    return ok_status();
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
  std::string name_;
};

class MemorySource final : public Source {
 public:
  MemorySource(Bytes owned, std::string name)
      : owned_(std::move(owned)), view_(owned_), name_(std::move(name)) {}
  MemorySource(ByteSpan view, std::string name) : view_(view), name_(std::move(name)) {}

  std::uint64_t size() const override { return view_.size(); }
  const std::string& name() const override { return name_; }
  ByteSpan mapped() const override { return view_; }
  Status read_at(std::uint64_t offset, MutableByteSpan out) const override {
    ROPEWALK_RETURN_IF_ERROR(check_range(offset, out.size(), view_.size(), name_));
    if (!out.empty()) std::memcpy(out.data(), view_.data() + offset, out.size());
    return ok_status();
  }

 private:
  Bytes owned_;
  ByteSpan view_;
  std::string name_;
};

class FileSink final : public Sink {
 public:
  FileSink(Fd fd, std::string name, std::uint64_t written = 0)
      : fd_(std::move(fd)), name_(std::move(name)), written_(written) {}
  ~FileSink() override {
    if (fd_) std::ignore = write_buffer();
  }

  std::uint64_t size() const override { return written_ + buffered_; }
  const std::string& name() const override { return name_; }

  Status append(ByteSpan bytes) override {
    if (!fd_) return failed_precondition(name_ + ": append after close");
    ROPEWALK_RETURN_IF_ERROR(error_);
    if (!buffer_) buffer_ = std::make_unique_for_overwrite<std::uint8_t[]>(kIoBlockBytes);
    while (!bytes.empty()) {
      if (buffered_ == 0 && bytes.size() >= kIoBlockBytes) return write_through(bytes);
      const std::size_t part = std::min(bytes.size(), kIoBlockBytes - buffered_);
      std::memcpy(buffer_.get() + buffered_, bytes.data(), part);
      buffered_ += part;
      bytes = bytes.subspan(part);
      if (buffered_ == kIoBlockBytes) ROPEWALK_RETURN_IF_ERROR(write_buffer());
    }
    return ok_status();
  }
  Status append_parts(std::span<const ByteSpan> parts) override {
    std::size_t total = 0;
    for (const ByteSpan part : parts) total += part.size();
    if (!fd_ || !error_.ok() || total + buffered_ <= kIoBlockBytes) {
      return Sink::append_parts(parts);
    }
    // What is buffered and the parts leave together.
    std::vector<ByteSpan> all;
    if (buffered_ > 0) all.emplace_back(buffer_.get(), buffered_);
    all.insert(all.end(), parts.begin(), parts.end());
    error_ = write_all_parts(fd_.get(), all, written_, name_);
    if (error_.ok()) {
      written_ += total + buffered_;
      buffered_ = 0;
    }
    return error_;
  }
  Status flush() override {
    if (!fd_) return failed_precondition(name_ + ": flush after close");
    return write_buffer();
  }
  Status sync() override { return sync_file(false); }
  Status sync_data() override { return sync_file(true); }
  Status close() override {
    if (!fd_) return error_;
    Status flushed = write_buffer();
    if (::close(fd_.release()) != 0 && flushed.ok())
      error_ = errno_status(errno, name_ + ": close");
    return error_;
  }

 private:
  Status write_through(ByteSpan bytes) {
    error_ = write_all(fd_.get(), bytes, written_, name_);
    if (error_.ok()) written_ += bytes.size();
    return error_;
  }
  Status sync_file(bool data_only) {
    if (!fd_) return failed_precondition(name_ + ": sync after close");
    ROPEWALK_RETURN_IF_ERROR(write_buffer());
    error_ = fsync_file(fd_.get(), name_, data_only);
    return error_;
  }
  Status write_buffer() {
    ROPEWALK_RETURN_IF_ERROR(error_);
    if (buffered_ == 0) return ok_status();
    const std::size_t length = std::exchange(buffered_, 0);
    return write_through({buffer_.get(), length});
  }

  Fd fd_;
  std::string name_;
  std::unique_ptr<std::uint8_t[]> buffer_;
  std::size_t buffered_ = 0;
  std::uint64_t written_ = 0;
  Status error_;  // the first failure; everything after it returns the same
};

class MemorySink final : public Sink {
 public:
  MemorySink(Bytes& out, std::string name) : out_(out), name_(std::move(name)) {}
  Status append(ByteSpan bytes) override {
    ROPEWALK_RETURN_IF_ERROR(fault_point("io.write"));
    out_.insert(out_.end(), bytes.begin(), bytes.end());
    size_ += bytes.size();
    return ok_status();
  }
  Status sync() override { return fault_point("io.fsync"); }
  Status close() override { return ok_status(); }
  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

 private:
  Bytes& out_;
  std::string name_;
  std::uint64_t size_ = 0;
};

Result<Fd> open_regular(const std::filesystem::path& path, std::uint64_t& size) {
  // O_NONBLOCK: opening a FIFO must not wait for a writer; regular files ignore it.
  Fd fd(retry_interrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!fd) return errno_status(errno, fmt::format("{}: open", path.string()));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, path.string() + ": stat");
  if (!S_ISREG(info.st_mode)) {
    return failed_precondition(fmt::format("{}: expected a regular file, found {}", path.string(),
                                           S_ISDIR(info.st_mode) ? "a directory" : "a device"));
  }
  size = static_cast<std::uint64_t>(info.st_size);
  return fd;
}

}  // namespace

Status write_all(int fd, ByteSpan bytes, std::uint64_t offset, const std::string& name) {
  const auto context = [&](std::size_t done) {
    return fmt::format("{}: write of {} bytes at offset {}", name, bytes.size() - done,
                       offset + done);
  };
  if (Status injected = fault_point("io.write"); !injected.ok()) {
    return injected.with_context(context(0));
  }
  unsynced::will_write(fd);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put =
        retry_interrupted([&] { return ::write(fd, bytes.data() + done, bytes.size() - done); });
    if (put < 0) return errno_status(errno, context(done));
    if (put == 0) return unavailable(context(done) + ": nothing was written");
    done += static_cast<std::size_t>(put);
  }
  return ok_status();
}

Status write_all_parts(int fd, std::span<const ByteSpan> parts, std::uint64_t offset,
                       const std::string& name) {
  if (Status injected = fault_point("io.write"); !injected.ok()) {
    return injected.with_context(fmt::format("{}: write at offset {}", name, offset));
  }
  unsynced::will_write(fd);
  std::vector<::iovec> vectors;
  for (const ByteSpan part : parts) {
    if (!part.empty()) {
      vectors.push_back({const_cast<std::uint8_t*>(part.data()), part.size()});
    }
  }
  for (std::size_t at = 0; at < vectors.size();) {
    const int count = static_cast<int>(std::min<std::size_t>(vectors.size() - at, IOV_MAX));
    const ssize_t put = retry_interrupted([&] { return ::writev(fd, &vectors[at], count); });
    if (put <= 0) {
      const std::string context = fmt::format("{}: write at offset {}", name, offset);
      return put < 0 ? errno_status(errno, context)
                     : unavailable(context + ": nothing was written");
    }
    offset += static_cast<std::uint64_t>(put);
    for (auto left = static_cast<std::size_t>(put); left > 0;) {
      const std::size_t step = std::min(left, vectors[at].iov_len);
      vectors[at].iov_base = static_cast<std::uint8_t*>(vectors[at].iov_base) + step;
      vectors[at].iov_len -= step;
      left -= step;
      if (vectors[at].iov_len == 0) ++at;
    }
  }
  return ok_status();
}

Result<Fd> create_file(const std::filesystem::path& path) {
  if (Status injected = fault_point("io.create"); !injected.ok()) {
    return injected.with_context(path.string() + ": create");
  }
  Fd fd(retry_interrupted([&] {
    return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, 0666);
  }));
  if (!fd) return errno_status(errno, fmt::format("{}: create", path.string()));
  unsynced::created(path.string());
  return fd;
}

Status fsync_file(int fd, const std::string& name, bool data_only) {
  if (Status injected = fault_point("io.fsync"); !injected.ok()) {
    return injected.with_context(name + ": fsync");
  }
  if (retry_interrupted([&] { return data_only ? ::fdatasync(fd) : ::fsync(fd); }) != 0) {
    return errno_status(errno, name + ": fsync");
  }
  unsynced::synced_file(fd);
  return ok_status();
}

Result<std::unique_ptr<Source>> open_source(const std::filesystem::path& path,
                                            OpenOptions options) {
  if (Status injected = fault_point("io.open"); !injected.ok()) {
    return injected.with_context(path.string() + ": open");
  }
  std::uint64_t size = 0;
  ROPEWALK_ASSIGN_OR_RETURN(Fd fd, open_regular(path, size));
  if (options.map && size > 0) {
    void* data =
        ::mmap(nullptr, static_cast<std::size_t>(size), PROT_READ, MAP_SHARED, fd.get(), 0);
    if (data == MAP_FAILED) return errno_status(errno, path.string() + ": mmap");
    return std::unique_ptr<Source>(std::make_unique<MappedSource>(
        static_cast<const std::uint8_t*>(data), static_cast<std::size_t>(size), path.string()));
  }
  return std::unique_ptr<Source>(std::make_unique<FileSource>(std::move(fd), size, path.string()));
}

std::unique_ptr<Source> memory_source(Bytes bytes, std::string name) {
  return std::make_unique<MemorySource>(std::move(bytes), std::move(name));
}

std::unique_ptr<Source> view_source(ByteSpan bytes, std::string name) {
  return std::make_unique<MemorySource>(bytes, std::move(name));
}

Result<std::unique_ptr<Sink>> create_sink(const std::filesystem::path& path) {
  ROPEWALK_ASSIGN_OR_RETURN(Fd fd, create_file(path));
  return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(fd), path.string()));
}

Status Sink::append_parts(std::span<const ByteSpan> parts) {
  for (const ByteSpan part : parts) {
    ROPEWALK_RETURN_IF_ERROR(append(part));
  }
  return ok_status();
}

Result<std::unique_ptr<Sink>> continue_sink(const std::filesystem::path& path, std::uint64_t size) {
  if (Status injected = fault_point("io.open"); !injected.ok()) {
    return injected.with_context(path.string() + ": open");
  }
  Fd fd(retry_interrupted([&] { return ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY); }));
  if (!fd) return errno_status(errno, path.string() + ": open to continue");
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, path.string() + ": stat");
  if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) < size) {
    return failed_precondition(fmt::format("{}: a file of at least {} bytes expected, {} found",
                                           path.string(), size, info.st_size));
  }
  if (Status injected = fault_point("io.write"); !injected.ok()) {
    return injected.with_context(path.string() + ": truncate");
  }
  const auto end = static_cast<off_t>(size);
  if (retry_interrupted([&] { return ::ftruncate(fd.get(), end); }) != 0 ||
      ::lseek(fd.get(), end, SEEK_SET) != end) {
    return errno_status(errno, path.string() + ": truncate");
  }
  return std::unique_ptr<Sink>(std::make_unique<FileSink>(std::move(fd), path.string(), size));
}

std::unique_ptr<Sink> memory_sink(Bytes& out, std::string name) {
  return std::make_unique<MemorySink>(out, std::move(name));
}

Result<Bytes> read_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path));
  if (source->size() > max_bytes) {
    return resource_exhausted(fmt::format("{}: {} bytes, but at most {} are read", path.string(),
                                          source->size(), max_bytes));
  }
  Bytes bytes(static_cast<std::size_t>(source->size()));
  ROPEWALK_RETURN_IF_ERROR(source->read_at(0, bytes));
  return bytes;
}

Result<std::string> read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  ROPEWALK_ASSIGN_OR_RETURN(auto source, open_source(path));
  if (source->size() > max_bytes) {
    return resource_exhausted(fmt::format("{}: {} bytes, but at most {} are read", path.string(),
                                          source->size(), max_bytes));
  }
  std::string text(static_cast<std::size_t>(source->size()), '\0');
  ROPEWALK_RETURN_IF_ERROR(
      source->read_at(0, {reinterpret_cast<std::uint8_t*>(text.data()), text.size()}));
  return text;
}

Status write_new_file(const std::filesystem::path& path, ByteSpan bytes) {
  ROPEWALK_ASSIGN_OR_RETURN(Fd fd, create_file(path));
  Status written = write_all(fd.get(), bytes, 0, path.string());
  if (written.ok()) written = fsync_file(fd.get(), path.string());
  if (!written.ok()) std::ignore = remove_file(path);
  return written;
}

Status replace_file(const std::filesystem::path& path, ByteSpan bytes) {
  const std::filesystem::path temporary =
      path.parent_path() / fmt::format(".{}.tmp.{}", path.filename().string(), random_uuid());
  ROPEWALK_RETURN_IF_ERROR(write_new_file(temporary, bytes));
  if (Status renamed = rename_path(temporary, path); !renamed.ok()) {
    std::ignore = remove_file(temporary);
    return renamed;
  }
  return sync_directory(parent_of(path));
}

Status overwrite_durably(const std::filesystem::path& path, std::uint64_t offset, ByteSpan bytes) {
  Fd fd(retry_interrupted([&] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); }));
  if (!fd) return errno_status(errno, fmt::format("{}: open for writing", path.string()));
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, path.string() + ": stat");
  ROPEWALK_RETURN_IF_ERROR(
      check_range(offset, bytes.size(), static_cast<std::uint64_t>(info.st_size), path.string()));
  if (::lseek(fd.get(), static_cast<off_t>(offset), SEEK_SET) < 0) {
    return errno_status(errno, path.string() + ": seek");
  }
  ROPEWALK_RETURN_IF_ERROR(write_all(fd.get(), bytes, offset, path.string()));
  return fsync_file(fd.get(), path.string(), true);
}

Status append_file_durably(const std::filesystem::path& path, ByteSpan bytes) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto before, file_info(path));
  Fd fd(retry_interrupted(
      [&] { return ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666); }));
  if (!fd) return errno_status(errno, fmt::format("{}: open for append", path.string()));
  if (!before) unsynced::created(path.string());
  struct stat info = {};
  if (::fstat(fd.get(), &info) != 0) return errno_status(errno, path.string() + ": stat");
  ROPEWALK_RETURN_IF_ERROR(
      write_all(fd.get(), bytes, static_cast<std::uint64_t>(info.st_size), path.string()));
  ROPEWALK_RETURN_IF_ERROR(fsync_file(fd.get(), path.string(), true));
  return before ? ok_status() : sync_directory(parent_of(path));
}

}  // namespace ropewalk
