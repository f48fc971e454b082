#include "lib/transport/secondary_rail.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::transport {

using Side = BulkChannel::Side;

void SecondaryRail::Join(const verbs::Address& peer) {
  peer_ = peer;
  if (state_ != State::kAbsent || device_is_gone_) return;
  state_ = State::kJoining;
  absl::Status status = Prepare();
  if (status.ok()) status = ConnectAll();
  if (!status.ok()) Fail(status);
}

absl::Status SecondaryRail::Prepare() {
  BulkChannel& bulk = host_.bulk();
  const uint32_t each = bulk.shape().each;
  verbs::Device& device = context_.rails[rail_].device;
  peer_is_down_ = false;
  if (completions_ == nullptr) {
    auto made = Completions::Create(device, context_.loop, BulkChannel::CompletionsFor(side_, each), [this] {
      completions_->Arm();  // and then drain
      host_.OnRailEvent();
    });
    if (!made.ok()) return made.status();
    completions_ = *std::move(made);
  }
  links_ = std::vector<Link>(each);
  timer_ = context_.loop.RunAfter(context_.options.connect_deadline,
                                  [this] { Fail(absl::UnavailableError("not connected by the deadline")); });
  return bulk.Make(rail_, completions_->queue());
}

verbs::ConnectOptions SecondaryRail::OptionsFor(absl::Span<const uint8_t> private_data) const {
  verbs::ConnectOptions options;
  options.private_data = private_data;
  options.reliability = context_.options.reliability;
  options.deadline = context_.options.connect_deadline;
  return options;
}

absl::Status SecondaryRail::ConnectAll() {
  for (uint32_t link = 0; link < links_.size(); ++link) {
    std::array<uint8_t, kHelloSize> private_data;
    EncodeHello(host_.MyHello(QueueOf(link) + 1), absl::MakeSpan(private_data));
    auto connection = context_.rails[rail_].device.connection_manager().Connect(
        host_.bulk().queue_pair(QueueOf(link)), peer_, OptionsFor(private_data),
        [this, link](const verbs::ConnectionEvent& event) { OnConnectionEvent(link, event); });
    if (!connection.ok()) return connection.status();
    links_[link].connection = *std::move(connection);
  }
  return absl::OkStatus();
}

absl::Status SecondaryRail::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  const uint32_t link = theirs.queue - 1u - QueueOf(0);
  if (state_ == State::kAbsent && !device_is_gone_) {
    state_ = State::kJoining;
    if (absl::Status s = Prepare(); !s.ok()) {
      Fail(s);
      return s;
    }
  }
  if (state_ != State::kJoining || links_[link].connection != nullptr) {
    return absl::UnavailableError("the rail is not free yet");
  }
  std::array<uint8_t, kHelloSize> private_data;
  EncodeHello(host_.MyHello(theirs.queue), absl::MakeSpan(private_data));
  auto connection =
      request.Accept(host_.bulk().queue_pair(QueueOf(link)), OptionsFor(private_data),
                     [this, link](const verbs::ConnectionEvent& event) { OnConnectionEvent(link, event); });
  if (!connection.ok()) {
    Fail(connection.status());
    return connection.status();
  }
  links_[link].connection = *std::move(connection);
  host_.bulk().OnPeerHello(QueueOf(link), theirs);
  return absl::OkStatus();
}

void SecondaryRail::OnConnectionEvent(uint32_t link, const verbs::ConnectionEvent& event) {
  if (event.kind == verbs::ConnectionEvent::Kind::kEstablished) {
    host_.bulk().LimitPackets(event.path_mtu);
    return OnEstablished(link, event.private_data);
  }
  Fail(absl::UnavailableError(absl::StrCat(verbs::ToString(event.kind), ": ", event.status.message())));
}

void SecondaryRail::OnEstablished(uint32_t link, absl::Span<const uint8_t> private_data) {
  if (state_ != State::kJoining) return;
  if (side_ == Side::kPuller) {
    auto theirs = DecodeHello(private_data);
    if (!theirs.ok()) return Fail(theirs.status());
    const Hello mine = host_.MyHello(QueueOf(link) + 1);
    if (theirs->queue != mine.queue || theirs->token != mine.token ||
        theirs->bulk_queue_pairs != mine.bulk_queue_pairs) {
      return Fail(absl::InvalidArgumentError("the peer's hello answers another connection"));
    }
    host_.bulk().OnPeerHello(QueueOf(link), *theirs);
  }
  links_[link].established = true;
  if (!std::all_of(links_.begin(), links_.end(), [](const Link& one) { return one.established; })) return;
  state_ = State::kUp;
  timer_.Cancel();
  ++context_.counters.rails_joined;
  host_.bulk().Enable(rail_);
  host_.Wake();
}

void SecondaryRail::Fail(const absl::Status& status) {
  if (state_ == State::kJoining) {
    VLOG(1) << "rail " << rail_ << " does not come up: " << status;
    return Drop();
  }
  if (state_ != State::kUp) return;
  ++context_.counters.rails_lost;
  LOG(WARNING) << "rail " << rail_ << " (" << context_.rails[rail_].device.name()
               << ") drops out of a connection: " << status;
  if (side_ == Side::kOwner) return Drop();
  // Notes that came before the end count: the owner may know that they did.
  state_ = State::kFailing;
  host_.bulk().Fail(rail_);
  timer_ = context_.loop.RunAfter(kFlushGrace, [this] { Drop(); });
  OnTaken();
}

void SecondaryRail::OnTaken() {
  if (state_ != State::kFailing || !host_.bulk().Flushed(rail_)) return;
  timer_ = context_.loop.Post([this] { Drop(); });
}

void SecondaryRail::Drop() {
  timer_.Cancel();
  DropLinks();
  state_ = peer_is_down_ ? State::kAbsent : State::kWaiting;
  host_.bulk().Drop(rail_);
  if (completions_ != nullptr) completions_->Forget();
  host_.SayDown(rail_);
  host_.Wake();
  if (state_ == State::kAbsent) Rest();
}

void SecondaryRail::OnPeerDown(absl::Span<const WantedWrite> wanted) {
  switch (state_) {
    case State::kAbsent:
      host_.SayDown(rail_);
      break;
    case State::kJoining:
    case State::kUp:
      peer_is_down_ = true;
      Fail(absl::UnavailableError("the peer has given the rail up"));
      break;
    case State::kFailing:
      peer_is_down_ = true;
      break;
    case State::kWaiting:
      state_ = State::kAbsent;
      Rest();
      break;
  }
  if (side_ == Side::kOwner) host_.bulk().Resolve(rail_, wanted);
  host_.Wake();
}

// Nothing of it is left on either side.
void SecondaryRail::Rest() {
  if (side_ == Side::kPuller) timer_ = context_.loop.RunAfter(kRejoinInterval, [this] { Join(peer_); });
}

void SecondaryRail::OnDeviceEvent(const verbs::DeviceEventInfo& info) {
  switch (info.event) {
    case verbs::DeviceEvent::kRemoved:
      device_is_gone_ = true;
      return Fail(absl::UnavailableError("the device was removed"));
    case verbs::DeviceEvent::kPortDown:
      return Fail(absl::UnavailableError("the device's port is down"));
    case verbs::DeviceEvent::kQueuePairFatal:
      for (uint32_t link = 0; link < links_.size(); ++link) {
        if (!host_.bulk().Has(QueueOf(link))) continue;
        if (host_.bulk().queue_pair(QueueOf(link)).number() != info.queue_pair_number) continue;
        return Fail(absl::UnavailableError("the device gave up a queue pair"));
      }
      return;
    case verbs::DeviceEvent::kPortUp:
    case verbs::DeviceEvent::kAddressChanged:
    case verbs::DeviceEvent::kCompletionQueueOverrun:
    case verbs::DeviceEvent::kReceiveLimit:
      return;
  }
}

void SecondaryRail::DropLinks() { links_.clear(); }

}  // namespace tokamak::transport
