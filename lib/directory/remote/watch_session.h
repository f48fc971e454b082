// WatchSession holds the waits of one asker at the server: its watches, and its poll.
//
//   begun --> ready --> reported with the next reply
//              ^ |
//              | v  its object is not there
//            watched until its object appears
//
// A reply gives an object's place at that moment: one deleted since it appeared is watched again.
// Bound: kMaxWaitsOfPeer watches, and the host's share of all.
// Thread rule: the directory's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "lib/base/event_loop.h"
#include "lib/base/fair_share.h"
#include "lib/base/handle.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/messages.h"
#include "lib/transport/caller.h"

namespace tokamak::directory {

class WatchSession final {
 public:
  // `loop`, `directory` and `watched`, of which each watch takes one for `host`, must outlive it.
  // `max_reply`: bytes.
  WatchSession(base::EventLoop& loop, LocalDirectory& directory, size_t max_reply, uint64_t number,
               base::FairShare<Host>& watched, const Host& host)
      : loop_(loop), directory_(directory), max_reply_(max_reply), number_(number), watched_(watched), host_(host) {}
  WatchSession(const WatchSession&) = delete;
  WatchSession& operator=(const WatchSession&) = delete;
  ~WatchSession();

  uint64_t number() const { return number_; }

  // Returns true if `more` would break a bound.
  bool TooMany(size_t more) const;

  void Begin(const WatchRequest& watch, const NodeId& puller);
  void End(uint64_t number) { watches_.erase(number); }

  // Replies with the ready watches that fit.
  void Answer(const transport::Reply& reply) { Tell(reply, /*even_nothing=*/true); }

  // The same, but waits a turn for a ready one. A second poll ends the first; dropping the handle
  // ends it without a reply.
  [[nodiscard]] base::Pending Poll(transport::Reply reply);

 private:
  struct Watch {
    WatchRequest request;
    NodeId puller;
    base::Pending waits;
    absl::Status refused;  // why it cannot wait
    base::FairShare<Host>::Claim place;
  };
  struct HeldPoll final : base::Handle {
    ~HeldPoll() override {
      if (session != nullptr) session->poll_ = nullptr;
    }

    WatchSession* session = nullptr;  // null: ended
    transport::Reply reply;
    base::Timer turn;
  };

  void Ready(uint64_t number);
  // False, without a reply: no watch is ready.
  bool Tell(const transport::Reply& reply, bool even_nothing);
  void TellPoll(bool even_nothing);
  // False: its object is not there, and it waits on.
  bool Look(Watch& watch, WatchResult* result);

  base::EventLoop& loop_;
  LocalDirectory& directory_;
  const size_t max_reply_;
  const uint64_t number_;
  base::FairShare<Host>& watched_;
  const Host host_;
  std::map<uint64_t, Watch> watches_;
  std::deque<uint64_t> ready_;  // may contain ended ones
  HeldPoll* poll_ = nullptr;    // null: none is held
  base::Timer answering_;
};

}  // namespace tokamak::directory
