#pragma once
// Private: FramePump decodes the frames of several cameras ahead of the one who writes them, on the
// threads of a pool and within a budget of bytes. AsyncHashSink hashes behind the one who writes.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ropewalk/base/exec/run_context.h"
#include "ropewalk/base/io/file.h"
#include "ropewalk/episode/episode.h"

namespace ropewalk::eva_mcap {

/// One decoded frame and the CRC-32 of its bytes. Its memory is used again once nobody holds it.
struct Frame {
  Bytes pixels;
  std::uint32_t crc = 0;
};

/// Lifetime: the episode must outlive the pump. Frames may outlive it.
class FramePump {
 public:
  /// Opens a frame reader per camera for the first `length` frames. Without a pool frames are
  /// decoded when asked for.
  static Result<FramePump> open(const Episode& episode, const std::vector<std::string>& cameras,
                                std::int64_t length, const RunContext& context,
                                std::uint64_t budget_bytes);
  FramePump(FramePump&&) noexcept;
  FramePump& operator=(FramePump&&) = delete;
  ~FramePump();  ///< waits for the tasks at work

  const FrameShape& shape(std::size_t camera) const;
  /// Returns the next frame of a camera. Errors: data_loss naming the camera when its pictures end
  /// before `length`; what decoding says; cancelled.
  Result<std::shared_ptr<const Frame>> next(std::size_t camera);

 private:
  struct State;
  explicit FramePump(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// A sink that writes through and takes the SHA-256 of what it wrote on the pool, in order.
class AsyncHashSink final : public Sink {
 public:
  AsyncHashSink(std::unique_ptr<Sink> inner, ThreadPool* pool);
  ~AsyncHashSink() override;

  Status append(ByteSpan bytes) override;
  Status sync() override { return inner_->sync(); }
  Status close() override { return inner_->close(); }
  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }

  /// Bytes of `frame` that are appended from now on are hashed where they lie; it is kept alive
  /// until then. Everything else is copied.
  void share(std::shared_ptr<const Frame> frame) { shared_ = std::move(frame); }
  /// Waits for the hashing and returns the digest of everything appended.
  std::string finish_hex();

 private:
  struct Lane;
  std::unique_ptr<Sink> inner_;
  std::shared_ptr<Lane> lane_;
  std::shared_ptr<const Frame> shared_;
};

}  // namespace ropewalk::eva_mcap
