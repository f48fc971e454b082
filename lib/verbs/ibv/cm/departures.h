// Departures takes ids of librdmacm that nobody holds any more, until the kernel is done with them.
//
// To disconnect takes a message and its answer, which may be repeated for seconds; to destroy an id
// may wait for the kernel. A thread does both, so neither a loop nor a program that drops a
// connection waits.
//
// Ids that wait for the application's answer are kept here too (Keep): they belong to no loop.
//
// Not for ids that listen: when such an id changes its channel, librdmacm leaves its waiting
// requests behind, out of reach.
//
// Thread rule: from any thread. The giver must not touch an id any more (except one that was only
// kept).
#pragma once

#include <rdma/rdma_cma.h>

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/mutex.h"
#include "lib/base/time.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/ibv/cm/cm_channel.h"

namespace tokamak::verbs::ibv {

class Departures final {
 public:
  // The longest wait of an id for the peer's answer to its goodbye, and the most ids that wait:
  // beyond it the oldest is destroyed.
  static constexpr base::Duration kLongestGoodbye = base::Seconds(15);
  static constexpr size_t kMaxGoodbyes = 4096;

  static absl::StatusOr<std::unique_ptr<Departures>> Start();

  // Destroys the remaining ids at once; a goodbye that was sent is not repeated then.
  ~Departures();
  Departures(const Departures&) = delete;
  Departures& operator=(const Departures&) = delete;

  // Sends the peer a goodbye and destroys `id` when it is answered.
  void Disconnect(rdma_cm_id* id);

  // Destroys `id`, and rejects a peer that waits for an answer.
  void Destroy(rdma_cm_id* id);

  // Moves `id`, which no event is expected for, to this channel; its owner stays the same. Errors
  // as rdma_migrate_id.
  absl::Status Keep(rdma_cm_id* id);

 private:
  struct Leaving {
    rdma_cm_id* id;
    int64_t until;  // milliseconds of the monotonic clock; 0: now
  };

  Departures(CmChannelHandle channel, os::FileDescriptor wake);

  void Add(rdma_cm_id* id, int64_t until);
  void Run();
  void ReadEvents();
  int DestroyWhoIsDue();  // returns the time until the next, in milliseconds; -1: there is none

  const CmChannelHandle channel_;
  const os::FileDescriptor wake_;
  base::Mutex mutex_;
  std::deque<Leaving> arrived_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Leaving> leaving_;  // the thread's own, in the order of their arrival
  std::thread thread_;
};

}  // namespace tokamak::verbs::ibv
