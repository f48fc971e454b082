#include "lib/transport/endpoint.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/base/answers.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "lib/security/cipher_state.h"
#include "lib/transport/channels/bulk_queue.h"
#include "lib/transport/channels/context.h"
#include "lib/transport/checked_options.h"
#include "lib/transport/inbound.h"
#include "lib/transport/memory/window_pool.h"
#include "lib/transport/messages/message.h"
#include "lib/transport/outbound.h"
#include "lib/transport/peer_handshake.h"

namespace tokamak::transport {
namespace {

// Connections from peers; further ones are refused.
constexpr uint32_t kMaxInbound = 4096;
static_assert(kMaxInboundOfPeer <= PeerShares::PartOf(kMaxInbound), "no peer has them all");

// Bulk queue pairs whose notes share a memory region.
constexpr uint32_t kNotesBlock = 64;

// Peers whose rails are remembered.
constexpr size_t kMaxPaths = 4096;

constexpr uint64_t kAdaptiveStream = 1;  // random stream

constexpr base::Duration kDrainStep = base::Milliseconds(1);

constexpr char kAnew[] = "the peer has begun anew";
constexpr char kTooManyConnections[] = "too many connections";

class EndpointImpl final : public Endpoint, private Outbound::Keeper, private Inbound::Keeper {
 public:
  EndpointImpl(base::EventLoop& loop, absl::Span<const Rail> rails, Source& source, base::Random random,
               base::Trace& trace, const EndpointOptions& options)
      : context_{loop, {rails.begin(), rails.end()}, source, random, trace, options, {}, {}}, refused_calls_(loop) {
    context_.next_pin = context_.random.Next();  // unlikely to meet other endpoints' of the source
    if (options.adaptive_policy) {
      context_.adaptive = std::make_unique<AdaptivePolicy>(options.policy, context_.random.Fork(kAdaptiveStream));
    }
    for (uint32_t rail = 0; rail < rails.size(); ++rail) {
      device_watches_.push_back(rails[rail].device.Watch(
          loop, [this, rail](const verbs::DeviceEventInfo& info) { OnDeviceEvent(rail, info); }));
    }
  }

  absl::Status Open() {
    for (const Rail& rail : context_.rails) {
      auto completions = SharedCompletions::Create(rail.device, context_.loop, context_.options.slot_size);
      if (!completions.ok()) return completions.status();
      context_.completions.push_back(*std::move(completions));
      context_.ack_times.emplace_back();
      const uint32_t slot_size = context_.options.slot_size;
      context_.slots.push_back(
          std::make_unique<SlotPool>(context_.loop, rail.domain, slot_size, SlotPool::BlockFor(slot_size)));
      context_.notes.push_back(
          std::make_unique<SlotPool>(context_.loop, rail.domain, BulkQueue::kNotesSize, kNotesBlock));
      context_.windows.push_back(std::make_unique<WindowPool>(rail));
    }
    return absl::OkStatus();
  }

  absl::Status Listen(const verbs::Address& address) override {
    std::vector<std::unique_ptr<verbs::Listener>> listeners;
    for (uint32_t rail = 0; rail < context_.rails.size(); ++rail) {
      verbs::Device& device = context_.rails[rail].device;
      verbs::Address service = address;
      if (rail > 0) {
        service = device.address();
        if (service.ip != listeners[0]->address().ip) service.port = listeners[0]->address().port;
      }
      auto listener = device.connection_manager().Listen(
          context_.loop, service,
          [this, rail](std::unique_ptr<verbs::ConnectionRequest> request) { OnRequest(rail, std::move(request)); });
      if (!listener.ok()) return listener.status();
      listeners.push_back(*std::move(listener));
    }
    listeners_ = std::move(listeners);
    context_.services.clear();
    for (const auto& listener : listeners_) context_.services.push_back(listener->address());
    return absl::OkStatus();
  }

  verbs::Address address() const override { return listeners_.empty() ? verbs::Address() : listeners_[0]->address(); }

  PullId StartPull(const PullRequest& request, std::unique_ptr<Sink> sink) override {
    const PullId id = context_.next_pull++;
    absl::Status refusal;
    Outbound* outbound = nullptr;
    if (const uint64_t room = sink->memory().size(); room != request.size.total()) {
      refusal = absl::InvalidArgumentError(
          absl::StrCat("memory of ", room, " bytes for an object of ", request.size.total()));
    } else if (request.arrived > 0 && request.arrived >= request.size.total()) {
      refusal = absl::InvalidArgumentError(
          absl::StrCat(request.arrived, " bytes of an object of ", request.size.total(), " cannot have arrived"));
    } else if (context_.pulls.size() >= context_.options.max_transfers) {
      refusal = absl::ResourceExhaustedError("as many pulls as may are under way");
    } else {
      outbound = OutboundTo(request.owner, &refusal);
    }
    if (outbound != nullptr) {
      outbound->StartPull(id, request, std::move(sink));
    } else {
      RefusePull(refusal, request, std::move(sink));
    }
    return id;
  }

  void CancelPull(PullId pull) override {
    auto it = context_.pulls.find(pull);
    if (it != context_.pulls.end()) it->second->Cancel();
  }

  base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                     CallCallback done) override {
    return Call(peer, request, deadline, OutgoingCalls::Urgency::kUsual, std::move(done));
  }

  base::Pending CallFirst(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                          CallCallback done) override {
    return Call(peer, request, deadline, OutgoingCalls::Urgency::kFirst, std::move(done));
  }

  base::Pending Call(const verbs::Address& peer, absl::Span<const uint8_t> request, base::Duration deadline,
                     OutgoingCalls::Urgency urgency, CallCallback done) {
    absl::Status refusal;
    if (request.size() > max_call_size()) {
      refusal = absl::InvalidArgumentError(
          absl::StrCat("a request of ", request.size(), " bytes, possible are ", max_call_size()));
    } else if (Outbound* outbound = OutboundTo(peer, &refusal); outbound != nullptr) {
      if (outbound->has_room_for_call()) return outbound->Call(request, deadline, urgency, std::move(done));
      refusal = absl::ResourceExhaustedError("too many calls to this peer wait");
    }
    return refused_calls_.Add([done = std::move(done), refusal] { done(refusal); });
  }

  uint32_t max_call_size() const override {
    const size_t sealing = context_.options.security.secrets == nullptr ? 0 : security::kTagSize;
    return context_.options.slot_size - static_cast<uint32_t>(kHeaderSize + sealing);
  }

  void SetSecrets(std::shared_ptr<const security::ClusterSecrets> secrets) override {
    CHECK(secrets != nullptr && context_.options.security.secrets != nullptr) << "peers are authenticated, or not";
    context_.options.security.secrets = std::move(secrets);
  }

  void Drain(std::function<void()> done) override {
    context_.leaving = true;
    draining_.push_back(std::move(done));
    if (!drain_.armed()) drain_ = context_.loop.Post([this] { CheckDrained(); });
  }

  void SetCallHandler(CallHandler handler) override { context_.call_handler = std::move(handler); }
  const EndpointCounters& counters() const override { return context_.counters; }
  EndpointUse use() const override {
    EndpointUse use;
    for (const auto& slots : context_.slots) {
      use.slot_bytes += uint64_t{slots->taken()} * slots->size();
      use.registered_bytes += slots->registered();
    }
    for (const auto& notes : context_.notes) use.registered_bytes += notes->registered();
    for (const auto& completions : context_.completions) use.completions += completions->reserved();
    for (const auto& windows : context_.windows) use.memory_windows += windows->windows();
    return use;
  }

 private:
  // Token first: a queue pair of another rail comes from another address.
  struct InboundKey {
    uint64_t token;
    std::array<uint8_t, 16> ip;
    bool operator<(const InboundKey& other) const { return token != other.token ? token < other.token : ip < other.ip; }
  };
  using InboundMap = std::map<InboundKey, std::unique_ptr<Inbound>>;

  template <typename T>
  static std::unique_ptr<T> TakeOutOf(std::vector<std::unique_ptr<T>>& leaving, const T* what) {
    auto it = std::find_if(leaving.begin(), leaving.end(), [what](const auto& one) { return one.get() == what; });
    CHECK(it != leaving.end());
    std::unique_ptr<T> taken = std::move(*it);
    leaving.erase(it);
    return taken;
  }

  // ---- to peers

  // Returns null, with the reason in `refusal`, when the device cannot.
  Outbound* OutboundTo(const verbs::Address& peer, absl::Status* refusal) {
    std::unique_ptr<Outbound>& place = outbound_[peer];
    if (place != nullptr && place->connection().leaving()) leaving_outbound_.push_back(std::move(place));
    if (place != nullptr) return place.get();
    uint32_t primary = 0;
    verbs::Address service = peer;
    if (const auto path = paths_.find(peer); path != paths_.end() && path->second.primary != 0) {
      primary = path->second.primary;
      service = path->second.rails[primary];
    }
    auto made = Outbound::Create(context_, *this, peer, primary, service, context_.random.Next());
    if (made.ok()) {
      place = *std::move(made);
      return place.get();
    }
    outbound_.erase(peer);
    *refusal = absl::UnavailableError(absl::StrCat(peer.ToString(), ": ", made.status().ToString()));
    return nullptr;
  }

  // Remembers them for when the primary rail fails.
  void OnRails(const Outbound& outbound, absl::Span<const verbs::Address> rails) override {
    if (paths_.size() >= kMaxPaths && paths_.count(outbound.peer()) == 0) return;
    paths_[outbound.peer()].rails.assign(rails.begin(), rails.end());
  }

  std::unique_ptr<Outbound> TakeOut(Outbound& outbound) override {
    const auto path = paths_.find(outbound.peer());
    if (path != paths_.end() && !outbound.connection().heard()) {
      path->second.primary = (path->second.primary + 1) % static_cast<uint32_t>(path->second.rails.size());
    }
    auto it = outbound_.find(outbound.peer());
    if (it == outbound_.end() || it->second.get() != &outbound) return TakeOutOf(leaving_outbound_, &outbound);
    std::unique_ptr<Outbound> taken = std::move(it->second);
    outbound_.erase(it);
    return taken;
  }

  void RefusePull(const absl::Status& status, const PullRequest& request, std::unique_ptr<Sink> sink) {
    ++context_.counters.pulls_started;
    ++context_.counters.pulls_failed;
    TransferReport report;
    report.protocol = request.protocol;
    report.size = request.size;
    report.arrived = request.arrived;
    Later([sink = std::shared_ptr<Sink>(std::move(sink)), status, report] { sink->Done(status, report); });
  }

  void Later(std::function<void()> task) {
    const uint64_t number = ++last_later_;
    later_[number] = context_.loop.Post([this, number, task = std::move(task)] {
      task();
      later_.erase(number);
    });
  }

  // ---- from peers

  void OnRequest(uint32_t rail, std::unique_ptr<verbs::ConnectionRequest> request) {
    auto theirs = DecodeHello(request->private_data());
    if (!theirs.ok()) return Reject(*request, theirs.status());
    const uint32_t meant = theirs->queue == 0 ? theirs->primary : RailOf(*theirs);
    if (meant != rail) {
      return Reject(*request,
                    absl::InvalidArgumentError(absl::StrCat("a queue pair of rail ", meant, " at rail ", rail)));
    }
    if (rail != theirs->primary) return OnRailRequest(*request, *theirs);
    const InboundKey key{theirs->token, request->peer().ip};
    auto it = inbound_.find(key);
    if (theirs->queue != 0) {
      const bool known = it != inbound_.end() && it->second->TakesBulk(*theirs);
      return Conclude(*request,
                      known ? it->second->Accept(*request, *theirs) : absl::UnavailableError("no such connection"));
    }
    const security::ClusterSecret* secret = nullptr;
    if (absl::Status s = PeerHandshake::FindSecret(context_.options.security, *theirs, &secret); !s.ok()) {
      ++context_.counters.peers_refused;
      return Reject(*request, s);
    }
    if (secret != nullptr) return OnNewcomer(key, *request, *theirs);
    if (it != inbound_.end()) SendAway(inbound_, it, kAnew);  // of an earlier life of the peer
    if (!MakeRoomFor(key.ip)) return Reject(*request, absl::ResourceExhaustedError(kTooManyConnections));
    if (Inbound* made = Make(inbound_, key, *request, *theirs); made != nullptr) {
      made->Admit();
      Conclude(*request, made->Accept(*request, *theirs));
    }
  }

  // A peer that has yet to prove itself: nothing of what others have gives way to it.
  void OnNewcomer(const InboundKey& key, verbs::ConnectionRequest& request, const Hello& theirs) {
    if (auto it = newcomers_.find(key); it != newcomers_.end()) SendAway(newcomers_, it, kAnew);
    MakeRoomForNewcomer(key.ip);
    Inbound* made = Make(newcomers_, key, request, theirs);
    if (made != nullptr) Conclude(request, made->Accept(request, theirs));
  }

  absl::Status OnUp(Inbound& inbound) override {
    const InboundKey key{inbound.token(), inbound.peer().ip};
    const auto it = newcomers_.find(key);
    if (it == newcomers_.end() || it->second.get() != &inbound) return absl::OkStatus();
    if (auto old = inbound_.find(key); old != inbound_.end()) SendAway(inbound_, old, kAnew);
    if (!MakeRoomFor(key.ip)) return absl::ResourceExhaustedError(kTooManyConnections);
    inbound.Admit();
    inbound_.emplace(key, std::move(it->second));
    newcomers_.erase(it);
    return absl::OkStatus();
  }

  // Returns null if the device has no room for it: the peer is refused.
  Inbound* Make(InboundMap& where, const InboundKey& key, verbs::ConnectionRequest& request, const Hello& theirs) {
    auto made = Inbound::Create(context_, *this, request.peer(), theirs);
    if (made.ok()) return where.emplace(key, *std::move(made)).first->second.get();
    Reject(request, made.status());
    return nullptr;
  }

  // Finds the connection by its token, a secret of its two ends.
  void OnRailRequest(verbs::ConnectionRequest& request, const Hello& theirs) {
    const auto it = inbound_.lower_bound({theirs.token, {}});
    const bool known = it != inbound_.end() && it->first.token == theirs.token && it->second->TakesRails(theirs);
    Conclude(request, known ? it->second->Accept(request, theirs) : absl::UnavailableError("no such connection"));
  }

  void SendAway(InboundMap& where, InboundMap::iterator which, const char* why) {
    which->second->connection().Break(absl::UnavailableError(why));
    leaving_inbound_.push_back(std::move(which->second));
    where.erase(which);
  }

  // Returns false if `peer` may have no further connection. Its earlier lives' may linger, as idle
  // ones are not probed: at the peer's bound the least recently used gives way. A live engine
  // connects again.
  bool MakeRoomFor(const PeerShares::Ip& peer) {
    if (inbound_.size() >= kMaxInbound) return false;
    if (context_.shares.ConnectionsOf(peer) < kMaxInboundOfPeer) return true;
    const auto oldest = Oldest(inbound_, [&](const auto& one) { return one.first.ip == peer && one.second->idle(); });
    if (oldest == inbound_.end()) return false;
    SendAway(inbound_, oldest, "the peer has a new connection instead");
    return true;
  }

  void MakeRoomForNewcomer(const PeerShares::Ip& peer) {
    const auto of_peer = [&peer](const auto& one) { return one.first.ip == peer; };
    const bool many = std::count_if(newcomers_.begin(), newcomers_.end(), of_peer) >= kMaxNewcomersOfPeer;
    if (!many && newcomers_.size() < kMaxNewcomers) return;
    ++context_.counters.newcomers_dropped;
    SendAway(newcomers_, Oldest(newcomers_, [&](const auto& one) { return !many || of_peer(one); }),
             "others wait to prove themselves");
  }

  template <typename Condition>
  static InboundMap::iterator Oldest(InboundMap& where, Condition may_go) {
    auto oldest = where.end();
    for (auto it = where.begin(); it != where.end(); ++it) {
      if (!may_go(*it)) continue;
      if (oldest == where.end() || it->second->asked_at() < oldest->second->asked_at()) oldest = it;
    }
    return oldest;
  }

  void Conclude(verbs::ConnectionRequest& request, const absl::Status& accepted) {
    if (accepted.ok()) return;
    if (!absl::IsCancelled(accepted)) return Reject(request, accepted);
    // The connect deadline ends the rest.
    ++context_.counters.requesters_gone;
    LOG(DEBUG) << request.peer().ToString() << ": " << accepted;
  }

  // Refuses with our hello, which shows the mismatch.
  void Reject(verbs::ConnectionRequest& request, const absl::Status& why) {
    context_.refusals.Log(context_.loop.Now(), request.peer(), why);
    if (why.code() == absl::StatusCode::kFailedPrecondition) ++context_.counters.protocol_errors;
    Hello ours;
    ours.reads_served = 1;
    ours.max_transfers = ours.max_calls = 1;
    PeerHandshake::Offer(context_.options.security, &ours);
    ours.slot_size = context_.options.slot_size;
    ours.first_slots = context_.options.first_slots;
    ours.receive_slots = context_.options.receive_slots;
    std::array<uint8_t, kHelloSize> private_data;
    EncodeHello(ours, absl::MakeSpan(private_data));
    request.Reject(private_data);
  }

  std::unique_ptr<Inbound> TakeOut(Inbound& inbound) override {
    for (InboundMap* where : {&inbound_, &newcomers_}) {
      const auto it = where->find({inbound.token(), inbound.peer().ip});
      if (it == where->end() || it->second.get() != &inbound) continue;
      std::unique_ptr<Inbound> taken = std::move(it->second);
      where->erase(it);
      return taken;
    }
    return TakeOutOf(leaving_inbound_, &inbound);
  }

  void CheckDrained() {
    bool drained = context_.serves == 0;
    for (const auto& [key, inbound] : inbound_) drained &= inbound->connection().Drain();
    if (!drained) {
      drain_ = context_.loop.RunAfter(kDrainStep, [this] { CheckDrained(); });
      return;
    }
    for (const std::function<void()>& done : std::exchange(draining_, {})) done();
  }

  // ---- the device

  void OnDeviceEvent(uint32_t rail, const verbs::DeviceEventInfo& info) {
    for (auto& [peer, outbound] : outbound_) outbound->connection().OnDeviceEvent(rail, info);
    for (const InboundMap* where : {&inbound_, &newcomers_}) {
      for (auto& [key, inbound] : *where) inbound->connection().OnDeviceEvent(rail, info);
    }
  }

  struct Path {
    std::vector<verbs::Address> rails;
    uint32_t primary = 0;
  };

  Context context_;
  std::map<verbs::Address, std::unique_ptr<Outbound>> outbound_;
  InboundMap inbound_;
  InboundMap newcomers_;  // whose peers have not proven themselves yet
  // Until taken out; another may have their place.
  std::vector<std::unique_ptr<Outbound>> leaving_outbound_;
  std::vector<std::unique_ptr<Inbound>> leaving_inbound_;
  std::map<verbs::Address, Path> paths_;
  std::vector<std::unique_ptr<verbs::Listener>> listeners_;  // by rail
  std::vector<std::unique_ptr<verbs::DeviceWatch>> device_watches_;
  base::Answers refused_calls_;
  std::vector<std::function<void()>> draining_;
  base::Timer drain_;
  uint64_t last_later_ = 0;
  std::map<uint64_t, base::Timer> later_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> Endpoint::Open(base::EventLoop& loop, absl::Span<const Rail> rails,
                                                         Source& source, base::Random random, base::Trace& trace,
                                                         const EndpointOptions& options) {
  auto checked = CheckOptions(options, rails);
  if (!checked.ok()) return checked.status();
  auto endpoint = std::make_unique<EndpointImpl>(loop, rails, source, random, trace, *checked);
  if (absl::Status s = endpoint->Open(); !s.ok()) return s;
  return endpoint;
}

}  // namespace tokamak::transport
