#include "sim/fabric/host_interface.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/verbs/soft/packets/packet.h"
#include "lib/verbs/soft/packets/wire.h"
#include "sim/fabric/host_port.h"
#include "sim/fabric/switch/route_table.h"

namespace tokamak::sim {
namespace {

using verbs::Address;
using verbs::soft::Packet;
using verbs::soft::Port;
using verbs::soft::PortCallbacks;

uint64_t HashOf(const Address& address) {
  uint64_t hash = 0;
  for (uint8_t byte : address.ip) hash = MixBits(hash ^ byte);
  return hash;
}

}  // namespace

HostInterface::HostInterface(Environment& environment, const InterfaceOptions& options, const AddressBook& addresses,
                             uint32_t number, Link& out, const Place& place)
    : environment_(environment),
      options_(options),
      addresses_(addresses),
      number_(number),
      address_hash_(HashOf(addresses.address(number))),
      egress_(environment, *this, out, place, options.scheduling) {}

HostInterface::~HostInterface() {
  while (!waiting_.empty()) environment_.frames.Give(waiting_.Pop());
}

absl::StatusOr<std::unique_ptr<Port>> HostInterface::Open(base::EventLoop& loop, const Address& address,
                                                          PortCallbacks callbacks) {
  if (loop_ != nullptr || on_outside_frame_ != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(address.ToString(), ": something is plugged in there"));
  }
  loop_ = &loop;
  address_ = address;
  if (address_.port == 0) address_.port = verbs::soft::kRoceUdpPort;
  callbacks_ = std::move(callbacks);
  wants_ready_ = false;
  return std::make_unique<HostPort>(*this);
}

absl::StatusOr<std::unique_ptr<OutsidePort>> HostInterface::OpenOutside(uint64_t queue,
                                                                        OutsidePort::Receiver on_frame) {
  CHECK(on_frame != nullptr);
  if (loop_ != nullptr || on_outside_frame_ != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat(addresses_.address(number_).ToString(), ": something is plugged in there"));
  }
  on_outside_frame_ = std::move(on_frame);
  outside_queue_ = queue;
  return std::make_unique<OutsidePort>(*this);
}

OutsidePort::Sent HostInterface::SendOutside(const OutsideFrame& sent) {
  const uint32_t destination = addresses_.NumberOf(sent.destination);
  if (destination == AddressBook::kUnknown) return OutsidePort::Sent::kNobody;
  if (destination == number_) return OutsidePort::Sent::kToItself;
  const auto length = static_cast<uint32_t>(sent.bytes.size());
  const uint32_t wire_bytes = std::max(length, OutsidePort::kLeastBytes) + OutsidePort::kFramingBytes;
  if (wire_bytes > MostWireBytes(options_.max_mtu)) return OutsidePort::Sent::kTooLong;
  const uint8_t priority = options_.priority_of_dscp[sent.dscp % kDscps];
  if (egress_.queue(priority).bytes() + wire_bytes > outside_queue_) return OutsidePort::Sent::kQueueFull;
  Frame* frame = environment_.frames.Take();
  frame->LoadBytes(sent.bytes);
  frame->wire_bytes = wire_bytes;
  frame->source = number_;
  frame->destination = destination;
  frame->destination_port = 0;
  frame->flow = static_cast<uint32_t>(MixBits(address_hash_ + 3 * HashOf(sent.destination) + sent.flow));
  frame->priority = priority;
  frame->ecn = sent.ecn;
  egress_.Enqueue(frame);
  return OutsidePort::Sent::kYes;
}

void HostInterface::Unplug() {
  loop_ = nullptr;
  ready_.Cancel();
  hand_over_.Cancel();
  while (!waiting_.empty()) Drop(waiting_.Pop(), DropReason::kNobody);
  if (in_callback_) retired_ = std::move(callbacks_);
  callbacks_ = {};
}

size_t HostInterface::Room() {
  if (egress_.idle() && !egress_.paused(data_priority_)) return 1;
  Want(data_priority_);
  return 0;
}

size_t HostInterface::Send(absl::Span<const Packet> packets) {
  for (size_t i = 0; i < packets.size(); ++i) {
    const uint8_t priority = PriorityOf(packets[i]);
    if (!Takes(packets[i], priority)) {
      Want(priority);
      return i;
    }
    SendFrame(packets[i], priority);
  }
  return packets.size();
}

uint8_t HostInterface::PriorityOf(const Packet& packet) const {
  return options_.priority_of_dscp[packet.dscp % kDscps];
}

bool HostInterface::Takes(const Packet& packet, uint8_t priority) const {
  if (packet.opcode == verbs::soft::PacketOpcode::kCongestionNotification) {
    return egress_.queue(priority).frames() < kMostNotifications;
  }
  return egress_.idle() && !egress_.paused(priority);
}

void HostInterface::SendFrame(const Packet& packet, uint8_t priority) {
  if (last_number_ == AddressBook::kUnknown || packet.peer.ip != last_peer_.ip) {
    last_peer_ = packet.peer;
    last_number_ = addresses_.NumberOf(packet.peer);
    last_hash_ = HashOf(packet.peer);
  }
  Frame* frame = environment_.frames.Take();
  frame->Load(packet);
  frame->wire_bytes = verbs::soft::EthernetBytes(packet);
  frame->source = number_;
  frame->destination = last_number_;
  frame->destination_port = packet.peer.port != 0 ? packet.peer.port : address_.port;
  // Protocol and destination port are the same for all of RoCE.
  frame->flow = static_cast<uint32_t>(MixBits(address_hash_ + 3 * last_hash_ + packet.source_port));
  frame->priority = priority;
  frame->headers.peer_port = address_.port;
  if (packet.opcode == verbs::soft::PacketOpcode::kCongestionNotification) {
    ++notifications_sent_;
    if (environment_.observer != nullptr) environment_.observer->OnNotification(egress_.place(), *frame);
  } else {
    data_priority_ = priority;
  }
  egress_.Enqueue(frame);
}

// Waits for OnIdle or OnResumed: the wire is busy, or the priority paused.
void HostInterface::Want(uint8_t priority) {
  wants_ready_ = true;
  wanted_priority_ = priority;
  if (!egress_.idle()) egress_.TellWhenIdle();
}

void HostInterface::OnIdle(uint32_t) {
  if (loop_ == nullptr || !wants_ready_ || egress_.paused(wanted_priority_)) return;
  if (loop_ == &environment_.loop) return Ready();
  PostReady();
}

void HostInterface::OnResumed(uint32_t) {
  if (loop_ == nullptr || !wants_ready_ || egress_.paused(wanted_priority_)) return;
  if (!egress_.idle()) return egress_.TellWhenIdle();
  PostReady();
}

void HostInterface::PostReady() {
  if (!ready_.armed()) ready_ = loop_->Post([this] { Ready(); });
}

void HostInterface::Ready() {
  wants_ready_ = false;
  in_callback_ = true;
  callbacks_.on_ready();
  in_callback_ = false;
  retired_ = {};
}

void HostInterface::Receive(Frame* frame, uint32_t) {
  if (environment_.observer != nullptr) environment_.observer->OnReceive(egress_.place(), *frame);
  if (frame->is_pause) {
    const PauseFrame pause = frame->pause;
    environment_.frames.Give(frame);
    return egress_.OnPause(pause);
  }
  PriorityCounters& counters = egress_.own_counters().priorities[frame->priority];
  ++counters.received;
  counters.received_bytes += frame->wire_bytes;
  if (frame->is_bytes) return DeliverOutside(frame);
  if (loop_ == nullptr || frame->destination_port != address_.port) return Drop(frame, DropReason::kNobody);
  if (loop_ == &environment_.loop) return Deliver(frame);
  if (waiting_.bytes() + frame->wire_bytes > options_.receive_buffer) return Drop(frame, DropReason::kReceiveBuffer);
  waiting_.Push(frame);
  if (!hand_over_.armed()) hand_over_ = loop_->Post([this] { HandOver(); });
}

// Unplugging meanwhile drops the rest.
void HostInterface::HandOver() {
  while (!waiting_.empty()) Deliver(waiting_.Pop());
}

void HostInterface::Deliver(Frame* frame) {
  ++delivered_;
  frame->Unload(&packet_);
  packet_.peer.ip = addresses_.address(frame->source).ip;
  in_callback_ = true;
  callbacks_.on_packets(absl::MakeConstSpan(&packet_, 1));
  in_callback_ = false;
  if (loop_ == nullptr) retired_ = {};
  environment_.frames.Give(frame);
}

void HostInterface::DeliverOutside(Frame* frame) {
  if (on_outside_frame_ == nullptr) return Drop(frame, DropReason::kNobody);
  ++delivered_;
  on_outside_frame_({frame->bytes(), frame->ecn == verbs::soft::Ecn::kMarked, frame->corrupt});
  environment_.frames.Give(frame);
}

void HostInterface::Drop(Frame* frame, DropReason reason) {
  PortCounters& counters = egress_.own_counters();
  ++counters.priorities[frame->priority].dropped;
  ++counters.drops[static_cast<size_t>(reason)];
  if (environment_.observer != nullptr) environment_.observer->OnDrop(egress_.place(), *frame, reason);
  environment_.frames.Give(frame);
}

}  // namespace tokamak::sim
