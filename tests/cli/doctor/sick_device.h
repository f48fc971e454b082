// SickDevice is a device that looks healthy and is not: it swallows one kind of request, or damages
// bytes, and says nothing.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/verbs/verbs.h"

namespace tokamak::cli::doctor {

struct Sickness {
  std::optional<verbs::Opcode> swallowed;  // requests of this kind are taken, and never complete
  std::optional<verbs::Opcode> damaged;    // a byte of the first such request is changed before it leaves
  std::string refused;                     // "queue pair": making one fails
};

class SickQueuePair final : public verbs::QueuePair {
 public:
  SickQueuePair(std::unique_ptr<verbs::QueuePair> healthy, const Sickness& sickness)
      : healthy_(std::move(healthy)), sickness_(sickness) {}

  verbs::QueuePair& healthy() { return *healthy_; }

  uint32_t number() const override { return healthy_->number(); }
  verbs::QueuePairState state() const override { return healthy_->state(); }
  verbs::PostResult PostSend(absl::Span<const verbs::SendRequest> requests) override {
    const verbs::SendRequest& request = requests.front();  // the ping-pong posts them one by one
    if (request.opcode == sickness_.swallowed) return {requests.size(), absl::OkStatus()};
    if (request.opcode == sickness_.damaged && !std::exchange(damage_done_, true)) {
      request.sges.front().address[request.sges.front().length / 2] ^= 1;
    }
    return healthy_->PostSend(requests);
  }
  verbs::PostResult PostReceive(absl::Span<const verbs::ReceiveRequest> requests) override {
    return healthy_->PostReceive(requests);
  }
  absl::Status Modify(verbs::QueuePairState state, const verbs::QueuePairAttributes& attributes) override {
    return healthy_->Modify(state, attributes);
  }

 private:
  const std::unique_ptr<verbs::QueuePair> healthy_;
  const Sickness sickness_;
  bool damage_done_ = false;
};

class SickDomain final : public verbs::ProtectionDomain {
 public:
  SickDomain(std::unique_ptr<verbs::ProtectionDomain> healthy, const Sickness& sickness)
      : healthy_(std::move(healthy)), sickness_(sickness) {}

  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory,
                                                                      verbs::Access access) override {
    return healthy_->RegisterMemory(memory, access);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateMemoryWindow() override {
    return healthy_->CreateMemoryWindow();
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(const verbs::QueuePairOptions& options) override {
    if (sickness_.refused == "queue pair") return absl::InternalError("ibv_create_qp: Invalid argument");
    auto made = healthy_->CreateQueuePair(options);
    if (!made.ok()) return made.status();
    return std::make_unique<SickQueuePair>(*std::move(made), sickness_);
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                      uint32_t max_sges) override {
    return healthy_->CreateSharedReceiveQueue(depth, max_sges);
  }

 private:
  const std::unique_ptr<verbs::ProtectionDomain> healthy_;
  const Sickness sickness_;
};

// Gives the healthy manager its own queue pairs.
class SickManager final : public verbs::ConnectionManager {
 public:
  explicit SickManager(verbs::ConnectionManager& healthy) : healthy_(healthy) {}

  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::RequestHandler handler) override {
    return healthy_.Listen(loop, address, std::move(handler));
  }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Connect(verbs::QueuePair& queue_pair,
                                                             const verbs::Address& address,
                                                             const verbs::ConnectOptions& options,
                                                             verbs::ConnectionHandler handler) override {
    return healthy_.Connect(dynamic_cast<SickQueuePair&>(queue_pair).healthy(), address, options, std::move(handler));
  }

 private:
  verbs::ConnectionManager& healthy_;
};

// Only calls; who listens has a healthy device.
class SickDevice final : public verbs::Device {
 public:
  SickDevice(verbs::Device& healthy, Sickness sickness)
      : healthy_(healthy), sickness_(std::move(sickness)), manager_(healthy.connection_manager()) {}

  const std::string& name() const override { return healthy_.name(); }
  const verbs::Limits& limits() const override { return healthy_.limits(); }
  bool is_rdma() const override { return healthy_.is_rdma(); }
  const verbs::Address& address() const override { return healthy_.address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    auto made = healthy_.CreateProtectionDomain();
    if (!made.ok()) return made.status();
    return std::make_unique<SickDomain>(*std::move(made), sickness_);
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop& loop, uint32_t depth, std::function<void()> on_event) override {
    return healthy_.CreateCompletionQueue(loop, depth, std::move(on_event));
  }
  verbs::ConnectionManager& connection_manager() override { return manager_; }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop& loop, verbs::DeviceEventHandler handler) override {
    return healthy_.Watch(loop, std::move(handler));
  }

 private:
  verbs::Device& healthy_;
  const Sickness sickness_;
  SickManager manager_;
};

}  // namespace tokamak::cli::doctor
