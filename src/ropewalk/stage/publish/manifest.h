#pragma once
// The export manifest of one half: every other file with its size and SHA-256, hashed while it was
// written. It drives verification after publish and after upload.
// Spec: review-export-upload 5.5.
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk {

inline constexpr std::string_view kManifestPath = "meta/export_manifest.json";
inline constexpr std::string_view kMarkerPath = "meta/quality_split.json";

struct Manifest {
  std::string export_id;
  std::vector<WrittenFile> files;  ///< sorted by path

  std::uint64_t total_bytes() const;
};

/// Errors: not_found; data_loss for anything but a manifest, including paths that leave the root.
Result<Manifest> read_manifest(const std::filesystem::path& half_dir);
/// Returns the SHA-256 of the manifest file itself, which stands for the whole half.
Result<std::string> manifest_sha256(const std::filesystem::path& half_dir);
/// Compares names and sizes with what is on disk. Errors: data_loss with the first files that
/// differ.
Status check_sizes(const Manifest& manifest, const std::filesystem::path& half_dir);

/// Gathers the files of one half while it is written. Not thread-safe.
class ManifestBuilder {
 public:
  ManifestBuilder(std::filesystem::path root, std::string export_id)
      : root_(std::move(root)), manifest_{std::move(export_id), {}} {}

  const std::filesystem::path& root() const { return root_; }
  /// Takes over files that a sink wrote and hashed.
  void add(const std::vector<WrittenFile>& files);
  void add(WrittenFile file) { manifest_.files.push_back(std::move(file)); }
  /// Creates a file, fsynced, and records it. Directories above it are made.
  Status write_file(std::string_view path, ByteSpan bytes);
  /// Copies a file byte by byte (or by reflink; never a link), fsynced, and records it.
  Status copy(const std::filesystem::path& from, std::string_view path, std::stop_token stop = {});
  /// Checks that exactly the recorded files are there, with their sizes, and writes the manifest.
  /// Errors: internal for a file that is not recorded, twice recorded or missing.
  Status finish();
  const Manifest& manifest() const { return manifest_; }

 private:
  std::filesystem::path root_;
  Manifest manifest_;
};

}  // namespace ropewalk
