#include "sim/cluster/host.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "lib/verbs/soft/device.h"
#include "sim/cluster/cluster.h"
#include "sim/costs/costed_device.h"

namespace tokamak::sim {

namespace {

constexpr uint16_t kPort = 7000;

uint8_t ByteAt(const base::ObjectId& id, base::Generation generation, uint64_t i) {
  const uint64_t x =
      ((uint64_t{id.data()[i % 8]} << 32 | (i + 1)) + static_cast<uint64_t>(generation)) * 0x9e3779b97f4a7c15;
  return static_cast<uint8_t>(x >> 56);
}

CopySpeed CopyingOf(const ClusterOptions& options) {
  return options.costs.has_value() ? CopySpeedOf(*options.costs) : CopySpeed();
}

}  // namespace

Host::Host(Cluster& c, uint32_t i, const HostOptions& o, uint64_t incarnation, const std::string& ip)
    : cluster(c),
      index(i),
      options(o),
      name(absl::StrCat("n", i)),
      own_loop_(c.time.MakeLoop(CopyingOf(c.options))),
      loop(*own_loop_),
      address(*verbs::Address::Parse(ip.empty() ? Cluster::IpOf(i) : ip)),
      nic_loop_(c.time.MakeLoop()),
      memory_(new Block[o.memory / sizeof(Block)]) {
  OpenDevice(incarnation);
  const transport::Rail rail{*device_, *domain_, *registration_};
  auto node = SimulatedNode::Assemble(cluster.time, loop, arena(), absl::MakeConstSpan(&rail, 1), cluster.trace,
                                      NodeOptions(incarnation));
  CHECK(node.ok()) << node.status();
  node_ = *std::move(node);
  me = store().NewOwner();
  machine().Start([](const absl::Status&) {});
}

SimulatedNodeOptions Host::NodeOptions(uint64_t incarnation) const {
  SimulatedNodeOptions node;
  node.engines = options.engines;
  node.copying = CopyingOf(cluster.options);
  node.serves_directory = index == 0;
  node.served.recovery = cluster.options.directory_recovery;
  node.served.waiting = cluster.options.directory_waiting;
  node.served.tombstones = cluster.options.directory_tombstones;
  node.directory = *verbs::Address::Parse(Cluster::IpOf(0));
  node.directory.port = kPort;
  node::MachineOptions& machine = node.machine;
  machine.node.id = name;
  machine.node.incarnation = incarnation;
  machine.node.device = "soft";
  machine.node.membership = cluster.options.membership;
  machine.node.peers = cluster.options.peers;
  machine.node.pulls = cluster.options.pulls;
  machine.store.cache = options.cache;
  machine.store.node = index;
  machine.listen = address;
  machine.listen.port = kPort;
  machine.endpoint = cluster.options.endpoint;
  machine.endpoint.trace_node = index;
  machine.max_engine_calls = cluster.options.max_engine_calls;
  machine.node.trace_node = index;
  machine.seed = cluster.options.seed * 1'000'003 + index * 1009 + incarnation;
  return node;
}

Host::~Host() = default;

void Host::OpenDevice(uint64_t incarnation) {
  verbs::soft::DeviceOptions device_options;
  device_options.name = absl::StrCat("soft:", name);
  device_options.address = address;
  device_options.seed = cluster.options.seed * 1000 + index * 100 + incarnation;
  device_options.trace_node = index;
  auto device = verbs::soft::OpenSoftDevice(*nic_loop_, cluster.network.fabric(), cluster.trace, device_options);
  CHECK(device.ok()) << device.status();
  device_ = *std::move(device);
  if (cluster.options.costs.has_value()) {
    device_ = WithCosts(std::move(device_), *cluster.options.costs, [&time = cluster.time] { return time.running(); });
  }
  domain_ = *device_->CreateProtectionDomain();
  RegisterMemory();
}

void Host::RegisterMemory() {
  const std::string& how = cluster.options.registration;
  if (how == "on_demand") {
    registration_ = transport::RegisterOnDemand(*device_, *domain_);
  } else if (how == "cached") {
    registration_ = transport::RegisterCached(*device_, *domain_, arena());
  } else {
    CHECK_EQ(how, "arena");
    auto registration = transport::RegisterArena(*device_, *domain_, arena());
    CHECK(registration.ok()) << registration.status();
    registration_ = *std::move(registration);
  }
}

absl::Status Host::Create(const std::string& object, uint64_t data_size, uint64_t metadata_size,
                          const base::ObjectName& kept) {
  const base::ObjectId id = base::ObjectId::FromName(object);
  const auto place = store().Create(id, data_size, metadata_size, me, kept);
  if (!place.ok()) return place.status();
  const absl::Span<uint8_t> bytes = store().Memory(*place);
  for (uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteAt(id, place->generation, i);
  return absl::OkStatus();
}

absl::Status Host::Seal(const std::string& object) { return store().Seal(base::ObjectId::FromName(object), me); }

absl::Status Host::Put(const std::string& object, uint64_t data_size, uint64_t metadata_size,
                       const base::ObjectName& kept) {
  absl::Status status = Create(object, data_size, metadata_size, kept);
  return status.ok() ? Seal(object) : status;
}

std::shared_ptr<Got> Host::StartGet(const std::vector<std::string>& objects, const node::GetOptions& get_options) {
  std::vector<base::ObjectId> ids;
  for (const std::string& object : objects) ids.push_back(base::ObjectId::FromName(object));
  auto got = std::make_shared<Got>();
  got->handle = node().Get(ids, get_options, me, [this, got = got.get()](absl::Span<const node::GetResult> results) {
    if (got->done) cluster.Wrong("a get was answered twice");
    got->done = true;
    got->done_at = loop.Now();
    got->results.assign(results.begin(), results.end());
    for (const node::GetResult& result : got->results) {
      if (result.status.ok() != result.location.has_value()) cluster.Wrong("a get is OK without a place");
      if (result.location.has_value() && !IsRight(result.id, *result.location)) {
        cluster.Wrong(absl::StrCat(name, " was given wrong bytes"));
      }
    }
  });
  if (got->done) cluster.Wrong("a get was answered inside the call");
  return got;
}

void Host::Release(const std::string& object) {
  const absl::Status status = store().Release(base::ObjectId::FromName(object), me);
  if (!status.ok()) cluster.Wrong(status.ToString());
}

void Host::Release(const Got& got) {
  for (const node::GetResult& result : got.results) {
    if (!result.location.has_value()) continue;
    const absl::Status status = store().Release(result.id, me);
    if (!status.ok()) cluster.Wrong(status.ToString());
  }
}

bool Host::IsRight(const base::ObjectId& id, const store::Location& location) const {
  const absl::Span<const uint8_t> bytes = store().Bytes(location);
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != ByteAt(id, location.generation, i)) return false;
  }
  return true;
}

uint64_t Host::transfers_pulled(transport::Protocol protocol) const {
  uint64_t sum = 0;
  for (size_t i = 0; i < machine().engines(); ++i) {
    sum += machine().endpoint(i)->counters().transfers_pulled[static_cast<size_t>(protocol)];
  }
  return sum;
}

uint64_t Host::transfers_served() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < machine().engines(); ++i) sum += machine().endpoint(i)->counters().serves_started;
  return sum;
}

base::Pending Host::Leave(base::Duration limit, node::Evacuation::Callback evacuated, std::function<void()> drained) {
  const auto drain = [this, limit, evacuated = std::move(evacuated),
                      drained = std::move(drained)](const node::EvacuationReport& report) {
    evacuated(report);
    machine().Drain(limit, drained);
  };
  return node().Evacuate(
      limit, [](const node::EvacuationReport&) {}, drain);
}

void Host::Freeze(const Freezes& freezes) {
  freezes_.clear();
  const auto freeze = [this](base::EventLoop& frozen, base::Duration time) {
    freezes_.push_back(frozen.Post([&frozen, time] { frozen.Spend(time); }));
  };
  freeze(loop, freezes.control);
  freeze(*nic_loop_, freezes.device);
  for (base::EventLoop* engine : node_->engine_loops()) freeze(*engine, freezes.engines);
}

}  // namespace tokamak::sim
