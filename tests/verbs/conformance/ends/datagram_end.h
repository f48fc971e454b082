// A DatagramEnd is all that one side needs to exchange datagrams: protection domain, completion
// queues, a queue pair that is ready to send, and receives in numbered slots of memory.
//
// Datagrams may get lost, and may come twice, in the worlds that the suite runs in. So what shall
// arrive is sent until it has (Passes), and each message has contents of its own, by which it is
// known.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "lib/verbs/datagrams.h"
#include "tests/verbs/conformance/backend.h"
#include "tests/verbs/conformance/ends/end.h"
#include "tests/verbs/conformance/ends/memory.h"
#include "tests/verbs/conformance/ends/work.h"

namespace tokamak::verbs::conformance {

// A DatagramRequest that owns its list of pieces. Signaled unless said otherwise.
struct Datagram {
  DatagramRequest request;
  std::vector<Sge> pieces;

  Datagram& With(SendFlags flag) {
    request.flags = request.flags | flag;
    return *this;
  }
  Datagram& Unsignaled() {
    request.flags = static_cast<SendFlags>(request.flags & ~static_cast<uint32_t>(kSignaled));
    return *this;
  }
  Datagram& Immediate(uint32_t immediate) {
    request.immediate = immediate;
    return *this;
  }
  Datagram& Qkey(uint32_t qkey) {
    request.qkey = qkey;
    return *this;
  }
};

// A message as it was received.
struct Arrival {
  Completion completion;
  std::vector<uint8_t> header;   // kGlobalRouteHeader bytes
  std::vector<uint8_t> payload;  // what follows them
};

class DatagramEnd final {
 public:
  static constexpr size_t kSlots = 32;
  static constexpr size_t kSlotSize = kGlobalRouteHeader + kMaxMtu;

  // The options' queues are set here. With `home`, the queue pair belongs to that end's domain and
  // completes into its queues, and `home` must outlive it.
  DatagramEnd(Backend& world, size_t device_index, DatagramQueuePairOptions options = {}, DatagramEnd* home = nullptr);
  DatagramEnd(const DatagramEnd&) = delete;
  DatagramEnd& operator=(const DatagramEnd&) = delete;

  absl::Status Walk(uint32_t send_psn = 0xfffffe);

  // Receives 0 to `count` - 1, each a whole slot.
  void PostSlots(size_t count = kSlots);
  void MustPostReceives(const std::vector<Receive>& batch);

  // To one queue pair, or to all of a group.
  Datagram To(const DatagramEnd& receiver, uint64_t id, std::vector<Sge> pieces);
  Datagram ToGroup(const Address& group, uint64_t id, std::vector<Sge> pieces);

  PostResult Post(std::vector<Datagram> batch);
  void MustPost(std::vector<Datagram> batch);
  Completions AwaitSends(size_t count) { return Await(backend, *home_.sends, count); }

  // Returns the datagrams that came meanwhile, of all queue pairs that receive here.
  std::vector<Arrival> Arrivals();

  // Sends `message`, again and again where it gets lost, until it arrives at `receiver`, which has
  // slots posted; nothing when it does not.
  std::optional<Arrival> Passes(DatagramEnd& receiver, const Datagram& message);

  // A message of this end with contents of its own.
  bool Reaches(DatagramEnd& receiver, uint32_t qkey = kServiceQkey);

  QueuePairState state() const { return queue_pair->state(); }
  uint32_t number() const { return queue_pair->number(); }
  AddressHandle& HandleOf(const Address& peer);

  Backend& backend;
  const size_t index;
  Device& device;

  std::unique_ptr<ProtectionDomain> domain;
  std::unique_ptr<CompletionQueue> sends;
  std::unique_ptr<CompletionQueue> receives;
  std::unique_ptr<Memory> outbox;  // kSlotSize bytes, to send from
  std::unique_ptr<Memory> slots;
  std::unique_ptr<DatagramQueuePair> queue_pair;
  int receive_events = 0;

 private:
  static constexpr int kMostTries = 200;

  std::vector<uint8_t> BytesOf(const Datagram& message) const;

  DatagramEnd& home_;
  std::map<Address, std::unique_ptr<AddressHandle>> handles_;
  uint64_t messages_ = 0;  // of Reaches
};

}  // namespace tokamak::verbs::conformance
