#pragma once
// get and add: attachments and metadata, taken out of a file and put into one.
#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/engine/mcap/files.h"

namespace ropewalk {

struct GetAttachmentRequest {
  std::string input;
  std::string name;
  std::optional<std::uint64_t> offset;  ///< of the record, where several have the name
  std::string output;                   ///< a path; "-" is standard output
  bool replace = false;
};

/// Writes the data of one attachment. Errors: not_found; failed_precondition listing the offsets
/// when several have the name; data_loss when its CRC differs; those of OutputFile.
Result<mcap::AttachmentIndex> get_attachment(const GetAttachmentRequest& request,
                                             const RunContext& context);

/// The metadata records of a name, in file order; with an offset only the one that stands there.
/// Errors: not_found; data_loss.
Result<std::vector<mcap::Metadata>> get_metadata(const std::string& input, const std::string& name,
                                                 std::optional<std::uint64_t> offset = {});

}  // namespace ropewalk
