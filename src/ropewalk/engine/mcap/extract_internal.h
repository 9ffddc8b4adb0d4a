#pragma once
// What the forms of extract share: the decoded messages of one topic, one after the other.
#include <functional>

#include "ropewalk/engine/mcap/copy_internal.h"
#include "ropewalk/engine/mcap/extract.h"
#include "ropewalk/format/message/message.h"

namespace ropewalk {

using TakeMessage =
    std::function<Status(const mcap::MessageView& view, const message::Value& root)>;

/// Hands every message of the topic to `take`, in log-time order. A payload that cannot be decoded
/// is counted as a loss. Errors: not_found; those of `take`; unimplemented for the encoding.
Status for_each_decoded(const ExtractRequest& request, const RunContext& context,
                        ExtractReport& report, const TakeMessage& take);

Status extract_video(const ExtractRequest& request, const RunContext& context,
                     ExtractReport& report);
Status extract_images(const ExtractRequest& request, const RunContext& context,
                      ExtractReport& report);
Status extract_table(const ExtractRequest& request, const RunContext& context,
                     ExtractReport& report);

}  // namespace ropewalk
