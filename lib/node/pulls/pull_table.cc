#include "lib/node/pulls/pull_table.h"

#include <optional>
#include <utility>

#include "lib/base/check.h"
#include "lib/node/pulls/object_pull.h"

namespace tokamak::node {

PullTable::PullTable(Needs needs, base::Random random, const PullOptions& options)
    : needs_(std::move(needs)),
      options_(options),
      context_{needs_, options_, *this, random, {needs_.loop, needs_.objects, options_.directory_deadline}} {
  CHECK(!needs_.engines.empty());
  CHECK(options_.first_retry > base::Duration() && options_.locate_wait > base::Duration());
}

PullTable::~PullTable() = default;

std::unique_ptr<PullTable::Waiter> PullTable::Start(const base::ObjectId& id, transport::Protocol protocol,
                                                    Callback done) {
  return AddWaiter(id, protocol, base::kNoGeneration, std::move(done));
}

std::unique_ptr<PullTable::Waiter> PullTable::StartOnce(const base::ObjectVersion& version, Callback done) {
  CHECK(version.generation != base::kNoGeneration);
  return AddWaiter(version.id, transport::Protocol::kAuto, version.generation, std::move(done));
}

std::unique_ptr<PullTable::Waiter> PullTable::AddWaiter(const base::ObjectId& id, transport::Protocol protocol,
                                                        base::Generation once, Callback done) {
  std::unique_ptr<ObjectPull>& pull = pulls_[id];
  const bool is_new = pull == nullptr;
  if (is_new) pull = std::make_unique<ObjectPull>(context_, id, ++last_number_);
  auto waiter = pull->AddWaiter(protocol, once, std::move(done));
  if (is_new) pull->Begin();
  return waiter;
}

ObjectPull* PullTable::Find(const base::ObjectId& id) const {
  const auto found = pulls_.find(id);
  return found == pulls_.end() ? nullptr : found->second.get();
}

bool PullTable::IsComing(const base::ObjectVersion& version) const {
  const ObjectPull* pull = Find(version.id);
  return pull != nullptr && pull->IsComing(version);
}

std::optional<PullProgress> PullTable::Progress(const base::ObjectId& id) const {
  const ObjectPull* pull = Find(id);
  if (pull == nullptr) return std::nullopt;
  return pull->progress();
}

void PullTable::OnWithdraw(const base::ObjectVersion& version) {
  if (ObjectPull* pull = Find(version.id)) pull->OnWithdraw(version);
}

void PullTable::Drop(const base::ObjectVersion& version) {
  if (ObjectPull* pull = Find(version.id)) pull->Drop(version);
}

std::unique_ptr<ObjectPull> PullTable::TakeOut(const base::ObjectId& id) {
  const auto found = pulls_.find(id);
  std::unique_ptr<ObjectPull> pull = std::move(found->second);
  pulls_.erase(found);
  return pull;
}

void PullTable::Enqueue(const directory::NodeId& holder, ObjectPull& pull) {
  queues_[holder].emplace(pull.number(), &pull);
}

void PullTable::Dequeue(const directory::NodeId& holder, const ObjectPull& pull) {
  const auto queue = queues_.find(holder);
  queue->second.erase(pull.number());
  if (queue->second.empty()) queues_.erase(queue);
}

void PullTable::SlotFreed(const directory::NodeId& holder) {
  if (queues_.count(holder) == 0) return;
  freed_.insert(holder);
  if (!giving_turns_.armed()) giving_turns_ = needs_.loop.Post([this] { GiveTurns(); });
}

// Ends: a pull with its turn leaves the queue in any case.
void PullTable::GiveTurns() {
  for (const directory::NodeId& holder : std::exchange(freed_, {})) {
    while (needs_.peers.UseOf(holder) != Peers::Use::kBusy) {
      const auto queue = queues_.find(holder);
      if (queue == queues_.end()) break;
      queue->second.begin()->second->TakeTurn();
    }
  }
}

}  // namespace tokamak::node
