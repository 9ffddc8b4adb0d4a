#pragma once
// HDF5: files with groups, attributes and arrays, through the C library.
//
// The library has one global lock and crashes on damaged files. So:
// - Hdf5Writer (writer.h) enters it from one thread at a time and keeps it out of the data path:
// the
//   library assigns the place of every frame, our threads write the bytes there.
// - Hdf5Reader (reader.h) never parses a file in this process. A child process with limits of
// memory and
//   time, the program `ropewalk-hdf5-reader`, does; its death is a data_loss error that names the
//   file.
//
// Limits: Hdf5ReaderOptions. Objects behind soft, external or user-defined links, virtual datasets
// and datasets in external files are refused; filters are those built into the library (deflate,
// shuffle, szip, fletcher32, nbit, scaleoffset), no plugin is loaded. Spec: HDF5 File Format
// Specification 3.0; written with the earliest format versions, which every reader since 1.6
// understands.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ropewalk/base/core/bytes.h"
#include "ropewalk/base/core/dtype.h"
#include "ropewalk/base/core/nd_view.h"

namespace ropewalk {

/// A value read from a file. Text has dtype string and is in `texts` (one per element).
struct Hdf5Value {
  DType dtype = DType::uint8;
  std::vector<std::int64_t> shape;  ///< empty for a 0-d scalar
  Bytes data;                       ///< numbers: C order, little-endian
  std::vector<std::string> texts;   ///< strings

  NdView view() const { return {dtype, shape, data}; }
};

enum class Hdf5ObjectKind : std::uint8_t { group, dataset, other };

/// What a file says of one object, before any of its data is read.
struct Hdf5ObjectInfo {
  Hdf5ObjectKind kind = Hdf5ObjectKind::other;
  std::optional<DType> dtype;       ///< datasets; nullopt for a type that is none of ours
  std::string type_name;            ///< for messages: "compound", "int32", …
  std::vector<std::int64_t> shape;  ///< datasets; empty for a 0-d scalar
  std::vector<std::int64_t> chunk;  ///< empty when not chunked
  bool filtered = false;            ///< compressed or otherwise encoded
  std::uint64_t stored_bytes = 0;   ///< bytes the data takes in the file, as claimed
  std::vector<std::pair<std::string, Hdf5Value>> attributes;  ///< in order of creation or name

  /// Returns the text of a scalar string attribute, or nullopt.
  std::optional<std::string> text_attribute(std::string_view name) const;
};

}  // namespace ropewalk
