#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "ropewalk/base/codec/checksum.h"
#include "ropewalk/base/exec/thread_pool.h"
#include "ropewalk/dataset/eva_mcap/frame_pump_internal.h"

namespace ropewalk::eva_mcap {
namespace {

/// Frames that one task decodes before others get their turn.
constexpr int kFramesPerTask = 4;
/// Copied bytes that may wait for the hashing.
constexpr std::uint64_t kMaxQueuedBytes = 16ULL << 20;

/// Waits for `done` under `lock`, running other tasks of the pool meanwhile, so that a task of the
/// pool may itself wait here.
template <typename Done>
void help_until(ThreadPool& pool, std::unique_lock<std::mutex>& lock,
                std::condition_variable& changed, const Done& done) {
  while (!done()) {
    lock.unlock();
    const bool helped = pool.run_one();
    lock.lock();
    if (!helped && !done()) changed.wait_for(lock, std::chrono::milliseconds(5));
  }
}

}  // namespace

struct FramePump::State : std::enable_shared_from_this<FramePump::State> {
  struct Camera {
    std::string name;
    std::unique_ptr<FrameReader> reader;  // used by one task at a time
    FrameShape shape;
    std::int64_t decoded = 0;      // frames decoded or being decoded
    std::int64_t outstanding = 0;  // of them, not given back yet
    std::int64_t depth = 2;        // bound of outstanding
    bool at_work = false;          // a task is queued or runs
    std::deque<std::shared_ptr<const Frame>> ready;
    std::vector<std::unique_ptr<Frame>> spare;
    Status error;
  };

  std::int64_t length = 0;
  RunContext context;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<Camera> cameras;
  int tasks = 0;
  bool stopping = false;

  // All below expect the mutex to be held, except where they say otherwise.

  bool may_decode(const Camera& camera) const {
    return !stopping && camera.error.ok() && camera.decoded < length &&
           camera.outstanding < camera.depth;
  }

  void start_task(std::size_t number) {
    Camera& camera = cameras[number];
    if (camera.at_work || !may_decode(camera)) return;
    camera.at_work = true;
    ++tasks;
    Status status =
        context.pool->submit([self = shared_from_this(), number] { self->run_task(number); });
    if (!status.ok()) {
      camera.at_work = false;
      --tasks;
      camera.error = std::move(status);
    }
  }

  // Without the mutex.
  void run_task(std::size_t number) {
    Camera& camera = cameras[number];
    std::unique_lock lock(mutex);
    for (int i = 0; i < kFramesPerTask && may_decode(camera); ++i) decode_one(camera, number, lock);
    camera.at_work = false;
    --tasks;
    start_task(number);
    changed.notify_all();
  }

  void decode_one(Camera& camera, std::size_t number, std::unique_lock<std::mutex>& lock) {
    std::unique_ptr<Frame> frame;
    if (camera.spare.empty()) {
      frame = std::make_unique<Frame>();
    } else {
      frame = std::move(camera.spare.back());
      camera.spare.pop_back();
    }
    const std::int64_t ordinal = camera.decoded++;
    ++camera.outstanding;
    lock.unlock();
    Status status = decode(camera, ordinal, *frame);
    lock.lock();
    if (!status.ok()) {
      --camera.outstanding;
      camera.error = std::move(status);
    } else {
      camera.ready.push_back(give_out(std::move(frame), number));
    }
    changed.notify_all();
  }

  // Without the mutex: the reader belongs to the one task at work.
  Status decode(Camera& camera, std::int64_t ordinal, Frame& frame) const {
    ROPEWALK_RETURN_IF_ERROR(context.check_stop());
    frame.pixels.resize(camera.shape.frame_bytes());
    ROPEWALK_ASSIGN_OR_RETURN_CTX(const bool there, camera.reader->next(frame.pixels), camera.name);
    if (!there) {
      return data_loss(fmt::format("{}: frame {}: the pictures end early, {} rows are in the table",
                                   camera.name, ordinal, length));
    }
    frame.crc = crc32(0, frame.pixels);
    return ok_status();
  }

  // A frame that comes back to its camera when the last holder lets go of it.
  std::shared_ptr<const Frame> give_out(std::unique_ptr<Frame> frame, std::size_t number) {
    return {frame.release(), [self = shared_from_this(), number](Frame* back) {
              std::unique_ptr<Frame> owned(back);
              const std::lock_guard lock(self->mutex);
              Camera& camera = self->cameras[number];
              --camera.outstanding;
              camera.spare.push_back(std::move(owned));
              if (self->context.pool != nullptr) self->start_task(number);
            }};
  }
};

FramePump::FramePump(FramePump&&) noexcept = default;

FramePump::~FramePump() {
  if (state_ == nullptr) return;
  std::vector<std::deque<std::shared_ptr<const Frame>>> ready;
  {
    std::unique_lock lock(state_->mutex);
    state_->stopping = true;
    if (state_->context.pool != nullptr) {
      help_until(*state_->context.pool, lock, state_->changed, [&] { return state_->tasks == 0; });
    }
    // Letting go of a frame takes the mutex: not under it.
    for (State::Camera& camera : state_->cameras) {
      ready.push_back(std::move(camera.ready));
      camera.ready.clear();
      camera.reader.reset();
    }
  }
}

Result<FramePump> FramePump::open(const Episode& episode, const std::vector<std::string>& cameras,
                                  std::int64_t length, const RunContext& context,
                                  std::uint64_t budget_bytes) {
  auto state = std::make_shared<State>();
  state->length = length;
  state->context = context;
  state->cameras.resize(cameras.size());
  std::uint64_t bytes_of_all = 1;
  for (std::size_t i = 0; i < cameras.size(); ++i) {
    State::Camera& camera = state->cameras[i];
    camera.name = cameras[i];
    ROPEWALK_ASSIGN_OR_RETURN_CTX(camera.reader, episode.frames(cameras[i], {0, length}),
                                  cameras[i]);
    camera.shape = camera.reader->shape();
    bytes_of_all += camera.shape.frame_bytes();
  }
  for (State::Camera& camera : state->cameras) {
    camera.depth =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(budget_bytes / bytes_of_all), 2, 256);
  }
  FramePump pump(state);
  if (context.pool != nullptr) {
    const std::lock_guard lock(state->mutex);
    for (std::size_t i = 0; i < cameras.size(); ++i) state->start_task(i);
  }
  return pump;
}

const FrameShape& FramePump::shape(std::size_t camera) const {
  return state_->cameras[camera].shape;
}

Result<std::shared_ptr<const Frame>> FramePump::next(std::size_t number) {
  State::Camera& camera = state_->cameras[number];
  std::unique_lock lock(state_->mutex);
  if (state_->context.pool == nullptr) {
    if (camera.ready.empty() && camera.error.ok()) state_->decode_one(camera, number, lock);
  } else {
    help_until(*state_->context.pool, lock, state_->changed,
               [&] { return !camera.ready.empty() || !camera.error.ok(); });
  }
  if (camera.ready.empty()) return camera.error;
  std::shared_ptr<const Frame> out = std::move(camera.ready.front());
  camera.ready.pop_front();
  return out;
}

// --- hashing

struct AsyncHashSink::Lane : std::enable_shared_from_this<AsyncHashSink::Lane> {
  struct Piece {
    ByteSpan bytes;
    std::shared_ptr<const void> owner;
    bool counted = false;
  };

  ThreadPool* pool = nullptr;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Piece> pieces;
  std::uint64_t queued_bytes = 0;  // of copied pieces
  bool at_work = false;
  Sha256 hash;  // used by the one who is at work

  // With the mutex held; hashes until nothing is queued.
  void drain(std::unique_lock<std::mutex>& lock) {
    while (!pieces.empty()) {
      Piece piece = std::move(pieces.front());
      pieces.pop_front();
      lock.unlock();
      hash.update(piece.bytes);
      const std::uint64_t released = piece.counted ? piece.bytes.size() : 0;
      piece = {};  // may give a frame back: not under the mutex
      lock.lock();
      queued_bytes -= released;
      changed.notify_all();
    }
    at_work = false;
    changed.notify_all();
  }

  void push(Piece piece) {
    std::unique_lock lock(mutex);
    if (piece.counted) queued_bytes += piece.bytes.size();
    pieces.push_back(std::move(piece));
    if (!at_work) {
      at_work = true;
      const Status status = pool->submit([self = shared_from_this()] {
        std::unique_lock inner(self->mutex);
        self->drain(inner);
      });
      if (!status.ok()) drain(lock);
    }
    if (queued_bytes > kMaxQueuedBytes) {
      help_until(*pool, lock, changed, [&] { return queued_bytes <= kMaxQueuedBytes; });
    }
  }
};

AsyncHashSink::AsyncHashSink(std::unique_ptr<Sink> inner, ThreadPool* pool)
    : inner_(std::move(inner)), lane_(std::make_shared<Lane>()) {
  lane_->pool = pool;
}

AsyncHashSink::~AsyncHashSink() { static_cast<void>(finish_hex()); }

Status AsyncHashSink::append(ByteSpan bytes) {
  ROPEWALK_RETURN_IF_ERROR(inner_->append(bytes));
  if (lane_->pool == nullptr) {
    lane_->hash.update(bytes);
    return ok_status();
  }
  if (shared_ != nullptr && bytes.data() >= shared_->pixels.data() &&
      bytes.data() + bytes.size() <= shared_->pixels.data() + shared_->pixels.size()) {
    lane_->push({.bytes = bytes, .owner = shared_, .counted = false});
    return ok_status();
  }
  auto copy = std::make_shared<const Bytes>(bytes.begin(), bytes.end());
  const ByteSpan view(*copy);
  lane_->push({.bytes = view, .owner = std::move(copy), .counted = true});
  return ok_status();
}

std::string AsyncHashSink::finish_hex() {
  shared_.reset();
  if (lane_->pool != nullptr) {
    std::unique_lock lock(lane_->mutex);
    help_until(*lane_->pool, lock, lane_->changed,
               [&] { return !lane_->at_work && lane_->pieces.empty(); });
  }
  return lane_->hash.finish_hex();
}

}  // namespace ropewalk::eva_mcap
