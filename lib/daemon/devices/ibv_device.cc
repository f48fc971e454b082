#include "lib/daemon/devices/ibv_device.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/daemon/devices/placement.h"
#include "lib/verbs/ibv/device.h"
#include "lib/verbs/ibv/translation/device_name.h"

namespace tokamak::daemon {

namespace fs = std::filesystem;

namespace {

// Returns the named port's, else the first active one's.
std::string PortFolder(const verbs::ibv::DeviceName& name) {
  const std::string ports = absl::StrCat("/sys/class/infiniband/", name.device, "/ports/");
  if (name.port != 0) return absl::StrCat(ports, name.port);
  for (int port = 1; port <= UINT8_MAX; ++port) {
    std::ifstream file(absl::StrCat(ports, port, "/state"));
    std::string state;
    if (!std::getline(file, state)) break;
    if (absl::StrContains(state, "ACTIVE")) return absl::StrCat(ports, port);
  }
  return absl::StrCat(ports, 1);
}

class IbvDevice final : public OpenedDevice {
 public:
  IbvDevice(std::unique_ptr<verbs::Device> device, const verbs::ibv::DeviceName& name)
      : device_(std::move(device)), name_(name.device), port_(PortFolder(name)) {}

  verbs::Device& device() override { return *device_; }
  void AddNumbers(std::vector<NamedNumber>& numbers) const override {
    for (const char* counters : {"/counters", "/hw_counters"}) AddCounters(port_ + counters, numbers);
  }
  std::vector<int> ProcessorsNear() const override { return daemon::ProcessorsNear("/sys", name_); }

 private:
  const std::unique_ptr<verbs::Device> device_;
  const std::string name_;
  const std::string port_;
};

}  // namespace

bool IsIbvDevice(absl::string_view name) { return absl::StartsWith(name, "ibv:"); }

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenIbvDevice(absl::string_view name, const DeviceSettings& settings) {
  if (!settings.pcap_path.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--pcap: only the software NIC's packets can be written, not those of ", name,
                     "; capture at its network interface instead"));
  }
  if (settings.congestion.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--congestion: only the software NIC is told so; ", name,
                                                   " has what its driver and the switches are set to"));
  }
  auto parsed = verbs::ibv::ParseDeviceName(name);
  if (!parsed.ok()) return parsed.status();
  verbs::ibv::DeviceOptions options;
  options.name = *parsed;
  if (settings.connect_by == ConnectBy::kTcp) {
    options.exchange = verbs::ibv::Exchange::kTcp;
    options.tcp_address = settings.address;
    options.pkey_index = settings.fabric.pkey_index;
    options.router_lid = settings.fabric.router_lid;
  }
  options.max_path_mtu = settings.fabric.path_mtu;
  options.service_level = settings.fabric.service_level;
  options.traffic_class = settings.fabric.traffic_class;
  auto device = verbs::ibv::OpenIbvDevice(options);
  if (!device.ok()) return device.status();
  return std::make_unique<IbvDevice>(*std::move(device), *parsed);
}

void AddCounters(const std::string& folder, std::vector<NamedNumber>& numbers) {
  std::vector<fs::path> files;
  std::error_code error;
  // Not range-based, which throws when a device is removed.
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    // The kernel's query interval, no counter.
    if (entry->path().filename() != "lifespan") files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  size_t added = 0;
  for (const fs::path& path : files) {
    std::ifstream file(path);
    uint64_t value = 0;
    const std::string name = "rdma_" + path.filename().string();
    if (name.size() > kLongestCounterName || !(file >> value)) continue;
    if (added++ == kMostCounters) return;
    numbers.push_back({name, value});
  }
}

}  // namespace tokamak::daemon
