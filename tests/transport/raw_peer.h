// RawPeer speaks to an endpoint by hand: it says what a test wants said, right or wrong.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "lib/transport/messages/hello.h"
#include "lib/transport/messages/message.h"
#include "tests/transport/world.h"

namespace tokamak::transport::testing {

// A TRANSFER of an object of this many bytes.
Header Transfer(uint64_t number, const base::ObjectId& id, uint64_t size, Protocol protocol = Protocol::kRead);
// A message that says no more than this.
Header Plain(MessageKind kind, uint64_t number, Protocol protocol = Protocol::kAuto);

class RawPeer final {
 public:
  RawPeer(World& world, uint8_t last_byte_of_ip);
  ~RawPeer();

  // Its description of itself.
  Hello hello;

  // Connects these queue pairs (0: messages, 1: bulk, 2: bulk of a second rail, over the same
  // device) to an endpoint.
  void Connect(const verbs::Address& to, std::vector<uint8_t> queues = {0, 1});
  // Its queue pair of the second rail goes, and a new one is there to be connected.
  void DropRail();
  // Waits to be connected to.
  void Listen();
  // Its answer to a peer that asks for a bulk queue pair.
  bool refuses_bulk = false;
  int bulk_refused = 0;
  verbs::Address service() const;

  bool up() const;
  bool connected(uint8_t queue) const { return established_[queue]; }
  bool disconnected() const { return disconnected_; }
  bool rejected() const { return rejected_; }
  const std::vector<uint8_t>& rejection() const { return rejection_; }

  void Send(const Header& header, const std::vector<uint8_t>& body = {});
  void SendBytes(const std::vector<uint8_t>& bytes);
  // One request over a bulk queue pair.
  void Bulk(verbs::Opcode opcode, const RemoteRange& remote, uint32_t size, uint32_t immediate = 0, uint8_t queue = 1);
  // Results of its requests.
  std::vector<verbs::CompletionStatus> bulk_statuses;

  // Messages received, oldest first.
  struct Received {
    Header header;
    std::vector<uint8_t> body;
  };
  std::vector<Received> received;
  size_t Count(MessageKind kind) const;
  // The first message of a kind, from the test's patience on.
  const Received* Await(MessageKind kind);

  absl::Span<uint8_t> memory() { return absl::MakeSpan(memory_); }
  RemoteRange range() const;  // of that memory, open to everybody
  std::function<void(const Received&)> on_message;
  std::function<void(const std::vector<uint8_t>&)> on_bytes;  // instead: all that comes, as it is

 private:
  static constexpr uint32_t kSlot = 16384;
  static constexpr uint32_t kReceives = 128;
  static constexpr uint8_t kQueues = 3;
  static constexpr uint8_t kRailQueue = 2;

  void MakeQueuePair(uint8_t queue);
  std::vector<uint8_t> HelloFor(uint8_t queue) const;
  void OnEvent(uint8_t queue, const verbs::ConnectionEvent& event);
  void PostReceive(uint32_t slot);
  void Drain();

  World& world_;
  const std::unique_ptr<base::EventLoop> loop_;
  const std::unique_ptr<base::EventLoop> nic_loop_;
  std::vector<uint8_t> memory_;
  std::vector<uint8_t> slots_;
  std::vector<std::vector<uint8_t>> sent_;  // must stay where it is until it has left
  std::unique_ptr<verbs::Device> device_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::vector<std::unique_ptr<verbs::MemoryRegion>> sent_regions_;
  std::unique_ptr<verbs::MemoryRegion> memory_region_;
  std::unique_ptr<verbs::MemoryRegion> slots_region_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pairs_[kQueues];
  std::unique_ptr<verbs::Connection> connections_[kQueues];
  std::unique_ptr<verbs::Listener> listener_;
  bool established_[kQueues] = {};
  bool disconnected_ = false;
  bool rejected_ = false;
  std::vector<uint8_t> rejection_;
  base::Timer drain_;
};

}  // namespace tokamak::transport::testing
