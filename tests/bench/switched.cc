// How fast simulated RoCE networks run: link transmissions for each second of processor time.
//
//   bazel run -c opt //tests/bench:switched --
//       incast [--senders 16] [--bytes 20000000] [--mtu 1024]
//   bazel run -c opt //tests/bench:switched --
//       permutation [--k 16] [--bytes 1000000] [--mtu 1024]
//
// Raw RC WRITEs between software NICs on sim/fabric, on one loop in virtual time: many to one
// behind a switch, or every host of a fat tree to one half of the hosts away. A transmission is a
// frame on one cable, the unit in which packet simulators are compared. Payloads are copied, unless
// --phantom says that there are none.
//
// For a profile: CPUPROFILE=/tmp/switched.prof, built with --config=profile.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <deque>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "lib/base/check.h"
#include "lib/base/trace.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/verbs.h"
#include "sim/fabric/switched_fabric.h"
#include "sim/fabric/topology/generators.h"
#include "sim/large_pages.h"
#include "sim/time/sim_loop.h"

namespace tokamak::bench {
namespace {

struct Settings {
  uint32_t senders = 16;
  uint32_t k = 16;
  uint32_t bytes = 0;  // 0: as the workload's default
  uint32_t mtu = 1024;
  uint32_t ack_every = 0;
  std::string congestion = "dcqcn";
  bool phantom = false;
};

double ProcessorSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double PeakMegabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1000;
}

class Bench final {
 public:
  Bench(const Settings& settings, const sim::Topology& topology)
      : settings_(settings), memory_(2 * size_t{settings.bytes}), network_(scheduler_) {
    auto fabric = sim::SwitchedFabric::Build(network_, topology, {}, nullptr);
    CHECK(fabric.ok()) << fabric.status();
    fabric_ = *std::move(fabric);
    for (uint32_t i = 0; i < fabric_->interfaces(); ++i) OpenNic(topology.hosts[i].addresses[0], i);
  }

  void AddFlow(uint32_t from, uint32_t to) {
    verbs::QueuePair* x = MakeQueuePair(&nics_[from]);
    verbs::QueuePair* y = MakeQueuePair(&nics_[to]);
    Walk(x, nics_[to], *y, 100, 200);
    Walk(y, nics_[from], *x, 200, 100);
    const verbs::Sge sge{memory_.data(), settings_.bytes, nics_[from].region->lkey()};
    verbs::SendRequest request;
    request.opcode = verbs::Opcode::kWrite;
    request.flags = verbs::kSignaled;
    request.sges = absl::MakeConstSpan(&sge, 1);
    request.remote_address = reinterpret_cast<uint64_t>(memory_.data()) + settings_.bytes;
    request.rkey = nics_[to].region->rkey();
    CHECK(x->PostSend(absl::MakeConstSpan(&request, 1)).ok());
    ++flows_;
  }

  void Run(double setup) {
    const double before = ProcessorSeconds();
    const base::Time start = scheduler_.Now();
    CHECK(scheduler_.RunUntil([this] { return completed_ == flows_; }, start + base::Seconds(10)))
        << completed_ << " of " << flows_ << " completed";
    const double seconds = ProcessorSeconds() - before;
    uint64_t transmissions = 0;
    for (uint32_t i = 0; i < fabric_->links(); ++i) {
      for (uint32_t end = 0; end < 2; ++end) transmissions += fabric_->link(i, end).counters().sent;
    }
    verbs::soft::QueuePairCounters sum;
    for (const Nic& nic : nics_) sum.Add(nic.device->counters().queue_pairs);
    const double simulated = (scheduler_.Now() - start).seconds();
    std::cout << absl::StrFormat(
        "%d flows of %d B, MTU %d, %s%s: %.3f ms simulated, %.3f s of processor time (set-up %.3f s), %.0f MB\n"
        "%d link transmissions, %.2f M each second; %d tasks, %.2f M each second\n"
        "%d packets sent, %d again, %d notifications, %d frames made\n",
        flows_, settings_.bytes, settings_.mtu, settings_.congestion, settings_.phantom ? ", phantom" : "",
        simulated * 1e3, seconds, setup, PeakMegabytes(), transmissions,
        static_cast<double>(transmissions) / seconds / 1e6, scheduler_.tasks_run(),
        static_cast<double>(scheduler_.tasks_run()) / seconds / 1e6, sum.packets_sent, sum.packets_retransmitted,
        sum.notifications_sent, fabric_->frames_made());
  }

  uint32_t interfaces() const { return fabric_->interfaces(); }

 private:
  struct Nic {
    std::unique_ptr<verbs::soft::SoftDevice> device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<verbs::CompletionQueue> completions;
    std::unique_ptr<verbs::MemoryRegion> region;
    std::vector<std::unique_ptr<verbs::QueuePair>> queue_pairs;
  };

  void OpenNic(const verbs::Address& address, uint32_t number) {
    Nic& nic = nics_.emplace_back();
    verbs::soft::DeviceOptions options;
    options.address = address;
    options.seed = number + 1;
    options.congestion = *verbs::soft::ParseCongestionControl(settings_.congestion);
    options.window_packets = 1024;
    options.ack_every = settings_.ack_every;
    options.batch_packets = 16;
    options.pause = base::Duration();
    auto device = verbs::soft::OpenSoftDevice(network_, *fabric_, trace_, options);
    CHECK(device.ok()) << device.status();
    nic.device = *std::move(device);
    nic.domain = *nic.device->CreateProtectionDomain();
    nic.completions = *nic.device->CreateCompletionQueue(network_, 16, [this, &nic] { Poll(&nic); });
    nic.completions->RequestNotify(false);
    nic.region = *nic.domain->RegisterMemory(
        absl::MakeSpan(memory_),
        verbs::kLocalWrite | verbs::kRemoteWrite | (settings_.phantom ? verbs::kPhantom : verbs::kLocalRead));
  }

  void Poll(Nic* nic) {
    verbs::Completion some[16];
    nic->completions->RequestNotify(false);
    while (const size_t got = nic->completions->Poll(absl::MakeSpan(some))) {
      for (size_t i = 0; i < got; ++i) CHECK(some[i].status == verbs::CompletionStatus::kSuccess);
      completed_ += got;
    }
  }

  static verbs::QueuePair* MakeQueuePair(Nic* nic) {
    verbs::QueuePairOptions options;
    options.send_queue = options.receive_queue = nic->completions.get();
    options.max_send_requests = 4;
    options.max_receive_requests = 4;
    options.remote_access = verbs::kRemoteWrite;
    nic->queue_pairs.push_back(*nic->domain->CreateQueuePair(options));
    return nic->queue_pairs.back().get();
  }

  void Walk(verbs::QueuePair* queue_pair, const Nic& peer, const verbs::QueuePair& other, uint32_t send,
            uint32_t receive) const {
    verbs::QueuePairAttributes attributes;
    attributes.peer = peer.device->address();
    attributes.peer_number = other.number();
    attributes.path_mtu = settings_.mtu;
    attributes.send_psn = send;
    attributes.receive_psn = receive;
    CHECK(queue_pair->Modify(verbs::QueuePairState::kReadyToReceive, attributes).ok());
    CHECK(queue_pair->Modify(verbs::QueuePairState::kReadyToSend, attributes).ok());
  }

  const Settings settings_;
  std::vector<uint8_t> memory_;  // everybody sends from it and writes to it
  base::NoTrace trace_;
  sim::Scheduler scheduler_;
  sim::SimLoop network_;
  std::unique_ptr<sim::SwitchedFabric> fabric_;
  std::deque<Nic> nics_;
  uint64_t flows_ = 0;
  uint64_t completed_ = 0;
};

sim::GeneratorOptions Network() {
  sim::GeneratorOptions options;
  options.switches.ecn = {40'000, 160'000, 0.2};
  options.switches.buffer.bytes = 32 << 20;
  return options;
}

void Incast(Settings settings) {
  if (settings.bytes == 0) settings.bytes = 20'000'000;
  const double before = ProcessorSeconds();
  Bench bench(settings, sim::Star(Network(), settings.senders + 1));
  for (uint32_t i = 1; i <= settings.senders; ++i) bench.AddFlow(i, 0);
  bench.Run(ProcessorSeconds() - before);
}

void Permutation(Settings settings) {
  if (settings.bytes == 0) settings.bytes = 1'000'000;
  const double before = ProcessorSeconds();
  Bench bench(settings, sim::FatTree(Network(), settings.k));
  const uint32_t hosts = bench.interfaces();
  for (uint32_t i = 0; i < hosts; ++i) bench.AddFlow(i, (i + hosts / 2 + 1) % hosts);
  bench.Run(ProcessorSeconds() - before);
}

int Main(int argc, char** argv) {
  sim::PreferLargePages();
  Settings settings;
  CLI::App app("Simulated RoCE networks: link transmissions for each second of processor time");
  app.require_subcommand(1);
  CLI::App* incast = app.add_subcommand("incast", "many to one behind a switch");
  incast->add_option("--senders", settings.senders, "hosts that send");
  CLI::App* permutation = app.add_subcommand("permutation", "every host of a fat tree to another");
  permutation->add_option("--k", settings.k, "ports of a switch; k^3 / 4 hosts");
  for (CLI::App* workload : {incast, permutation}) {
    workload->add_option("--bytes", settings.bytes, "of each flow");
    workload->add_option("--mtu", settings.mtu, "256 to 4096");
    workload->add_option("--ack-every", settings.ack_every, "packets; 0: as the NIC likes");
    workload->add_option("--congestion", settings.congestion, "additive, fixed, none or dcqcn");
    workload->add_flag("--phantom", settings.phantom, "payload without memory");
  }
  CLI11_PARSE(app, argc, argv);
  if (incast->parsed()) {
    Incast(settings);
  } else {
    Permutation(settings);
  }
  return 0;
}

}  // namespace
}  // namespace tokamak::bench

int main(int argc, char** argv) { return tokamak::bench::Main(argc, argv); }
