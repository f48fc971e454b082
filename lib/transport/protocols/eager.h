// Eager: the owner sends the object in chunks through message slots; one copy on each side, one
// round trip for a small object.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/channels/control_channel.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

class EagerOwner final : public ControlChannel::Stream {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // The object is not needed any more.
    virtual void OnStreamOver() = 0;
  };

  EagerOwner(base::EventLoop& loop, Listener& listener) : loop_(loop), listener_(listener) {}
  // Sends from byte `arrived` on.
  void Open(uint64_t transfer, const PinnedObject& object, uint64_t arrived);

  size_t Next(Header* header, uint8_t* body, size_t room, CopyBudget& budget) override;
  bool over() const override { return started_ && offset_ == object_.size.total(); }
  void OnOver() override { listener_.OnStreamOver(); }

 private:
  base::EventLoop& loop_;
  Listener& listener_;
  uint64_t transfer_ = 0;
  PinnedObject object_;
  uint64_t offset_ = 0;
  bool started_ = false;  // an empty object takes a chunk too
};

class EagerPuller final {
 public:
  // Receives into `memory`, from byte `arrived` on.
  EagerPuller(base::EventLoop& loop, const ObjectSize& size, absl::Span<uint8_t> memory, uint64_t arrived)
      : loop_(loop), size_(size), memory_(memory), copied_(arrived) {}

  // kInvalidArgument: not the next chunk.
  absl::Status Accept(const Message& message, CopyBudget& budget);

  uint64_t copied() const { return copied_; }  // bytes from the start
  bool complete() const { return started_ && copied_ == memory_.size(); }

 private:
  base::EventLoop& loop_;
  const ObjectSize size_;
  const absl::Span<uint8_t> memory_;
  bool started_ = false;  // an empty object takes a chunk too
  uint64_t copied_;
};

}  // namespace tokamak::transport
