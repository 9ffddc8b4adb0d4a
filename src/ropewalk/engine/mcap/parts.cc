#include "ropewalk/engine/mcap/parts.h"

#include <chrono>

#include <fmt/format.h>

#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/format/mcap/edit.h"

namespace ropewalk {

Result<mcap::AttachmentIndex> get_attachment(const GetAttachmentRequest& request,
                                             const RunContext& context) {
  ROPEWALK_ASSIGN_OR_RETURN(const McapInput input, open_mcap(request.input));
  std::vector<const mcap::AttachmentIndex*> found;
  for (const mcap::AttachmentIndex& index : input.reader.attachments()) {
    if (index.name != request.name) continue;
    if (request.offset.has_value() && index.offset != *request.offset) continue;
    found.push_back(&index);
  }
  if (found.empty()) {
    return not_found(fmt::format(
        "{}: no attachment \"{}\"{}", input.name, request.name,
        request.offset.has_value() ? fmt::format(" at byte {}", *request.offset) : std::string()));
  }
  if (found.size() > 1) {
    std::string offsets;
    for (const mcap::AttachmentIndex* index : found) offsets += fmt::format(" {}", index->offset);
    return failed_precondition(
        fmt::format("{}: {} attachments are named \"{}\"; choose one with --offset:{}", input.name,
                    found.size(), request.name, offsets));
  }
  ROPEWALK_ASSIGN_OR_RETURN(OutputFile output, OutputFile::create(request.output, request.replace));
  ROPEWALK_RETURN_IF_ERROR(input.reader.read_attachment(*found.front(), [&](ByteSpan bytes) {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    return output.sink().append(bytes);
  }));
  ROPEWALK_RETURN_IF_ERROR(output.publish());
  return *found.front();
}

Result<std::vector<mcap::Metadata>> get_metadata(const std::string& input, const std::string& name,
                                                 std::optional<std::uint64_t> offset) {
  ROPEWALK_ASSIGN_OR_RETURN(const McapInput file, open_mcap(input));
  std::vector<mcap::Metadata> out;
  for (const mcap::MetadataIndex& index : file.reader.metadata()) {
    if (index.name != name || (offset.has_value() && index.offset != *offset)) continue;
    ROPEWALK_ASSIGN_OR_RETURN_CTX(mcap::Metadata metadata, file.reader.read_metadata(index),
                                  file.name);
    out.push_back(std::move(metadata));
  }
  if (out.empty()) return not_found(fmt::format("{}: no metadata \"{}\"", file.name, name));
  return out;
}

Result<mcap::AttachmentHead> add_attachment_file(const AddAttachmentRequest& request) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(request.attachment));
  if (!info.has_value()) return not_found(request.attachment + ": no such file");
  ROPEWALK_ASSIGN_OR_RETURN(const auto data, open_source(request.attachment));
  mcap::AttachmentHead head;
  head.name = request.name.empty() ? std::filesystem::path(request.attachment).filename().string()
                                   : request.name;
  head.media_type = request.media_type;
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  head.log_time = request.log_time.value_or(static_cast<std::uint64_t>(now.count()));
  head.create_time = request.create_time.value_or(
      info->modified_ns < 0 ? 0 : static_cast<std::uint64_t>(info->modified_ns));
  head.data_size = data->size();
  ROPEWALK_RETURN_IF_ERROR(
      mcap::add_attachment(request.file, head, *data).with_context(request.file));
  return head;
}

Status add_metadata_record(const std::string& file, const mcap::Metadata& metadata) {
  if (const auto key = mcap::duplicate_key(metadata.metadata)) {
    return invalid_argument(fmt::format("key '{}' is given twice", *key));
  }
  return mcap::add_metadata(file, metadata).with_context(file);
}

}  // namespace ropewalk
