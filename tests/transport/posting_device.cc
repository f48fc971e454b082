#include "tests/transport/posting_device.h"

#include <string>
#include <utility>

namespace tokamak::transport::testing {
namespace {

class PostingQueuePair final : public verbs::QueuePair {
 public:
  PostingQueuePair(std::unique_ptr<verbs::QueuePair> well, const PostSendHook& hook)
      : well_(std::move(well)), hook_(hook) {}

  verbs::QueuePair& well() { return *well_; }

  uint32_t number() const override { return well_->number(); }
  verbs::QueuePairState state() const override { return well_->state(); }
  verbs::PostResult PostSend(absl::Span<const verbs::SendRequest> requests) override {
    return hook_ ? hook_(*well_, requests) : well_->PostSend(requests);
  }
  verbs::PostResult PostReceive(absl::Span<const verbs::ReceiveRequest> requests) override {
    return well_->PostReceive(requests);
  }
  absl::Status Modify(verbs::QueuePairState state, const verbs::QueuePairAttributes& attributes) override {
    return well_->Modify(state, attributes);
  }

 private:
  const std::unique_ptr<verbs::QueuePair> well_;
  const PostSendHook& hook_;
};

class PostingDomain final : public verbs::ProtectionDomain {
 public:
  PostingDomain(std::unique_ptr<verbs::ProtectionDomain> well, const DeviceHooks& hooks)
      : well_(std::move(well)), hooks_(hooks) {}

  absl::StatusOr<std::unique_ptr<verbs::MemoryRegion>> RegisterMemory(absl::Span<uint8_t> memory,
                                                                      verbs::Access access) override {
    if (hooks_.on_register) {
      if (absl::Status s = hooks_.on_register(memory, access); !s.ok()) return s;
    }
    return well_->RegisterMemory(memory, access);
  }
  absl::StatusOr<std::unique_ptr<verbs::MemoryWindow>> CreateMemoryWindow() override {
    return well_->CreateMemoryWindow();
  }
  absl::StatusOr<std::unique_ptr<verbs::QueuePair>> CreateQueuePair(const verbs::QueuePairOptions& options) override {
    auto made = well_->CreateQueuePair(options);
    if (!made.ok()) return made.status();
    return std::make_unique<PostingQueuePair>(*std::move(made), hooks_.post_send);
  }
  absl::StatusOr<std::unique_ptr<verbs::SharedReceiveQueue>> CreateSharedReceiveQueue(uint32_t depth,
                                                                                      uint32_t max_sges) override {
    return well_->CreateSharedReceiveQueue(depth, max_sges);
  }

 private:
  const std::unique_ptr<verbs::ProtectionDomain> well_;
  const DeviceHooks& hooks_;
};

class PostingRequest final : public verbs::ConnectionRequest {
 public:
  explicit PostingRequest(std::unique_ptr<verbs::ConnectionRequest> well) : well_(std::move(well)) {}
  const verbs::Address& peer() const override { return well_->peer(); }
  absl::Span<const uint8_t> private_data() const override { return well_->private_data(); }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Accept(verbs::QueuePair& queue_pair,
                                                            const verbs::ConnectOptions& options,
                                                            verbs::ConnectionHandler handler) override {
    return well_->Accept(dynamic_cast<PostingQueuePair&>(queue_pair).well(), options, std::move(handler));
  }
  void Reject(absl::Span<const uint8_t> private_data) override { well_->Reject(private_data); }

 private:
  const std::unique_ptr<verbs::ConnectionRequest> well_;
};

class PostingDevice final : public verbs::Device, private verbs::ConnectionManager {
 public:
  PostingDevice(std::unique_ptr<verbs::Device> well, DeviceHooks hooks)
      : well_(std::move(well)), hooks_(std::move(hooks)) {}

  const std::string& name() const override { return well_->name(); }
  const verbs::Limits& limits() const override { return hooks_.limits.has_value() ? *hooks_.limits : well_->limits(); }
  bool is_rdma() const override { return well_->is_rdma(); }
  const verbs::Address& address() const override { return well_->address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    auto made = well_->CreateProtectionDomain();
    if (!made.ok()) return made.status();
    return std::make_unique<PostingDomain>(*std::move(made), hooks_);
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop& loop, uint32_t depth, std::function<void()> on_event) override {
    return well_->CreateCompletionQueue(loop, depth, std::move(on_event));
  }
  verbs::ConnectionManager& connection_manager() override { return *this; }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop& loop, verbs::DeviceEventHandler handler) override {
    return well_->Watch(loop, std::move(handler));
  }

 private:
  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::RequestHandler handler) override {
    return well_->connection_manager().Listen(
        loop, address, [handler = std::move(handler)](std::unique_ptr<verbs::ConnectionRequest> request) {
          handler(std::make_unique<PostingRequest>(std::move(request)));
        });
  }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Connect(verbs::QueuePair& queue_pair,
                                                             const verbs::Address& address,
                                                             const verbs::ConnectOptions& options,
                                                             verbs::ConnectionHandler handler) override {
    if (hooks_.on_connect) hooks_.on_connect(options);
    return well_->connection_manager().Connect(dynamic_cast<PostingQueuePair&>(queue_pair).well(), address, options,
                                               std::move(handler));
  }

  const std::unique_ptr<verbs::Device> well_;
  const DeviceHooks hooks_;
};

}  // namespace

std::unique_ptr<verbs::Device> WithHooks(std::unique_ptr<verbs::Device> device, DeviceHooks hooks) {
  return std::make_unique<PostingDevice>(std::move(device), std::move(hooks));
}

std::unique_ptr<verbs::Device> WithPostSend(std::unique_ptr<verbs::Device> device, PostSendHook hook) {
  DeviceHooks hooks;
  hooks.post_send = std::move(hook);
  return WithHooks(std::move(device), std::move(hooks));
}

}  // namespace tokamak::transport::testing
