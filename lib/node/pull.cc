#include "lib/node/pull.h"

#include <utility>

#include "glog/logging.h"
#include "lib/node/one_pull.h"

namespace tokamak::node {

Pulls::Pulls(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Peers& peers,
             std::vector<EngineLink*> engines, directory::NodeId self, Recheck recheck, base::Random random,
             const PullOptions& options)
    : loop_(loop),
      store_(store),
      directory_(directory),
      peers_(peers),
      engines_(std::move(engines)),
      self_(std::move(self)),
      recheck_(std::move(recheck)),
      random_(random),
      options_(options) {
  CHECK(!engines_.empty());
  CHECK(options_.first_retry > base::Duration() && options_.locate_wait > base::Duration());
}

Pulls::~Pulls() = default;

std::unique_ptr<Pulls::Waiter> Pulls::Start(const base::ObjectId& id, transport::Protocol protocol, Callback done) {
  std::shared_ptr<Pull>& pull = pulls_[id];
  const bool is_new = pull == nullptr;
  if (is_new) pull = std::make_shared<Pull>(*this, id);
  auto waiter = pull->AddWaiter(protocol, std::move(done));
  if (is_new) pull->Begin();
  return waiter;
}

void Pulls::Enqueue(const directory::NodeId& holder, Pull& pull) { queues_[holder].emplace(pull.number(), &pull); }

void Pulls::Dequeue(const directory::NodeId& holder, const Pull& pull) {
  const auto queue = queues_.find(holder);
  queue->second.erase(pull.number());
  if (queue->second.empty()) queues_.erase(queue);
}

void Pulls::SlotFreed(const directory::NodeId& holder) {
  if (queues_.count(holder) == 0) return;
  freed_.insert(holder);
  if (!giving_turns_.armed()) giving_turns_ = loop_.Post([this] { GiveTurns(); });
}

// A pull that gets its turn leaves the queue, whatever becomes of it: this ends.
void Pulls::GiveTurns() {
  for (const directory::NodeId& holder : std::exchange(freed_, {})) {
    while (peers_.UseOf(holder) != Peers::Use::kBusy) {
      const auto queue = queues_.find(holder);
      if (queue == queues_.end()) break;
      queue->second.begin()->second->TakeTurn();
    }
  }
}

}  // namespace tokamak::node
