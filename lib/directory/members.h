// Members are the nodes that a local directory counts with: alive while their lease lasts, silent
// during the grace after it, then gone.
//
// Every life of a node gets a number that is never given again. Whatever is noted of a life (that
// it holds an object, say) names that number, and no longer counts from the moment at which the
// life is gone: nothing has to be cleaned for that.
//
// A name belongs to the latest life. An earlier one that fell silent at other addresses may still
// run, cut off from us: it stays silent under its number until its grace is over.
//
// A life that comes back may hold what the directory does not know. The directory learns from it
// until it says that it has told all, or is gone: however long that takes, silent or not.
//
// Bound: kMaxNodes lives are alive or silent; a host has joined at most as many of them as others
// may still join. Thread rule: the directory's loop.
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
  Host host{};        // that it joined from last
  bool alive = true;  // else silent
  base::Duration grace;
  base::Time heard_of;       // when it joined, or renewed its lease
  base::ObjectVersion told;  // the last of its drops that it was told of
  base::Timer next;          // the end of its lease, then of its grace
  bool learning = false;     // it came back, and may hold what the directory does not know
  // JoinRequest::mark, with which it came back; nothing once it has told all, or had nothing to
  // tell.
  std::optional<std::string> mark;
  base::FairShare<Host>::Claim place;
};

class Members final {
 public:
  struct Joined {
    Member* member = nullptr;
    bool entered = false;  // a life that was not known
    bool back = false;     // it had fallen silent
  };

  // `gone` runs when a life has ended for good, with its number. `loop` must outlive it.
  Members(base::EventLoop& loop, std::function<void(uint64_t number)> gone) : loop_(loop), gone_(std::move(gone)) {}
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  // Errors as of Directory::Join.
  absl::StatusOr<Joined> Join(const JoinRequest& request);
  void Leave(const NodeId& node, uint64_t incarnation);

  // Null where it is gone.
  const Member* Find(uint64_t number) const;
  // Null where it is silent or gone.
  const Member* FindAlive(const NodeId& node) const;

  // One that the directory is learning from; null: there is none.
  const Member* Learning();

  // The latest life of each name, by name: those after `after`, at most `most`.
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
  absl::flat_hash_map<uint64_t, std::unique_ptr<Member>> by_number_;  // never visited in its own order
  std::map<NodeId, Member*> by_name_;                                 // the latest life of each name
  std::vector<uint64_t> learning_;  // and some that have told all, or are gone: weeded out when it is asked for
};

}  // namespace tokamak::directory
