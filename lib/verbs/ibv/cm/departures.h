// Departures takes ids of librdmacm that nobody holds any more, until the kernel is done with them.
//
// A disconnect and its answer may be repeated for seconds, and destroying an id may wait for the
// kernel. A thread does both, so neither a loop nor a program that drops a connection waits.
//
// Ids that wait for the application's answer, which belong to no loop, are kept here too (Keep).
// Not for listening ids: librdmacm loses their waiting requests on a change of channel.
//
// Thread rule: any thread. The giver must not touch an id any more, except one that is only kept.
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
  // The longest wait of an id for the answer to its goodbye, and the most ids that wait; beyond
  // that the oldest is destroyed.
  static constexpr base::Duration kLongestGoodbye = base::Seconds(15);
  static constexpr size_t kMaxGoodbyes = 4096;

  static absl::StatusOr<std::unique_ptr<Departures>> Start();

  // Destroys the rest at once, without repeating goodbyes.
  ~Departures();
  Departures(const Departures&) = delete;
  Departures& operator=(const Departures&) = delete;

  // Sends the peer a goodbye, and destroys `id` when it is answered.
  void Disconnect(rdma_cm_id* id);

  // Destroys `id`, and rejects a peer that waits for an answer.
  void Destroy(rdma_cm_id* id);

  // Moves `id`, for which no event is expected, to this channel; its owner stays the same. Errors
  // are those of rdma_migrate_id.
  absl::Status Keep(rdma_cm_id* id);

 private:
  struct Leaving {
    rdma_cm_id* id;
    int64_t until;  // monotonic milliseconds; 0: now
  };

  Departures(CmChannelHandle channel, os::FileDescriptor wake);

  void Add(rdma_cm_id* id, int64_t until);
  void Run();
  void ReadEvents();
  int DestroyWhoIsDue();  // returns milliseconds until the next; -1: none

  const CmChannelHandle channel_;
  const os::FileDescriptor wake_;
  base::Mutex mutex_;
  std::deque<Leaving> arrived_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Leaving> leaving_;  // the thread's; in order of arrival
  std::thread thread_;
};

}  // namespace tokamak::verbs::ibv
