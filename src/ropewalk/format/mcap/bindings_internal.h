#pragma once
// Bindings: which Channel and Schema a message belongs to, by its id and its place in the file.
// One id may mean different things at different places; the last definition before a message wins,
// and where none stands before it the first one that the file has.
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ropewalk/format/mcap/problem.h"
#include "ropewalk/format/mcap/records.h"

namespace ropewalk::mcap {

struct Binding {
  const Channel* channel = nullptr;
  const Schema* schema = nullptr;  ///< id 0 where it is missing and that was told
  bool wanted = false;
  bool overridden = false;        ///< the place decides
  bool plain = false;             ///< known with its schema, and not overridden
  const Schema* shown = nullptr;  ///< the schema to deliver: none where it is missing

  void settle() {
    shown = schema != nullptr && schema->id != 0 ? schema : nullptr;
    plain = channel != nullptr && !overridden && (schema != nullptr || channel->schema_id == 0);
  }
};

/// A record's place: the number of its segment and the offset in it.
struct Place {
  std::size_t segment = 0;
  std::uint64_t offset = 0;
  auto operator<=>(const Place&) const = default;
};

/// Where a problem is told to be: bytes of the file.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Not thread-safe. Lifetime: pointers handed out live as long as this and the maps given to it.
class Bindings {
 public:
  using Schemas = std::map<std::uint16_t, Schema>;
  using Channels = std::map<std::uint16_t, Channel>;

  /// `schemas` and `channels` are what holds where no definition stands before a message.
  void start(const Schemas& schemas, const Channels& channels,
             const std::optional<std::vector<std::string>>& topics);

  /// The binding of a message. A channel that is nowhere defined becomes `unknown/<id>`.
  const Binding& of(std::uint16_t id, Place place, Extent extent, std::vector<Problem>& problems) {
    const Binding* plain = plain_of(id);
    return plain != nullptr ? *plain : look_up(id, place, extent, problems);
  }
  /// The same where the place does not matter and nothing has to be told; else null.
  const Binding* plain_of(std::uint16_t id) const {
    if (id >= table_.size() || !table_[id].plain) return nullptr;
    return &table_[id];
  }
  /// Whether a chunk with messages of this channel may hold one that is wanted.
  bool may_want(std::uint16_t id) const {
    return id >= table_.size() || table_[id].channel == nullptr || table_[id].wanted ||
           table_[id].overridden;
  }
  /// The place decides about this channel, whatever was met so far.
  void mark_ambiguous(std::uint16_t id);
  /// Whether an id turned out to mean several things since the last call. Definitions that were met
  /// before are then to be told again, all of them: only now their places are kept.
  bool take_new_ambiguity() { return std::exchange(new_ambiguity_, false); }

  /// A definition met at a place, as record contents. Meeting the same again changes nothing; one
  /// that is not trusted counts only where there is no other.
  void on_schema(ByteSpan content, Place place, Extent extent, std::vector<Problem>& problems,
                 bool trusted);
  void on_channel(ByteSpan content, Place place, Extent extent, std::vector<Problem>& problems,
                  bool trusted);
  void on_schema(Schema schema, Place place, Extent extent, std::vector<Problem>& problems);
  void on_channel(Channel channel, Place place, Extent extent, std::vector<Problem>& problems);

 private:
  using Overrides = std::map<Place, Binding>;
  using SchemaOverrides = std::map<Place, const Schema*>;

  const Binding& look_up(std::uint16_t id, Place place, Extent extent,
                         std::vector<Problem>& problems);
  Binding bind(const Channel& channel, Place place) const;
  const Schema* schema_at(std::uint16_t id, Place place) const;
  bool topic_wanted(const std::string& topic) const {
    return !topics_.has_value() || topics_->contains(topic);
  }

  const Schemas* schemas_ = nullptr;
  bool new_ambiguity_ = false;
  std::optional<std::unordered_set<std::string>> topics_;
  std::vector<Binding> table_;  // by channel id
  std::map<std::uint16_t, Overrides> overrides_;
  std::map<std::uint16_t, SchemaOverrides> schema_overrides_;
  std::deque<Channel> own_channels_;
  std::deque<Schema> own_schemas_;
};

}  // namespace ropewalk::mcap
