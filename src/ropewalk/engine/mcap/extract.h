#pragma once
// extract: one topic out of an MCAP file as what other programs read: a camera as MP4 or as
// pictures, numbers as a Parquet table. Nothing is re-encoded that a file can hold as it is.
#include "ropewalk/engine/mcap/rewrite.h"

namespace ropewalk {

enum class ExtractForm : std::uint8_t { mp4, images, parquet };
std::optional<ExtractForm> extract_form_from_name(std::string_view name);

struct ExtractRequest {
  std::string input;
  std::string topic;
  std::string output;  ///< a file; for images a directory
  /// Without it by the name of the output: .mp4, .parquet, else a directory of images.
  std::optional<ExtractForm> form;
  bool replace = false;  ///< of files; a directory is never replaced
  std::uint64_t begin_time = 0;
  std::optional<std::uint64_t> end_time;
  int jpeg_quality = 95;  ///< of raw pictures; compressed ones are copied
  bool lenient = false;
};

struct ExtractReport {
  std::string output;
  std::string schema;
  std::string form;            ///< "mp4", "images", "parquet"
  std::uint64_t messages = 0;  ///< of the topic
  std::uint64_t written = 0;   ///< frames, pictures or rows
  int width = 0;               ///< of pictures
  int height = 0;
  std::vector<std::string> columns;  ///< of a table
  std::vector<std::string> notes;
  std::vector<std::string> losses;  ///< what could not be carried over
  std::vector<FileProblem> problems;
  bool lossy() const;
  Json to_json() const;
};

/// Images: JPEG, PNG and WebP are copied byte for byte, raw colours become JPEG, 16-bit depth
/// becomes PNG; a name is `<number>_<log time>.<kind>`. MP4: the packets of CompressedVideo, at the
/// times of their log. Parquet: log_time, publish_time, sequence, and a column for every number,
/// text and list of numbers. Errors: not_found for the topic; failed_precondition when its schema
/// is not what the form needs; unimplemented for an encoding, by name; those of the writers;
/// cancelled.
Result<ExtractReport> extract_mcap(const ExtractRequest& request, const RunContext& context);

}  // namespace ropewalk
