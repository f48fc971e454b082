#include "tests/node/cluster.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "glog/logging.h"

namespace tokamak::node {
namespace {

constexpr uint16_t kPort = 7000;

uint8_t ByteAt(const base::ObjectId& id, uint64_t i) {
  const uint64_t x = (uint64_t{id.data()[i % 8]} << 32 | (i + 1)) * 0x9e3779b97f4a7c15;
  return static_cast<uint8_t>(x >> 56);
}

}  // namespace

// ---- Machine

Machine::Machine(Cluster& c, uint32_t i, const MachineOptions& o, uint64_t incarnation, const std::string& ip)
    : cluster(c),
      index(i),
      options(o),
      name(absl::StrCat("n", i)),
      loop(c.scheduler),
      address(*verbs::Address::Parse(ip.empty() ? absl::StrCat("10.0.0.", i + 1) : ip)),
      nic_loop_(c.scheduler),
      memory_(new Block[o.memory / sizeof(Block)]) {
  store::Options store_options;
  store_options.cache = options.cache;
  store_options.node = index;
  store_options.random = base::Random(cluster.options.seed).Fork(index).Fork(incarnation);
  store = std::make_unique<store::Store>(absl::MakeSpan(memory_[0].bytes, options.memory), store_options, loop,
                                         cluster.trace);
  me = store->NewOwner();
  OpenDevice(incarnation);
  OpenEngines(incarnation);
  OpenDirectory();
  NodeOptions node_options;
  node_options.id = name;
  node_options.incarnation = incarnation;
  node_options.device = "soft";
  node_options.membership = cluster.options.membership;
  node_options.peers = cluster.options.peers;
  node_options.pulls = cluster.options.pulls;
  std::vector<EngineLink*> links;
  for (const auto& engine : engines_.all) links.push_back(&engine->link);
  directory::Directory& directory =
      served != nullptr ? static_cast<directory::Directory&>(*served) : static_cast<directory::Directory&>(*remote_);
  node = std::make_unique<Node>(loop, *store, directory, links, base::Random(cluster.options.seed).Fork(index),
                                node_options);
  if (server_ != nullptr) {
    node->services().Register(
        Service::kDirectory,
        [this](absl::Span<const uint8_t> request, const Services::Reply& reply) { server_->Handle(request, reply); });
  }
  node->Start([](const absl::Status&) {});
}

Machine::~Machine() {
  engines_.clear_hosts();
  node.reset();
}

void Machine::OpenDevice(uint64_t incarnation) {
  verbs::soft::DeviceOptions device_options;
  device_options.name = absl::StrCat("soft:", name);
  device_options.address = address;
  device_options.seed = cluster.options.seed * 1000 + index * 100 + incarnation;
  device_options.trace_node = index;
  auto device = verbs::soft::OpenSoftDevice(nic_loop_, cluster.fabric, cluster.trace, device_options);
  CHECK(device.ok()) << device.status();
  device_ = *std::move(device);
  domain_ = *device_->CreateProtectionDomain();
  auto registration = transport::RegisterArena(*device_, *domain_, absl::MakeSpan(memory_[0].bytes, options.memory));
  CHECK(registration.ok()) << registration.status();
  registration_ = *std::move(registration);
}

void Machine::OpenEngines(uint64_t incarnation) {
  for (uint32_t i = 0; i < std::max(options.engines, 1u); ++i) {
    engines_.all.push_back(std::make_unique<Engine>(loop));
    Engine& engine = *engines_.all.back();
    if (options.engines > 0) {
      engine.own_loop = std::make_unique<sim::SimLoop>(cluster.scheduler);
      engine.loop = engine.own_loop.get();
    }
    verbs::Address listen = address;
    listen.port = static_cast<uint16_t>(kPort + i);
    transport::EndpointOptions endpoint = cluster.options.endpoint;
    endpoint.trace_node = index;
    auto host = EngineHost::Open(*engine.loop, engine.link, {{*device_, *domain_, *registration_}}, listen,
                                 base::Random(cluster.options.seed * 7919 + index * 31 + i + incarnation * 1013),
                                 cluster.trace, endpoint);
    CHECK(host.ok()) << host.status();
    engine.host = *std::move(host);
  }
}

void Machine::OpenDirectory() {
  EngineLink& link = engines_.all.front()->link;
  if (index == 0) {
    served = std::make_unique<directory::LocalDirectory>(loop);
    server_ = std::make_unique<directory::DirectoryServer>(*served, link.max_call_size() - 1);
    return;
  }
  verbs::Address server = *verbs::Address::Parse("10.0.0.1");
  server.port = kPort;
  directory_caller_ = std::make_unique<ServiceCaller>(link, Service::kDirectory);
  remote_ = std::make_unique<directory::RemoteDirectory>(loop, *directory_caller_, server);
}

absl::Status Machine::Create(const std::string& object, uint64_t data_size, uint64_t metadata_size) {
  const base::ObjectId id = base::ObjectId::FromName(object);
  const auto place = store->Create(id, data_size, metadata_size, me);
  if (!place.ok()) return place.status();
  const absl::Span<uint8_t> bytes = store->Memory(*place);
  for (uint64_t i = 0; i < bytes.size(); ++i) bytes[i] = ByteAt(id, i);
  return absl::OkStatus();
}

absl::Status Machine::Seal(const std::string& object) { return store->Seal(base::ObjectId::FromName(object), me); }

absl::Status Machine::Put(const std::string& object, uint64_t data_size, uint64_t metadata_size) {
  absl::Status status = Create(object, data_size, metadata_size);
  return status.ok() ? Seal(object) : status;
}

std::shared_ptr<Got> Machine::StartGet(const std::vector<std::string>& objects, const GetOptions& get_options) {
  std::vector<base::ObjectId> ids;
  for (const std::string& object : objects) ids.push_back(base::ObjectId::FromName(object));
  auto got = std::make_shared<Got>();
  got->handle = node->Get(ids, get_options, me, [this, got = got.get()](absl::Span<const GetResult> results) {
    EXPECT_FALSE(got->done) << "a get was answered twice";
    got->done = true;
    got->done_at = loop.Now();
    got->results.assign(results.begin(), results.end());
    for (const GetResult& result : got->results) {
      EXPECT_EQ(result.status.ok(), result.location.has_value());
      EXPECT_TRUE(!result.location.has_value() || IsRight(result.id, *result.location)) << "wrong bytes";
    }
  });
  EXPECT_FALSE(got->done) << "a get was answered inside the call";
  return got;
}

void Machine::Release(const std::string& object) {
  EXPECT_TRUE(store->Release(base::ObjectId::FromName(object), me).ok());
}

void Machine::Release(const Got& got) {
  for (const GetResult& result : got.results) {
    if (!result.location.has_value()) continue;
    EXPECT_EQ(store->Release(result.id, me), absl::OkStatus());
  }
}

bool Machine::IsRight(const base::ObjectId& id, const store::Location& location) const {
  const absl::Span<const uint8_t> bytes = store->Bytes(location);
  for (uint64_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != ByteAt(id, i)) return false;
  }
  return true;
}

uint64_t Machine::transfers_pulled(transport::Protocol protocol) const {
  uint64_t sum = 0;
  for (const auto& engine : engines_.all) {
    sum += engine->host->endpoint().counters().transfers_pulled[static_cast<size_t>(protocol)];
  }
  return sum;
}

uint64_t Machine::transfers_served() const {
  uint64_t sum = 0;
  for (const auto& engine : engines_.all) sum += engine->host->endpoint().counters().serves_started;
  return sum;
}

void Machine::Freeze(const Freezes& freezes) {
  freezes_.clear();
  const auto freeze = [this](sim::SimLoop& frozen, base::Duration time) {
    freezes_.push_back(frozen.Post([&frozen, time] { frozen.Spend(time); }));
  };
  freeze(loop, freezes.control);
  freeze(nic_loop_, freezes.device);
  for (const auto& engine : engines_.all) {
    if (engine->own_loop != nullptr) freeze(*engine->own_loop, freezes.engines);
  }
}

// ---- Cluster

Cluster::Cluster(const ClusterOptions& o)
    : options(o), wire_loop(scheduler), fabric(wire_loop, o.seed, {o.link}, trace) {}

Cluster::~Cluster() = default;

Machine& Cluster::Add(const MachineOptions& machine_options) {
  machine_options_.push_back(machine_options);
  incarnations_.push_back(1);
  machines_.push_back(std::make_unique<Machine>(*this, static_cast<uint32_t>(machines_.size()), machine_options, 1));
  return *machines_.back();
}

void Cluster::Crash(size_t i) {
  // First the wire: what dies in order says goodbye.
  const verbs::Address address = machines_[i]->address;
  fabric.Partition({address});
  machines_[i].reset();
  fabric.Heal();
}

void Cluster::Restart(size_t i, const std::string& ip) {
  machines_[i] =
      std::make_unique<Machine>(*this, static_cast<uint32_t>(i), machine_options_[i], ++incarnations_[i], ip);
}

bool Cluster::RunUntil(const std::function<bool()>& done, base::Duration limit) {
  return scheduler.RunUntil(done, scheduler.Now() + limit);
}

void Cluster::Settle() {
  RunFor(base::Microseconds(1));  // what was just sealed is known to the node
  EXPECT_TRUE(RunUntil([this] {
    return std::all_of(machines_.begin(), machines_.end(), [](const auto& machine) {
      return machine == nullptr || (machine->node->membership().joined() && machine->node->membership().behind() == 0);
    });
  })) << "the directory does not get up to date";
}

void Cluster::Await(const std::shared_ptr<Got>& got, base::Duration limit) {
  EXPECT_TRUE(RunUntil([&] { return got->done; }, limit)) << "a get was not answered";
}

std::vector<absl::Status> Cluster::GetAll(Machine& machine, const std::vector<std::string>& names, GetOptions get) {
  if (get.timeout == base::Duration()) get.timeout = base::Seconds(60);
  const auto got = machine.StartGet(names, get);
  Await(got);
  machine.Release(*got);
  std::vector<absl::Status> statuses;
  for (const GetResult& result : got->results) statuses.push_back(result.status);
  return statuses;
}

absl::Status Cluster::Get(Machine& machine, const std::string& name, GetOptions get) {
  const auto statuses = GetAll(machine, {name}, get);
  return statuses.empty() ? absl::InternalError("no answer") : statuses.front();
}

absl::StatusOr<DeleteResult> Cluster::Delete(Machine& machine, const std::string& name) {
  absl::StatusOr<DeleteResult> result = absl::InternalError("no answer");
  bool done = false;
  machine.node->Delete(base::ObjectId::FromName(name), [&](absl::StatusOr<DeleteResult> deleted) {
    done = true;
    result = std::move(deleted);
  });
  EXPECT_FALSE(done) << "a delete was answered inside the call";
  EXPECT_TRUE(RunUntil([&] { return done; }));
  return result;
}

void Cluster::ExpectClean() {
  const auto quiet = [this] {
    return std::all_of(machines_.begin(), machines_.end(), [](const auto& machine) {
      return machine == nullptr || (machine->node->pulls().running() == 0 && machine->node->pins_of_peers() == 0);
    });
  };
  EXPECT_TRUE(RunUntil(quiet, base::Seconds(400))) << "something never ends";
  for (const auto& machine : machines_) {
    if (machine == nullptr) continue;
    const store::Statistics statistics = machine->store->statistics();
    EXPECT_EQ(machine->store->CheckConsistency(), absl::OkStatus()) << machine->name;
    EXPECT_EQ(statistics.pins, 0u) << machine->name;
    EXPECT_EQ(statistics.unsealed_objects, 0u) << machine->name;
    EXPECT_EQ(statistics.lingering_objects, 0u) << machine->name;
    EXPECT_EQ(statistics.waiting, 0u) << machine->name;
    EXPECT_EQ(statistics.lost(), 0) << machine->name;
  }
}

}  // namespace tokamak::node
