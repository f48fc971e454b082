#include "lib/daemon/devices/soft_device.h"

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "lib/daemon/devices/soft_nic.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/packets/packet.h"

namespace tokamak::daemon {

namespace {

constexpr uint64_t kBulkSeed = 0x6275'6c6b;  // another stream than the first NIC's

// Lets most replies, and a program's next request, leave before an ACK. A tenth of the shortest
// retransmission time-out.
constexpr base::Duration kAckDelay = base::Microseconds(100);

absl::Status CheckFabric(absl::string_view name, const FabricSettings& fabric) {
  if (fabric.path_mtu.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--path-mtu: ", name, " takes the MTU of its network device, which ip link sets"));
  }
  if (fabric.service_level.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--service-level: ", name, " sends over IP, which has none; --traffic-class sets its DSCP"));
  }
  const int traffic_class = fabric.traffic_class.value_or(0);
  const int dscp_only = traffic_class >> SoftNic::kEcnBits << SoftNic::kEcnBits;
  if (traffic_class == dscp_only) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--traffic-class ", traffic_class,
                                                 ": its two low bits are ECN's, which ", name, " sets by itself: give ",
                                                 dscp_only));
}

// On its owner's loop the software NIC wakes no thread per message (the short way). Long work would
// block that loop: bulk has a second NIC on its own thread.
class SoftUdpDevice final : public OpenedDevice {
 public:
  absl::Status Open(absl::string_view name, const DeviceSettings& settings) {
    const auto parsed = verbs::soft::ParseUdpDevice(name);
    if (!parsed.ok()) return parsed.status();
    const auto here = [](const std::function<void()>& call) { call(); };
    const auto on_thread = [this](const std::function<void()>& call) { thread_->CallOn(call); };
    const bool two = settings.loop != nullptr && settings.bulk;
    if (settings.loop == nullptr || two) {
      thread_.emplace(os::ThreadOptions{two ? "tokamak-bulk" : "tokamak-nic"}, settings.detection);
    }
    nics_.push_back(settings.loop != nullptr ? std::make_unique<SoftNic>(*settings.loop, here, kAckDelay)
                                             : std::make_unique<SoftNic>(thread_->loop(), on_thread, base::Duration()));
    if (absl::Status status = nics_[0]->Open(name, *parsed, settings); !status.ok() || !two) return status;
    return OpenBulk(name, *parsed, settings, std::make_unique<SoftNic>(thread_->loop(), on_thread, base::Duration()));
  }

  verbs::Device& device() override { return nics_.front()->device(); }
  verbs::Device& bulk_device() override { return nics_.back()->device(); }
  std::vector<int> ProcessorsNear() const override { return {}; }

  void AddNumbers(std::vector<NamedNumber>& numbers) const override {
    const size_t begin = numbers.size();
    nics_.front()->AddNumbers(numbers);
    const size_t count = numbers.size() - begin;
    for (size_t nic = 1; nic < nics_.size(); ++nic) {
      std::vector<NamedNumber> more;
      nics_[nic]->AddNumbers(more);
      for (size_t i = 0; i < count; ++i) numbers[begin + i].value += more[i].value;
    }
  }

 private:
  absl::Status OpenBulk(absl::string_view name, verbs::soft::UdpDeviceName parsed, DeviceSettings settings,
                        std::unique_ptr<SoftNic> nic) {
    const uint16_t port = parsed.address.port == 0 ? verbs::soft::kRoceUdpPort : parsed.address.port;
    if (port == UINT16_MAX) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": bulk takes the next UDP port, and there is none; choose a lower one"));
    }
    parsed.address.port = static_cast<uint16_t>(port + 1);
    settings.seed ^= kBulkSeed;
    if (!settings.pcap_path.empty()) settings.pcap_path += ".bulk";
    nics_.push_back(std::move(nic));
    const absl::Status status = nics_.back()->Open(name, parsed, settings);
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat("for bulk, on the UDP port after that of ", name, ": ", status.message()));
  }

  std::optional<os::LoopThread> thread_;  // outlives the NICs on it
  std::vector<std::unique_ptr<SoftNic>> nics_;
};

}  // namespace

bool IsSoftDevice(absl::string_view name) { return verbs::soft::IsUdpDevice(name); }

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenSoftDevice(absl::string_view name, const DeviceSettings& settings) {
  if (settings.connect_by == ConnectBy::kTcp) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cm tcp: ", name, " makes connections by itself; leave --cm out, or name an ibv: device"));
  }
  if (absl::Status status = CheckFabric(name, settings.fabric); !status.ok()) return status;
  auto device = std::make_unique<SoftUdpDevice>();
  if (absl::Status status = device->Open(name, settings); !status.ok()) return status;
  return device;
}

}  // namespace tokamak::daemon
