// Window is a memory window that is open to the peer of one bulk queue pair, for one transfer: the
// target of its WRITEs, inside a region whose own key lets nobody write.
//
//   binding --> open --> closing --> closed
//      |                               ^
//      +-----> unwanted ---------------+---- from each: its queue pair is gone
//
// Unwanted: closed before it was bound; invalidated once bound.
//
// Law: closed means that no byte comes through it any more: the invalidate has completed, or the
// queue pair is gone. Dropping it earlier is the same proof at the cost of a call, but its pending
// requests may end the queue pair.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/transport/memory/window_pool.h"
#include "lib/verbs/verbs.h"

namespace tokamak::transport {

class BulkQueue;

class Window final {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    // It is open now, or closed. May not drop it.
    virtual void OnWindow() = 0;
  };

  // Binds `window`, of `pool`, to `memory`, which lies in `ground`. `queue` is open.
  Window(base::EventLoop& loop, WindowPool& pool, std::unique_ptr<verbs::MemoryWindow> window, BulkQueue& queue,
         verbs::MemoryRegion& ground, absl::Span<uint8_t> memory, Owner& owner);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool binding() const { return state_ == State::kBinding; }
  bool open() const { return state_ == State::kOpen; }
  bool closing() const { return state_ == State::kClosing; }  // invalidate posted or about to be
  bool closed() const { return state_ == State::kClosed; }
  uint32_t rkey() const { return window_->rkey(); }  // while open

  // Ends the peer's access; OnWindow follows, unless closed() already.
  void Close();

  void Prepare(verbs::SendRequest* request) const;
  void OnPosted() { posted_ = true; }
  void OnDone();
  // OnWindow follows in a task of its own.
  void OnQueueGone();

  base::Link<Window> link;         // of the queue
  base::Link<Window> asking_link;  // waits to be posted

 private:
  enum class State { kBinding, kOpen, kUnwanted, kClosing, kClosed };
  void Leave();

  base::EventLoop& loop_;
  WindowPool& pool_;
  std::unique_ptr<verbs::MemoryWindow> window_;
  BulkQueue* queue_;  // null: gone, or done with this window
  verbs::MemoryRegion& ground_;
  const absl::Span<uint8_t> memory_;
  Owner& owner_;
  State state_ = State::kBinding;
  bool posted_ = false;    // with the device
  bool stranded_ = false;  // queue pair gone before it was invalidated
  base::Timer told_;
};

}  // namespace tokamak::transport
