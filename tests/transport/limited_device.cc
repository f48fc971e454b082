#include "tests/transport/limited_device.h"

#include <set>
#include <string>
#include <utility>

namespace tokamak::transport::testing {
namespace {

// Only the limits differ: the code under test must not use what they deny. (The software NIC below would carry it out.)
class LimitedDevice final : public verbs::Device {
 public:
  explicit LimitedDevice(std::unique_ptr<verbs::Device> device)
      : device_(std::move(device)), limits_(device_->limits()) {
    limits_.immediate = false;
    limits_.read_sink_needs_remote_write = true;
    limits_.acknowledgements = false;
  }
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
  verbs::ConnectionManager& connection_manager() override { return device_->connection_manager(); }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop&, verbs::DeviceEventHandler handler) override {
    return std::make_unique<OneWatch>(*this, std::move(handler));
  }
  void Happen(const verbs::DeviceEventInfo& info) {
    for (OneWatch* watch : std::set<OneWatch*>(watches_)) watch->handler(info);
  }

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
  verbs::Limits limits_;
};

}  // namespace

std::unique_ptr<verbs::Device> LikeIwarp(std::unique_ptr<verbs::Device> device) {
  return std::make_unique<LimitedDevice>(std::move(device));
}

void Happen(verbs::Device& device, const verbs::DeviceEventInfo& info) {
  static_cast<LimitedDevice&>(device).Happen(info);
}

}  // namespace tokamak::transport::testing
