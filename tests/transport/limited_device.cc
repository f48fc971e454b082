#include "tests/transport/limited_device.h"

#include <set>
#include <string>
#include <utility>

namespace tokamak::transport::testing {
namespace {

// Some of the peers that ask have gone when they are answered.
class FleetingManager final : public verbs::ConnectionManager {
 public:
  explicit FleetingManager(verbs::ConnectionManager& manager) : manager_(manager) {}

  absl::StatusOr<std::unique_ptr<verbs::Listener>> Listen(base::EventLoop& loop, const verbs::Address& address,
                                                          verbs::RequestHandler handler) override {
    return manager_.Listen(loop, address, [this, handler](std::unique_ptr<verbs::ConnectionRequest> request) {
      handler(std::make_unique<Request>(*this, std::move(request)));
    });
  }
  absl::StatusOr<std::unique_ptr<verbs::Connection>> Connect(verbs::QueuePair& queue_pair,
                                                             const verbs::Address& address,
                                                             const verbs::ConnectOptions& options,
                                                             verbs::ConnectionHandler handler) override {
    return manager_.Connect(queue_pair, address, options, std::move(handler));
  }

  int leaving = 0;  // of the next

 private:
  class Request final : public verbs::ConnectionRequest {
   public:
    Request(FleetingManager& manager, std::unique_ptr<verbs::ConnectionRequest> request)
        : manager_(manager), request_(std::move(request)) {}
    const verbs::Address& peer() const override { return request_->peer(); }
    absl::Span<const uint8_t> private_data() const override { return request_->private_data(); }
    absl::StatusOr<std::unique_ptr<verbs::Connection>> Accept(verbs::QueuePair& queue_pair,
                                                              const verbs::ConnectOptions& options,
                                                              verbs::ConnectionHandler handler) override {
      if (manager_.leaving == 0) return request_->Accept(queue_pair, options, std::move(handler));
      --manager_.leaving;
      return absl::CancelledError("it has gone");
    }
    void Reject(absl::Span<const uint8_t> private_data) override { request_->Reject(private_data); }

   private:
    FleetingManager& manager_;
    const std::unique_ptr<verbs::ConnectionRequest> request_;
  };

  verbs::ConnectionManager& manager_;
};

// Only the limits differ: the code under test must not use what they deny. (The software NIC below
// would carry it out.)
class LimitedDevice final : public verbs::Device {
 public:
  LimitedDevice(std::unique_ptr<verbs::Device> device, const verbs::Limits& limits)
      : device_(std::move(device)), manager_(device_->connection_manager()), limits_(limits) {}
  const std::string& name() const override { return device_->name(); }
  const verbs::Limits& limits() const override { return limits_; }
  bool is_rdma() const override { return device_->is_rdma(); }
  const verbs::Address& address() const override { return device_->address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    return device_->CreateProtectionDomain();
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop& loop, uint32_t depth, std::function<void()> on_event) override {
    return device_->CreateCompletionQueue(loop, depth, std::move(on_event));
  }
  verbs::ConnectionManager& connection_manager() override { return manager_; }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop&, verbs::DeviceEventHandler handler) override {
    return std::make_unique<OneWatch>(*this, std::move(handler));
  }
  void Happen(const verbs::DeviceEventInfo& info) {
    for (OneWatch* watch : std::set<OneWatch*>(watches_)) watch->handler(info);
  }
  void LoseAskers(int count) { manager_.leaving = count; }

 private:
  struct OneWatch final : verbs::DeviceWatch {
    OneWatch(LimitedDevice& d, verbs::DeviceEventHandler h) : device(d), handler(std::move(h)) {
      device.watches_.insert(this);
    }
    ~OneWatch() override { device.watches_.erase(this); }
    LimitedDevice& device;
    const verbs::DeviceEventHandler handler;
  };

  std::set<OneWatch*> watches_;
  std::unique_ptr<verbs::Device> device_;
  FleetingManager manager_;
  const verbs::Limits limits_;
};

}  // namespace

std::unique_ptr<verbs::Device> LikeIwarp(std::unique_ptr<verbs::Device> device) {
  verbs::Limits limits = device->limits();
  limits.immediate = false;
  limits.memory_windows = false;
  limits.read_sink_needs_remote_write = true;
  limits.three_way_connect = false;
  limits.acknowledgements = false;
  limits.drop_stops_transfers = false;
  return std::make_unique<LimitedDevice>(std::move(device), limits);
}

std::unique_ptr<verbs::Device> WithoutWindows(std::unique_ptr<verbs::Device> device) {
  verbs::Limits limits = device->limits();
  limits.memory_windows = false;
  return std::make_unique<LimitedDevice>(std::move(device), limits);
}

void Happen(verbs::Device& device, const verbs::DeviceEventInfo& info) {
  static_cast<LimitedDevice&>(device).Happen(info);
}

void LoseAskers(verbs::Device& device, int count) { static_cast<LimitedDevice&>(device).LoseAskers(count); }

}  // namespace tokamak::transport::testing
