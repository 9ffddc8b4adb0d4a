#include "ropewalk/stage/publish/pair.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/base/io/file.h"
#include "ropewalk/base/io/local_fs.h"
#include "ropewalk/stage/publish/manifest.h"
#include "ropewalk/stage/publish/names_internal.h"

namespace ropewalk {
namespace {

constexpr std::uint64_t kMaxMarkerBytes = 64ULL << 20;

Result<Marker> parse_marker(std::string_view text) {
  Marker marker;
  ROPEWALK_ASSIGN_OR_RETURN(marker.json, parse_json(text));
  const auto subset = marker.json.get_string("subset");
  if (!subset || (*subset != "accepted" && *subset != "rejected")) {
    return data_loss("expected \"subset\" to be accepted or rejected");
  }
  marker.subset = *subset;
  marker.dataset_format = marker.json.get_string("dataset_format").value_or("");
  marker.export_id = marker.json.get_string("export_id").value_or("");
  if (const Json* indices = marker.json.find("source_episode_indices");
      indices != nullptr && indices->is_array()) {
    for (const Json& index : *indices->as_array()) {
      const auto value = index.as_int64();
      if (!value) return data_loss("source_episode_indices: expected integers");
      marker.source_episode_indices.push_back(*value);
    }
  }
  return marker;
}

std::string why_mixed(const Pair& pair) {
  const Marker& a = pair.accepted;
  const Marker& r = pair.rejected;
  if (a.subset != "accepted" || r.subset != "rejected") {
    return fmt::format("the marker of accepted says \"{}\", that of rejected says \"{}\"", a.subset,
                       r.subset);
  }
  if (a.export_id != r.export_id) {
    return fmt::format("accepted is of export \"{}\", rejected of export \"{}\"", a.export_id,
                       r.export_id);
  }
  if (a.dataset_format != r.dataset_format) {
    return fmt::format("accepted is {}, rejected is {}", a.dataset_format, r.dataset_format);
  }
  if (!a.export_id.empty()) return {};
  // Pairs of the reference system have no export id: an episode in both halves gives them away.
  std::vector<std::int64_t> left = a.source_episode_indices;
  std::vector<std::int64_t> right = r.source_episode_indices;
  std::ranges::sort(left);
  std::ranges::sort(right);
  std::vector<std::int64_t> both;
  std::ranges::set_intersection(left, right, std::back_inserter(both));
  return both.empty() ? std::string()
                      : fmt::format("source episode {} is in both halves", both.front());
}

Status verify_half(const std::filesystem::path& half_dir, std::string_view export_id) {
  auto manifest = read_manifest(half_dir);
  if (manifest.status().code() == StatusCode::not_found && export_id.empty()) return ok_status();
  ROPEWALK_RETURN_IF_ERROR(manifest.status());
  if (manifest->export_id != export_id) {
    return data_loss(fmt::format("{}: expected export {}, found {}",
                                 (half_dir / kManifestPath).string(), export_id,
                                 manifest->export_id));
  }
  return check_sizes(*manifest, half_dir);
}

}  // namespace

Result<Marker> read_marker(const std::filesystem::path& half_dir) {
  const std::filesystem::path path = half_dir / kMarkerPath;
  ROPEWALK_ASSIGN_OR_RETURN(const std::string text, read_text_file(path, kMaxMarkerBytes));
  ROPEWALK_ASSIGN_OR_RETURN_CTX(Marker marker, parse_marker(text), path.string());
  return marker;
}

Result<Pair> read_pair(const std::filesystem::path& pair_dir) {
  Pair pair;
  ROPEWALK_ASSIGN_OR_RETURN(pair.accepted, read_marker(pair_dir / "accepted"));
  ROPEWALK_ASSIGN_OR_RETURN(pair.rejected, read_marker(pair_dir / "rejected"));
  pair.mixed = why_mixed(pair);
  return pair;
}

Status verify_pair(const std::filesystem::path& pair_dir, std::string_view export_id) {
  ROPEWALK_ASSIGN_OR_RETURN(const Pair pair, read_pair(pair_dir));
  if (!pair.mixed.empty()) {
    return failed_precondition(fmt::format("{}: the halves do not belong together: {}",
                                           pair_dir.string(), pair.mixed))
        .with_reason("PAIR_MIXED");
  }
  const std::string& found = pair.accepted.export_id;
  if (!export_id.empty() && found != export_id) {
    return data_loss(
        fmt::format("{}: expected export {}, found \"{}\"", pair_dir.string(), export_id, found));
  }
  ROPEWALK_RETURN_IF_ERROR(verify_half(pair_dir / "accepted", found));
  return verify_half(pair_dir / "rejected", found);
}

Result<PairPresence> look_at(const std::filesystem::path& pair_dir) {
  ROPEWALK_ASSIGN_OR_RETURN(const auto info, file_info(pair_dir));
  if (!info) return PairPresence::absent;
  if (!info->is_directory) return PairPresence::other;
  ROPEWALK_ASSIGN_OR_RETURN(const auto names, list_directory(pair_dir));
  if (names.empty()) return PairPresence::empty;
  int halves = 0;
  int markers = 0;
  for (const std::string_view half : kHalves) {
    ROPEWALK_ASSIGN_OR_RETURN(const auto half_info, file_info(pair_dir / half));
    if (!half_info || !half_info->is_directory) continue;
    ++halves;
    ROPEWALK_ASSIGN_OR_RETURN(const auto marker, file_info(pair_dir / half / kMarkerPath));
    if (marker && marker->is_regular) ++markers;
  }
  if (markers == 2) return PairPresence::pair;
  return halves > 0 ? PairPresence::incomplete : PairPresence::other;
}

Status write_verification(const std::filesystem::path& pair_dir, const Verification& verification) {
  Json manifests;
  manifests.set("accepted", verification.accepted_manifest_sha256);
  manifests.set("rejected", verification.rejected_manifest_sha256);
  Json json;
  json.set("export_id", verification.export_id);
  json.set("verified_at", verification.verified_at);
  json.set("manifest_sha256", std::move(manifests));
  json.set("result", verification.result);
  json.set("findings", verification.findings);
  return replace_with_temporary(pair_dir / kVerificationName, as_bytes(json.dump(2) + "\n"),
                                pair_dir / kVerificationTemporaryName);
}

Result<std::optional<Verification>> read_verification(const std::filesystem::path& pair_dir) {
  const std::filesystem::path path = pair_dir / kVerificationName;
  auto text = read_text_file(path, kMaxMarkerBytes);
  if (text.status().code() == StatusCode::not_found) return std::optional<Verification>();
  ROPEWALK_RETURN_IF_ERROR(text.status());
  ROPEWALK_ASSIGN_OR_RETURN_CTX(const Json json, parse_json(*text), path.string());
  const Json* manifests = json.find("manifest_sha256");
  const auto export_id = json.get_string("export_id");
  const auto result = json.get_string("result");
  if (!export_id || !result || manifests == nullptr) {
    return data_loss(path.string() + ": expected {export_id, manifest_sha256, result}");
  }
  Verification out;
  out.export_id = *export_id;
  out.verified_at = json.get_string("verified_at").value_or("");
  out.accepted_manifest_sha256 = manifests->get_string("accepted").value_or("");
  out.rejected_manifest_sha256 = manifests->get_string("rejected").value_or("");
  out.result = *result;
  if (const Json* findings = json.find("findings")) out.findings = *findings;
  return std::optional<Verification>(std::move(out));
}

}  // namespace ropewalk
