#pragma once
// contact_sheet: one page to look at a whole dataset: film strips, plots of state and action, issue
// marks along the time line, coloured by effective outcome. HTML (self-contained, light and dark,
// printable) or PNG, by the ending of the file.
#include <filesystem>
#include <optional>
#include <vector>

#include "ropewalk/episode/episode.h"

namespace ropewalk {

struct ContactSheetRequest {
  std::filesystem::path path;  ///< dataset of any format
  std::filesystem::path out;   ///< .html or .png; replaced when it is there
  std::optional<std::vector<std::int64_t>> episodes;
};

struct ContactSheetReport {
  std::int64_t episodes = 0;
  std::int64_t accepted = 0;
  std::int64_t rejected = 0;
  std::int64_t pictures = 0;  ///< shown
  std::uint64_t bytes = 0;
  Json to_json() const;
};

/// Writes the sheet. Issues are those that the row or the ledger holds; cameras that cannot be read
/// are drawn as such. Errors: invalid_argument for another ending and for more episodes than a PNG
/// holds; not_found naming episodes that are not there; those of open_dataset; cancelled.
Result<ContactSheetReport> write_contact_sheet(const ContactSheetRequest& request,
                                               const RunContext& context);

}  // namespace ropewalk
