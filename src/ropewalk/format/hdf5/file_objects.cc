#include <algorithm>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include "ropewalk/format/hdf5/file_objects_internal.h"
#include "ropewalk/format/hdf5/protocol_internal.h"

namespace ropewalk::hdf5_internal {
namespace {

struct Space {
  std::vector<std::int64_t> shape;
  std::uint64_t elements = 1;
};

Result<Space> read_space(hid_t space_id) {
  Space out;
  const H5S_class_t kind = H5Sget_simple_extent_type(space_id);
  if (kind == H5S_SCALAR) return out;
  if (kind == H5S_NULL) {
    out.shape = {0};
    out.elements = 0;
    return out;
  }
  const int rank = H5Sget_simple_extent_ndims(space_id);
  if (kind != H5S_SIMPLE || rank < 1 || rank > H5S_MAX_RANK) return library_error("read the shape");
  std::vector<hsize_t> dims(static_cast<std::size_t>(rank));
  if (H5Sget_simple_extent_dims(space_id, dims.data(), nullptr) < 0)
    return library_error("read the shape");
  for (const hsize_t n : dims) {
    if (n > static_cast<hsize_t>(INT64_MAX))
      return data_loss(fmt::format("an axis claims {} elements", n));
    out.shape.push_back(static_cast<std::int64_t>(n));
  }
  const auto count = element_count(out.shape);
  if (!count)
    return data_loss(fmt::format("the shape [{}] is too large", fmt::join(out.shape, ", ")));
  out.elements = static_cast<std::uint64_t>(*count);
  return out;
}

/// Reads text elements through `read`, which fills a buffer of a memory type.
template <typename Read>
Result<std::vector<std::string>> read_text_elements(hid_t file_type, hid_t space,
                                                    std::uint64_t count, std::uint64_t max_bytes,
                                                    Read read) {
  const htri_t variable = H5Tis_variable_str(file_type);
  Handle type(H5Tcopy(H5T_C_S1), &H5Tclose);
  const std::size_t size = variable > 0 ? sizeof(char*) : H5Tget_size(file_type);
  if (variable < 0 || !type.valid() || size == 0 ||
      H5Tset_cset(type.id(), H5Tget_cset(file_type)) < 0 ||
      H5Tset_size(type.id(), variable > 0 ? H5T_VARIABLE : size) < 0) {
    return library_error("read the text type");
  }
  if (count > max_bytes / size) {
    return resource_exhausted(
        fmt::format("{} texts take more than the limit of {} bytes", count, max_bytes));
  }
  std::vector<std::string> texts;
  if (count == 0) return texts;
  if (variable > 0) {
    std::vector<char*> pointers(count, nullptr);
    if (read(type.id(), pointers.data()) < 0) return library_error("read texts");
    std::uint64_t total = 0;
    for (const char* text : pointers) {
      const std::size_t length = text != nullptr ? std::strlen(text) : 0;
      total += length;
      if (total > max_bytes) {
        return resource_exhausted(
            fmt::format("texts take more than the limit of {} bytes", max_bytes));
      }
      texts.emplace_back(text != nullptr ? text : "", length);
    }
    static_cast<void>(H5Dvlen_reclaim(type.id(), space, H5P_DEFAULT, pointers.data()));
    return texts;
  }
  const H5T_str_t padding = H5Tget_strpad(file_type);
  if (H5Tset_strpad(type.id(), padding) < 0) return library_error("read the text type");
  std::vector<char> flat(count * size);
  if (read(type.id(), flat.data()) < 0) return library_error("read texts");
  for (std::uint64_t i = 0; i < count; ++i) {
    std::string_view text(flat.data() + i * size, size);
    if (padding == H5T_STR_SPACEPAD) {
      const auto last = text.find_last_not_of(' ');
      text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
    } else {
      text = text.substr(0, text.find('\0'));
    }
    texts.emplace_back(text);
  }
  return texts;
}

Result<std::optional<Hdf5Value>> read_attribute(hid_t attribute) {
  const Handle type(H5Aget_type(attribute), &H5Tclose);
  const Handle space_handle(H5Aget_space(attribute), &H5Sclose);
  if (!type.valid() || !space_handle.valid()) return library_error("read the type");
  ROPEWALK_ASSIGN_OR_RETURN(Space space, read_space(space_handle.id()));
  std::string type_name;
  const auto dtype = classify_type(type.id(), type_name);
  if (!dtype) return std::optional<Hdf5Value>();
  Hdf5Value value{*dtype, std::move(space.shape), {}, {}};
  if (*dtype == DType::string) {
    ROPEWALK_ASSIGN_OR_RETURN(
        value.texts, read_text_elements(
                         type.id(), space_handle.id(), space.elements, kMaxAttributeBytes,
                         [&](hid_t memory, void* out) { return H5Aread(attribute, memory, out); }));
    return std::optional(std::move(value));
  }
  const std::size_t item = dtype_size(*dtype);
  if (space.elements > kMaxAttributeBytes / item) {
    return resource_exhausted(fmt::format("{} elements are more than the limit of {} bytes",
                                          space.elements, kMaxAttributeBytes));
  }
  value.data.resize(space.elements * item);
  const Handle memory = make_type(*dtype);
  if (!value.data.empty() && H5Aread(attribute, memory.id(), value.data.data()) < 0) {
    return library_error("read");
  }
  return std::optional(std::move(value));
}

Status read_attributes(hid_t object, Hdf5ObjectInfo& info) {
  H5O_info_t object_info;
  if (H5Oget_info2(object, &object_info, H5O_INFO_NUM_ATTRS) < 0)
    return library_error("read the attributes");
  constexpr hsize_t kMaxAttributes = 10'000;
  if (object_info.num_attrs > kMaxAttributes) {
    return resource_exhausted(
        fmt::format("{} attributes, at most {} are read", object_info.num_attrs, kMaxAttributes));
  }
  for (hsize_t i = 0; i < object_info.num_attrs; ++i) {
    const Handle attribute(
        H5Aopen_by_idx(object, ".", H5_INDEX_NAME, H5_ITER_INC, i, H5P_DEFAULT, H5P_DEFAULT),
        &H5Aclose);
    if (!attribute.valid()) return library_error(fmt::format("attribute number {}", i));
    const ssize_t length = H5Aget_name(attribute.id(), 0, nullptr);
    if (length < 0 || length > 65'535)
      return library_error(fmt::format("attribute number {}: name", i));
    std::string name(static_cast<std::size_t>(length), '\0');
    if (H5Aget_name(attribute.id(), name.size() + 1, name.data()) < 0) {
      return library_error(fmt::format("attribute number {}: name", i));
    }
    auto value = read_attribute(attribute.id());
    if (!value.ok()) return value.status().with_context(fmt::format("attribute {}", name));
    if (*value) info.attributes.emplace_back(std::move(name), std::move(**value));
  }
  return ok_status();
}

Status describe_dataset(hid_t dataset, Hdf5ObjectInfo& info) {
  const Handle type(H5Dget_type(dataset), &H5Tclose);
  const Handle space_handle(H5Dget_space(dataset), &H5Sclose);
  const Handle creation(H5Dget_create_plist(dataset), &H5Pclose);
  if (!type.valid() || !space_handle.valid() || !creation.valid())
    return library_error("read the dataset");
  ROPEWALK_ASSIGN_OR_RETURN(Space space, read_space(space_handle.id()));
  info.shape = std::move(space.shape);
  info.dtype = classify_type(type.id(), info.type_name);
  info.stored_bytes = H5Dget_storage_size(dataset);
  info.filtered = H5Pget_nfilters(creation.id()) > 0;
  if (H5Pget_external_count(creation.id()) > 0) {
    return unimplemented("the data lies in another file, which is not read");
  }
  const H5D_layout_t layout = H5Pget_layout(creation.id());
  if (layout == H5D_VIRTUAL) return unimplemented("a virtual dataset is not read");
  if (layout == H5D_CHUNKED) {
    std::vector<hsize_t> chunk(info.shape.size());
    if (H5Pget_chunk(creation.id(), static_cast<int>(chunk.size()), chunk.data()) < 0) {
      return library_error("read the chunk shape");
    }
    for (const hsize_t n : chunk) info.chunk.push_back(static_cast<std::int64_t>(n & INT64_MAX));
  }
  return ok_status();
}

struct Listing {
  std::vector<std::string> names;
  bool too_many = false;
  std::uint64_t bytes = 0;
};

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  auto& listing = *static_cast<Listing*>(out);
  listing.bytes += std::strlen(name) + sizeof(std::uint32_t);
  if (listing.names.size() >= kMaxListedNames || listing.bytes > kMaxResponseBytes / 2) {
    listing.too_many = true;
    return 1;  // ends the walk
  }
  listing.names.emplace_back(name);
  return 0;
}

}  // namespace

Status FileObjects::open(int fd) {
  const LibraryLock lock;
  if (file_.valid()) return internal("opened twice");
  // No plugin of the system is loaded for a filter that a file names.
  if (H5PLset_loading_state(0) < 0) return library_error("switch plugins off");
  state_.fd = fd;
  state_.name = "file";
  file_ = open_file(state_);
  if (!file_.valid()) return library_error("is not a readable HDF5 file");
  return ok_status();
}

Result<Handle> FileObjects::open_object(const std::string& path) {
  if (!file_.valid()) return internal("not opened");
  Handle current(H5Oopen(file_.id(), "/", H5P_DEFAULT), &H5Oclose);
  if (!current.valid()) return library_error("open the root group");
  std::size_t at = 0;
  while (at < path.size()) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, slash - at);
    at = slash + 1;
    if (part.empty()) continue;
    if (part == "." || part.find('\0') != std::string::npos)
      return invalid_argument("is not a path");
    if (H5Iget_type(current.id()) != H5I_GROUP) return not_found("there is no such object");
    const htri_t exists = H5Lexists(current.id(), part.c_str(), H5P_DEFAULT);
    if (exists < 0) return library_error(fmt::format("look up {}", part));
    if (exists == 0) return not_found(fmt::format("there is no {}", part));
    H5L_info_t link;
    if (H5Lget_info(current.id(), part.c_str(), &link, H5P_DEFAULT) < 0) {
      return library_error(fmt::format("look up {}", part));
    }
    // A soft link may lead through an external one, which opens another file.
    if (link.type != H5L_TYPE_HARD)
      return unimplemented(fmt::format("{} is a link, which is not followed", part));
    Handle next(H5Oopen(current.id(), part.c_str(), H5P_DEFAULT), &H5Oclose);
    if (!next.valid()) return library_error(fmt::format("open {}", part));
    current = std::move(next);
  }
  return current;
}

Result<Handle> FileObjects::open_dataset(const std::string& path) {
  ROPEWALK_ASSIGN_OR_RETURN(Handle object, open_object(path));
  if (H5Iget_type(object.id()) != H5I_DATASET) return invalid_argument("is not a dataset");
  return object;
}

Result<std::vector<std::string>> FileObjects::list(const std::string& path) {
  const LibraryLock lock;
  ROPEWALK_ASSIGN_OR_RETURN(const Handle object, open_object(path));
  if (H5Iget_type(object.id()) != H5I_GROUP) return invalid_argument("is not a group");
  Listing listing;
  hsize_t position = 0;
  if (H5Literate(object.id(), H5_INDEX_NAME, H5_ITER_INC, &position, &add_name, &listing) < 0) {
    return library_error("list the group");
  }
  if (listing.too_many) {
    return resource_exhausted(fmt::format("more than {} names in a group", listing.names.size()));
  }
  std::sort(listing.names.begin(), listing.names.end());
  return std::move(listing.names);
}

Result<Hdf5ObjectInfo> FileObjects::describe(const std::string& path) {
  const LibraryLock lock;
  ROPEWALK_ASSIGN_OR_RETURN(const Handle object, open_object(path));
  Hdf5ObjectInfo info;
  const H5I_type_t kind = H5Iget_type(object.id());
  if (kind == H5I_GROUP) info.kind = Hdf5ObjectKind::group;
  if (kind == H5I_DATASET) {
    info.kind = Hdf5ObjectKind::dataset;
    ROPEWALK_RETURN_IF_ERROR(describe_dataset(object.id(), info));
  }
  ROPEWALK_RETURN_IF_ERROR(read_attributes(object.id(), info));
  return info;
}

Status FileObjects::read_rows(const std::string& path, std::uint64_t begin, std::uint64_t end,
                              MutableByteSpan out) {
  const LibraryLock lock;
  if (!last_dataset_.valid() || last_path_ != path) {
    ROPEWALK_ASSIGN_OR_RETURN(last_dataset_, open_dataset(path));
    last_path_ = path;
    Hdf5ObjectInfo info;
    ROPEWALK_RETURN_IF_ERROR(describe_dataset(last_dataset_.id(), info));
  }
  const hid_t dataset = last_dataset_.id();
  const Handle file_type(H5Dget_type(dataset), &H5Tclose);
  const Handle file_space(H5Dget_space(dataset), &H5Sclose);
  if (!file_type.valid() || !file_space.valid()) return library_error("read the dataset");
  std::string type_name;
  const auto dtype = classify_type(file_type.id(), type_name);
  if (!dtype || dtype_size(*dtype) == 0)
    return invalid_argument(fmt::format("holds {}, not numbers", type_name));
  ROPEWALK_ASSIGN_OR_RETURN(Space space, read_space(file_space.id()));
  std::vector<std::int64_t> wanted = space.shape;
  if (!wanted.empty()) {
    if (begin > end || end > static_cast<std::uint64_t>(wanted[0])) {
      return out_of_range(fmt::format("rows [{}, {}) of {}", begin, end, wanted[0]));
    }
    wanted[0] = static_cast<std::int64_t>(end - begin);
  }
  const auto count = element_count(wanted);
  if (!count || static_cast<std::uint64_t>(*count) != out.size() / dtype_size(*dtype) ||
      out.size() % dtype_size(*dtype) != 0) {
    return invalid_argument("the rows do not fit the memory");
  }
  if (*count == 0) return ok_status();
  const Handle memory_type = make_type(*dtype);
  if (wanted.empty()) {
    if (H5Dread(dataset, memory_type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, out.data()) < 0) {
      return library_error("read");
    }
    return ok_status();
  }
  std::vector<hsize_t> start(wanted.size(), 0);
  start[0] = begin;
  const std::vector<hsize_t> size(wanted.begin(), wanted.end());
  const Handle memory_space(H5Screate_simple(static_cast<int>(size.size()), size.data(), nullptr),
                            &H5Sclose);
  if (!memory_space.valid() ||
      H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, size.data(),
                          nullptr) < 0 ||
      H5Dread(dataset, memory_type.id(), memory_space.id(), file_space.id(), H5P_DEFAULT,
              out.data()) < 0) {
    return library_error(fmt::format("read rows [{}, {})", begin, end));
  }
  return ok_status();
}

Result<Hdf5Value> FileObjects::read_texts(const std::string& path, std::uint64_t max_bytes) {
  const LibraryLock lock;
  ROPEWALK_ASSIGN_OR_RETURN(const Handle dataset, open_dataset(path));
  Hdf5ObjectInfo info;
  ROPEWALK_RETURN_IF_ERROR(describe_dataset(dataset.id(), info));
  if (info.dtype != DType::string)
    return invalid_argument(fmt::format("holds {}, not text", info.type_name));
  const Handle type(H5Dget_type(dataset.id()), &H5Tclose);
  const Handle space(H5Dget_space(dataset.id()), &H5Sclose);
  const auto count = element_count(info.shape);
  if (!count) return data_loss("the shape is too large");
  Hdf5Value value{DType::string, info.shape, {}, {}};
  ROPEWALK_ASSIGN_OR_RETURN(
      value.texts, read_text_elements(type.id(), space.id(), static_cast<std::uint64_t>(*count),
                                      max_bytes, [&](hid_t memory, void* out) {
                                        return H5Dread(dataset.id(), memory, H5S_ALL, H5S_ALL,
                                                       H5P_DEFAULT, out);
                                      }));
  return value;
}

}  // namespace ropewalk::hdf5_internal
