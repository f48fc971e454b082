#include "tests/transport/secured/man_between.h"

#include <string>
#include <utility>

namespace tokamak::transport::testing {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Changed(absl::Span<const uint8_t> bytes, const std::function<void(Bytes&)>& change) {
  Bytes changed(bytes.begin(), bytes.end());
  if (change) change(changed);
  return changed;
}

class ChangedRequest final : public verbs::ConnectionRequest {
 public:
  ChangedRequest(std::unique_ptr<verbs::ConnectionRequest> well, const ManBetween& man)
      : well_(std::move(well)), man_(man), peer_(well_->peer()), asked_(Changed(well_->private_data(), man.asked)) {
    if (man_.peer) man_.peer(peer_);
  }

  const verbs::Address& peer() const override { return peer_; }
  absl::Span<const uint8_t> private_data() const override { return asked_; }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Accept(verbs::QueuePair& queue_pair,
                                                            const verbs::ConnectOptions& options,
                                                            verbs::ConnectionHandler handler) override {
    const Bytes answered = Changed(options.private_data, man_.answered);
    verbs::ConnectOptions changed = options;
    changed.private_data = answered;
    return well_->Accept(queue_pair, changed,
                         [&man = man_, handler = std::move(handler)](const verbs::ConnectionEvent& event) {
                           verbs::ConnectionEvent other = event;
                           if (man.number) man.number(other.peer_queue_pair);
                           handler(other);
                         });
  }
  void Reject(absl::Span<const uint8_t> private_data) override { well_->Reject(private_data); }

 private:
  const std::unique_ptr<verbs::ConnectionRequest> well_;
  const ManBetween& man_;
  verbs::Address peer_;
  const Bytes asked_;
};

class DeviceBehindHim final : public verbs::Device, private verbs::ConnectionManager {
 public:
  DeviceBehindHim(std::unique_ptr<verbs::Device> well, const ManBetween& man) : well_(std::move(well)), man_(man) {}

  const std::string& name() const override { return well_->name(); }
  const verbs::Limits& limits() const override { return well_->limits(); }
  bool is_rdma() const override { return well_->is_rdma(); }
  const verbs::Address& address() const override { return well_->address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    return well_->CreateProtectionDomain();
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
        loop, address, [this, handler = std::move(handler)](std::unique_ptr<verbs::ConnectionRequest> request) {
          handler(std::make_unique<ChangedRequest>(std::move(request), man_));
        });
  }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Connect(verbs::QueuePair& queue_pair,
                                                             const verbs::Address& address,
                                                             const verbs::ConnectOptions& options,
                                                             verbs::ConnectionHandler handler) override {
    verbs::Address reached = address;
    if (man_.service) man_.service(reached);
    return well_->connection_manager().Connect(queue_pair, reached, options, std::move(handler));
  }

  const std::unique_ptr<verbs::Device> well_;
  const ManBetween& man_;
};

}  // namespace

std::unique_ptr<verbs::Device> WithManBetween(std::unique_ptr<verbs::Device> device, const ManBetween& man) {
  return std::make_unique<DeviceBehindHim>(std::move(device), man);
}

}  // namespace tokamak::transport::testing
