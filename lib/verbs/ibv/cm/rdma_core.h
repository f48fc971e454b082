// RdmaCore is shared by all handles of one RdmaConnectionManager: the device's facts, a channel for
// each loop, the thread for goodbyes.
//
// Thread rule: any thread.
#pragma once

#include <rdma/rdma_cma.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/statusor.h"
#include "lib/base/mutex.h"
#include "lib/verbs/ibv/cm/cm_channel.h"
#include "lib/verbs/ibv/cm/departures.h"
#include "lib/verbs/ibv/cm/path_cache.h"
#include "lib/verbs/ibv/cm/rdma_cm.h"

namespace tokamak::verbs::ibv {

class RdmaCmCore final {
 public:
  RdmaCmCore(const RdmaCmOptions& options, std::unique_ptr<Departures> departures)
      : options_(options), departures_(std::move(departures)) {}

  const RdmaCmOptions& options() const { return options_; }
  Departures& departures() { return *departures_; }
  PathCache& paths() { return paths_; }

  // Returns the loop's channel, made if there is none. On the loop's thread.
  absl::StatusOr<std::shared_ptr<CmChannel>> ChannelOf(os::EpollLoop& loop);

  // Sets our traffic class, if there is one: before the route of `id` is resolved, or it listens.
  absl::Status SetTrafficClass(rdma_cm_id* id) const;

  // kFailedPrecondition: rdma_cm bound the id to another device or port than ours.
  absl::Status CheckDevice(const rdma_cm_id* id) const;

  // Notes whether our own address led to our device. Logs the first failure, with its remedy, and
  // the first success after.
  void NoteOwnAddress(const absl::Status& found);

  // Between these two, first data for the queue pair completes the connection of `id`.
  void AwaitData(uint32_t queue_pair_number, rdma_cm_id* id);
  void StopAwaiting(uint32_t queue_pair_number);
  void OnFirstData(uint32_t queue_pair_number);

 private:
  const RdmaCmOptions options_;
  const std::unique_ptr<Departures> departures_;
  PathCache paths_{&os::EpollLoop::MonotonicNanoseconds};
  std::atomic<bool> address_gone_{false};
  base::Mutex mutex_;
  std::map<os::EpollLoop*, std::weak_ptr<CmChannel>> channels_ ABSL_GUARDED_BY(mutex_);
  std::map<uint32_t, rdma_cm_id*> awaiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tokamak::verbs::ibv
