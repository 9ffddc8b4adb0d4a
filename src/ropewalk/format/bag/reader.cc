#include "ropewalk/format/bag/reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "ropewalk/format/bag/bag_internal.h"

namespace ropewalk::bag {
namespace {

constexpr std::string_view kZstdMagic("\x28\xb5\x2f\xfd", 4);

Result<Bytes> head_of(const Source& source) {
  Bytes head(static_cast<std::size_t>(std::min<std::uint64_t>(source.size(), 16)));
  ROPEWALK_RETURN_IF_ERROR(source.read_at(0, head));
  return head;
}

Result<std::unique_ptr<BagFile>> open_file(std::shared_ptr<const Source> source,
                                           const ReaderOptions& options) {
  if (source->size() == 0) return data_loss(source->name() + ": the file is empty");
  ROPEWALK_ASSIGN_OR_RETURN(const Bytes head, head_of(*source));
  if (as_text(head).starts_with(kZstdMagic)) {
    ROPEWALK_ASSIGN_OR_RETURN(source, unpack_source(*source, options));
    return open_db3(std::move(source), options, std::nullopt);
  }
  if (is_rosbag1(head)) return open_rosbag1(std::move(source), options);
  if (is_sqlite(head)) return open_db3(std::move(source), options, std::nullopt);
  return data_loss(
      fmt::format("{}: neither a ROS 1 bag nor a database of a ROS 2 bag (starts with "
                  "{})",
                  source->name(), to_hex(head)));
}

}  // namespace

struct MessageReader::Impl {
  std::shared_ptr<const BagFile> file;
  std::unique_ptr<MessageStream> stream;
  Status status;
  bool ended = false;
};

MessageReader::MessageReader(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MessageReader::MessageReader(MessageReader&&) noexcept = default;
MessageReader& MessageReader::operator=(MessageReader&&) noexcept = default;
MessageReader::~MessageReader() = default;

bool MessageReader::next(MessageView& out) {
  if (impl_->ended) return false;
  auto more = impl_->stream->next(out);
  if (!more.ok()) impl_->status = more.status();
  impl_->ended = !more.ok() || !*more;
  if (impl_->ended) return false;
  out.channel = &impl_->file->channels[out.channel_index];
  return true;
}

const Status& MessageReader::status() const { return impl_->status; }
const std::vector<Problem>& MessageReader::problems() const {
  static const std::vector<Problem> kNone;
  return impl_->stream ? impl_->stream->problems.entries() : kNone;
}

Result<BagReader> BagReader::open(const std::filesystem::path& path, ReaderOptions options) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const BagFile> bag, open_directory(path, options));
    return BagReader(std::move(bag));
  }
  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const Source> source, open_source(path));
  ROPEWALK_ASSIGN_OR_RETURN(const Bytes head, head_of(*source));
  if (!is_sqlite(head)) return open(std::move(source), std::move(options));
  ProblemLog met(path.string());
  ROPEWALK_ASSIGN_OR_RETURN(source, open_db3_source(path, options, met));
  ROPEWALK_ASSIGN_OR_RETURN(auto file, open_db3(std::move(source), options, std::nullopt));
  file->problems.append(met.entries());
  return BagReader(std::shared_ptr<const BagFile>(std::move(file)));
}

Result<BagReader> BagReader::open(std::shared_ptr<const Source> source, ReaderOptions options) {
  ROPEWALK_ASSIGN_OR_RETURN(std::shared_ptr<const BagFile> file,
                            open_file(std::move(source), options));
  return BagReader(std::move(file));
}

BagKind BagReader::kind() const { return file_->kind; }
const std::vector<Channel>& BagReader::channels() const { return file_->channels; }
std::optional<std::uint64_t> BagReader::message_count() const { return file_->message_count(); }
std::optional<TimeRange> BagReader::time_range() const { return file_->range; }
const std::optional<BagMetadata>& BagReader::metadata() const { return file_->metadata; }
const std::vector<Problem>& BagReader::problems() const { return file_->problems.entries(); }

MessageReader BagReader::messages(Query query) const {
  Selection selection{
      .order = query.order, .begin_ns = query.begin_time_ns, .last_ns = query.last_time_ns};
  for (const Channel& channel : file_->channels) {
    selection.channels.push_back(!query.topics || std::ranges::find(*query.topics, channel.topic) !=
                                                      query.topics->end());
  }
  auto impl = std::make_unique<MessageReader::Impl>();
  impl->file = file_;
  auto stream = file_->stream(selection);
  if (stream.ok()) {
    impl->stream = std::move(stream).value();
  } else {
    impl->status = stream.status();
    impl->ended = true;
  }
  return MessageReader(std::move(impl));
}

}  // namespace ropewalk::bag
