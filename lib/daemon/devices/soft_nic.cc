#include "lib/daemon/devices/soft_nic.h"

#include <string>
#include <utility>

#include "lib/os/calendar.h"

namespace tokamak::daemon {

SoftNic::SoftNic(os::EpollLoop& loop, std::function<void(const std::function<void()>&)> run, base::Duration ack_delay)
    : loop_(loop), run_(std::move(run)), ack_delay_(ack_delay) {}

SoftNic::~SoftNic() {
  run_([this] {
    device_.reset();
    fabric_.reset();
    pcap_.reset();
  });
}

absl::Status SoftNic::Open(absl::string_view name, const verbs::soft::UdpDeviceName& parsed,
                           const DeviceSettings& settings) {
  absl::Status status;
  run_([&] { status = OpenOnLoop(name, parsed, settings); });
  return status;
}

absl::Status SoftNic::OpenOnLoop(absl::string_view name, const verbs::soft::UdpDeviceName& parsed,
                                 const DeviceSettings& settings) {
  verbs::soft::UdpFabricOptions fabric_options;
  fabric_options.raw = parsed.raw;
  if (!settings.pcap_path.empty()) {
    verbs::soft::PcapOptions pcap_options;
    pcap_options.epoch_nanoseconds = os::UnixNanosecondsAtZero(loop_.Now());
    auto pcap = verbs::soft::PcapWriter::Create(loop_, settings.pcap_path, pcap_options);
    if (!pcap.ok()) return pcap.status();
    pcap_ = *std::move(pcap);
    fabric_options.tap = pcap_.get();
  }
  fabric_ = std::make_unique<verbs::soft::UdpFabric>(loop_, fabric_options);
  verbs::soft::DeviceOptions options;
  options.name = std::string(name);
  options.address = parsed.address;
  options.seed = settings.seed;
  options.dscp = static_cast<uint8_t>(settings.fabric.traffic_class.value_or(0) >> kEcnBits);
  if (settings.congestion.has_value()) {
    options.congestion = settings.congestion->control;
    options.dcqcn = verbs::soft::DcqcnParameters::InRealTime(settings.congestion->line_rate);
  }
  options.ack_delay = ack_delay_;
  options.run_on_nic_loop = run_;
  auto device = verbs::soft::OpenSoftDevice(loop_, *fabric_, trace_, options);
  if (!device.ok()) return device.status();
  device_ = *std::move(device);
  return absl::OkStatus();
}

void SoftNic::AddNumbers(std::vector<NamedNumber>& numbers) const {
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

}  // namespace tokamak::daemon
