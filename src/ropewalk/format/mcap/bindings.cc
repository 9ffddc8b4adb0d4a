#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/mcap/bindings_internal.h"

namespace ropewalk::mcap {
namespace {

// Stands for a schema whose absence was told.
const Schema kNoSchema;

template <typename Map>
auto in_force(Map& map, Place place) {
  const auto after = map.upper_bound(place);
  return after == map.begin() ? map.end() : std::prev(after);
}

}  // namespace

void Bindings::start(const Schemas& schemas, const Channels& channels,
                     const std::optional<std::vector<std::string>>& topics) {
  schemas_ = &schemas;
  if (topics.has_value()) topics_.emplace(topics->begin(), topics->end());
  for (const auto& [id, channel] : channels) {
    if (table_.size() <= id) table_.resize(id + std::size_t{1});
    table_[id] = bind(channel, {});
  }
}

void Bindings::mark_ambiguous(std::uint16_t id) {
  if (id >= table_.size()) table_.resize(id + std::size_t{1});
  table_[id].overridden = true;
  table_[id].settle();
  static_cast<void>(overrides_[id]);
}

const Schema* Bindings::schema_at(std::uint16_t id, Place place) const {
  if (id == 0) return nullptr;
  if (const auto of_id = schema_overrides_.find(id); of_id != schema_overrides_.end()) {
    const auto found = in_force(of_id->second, place);
    if (found != of_id->second.end()) return found->second;
  }
  const auto base = schemas_->find(id);
  return base == schemas_->end() ? nullptr : &base->second;
}

Binding Bindings::bind(const Channel& channel, Place place) const {
  Binding out{.channel = &channel,
              .schema = schema_at(channel.schema_id, place),
              .wanted = topic_wanted(channel.topic)};
  out.settle();
  return out;
}

const Binding& Bindings::look_up(std::uint16_t id, Place place, Extent extent,
                                 std::vector<Problem>& problems) {
  if (id >= table_.size()) table_.resize(id + std::size_t{1});
  Binding* out = &table_[id];
  if (out->overridden) {
    Overrides& of_id = overrides_[id];
    if (const auto found = in_force(of_id, place); found != of_id.end()) out = &found->second;
  }
  if (out->channel == nullptr) {
    Channel placeholder;
    placeholder.id = id;
    placeholder.topic = fmt::format("unknown/{}", id);
    own_channels_.push_back(std::move(placeholder));
    out->channel = &own_channels_.back();
    out->wanted = topic_wanted(out->channel->topic);
    problems.push_back(
        {.kind = ProblemKind::unknown_channel,
         .offset = extent.offset,
         .length = extent.length,
         .detail = fmt::format("no Channel with id {}: delivered as {}", id, out->channel->topic)});
  } else if (out->channel->schema_id != 0 && out->schema == nullptr) {
    problems.push_back({.kind = ProblemKind::missing_schema,
                        .offset = extent.offset,
                        .length = 0,
                        .detail = fmt::format("channel \"{}\": no Schema with id {}",
                                              out->channel->topic, out->channel->schema_id)});
    out->schema = &kNoSchema;
  }
  out->settle();
  return *out;
}

void Bindings::on_schema(ByteSpan content, Place place, Extent extent,
                         std::vector<Problem>& problems, bool trusted) {
  auto schema = parse_schema(content);
  if (!schema.ok() || (!trusted && schema_at(schema->id, place) != nullptr)) return;
  on_schema(std::move(*schema), place, extent, problems);
}

void Bindings::on_channel(ByteSpan content, Place place, Extent extent,
                          std::vector<Problem>& problems, bool trusted) {
  auto channel = parse_channel(content);
  if (!channel.ok()) return;
  const std::uint16_t id = channel->id;
  if (!trusted && id < table_.size() && table_[id].channel != nullptr) return;
  on_channel(std::move(*channel), place, extent, problems);
}

void Bindings::on_schema(Schema schema, Place place, Extent extent,
                         std::vector<Problem>& problems) {
  const std::uint16_t id = schema.id;
  if (id == 0) return;
  const Schema* known = schema_at(id, place);
  const bool ambiguous = schema_overrides_.contains(id);
  if (known != nullptr && *known == schema) {
    if (ambiguous) schema_overrides_[id][place] = known;
    return;
  }
  if (known != nullptr) {
    problems.push_back(
        {.kind = ProblemKind::conflicting_definition,
         .offset = extent.offset,
         .length = extent.length,
         .detail = fmt::format("schema {}: \"{}\", and now \"{}\"", id, known->name, schema.name)});
    if (!ambiguous) new_ambiguity_ = true;
  }
  own_schemas_.push_back(std::move(schema));
  schema_overrides_[id][place] = &own_schemas_.back();
  for (std::size_t channel = 0; channel < table_.size(); ++channel) {
    Binding& base = table_[channel];
    if (base.channel == nullptr || base.channel->schema_id != id) continue;
    if (known == nullptr) {
      base.schema = &own_schemas_.back();
      base.settle();
      continue;
    }
    base.overridden = true;
    base.settle();
    Overrides& of_id = overrides_[static_cast<std::uint16_t>(channel)];
    const auto now = in_force(of_id, place);
    Binding changed = now == of_id.end() ? base : now->second;
    if (changed.channel->schema_id == id) {
      changed.schema = &own_schemas_.back();
      of_id[place] = changed;
    }
  }
}

void Bindings::on_channel(Channel channel, Place place, Extent extent,
                          std::vector<Problem>& problems) {
  const std::uint16_t id = channel.id;
  if (id >= table_.size()) table_.resize(id + std::size_t{1});
  Binding& base = table_[id];
  if (base.channel == nullptr && !base.overridden) {
    own_channels_.push_back(std::move(channel));
    base = bind(own_channels_.back(), place);
    return;
  }
  const Binding* now = &base;
  if (base.overridden) {
    Overrides& of_id = overrides_[id];
    if (const auto found = in_force(of_id, place); found != of_id.end()) now = &found->second;
  }
  const Schema* schema = schema_at(channel.schema_id, place);
  const bool same_channel = now->channel != nullptr && *now->channel == channel;
  if (same_channel && (schema == nullptr || schema == now->schema)) {
    if (base.overridden) overrides_[id].insert_or_assign(place, Binding(*now));
    return;
  }
  if (!same_channel && now->channel != nullptr) {
    problems.push_back({.kind = ProblemKind::conflicting_definition,
                        .offset = extent.offset,
                        .length = extent.length,
                        .detail = fmt::format("channel {}: \"{}\", and now \"{}\"", id,
                                              now->channel->topic, channel.topic)});
    if (!base.overridden) new_ambiguity_ = true;
  }
  own_channels_.push_back(std::move(channel));
  const Binding bound_here = bind(own_channels_.back(), place);
  base.overridden = true;
  base.settle();
  overrides_[id].insert_or_assign(place, bound_here);
}

}  // namespace ropewalk::mcap
