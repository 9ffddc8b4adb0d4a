#pragma once
// MCAP: the container of timestamped messages (mcap.dev). The front door of format/mcap.
//
// - reader.h: Reader opens any file, finished or not, and gives its messages in log-time, reverse
//   or file order; single messages by place; metadata and attachments.
// - merged_reader.h: MergedReader gives several files as one.
// - recover.h: rewrites what a damaged file still holds, and proves the result.
// - writer.h: Writer makes chunks, compression, indexes and summary; messages and attachments in
//   parts.
// - edit.h: adds attachments and metadata in place, and goes on with a file.
// - record_reader.h: RecordReader gives the records of a file one after the other; decode_chunk.
// - records.h: the fifteen records, parsed; record_writer.h: the same, written.
// - private_records.h: what a recording adds to find its place again.
// - problem.h: what was wrong in a file, with its place.
//
// Limits: base/core/limits.h (max_chunk_bytes, max_record_bytes). No length in a file sizes an
// allocation before it was checked. Payloads are bytes here: format/message decodes them.
#include "ropewalk/format/mcap/edit.h"
#include "ropewalk/format/mcap/merged_reader.h"
#include "ropewalk/format/mcap/private_records.h"
#include "ropewalk/format/mcap/problem.h"
#include "ropewalk/format/mcap/reader.h"
#include "ropewalk/format/mcap/record_reader.h"
#include "ropewalk/format/mcap/record_writer.h"
#include "ropewalk/format/mcap/records.h"
#include "ropewalk/format/mcap/recover.h"
#include "ropewalk/format/mcap/writer.h"
