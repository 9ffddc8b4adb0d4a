#pragma once
// Message: payload bytes to named values and back. The front door of format/message; it knows
// encodings, and neither containers nor the meaning of topics.
//
//   msgpack.h        MessagePack: a writer that emits the smallest form of each value, and a
//   bounded
//                    decoder into a tree of views
//   msgpack_numpy.h  NumPy arrays and scalars inside MessagePack, as openpi's client writes them
#include "ropewalk/format/message/msgpack.h"
#include "ropewalk/format/message/msgpack_numpy.h"
