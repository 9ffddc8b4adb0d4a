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

struct AddAttachmentRequest {
  std::string file;        ///< the MCAP file, changed in place
  std::string attachment;  ///< the file whose bytes are added
  std::string name;        ///< empty: the name of that file
  std::string media_type = "application/octet-stream";
  std::optional<std::uint64_t> log_time;     ///< without it now
  std::optional<std::uint64_t> create_time;  ///< without it when that file was last modified
};

/// Adds an attachment; a crash at any instant leaves the file with it or without it.
/// Errors: those of mcap::add_attachment.
Result<mcap::AttachmentHead> add_attachment_file(const AddAttachmentRequest& request);

/// Adds a Metadata record, likewise. Errors: invalid_argument for a key that occurs twice; those of
/// mcap::add_metadata.
Status add_metadata_record(const std::string& file, const mcap::Metadata& metadata);

}  // namespace ropewalk
