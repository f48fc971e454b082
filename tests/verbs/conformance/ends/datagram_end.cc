#include "tests/verbs/conformance/ends/datagram_end.h"

#include <algorithm>
#include <utility>

namespace tokamak::verbs::conformance {

DatagramEnd::DatagramEnd(Backend& world, size_t device_index, DatagramQueuePairOptions options, DatagramEnd* home)
    : backend(world), index(device_index), device(world.device(device_index)), home_(home == nullptr ? *this : *home) {
  if (home == nullptr) {
    domain = *device.CreateProtectionDomain();
    sends = *device.CreateCompletionQueue(world.loop(index), 256, [] {});
    receives = *device.CreateCompletionQueue(world.loop(index), 256, [this] { ++receive_events; });
  }
  outbox = std::make_unique<Memory>(*home_.domain, kSlotSize, 100 + index);
  slots = std::make_unique<Memory>(*home_.domain, kSlots * kSlotSize, 200 + index);
  options.send_queue = home_.sends.get();
  options.receive_queue = home_.receives.get();
  auto made = device.datagrams()->CreateQueuePair(*home_.domain, options);
  EXPECT_TRUE(made.ok()) << made.status();
  if (made.ok()) queue_pair = *std::move(made);
  EXPECT_TRUE(Walk().ok());
}

absl::Status DatagramEnd::Walk(uint32_t send_psn) {
  if (absl::Status s = queue_pair->Modify(QueuePairState::kReadyToReceive); !s.ok()) return s;
  DatagramAttributes attributes;
  attributes.send_psn = send_psn;
  return queue_pair->Modify(QueuePairState::kReadyToSend, attributes);
}

void DatagramEnd::PostSlots(size_t count) {
  for (size_t i = 0; i < count; ++i) MustPostReceives({{i, {slots->piece(i * kSlotSize, kSlotSize)}}});
}

void DatagramEnd::MustPostReceives(const std::vector<Receive>& batch) {
  std::vector<ReceiveRequest> requests;
  for (const Receive& receive : batch) requests.push_back({receive.id, receive.pieces});
  const PostResult result = queue_pair->PostReceive(requests);
  EXPECT_TRUE(result.ok()) << result.status;
}

AddressHandle& DatagramEnd::HandleOf(const Address& peer) {
  std::unique_ptr<AddressHandle>& handle = handles_[peer];
  if (handle == nullptr) handle = *device.datagrams()->CreateAddressHandle(*home_.domain, {peer});
  return *handle;
}

Datagram DatagramEnd::To(const DatagramEnd& receiver, uint64_t id, std::vector<Sge> pieces) {
  Datagram message;
  message.request.id = id;
  message.request.flags = kSignaled;
  message.request.to = &HandleOf(receiver.device.address());
  message.request.queue_pair_number = receiver.number();
  message.request.qkey = kServiceQkey;
  message.pieces = std::move(pieces);
  return message;
}

Datagram DatagramEnd::ToGroup(const Address& group, uint64_t id, std::vector<Sge> pieces) {
  Datagram message = To(*this, id, std::move(pieces));
  message.request.to = &HandleOf(group);
  message.request.queue_pair_number = kMulticastQueuePair;
  return message;
}

PostResult DatagramEnd::Post(std::vector<Datagram> batch) {
  std::vector<DatagramRequest> requests;
  for (Datagram& message : batch) {
    message.request.sges = message.pieces;
    requests.push_back(message.request);
  }
  return queue_pair->PostSend(requests);
}

void DatagramEnd::MustPost(std::vector<Datagram> batch) {
  const PostResult result = Post(std::move(batch));
  EXPECT_TRUE(result.ok()) << result.status;
}

std::vector<Arrival> DatagramEnd::Arrivals() {
  std::vector<Arrival> arrivals;
  for (const Completion& completion : PollNow(*home_.receives)) {
    Arrival arrival;
    arrival.completion = completion;
    const bool whole = completion.status == CompletionStatus::kSuccess && completion.byte_count >= kGlobalRouteHeader;
    if (whole && completion.id < kSlots && completion.byte_count <= kSlotSize) {
      const auto bytes = slots->bytes(completion.id * kSlotSize, completion.byte_count);
      arrival.header.assign(bytes.begin(), bytes.begin() + kGlobalRouteHeader);
      arrival.payload.assign(bytes.begin() + kGlobalRouteHeader, bytes.end());
    }
    arrivals.push_back(std::move(arrival));
  }
  return arrivals;
}

std::vector<uint8_t> DatagramEnd::BytesOf(const Datagram& message) const {
  std::vector<uint8_t> bytes;
  for (const Sge& piece : message.pieces) bytes.insert(bytes.end(), piece.address, piece.address + piece.length);
  return bytes;
}

std::optional<Arrival> DatagramEnd::Passes(DatagramEnd& receiver, const Datagram& message) {
  const std::vector<uint8_t> expected = BytesOf(message);
  std::optional<Arrival> found;
  const auto look = [&] {
    for (Arrival& arrival : receiver.Arrivals()) {
      if (arrival.payload == expected && !found) found = std::move(arrival);
    }
    return found.has_value();
  };
  for (int i = 0; i < kMostTries && !found; ++i) {
    MustPost({message});
    if ((message.request.flags & kSignaled) != 0) AwaitSends(1);
    backend.Drive(look, backend.quiet());
  }
  return found;
}

bool DatagramEnd::Reaches(DatagramEnd& receiver, uint32_t qkey) {
  outbox->Fill(1000 * number() + ++messages_);
  const Sge piece = outbox->piece(0, 64);
  return Passes(receiver, To(receiver, 9000 + messages_, {piece}).Qkey(qkey)).has_value();
}

}  // namespace tokamak::verbs::conformance
