// Departures is where ids of librdmacm go that nobody holds any more, until the kernel is done with
// them.
//
// To disconnect takes a message and its answer, which may be lost and repeated for seconds; to
// destroy an id may wait for the kernel's own work on it. Neither is anything that a loop, or the
// program that dropped a connection, should wait for: so both are done by a thread that sleeps
// otherwise.
//
// Ids that wait for an answer of the application are kept here too (Keep): they belong to no loop.
//
// Not for ids that listen: librdmacm leaves the requests that wait for one behind when it changes
// its channel, and nobody gets hold of them any more.
//
// Thread rule: from any thread. An id given here is not touched by the giver any more (but for one
// that was only kept).
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
  // How long an id may wait for the peer's answer to its goodbye, and how many may: the oldest is
  // destroyed when there are more.
  static constexpr base::Duration kLongestGoodbye = base::Seconds(15);
  static constexpr size_t kMaxGoodbyes = 4096;

  static absl::StatusOr<std::unique_ptr<Departures>> Start();

  // Destroys what is left at once; a goodbye that was sent is not repeated then.
  ~Departures();
  Departures(const Departures&) = delete;
  Departures& operator=(const Departures&) = delete;

  // Sends the peer a goodbye and destroys `id` when it is answered.
  void Disconnect(rdma_cm_id* id);

  // Destroys `id`; a peer that waits for an answer is told that there will be none.
  void Destroy(rdma_cm_id* id);

  // `id`, which no event is expected for, changes to this one's channel and stays its owner's.
  // Errors as rdma_migrate_id.
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
  int DestroyWhoIsDue();  // how long until the next, in milliseconds; -1: there is none

  const CmChannelHandle channel_;
  const os::FileDescriptor wake_;
  base::Mutex mutex_;
  std::deque<Leaving> arrived_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Leaving> leaving_;  // the thread's own, in the order in which they came
  std::thread thread_;
};

}  // namespace tokamak::verbs::ibv
