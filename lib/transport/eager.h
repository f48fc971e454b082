// Eager: the owner sends the object in chunks through message slots; one copy on each side, one round trip for a small one.
#pragma once

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/transport/context.h"
#include "lib/transport/control_channel.h"
#include "lib/transport/object_access.h"

namespace tokamak::transport {

// The owner's half: copies the next chunk into a slot whenever the channel has one.
class EagerOwner final : public ControlChannel::Stream {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    // All bytes are copied into slots: the object is not needed any more.
    virtual void OnStreamOver() = 0;
  };

  EagerOwner(base::EventLoop& loop, Listener& listener) : loop_(loop), listener_(listener) {}
  // From byte `arrived` on.
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
  bool started_ = false;  // an object of no bytes takes a chunk too
};

// The puller's half: copies chunks out of slots. Until there is memory to copy to, they stay in their slots, which the peer
// gets back later: it cannot send more than that.
class EagerPuller final {
 public:
  // From byte `arrived` on.
  EagerPuller(base::EventLoop& loop, uint64_t arrived) : loop_(loop), received_(arrived), copied_(arrived) {}

  // Takes the next chunk: copies it, or sets `*hold` and keeps the slot. kInvalidArgument: not the next chunk.
  absl::Status Accept(const Message& message, uint32_t slot, bool* hold, CopyBudget& budget);

  // Now there is memory, of the size that the chunks say.
  void SetMemory(absl::Span<uint8_t> memory);
  // Copies what was held, within `budget`. Returns true when some is left.
  bool CopyHeld(ControlChannel& channel, CopyBudget& budget);
  // Gives back the slots unread.
  void DropHeld(ControlChannel& channel);

  bool started() const { return started_; }
  uint64_t copied() const { return copied_; }
  bool complete() const { return started_ && copied_ == size_.total() && have_memory_; }

 private:
  struct Held {
    uint32_t slot;
    uint32_t size;
  };
  bool holding() const { return next_held_ < held_.size(); }

  base::EventLoop& loop_;
  ObjectSize size_;
  absl::Span<uint8_t> memory_;
  bool started_ = false;
  bool have_memory_ = false;
  uint64_t received_;  // bytes from the start, copied or held
  uint64_t copied_;
  absl::InlinedVector<Held, 4> held_;
  size_t next_held_ = 0;
};

}  // namespace tokamak::transport
