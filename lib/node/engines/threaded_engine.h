// ThreadedEngine is the node's end of an engine on another loop: it talks through mailboxes to the
// EngineHost there (engine_host.h), which owns the endpoint.
//
// Both loops may be one thread's (a simulation). Set-up and tear-down are the wiring's: make this
// on the control loop, open the host on the engine's loop, drop the host first, while the control
// loop stands still. Reports that the host leaves come before the errors of what ends with it.
// Thread rule: the node's control loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/base/event_loop.h"
#include "lib/base/handle.h"
#include "lib/base/lifetime.h"
#include "lib/base/mailbox.h"
#include "lib/node/engines/engine.h"
#include "lib/node/engines/engine_calls.h"
#include "lib/node/engines/engine_messages.h"
#include "lib/node/engines/engine_pulls.h"
#include "lib/node/engines/outbox.h"

namespace tokamak::node {

class EngineHost;

class ThreadedEngine final : public Engine, private EngineCalls::Sender {
 public:
  // At most `max_calls` calls for programs are under way at once. Not open until its host is.
  explicit ThreadedEngine(base::EventLoop& control_loop, size_t max_calls = kMaxEngineCalls);
  // Requires that the host was dropped before. No callback runs afterwards.
  ~ThreadedEngine() override;

  // Engine
  void Serve(Handlers handlers) override { handlers_ = std::move(handlers); }
  void StopServing() override;
  bool open() const override { return to_engine_ != nullptr; }
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
  friend class EngineHost;

  class Ticket;  // the right to answer one call

  // A call of a peer that is being answered.
  struct OneCalled {
    explicit OneCalled(uint64_t t) : token(t) {}
    const uint64_t token;
    base::Pending work;
    base::Link<OneCalled> table_link;
  };

  // For the host, while the control loop stands still: its beginning, and its end with the reports
  // that are left.
  void HostOpened(base::Mailbox<EngineCommand>& commands, const verbs::Address& address, uint32_t max_call_size);
  void HostEnded(std::vector<EngineReport> last_reports);

  // EngineCalls::Sender, which names calls by their tokens
  [[nodiscard]] base::Pending Send(const EngineCalls::Request& request) override;
  [[nodiscard]] bool Cancel(uint64_t call, base::Pending sent) override;

  void HandleAny(const EngineReport& report);
  void Handle(const DrainedReport& report);
  void Handle(const PullDoneReport& report) { pulls_.End(report.pull, report.status, report.transfer); }
  void Handle(const PinReport& report) { handlers_.pin(report.pin, report.version); }
  void Handle(const UnpinReport& report) { handlers_.unpin(report.pin); }
  void Handle(const CallDoneReport& report);
  void Handle(const CalledReport& report);
  void Handle(const CallCancelledReport& report);

  void Answer(uint64_t token, absl::StatusOr<std::vector<uint8_t>> reply);
  void DropCalled(OneCalled* called);
  void Closed();
  void Command(EngineCommand command);

  base::EventLoop& loop_;
  base::Mailbox<EngineReport> from_engine_;
  std::unique_ptr<Outbox<EngineCommand>> to_engine_;  // while the host lives
  std::vector<EngineReport> last_reports_;            // left by a host that is gone
  const std::unique_ptr<base::Signal> closed_;        // raised by it
  Handlers handlers_;
  verbs::Address address_;
  EnginePulls pulls_;
  EngineCalls calls_;
  base::NumberedTable<OneCalled> called_;
  std::vector<std::function<void()>> draining_;
  const base::Lifetime lifetime_;  // last: over before what is dropped above
};

}  // namespace tokamak::node
