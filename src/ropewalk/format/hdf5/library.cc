#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "ropewalk/format/hdf5/library_internal.h"

namespace ropewalk::hdf5_internal {
namespace {

std::recursive_mutex& library_mutex() {
  static std::recursive_mutex* const mutex = new std::recursive_mutex;  // outlives every thread
  return *mutex;
}

struct ErrorText {
  std::string text;
};

herr_t take_innermost(unsigned n, const H5E_error2_t* entry, void* out) {
  if (n == 0 && entry != nullptr) {
    static_cast<ErrorText*>(out)->text =
        fmt::format("{} ({})", entry->desc != nullptr ? entry->desc : "no description",
                    entry->func_name != nullptr ? entry->func_name : "unknown");
  }
  return 0;
}

}  // namespace

LibraryLock::LibraryLock() : lock_(library_mutex()) {
  // The library keeps one error stack, and one setting to print it, per thread.
  thread_local const bool silenced = H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr) >= 0;
  static_cast<void>(silenced);
}

Status library_error(std::string_view what) {
  ErrorText reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, &take_innermost, &reason);
  H5Eclear2(H5E_DEFAULT);
  if (reason.text.empty())
    return data_loss(fmt::format("{}: the HDF5 library gave no reason", what));
  // Its messages hold line breaks, times and pointers at the end; one line is enough.
  std::replace(reason.text.begin(), reason.text.end(), '\n', ' ');
  return data_loss(fmt::format("{}: {}", what, reason.text));
}

Handle make_text_type() {
  Handle type(H5Tcopy(H5T_C_S1), &H5Tclose);
  if (!type.valid() || H5Tset_size(type.id(), H5T_VARIABLE) < 0 ||
      H5Tset_cset(type.id(), H5T_CSET_UTF8) < 0) {
    return {};
  }
  return type;
}

namespace {

Handle make_boolean() {
  Handle type(H5Tenum_create(H5T_STD_I8LE), &H5Tclose);
  const std::int8_t no = 0;
  const std::int8_t yes = 1;
  if (!type.valid() || H5Tenum_insert(type.id(), "FALSE", &no) < 0 ||
      H5Tenum_insert(type.id(), "TRUE", &yes) < 0) {
    return {};
  }
  return type;
}

Handle make_float16() {
  Handle type(H5Tcopy(H5T_IEEE_F32LE), &H5Tclose);
  // sign at bit 15, 5 bits of exponent from bit 10, 10 bits of mantissa from bit 0
  if (!type.valid() || H5Tset_fields(type.id(), 15, 10, 5, 0, 10) < 0 ||
      H5Tset_size(type.id(), 2) < 0 || H5Tset_ebias(type.id(), 15) < 0) {
    return {};
  }
  return type;
}

std::string_view class_name(H5T_class_t type_class) {
  switch (type_class) {
    case H5T_INTEGER:
      return "integer";
    case H5T_FLOAT:
      return "float";
    case H5T_TIME:
      return "time";
    case H5T_STRING:
      return "string";
    case H5T_BITFIELD:
      return "bitfield";
    case H5T_OPAQUE:
      return "opaque";
    case H5T_COMPOUND:
      return "compound";
    case H5T_REFERENCE:
      return "reference";
    case H5T_ENUM:
      return "enumeration";
    case H5T_VLEN:
      return "variable-length";
    case H5T_ARRAY:
      return "array";
    case H5T_NO_CLASS:
    case H5T_NCLASSES:
      break;
  }
  return "unknown";
}

std::optional<DType> integer_type(std::size_t size, bool with_sign) {
  switch (size) {
    case 1:
      return with_sign ? DType::int8 : DType::uint8;
    case 2:
      return with_sign ? DType::int16 : DType::uint16;
    case 4:
      return with_sign ? DType::int32 : DType::uint32;
    case 8:
      return with_sign ? DType::int64 : DType::uint64;
    default:
      return std::nullopt;
  }
}

bool is_boolean(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return false;
  std::int8_t no = -1;
  std::int8_t yes = -1;
  return H5Tenum_valueof(type, "FALSE", &no) >= 0 && H5Tenum_valueof(type, "TRUE", &yes) >= 0 &&
         no == 0 && yes == 1;
}

}  // namespace

Handle make_type(DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return make_boolean();
    case DType::int8:
      return {H5Tcopy(H5T_STD_I8LE), &H5Tclose};
    case DType::int16:
      return {H5Tcopy(H5T_STD_I16LE), &H5Tclose};
    case DType::int32:
      return {H5Tcopy(H5T_STD_I32LE), &H5Tclose};
    case DType::int64:
      return {H5Tcopy(H5T_STD_I64LE), &H5Tclose};
    case DType::uint8:
      return {H5Tcopy(H5T_STD_U8LE), &H5Tclose};
    case DType::uint16:
      return {H5Tcopy(H5T_STD_U16LE), &H5Tclose};
    case DType::uint32:
      return {H5Tcopy(H5T_STD_U32LE), &H5Tclose};
    case DType::uint64:
      return {H5Tcopy(H5T_STD_U64LE), &H5Tclose};
    case DType::float16:
      return make_float16();
    case DType::float32:
      return {H5Tcopy(H5T_IEEE_F32LE), &H5Tclose};
    case DType::float64:
      return {H5Tcopy(H5T_IEEE_F64LE), &H5Tclose};
    case DType::string:
    case DType::bytes:
      break;
  }
  return {};
}

std::optional<DType> classify_type(hid_t type, std::string& name) {
  const H5T_class_t type_class = H5Tget_class(type);
  const std::size_t size = H5Tget_size(type);
  name = fmt::format("{} of {} bytes", class_name(type_class), size);
  std::optional<DType> found;
  if (type_class == H5T_INTEGER) {
    found = integer_type(size, H5Tget_sign(type) != H5T_SGN_NONE);
  } else if (type_class == H5T_FLOAT) {
    if (size == 2) found = DType::float16;
    if (size == 4) found = DType::float32;
    if (size == 8) found = DType::float64;
  } else if (type_class == H5T_STRING) {
    found = DType::string;
  } else if (type_class == H5T_ENUM && is_boolean(type)) {
    found = DType::boolean;
  }
  if (found) name = std::string(dtype_name(*found));
  return found;
}

}  // namespace ropewalk::hdf5_internal
