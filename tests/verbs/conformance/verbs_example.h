// Connect, write, poll: the whole of it. One side owns memory, the other writes into it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/bytes.h"
#include "lib/base/event_loop.h"
#include "lib/verbs/verbs.h"

namespace tokamak::example {

// Unpacks what a factory made.
template <typename T>
absl::Status Take(absl::StatusOr<T> made, T* out) {
  if (made.ok()) *out = *std::move(made);
  return made.status();
}

// Owns 64 bytes that a peer may write, and says where they are to whoever connects.
class Owner final {
 public:
  Owner(base::EventLoop& loop, verbs::Device& device) : loop_(loop), device_(device) {}

  absl::Status Start() {
    if (auto s = Take(device_.CreateProtectionDomain(), &domain_); !s.ok()) return s;
    const auto access = verbs::kLocalWrite | verbs::kRemoteWrite;
    if (auto s = Take(domain_->RegisterMemory(absl::MakeSpan(bytes_), access), &region_); !s.ok()) return s;
    if (auto s = Take(device_.CreateCompletionQueue(loop_, 16, [] {}), &completions_); !s.ok()) return s;
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = completions_.get();
    options.remote_access = verbs::kRemoteWrite;
    if (auto s = Take(domain_->CreateQueuePair(options), &queue_pair_); !s.ok()) return s;
    const auto on_request = [this](std::unique_ptr<verbs::ConnectionRequest> request) { Accept(*request); };
    return Take(device_.connection_manager().Listen(loop_, device_.address(), on_request), &listener_);
  }

  const verbs::Address& service() const { return listener_->address(); }
  absl::Span<const uint8_t> bytes() const { return bytes_; }

 private:
  void Accept(verbs::ConnectionRequest& request) {
    uint8_t offer[12];
    base::StoreLittle<uint64_t>(offer, reinterpret_cast<uintptr_t>(bytes_));
    base::StoreLittle<uint32_t>(offer + 8, region_->rkey());
    verbs::ConnectOptions options;
    options.private_data = offer;
    auto made = request.Accept(*queue_pair_, options, [](const verbs::ConnectionEvent&) {});
    if (made.ok()) connection_ = *std::move(made);  // otherwise the request is rejected when it is dropped
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  uint8_t bytes_[64] = {};
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;
  std::unique_ptr<verbs::Listener> listener_;
  std::unique_ptr<verbs::Connection> connection_;  // declared after the queue pair, so it goes first
};

// Connects to an Owner, writes `text` into its memory and knows when it is there.
class Writer final {
 public:
  Writer(base::EventLoop& loop, verbs::Device& device, absl::Span<uint8_t> text)
      : loop_(loop), device_(device), text_(text) {}

  absl::Status Start(const verbs::Address& service) {
    if (auto s = Take(device_.CreateProtectionDomain(), &domain_); !s.ok()) return s;
    if (auto s = Take(domain_->RegisterMemory(text_, verbs::kLocalRead), &region_); !s.ok()) return s;
    if (auto s = Take(device_.CreateCompletionQueue(loop_, 16, [this] { Drain(); }), &completions_); !s.ok()) return s;
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = completions_.get();
    if (auto s = Take(domain_->CreateQueuePair(options), &queue_pair_); !s.ok()) return s;
    const auto on_event = [this](const verbs::ConnectionEvent& event) { OnConnection(event); };
    return Take(device_.connection_manager().Connect(*queue_pair_, service, {}, on_event), &connection_);
  }

  bool done() const { return done_; }
  const absl::Status& status() const { return status_; }  // once done

 private:
  void OnConnection(const verbs::ConnectionEvent& event) {
    if (event.kind != verbs::ConnectionEvent::Kind::kEstablished) return Finish(event.status);
    if (event.private_data.size() < 12) return Finish(absl::DataLossError("no offer"));
    const verbs::Sge piece = {text_.data(), static_cast<uint32_t>(text_.size()), region_->lkey()};
    verbs::SendRequest write;
    write.opcode = verbs::Opcode::kWrite;
    write.flags = verbs::kSignaled;
    write.sges = absl::MakeConstSpan(&piece, 1);
    write.remote_address = base::LoadLittle<uint64_t>(event.private_data.data());
    write.rkey = base::LoadLittle<uint32_t>(event.private_data.data() + 8);
    const verbs::PostResult posted = queue_pair_->PostSend(absl::MakeConstSpan(&write, 1));
    if (!posted.ok()) return Finish(posted.status);
    Drain();
  }

  // Arm, then drain: what completes in between raises the event, so nothing is missed.
  void Drain() {
    completions_->RequestNotify();
    verbs::Completion completion;
    while (completions_->Poll(absl::MakeSpan(&completion, 1)) == 1) {
      const bool written = completion.status == verbs::CompletionStatus::kSuccess;
      Finish(written ? absl::OkStatus() : absl::InternalError(verbs::ToString(completion.status)));
    }
  }

  void Finish(absl::Status status) {
    done_ = true;
    status_ = std::move(status);
  }

  base::EventLoop& loop_;
  verbs::Device& device_;
  const absl::Span<uint8_t> text_;
  std::unique_ptr<verbs::ProtectionDomain> domain_;
  std::unique_ptr<verbs::MemoryRegion> region_;
  std::unique_ptr<verbs::CompletionQueue> completions_;
  std::unique_ptr<verbs::QueuePair> queue_pair_;
  std::unique_ptr<verbs::Connection> connection_;
  bool done_ = false;
  absl::Status status_;
};

}  // namespace tokamak::example
