#pragma once
// LeRobot: datasets of the formats v2.0, v2.1 and v3.0: sources, sinks, checks, and the ledger of a
// raw dataset.
//
//   probe.h   what kind of dataset lies at a path
//   source.h  open_lerobot: a dataset as an EpisodeSource
//   check.h   check_dataset and validate_for_export: everything wrong with a dataset, at once
//
// Typical usage:
//   auto source = open_lerobot("raw", {});                      // metadata only: milliseconds
//   auto episode = (*source)->open(0);
//   auto batch = (*episode)->columns({0, (*episode)->info().length});
//   auto packets = (*episode)->packets("observation.images.top");
//
// Limits: local directories. v1.x and Lance tables are refused by name.
// Spec: lerobot-formats; review-export-upload 2 and 3.
#include "ropewalk/dataset/lerobot/check.h"
#include "ropewalk/dataset/lerobot/probe.h"
#include "ropewalk/dataset/lerobot/source.h"
