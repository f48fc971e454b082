#include "lib/verbs/soft/cm/connection_table.h"

#include <utility>

#include "lib/base/check.h"

namespace tokamak::verbs::soft {
namespace {

uint32_t NumberOf(uint32_t name) { return name; }
uint32_t NumberOf(const std::pair<Address, uint32_t>& name) { return name.second; }

// Moves `record` to `name` in an index; the first record that claims a name keeps it.
template <typename Name>
void Rename(std::map<Name, ConnectionRecord*>* index, Name* listed, const Name& name, ConnectionRecord* record) {
  if (*listed == name) return;
  if (NumberOf(*listed) != 0) index->erase(*listed);
  *listed = Name();
  if (NumberOf(name) != 0 && index->emplace(name, record).second) *listed = name;
}

template <typename Name>
ConnectionRecord* Lookup(const std::map<Name, ConnectionRecord*>& index, const Name& name) {
  const auto found = index.find(name);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace

ConnectionRecord& ConnectionTable::Add(std::unique_ptr<ConnectionRecord> record) {
  ConnectionRecord& added = *record;
  CHECK(records_.emplace(added.key, std::move(record)).second);
  Update(added);
  return added;
}

void ConnectionTable::Erase(ConnectionRecord& record) {
  UpdateNames(record, true);
  UpdateHalfOpen(record, false);
  UpdateEnding(record, false);
  records_.erase(record.key);
}

void ConnectionTable::Update(ConnectionRecord& record) {
  UpdateNames(record, false);
  UpdateHalfOpen(record, record.state.half_open());
  UpdateEnding(record, IsEnding(record.state.phase()));
}

void ConnectionTable::UpdateNames(ConnectionRecord& record, bool gone) {
  const ConnectionState& state = record.state;
  const bool live = !gone && !IsEnding(state.phase());
  Rename(&by_id_, &record.listed_id_, gone ? 0 : state.identity().local_id, &record);
  Rename(&by_queue_pair_, &record.listed_queue_pair_, record.watched && !gone ? record.queue_pair : 0, &record);
  const bool by_req = state.passive() && !gone;
  Rename(&by_req_, &record.listed_req_, by_req ? PeerName(record.peer, state.remote_id()) : PeerName(), &record);
  Rename(&by_peer_queue_pair_, &record.listed_peer_queue_pair_,
         live ? PeerName(record.peer, state.remote_queue_pair()) : PeerName(), &record);
}

void ConnectionTable::UpdateHalfOpen(ConnectionRecord& record, bool half_open) {
  if (record.listed_half_open_ == half_open) return;
  record.listed_half_open_ = half_open;
  HalfOpen& kind = half_open_[static_cast<size_t>(record.standing)];
  if (half_open) {
    ++kind.of_one[record.peer.ip];
    ++kind.all;
  } else {
    if (--kind.of_one[record.peer.ip] == 0) kind.of_one.erase(record.peer.ip);
    --kind.all;
  }
}

void ConnectionTable::UpdateEnding(ConnectionRecord& record, bool ending) {
  if ((record.listed_ending_ != 0) == ending) return;
  if (ending) {
    record.listed_ending_ = ++endings_;
    ending_.emplace(record.listed_ending_, &record);
  } else {
    ending_.erase(record.listed_ending_);
    record.listed_ending_ = 0;
  }
}

ConnectionRecord* ConnectionTable::Get(uint64_t key) {
  const auto found = records_.find(key);
  return found == records_.end() ? nullptr : found->second.get();
}

ConnectionRecord* ConnectionTable::FindByQueuePair(uint32_t queue_pair) { return Lookup(by_queue_pair_, queue_pair); }

ConnectionRecord* ConnectionTable::FindByReq(const Address& peer, uint32_t remote_id) {
  return Lookup(by_req_, PeerName(peer, remote_id));
}

ConnectionRecord* ConnectionTable::FindByPeerQueuePair(const Address& peer, uint32_t queue_pair) {
  return Lookup(by_peer_queue_pair_, PeerName(peer, queue_pair));
}

ConnectionRecord* ConnectionTable::Find(const Address& peer, const Mad& mad) {
  const ConnectionIds ids = IdsOf(mad).value_or(ConnectionIds());
  const uint32_t sender_id = ids.local;
  const uint32_t our_id = ids.remote;
  const bool rej = std::holds_alternative<RejMad>(mad.body);
  if (rej && our_id == 0 && sender_id != 0) return FindByReq(peer, sender_id);

  ConnectionRecord* const record = Lookup(by_id_, our_id);
  if (record == nullptr || record->peer != peer) return nullptr;
  // A REJ lacks the sender's ID if its sender never gave one.
  const uint32_t known_id = record->state.remote_id();
  return known_id == 0 || sender_id == known_id || (rej && sender_id == 0) ? record : nullptr;
}

bool ConnectionTable::MayOpen(const Address& peer, Standing standing) const {
  static constexpr HalfOpenBounds kBounds[] = {kAnyHalfOpen, kPresentHalfOpen, kCookieHalfOpen};
  const auto index = static_cast<size_t>(standing);
  const HalfOpen& kind = half_open_[index];
  const auto of_peer = kind.of_one.find(peer.ip);
  return kind.all < kBounds[index].of_all && (of_peer == kind.of_one.end() || of_peer->second < kBounds[index].of_one);
}

ConnectionRecord* ConnectionTable::Surplus() { return ending_.size() > kMaxEnding ? ending_.begin()->second : nullptr; }

}  // namespace tokamak::verbs::soft
