// All connections of a NIC, found by the names in messages.
//
// A message names a connection by the ID that its receiver gave; only a REQ, and a REJ from a REQ's
// sender, name it by their sender. A message that names another peer's connection names none.
//
// A sender's address may be forged. Places for half-open requests are bounded, for one address and
// in all. Once they are taken, the sender of a further request is asked a question
// (connection_rules.h), and its answer opens other places to it, so no number of forged addresses
// keeps out a real peer.
//
// Law: HalfOpenBounds bound half-open requests, each Standing apart; at most kMaxEnding ended
// connections are remembered.
// Thread rule: the NIC's mutex.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "lib/verbs/soft/cm/connection_state.h"
#include "lib/verbs/soft/state/alarm.h"

namespace tokamak::verbs::soft {

class ConnectionListener;
class ConnectionOwner;

// How far a request's sender is known.
enum class Standing : uint8_t {
  kUnknown,
  kPresent,    // its address answers questions; this request may still be forged
  kHasCookie,  // the request carries what was sent to its address
};

// Bounds of half-open requests, of one IP address and in all.
struct HalfOpenBounds {
  size_t of_one;
  size_t of_all;
};
constexpr HalfOpenBounds kAnyHalfOpen = {64, 1024};
constexpr HalfOpenBounds kPresentHalfOpen = {256, 1024};
constexpr HalfOpenBounds kCookieHalfOpen = {512, 1024};
static_assert(kCookieHalfOpen.of_one < kCookieHalfOpen.of_all, "one peer does not keep the others out");
static_assert(kPresentHalfOpen.of_one < kPresentHalfOpen.of_all, "one peer does not keep the others out");
constexpr size_t kMaxHalfOpen = kAnyHalfOpen.of_all + kPresentHalfOpen.of_all + kCookieHalfOpen.of_all;
constexpr size_t kMaxEnding = 8192;

struct ConnectionRecord {
  ConnectionRecord(uint64_t record_key, ConnectionState initial, const Address& peer_host, AlarmClock& clock,
                   base::Task on_repeat, base::Task on_limit)
      : key(record_key),
        state(std::move(initial)),
        peer(peer_host),
        repeat(clock, std::move(on_repeat)),
        limit(clock, std::move(on_limit)) {}

  const uint64_t key;  // never reused
  ConnectionState state;
  const Address peer;  // the device, as DeviceAt gives it
  Alarm repeat;
  Alarm limit;
  uint32_t queue_pair = 0;                 // 0: none yet
  bool watched = false;                    // true if news of the queue pair come here
  uint32_t outside = 0;                    // the queue pair that somebody else walks; not watched
  ConnectionOwner* owner = nullptr;        // the application's, until dropped
  ConnectionListener* listener = nullptr;  // the one that a request came to, until answered
  Standing standing = Standing::kUnknown;

 private:
  friend class ConnectionTable;
  using PeerName = std::pair<Address, uint32_t>;

  // Its present names in the table; number 0: none.
  uint32_t listed_id_ = 0;
  uint32_t listed_queue_pair_ = 0;
  PeerName listed_req_;
  PeerName listed_peer_queue_pair_;
  bool listed_half_open_ = false;
  uint64_t listed_ending_ = 0;
};

class ConnectionTable final {
 public:
  ConnectionRecord& Add(std::unique_ptr<ConnectionRecord> record);
  void Erase(ConnectionRecord& record);

  // Must follow each change of the record's state.
  void Update(ConnectionRecord& record);

  // Return null if there is none.
  ConnectionRecord* Get(uint64_t key);
  ConnectionRecord* FindByQueuePair(uint32_t queue_pair);                           // watched ones
  ConnectionRecord* FindByReq(const Address& peer, uint32_t remote_id);             // made by a REQ with that ID
  ConnectionRecord* FindByPeerQueuePair(const Address& peer, uint32_t queue_pair);  // neither ended nor ending
  ConnectionRecord* Find(const Address& peer, const Mad& mad);                      // not for a REQ

  bool HasLocalId(uint32_t local_id) const { return by_id_.count(local_id) > 0; }

  // Returns true if one more request of this peer has a place for `standing`.
  bool MayOpen(const Address& peer, Standing standing) const;

  // Returns the connection that ended first, if more than kMaxEnding have ended; else null.
  ConnectionRecord* Surplus();

  size_t size() const { return records_.size(); }
  size_t half_open() const { return half_open_[0].all + half_open_[1].all + half_open_[2].all; }

 private:
  using PeerName = ConnectionRecord::PeerName;

  void UpdateNames(ConnectionRecord& record, bool gone);
  void UpdateHalfOpen(ConnectionRecord& record, bool half_open);
  void UpdateEnding(ConnectionRecord& record, bool ending);

  std::map<uint64_t, std::unique_ptr<ConnectionRecord>> records_;
  std::map<uint32_t, ConnectionRecord*> by_id_;
  std::map<uint32_t, ConnectionRecord*> by_queue_pair_;
  std::map<PeerName, ConnectionRecord*> by_req_;
  std::map<PeerName, ConnectionRecord*> by_peer_queue_pair_;
  struct HalfOpen {
    std::map<std::array<uint8_t, 16>, size_t> of_one;  // by IP address: UDP ports cost a peer nothing
    size_t all = 0;
  };
  HalfOpen half_open_[3];                         // by Standing
  std::map<uint64_t, ConnectionRecord*> ending_;  // in order of their end, from 1
  uint64_t endings_ = 0;
};

}  // namespace tokamak::verbs::soft
