#pragma once
// Small pairs for tests of publish: halves of a few files whose content names their generation, and
// the one check that matters: what lies there is a whole pair of one generation.
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "ropewalk/stage/publish/publish.h"

#include "tests/support/temp_dir.h"

namespace ropewalk::test {

inline std::string marker_text(std::string_view export_id, std::string_view subset, int episode) {
  Json json;
  json.set("subset", subset);
  json.set("dataset_format", "lerobot_v21");
  json.set("source_episode_indices", Json(Json::Array{Json(episode)}));
  if (!export_id.empty()) json.set("export_id", export_id);
  return json.dump(2);
}

/// Fills both staged halves with files of `generation`, among them a nested one.
inline Status fill(PairPublisher& publisher, const std::string& generation) {
  int episode = 0;
  for (ManifestBuilder* half : {&publisher.accepted_manifest(), &publisher.rejected_manifest()}) {
    const std::string subset = half->root().filename().string();
    const std::string body = generation + " " + subset;
    ROPEWALK_RETURN_IF_ERROR(half->write_file("data/chunk-000/part", as_bytes(body)));
    ROPEWALK_RETURN_IF_ERROR(half->write_file("meta/info.json", as_bytes("{}")));
    ROPEWALK_RETURN_IF_ERROR(half->write_file(
        kMarkerPath, as_bytes(marker_text(publisher.export_id(), subset, episode++))));
  }
  return ok_status();
}

/// Publishes a pair of `generation` at `target`.
inline Result<PublishReport> publish_generation(const PairTarget& target,
                                                const std::string& generation,
                                                const PublishOptions& options = {}) {
  ROPEWALK_ASSIGN_OR_RETURN(PairPublisher publisher, PairPublisher::begin(target, options));
  ROPEWALK_RETURN_IF_ERROR(fill(publisher, generation));
  return publisher.publish({}, {}, {});
}

/// Returns the generation at `directory`: "" when nothing is there, and a text that starts with
/// "BROKEN" when it is anything but one whole, verified pair of one generation.
inline std::string generation_at(const std::filesystem::path& directory) {
  if (!std::filesystem::exists(directory)) return "";
  if (const Status verified = verify_pair(directory); !verified.ok()) {
    return "BROKEN: " + verified.to_string();
  }
  const std::string accepted = read_file(directory / "accepted/data/chunk-000/part");
  const std::string rejected = read_file(directory / "rejected/data/chunk-000/part");
  const std::string generation = accepted.substr(0, accepted.find(' '));
  if (accepted != generation + " accepted" || rejected != generation + " rejected") {
    return "BROKEN: mixed: " + accepted + " beside " + rejected;
  }
  return generation;
}

/// Returns the hidden names in `parent` other than the lock of the pair, joined with spaces.
inline std::string hidden_names(const PairTarget& target) {
  std::string names;
  const auto listed = list_directory(target.parent).value();
  for (const std::string& name : listed) {
    if (name.starts_with('.') && target.parent / name != target.lock_file()) names += name + " ";
  }
  return names;
}

/// Returns the codes of the findings, joined with spaces.
inline std::string codes(const Findings& findings) {
  std::string out;
  for (const Finding& finding : findings.entries()) {
    out += (out.empty() ? "" : " ") + finding.code;
  }
  return out;
}

}  // namespace ropewalk::test
