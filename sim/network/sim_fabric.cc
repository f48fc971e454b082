#include "sim/network/sim_fabric.h"

#include <algorithm>

#include "lib/base/check.h"
#include "lib/verbs/soft/packets/datagram.h"
#include "lib/verbs/soft/packets/wire.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::DestinationOf;
using verbs::soft::Packet;
using verbs::soft::PayloadSlice;
using verbs::soft::Port;
using verbs::soft::PortCallbacks;
using verbs::soft::WithRocePort;

// Preamble, gap, Ethernet and its check sum, UDP.
constexpr uint32_t kFrameBytes = 8 + 12 + 14 + 4 + 8;

uint32_t WireBytes(const Packet& packet) {
  return kFrameBytes + (packet.peer.is_ipv4() ? 20 : 40) + verbs::soft::DatagramLength(packet);
}

// Depends on the two ends of a link, not on the order of first use.
uint64_t StreamOf(const Address& from, const Address& to) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto fold = [&hash](uint8_t byte) { hash = (hash ^ byte) * 0x100000001b3; };
  for (const Address* address : {&from, &to}) {
    for (uint8_t byte : address->ip) fold(byte);
    fold(static_cast<uint8_t>(address->port >> 8));
    fold(static_cast<uint8_t>(address->port));
  }
  return hash;
}

base::Duration UpTo(base::Random& random, base::Duration most) {
  if (most <= base::Duration()) return base::Duration();
  return base::Duration::Picoseconds(static_cast<int64_t>(random.Below(static_cast<uint64_t>(most.picoseconds()) + 1)));
}

// Slices without memory stay as they are.
void CopyPayload(const Packet& packet, std::vector<uint8_t>* bytes, Packet* copy) {
  bytes->clear();
  bytes->reserve(packet.payload_length());
  copy->slices = 0;
  for (const PayloadSlice& slice : absl::MakeConstSpan(packet.payload, packet.slices)) {
    if (slice.length == 0) continue;
    if (slice.data == nullptr) {
      copy->payload[copy->slices++] = slice;
      continue;
    }
    copy->payload[copy->slices++] = {bytes->data() + bytes->size(), slice.length};
    bytes->insert(bytes->end(), slice.data, slice.data + slice.length);
  }
}

}  // namespace

class SimFabric::SimPort final : public Port {
 public:
  SimPort(SimFabric& fabric, base::EventLoop& loop, const Address& address, uint32_t number, PortCallbacks callbacks)
      : fabric_(fabric), loop_(loop), address_(address), number_(number), callbacks_(std::move(callbacks)) {}

  ~SimPort() override {
    for (size_t flight : waiting_) {
      fabric_.Drop(&fabric_.counters_.dropped_nobody, fabric_.flights_[flight].sender, fabric_.flights_[flight].packet);
      fabric_.FreeFlight(flight);
    }
    for (auto& [group, members] : fabric_.groups_) members.erase(address_);
    fabric_.ports_.erase(address_);
    if (dropped_ != nullptr) *dropped_ = true;
  }

  size_t Send(absl::Span<const Packet> packets) override {
    for (const Packet& packet : packets) fabric_.Send(*this, packet);
    return packets.size();
  }
  const Address& address() const override { return address_; }
  uint32_t max_mtu() const override { return fabric_.options_.max_mtu; }
  uint64_t receive_window() const override { return fabric_.options_.receive_buffer / 2; }
  absl::Status Join(const Address& group) override {
    fabric_.groups_[group.ip].insert(address_);
    return absl::OkStatus();
  }
  void Leave(const Address& group) override { fabric_.groups_[group.ip].erase(address_); }

  base::EventLoop& loop() const { return loop_; }
  uint32_t number() const { return number_; }

  // Returns false if there is no room.
  [[nodiscard]] bool Put(size_t flight) {
    const uint64_t bytes = fabric_.flights_[flight].bytes;
    if (waiting_bytes_ + bytes > fabric_.options_.receive_buffer) return false;
    waiting_bytes_ += bytes;
    waiting_.push_back(flight);
    if (!hand_over_.armed()) hand_over_ = loop_.Post([this] { HandOver(); });
    return true;
  }

 private:
  void HandOver() {
    std::vector<size_t> flights;
    flights.swap(waiting_);
    waiting_bytes_ = 0;
    std::vector<Packet> packets;
    packets.reserve(flights.size());
    for (size_t flight : flights) packets.push_back(fabric_.flights_[flight].packet);
    fabric_.counters_.delivered += flights.size();

    SimFabric& fabric = fabric_;
    bool dropped = false;
    dropped_ = &dropped;
    const Receiver receiver = callbacks_.on_packets;  // lives on if it drops this port
    receiver(packets);
    for (size_t flight : flights) fabric.FreeFlight(flight);
    if (!dropped) dropped_ = nullptr;
  }

  SimFabric& fabric_;
  base::EventLoop& loop_;
  const Address address_;
  const uint32_t number_;
  const PortCallbacks callbacks_;
  std::vector<size_t> waiting_;
  uint64_t waiting_bytes_ = 0;
  bool* dropped_ = nullptr;
  base::Timer hand_over_;
};

SimFabric::SimFabric(base::EventLoop& loop, uint64_t seed, const SimFabricOptions& options, base::Trace& trace)
    : loop_(loop), random_(seed), options_(options), trace_(trace) {}

SimFabric::~SimFabric() { CHECK(ports_.empty()) << "ports must be dropped before their fabric"; }

absl::StatusOr<std::unique_ptr<Port>> SimFabric::Open(base::EventLoop& loop, const Address& address,
                                                      PortCallbacks callbacks) {
  const Address own = WithRocePort(address);
  if (ports_.count(own) != 0) return absl::AlreadyExistsError(own.ToString() + " is taken");
  auto port = std::make_unique<SimPort>(*this, loop, own, ports_opened_++, std::move(callbacks));
  ports_[own] = port.get();
  return port;
}

void SimFabric::SetLink(const Address& from, const Address& to, const LinkOptions& options) {
  LinkBetween(WithRocePort(from), WithRocePort(to)).options = options;
}

void SimFabric::SetAllLinks(const LinkOptions& options) {
  options_.link = options;
  for (auto& [ends, link] : links_) link.options = options;
}

void SimFabric::Cut(const Address& from, const Address& to) {
  LinkBetween(WithRocePort(from), WithRocePort(to)).cut = true;
}

void SimFabric::Mend(const Address& from, const Address& to) {
  LinkBetween(WithRocePort(from), WithRocePort(to)).cut = false;
}

void SimFabric::Partition(absl::Span<const Address> side) {
  side_.clear();
  for (const Address& address : side) side_.insert(WithRocePort(address));
}

void SimFabric::Heal() {
  side_.clear();
  for (auto& [ends, link] : links_) link.cut = false;
}

SimFabric::Link& SimFabric::LinkBetween(const Address& from, const Address& to) {
  const auto ends = std::make_pair(from, to);
  const auto found = links_.find(ends);
  if (found != links_.end()) return found->second;
  Link link{from, to, options_.link, random_.Fork(StreamOf(from, to)), loop_.Now(), loop_.Now()};
  return links_.emplace(ends, link).first->second;
}

bool SimFabric::Connected(const Link& link) const {
  return !link.cut && side_.count(link.from) == side_.count(link.to);
}

void SimFabric::Send(const SimPort& sender, const Packet& packet) {
  if (!packet.peer.is_multicast()) {
    return SendOn(LinkBetween(sender.address(), DestinationOf(packet.peer, sender.address())), sender, packet);
  }
  for (const Address& member : groups_[packet.peer.ip]) SendOn(LinkBetween(sender.address(), member), sender, packet);
}

void SimFabric::SendOn(Link& link, const SimPort& sender, const Packet& packet) {
  ++counters_.sent;
  const LinkOptions& options = link.options;
  const base::Time now = sender.loop().Now();
  const base::Duration queue =
      base::Duration::Picoseconds(options.picoseconds_per_byte * static_cast<int64_t>(options.queue_bytes));
  if (options.queue_bytes != 0 && link.free_at - now > queue) {
    return Drop(&counters_.dropped_queue, sender.number(), packet);
  }
  link.free_at =
      std::max(link.free_at, now) + base::Duration::Picoseconds(options.picoseconds_per_byte * WireBytes(packet));
  if (!Connected(link)) return Drop(&counters_.dropped_cut, sender.number(), packet);
  if (link.random.Chance(options.loss)) return Drop(&counters_.lost, sender.number(), packet);
  Launch(link, sender, packet, link.free_at);
  if (link.random.Chance(options.duplicate)) {
    ++counters_.duplicated;
    Launch(link, sender, packet, link.free_at);
  }
}

void SimFabric::Launch(Link& link, const SimPort& sender, const Packet& packet, base::Time left) {
  const LinkOptions& options = link.options;
  const size_t index = TakeFlight();
  Flight& flight = flights_[index];
  flight.packet = packet;
  CopyPayload(packet, &flight.payload, &flight.packet);
  if (packet.peer.is_multicast()) flight.packet.group = packet.peer.ip;
  flight.packet.peer = sender.address();
  flight.bytes = WireBytes(packet);
  flight.sender = sender.number();
  flight.link = &link;
  if (link.random.Chance(options.corrupt)) {
    flight.packet.corrupt = true;
    ++counters_.corrupted;
  }
  base::Time arrival = std::max(left + options.latency + UpTo(link.random, options.jitter), link.last_arrival);
  if (link.random.Chance(options.reorder)) {
    arrival = arrival + UpTo(link.random, options.reorder_delay);
    ++counters_.reordered;
  } else {
    link.last_arrival = arrival;
  }
  flight.timer = loop_.RunAt(arrival, [this, index] { Arrive(index); });
}

// A port that left the group meanwhile does not.
bool SimFabric::Wants(const Flight& flight) {
  return !flight.packet.came_to_group() || groups_[flight.packet.group].count(flight.link->to) > 0;
}

void SimFabric::Arrive(size_t index) {
  const Flight& flight = flights_[index];
  const auto port = ports_.find(flight.link->to);
  uint64_t* why = nullptr;
  if (!Connected(*flight.link)) {
    why = &counters_.dropped_cut;
  } else if (port == ports_.end() || !Wants(flight)) {
    why = &counters_.dropped_nobody;
  } else if (!port->second->Put(index)) {
    why = &counters_.dropped_buffer;
  }
  if (why == nullptr) return;
  Drop(why, flight.sender, flight.packet);
  FreeFlight(index);
}

void SimFabric::Drop(uint64_t* counter, uint32_t sender, const Packet& packet) {
  ++*counter;
  base::TraceEvent event;
  event.time = loop_.Now();
  event.kind = base::TraceKind::kPacketDropped;
  event.node = sender;
  event.number = packet.psn;
  event.size = verbs::soft::DatagramLength(packet);
  trace_.Record(event);
}

size_t SimFabric::TakeFlight() {
  if (free_flights_.empty()) {
    flights_.emplace_back();
    return flights_.size() - 1;
  }
  const size_t flight = free_flights_.back();
  free_flights_.pop_back();
  return flight;
}

void SimFabric::FreeFlight(size_t flight) { free_flights_.push_back(flight); }

}  // namespace tokamak::sim
