#include "lib/transport/rails/secondary_rail.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"

namespace tokamak::transport {

using Side = BulkChannel::Side;

void SecondaryRail::Join(const verbs::Address& peer) {
  peer_ = peer;
  if (state_ != State::kAbsent || device_is_gone_) return;
  state_ = State::kJoining;
  absl::Status status = Prepare();
  if (status.ok()) status = links_->Connect(peer);
  if (!status.ok()) Fail(status);
}

absl::Status SecondaryRail::Prepare() {
  const uint32_t each = bulk_.shape().each;
  peer_is_down_ = false;
  if (absl::Status s = bulk_.Make(rail_, host_.completions_user()); !s.ok()) return s;
  RailLinks::User& user = *this;
  links_ = std::make_unique<RailLinks>(context_, rail_, user);
  for (uint32_t q = rail_ * each; q < (rail_ + 1) * each; ++q) links_->Add(q + 1, bulk_.queue_pair(q));
  timer_ = context_.loop.RunAfter(context_.options.connect_deadline,
                                  [this] { Fail(absl::UnavailableError("not connected by the deadline")); });
  return absl::OkStatus();
}

absl::Status SecondaryRail::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  if (state_ == State::kAbsent && !device_is_gone_) {
    state_ = State::kJoining;
    if (absl::Status s = Prepare(); !s.ok()) {
      Fail(s);
      return s;
    }
  }
  if (state_ != State::kJoining || !links_->Misses(theirs.queue)) {
    return absl::UnavailableError("the rail is not free yet");
  }
  const absl::Status s = links_->Accept(request, theirs);
  if (!s.ok()) Fail(s);
  return s;
}

void SecondaryRail::OnLinkLost(const verbs::ConnectionEvent& event) {
  Fail(absl::UnavailableError(absl::StrCat(verbs::ToString(event.kind), ": ", event.status.message())));
}

void SecondaryRail::OnLinksUp(const RailLinks::Path& path) {
  if (state_ != State::kJoining) return;
  state_ = State::kUp;
  timer_.Cancel();
  ++context_.counters.rails_joined;
  bulk_.LimitPackets(path.mtu);
  bulk_.Enable(rail_);
  host_.Wake();
}

void SecondaryRail::Fail(const absl::Status& status) {
  if (state_ == State::kJoining) {
    LOG(DEBUG) << "rail " << rail_ << " does not come up: " << status;
    return Drop();
  }
  if (state_ != State::kUp) return;
  ++context_.counters.rails_lost;
  LOG(WARNING) << "rail " << rail_ << " (" << context_.rails[rail_].device.name()
               << ") drops out of a connection: " << status;
  if (side_ == Side::kOwner) return Drop();
  // Notes before the end count: the owner may know of them.
  state_ = State::kFailing;
  bulk_.Fail(rail_);
  timer_ = context_.loop.RunAfter(kFlushGrace, [this] { Drop(); });
  OnTaken();
}

void SecondaryRail::OnTaken() {
  if (state_ != State::kFailing || !bulk_.Flushed(rail_)) return;
  timer_ = context_.loop.Post([this] { Drop(); });
}

void SecondaryRail::Drop() {
  timer_.Cancel();
  DropLinks();
  state_ = peer_is_down_ ? State::kAbsent : State::kWaiting;
  bulk_.Drop(rail_);
  host_.SayDown(rail_);
  host_.Wake();
  if (state_ == State::kAbsent) Rest();
}

absl::Status SecondaryRail::OnPeerDown(absl::Span<const WantedWrite> wanted) {
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
  host_.Wake();
  return side_ == Side::kOwner ? bulk_.Resolve(rail_, wanted) : absl::OkStatus();
}

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
      if (links_ == nullptr || !links_->Has(info.queue_pair_number)) return;
      return Fail(absl::UnavailableError("the device gave up a queue pair"));
    case verbs::DeviceEvent::kPortUp:
    case verbs::DeviceEvent::kAddressChanged:
    case verbs::DeviceEvent::kCompletionQueueOverrun:
    case verbs::DeviceEvent::kReceiveLimit:
      return;
  }
}

}  // namespace tokamak::transport
