#include "sim/scenario/load/store_host.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/base/log.h"
#include "sim/costs/costed_device.h"
#include "sim/scenario/load/borrowed_device.h"
#include "sim/scenario/load/phantom_registration.h"

namespace tokamak::sim {
namespace {

constexpr uint16_t kPort = 7000;

// From the id.
uint64_t WordAt(const base::ObjectId& id, uint64_t i) {
  uint64_t seed;
  std::memcpy(&seed, id.data(), sizeof(seed));
  return (seed ^ i) * 0x9e3779b97f4a7c15;
}

void Fill(const base::ObjectId& id, absl::Span<uint8_t> bytes) {
  for (uint64_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = WordAt(id, i);
    std::memcpy(bytes.data() + i, &word, std::min<uint64_t>(8, bytes.size() - i));
  }
}

bool IsFilled(const base::ObjectId& id, absl::Span<const uint8_t> bytes) {
  for (uint64_t i = 0; i < bytes.size(); i += 8) {
    const uint64_t word = WordAt(id, i);
    if (std::memcmp(bytes.data() + i, &word, std::min<uint64_t>(8, bytes.size() - i)) != 0) return false;
  }
  return true;
}

std::string NodeName(uint32_t host) { return absl::StrCat("n", host); }

}  // namespace

// Only touched pages exist.
class StoreHost::Memory final {
 public:
  explicit Memory(size_t size) : size_(size) {
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    PCHECK(memory != MAP_FAILED) << "mmap of " << size << " bytes";
    bytes_ = static_cast<uint8_t*>(memory);
  }
  ~Memory() { munmap(bytes_, size_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  absl::Span<uint8_t> all() const { return {bytes_, size_}; }

 private:
  const size_t size_;
  uint8_t* bytes_;
};

StoreHost::StoreHost(VirtualTime& time, const Scenario& scenario, uint32_t number)
    : time_(time),
      scenario_(scenario),
      number_(number),
      loop_(time.MakeLoop(CopySpeedOf(costs()))),
      memory_(std::make_unique<Memory>(scenario.store.memory)) {}

StoreHost::~StoreHost() = default;

absl::StatusOr<std::unique_ptr<StoreHost>> StoreHost::Open(VirtualTime& time, const Scenario& scenario, uint32_t number,
                                                           absl::Span<verbs::Device* const> devices) {
  std::unique_ptr<StoreHost> host(new StoreHost(time, scenario, number));
  for (verbs::Device* device : devices) {
    if (absl::Status s = host->OpenRail(*device); !s.ok()) return s;
  }
  std::vector<transport::Rail> rails;
  for (const Rail& rail : host->rails_) rails.push_back({*rail.device, *rail.domain, *rail.registration});
  auto node =
      SimulatedNode::Assemble(time, *host->loop_, host->memory_->all(), rails, host->trace_, host->NodeOptions());
  if (!node.ok()) return node.status();
  host->node_ = *std::move(node);
  host->me_ = host->machine().store().NewOwner();
  return host;
}

absl::Status StoreHost::OpenRail(verbs::Device& device) {
  Rail& rail = rails_.emplace_back();
  rail.device =
      WithCosts(std::make_unique<BorrowedDevice>(device), costs(), [&time = time_] { return time.running(); });
  auto domain = rail.device->CreateProtectionDomain();
  if (!domain.ok()) return domain.status();
  rail.domain = *std::move(domain);
  auto registration = scenario_.phantom ? PhantomRegistration::Register(*rail.domain, memory_->all())
                                        : transport::RegisterArena(*rail.device, *rail.domain, memory_->all());
  if (!registration.ok()) return registration.status();
  rail.registration = *std::move(registration);
  return absl::OkStatus();
}

SimulatedNodeOptions StoreHost::NodeOptions() {
  SimulatedNodeOptions options;
  options.engines = scenario_.store.engines;
  options.copying = CopySpeedOf(costs());
  options.serves_directory = number_ == 0;
  options.directory = scenario_.topology.hosts[0].addresses[0];
  options.directory.port = kPort;
  node::MachineOptions& machine = options.machine;
  machine.node.id = NodeName(number_);
  machine.node.device = "soft";
  machine.node.pulls.on_pulled = [this](const base::ObjectId& id, const directory::NodeId& holder,
                                        transport::Protocol protocol) {
    uint32_t host = 0;
    CHECK(absl::SimpleAtoi(holder.substr(1), &host)) << holder;
    pulled_[id] = {absl::OkStatus(), protocol, host};
  };
  machine.store.node = number_;
  machine.listen = scenario_.topology.hosts[number_].addresses[0];
  machine.listen.port = kPort;
  machine.endpoint = scenario_.store.endpoint;
  // Slots of connections in use.
  if (scenario_.store.connect_before) machine.endpoint.first_slots = machine.endpoint.receive_slots;
  machine.endpoint.reliability.ack_timeout = scenario_.nic.ack_timeout;
  machine.endpoint.reliability.retry_count = static_cast<uint8_t>(scenario_.nic.retries);
  machine.endpoint.trace_node = number_;
  machine.node.trace_node = number_;
  machine.seed = scenario_.seed * 1'000'003 + number_;
  return options;
}

void StoreHost::Start() {
  machine().Start([](const absl::Status&) {});
}

bool StoreHost::settled() const {
  const node::Membership& membership = machine().node().membership();
  return membership.joined() && membership.behind() == 0;
}

void StoreHost::Put(const std::string& object, uint64_t bytes, Done done) {
  Asked& asked = *asked_.emplace_back(std::make_unique<Asked>());
  asked.begin = Later([this, &asked, id = base::ObjectId::FromName(object), bytes, done = std::move(done)] {
    StoreReport report;
    report.status = PutNow(id, bytes);
    asked.end = Later([report, done] { done(report); });
  });
}

absl::Status StoreHost::PutNow(const base::ObjectId& id, uint64_t bytes) {
  store::Store& store = machine().store();
  const auto place = store.Create(id, bytes, 0, me_);
  if (!place.ok()) return place.status();
  if (!scenario_.phantom) Fill(id, store.Memory(*place));
  return store.Seal(id, me_);
}

void StoreHost::Drop(const std::string& object) {
  const absl::Status status = machine().store().Delete(base::ObjectId::FromName(object));
  LOG_IF(ERROR, !status.ok() && !absl::IsNotFound(status)) << object << " cannot be dropped: " << status;
}

void StoreHost::Get(const std::string& object, transport::Protocol protocol, base::Duration timeout, Done done) {
  Asked& asked = *asked_.emplace_back(std::make_unique<Asked>());
  node::GetOptions options;
  options.timeout = timeout;
  options.protocol = protocol;
  asked.begin = Later([this, &asked, id = base::ObjectId::FromName(object), options, done = std::move(done)] {
    const bool was_here = machine().store().Contains(id);
    asked.get = machine().node().Get({id}, options, me_,
                                     [this, &asked, id, was_here, done](absl::Span<const node::GetResult> results) {
                                       Answer(id, was_here, results.front(), &asked, done);
                                     });
  });
}

void StoreHost::Answer(const base::ObjectId& id, bool was_here, const node::GetResult& result, Asked* asked,
                       const Done& done) {
  StoreReport report;
  if (!was_here) report = pulled_[id];
  report.status = result.status;
  if (result.location.has_value()) {
    store::Store& store = machine().store();
    if (!scenario_.phantom && !IsFilled(id, store.Bytes(*result.location))) right_ = false;
    CHECK(store.Release(id, me_).ok());
  }
  asked->end = Later([report, done] { done(report); });
}

}  // namespace tokamak::sim
