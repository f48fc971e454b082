// Link is one connection of the examples: a queue pair, and the memory that the peer opened to it.
//
// Each side tells the other where its memory is in the private data of the connection's request and
// answer. After that all is one-sided: a position is counted from the start of that memory.
// Every request is signaled, and every completion is passed to the owner of the link.
// Thread rule: the one thread of its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "examples/patterns/memory.h"
#include "lib/base/bytes.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::example {

class Link final {
 public:
  static constexpr uint32_t kRequests = 64;  // posted at once; the same of receives

  // Completions of requests and receives by their ids. One with an error is the last: the link is
  // dead.
  using OnCompletion = std::function<void(const verbs::Completion&)>;
  using OnUp = std::function<void(const absl::Status&)>;

  // `memory` is what requests read from and write to here, and what the peer may touch as far as
  // its rights go. It outlives the link.
  static absl::StatusOr<std::unique_ptr<Link>> Create(base::EventLoop& loop, verbs::Device& device, Memory& memory,
                                                      OnCompletion on_completion) {
    std::unique_ptr<Link> link(new Link(memory.region(), std::move(on_completion)));
    auto completions = device.CreateCompletionQueue(loop, 2 * kRequests, [link = link.get()] { link->Drain(); });
    if (!completions.ok()) return completions.status();
    link->completions_ = *std::move(completions);
    link->completions_->RequestNotify();
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = link->completions_.get();
    options.max_send_requests = options.max_receive_requests = kRequests;
    options.remote_access = verbs::kRemoteRead | verbs::kRemoteWrite;
    auto queue_pair = memory.domain().CreateQueuePair(options);
    if (!queue_pair.ok()) return queue_pair.status();
    link->queue_pair_ = *std::move(queue_pair);
    return link;
  }

  absl::Status Connect(verbs::ConnectionManager& manager, const verbs::Address& service, OnUp on_up) {
    const Offer offer = OfferOf(memory_);
    verbs::ConnectOptions options;
    options.private_data = offer.bytes;
    auto made = manager.Connect(*queue_pair_, service, options, [this, on_up](const verbs::ConnectionEvent& event) {
      on_up(event.kind == verbs::ConnectionEvent::Kind::kEstablished ? TakeOffer(event.private_data) : event.status);
    });
    if (made.ok()) connection_ = *std::move(made);
    return made.status();
  }

  absl::Status Accept(verbs::ConnectionRequest& request, OnUp on_up) {
    if (absl::Status s = TakeOffer(request.private_data()); !s.ok()) return s;
    const Offer offer = OfferOf(memory_);
    verbs::ConnectOptions options;
    options.private_data = offer.bytes;
    auto made = request.Accept(*queue_pair_, options, [on_up](const verbs::ConnectionEvent& event) {
      on_up(event.kind == verbs::ConnectionEvent::Kind::kEstablished ? absl::OkStatus() : event.status);
    });
    if (made.ok()) connection_ = *std::move(made);
    return made.status();
  }

  uint64_t peer_length() const { return peer_length_; }  // bytes, once the link is up

  // `piece` is of this link's memory, and not touched before the completion.
  absl::Status Write(uint64_t id, absl::Span<uint8_t> piece, uint64_t position, uint32_t immediate) {
    return Post(verbs::Opcode::kWriteWithImm, id, piece, position, immediate);
  }
  absl::Status Read(uint64_t id, absl::Span<uint8_t> piece, uint64_t position) {
    return Post(verbs::Opcode::kRead, id, piece, position, 0);
  }
  // For one kWriteWithImm of the peer: the receive takes no bytes, they lie where they were
  // written.
  absl::Status Receive(uint64_t id) {
    verbs::ReceiveRequest request;
    request.id = id;
    return queue_pair_->PostReceive(absl::MakeConstSpan(&request, 1)).status;
  }

 private:
  // Address, length and key of a side's memory.
  struct Offer {
    uint8_t bytes[20];
  };

  Link(verbs::MemoryRegion& memory, OnCompletion on_completion)
      : memory_(memory), on_completion_(std::move(on_completion)) {}

  static Offer OfferOf(const verbs::MemoryRegion& memory) {
    Offer offer;
    base::StoreLittle<uint64_t>(offer.bytes, reinterpret_cast<uintptr_t>(memory.address()));
    base::StoreLittle<uint64_t>(offer.bytes + 8, memory.length());
    base::StoreLittle<uint32_t>(offer.bytes + 16, memory.rkey());
    return offer;
  }

  absl::Status TakeOffer(absl::Span<const uint8_t> bytes) {
    if (bytes.size() < sizeof(Offer)) return absl::InvalidArgumentError("the peer does not say where its memory is");
    peer_address_ = base::LoadLittle<uint64_t>(bytes.data());
    peer_length_ = base::LoadLittle<uint64_t>(bytes.data() + 8);
    peer_key_ = base::LoadLittle<uint32_t>(bytes.data() + 16);
    return absl::OkStatus();
  }

  absl::Status Post(verbs::Opcode opcode, uint64_t id, absl::Span<uint8_t> piece, uint64_t position,
                    uint32_t immediate) {
    if (position > peer_length_ || piece.size() > peer_length_ - position) {
      return absl::OutOfRangeError("beyond the peer's memory");
    }
    const verbs::Sge sge = {piece.data(), static_cast<uint32_t>(piece.size()), memory_.lkey()};
    verbs::SendRequest request;
    request.id = id;
    request.opcode = opcode;
    request.flags = verbs::kSignaled;
    if (!piece.empty()) request.sges = absl::MakeConstSpan(&sge, 1);
    request.immediate = immediate;
    request.remote_address = peer_address_ + position;
    request.rkey = peer_key_;
    return queue_pair_->PostSend(absl::MakeConstSpan(&request, 1)).status;
  }

  // Arm, then drain: what completes in between raises the event, so nothing is missed.
  void Drain() {
    completions_->RequestNotify();
    verbs::Completion completions[16];
    while (const size_t count = completions_->Poll(absl::MakeSpan(completions))) {
      for (size_t i = 0; i < count; ++i) on_completion_(completions[i]);
    }
  }

  verbs::MemoryRegion& memory_;
  const OnCompletion on_completion_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;
  std::unique_ptr<verbs::Connection> connection_;  // after the queue pair, so it goes first
  uint64_t peer_address_ = 0;
  uint64_t peer_length_ = 0;
  uint32_t peer_key_ = 0;
};

}  // namespace tokamak::example
