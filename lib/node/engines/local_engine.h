// LocalEngine is an engine whose endpoint shares the node's loop: it calls the endpoint, and the
// endpoint calls it, without a thread, a mailbox or a copy between them.
//
//   the node  -- pulls, calls, answers -->  LocalEngine  -->  transport::Endpoint
//             <-- ends, pins, peers' calls --            <--
//
// The endpoint runs no callback inside the call that took it, so its reports go to the node at
// once. Only these wait for a task of their own: the answer to a pin, which the endpoint must not
// have inside Pin; calls of peers beyond the first of a task (peer_calls.h); the end of draining,
// after which the machine may be dropped; and all that ends with the endpoint.
//
// Callbacks and handlers run inside the endpoint, so none of them may Close or drop the engine.
// Thread rule: the node's control loop.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/node/engines/engine.h"
#include "lib/node/engines/engine_calls.h"
#include "lib/node/engines/engine_pulls.h"
#include "lib/node/engines/open_endpoint.h"
#include "lib/node/engines/peer_calls.h"
#include "lib/transport/endpoint.h"

namespace tokamak::node {

class LocalEngine final : public Engine, private transport::Source, private EngineCalls::Sender {
 public:
  // Opens the endpoint, listening. At most `max_calls` calls for programs are under way at once.
  // Errors: those of OpenEndpoint. All references must outlive it.
  static absl::StatusOr<std::unique_ptr<LocalEngine>> Open(base::EventLoop& loop, const EndpointParts& parts,
                                                           size_t max_calls);
  // Closes it. No callback runs afterwards.
  ~LocalEngine() override;

  // Ends the endpoint: pins of peers are given back before it returns; what was under way for the
  // node ends in a later task.
  void Close();

  // Requires open().
  transport::Endpoint& endpoint() { return *endpoint_; }

  // Engine
  void Serve(Handlers handlers) override { handlers_ = std::move(handlers); }
  void StopServing() override;
  bool open() const override { return endpoint_ != nullptr; }
  const verbs::Address& address() const override { return address_; }
  size_t pulls() const override { return pulls_.size(); }
  absl::StatusOr<uint64_t> Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                std::atomic<uint64_t>& moved, PullCallback done) override;
  void Cancel(uint64_t token) override;
  void Pinned(transport::PinId pin, absl::StatusOr<transport::PinnedObject> object) override;
  void Drain(std::function<void()> done) override;
  [[nodiscard]] base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request,
                                   base::Duration deadline, CallCallback done) override {
    return calls_.Call(peer, request, deadline, std::move(done));
  }
  uint32_t max_call_size() const override { return calls_.max_call_size(); }
  transport::Caller& programs() override { return calls_.programs(); }

 private:
  class PullSink;
  class Inside;  // while the endpoint runs one of our callbacks

  // A pin that a peer's transfer asks for.
  struct AskedPin {
    PinCallback done;
    base::Pending answer;  // null: the node has not answered
  };

  LocalEngine(base::EventLoop& loop, size_t max_calls);

  // transport::Source
  void Pin(const base::ObjectVersion& version, transport::PinId pin, PinCallback done) override;
  void Unpin(transport::PinId pin) override;

  // EngineCalls::Sender, names the endpoint's calls by their handles
  [[nodiscard]] base::Pending Send(const EngineCalls::Request& request) override;
  [[nodiscard]] bool Cancel(uint64_t call, base::Pending sent) override;

  void AnswerPin(transport::PinId pin, const absl::StatusOr<transport::PinnedObject>& object);
  void AnswerDrains();
  void EndSoon();
  void End();

  base::EventLoop& loop_;
  Handlers handlers_;
  verbs::Address address_;
  int inside_ = 0;  // callbacks of the endpoint that run now, one in the other
  EnginePulls pulls_;
  EngineCalls calls_;
  absl::flat_hash_map<transport::PinId, AskedPin> pins_;  // never visited in its own order
  base::Answers pin_answers_;
  PeerCalls peer_calls_;
  std::vector<std::function<void()>> draining_;
  size_t drained_ = 0;  // of these, whose answer is due
  base::Timer drain_answers_;
  base::Timer ended_;
  std::unique_ptr<transport::Endpoint> endpoint_;  // null: closed; dropped before what it calls
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
