#include "tests/bench/cluster/virtual/virtual_run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/transport/endpoint_options.h"
#include "sim/cluster/cluster.h"
#include "sim/network/switched_network.h"
#include "sim/time/sim_time.h"
#include "tests/bench/cluster/puller.h"
#include "tests/bench/cluster/socket_puller.h"
#include "tests/bench/cluster/virtual/simulated_streams.h"
#include "tests/bench/cluster/virtual/virtual_collective.h"
#include "tests/bench/streams/socket_transfer.h"

namespace tokamak::bench {

namespace {

// Each of two cables: as those of sim/scenario/scenarios/thresholds.json.
constexpr base::Duration kWay = base::Microseconds(2);

sim::ClusterOptions ClusterOptionsOf(const VirtualRunOptions& options) {
  const Settings& settings = options.settings;
  sim::ClusterOptions cluster;
  cluster.seed = settings.seed;
  cluster.link.latency = kWay;
  cluster.link.picoseconds_per_byte = options.rate.TimeOf(1).picoseconds();
  cluster.pulls = node::PullOptions();
  cluster.endpoint.chunk_size = settings.chunk_size;
  cluster.endpoint.chunks_in_flight = settings.chunks_in_flight;
  cluster.endpoint.bulk_queue_pairs = settings.bulk_queue_pairs;
  cluster.endpoint.policy = options.policy;
  cluster.costs = options.costs;
  cluster.registration = settings.registration;
  cluster.most_hosts = settings.ranks;
  // The second rail is the streams'.
  cluster.network = [](const sim::NetworkOptions& one, base::Trace&) {
    sim::NetworkOptions two = one;
    two.rails = 2;
    return std::make_unique<sim::SwitchedNetwork>(std::make_unique<sim::SimTime>(), two);
  };
  return cluster;
}

verbs::Address StreamAddressOf(uint32_t rank) { return *verbs::Address::Parse(absl::StrCat("10.0.1.", rank + 1)); }

transport::Protocol ProtocolOf(const std::string& name) {
  if (name == "eager") return transport::Protocol::kEager;
  if (name == "read") return transport::Protocol::kRead;
  if (name == "write") return transport::Protocol::kWrite;
  return transport::Protocol::kAuto;
}

}  // namespace

class VirtualRun::Rank final {
 public:
  Rank(sim::Cluster& cluster, sim::Host& host, VirtualHub& hub, uint32_t rank, const StreamCosts& streams)
      : host_(host),
        stack_loop_(cluster.time.MakeLoop()),
        stack_(host.loop, *stack_loop_, cluster.network.fabric(), StreamAddressOf(rank), streams),
        original_(Listen(SocketVariant::kOriginal)),
        tuned_(Listen(SocketVariant::kTuned)),
        collective_(hub, rank, host.loop) {}

  verbs::Address AddressOf(SocketVariant variant) const {
    return (variant == SocketVariant::kOriginal ? original_ : tuned_)->address();
  }

  void AddPullers(const Plan& plan, const std::vector<std::unique_ptr<Rank>>& all) {
    for (const Contender& contender : plan.contenders) {
      if (contender.protocol != "socket") {
        pullers_.push_back(std::make_unique<NodePuller>(host_.node(), ProtocolOf(contender.protocol)));
        continue;
      }
      const SocketVariant variant = contender.variant == "original" ? SocketVariant::kOriginal : SocketVariant::kTuned;
      std::vector<verbs::Address> peers;
      for (const auto& rank : all) peers.push_back(rank->AddressOf(variant));
      pullers_.push_back(
          std::make_unique<SocketPuller>(variant == SocketVariant::kOriginal ? *original_ : *tuned_, std::move(peers)));
    }
  }

  void Run(const Plan& plan, Driver::Progress progress, Driver::Callback done) {
    std::vector<Puller*> pullers;
    for (const auto& puller : pullers_) pullers.push_back(puller.get());
    driver_ =
        std::make_unique<Driver>(host_.loop, collective_, host_.node(), std::move(pullers), plan, std::move(progress));
    driver_->Run(std::move(done));
  }

 private:
  std::unique_ptr<SocketTransfer> Listen(SocketVariant variant) {
    auto transfer =
        SocketTransfer::Listen(host_.loop, host_.store(), std::make_unique<SimulatedStreams>(stack_), variant);
    CHECK(transfer.ok()) << transfer.status();
    return *std::move(transfer);
  }

  sim::Host& host_;
  const std::unique_ptr<base::EventLoop> stack_loop_;
  StreamStack stack_;
  const std::unique_ptr<SocketTransfer> original_;
  const std::unique_ptr<SocketTransfer> tuned_;
  VirtualCollective collective_;
  std::vector<std::unique_ptr<Puller>> pullers_;
  std::unique_ptr<Driver> driver_;
};

VirtualRun::VirtualRun(const VirtualRunOptions& options, const Plan& plan)
    : options_(options),
      plan_(plan),
      cluster_(std::make_unique<sim::Cluster>(ClusterOptionsOf(options))),
      hub_(options.settings.ranks) {
  sim::HostOptions host;
  host.memory = (MemoryOfARank(options.settings, plan, options.settings.ranks) + 63) / 64 * 64;
  host.engines = options.settings.engines;
  for (uint32_t rank = 0; rank < options.settings.ranks; ++rank) {
    sim::Host& added = cluster_->Add(host);
    ranks_.push_back(std::make_unique<Rank>(*cluster_, added, hub_, rank, options.streams));
  }
  for (const auto& rank : ranks_) rank->AddPullers(plan_, ranks_);
}

VirtualRun::~VirtualRun() = default;

absl::StatusOr<std::vector<CaseResult>> VirtualRun::Run(const Driver::Progress& progress) {
  cluster_->Settle();
  absl::StatusOr<std::vector<CaseResult>> answer = absl::InternalError("no answer");
  size_t answered = 0;
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    ranks_[rank]->Run(plan_, rank == 0 ? progress : Driver::Progress(),
                      [&answer, &answered, rank](const absl::StatusOr<std::vector<CaseResult>>& results) {
                        if (rank == 0) answer = results;
                        ++answered;
                      });
  }
  if (!cluster_->RunUntil([&] { return answered == ranks_.size(); }, kLongest)) {
    return absl::DeadlineExceededError("the simulated run does not end: fewer --sizes, --repetitions or --ranks");
  }
  return answer;
}

}  // namespace tokamak::bench
