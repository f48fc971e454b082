// Members are the nodes that a local directory counts with: alive while their lease lasts, silent
// during the grace after it, then gone.
//
// Every life gets a number that is never given again; a record about it stops counting once it is
// gone, without any cleaning. A name belongs to the latest life. An earlier one that fell silent at
// other addresses may still run, cut off: it stays silent under its number until its grace is over.
// The directory learns from a life that comes back until it is complete or gone.
//
// Bound: kMaxNodes lives alive or silent; a host has at most as many of them as others may still
//      join.
// Thread rule: the directory's loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/fair_share.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

struct Member {
  uint64_t number = 0;
  NodeInfo info;
  Host host{};        // of its last join
  bool alive = true;  // else silent
  base::Duration grace;
  base::Time heard_of;       // when it joined, or renewed its lease
  base::ObjectVersion told;  // last drop sent to it
  base::Timer next;          // end of its lease, then of its grace
  bool learning = false;     // came back, may hold unknown objects
  // JoinRequest::mark with which it came back, until complete.
  std::optional<std::string> mark;
  base::FairShare<Host>::Claim place;
};

class Members final {
 public:
  struct Joined {
    Member* member = nullptr;
    bool entered = false;  // true for an unknown life
    bool back = false;     // true if it had fallen silent
  };

  // Calls `gone` with the number of a gone life. `loop` must outlive it.
  Members(base::EventLoop& loop, std::function<void(uint64_t number)> gone) : loop_(loop), gone_(std::move(gone)) {}
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // Errors as Directory::Join.
  absl::StatusOr<Joined> Join(const JoinRequest& request);
  void Leave(const NodeId& node, uint64_t incarnation);

  // Returns null if it is gone.
  const Member* Find(uint64_t number) const;
  // Returns null if it is silent or gone.
  const Member* FindAlive(const NodeId& node) const;

  // Null: none.
  const Member* Learning();

  // Returns the latest life of each name, by name: at most `most` after `after`.
  std::vector<RosterEntry> Roster(const NodeId& after, size_t most) const;
  size_t size() const { return by_number_.size(); }

 private:
  absl::Status MayFollow(const Member& earlier, const NodeInfo& node) const;
  absl::Status MayEnter(const Host& host) const;
  Member& Enter(const JoinRequest& request);
  void Renew(Member& member, const JoinRequest& request);
  void FallSilent(Member& member);
  void End(Member& member);

  base::EventLoop& loop_;
  const std::function<void(uint64_t number)> gone_;
  base::FairShare<Host> places_{kMaxNodes};
  uint64_t last_number_ = 0;
  absl::flat_hash_map<uint64_t, std::unique_ptr<Member>> by_number_;  // never iterated
  std::map<NodeId, Member*> by_name_;                                 // latest life of each name
  std::vector<uint64_t> learning_;  // some complete or gone, until Learning() drops them
};

}  // namespace tokamak::directory
