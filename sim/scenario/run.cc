#include "sim/scenario/run.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/units.h"

namespace tokamak::sim {

const char* ToString(Run::Ending ending) {
  switch (ending) {
    case Run::Ending::kRunning:
      return "running";
    case Run::Ending::kFinished:
      return "finished";
    case Run::Ending::kFailed:
      return "failed";
    case Run::Ending::kFrozen:
      return "frozen";
    case Run::Ending::kDuration:
      return "duration over";
    case Run::Ending::kNotReady:
      return "not ready";
  }
  return "unknown";
}

absl::StatusOr<std::unique_ptr<Run>> Run::Build(VirtualTime& time, Scenario scenario) {
  std::unique_ptr<Run> run(new Run(time, std::move(scenario)));
  base::EventLoop& loop = *run->loop_;
  const Scenario& s = run->scenario_;
  FabricOptions options;
  options.seed = s.seed;
  auto fabric = SwitchedFabric::Build(loop, s.topology, options, nullptr);
  if (!fabric.ok()) return fabric.status();
  run->fabric_ = *std::move(fabric);
  run->ports_ = ListPorts(*run->fabric_);
  auto traffic = Traffic::Open(loop, *run->fabric_, s);
  if (!traffic.ok()) return traffic.status();
  run->traffic_ = *std::move(traffic);
  if (!s.objects.empty()) {
    const auto devices = [&run](uint32_t interface) -> verbs::Device& { return run->traffic_->device(interface); };
    auto stores = StoreHosts::Open(time, loop, s, devices);
    if (!stores.ok()) return stores.status();
    run->stores_ = *std::move(stores);
  }
  const uint8_t priority = options.interfaces.priority_of_dscp[s.nic.dscp];
  run->sampler_ = std::make_unique<Sampler>(loop, s.outputs, run->ports_, priority, *run->traffic_);
  for (const Transfer& one : s.transfers) run->total_bytes_ += one.bytes;
  return run;
}

void Run::Start() {
  begin_ = loop_->Now();
  if (stores_ == nullptr) return Begin();
  duration_ = loop_->RunAfter(kMostPreparation, [this] { End(Ending::kNotReady); });
  stores_->Prepare([this] { Begin(); });
}

void Run::Begin() {
  begin_ = loop_->Now();
  duration_ = loop_->RunAfter(scenario_.duration, [this] { End(Ending::kDuration); });
  ArmFreeze();
  sampler_->Start();
  traffic_->Start(stores_.get());
}

bool Run::over() {
  if (ending_ == Ending::kRunning && traffic_->over()) {
    const auto& progress = traffic_->progress();
    const bool well = std::all_of(progress.begin(), progress.end(),
                                  [](const auto& one) { return one.state == Traffic::State::kFinished; });
    End(well ? Ending::kFinished : Ending::kFailed);
  }
  return ending_ != Ending::kRunning;
}

bool Run::PayloadIsRight() const {
  return traffic_->PayloadIsRight() && (stores_ == nullptr || stores_->payload_is_right());
}

double Run::PartDone() const {
  uint64_t sent = 0;
  for (const Traffic::GroupCounters& group : traffic_->Groups()) sent += group.bytes_sent;
  const double part =
      static_cast<double>(std::max(sent, traffic_->bytes_finished())) / static_cast<double>(total_bytes_);
  return std::min(1.0, part);
}

std::vector<std::string> Run::PausedQueues() const {
  std::vector<std::string> queues;
  for (const FabricPort& port : ports_) {
    const uint8_t priority = sampler_->priority();
    const uint64_t bytes = port.egress->queue(priority).bytes();
    if (bytes == 0 || !port.egress->paused(priority)) continue;
    queues.push_back(absl::StrCat(port.name(), " -> ", port.peer, ", ", base::FormatSize(bytes)));
  }
  return queues;
}

uint64_t Run::Transmissions() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < fabric_->links(); ++i) {
    for (uint32_t end = 0; end < 2; ++end) sum += fabric_->link(i, end).counters().sent;
  }
  return sum;
}

void Run::ArmFreeze() {
  moved_ = Moved();
  freeze_ = loop_->RunAfter(scenario_.freeze_after, [this] {
    if (Queued() != 0 && Moved() == moved_) return End(Ending::kFrozen);
    ArmFreeze();
  });
}

// Without pause frames, which never end in a frozen network.
uint64_t Run::Moved() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < fabric_->links(); ++i) {
    for (uint32_t end = 0; end < 2; ++end) {
      const LinkCounters& counters = fabric_->link(i, end).counters();
      sum += counters.sent - counters.pauses_sent;
    }
  }
  return sum;
}

uint64_t Run::Queued() const {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < fabric_->switches(); ++i) sum += fabric_->switch_at(i).queued();
  return sum;
}

void Run::End(Ending ending) {
  if (ending_ != Ending::kRunning) return;
  ending_ = ending;
  end_ = loop_->Now();
  if (ending != Ending::kNotReady) sampler_->Stop();
  freeze_.Cancel();
  duration_.Cancel();
}

}  // namespace tokamak::sim
