// BorrowedDevice is a device that another object owns: a NIC that a node shares with the scenario's
// messages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "lib/verbs/verbs.h"

namespace tokamak::sim {

class BorrowedDevice final : public verbs::Device {
 public:
  // `device` must outlive it.
  explicit BorrowedDevice(verbs::Device& device) : device_(device) {}

  const std::string& name() const override { return device_.name(); }
  const verbs::Limits& limits() const override { return device_.limits(); }
  bool is_rdma() const override { return device_.is_rdma(); }
  const verbs::Address& address() const override { return device_.address(); }
  absl::StatusOr<std::unique_ptr<verbs::ProtectionDomain>> CreateProtectionDomain() override {
    return device_.CreateProtectionDomain();
  }
  absl::StatusOr<std::unique_ptr<verbs::CompletionQueue>> CreateCompletionQueue(
      base::EventLoop& loop, uint32_t depth, std::function<void()> on_event) override {
    return device_.CreateCompletionQueue(loop, depth, std::move(on_event));
  }
  verbs::ConnectionManager& connection_manager() override { return device_.connection_manager(); }
  std::unique_ptr<verbs::DeviceWatch> Watch(base::EventLoop& loop, verbs::DeviceEventHandler handler) override {
    return device_.Watch(loop, std::move(handler));
  }

 private:
  verbs::Device& device_;
};

}  // namespace tokamak::sim
