// The footer key `huggingface`, which tells the `datasets` library the types of the columns.
#include <fmt/format.h>

#include "ropewalk/dataset/lerobot/table_schema_internal.h"

namespace ropewalk::lerobot_internal {
namespace {

Json value_type(DType dtype) {
  return Json(Json::Object{{"dtype", Json(dtype_name(dtype))}, {"_type", Json("Value")}});
}

}  // namespace

std::string huggingface_metadata(const OutputTable& table) {
  Json features = Json::object();
  for (const OutputFeature& output : table.features) {
    const Feature& feature = output.feature;
    if (output.storage == Storage::video) continue;
    Json type = value_type(feature.dtype);
    if (output.storage == Storage::inline_image) {
      type = Json(Json::Object{{"_type", Json("Image")}});
    } else if (feature.shape.size() > 1) {
      Json shape = Json::array();
      for (const std::int64_t extent : feature.shape) shape.push_back(extent);
      type = Json(Json::Object{{"shape", std::move(shape)},
                               {"dtype", Json(dtype_name(feature.dtype))},
                               {"_type", Json(fmt::format("Array{}D", feature.shape.size()))}});
    } else if (feature.shape.front() != 1) {
      type = Json(Json::Object{{"feature", value_type(feature.dtype)},
                               {"length", Json(feature.shape.front())},
                               {"_type", Json("Sequence")}});
    }
    features.set(feature.name, std::move(type));
  }
  Json out = Json::object();
  out.set("info", Json(Json::Object{{"features", std::move(features)}}));
  return out.dump_spaced();
}

}  // namespace ropewalk::lerobot_internal
