#pragma once
// What reader and writer share: Arrow's errors as Status, exceptions caught, and our files as
// Arrow's.
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/status.h>

#include "ropewalk/base/core/result.h"
#include "ropewalk/base/io/file.h"

namespace ropewalk::parquet_bridge {

/// Returns our status for Arrow's: resource_exhausted for memory and capacity, unimplemented, else
/// `otherwise`. A Status of ours that travelled through an Arrow file comes back as it was.
Status from_arrow(const arrow::Status& status, StatusCode otherwise, std::string_view context);

/// Wraps one of our errors so that it passes through Arrow.
arrow::Status to_arrow(const Status& status);

/// Memory for decoded columns. A backstop against pages that claim more than they hold: at most
/// 8 GiB are handed out by one process, whatever files claim.
arrow::MemoryPool* column_memory();

std::shared_ptr<arrow::io::RandomAccessFile> arrow_file(std::shared_ptr<const Source> source);
/// Lifetime: `sink` outlives the stream. Closing the stream does not close the sink. Once
/// `*abandoned` is set, writes fail: the library writes a footer even when it is destroyed.
std::shared_ptr<arrow::io::OutputStream> arrow_stream(Sink& sink,
                                                      std::shared_ptr<const bool> abandoned);

/// Runs `body`, which returns Status or Result, and turns what the library throws into `otherwise`.
template <typename Body>
auto guarded(StatusCode otherwise, std::string_view context, Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return resource_exhausted(std::string(context) + ": more memory asked for than there is");
  } catch (const std::exception& error) {
    return Status(otherwise, std::string(context) + ": " + error.what());
  }
}

}  // namespace ropewalk::parquet_bridge
