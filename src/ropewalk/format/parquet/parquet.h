#pragma once
// Parquet: a thin layer over Arrow's Parquet: limits, row groups, key-value metadata, errors as
// Status. It knows no names of any dataset format.
//
//   reader.h  ParquetReader: footer, columns by name, rows by range
//   writer.h  ParquetWriter: one row group per record batch, into a file or a Sink
//
// Typical reading:
//   auto reader = ParquetReader::open("episode.parquet");
//   auto batch = (*reader)->read({0, 100}, std::vector<std::string>{"action"});
//
// Limits: no encryption. A row group is decoded whole, so its size is bounded by
// Limits.max_row_group_bytes.
#include "ropewalk/format/parquet/reader.h"
#include "ropewalk/format/parquet/writer.h"
