// Engine joins the node's control loop and one transport endpoint on a loop of its own.
//
// The store, the directory and the clients live on the control loop; each endpoint lives on its engine's. They talk through
// two bounded mailboxes and share nothing else:
//
//   control loop                     mailboxes                    engine loop
//   EngineLink  -- start, cancel, call, pinned, reserved -->  EngineHost, transport::Endpoint
//   (the node)  <-- pin, unpin, reserve, done, called -----   (a Source and Sinks for the endpoint)
//
// Both loops may be one thread's (a simulation). Set-up and tear-down are the wiring's: make the link on the control loop,
// open the host on the engine loop, drop the host first, while the control loop stands still. What runs then, and what is
// asked after, ends with kUnavailable.
// Law: memory of a pull and pins of peers are given back only when the engine has said so, or is gone.
// Bounds: kMaxEnginePulls pulls and kMaxEngineCalls calls of ours at once; peers' pins and calls are refused while
// kMaxReportsWaiting reports wait for the control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/mailbox.h"
#include "lib/base/numbered_table.h"
#include "lib/base/object_id.h"
#include "lib/node/outbox.h"
#include "lib/transport/endpoint.h"

namespace tokamak::node {

class EngineHost;

constexpr size_t kMaxEnginePulls = 1024;
constexpr size_t kMaxEngineCalls = 1024;
constexpr size_t kMaxReportsWaiting = 1024;  // beyond those in the mailbox
constexpr size_t kEngineMailbox = 256;       // a burst; more waits in an Outbox

// From the control loop to the engine.
struct EngineCommand {
  enum class Kind : uint8_t { kNone, kPull, kCancel, kPinned, kReserved, kCall, kReply, kSettle };
  Kind kind = Kind::kNone;
  uint64_t token = 0;  // of the pull, pin or call
  transport::PullRequest pull;
  absl::Status status;
  transport::PinnedObject pinned;
  absl::Span<uint8_t> memory;  // kReserved; kPull: where size_known
  verbs::Address peer;
  base::Duration deadline;
  std::vector<uint8_t> bytes;  // of a call or a reply
};

// From the engine to the control loop.
struct EngineReport {
  enum class Kind : uint8_t { kNone, kPin, kUnpin, kReserve, kPullDone, kCallDone, kCalled, kSettled };
  Kind kind = Kind::kNone;
  uint64_t token = 0;
  base::ObjectId id;
  transport::ObjectSize size;
  absl::Status status;
  transport::TransferReport report;
  std::vector<uint8_t> bytes;
};

// The control loop's end.
class EngineLink final : public transport::Caller {
 public:
  // Who serves the peers: the node. A pin is answered later or at once, with Pinned. A call's reply that is dropped unused tells
  // the peer that there is none.
  using Reply = std::function<void(absl::Span<const uint8_t>)>;
  struct Handlers {
    std::function<void(uint64_t pin, const base::ObjectId& id)> pin;
    std::function<void(uint64_t pin)> unpin;
    std::function<void(absl::Span<const uint8_t> request, Reply reply)> call;
  };
  // A pull that runs on the engine.
  struct PullHandlers {
    // The size is known now: memory for it, or why not. Not asked where the pull came with memory.
    std::function<absl::StatusOr<absl::Span<uint8_t>>(const transport::ObjectSize&)> reserve;
    // The end: nobody touches the memory any more.
    std::function<void(const absl::Status&, const transport::TransferReport&)> done;
  };

  explicit EngineLink(base::EventLoop& control_loop);
  ~EngineLink() override;

  // Without handlers, before and after, peers are refused.
  void Serve(Handlers handlers) { handlers_ = std::move(handlers); }
  void StopServing() { handlers_ = Refusal(); }

  // Between the host's opening and its end.
  bool open() const { return to_engine_ != nullptr; }
  // Where the engine listens; set when its host opened.
  const verbs::Address& address() const { return address_; }
  size_t pulls() const { return pulls_.size(); }

  // Returns a token for Cancel. `memory` is the object's place, where the size is known; it must stay reserved until `done`.
  // kResourceExhausted: kMaxEnginePulls run already; kUnavailable: the engine is gone.
  absl::StatusOr<uint64_t> Pull(const transport::PullRequest& request, absl::Span<uint8_t> memory,
                                PullHandlers handlers);
  // `done` comes as soon as the memory is safe.
  void Cancel(uint64_t token);

  // Answers Handlers::pin.
  void Pinned(uint64_t pin, absl::StatusOr<transport::PinnedObject> object);

  // The engine refuses the peers' new transfers from now on. Runs `done` when it serves nothing any more and the peers have
  // all that it sent them, or when it is gone.
  void Settle(std::function<void()> done);

  void Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
            CallCallback done) override;
  uint32_t max_call_size() const override { return max_call_size_; }

 private:
  friend class EngineHost;

  class Ticket;  // the right to answer one call

  // What the engine will report of, and who hears of it.
  template <typename Handler>
  struct Awaited {
    Awaited(uint64_t t, Handler h) : token(t), handler(std::move(h)) {}
    const uint64_t token;
    Handler handler;
    base::Link<Awaited> table_link;
  };
  template <typename Handler>
  static void Await(base::NumberedTable<Awaited<Handler>>& table, uint64_t token, Handler handler);
  template <typename Handler>
  static Handler TakeOut(base::NumberedTable<Awaited<Handler>>& table, Awaited<Handler>* awaited);

  Handlers Refusal();
  void Handle(EngineReport report);
  void HandleReserve(const EngineReport& report);
  void HandlePullDone(const EngineReport& report);
  void HandleCallDone(const EngineReport& report);
  void HandleSettled();
  void RefuseCall(CallCallback done, absl::Status status);
  void Closed();
  void Send(EngineCommand command);

  base::EventLoop& loop_;
  base::Mailbox<EngineReport> from_engine_;
  std::unique_ptr<Outbox<EngineCommand>> to_engine_;  // while the host lives
  std::vector<EngineReport> last_reports_;            // left by a host that is gone
  const std::unique_ptr<base::Signal> closed_;        // raised by it
  Handlers handlers_;
  verbs::Address address_;
  uint32_t max_call_size_ = 0;
  uint64_t last_token_ = 0;
  base::NumberedTable<Awaited<PullHandlers>> pulls_;  // by token
  base::NumberedTable<Awaited<CallCallback>> calls_;
  std::vector<std::function<void()>> settling_;
  std::vector<base::Task> refused_;  // calls that are refused still answer later
  base::Timer refusing_;
  const std::shared_ptr<EngineLink*> self_;  // for tickets that outlive us
};

// The engine loop's end: owns the endpoint.
class EngineHost final : public transport::Source {
 public:
  // On the engine's loop (or before it runs). What `rails` name, and all references, must outlive the host. Listens at `listen`
  // and tells the link.
  static absl::StatusOr<std::unique_ptr<EngineHost>> Open(base::EventLoop& engine_loop, EngineLink& link,
                                                          absl::Span<const transport::Rail> rails,
                                                          const verbs::Address& listen, base::Random random,
                                                          base::Trace& trace,
                                                          const transport::EndpointOptions& options);
  ~EngineHost() override;

  transport::Endpoint& endpoint() { return *endpoint_; }

  void Pin(const base::ObjectId& id, transport::PinId pin, PinCallback done) override;
  void Unpin(transport::PinId pin) override;

 private:
  class PullSink;

  EngineHost(base::EventLoop& engine_loop, EngineLink& link);
  void Handle(EngineCommand command);
  void HandlePull(EngineCommand command);
  void HandlePinned(const EngineCommand& command);
  void HandleCall(EngineCommand command);
  void HandleReply(const EngineCommand& command);
  void HandleCalled(absl::Span<const uint8_t> request, transport::Endpoint::Reply reply);
  void RefusePins();

  base::EventLoop& loop_;
  EngineLink& link_;
  base::Mailbox<EngineCommand> from_control_;
  Outbox<EngineReport> to_control_;
  // By token; none is visited in its own order.
  absl::flat_hash_map<uint64_t, PinCallback> pins_;  // asked for
  absl::flat_hash_map<uint64_t, PullSink*> pulls_;
  absl::flat_hash_map<uint64_t, transport::Endpoint::Reply> replies_;
  std::set<uint64_t> refused_pins_;  // of pins_, that the control loop was not asked for
  base::Timer refusing_;
  uint64_t last_call_ = 0;
  std::unique_ptr<transport::Endpoint> endpoint_;  // last: its end drops the sinks
};

}  // namespace tokamak::node
