#include "lib/daemon/soft_device.h"

#include <ctime>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/trace.h"
#include "lib/os/loop_thread.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/pcap.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::daemon {

namespace {

constexpr int kEcnBits = 2;  // the low ones of a traffic class

// What a flag asks for and the software NIC cannot do is refused, never left out.
absl::Status CheckFabric(absl::string_view name, const FabricSettings& fabric) {
  if (fabric.service_level.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--service-level: ", name, " sends over IP, which has none; --traffic-class sets its DSCP"));
  }
  const int traffic_class = fabric.traffic_class.value_or(0);
  const int dscp_only = traffic_class >> kEcnBits << kEcnBits;
  if (traffic_class == dscp_only) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--traffic-class ", traffic_class,
                                                 ": its two low bits are ECN's, which ", name, " sets by itself: give ",
                                                 dscp_only));
}

// The software NIC over UDP: its protocol runs on a thread of its own, as hardware would beside its
// host.
class SoftUdpDevice final : public OpenedDevice {
 public:
  explicit SoftUdpDevice(const DeviceSettings& settings) : thread_({"tokamak-nic"}, settings.detection) {}

  ~SoftUdpDevice() override {
    thread_.CallOn([this] {
      device_.reset();
      fabric_.reset();
      pcap_.reset();
    });
  }

  absl::Status Open(absl::string_view name, const DeviceSettings& settings) {
    const auto parsed = verbs::soft::ParseUdpDevice(name);
    if (!parsed.ok()) return parsed.status();
    absl::Status status;
    thread_.CallOn([&] { status = OpenOnThread(name, *parsed, settings); });
    return status;
  }

  verbs::Device& device() override { return *device_; }
  std::vector<int> ProcessorsNear() const override { return {}; }

  void AddNumbers(std::vector<client::NumberEntry>& numbers) const override {
    const verbs::soft::UdpCounters& udp = fabric_->counters();
    uint64_t dropped = 0;
    for (const verbs::soft::Counter& counter : udp.dropped) dropped += counter.value();
    numbers.push_back({"udp_packets_sent_total", udp.packets_sent.value()});
    numbers.push_back({"udp_bytes_sent_total", udp.bytes_sent.value()});
    numbers.push_back({"udp_send_calls_total", udp.send_calls.value()});
    numbers.push_back({"udp_packets_received_total", udp.packets_received.value()});
    numbers.push_back({"udp_bytes_received_total", udp.bytes_received.value()});
    numbers.push_back({"udp_receive_calls_total", udp.receive_calls.value()});
    numbers.push_back({"udp_packets_dropped_total", dropped});
    numbers.push_back({"udp_packets_dropped_icrc_total", udp.Dropped(verbs::soft::UdpDrop::kIcrc)});
    numbers.push_back({"udp_packets_dropped_buffer_total", udp.Dropped(verbs::soft::UdpDrop::kSocketBuffer)});
    const verbs::soft::DeviceCounters nic = device_->counters();
    const verbs::soft::QueuePairCounters& sum = nic.queue_pairs;
    numbers.push_back({"nic_packets_sent_total", sum.packets_sent});
    numbers.push_back({"nic_packets_received_total", sum.packets_received});
    numbers.push_back({"nic_packets_retransmitted_total", sum.packets_retransmitted});
    numbers.push_back({"nic_responses_lost_total", sum.responses_lost});
    numbers.push_back({"nic_naks_received_sequence_total", sum.naks_received_sequence});
    numbers.push_back({"nic_naks_received_not_ready_total", sum.naks_received_not_ready});
    numbers.push_back({"nic_answers_overdue_total", sum.answers_overdue});
    numbers.push_back({"nic_timeouts_total", sum.timeouts});
    numbers.push_back({"nic_marks_received_total", sum.marks_received});
    numbers.push_back({"nic_notifications_sent_total", sum.notifications_sent});
    numbers.push_back({"nic_notifications_received_total", sum.notifications_received});
    numbers.push_back({"nic_port_busy_total", nic.port_busy});
    numbers.push_back({"nic_completion_queue_overruns_total", nic.completion_queue_overruns});
  }

 private:
  absl::Status OpenOnThread(absl::string_view name, const verbs::soft::UdpDeviceName& parsed,
                            const DeviceSettings& settings) {
    verbs::soft::UdpFabricOptions fabric_options;
    fabric_options.raw = parsed.raw;
    if (!settings.pcap_path.empty()) {
      timespec now{};
      clock_gettime(CLOCK_REALTIME, &now);
      verbs::soft::PcapOptions pcap_options;
      pcap_options.epoch_nanoseconds = int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec -
                                       static_cast<int64_t>(thread_.loop().Now().picoseconds() / 1000);
      auto pcap = verbs::soft::PcapWriter::Create(thread_.loop(), settings.pcap_path, pcap_options);
      if (!pcap.ok()) return pcap.status();
      pcap_ = *std::move(pcap);
      fabric_options.tap = pcap_.get();
    }
    fabric_ = std::make_unique<verbs::soft::UdpFabric>(thread_.loop(), fabric_options);
    verbs::soft::DeviceOptions options;
    options.name = std::string(name);
    options.address = parsed.address;
    options.seed = settings.seed;
    options.dscp = static_cast<uint8_t>(settings.fabric.traffic_class.value_or(0) >> kEcnBits);
    if (settings.congestion.has_value()) {
      options.congestion = settings.congestion->control;
      options.dcqcn = verbs::soft::DcqcnParameters::InRealTime(settings.congestion->line_rate);
    }
    options.run_on_nic_loop = [this](const std::function<void()>& call) { thread_.CallOn(call); };
    auto device = verbs::soft::OpenSoftDevice(thread_.loop(), *fabric_, trace_, options);
    if (!device.ok()) return device.status();
    device_ = *std::move(device);
    return absl::OkStatus();
  }

  os::LoopThread thread_;
  base::NoTrace trace_;
  std::unique_ptr<verbs::soft::PcapWriter> pcap_;
  std::unique_ptr<verbs::soft::UdpFabric> fabric_;
  std::unique_ptr<verbs::soft::SoftDevice> device_;
};

}  // namespace

bool IsSoftDevice(absl::string_view name) { return verbs::soft::IsUdpDevice(name); }

absl::StatusOr<std::unique_ptr<OpenedDevice>> OpenSoftDevice(absl::string_view name, const DeviceSettings& settings) {
  if (settings.connect_by == ConnectBy::kTcp) {
    return absl::InvalidArgumentError(
        absl::StrCat("--cm tcp: ", name, " makes connections by itself; leave --cm out, or name an ibv: device"));
  }
  if (absl::Status status = CheckFabric(name, settings.fabric); !status.ok()) return status;
  auto device = std::make_unique<SoftUdpDevice>(settings);
  if (absl::Status status = device->Open(name, settings); !status.ok()) return status;
  return device;
}

}  // namespace tokamak::daemon
