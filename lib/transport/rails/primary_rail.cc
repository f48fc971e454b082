#include "lib/transport/rails/primary_rail.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"

namespace tokamak::transport {

using Side = BulkChannel::Side;

absl::Status PrimaryRail::Need() {
  needed_at_ = context_.loop.Now();
  if (needed_at_ < rests_until_) return absl::UnavailableError("the bulk queue pairs did not come up a moment ago");
  if (state_ == State::kAbsent) return bulk_.side() == Side::kPuller ? Join() : Prepare();
  needed_ = state_ == State::kLeaving;
  return absl::OkStatus();
}

absl::Status PrimaryRail::Join() {
  absl::Status status = Prepare();
  connecting_ = false;
  if (status.ok() && host_.may_join()) return Connect();
  if (!status.ok()) rests_until_ = context_.loop.Now() + kRejoinInterval;
  return status;
}

absl::Status PrimaryRail::Connect() {
  connecting_ = true;
  const absl::Status status = links_->Connect(peer_);
  if (status.ok()) return status;
  rests_until_ = context_.loop.Now() + kRejoinInterval;
  Leave();  // the owner may know of some
  return status;
}

void PrimaryRail::OnMayJoin() {
  if (state_ != State::kJoining || connecting_ || bulk_.side() != Side::kPuller) return;
  if (absl::Status s = Connect(); !s.ok()) host_.OnBulkFailed(s);
}

// Puller: gives up. Once the connection is broken, its end stops the transfers that wait.
void PrimaryRail::GiveUp(const absl::Status& status) {
  if (host_.broken()) return;
  LOG(WARNING) << peer_.ToString() << ": the bulk queue pairs do not come up, and large objects wait: " << status;
  rests_until_ = context_.loop.Now() + kRejoinInterval;
  host_.OnBulkFailed(status);
  if (!host_.broken()) Leave();
}

absl::Status PrimaryRail::Prepare() {
  if (absl::Status s = bulk_.Make(rail(), host_.completions_user()); !s.ok()) {
    Drop();
    return s;
  }
  state_ = State::kJoining;
  RailLinks::User& user = *this;
  links_ = std::make_unique<RailLinks>(context_, rail(), user);
  const uint32_t each = bulk_.shape().each;
  for (uint32_t q = rail() * each; q < (rail() + 1) * each; ++q) links_->Add(q + 1, bulk_.queue_pair(q));
  // The owner waits longer: the puller's RAIL_DOWN comes first.
  const bool pulls = bulk_.side() == Side::kPuller;
  timer_ = context_.loop.RunAfter(context_.options.connect_deadline * (pulls ? 1 : 2), [this, pulls] {
    const absl::Status late = absl::UnavailableError("the bulk queue pairs are not connected by the deadline");
    if (pulls) {
      GiveUp(late);
    } else {
      host_.Break(late);
    }
  });
  return absl::OkStatus();
}

absl::Status PrimaryRail::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  if (state_ == State::kAbsent) {
    if (absl::Status s = Prepare(); !s.ok()) return s;
  }
  if (state_ != State::kJoining || !links_->Misses(theirs.queue)) {
    return absl::UnavailableError("the bulk queue pair is not free");
  }
  return links_->Accept(request, theirs);
}

void PrimaryRail::OnLinksUp(const RailLinks::Path& path) {
  if (state_ != State::kJoining) return;
  state_ = State::kUp;
  timer_.Cancel();
  ++context_.counters.bulk_connected;
  bulk_.LimitPackets(path.mtu);
  bulk_.Enable(rail());
  if (bulk_.side() == Side::kPuller) timer_ = context_.loop.RunAfter(kBulkRest, [this] { OnRest(); });
  host_.Wake();
  host_.OnBulkUp();
}

void PrimaryRail::OnLinkLost(const verbs::ConnectionEvent& event) {
  if (state_ == State::kJoining) {
    if (bulk_.side() == Side::kOwner) return;  // the puller reports it, or the deadline passes
    return GiveUp(absl::UnavailableError(absl::StrCat(verbs::ToString(event.kind), ": ", event.status.message())));
  }
  if (event.kind == verbs::ConnectionEvent::Kind::kDisconnected && may_go()) return;
  host_.OnLinkLost(event);
}

void PrimaryRail::OnRest() {
  const base::Time now = context_.loop.Now();
  if (host_.bulk_wanted()) needed_at_ = now;
  if (now < needed_at_ + kBulkRest) {
    timer_ = context_.loop.RunAt(needed_at_ + kBulkRest, [this] { OnRest(); });
    return;
  }
  ++context_.counters.bulk_rested;
  Leave();
}

// Puller: gives the queue pairs back.
void PrimaryRail::Leave() {
  Drop();
  state_ = State::kLeaving;
  host_.SayDown(rail());
  timer_ = context_.loop.RunAfter(context_.options.connect_deadline, [this] {
    host_.Break(absl::UnavailableError("the owner does not give its bulk queue pairs back by the deadline"));
  });
}

void PrimaryRail::Drop() {
  timer_.Cancel();
  DropLinks();
  bulk_.Drop(rail());
  state_ = State::kAbsent;
}

absl::Status PrimaryRail::OnPeerDown(absl::Span<const WantedWrite> wanted) {
  if (bulk_.side() == Side::kPuller) {
    if (state_ != State::kLeaving) return absl::InvalidArgumentError("RAIL_DOWN of the primary rail out of turn");
    timer_.Cancel();
    state_ = State::kAbsent;
    if (!std::exchange(needed_, false)) return absl::OkStatus();
    if (absl::Status s = Join(); !s.ok()) host_.OnBulkFailed(s);
    return absl::OkStatus();
  }
  if (!wanted.empty()) return absl::InvalidArgumentError("a WRITE is wanted over a primary rail that goes");
  if (state_ != State::kAbsent) Drop();
  host_.SayDown(rail());
  if (absl::Status s = bulk_.Resolve(rail(), {}); !s.ok()) return s;  // all that it waited for has arrived
  if (bulk_.has_chunks_to_post()) return absl::InvalidArgumentError("the primary rail goes before its WRITEs");
  return absl::OkStatus();
}

}  // namespace tokamak::transport
