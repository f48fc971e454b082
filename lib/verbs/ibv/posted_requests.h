// PostedRequests are what a queue pair has posted and not handed out yet, and their ways back: by a
// completion of the provider, or flushed by us where the provider forgets them.
//
// Receives lie in a ring of their own, or in the slots of a shared queue, which the device flushes.
//
// Law: each request comes back once: a late completion of the provider is not reported again.
// Thread rule: the queue pair's thread.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "lib/verbs/ibv/completion_pair.h"
#include "lib/verbs/ibv/posting/posting.h"
#include "lib/verbs/ibv/posting/work_ring.h"
#include "lib/verbs/ibv/shared_receives.h"
#include "lib/verbs/verbs.h"

namespace tokamak::verbs::ibv {

class PostedRequests final {
 public:
  // `shared`: or null.
  PostedRequests(CompletionPair completions, std::shared_ptr<SharedReceivesCore> shared, uint32_t max_sends,
                 uint32_t max_receives);

  // The provider has the queue pair, under this number.
  void Begin(uint32_t number);
  // It was reset: nothing is posted.
  void Reset();
  // It is gone, and so are its completions.
  void End();

  const CompletionPair& completions() const { return completions_; }
  SharedReceivesCore* shared() const { return shared_.get(); }
  WorkRing& sends() { return sends_; }
  WorkRing& receives() { return receives_; }

  // Takes the result of a call of the provider with noted requests of one of the rings. Requests
  // that it did not take come back flushed if the queue pair has `ended`; otherwise they are
  // refused, with the provider's error.
  absl::Status Take(const Posted& posted, bool receives, bool ended, PostResult* result);

  // Flushes all posted and unpolled requests, behind the provider's completions: a lost device
  // reports nothing any more, and iWARP's forget requests posted after an unnoticed end.
  void FlushAll();

  // See CompletionOwner::Finish.
  bool Finish(const ibv_wc& done, Completion* to);

 private:
  const CompletionPair completions_;
  const std::shared_ptr<SharedReceivesCore> shared_;
  WorkRing sends_;
  WorkRing receives_;
  uint32_t number_ = 0;
};

}  // namespace tokamak::verbs::ibv
