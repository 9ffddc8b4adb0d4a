#pragma once
// The three programs of the MCAP conformance suite as functions: records to JSON, and JSON to a
// file.
#include <filesystem>

#include "ropewalk/base/core/json.h"
#include "ropewalk/format/mcap/mcap.h"

namespace ropewalk::test {

/// {"records": [...]}: every record of the file in order, chunks expanded in place, CRCs checked.
Result<Json> streamed_records(const std::filesystem::path& file);
/// {"schemas": [], "channels": [], "messages": [], "statistics": []}, read through the index.
Result<Json> indexed_records(const std::filesystem::path& file);
/// Writes the records of a conformance JSON document with the options its features ask for.
Result<Bytes> write_records(const Json& document);

Result<Json> read_json_file(const std::filesystem::path& file);

}  // namespace ropewalk::test
