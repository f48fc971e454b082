// Engine is one transport endpoint as the node sees it: what the node asks of peers, and what peers
// ask of the node.
//
// Two classes implement it. LocalEngine is an endpoint on the node's own loop; ThreadedEngine is
// the node's end of an endpoint on another loop. The machine chooses (lib/node/machine.h), and
// nothing in the node can tell which it has: tests/node/engine_test.cc holds both to what follows.
//
// Law: memory of a pull and pins of peers are given back only when the endpoint has said so, or is
// gone.
// Law: no callback runs inside the call that took it. A callback may call the engine, and may drop
// it once it is no longer open.
// Law: when the endpoint ends, what is under way and what is asked for later ends with
// kUnavailable: pulls in the order in which they began, then calls in theirs.
// Law: what this node's life needs of other nodes (its lease, and what it holds) has calls of its
// own, Call; what programs ask for has the others, programs(), and waits for its turn there: peers
// take turns, and none has the last places. So a lease is not lost because programs are busy.
// Thread rule: the node's control loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/transport/caller.h"
#include "lib/transport/limits.h"
#include "lib/transport/object_access.h"
#include "lib/transport/pull_request.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

constexpr size_t kMaxEnginePulls = 1024;
// Calls to other nodes: those of programs, beyond which more wait for their turn, and in a part of
// their own (kOwnCalls) those for this node's life: its lease, and what it holds.
constexpr size_t kMaxEngineCalls = 1024;
constexpr size_t kMaxCallsOfPeer = 160;     // of these, to one peer
constexpr size_t kMaxCallsWaiting = 65536;  // for their turn
constexpr size_t kOwnCalls = 96;            // beside these
// What peers ask of a busy control loop, and waits; more is refused.
constexpr size_t kMaxReportsWaiting = 1024;
constexpr size_t kMaxOwnReports = 64 * 1024;  // the same, of what nodes say of their own lives
static_assert(kMaxCallsOfPeer + kOwnCalls <= transport::kMaxCallsServed, "none of a node's own waits for a program's");

class Engine : public transport::Caller {
 public:
  // Who serves the peers: the node. A pin is answered later or at once, with Pinned.
  struct Handlers {
    std::function<void(transport::PinId pin, const base::ObjectVersion& version)> pin;
    std::function<void(transport::PinId pin)> unpin;
    transport::CallHandler call;
  };
  using PullCallback = std::function<void(const absl::Status&, const transport::TransferReport&)>;

  // Without handlers, before and after, peers are refused. StopServing drops the work on answers,
  // and with it the replies that are part of it.
  virtual void Serve(Handlers handlers) = 0;
  virtual void StopServing() = 0;

  // True while the endpoint lives.
  virtual bool open() const = 0;
  // Returns where the endpoint listens, also after its end.
  virtual const verbs::Address& address() const = 0;
  // Returns the number of pulls under way.
  virtual size_t pulls() const = 0;

  // Returns a token for Cancel. `memory` is the object's place, `moved` the number of its bytes
  // received so far; both must stay until `done` runs, after which nobody touches them.
  // kResourceExhausted: kMaxEnginePulls run already; kUnavailable: the endpoint is gone.
  virtual absl::StatusOr<uint64_t> Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                        std::atomic<uint64_t>& moved, PullCallback done) = 0;
  // Asks for the end of a pull: `done` comes as soon as the memory is safe. Does nothing for one
  // that is over.
  virtual void Cancel(uint64_t token) = 0;

  // Answers Handlers::pin. Does nothing if the pin was given back meanwhile.
  virtual void Pinned(transport::PinId pin, absl::StatusOr<transport::PinnedObject> object) = 0;

  // Refuses the peers' new transfers from now on. Runs `done` when nothing is served any more and
  // the peers have all that was sent to them, or when the endpoint is gone.
  virtual void Drain(std::function<void()> done) = 0;

  // For this node's own life, which knows how many it has under way: kResourceExhausted beyond
  // kOwnCalls.
  [[nodiscard]] base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                   base::Duration deadline, CallCallback done) override = 0;

  // For all other calls. kDeadlineExceeded: also if a call waits for its turn until its deadline,
  // and is not sent; kResourceExhausted: kMaxCallsWaiting wait already.
  virtual transport::Caller& programs() = 0;
};

// Returns the error of all that is asked of an engine whose endpoint is gone.
inline absl::Status EngineGone() { return absl::UnavailableError("this node's transport engine has ended"); }

// Returns handlers that refuse the peers of `engine`, which must outlive them.
inline Engine::Handlers RefusalsOf(Engine& engine) {
  Engine::Handlers handlers;
  handlers.pin = [&engine](transport::PinId pin, const base::ObjectVersion&) {
    engine.Pinned(pin, absl::UnavailableError("this node does not serve objects now"));
  };
  handlers.unpin = [](transport::PinId) {};
  handlers.call = [](absl::Span<const uint8_t>, const transport::Reply&) { return nullptr; };
  return handlers;
}

}  // namespace tokamak::node
