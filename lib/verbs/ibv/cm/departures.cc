#include "lib/verbs/ibv/cm/departures.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/os/thread.h"
#include "lib/verbs/ibv/translation/errors.h"

namespace tokamak::verbs::ibv {
namespace {

int64_t MonotonicMilliseconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void DestroyNow(rdma_cm_id* id) {
  if (rdma_destroy_id(id) != 0) PLOG(ERROR) << "rdma_destroy_id";
}

}  // namespace

absl::StatusOr<std::unique_ptr<Departures>> Departures::Start() {
  auto channel = OpenCmChannel();
  if (!channel.ok()) return channel.status();
  os::FileDescriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  return std::unique_ptr<Departures>(new Departures(*std::move(channel), std::move(wake)));
}

Departures::Departures(CmChannelHandle channel, os::FileDescriptor wake)
    : channel_(std::move(channel)),
      wake_(std::move(wake)),
      thread_(os::StartThread({"tokamak-cm"}, [this] { Run(); })) {}

Departures::~Departures() {
  {
    const base::MutexLock lock(mutex_);
    stopping_ = true;
  }
  const uint64_t one = 1;
  PCHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

void Departures::Disconnect(rdma_cm_id* id) {
  // With nothing left to disconnect it fails, and the id is destroyed all the same.
  const bool told = rdma_disconnect(id) == 0;
  Add(id, told ? MonotonicMilliseconds() + kLongestGoodbye.milliseconds() : 0);
}

void Departures::Destroy(rdma_cm_id* id) { Add(id, 0); }

absl::Status Departures::Keep(rdma_cm_id* id) {
  id->context = nullptr;
  if (rdma_migrate_id(id, channel_.get()) != 0) return ErrnoStatus(errno, "rdma_migrate_id");
  return absl::OkStatus();
}

void Departures::Add(rdma_cm_id* id, int64_t until) {
  if (id->channel != channel_.get()) {
    if (absl::Status status = Keep(id); !status.ok()) {
      LOG(WARNING) << status << ": the id is destroyed at once";
      DestroyNow(id);
      return;
    }
  }
  {
    const base::MutexLock lock(mutex_);
    arrived_.push_back({id, until});
  }
  // This also wakes the thread for events that the kernel moved, silently, with the id.
  const uint64_t one = 1;
  PCHECK(write(wake_.get(), &one, sizeof(one)) == sizeof(one) || errno == EAGAIN);
}

void Departures::Run() {
  int wait = -1;
  for (;;) {
    pollfd ready[2] = {{wake_.get(), POLLIN, 0}, {channel_->fd, POLLIN, 0}};
    PCHECK(poll(ready, 2, wait) >= 0 || errno == EINTR) << "poll";
    uint64_t raised = 0;
    PCHECK(read(wake_.get(), &raised, sizeof(raised)) == sizeof(raised) || errno == EAGAIN);
    bool stopping = false;
    {
      const base::MutexLock lock(mutex_);
      leaving_.insert(leaving_.end(), arrived_.begin(), arrived_.end());
      arrived_.clear();
      stopping = stopping_;
    }
    if (stopping) break;
    ReadEvents();
    wait = DestroyWhoIsDue();
  }
  for (const Leaving& one : leaving_) DestroyNow(one.id);
}

void Departures::ReadEvents() {
  CmEvent event;
  void* context = nullptr;
  while (TakeCmEvent(channel_.get(), &event, &context)) {
    if (event.type != RDMA_CM_EVENT_DISCONNECTED && event.type != RDMA_CM_EVENT_TIMEWAIT_EXIT &&
        event.type != RDMA_CM_EVENT_DEVICE_REMOVAL) {
      continue;
    }
    const auto it =
        std::find_if(leaving_.begin(), leaving_.end(), [&](const Leaving& one) { return one.id == event.id; });
    if (it != leaving_.end()) it->until = 0;
  }
}

int Departures::DestroyWhoIsDue() {
  const int64_t now = MonotonicMilliseconds();
  size_t too_many = leaving_.size() - std::min(leaving_.size(), kMaxGoodbyes);
  int64_t next = -1;
  for (auto it = leaving_.begin(); it != leaving_.end();) {
    if (it->until > now && too_many == 0) {
      if (next < 0 || it->until < next) next = it->until;
      ++it;
      continue;
    }
    if (it->until > now) --too_many;
    DestroyNow(it->id);
    it = leaving_.erase(it);
  }
  return next < 0 ? -1 : static_cast<int>(next - now);
}

}  // namespace tokamak::verbs::ibv
