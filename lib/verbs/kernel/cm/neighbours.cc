#include "lib/verbs/kernel/cm/neighbours.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <iterator>
#include <set>
#include <utility>

#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/number_share.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/shm/names.h"

namespace tokamak::verbs::kernel {

// A watched NIC: one socket for all its watchers.
class Neighbours::Neighbour final : public std::enable_shared_from_this<Neighbour> {
 public:
  Neighbour(os::EpollLoop& loop, os::FileDescriptor socket) : socket_(std::move(socket)) {
    watch_ = loop.Watch(socket_.get(), EPOLLRDHUP, [this, &loop](uint32_t) {
      watch_.Reset();
      last_words_ = loop.RunAfter(kLastWords, [this] { Tell(); });
    });
  }

  void Add(OneWatch* watch) { watches_.insert(watch); }
  void Remove(OneWatch* watch) { watches_.erase(watch); }

 private:
  void Tell();

  const os::FileDescriptor socket_;
  os::FdWatch watch_;
  base::Timer last_words_;
  std::set<OneWatch*> watches_;
};

class Neighbours::OneWatch final : public Watch {
 public:
  OneWatch(std::shared_ptr<Neighbour> neighbour, std::function<void()> gone)
      : neighbour_(std::move(neighbour)), gone_(std::move(gone)) {
    neighbour_->Add(this);
  }
  ~OneWatch() override { neighbour_->Remove(this); }

  void Tell() {
    const std::function<void()> gone = gone_;  // a copy: it may drop this
    gone();
  }

 private:
  const std::shared_ptr<Neighbour> neighbour_;
  const std::function<void()> gone_;
};

// A callback may drop its watch, or another's.
void Neighbours::Neighbour::Tell() {
  const std::shared_ptr<Neighbour> keep = shared_from_this();
  while (!watches_.empty()) {
    OneWatch* const watch = *watches_.begin();
    watches_.erase(watches_.begin());
    watch->Tell();
  }
}

std::unique_ptr<Neighbours::Watch> Neighbours::WatchOver(const Address& address, uint32_t queue_pair,
                                                         std::function<void()> gone) {
  Address nic;
  nic.ip = address.ip;
  const uint32_t share = soft::NumberShare::IndexOf(queue_pair, soft::kQueuePairNumberBits);
  const std::string name = soft::NicName(soft::WithRocePort(nic), share);
  std::weak_ptr<Neighbour>& known = neighbours_[name];
  std::shared_ptr<Neighbour> neighbour = known.lock();
  if (neighbour == nullptr) {
    os::FileDescriptor socket = soft::ConnectName(SOCK_SEQPACKET, name);
    if (!socket.valid()) {
      neighbours_.erase(name);
      return nullptr;
    }
    neighbour = std::make_shared<Neighbour>(loop_, std::move(socket));
    known = neighbour;
    ForgetUnwatched();
  }
  return std::make_unique<OneWatch>(std::move(neighbour), std::move(gone));
}

void Neighbours::ForgetUnwatched() {
  for (auto next = neighbours_.begin(); next != neighbours_.end();) {
    next = next->second.expired() ? neighbours_.erase(next) : std::next(next);
  }
}

}  // namespace tokamak::verbs::kernel
