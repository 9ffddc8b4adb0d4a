#pragma once
// MCAP: the container of timestamped messages (mcap.dev). The front door of format/mcap.
//
//   writer.h         Writer: chunks, compression, indexes, summary; messages and attachments in
//   parts reader.h         Reader: any file, finished or not; log-time, reverse and file order;
//   single
//                    messages by place; metadata, attachments
//   record_reader.h  RecordReader: the records of a file one after the other; decode_chunk
//   records.h        the fifteen records, parsed; record_writer.h: the same, written
//   problem.h        what was wrong in a file, with its place
//
// Limits: base/core/limits.h (max_chunk_bytes, max_record_bytes). No length in a file sizes an
// allocation before it was checked. Payloads are bytes here: format/message decodes them.
#include "ropewalk/format/mcap/problem.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/mcap/record_reader.h"
#include "ropewalk/format/mcap/record_writer.h"
#include "ropewalk/format/mcap/records.h"
#include "ropewalk/format/mcap/writer.h"
