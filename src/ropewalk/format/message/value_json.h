#pragma once
// Values to JSON text and back. The text keeps what the value says: 64-bit integers are exact,
// float32 is the shortest text that reads back as the same float32.
#include <string>

#include "ropewalk/base/core/json.h"
#include "ropewalk/base/core/limits.h"
#include "ropewalk/format/message/value.h"

namespace ropewalk::message {

/// What becomes of bytes (binaries and rows of uint8).
enum class BytesForm : std::uint8_t {
  base64,   ///< text
  numbers,  ///< a list of numbers
  elided,   ///< the text "<921600 bytes>"; rows of more than 64 numbers are elided too
};

struct JsonOptions {
  BytesForm bytes = BytesForm::base64;
  bool wide_integers_as_text = true;  ///< beyond +-2^53, where readers that use doubles lose digits
  bool enumerators_as_names = true;   ///< false: as numbers
};

/// Appends compact JSON. NaN and infinities are the texts "NaN", "Infinity", "-Infinity"; times are
/// {"sec", "nsec"}; what is no UTF-8 is written as U+FFFD.
void append_json(const Value& value, const JsonOptions& options, std::string& out);
std::string to_json_text(const Value& value, const JsonOptions& options = {});

/// Returns the plain value of a JSON document: null, booleans, numbers, texts, arrays, objects.
/// Lifetime: texts and names are views into `json`. The schema of an encoder gives them their
/// types.
Value value_of_json(const Json& json);

std::string to_base64(ByteSpan bytes);
/// Reads standard or URL-safe base64, padded or not; nullopt when it is none.
std::optional<Bytes> from_base64(std::string_view text);

}  // namespace ropewalk::message
