// Window is a memory window that is open to the peer of one bulk queue pair, for one transfer: the
// target of its WRITEs, inside a region whose own key lets nobody write.
//
//   binding --> open --> closing --> closed
//      |                               ^
//      +-----> unwanted ---------------+---- from each: its queue pair is gone
//
// Unwanted: closed before the device had bound it; it is invalidated once bound.
//
// Law: closed means that no byte comes through it any more: the invalidate has completed, or the
// queue pair is gone.
//
// Dropping a Window that is not closed drops the device's window, which is the same proof at the
// cost of a call; its pending requests may end the queue pair.
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
    // The window is open now, or closed. May not drop it.
    virtual void OnWindow() = 0;
  };

  // Starts to bind `window`, one of `pool`, to `memory`, which lies in `ground`. `queue` is open.
  Window(base::EventLoop& loop, WindowPool& pool, std::unique_ptr<verbs::MemoryWindow> window, BulkQueue& queue,
         verbs::MemoryRegion& ground, absl::Span<uint8_t> memory, Owner& owner);
  ~Window();
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool binding() const { return state_ == State::kBinding; }
  bool open() const { return state_ == State::kOpen; }
  bool closing() const { return state_ == State::kClosing; }  // the invalidate is posted, or about to be
  bool closed() const { return state_ == State::kClosed; }
  uint32_t rkey() const { return window_->rkey(); }  // while it is open

  // Ends the peer's access; OnWindow follows, unless it is closed() already.
  void Close();

  // ---- for its queue

  // Fills in its next request: a bind or an invalidate.
  void Prepare(verbs::SendRequest* request) const;
  // Its request is posted; then done.
  void OnPosted() { posted_ = true; }
  void OnDone();
  // The queue pair has been dropped. OnWindow follows in a task of its own.
  void OnQueueGone();

  base::Link<Window> link;         // windows of the queue
  base::Link<Window> asking_link;  // those of them whose request waits to be posted

 private:
  enum class State { kBinding, kOpen, kUnwanted, kClosing, kClosed };
  void Leave();

  base::EventLoop& loop_;
  WindowPool& pool_;
  std::unique_ptr<verbs::MemoryWindow> window_;
  BulkQueue* queue_;  // null: it is gone, or has finished with this window
  verbs::MemoryRegion& ground_;
  const absl::Span<uint8_t> memory_;
  Owner& owner_;
  State state_ = State::kBinding;
  bool posted_ = false;    // its request is with the device
  bool stranded_ = false;  // its queue pair went before it was invalidated
  base::Timer told_;
};

}  // namespace tokamak::transport
