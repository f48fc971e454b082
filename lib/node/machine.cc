#include "lib/node/machine.h"

#include <utility>

#include "lib/base/log.h"

namespace tokamak::node {

namespace {

constexpr base::Duration kDrainStep = base::Milliseconds(20);

enum Stream : uint64_t { kGenerations = 1, kNode = 2, kDirectory = 3, kFirstEngine = 16 };

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> Machine::Assemble(MachineParts parts, const MachineOptions& options) {
  auto machine = std::unique_ptr<Machine>(new Machine(parts.control));
  const base::Random random(options.seed);
  store::Options store = options.store;
  store.random = random.Fork(kGenerations);
  machine->store_ = std::make_unique<store::Store>(parts.arena, store, parts.control, parts.trace);
  if (absl::Status status = machine->OpenEngines(parts, options); !status.ok()) return status;
  auto directory = parts.directory(machine->engine(0), random.Fork(kDirectory));
  if (!directory.ok()) return directory.status();
  machine->directory_ = *std::move(directory);
  std::vector<Engine*> engines;
  for (const auto& place : machine->engines_) engines.push_back(&place->engine());
  machine->node_ = std::make_unique<Node>(parts.control, *machine->store_, machine->directory(), std::move(engines),
                                          random.Fork(kNode), parts.trace, options.node);
  machine->directory_->Serve(*machine->node_);
  return machine;
}

absl::Status Machine::OpenEngines(MachineParts& parts, const MachineOptions& options) {
  const base::Random random(options.seed);
  for (size_t i = 0; i <= parts.bulk.size(); ++i) {
    engines_.push_back(std::make_unique<Place>());
    Place& place = *engines_.back();
    if (i > 0) place.own = std::move(parts.bulk[i - 1]);
    EndpointParts endpoint{i == 0 ? parts.rails : parts.bulk_rails, options.listen, random.Fork(kFirstEngine + i),
                           parts.trace, options.endpoint};
    if (endpoint.listen.port != 0) endpoint.listen.port = static_cast<uint16_t>(endpoint.listen.port + i);
    const bool shares = place.own == nullptr || &place.own->loop() == &control_;
    const absl::Status status = shares ? OpenLocal(place, endpoint, options.max_engine_calls)
                                       : OpenThreaded(place, endpoint, options.max_engine_calls);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Machine::OpenLocal(Place& place, const EndpointParts& parts, size_t max_calls) {
  auto local = LocalEngine::Open(control_, parts, max_calls);
  if (local.ok()) place.local = *std::move(local);
  return local.status();
}

absl::Status Machine::OpenThreaded(Place& place, const EndpointParts& parts, size_t max_calls) {
  place.threaded = std::make_unique<ThreadedEngine>(control_, max_calls);
  absl::Status status;
  place.own->CallOn([&] {
    auto host = EngineHost::Open(place.own->loop(), *place.threaded, parts);
    status = host.status();
    if (host.ok()) place.host = *std::move(host);
  });
  return status;
}

// The order matters: first no peer touches the store any more; then the users of the engines may
// go.
Machine::~Machine() {
  StopEngines();
  node_.reset();
  directory_.reset();
}

void Machine::StopEngines() {
  for (const auto& place : engines_) {
    if (place->local != nullptr) place->local->Close();
    if (place->host != nullptr) place->own->CallOn([&] { place->host.reset(); });
    if (place->own != nullptr) place->own->Stop();
  }
}

void Machine::ForEachEndpoint(absl::FunctionRef<void(transport::Endpoint&)> call) {
  for (const auto& place : engines_) {
    transport::Endpoint* const endpoint = place->endpoint();
    if (endpoint == nullptr) continue;
    place->own == nullptr ? call(*endpoint) : place->own->CallOn([&] { call(*endpoint); });
  }
}

void Machine::Drain(base::Duration limit, std::function<void()> done) {
  drained_ = std::move(done);
  drain_until_ = control_.Now() + limit;
  node_->Leave([this](const absl::Status& status) {
    LOG_IF(WARNING, !status.ok()) << "could not leave the directory: " << status;
    drain_timer_ = control_.Post([this] { CheckDrained(); });  // the end may be near, and this is in an engine's call
  });
}

void Machine::CheckDrained() {
  if (control_.Now() >= drain_until_) return drained_();
  if (node_->pins_of_peers() == 0) return DrainEngines();
  drain_timer_ = control_.RunAfter(kDrainStep, [this] { CheckDrained(); });
}

// Messages hold bytes that are unpinned but not yet with the peers.
void Machine::DrainEngines() {
  drain_timer_ = control_.RunAt(drain_until_, [this] { drained_(); });
  engines_to_drain_ = engines_.size();
  for (const auto& place : engines_) {
    place->engine().Drain([this] {
      if (--engines_to_drain_ > 0 || !drain_timer_.armed()) return;
      drain_timer_.Cancel();
      drained_();
    });
  }
}

}  // namespace tokamak::node
