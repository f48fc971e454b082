// Messages through a ring buffer in the receiver's memory: the sender WRITEs each message to where
// the receiver looks next, and no buffer is posted for it.
//
//   sender                                   receiver
//   copy at tail of its mirror of the ring
//   WRITE with immediate (length) ---------> completion: the message lies at head, read in place
//   room for more                 <--------- WRITE of no bytes with immediate (messages released)
//
// Both sides compute the same places, so a message has no header: it begins at a multiple of 8, and
// at the start of the ring if it would cross the end. The rest before the end goes with it.
//
// Why the immediate, and not a word in memory that the receiver polls? That poll saves a receive
// and a completion for each message, but no specification promises in which order the bytes of a
// WRITE arrive, so it relies on one device's habits, and is a data race to C++. A completion is
// ordered by the specification (InfiniBand Architecture Specification, volume 1, 9.5 and 10.8.3).
// Polling the completion queue is as quick where latency is all. A device without immediates
// (Limits::immediate; iWARP) has SENDs for this.
// Thread rule: the one thread of its loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "examples/patterns/link.h"
#include "examples/patterns/memory.h"

namespace tokamak::example {

// Messages that are written and not released; each has a receive posted at the other side.
constexpr uint32_t kMessagesInRing = Link::kRequests / 2;

// The places of messages. Both sides keep one and give it the same lengths.
class RingPlaces final {
 public:
  explicit RingPlaces(uint64_t capacity) : capacity_(capacity) {}  // bytes, a multiple of 8

  // Returns the place where a message of this many bytes would begin; kResourceExhausted: there is
  // no room now.
  absl::StatusOr<uint64_t> Next(uint64_t length) const {
    const uint64_t room = capacity_ - tail_ % capacity_;  // before the end
    const uint64_t begin = Padded(length) > room ? tail_ + room : tail_;
    if (begin + Padded(length) - head_ > capacity_ || taken_.size() == kMessagesInRing) {
      return absl::ResourceExhaustedError("the ring is full until the receiver releases messages");
    }
    return begin % capacity_;
  }
  // It is there now.
  void Take(uint64_t begin, uint64_t length) {
    tail_ += (begin + capacity_ - tail_ % capacity_) % capacity_ + Padded(length);
    taken_.push_back(tail_);
  }
  // The oldest `count` are done with.
  absl::Status Release(uint32_t count) {
    if (count > taken_.size()) return absl::InvalidArgumentError("more messages released than there are");
    for (; count > 0; --count) {
      head_ = taken_.front();
      taken_.pop_front();
    }
    return absl::OkStatus();
  }

  uint64_t capacity() const { return capacity_; }

 private:
  static uint64_t Padded(uint64_t length) { return std::max<uint64_t>((length + 7) / 8 * 8, 8); }

  const uint64_t capacity_;
  uint64_t head_ = 0;           // all bytes that were ever released
  uint64_t tail_ = 0;           // all that were ever taken
  std::deque<uint64_t> taken_;  // where each message ends, oldest first
};

class RingSender final {
 public:
  using OnRoom = std::function<void()>;

  RingSender(base::EventLoop& loop, verbs::Device& device, uint64_t capacity, OnRoom on_room)
      : loop_(loop), device_(device), on_room_(std::move(on_room)), places_(capacity) {}

  absl::Status Connect(const verbs::Address& service, Link::OnUp on_up) {
    if (!device_.limits().immediate) return absl::UnimplementedError("the device has no immediates: use SENDs");
    auto mirror = Memory::Create(device_, places_.capacity(), verbs::kRemoteWrite);
    if (!mirror.ok()) return mirror.status();
    mirror_ = *std::move(mirror);
    auto link = Link::Create(loop_, device_, *mirror_, [this](const auto& done) { OnCompletion(done); });
    if (!link.ok()) return link.status();
    link_ = *std::move(link);
    for (uint32_t i = 0; i < kMessagesInRing; ++i) {
      if (absl::Status s = link_->Receive(kRoom); !s.ok()) return s;
    }
    return link_->Connect(device_.connection_manager(), service, std::move(on_up));
  }

  // Copies the message and sends it. kResourceExhausted: ask again at `on_room`.
  absl::Status Send(absl::Span<const uint8_t> message) {
    if (!status_.ok()) return status_;
    if (link_->peer_length() != places_.capacity()) return absl::InvalidArgumentError("the rings differ in size");
    if (message.size() > places_.capacity() / 2) return absl::InvalidArgumentError("longer than half of the ring");
    const auto place = places_.Next(message.size());
    if (!place.ok()) return place.status();
    const absl::Span<uint8_t> piece = mirror_->bytes().subspan(*place, message.size());
    std::copy(message.begin(), message.end(), piece.begin());
    const absl::Status posted = link_->Write(kMessage, piece, *place, static_cast<uint32_t>(message.size()));
    if (posted.ok()) places_.Take(*place, message.size());
    return posted;
  }

  const absl::Status& status() const { return status_; }

 private:
  enum Id : uint64_t { kMessage, kRoom };

  void OnCompletion(const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      status_ = absl::UnavailableError(verbs::ToString(completion.status));
    } else if (completion.id == kRoom) {
      status_ = places_.Release(completion.immediate);
      if (status_.ok()) status_ = link_->Receive(kRoom);
      if (status_.ok()) on_room_();
    }
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  const OnRoom on_room_;
  RingPlaces places_;
  std::unique_ptr<Memory> mirror_;  // a message stays here until it is released, and so as long as the device needs it
  std::unique_ptr<Link> link_;
  absl::Status status_;
};

class RingReceiver final {
 public:
  // The bytes lie in the ring, and are valid during the call.
  using OnMessage = std::function<void(absl::Span<const uint8_t>)>;

  RingReceiver(base::EventLoop& loop, verbs::Device& device, uint64_t capacity, OnMessage on_message)
      : loop_(loop), device_(device), on_message_(std::move(on_message)), places_(capacity) {}

  absl::Status Listen() {
    if (!device_.limits().immediate) return absl::UnimplementedError("the device has no immediates: use SENDs");
    auto ring = Memory::Create(device_, places_.capacity(), verbs::kRemoteWrite);
    if (!ring.ok()) return ring.status();
    ring_ = *std::move(ring);
    auto listener = device_.connection_manager().Listen(
        loop_, device_.address(),
        [this](std::unique_ptr<verbs::ConnectionRequest> request) { status_ = Accept(*request); });
    if (listener.ok()) listener_ = *std::move(listener);
    return listener.status();
  }

  const verbs::Address& service() const { return listener_->address(); }
  const absl::Status& status() const { return status_; }

 private:
  enum Id : uint64_t { kMessage, kRoom };

  // One sender: a ring has one place to write to. Others are rejected.
  absl::Status Accept(verbs::ConnectionRequest& request) {
    if (link_ != nullptr) return status_;
    auto link = Link::Create(loop_, device_, *ring_, [this](const auto& done) { OnCompletion(done); });
    if (!link.ok()) return link.status();
    for (uint32_t i = 0; i < kMessagesInRing; ++i) {
      if (absl::Status s = (*link)->Receive(kMessage); !s.ok()) return s;
    }
    link_ = *std::move(link);
    return link_->Accept(request, [](const absl::Status&) {});
  }

  void OnCompletion(const verbs::Completion& completion) {
    if (completion.status != verbs::CompletionStatus::kSuccess) {
      status_ = absl::UnavailableError(verbs::ToString(completion.status));
    } else if (completion.id == kMessage) {
      status_ = TakeMessage(completion.immediate);
    }
  }

  absl::Status TakeMessage(uint32_t length) {
    if (length > places_.capacity() / 2) return absl::InvalidArgumentError("longer than half of the ring");
    const auto place = places_.Next(length);
    if (!place.ok()) return place.status();
    places_.Take(*place, length);
    on_message_(ring_->bytes().subspan(*place, length));
    if (absl::Status s = places_.Release(1); !s.ok()) return s;
    if (absl::Status s = link_->Receive(kMessage); !s.ok()) return s;  // before the sender hears of the room
    return link_->Write(kRoom, {}, 0, 1);
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  const OnMessage on_message_;
  RingPlaces places_;
  std::unique_ptr<Memory> ring_;
  std::unique_ptr<verbs::Listener> listener_;
  std::unique_ptr<Link> link_;
  absl::Status status_;
};

}  // namespace tokamak::example
