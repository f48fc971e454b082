#include "lib/verbs/open/open_device.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/base/trace.h"
#include "lib/os/loop_thread.h"
#include "lib/os/secret_seed.h"
#include "lib/verbs/ibv/device.h"
#include "lib/verbs/ibv/translation/device_name.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::verbs {

namespace {

class OpenedSoftDevice final : public OpenedDevice {
 public:
  explicit OpenedSoftDevice(const OpenOptions& options) {
    if (options.loop == nullptr) thread_.emplace(os::ThreadOptions{"tokamak-nic"}, options.detection);
    loop_ = thread_.has_value() ? &thread_->loop() : options.loop;
  }
  ~OpenedSoftDevice() override {
    CallOnLoop([this] {
      device_.reset();
      fabric_.reset();
    });
  }

  absl::Status Open(absl::string_view name) {
    const auto parsed = soft::ParseUdpDevice(name);
    if (!parsed.ok()) return parsed.status();
    absl::Status status;
    CallOnLoop([&] { status = OpenOnLoop(name, *parsed); });
    return status;
  }

  Device& device() override { return *device_; }

 private:
  void CallOnLoop(const std::function<void()>& call) {
    if (thread_.has_value()) return thread_->CallOn(call);
    call();
  }

  absl::Status OpenOnLoop(absl::string_view name, const soft::UdpDeviceName& parsed) {
    soft::UdpFabricOptions fabric_options;
    fabric_options.raw = parsed.raw;
    fabric_ = std::make_unique<soft::UdpFabric>(*loop_, fabric_options);
    soft::DeviceOptions options;
    options.name = std::string(name);
    options.address = parsed.address;
    options.seed = os::SecretSeed();
    options.run_on_nic_loop = [this](const std::function<void()>& call) { CallOnLoop(call); };
    auto device = soft::OpenSoftDevice(*loop_, *fabric_, trace_, options);
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    return absl::OkStatus();
  }

  std::optional<os::LoopThread> thread_;  // outlives its NIC
  os::EpollLoop* loop_ = nullptr;
  base::NoTrace trace_;
  std::unique_ptr<soft::UdpFabric> fabric_;
  std::unique_ptr<Device> device_;
};

class OpenedIbvDevice final : public OpenedDevice {
 public:
  explicit OpenedIbvDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  Device& device() override { return *device_; }

 private:
  const std::unique_ptr<Device> device_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenDevice(absl::string_view name, const OpenOptions& options) {
  if (soft::IsUdpDevice(name)) {
    auto opened = std::make_unique<OpenedSoftDevice>(options);
    if (absl::Status s = opened->Open(name); !s.ok()) return s;
    return opened;
  }
  if (absl::StartsWith(name, "ibv:")) {
    auto parsed = ibv::ParseDeviceName(name);
    if (!parsed.ok()) return parsed.status();
    ibv::DeviceOptions device_options;
    device_options.name = *std::move(parsed);
    auto device = ibv::OpenIbvDevice(device_options);
    if (!device.ok()) return device.status();
    return std::make_unique<OpenedIbvDevice>(*std::move(device));
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown device '", name,
                                                 "': use soft:udp@IP, say soft:udp@127.0.0.1, soft:raw@IP, or "
                                                 "ibv:NAME, say ibv:mlx5_0"));
}

}  // namespace tokamak::verbs
