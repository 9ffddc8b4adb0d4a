#pragma once
// Bags: recordings of ROS 1 (.bag, version 2.0) and ROS 2 (.db3, directories with metadata.yaml) as
// messages with their channels. The front door of format/bag.
//
//   reader.h           BagReader: any bag, finished or not, in time order or file order
//   rosbag1_writer.h   Rosbag1Writer: .bag with chunks none, lz4 or bz2, and its index
//   rosbag2_writer.h   Rosbag2Writer: a directory of .db3 files with metadata.yaml
//   channel.h          Channel, MessageView: what both sides speak of
//   metadata.h         BagMetadata: metadata.yaml, whatever the storage
//   definitions.h      definitions of messages from a folder; the MD5 of ROS 1 types
//   problem.h          what was wrong in a bag, with its place
//
// Limits: base/core/limits.h (max_chunk_bytes, max_record_bytes). Payloads are bytes here:
// format/message decodes them. MCAP files of ROS 2 bags are named, and read by format/mcap.
#include "ropewalk/format/bag/channel.h"
#include "ropewalk/format/bag/definitions.h"
#include "ropewalk/format/bag/metadata.h"
#include "ropewalk/format/bag/problem.h"
#include "ropewalk/format/bag/reader.h"
#include "ropewalk/format/bag/rosbag1_writer.h"
#include "ropewalk/format/bag/rosbag2_writer.h"
