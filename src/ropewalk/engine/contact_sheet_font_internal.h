#pragma once
// A bitmap font of 5 x 7 dots for printable ASCII, the shapes of dot-matrix displays.
#include <array>
#include <cstdint>

namespace ropewalk::sheet {

inline constexpr int kGlyphWidth = 5;
inline constexpr int kGlyphHeight = 7;

/// Seven rows, top first; the highest of five bits is the left dot.
using Glyph = std::array<std::uint8_t, kGlyphHeight>;

/// Returns the glyph of a character; of anything but printable ASCII a box.
const Glyph& glyph_of(char c);

}  // namespace ropewalk::sheet
