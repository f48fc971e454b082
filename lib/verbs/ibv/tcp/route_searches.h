// RouteSearches find out the ways to peers before queue pairs need them.
//
// RoCE: the step to ReadyToReceive has the kernel ask for the peer's hardware address (ARP), and
// waits for a second if nobody answers: on a loop, one cut cable would stop all other transfers. So
// a thread for each peer asks before.
//
// Law: `found` runs once, in a later task of its loop, and not after its Search was dropped.
// Thread rule: Start from any thread, on the loop that it names; a Search is dropped on its loop's
// thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "lib/base/event_loop.h"
#include "lib/base/mutex.h"
#include "lib/base/time.h"
#include "lib/verbs/ibv/translation/attributes.h"

namespace tokamak::verbs::ibv {

// Asks for the route to a peer. May wait; from any thread. Errors: there is none.
using FindRoute = std::function<absl::Status(const PeerPort& peer)>;

class RouteSearches final {
 public:
  static constexpr size_t kMaxSearches = 32;
  // Delay before a caller that got none tries again.
  static constexpr base::Duration kRetry = base::Milliseconds(10);

  class Search {
   public:
    virtual ~Search() = default;
  };

  explicit RouteSearches(FindRoute find) : find_(std::move(find)) {}
  // Waits for running searches.
  ~RouteSearches();
  RouteSearches(const RouteSearches&) = delete;
  RouteSearches& operator=(const RouteSearches&) = delete;

  // Null: kMaxSearches are running.
  std::unique_ptr<Search> Start(base::EventLoop& loop, const PeerPort& peer,
                                std::function<void(const absl::Status&)> found);

 private:
  class Handle;
  struct Shared;
  struct Running {
    std::shared_ptr<Shared> shared;
    std::thread thread;
  };

  const FindRoute find_;
  base::Mutex mutex_;
  std::vector<Running> running_ ABSL_GUARDED_BY(mutex_);  // joined by the next Start once ended
};

}  // namespace tokamak::verbs::ibv
