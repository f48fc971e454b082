// A connection manager between strangers who send whatever they like and an application that
// accepts, rejects and leaves.
//
// Law: half-open connections are bounded, of each peer and in all; so is what is remembered of
// those that are over.
// Law: one datagram is answered by two at most, so nobody can use a manager to flood somebody else.
// Law: an application hears of each connection at most once that it is up and once that it is over,
// and nothing after.
// Law: when the application is gone and time has passed, nothing is left.
#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lib/base/check.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/target.h"
#include "tests/verbs/soft/cm/connection_manager_fixture.h"

namespace tokamak::fuzz {
namespace {

using namespace verbs::soft;  // NOLINT: its whole connection management is the subject
using verbs::Address;
using verbs::ConnectionRequest;

constexpr int kMostSteps = 300;
constexpr uint8_t kFirstHost = 9;
constexpr uint8_t kHosts = 8;
constexpr size_t kMostEnds = 200;

class Player final {
 public:
  explicit Player(Input input) : in_(input) { Listen(); }

  void Play() {
    for (int step = 0; step < kMostSteps && !in_.empty(); ++step) {
      Step();
      CheckBounds();
      if (wire_.sent.size() > 64) wire_.sent.erase(wire_.sent.begin(), wire_.sent.end() - 32);
    }
    for (const auto& end : ends_) CheckEvents(*end);
    listener_.reset();
    requests_.clear();
    ends_.clear();
    Run(base::Seconds(120));
    CHECK_EQ(nic_->manager->connections(), 0u);
    CHECK_EQ(nic_->manager->half_open(), 0u);
    CHECK(nic_->held.empty() && nic_->queue_pairs.empty());
  }

 private:
  void Step() {
    switch (in_.Below(17)) {
      case 0:
      case 1:
        return Deliver(AnyHost(), Req(AnyHost()));
      case 2:
        return Storm();
      case 3:
      case 4:
        return Answer();
      case 5:
        return Deliver(AnyHost(), AnyMessage());
      case 6:
        flip_at_ = in_.Take<uint8_t>();
        flip_to_ = in_.Take<uint8_t>();
        return;
      case 7:
        return DeliverBytes(in_.Flag() ? last_host_ : AnyHost(), last_);
      case 8:
        return Noise();
      case 9:
        return Time();
      case 10:
        return Accept();
      case 11:
        if (!requests_.empty()) requests_.pop_front();
        return;
      case 12:
        return Connect();
      case 13:
        return Leave();
      case 14:
        return News();
      case 15:
        if (listener_ == nullptr) return Listen();
        if (in_.Below(4) == 3) listener_.reset();
        return;
      case 16:
        return UseCookie();
    }
  }

  void Run(base::Duration duration) { scheduler_.RunFor(duration); }

  void Time() {
    static constexpr base::Duration kTimes[] = {base::Microseconds(10), base::Milliseconds(10), base::Milliseconds(200),
                                                base::Seconds(1),       base::Seconds(5),       base::Seconds(40)};
    Run(kTimes[in_.Below(std::size(kTimes))]);
  }

  // ---- Strangers. Their IDs have their host in them.

  uint8_t AnyHost() { return static_cast<uint8_t>(kFirstHost + in_.Below(kHosts)); }
  static uint32_t Id(uint8_t host, uint32_t number) { return uint32_t{host} << 16 | (number & 0xffff); }
  static uint8_t HostOf(uint32_t id) {
    const uint32_t host = id >> 16;
    return host >= kFirstHost && host < kFirstHost + kHosts ? static_cast<uint8_t>(host) : kFirstHost;
  }

  Mad Req(uint8_t host) {
    ConnectionOffer offer;
    offer.queue_pair = 2 + in_.Below(32);
    offer.max_path_mtu = 256u << in_.Below(5);
    const uint32_t id = Id(host, 1 + in_.Below(32));
    const auto port = static_cast<uint16_t>(in_.Below(16) == 15 ? 1 : kPort);
    Address to = nic_->address();
    to.port = port;
    const uint64_t transaction = in_.Below(4) == 3 ? in_.Take<uint8_t>() : id;
    return {transaction, MakeReq(offer, FakeAddress(host, 40000), to, 99, id)};
  }

  // Many strangers' requests at once.
  void Storm() {
    const uint8_t host = AnyHost();
    const uint32_t first = in_.Take<uint8_t>() * 256;
    const uint32_t count = in_.Below(100);
    RequestMany(host, first, count, std::nullopt);
  }

  void RequestMany(uint8_t host, uint32_t first, uint32_t count, std::optional<uint64_t> transaction) {
    for (uint32_t i = 1; i <= count; ++i) {
      ConnectionOffer offer;
      offer.queue_pair = 1000 + first + i;
      Address to = nic_->address();
      to.port = kPort;
      const uint32_t id = Id(host, first + i);
      Deliver(host, {transaction.value_or(id), MakeReq(offer, FakeAddress(host, 40000), to, 99, id)});
    }
  }

  // Delivers a possible answer to something that the manager has sent.
  void Answer() {
    if (wire_.sent.empty()) return;
    const Mad sent = wire_.sent[wire_.sent.size() - 1 - in_.Below(32) % wire_.sent.size()];
    const ConnectionIds ids = IdsOf(sent).value_or(ConnectionIds());
    const uint32_t ours = ids.local;  // the manager's ID
    uint32_t theirs = ids.remote;     // the stranger's
    uint8_t host = HostOf(theirs);
    if (theirs == 0) {
      host = AnyHost();
      theirs = Id(host, 1 + in_.Below(32));
    }
    Mad mad{sent.transaction, MraMad()};
    switch (in_.Below(8)) {
      case 0:
      case 1: {
        if (!std::holds_alternative<ReqMad>(sent.body)) {
          mad.body = RtuMad{theirs, ours};
          break;
        }
        RepMad rep;
        rep.local_id = theirs;
        rep.remote_id = ours;
        rep.queue_pair = 2 + in_.Below(32);
        rep.initiator_depth = rep.responder_resources = 4;
        mad.body = rep;
        break;
      }
      case 2:
        mad.body = in_.Below(4) == 3 ? MakeQuestion(theirs, ours) : DreqMad{theirs, ours, 100 + in_.Below(16)};
        break;
      case 3:
        mad.body = DrepMad{theirs, ours};
        break;
      case 4:
        mad.body = MraMad{theirs, ours, static_cast<MadKind>(in_.Below(3)), static_cast<uint8_t>(in_.Below(32))};
        break;
      default: {
        RejMad rej;
        rej.local_id = in_.Flag() ? theirs : 0;
        rej.remote_id = in_.Below(4) == 3 ? 0 : ours;
        rej.rejects = static_cast<MadKind>(in_.Below(3));
        rej.reason = static_cast<RejectReason>(in_.Below(32));
        rej.information_length = static_cast<uint8_t>(in_.Below(2));
        rej.information[0] = static_cast<uint8_t>(in_.Below(8));
        mad.body = rej;
      }
    }
    Deliver(in_.Below(8) == 7 ? AnyHost() : host, mad);
  }

  // Many requests with the last cookie that was given, by its owner or by somebody who took it.
  void UseCookie() {
    for (auto sent = wire_.sent.rbegin(); sent != wire_.sent.rend(); ++sent) {
      const auto* const dreq = std::get_if<DreqMad>(&sent->body);
      if (dreq == nullptr || !IsQuestion(*dreq)) continue;
      const uint8_t host = in_.Below(8) == 7 ? AnyHost() : HostOf(dreq->remote_id);
      const uint32_t first = in_.Take<uint8_t>() * 256;
      const uint32_t count = in_.Take<uint8_t>();
      return RequestMany(host, first, count, sent->transaction);
    }
  }

  Mad AnyMessage() {
    const uint32_t local = Id(AnyHost(), 1 + in_.Below(32));
    const uint32_t remote = in_.Take<uint32_t>();
    switch (in_.Below(4)) {
      case 0:
        return {local, RtuMad{local, remote}};
      case 1:
        return {local, DreqMad{local, remote, 100}};
      case 2: {
        RepMad rep;
        rep.local_id = local;
        rep.remote_id = remote;
        return {local, rep};
      }
      default:
        return {local, RejMad()};
    }
  }

  void Noise() {
    MadBytes bytes{};
    const uint8_t header[] = {1, 7, 2, 3};
    std::copy(std::begin(header), std::end(header), bytes.begin());
    bytes[17] = static_cast<uint8_t>(0x10 + in_.Below(10));
    const absl::Span<const uint8_t> body = in_.Bytes(bytes.size() - 24);
    std::copy(body.begin(), body.end(), bytes.begin() + 24);
    DeliverBytes(AnyHost(), bytes);
  }

  void Deliver(uint8_t host, const Mad& mad) {
    MadBytes bytes = EncodeMad(mad);
    bytes[flip_at_] ^= flip_to_;
    flip_at_ = flip_to_ = 0;
    DeliverBytes(host, bytes);
  }

  void DeliverBytes(uint8_t host, const MadBytes& bytes) {
    Run({});  // what is due already is no answer
    const size_t before = wire_.sent.size();
    nic_->ReceiveBytes(FakeAddress(host), bytes);
    CHECK_LE(wire_.sent.size(), before + 2) << wire_.Names();
    Run({});
    last_host_ = host;
    last_ = bytes;
  }

  // ---- The application.

  void Listen() {
    Address at = nic_->address();
    at.port = kPort;
    listener_ = *nic_->manager->Listen(nic_->owner, at, [this](std::unique_ptr<ConnectionRequest> request) {
      requests_.push_back(std::move(request));
    });
  }

  End* AddEnd() {
    if (ends_.size() >= kMostEnds) {
      CheckEvents(*ends_.front());
      ends_.pop_front();
    }
    ends_.push_back(std::make_unique<End>(*nic_));
    return ends_.back().get();
  }

  verbs::ConnectOptions AnyOptions() {
    verbs::ConnectOptions options;
    options.max_path_mtu = 256u << in_.Below(5);
    options.deadline = base::Seconds(1 + in_.Below(10));
    return options;
  }

  void Accept() {
    if (requests_.empty()) return;
    const std::unique_ptr<ConnectionRequest> request = std::move(requests_.front());
    requests_.pop_front();
    AddEnd()->Accept(*request, AnyOptions()).IgnoreError();  // the peer may have changed its mind
  }

  void Connect() {
    const verbs::ConnectOptions options = AnyOptions();
    const absl::Status status = AddEnd()->Connect(FakeAddress(AnyHost(), kPort), options);
    CHECK(status.ok()) << status;
  }

  void Leave() {
    if (ends_.empty()) return;
    const auto end = ends_.begin() + static_cast<ptrdiff_t>(in_.Take<uint8_t>() % ends_.size());
    CheckEvents(**end);
    if (in_.Flag()) {
      (*end)->connection.reset();
    } else {
      ends_.erase(end);
    }
  }

  void News() {
    if (ends_.empty()) return;
    const uint32_t number = ends_[in_.Take<uint8_t>() % ends_.size()]->queue_pair->number();
    FakeQueuePairState& state = nic_->queue_pairs.at(number);
    if (in_.Flag()) {
      if (state.state != verbs::QueuePairState::kError) nic_->Fail(number);
    } else if (state.watched && state.state == verbs::QueuePairState::kReadyToReceive) {
      nic_->FirstData(number);
    }
  }

  // ---- Laws.

  static bool IsLast(Kind kind) { return kind != Kind::kEstablished; }

  static void CheckEvents(const End& end) {
    const std::vector<Kind>& events = end.events;
    CHECK_LE(events.size(), 2u);
    CHECK_LE(std::count(events.begin(), events.end(), Kind::kEstablished), 1);
    CHECK_LE(std::count_if(events.begin(), events.end(), IsLast), 1);
    CHECK(events.size() < 2 || !IsLast(events.front()));
  }

  void CheckBounds() const {
    const SoftConnectionManager& manager = *nic_->manager;
    CHECK_LE(manager.half_open(), kHosts * (kAnyHalfOpen.of_one + kPresentHalfOpen.of_one + kCookieHalfOpen.of_one));
    CHECK_LE(manager.half_open(), kMaxHalfOpen);
    CHECK_LE(manager.connections(), manager.half_open() + kMaxEnding + 1 + ends_.size());
  }

  Input in_;
  sim::Scheduler scheduler_;
  FakeWire wire_{scheduler_};
  const std::shared_ptr<FakeNic> nic_ = std::make_shared<FakeNic>(scheduler_, wire_, 2);
  std::unique_ptr<verbs::Listener> listener_;
  std::deque<std::unique_ptr<ConnectionRequest>> requests_;
  std::deque<std::unique_ptr<End>> ends_;
  uint8_t flip_at_ = 0, flip_to_ = 0;
  uint8_t last_host_ = kFirstHost;
  MadBytes last_{};
};

}  // namespace
}  // namespace tokamak::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tokamak::fuzz::Player(tokamak::fuzz::Input(data, size)).Play();
  return 0;
}
