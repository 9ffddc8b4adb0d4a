#pragma once
// The wire formats that have no names in them, CDR and ROS 1: how bytes are laid out, and payload
// to values and back by the types of a TypeTable.
#include <string>

#include "ropewalk/format/message/type_table_internal.h"
#include "ropewalk/format/message/value.h"

namespace ropewalk::message {

/// Spec: mcap 5.2, 5.3; DDS-XTypes 1.3, 7.4.
struct WireFormat {
  bool ros1 = false;
  bool swapped = false;  ///< big-endian
  bool xcdr2 = false;
  bool delimited = false;       ///< the encapsulation says: types that say nothing are appendable
  bool parameter_list = false;  ///< the encapsulation says: the outermost type is mutable
  bool type_headers = true;     ///< appendable and mutable types have headers
  bool bare_enums = false;      ///< rows of enumerations have no length in front, as Fast-CDR does
  std::size_t max_alignment = 8;
  std::size_t origin = 4;     ///< alignment counts from this byte
  std::size_t wide_unit = 2;  ///< bytes of a character of a wide string
};

constexpr std::size_t kEncapsulationBytes = 4;

/// Reads the encapsulation header. Errors: data_loss for a short payload or an unknown kind.
Result<WireFormat> read_encapsulation(ByteSpan payload);
inline WireFormat ros1_format() { return {.ros1 = true, .max_alignment = 1, .origin = 0}; }

/// What a structure or union looks like on the wire.
inline Extensibility wire_extensibility(const WireFormat& format, Extensibility declared,
                                        bool outermost) {
  if (format.ros1 || !format.type_headers) return Extensibility::final;
  if (declared != Extensibility::unspecified) return declared;
  if (format.parameter_list && outermost) return Extensibility::mutable_;
  return format.delimited ? Extensibility::appendable : Extensibility::final;
}

/// The member of a union that holds its discriminator.
constexpr std::string_view kDiscriminatorName = "_d";

/// XCDR2 puts a length before sequences and arrays of anything but primitives; enumerations and
/// bitmasks are none.
bool has_collection_header(const WireFormat& format, const TypeTable& table, const Type& element);

/// Decodes a whole payload; what is left open by the encapsulation (the size of wide characters,
/// the origin of alignment) is found by trial. Errors: data_loss, resource_exhausted.
Status decode_cdr(const TypeTable& table, bool idl, ByteSpan payload, const Limits& limits,
                  Message& out);
Status decode_ros1(const TypeTable& table, ByteSpan payload, const Limits& limits, Message& out);

/// Encodes in exactly this format. Errors: invalid_argument with the path of the field.
Result<Bytes> encode_wire(const TypeTable& table, const WireFormat& format, const Value& value);
/// Encodes as XCDR1, or as XCDR2 where types have extensions. Errors: as encode_wire.
Result<Bytes> encode_cdr(const TypeTable& table, const Value& value);

}  // namespace ropewalk::message
