#include "lib/transport/rails/rail_links.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lib/base/check.h"

namespace tokamak::transport {
namespace {

bool Answers(const Hello& theirs, const Hello& mine) {
  return theirs.queue == mine.queue && theirs.token == mine.token && theirs.bulk_queue_pairs == mine.bulk_queue_pairs &&
         theirs.primary == mine.primary && theirs.rails <= mine.rails && theirs.attempt == mine.attempt;
}

}  // namespace

verbs::ConnectOptions RailLinks::OptionsFor(absl::Span<const uint8_t> private_data) const {
  verbs::ConnectOptions options;
  options.private_data = private_data;
  options.reliability = context_.ReliabilityOf(rail_);
  options.deadline = context_.options.connect_deadline;
  return options;
}

absl::Status RailLinks::Connect(const verbs::Address& peer) {
  connecting_ = true;
  for (size_t i = 0; i < links_.size(); ++i) {
    std::array<uint8_t, kHelloSize> private_data;
    links_[i].mine = user_.MyHello(links_[i].queue, nullptr);
    EncodeHello(links_[i].mine, absl::MakeSpan(private_data));
    auto connection = context_.rails[rail_].device.connection_manager().Connect(
        *links_[i].queue_pair, peer, OptionsFor(private_data),
        [this, i](const verbs::ConnectionEvent& event) { OnEvent(i, event); });
    if (!connection.ok()) return connection.status();
    links_[i].connection = *std::move(connection);
  }
  return absl::OkStatus();
}

absl::Status RailLinks::Accept(verbs::ConnectionRequest& request, const Hello& theirs) {
  CHECK(Misses(theirs.queue));
  size_t i = 0;
  while (links_[i].queue != theirs.queue) ++i;
  std::array<uint8_t, kHelloSize> private_data;
  EncodeHello(user_.MyHello(theirs.queue, &theirs), absl::MakeSpan(private_data));
  auto connection = request.Accept(*links_[i].queue_pair, OptionsFor(private_data),
                                   [this, i](const verbs::ConnectionEvent& event) { OnEvent(i, event); });
  if (!connection.ok()) return connection.status();
  links_[i].connection = *std::move(connection);
  user_.OnPeerHello(theirs);
  return absl::OkStatus();
}

bool RailLinks::Misses(uint32_t queue) const {
  return std::any_of(links_.begin(), links_.end(),
                     [queue](const Link& link) { return link.queue == queue && link.connection == nullptr; });
}

bool RailLinks::Has(uint32_t queue_pair_number) const {
  return std::any_of(links_.begin(), links_.end(), [queue_pair_number](const Link& link) {
    return link.queue_pair->made() && link.queue_pair->number() == queue_pair_number;
  });
}

// Calls back last: the callback may drop us.
void RailLinks::OnEvent(size_t link, const verbs::ConnectionEvent& event) {
  if (event.kind != verbs::ConnectionEvent::Kind::kEstablished) {
    if (!connecting_ && absl::IsCancelled(event.status)) ++context_.counters.requesters_gone;
    return user_.OnLinkLost(event);
  }
  path_.mtu = std::min(path_.mtu, event.path_mtu);
  path_.peer_queue_pair = event.peer_queue_pair;
  OnEstablished(links_[link], event.private_data);
}

void RailLinks::OnEstablished(Link& link, absl::Span<const uint8_t> private_data) {
  if (connecting_) {
    const auto theirs = DecodeHello(private_data);
    if (!theirs.ok()) return user_.OnBadHello(theirs.status());
    if (!Answers(*theirs, link.mine)) {
      return user_.OnBadHello(absl::InvalidArgumentError("the peer's hello answers another connection"));
    }
    if (absl::Status s = user_.CheckAnswer(link.mine, *theirs); !s.ok()) return user_.OnBadHello(s);
    user_.OnPeerHello(*theirs);
  }
  link.established = true;
  if (std::all_of(links_.begin(), links_.end(), [](const Link& one) { return one.established; })) {
    user_.OnLinksUp(path_);
  }
}

}  // namespace tokamak::transport
