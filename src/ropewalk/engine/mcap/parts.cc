#include "ropewalk/engine/mcap/parts.h"

#include <fmt/format.h>

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

}  // namespace ropewalk
