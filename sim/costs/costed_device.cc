#include "sim/costs/costed_device.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace tokamak::sim {
namespace {

class CostedCompletions final : public verbs::CompletionQueue {
 public:
  CostedCompletions(std::unique_ptr<verbs::CompletionQueue> free, base::EventLoop& loop, base::Duration each)
      : free_(std::move(free)), loop_(loop), each_(each) {}

  verbs::CompletionQueue& free() { return *free_; }
  base::EventLoop& loop() { return loop_; }

  size_t Poll(absl::Span<verbs::Completion> completions) override {
    const size_t count = free_->Poll(completions);
    loop_.Spend(each_ * static_cast<int64_t>(count));
    return count;
  }
  void RequestNotify(bool solicited_only) override { free_->RequestNotify(solicited_only); }
  uint32_t depth() const override { return free_->depth(); }
  absl::Status Resize(uint32_t depth) override { return free_->Resize(depth); }

 private:
  const std::unique_ptr<verbs::CompletionQueue> free_;
  base::EventLoop& loop_;
  const base::Duration each_;
};

// Shared by a device's parts, on no one loop.
struct Host {
  HostCosts costs;
  RunningLoop running;

  void Spend(base::Duration time) const {
    if (base::EventLoop* loop = running()) loop->Spend(time);
  }
};

class CostedRegion final : public verbs::MemoryRegion {
 public:
  CostedRegion(std::unique_ptr<verbs::MemoryRegion> free, std::shared_ptr<const Host> host)
      : free_(std::move(free)), host_(std::move(host)) {}
  ~CostedRegion() override {
    host_->Spend(host_->costs.deregistration + host_->costs.deregistration_page * Pages(*free_));
  }

  verbs::MemoryRegion& free() { return *free_; }

  uint8_t* address() const override { return free_->address(); }
  uint64_t length() const override { return free_->length(); }
  uint32_t lkey() const override { return free_->lkey(); }
  uint32_t rkey() const override { return free_->rkey(); }

  // As if the region began a page: its real place differs from run to run.
  static int64_t Pages(const verbs::MemoryRegion& region) {
    return static_cast<int64_t>((region.length() + kHostPage - 1) / kHostPage);
  }

 private:
  const std::unique_ptr<verbs::MemoryRegion> free_;
  const std::shared_ptr<const Host> host_;
};

class CostedQueuePair final : public verbs::QueuePair {
 public:
  CostedQueuePair(std::unique_ptr<verbs::QueuePair> free, base::EventLoop& loop, base::Duration each)
      : free_(std::move(free)), loop_(loop), each_(each) {}

  verbs::QueuePair& free() { return *free_; }

  uint32_t number() const override { return free_->number(); }
  verbs::QueuePairState state() const override { return free_->state(); }
  verbs::PostResult PostSend(absl::Span<const verbs::SendRequest> requests) override {
    loop_.Spend(each_ * static_cast<int64_t>(requests.size()));
    const bool binds = std::any_of(requests.begin(), requests.end(), [](const verbs::SendRequest& request) {
      return request.opcode == verbs::Opcode::kBindWindow;
    });
    return binds ? PostBinds(requests) : free_->PostSend(requests);
  }
  verbs::PostResult PostReceive(absl::Span<const verbs::ReceiveRequest> requests) override {
    loop_.Spend(each_ * static_cast<int64_t>(requests.size()));
    return free_->PostReceive(requests);
  }
  absl::Status Modify(verbs::QueuePairState state, const verbs::QueuePairAttributes& attributes) override {
    return free_->Modify(state, attributes);
  }

 private:
  // The NIC below knows its own regions.
  verbs::PostResult PostBinds(absl::Span<const verbs::SendRequest> requests) {
    std::vector<verbs::SendRequest> below(requests.begin(), requests.end());
    for (verbs::SendRequest& request : below) {
      if (request.opcode != verbs::Opcode::kBindWindow) continue;
      request.bind.region = &static_cast<CostedRegion&>(*request.bind.region).free();
    }
    return free_->PostSend(below);
  }

  const std::unique_ptr<verbs::QueuePair> free_;
  base::EventLoop& loop_;
  const base::Duration each_;
};

class CostedDomain final : public verbs::ProtectionDomain {
 public:
  CostedDomain(std::unique_ptr<verbs::ProtectionDomain> free, std::shared_ptr<const Host> host)
      : free_(std::move(free)), host_(std::move(host)) {}

  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory,
                                                                      verbs::Access access) override {
    auto made = free_->RegisterMemory(memory, access);
    if (!made.ok()) return made.status();
    host_->Spend(host_->costs.registration + host_->costs.registration_page * CostedRegion::Pages(**made));
    return std::make_unique<CostedRegion>(*std::move(made), host_);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateMemoryWindow() override {
    return free_->CreateMemoryWindow();
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(const verbs::QueuePairOptions& options) override {
    verbs::QueuePairOptions below = options;
    base::EventLoop* loop = nullptr;
    for (verbs::CompletionQueue** queue : {&below.send_queue, &below.receive_queue}) {
      if (*queue == nullptr) continue;
      auto& costed = static_cast<CostedCompletions&>(**queue);
      loop = &costed.loop();
      *queue = &costed.free();
    }
    auto made = free_->CreateQueuePair(below);
    if (!made.ok()) return made.status();
    return std::make_unique<CostedQueuePair>(*std::move(made), *loop, host_->costs.post);
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                      uint32_t max_sges) override {
    return free_->CreateSharedReceiveQueue(depth, max_sges);
  }

 private:
  const std::unique_ptr<verbs::ProtectionDomain> free_;
  const std::shared_ptr<const Host> host_;
};

class CostedRequest final : public verbs::ConnectionRequest {
 public:
  explicit CostedRequest(std::unique_ptr<verbs::ConnectionRequest> free) : free_(std::move(free)) {}

  const verbs::Address& peer() const override { return free_->peer(); }
  absl::Span<const uint8_t> private_data() const override { return free_->private_data(); }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Accept(verbs::QueuePair& queue_pair,
                                                            const verbs::ConnectOptions& options,
                                                            verbs::ConnectionHandler handler) override {
    return free_->Accept(static_cast<CostedQueuePair&>(queue_pair).free(), options, std::move(handler));
  }
  void Reject(absl::Span<const uint8_t> private_data) override { free_->Reject(private_data); }

 private:
  const std::unique_ptr<verbs::ConnectionRequest> free_;
};

class CostedDevice final : public verbs::Device, private verbs::ConnectionManager {
 public:
  CostedDevice(std::unique_ptr<verbs::Device> free, const HostCosts& costs, RunningLoop running)
      : free_(std::move(free)), host_(std::make_shared<const Host>(Host{costs, std::move(running)})) {}

  const std::string& name() const override { return free_->name(); }
  const verbs::Limits& limits() const override { return free_->limits(); }
  bool is_rdma() const override { return free_->is_rdma(); }
  const verbs::Address& address() const override { return free_->address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    auto made = free_->CreateProtectionDomain();
    if (!made.ok()) return made.status();
    return std::make_unique<CostedDomain>(*std::move(made), host_);
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop& loop, uint32_t depth, std::function<void()> on_event) override {
    auto made = free_->CreateCompletionQueue(loop, depth, std::move(on_event));
    if (!made.ok()) return made.status();
    return std::make_unique<CostedCompletions>(*std::move(made), loop, host_->costs.completion);
  }
  verbs::ConnectionManager& connection_manager() override { return *this; }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop& loop, verbs::DeviceEventHandler handler) override {
    return free_->Watch(loop, std::move(handler));
  }

 private:
  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::RequestHandler handler) override {
    return free_->connection_manager().Listen(
        loop, address, [handler = std::move(handler)](std::unique_ptr<verbs::ConnectionRequest> request) {
          handler(std::make_unique<CostedRequest>(std::move(request)));
        });
  }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Connect(verbs::QueuePair& queue_pair,
                                                             const verbs::Address& address,
                                                             const verbs::ConnectOptions& options,
                                                             verbs::ConnectionHandler handler) override {
    return free_->connection_manager().Connect(static_cast<CostedQueuePair&>(queue_pair).free(), address, options,
                                               std::move(handler));
  }

  const std::unique_ptr<verbs::Device> free_;
  const std::shared_ptr<const Host> host_;
};

}  // namespace

std::unique_ptr<verbs::Device> WithCosts(std::unique_ptr<verbs::Device> device, const HostCosts& costs,
                                         RunningLoop running) {
  return std::make_unique<CostedDevice>(std::move(device), costs, std::move(running));
}

CopySpeed CopySpeedOf(const HostCosts& costs) {
  return costs.copy_bandwidth == 0 ? CopySpeed::Unlimited() : CopySpeed::BytesPerSecond(costs.copy_bandwidth);
}

}  // namespace tokamak::sim
