#pragma once
// Changes of MCAP files in place: adding attachments and metadata, and going on with a file, be it
// finished or not. Whatever instant the process dies, the file is what it was or what it should
// become; messages are never lost.
//
// The new end of the file (or, for a long append, the old one) stands in a side file named
// `.<name>.tail` beside it before a byte of the file changes. Every function here first finishes,
// or takes back, what an earlier process left behind. Spec: Ropewalk's MCAP page, section 4.4.
#include <filesystem>
#include <memory>

#include "ropewalk/base/io/file.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/mcap/writer.h"

namespace ropewalk::mcap {

/// Adds an attachment; `head.data_size` is set from `data`. Memory is bounded; the attachment is
/// written twice. Errors: data_loss when the file cannot be read; failed_precondition when it is
/// unfinished (recover it, or append to it); whatever the disk says.
Status add_attachment(const std::filesystem::path& path, const AttachmentHead& head,
                      const Source& data);
/// Adds a Metadata record. Errors: as add_attachment.
Status add_metadata(const std::filesystem::path& path, const Metadata& metadata);

/// Finishes or takes back an edit that died half way. Returns whether there was one. Cheap when
/// there is none: programs call it before they open a local file.
Result<bool> complete_edit(const std::filesystem::path& path);

/// Goes on with a file: ids, indexes and statistics continue. Not thread-safe.
/// Destroyed without finish() it leaves an unfinished file.
class Appender {
 public:
  /// Opens `path` for more. A cut last chunk is replaced by what can be decoded of it. Errors: as
  /// Reader::open and Writer::create.
  static Result<Appender> open(const std::filesystem::path& path, WriterOptions options = {},
                               Limits limits = {});
  Appender(Appender&&) noexcept;
  Appender& operator=(Appender&&) noexcept;
  ~Appender();

  /// Channels and schemas of the file are registered in it already; adding them again finds them.
  Writer& writer();
  /// Writes the end of the file and makes it durable.
  Status finish();

 private:
  struct Impl;
  explicit Appender(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace ropewalk::mcap
