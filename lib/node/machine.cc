#include "lib/node/machine.h"

#include <utility>

#include "lib/base/log.h"

namespace tokamak::node {

namespace {

constexpr base::Duration kDrainStep = base::Milliseconds(20);

enum Stream : uint64_t { kGenerations = 1, kNode = 2, kDirectory = 3, kFirstEngine = 16 };

void CallOn(EngineLoop* own, absl::FunctionRef<void()> call) { own == nullptr ? call() : own->CallOn(call); }

}  // namespace

absl::StatusOr<std::unique_ptr<Machine>> Machine::Assemble(MachineParts parts, const MachineOptions& options) {
  auto machine = std::unique_ptr<Machine>(new Machine(parts.control));
  const base::Random random(options.seed);
  store::Options store = options.store;
  store.random = random.Fork(kGenerations);
  machine->store_ = std::make_unique<store::Store>(parts.arena, store, parts.control, parts.trace);
  if (absl::Status status = machine->OpenEngines(parts, options); !status.ok()) return status;
  auto directory = parts.directory(machine->link(0), random.Fork(kDirectory));
  if (!directory.ok()) return directory.status();
  machine->directory_ = *std::move(directory);
  std::vector<EngineLink*> links;
  for (const auto& engine : machine->engines_) links.push_back(&engine->link);
  machine->node_ = std::make_unique<Node>(parts.control, *machine->store_, machine->directory(), std::move(links),
                                          random.Fork(kNode), parts.trace, options.node);
  machine->directory_->Serve(*machine->node_);
  return machine;
}

absl::Status Machine::OpenEngines(MachineParts& parts, const MachineOptions& options) {
  const base::Random random(options.seed);
  for (size_t i = 0; i <= parts.bulk.size(); ++i) {
    engines_.push_back(std::make_unique<Engine>(parts.control, options.max_engine_calls));
    Engine& engine = *engines_.back();
    if (i > 0) engine.own = std::move(parts.bulk[i - 1]);
    base::EventLoop& loop = engine.own == nullptr ? parts.control : engine.own->loop();
    verbs::Address listen = options.listen;
    if (listen.port != 0) listen.port = static_cast<uint16_t>(listen.port + i);
    absl::Status status;
    CallOn(engine.own.get(), [&] {
      auto host = EngineHost::Open(loop, engine.link, i == 0 ? parts.rails : parts.bulk_rails, listen,
                                   random.Fork(kFirstEngine + i), parts.trace, options.endpoint);
      status = host.status();
      if (host.ok()) engine.host = *std::move(host);
    });
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// First no peer touches the store any more; then the links' users go.
Machine::~Machine() {
  StopEngines();
  node_.reset();
  directory_.reset();
}

void Machine::StopEngines() {
  for (const auto& engine : engines_) {
    CallOn(engine->own.get(), [&] { engine->host.reset(); });
    if (engine->own != nullptr) engine->own->Stop();
  }
}

void Machine::Drain(base::Duration limit, std::function<void()> done) {
  drained_ = std::move(done);
  drain_until_ = control_.Now() + limit;
  node_->Leave([this](const absl::Status& status) {
    LOG_IF(WARNING, !status.ok()) << "could not leave the directory: " << status;
    CheckDrained();
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
  for (const auto& engine : engines_) {
    engine->link.Drain([this] {
      if (--engines_to_drain_ > 0 || !drain_timer_.armed()) return;
      drain_timer_.Cancel();
      drained_();
    });
  }
}

}  // namespace tokamak::node
