// CompletionChannel brings a device's completion events to one loop. All the loop's completion
// queues share it, so a further connection costs no descriptor.
//
// The device makes one event for each arming. Taking it only notes it at its queue, for the queue's
// poller; a queue that goes takes its unread events along.
//
// Law: the descriptor is watched while somebody listens (Listen, Ignore), and the loop outlives
// that.
// Thread rule: the loop's thread.
#pragma once

#include <infiniband/verbs.h>

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/mutex.h"
#include "lib/os/epoll_loop.h"
#include "lib/verbs/ibv/async_events.h"

namespace tokamak::verbs::ibv {

class CompletionTarget : public AsyncTarget {
 public:
  // Notes an event that was taken, to be acknowledged.
  virtual void OnChannelEvent() = 0;

 protected:
  ~CompletionTarget() = default;
};

class CompletionChannel final {
 public:
  static absl::StatusOr<std::shared_ptr<CompletionChannel>> Open(ibv_context* device, os::EpollLoop& loop);
  CompletionChannel(ibv_comp_channel* channel, os::EpollLoop& loop) : channel_(channel), loop_(loop) {}
  // All its queues must be gone.
  ~CompletionChannel();
  CompletionChannel(const CompletionChannel&) = delete;
  CompletionChannel& operator=(const CompletionChannel&) = delete;

  ibv_comp_channel* get() const { return channel_; }
  const os::EpollLoop& loop() const { return loop_; }

  void Listen();
  void Ignore();

  // Takes one event by a system call, and notes it at its queue. Returns whether there was one.
  bool TakeEvent();

 private:
  ibv_comp_channel* const channel_;
  os::EpollLoop& loop_;
  int listeners_ = 0;
  os::FdWatch watch_;
};

// A device's channels, one for each loop that has completion queues. From any thread.
class CompletionChannels final {
 public:
  // Must run on the loop's thread.
  absl::StatusOr<std::shared_ptr<CompletionChannel>> Of(ibv_context* device, os::EpollLoop& loop);

 private:
  base::Mutex mutex_;
  std::vector<std::weak_ptr<CompletionChannel>> channels_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::verbs::ibv
