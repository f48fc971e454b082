#include "tests/transport/world.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "lib/base/check.h"
#include "sim/network/loopback_fabric.h"
#include "tests/transport/limited_device.h"

namespace tokamak::transport::testing {
namespace {

constexpr uint16_t kServicePort = 7000;
constexpr uint8_t kSpoiled = 0xdd;
constexpr uint8_t kGivenBack = 0xee;

uint64_t SeedOf(const base::ObjectId& id) {
  uint64_t seed;
  std::memcpy(&seed, id.data(), sizeof(seed));
  return seed | 1;
}

uint64_t WordAt(uint64_t seed, uint64_t i) {
  const uint64_t x = (seed + i) * 0x9e3779b97f4a7c15;
  return x ^ x >> 29;
}

}  // namespace

absl::Span<uint8_t> FakeArena::Take(uint64_t size) {
  CHECK_LE(used_ + size, size_) << "the test needs a larger arena";
  const absl::Span<uint8_t> taken(memory_.get() + used_, size);
  used_ += (size + 63) / 64 * 64;
  return taken;
}

void FillObject(const base::ObjectId& id, absl::Span<uint8_t> memory) {
  const uint64_t seed = SeedOf(id);
  for (uint64_t at = 0; at < memory.size(); at += 8) {
    const uint64_t word = WordAt(seed, at);
    std::memcpy(memory.data() + at, &word, std::min<uint64_t>(8, memory.size() - at));
  }
}

bool IsObject(const base::ObjectId& id, absl::Span<const uint8_t> memory) {
  const uint64_t seed = SeedOf(id);
  for (uint64_t at = 0; at < memory.size(); at += 8) {
    const uint64_t word = WordAt(seed, at);
    if (std::memcmp(memory.data() + at, &word, std::min<uint64_t>(8, memory.size() - at)) != 0) return false;
  }
  return true;
}

// ---- FakeSource

void FakeSource::Add(const base::ObjectId& id, absl::Span<uint8_t> memory, uint64_t metadata_size) {
  if (!memory.empty()) std::memset(memory.data(), kSpoiled, memory.size());
  objects_[id] = {memory, metadata_size, 0};
}

void FakeSource::Pin(const base::ObjectVersion& version, PinId pin, PinCallback done) {
  last_version_ = version;
  ++pins_ever_;
  OnePin& one = pins_[pin];
  EXPECT_EQ(one.done, nullptr) << "a pin's number was used twice";
  one.id = version.id;
  one.done = std::move(done);
  one.answer = loop_.RunAfter(delay_, [this, pin] { Answer(pin); });
}

void FakeSource::Answer(PinId pin) {
  OnePin& one = pins_.at(pin);
  const PinCallback done = std::move(one.done);
  auto object = objects_.find(one.id);
  if (object == objects_.end()) {
    pins_.erase(pin);
    return done(absl::NotFoundError("not here"));
  }
  one.granted = true;
  if (object->second.pinned++ == 0) FillObject(one.id, object->second.memory);
  PinnedObject pinned;
  pinned.address = object->second.memory.data();
  pinned.size = {object->second.memory.size() - object->second.metadata_size, object->second.metadata_size};
  done(pinned);
}

void FakeSource::Unpin(PinId pin) {
  auto one = pins_.find(pin);
  ASSERT_NE(one, pins_.end()) << "a pin was given back that is not held";
  if (one->second.granted) {
    Object& object = objects_.at(one->second.id);
    if (--object.pinned == 0 && !object.memory.empty()) {
      std::memset(object.memory.data(), kSpoiled, object.memory.size());
    }
  }
  pins_.erase(one);
}

// ---- FakeSink

class FakeSink final : public Sink {
 public:
  FakeSink(Node& node, SinkOptions options, const ObjectSize& size, std::shared_ptr<Outcome> outcome)
      : node_(node), options_(std::move(options)), outcome_(std::move(outcome)) {
    outcome_->memory = options_.memory;
    if (!options_.memory.empty() || size.total() == 0) return;
    outcome_->memory = node_.arena.Take(size.total());
    std::memset(outcome_->memory.data(), kGivenBack, size.total());
  }

  ~FakeSink() override { outcome_->dropped = true; }

  absl::Span<uint8_t> memory() const override { return outcome_->memory; }

  void Done(const absl::Status& status, const TransferReport& report) override {
    EXPECT_FALSE(outcome_->done) << "Done came twice";
    outcome_->done = true;
    outcome_->status = status;
    outcome_->report = report;
    outcome_->done_at = node_.loop.Now();
    absl::Span<uint8_t> memory = outcome_->memory;
    if (status.ok()) {
      outcome_->right = memory.size() == report.size.total() && IsObject(outcome_->id, memory);
    } else if (!memory.empty() && !options_.keep) {
      std::memset(memory.data(), kGivenBack, memory.size());
      node_.given_back_.push_back(memory);
    }
    if (options_.on_done) options_.on_done(*outcome_);
  }

 private:
  Node& node_;
  const SinkOptions options_;
  const std::shared_ptr<Outcome> outcome_;
};

// ---- Node

Node::Node(World& w, uint32_t i, const NodeOptions& o)
    : world(w),
      index(i),
      options(o),
      own_loop(w.time.MakeLoop()),
      own_nic_loop(w.time.MakeLoop()),
      loop(*own_loop),
      nic_loop(*own_nic_loop),
      arena(o.arena_size),
      source(loop),
      rails(o.rails),
      device(rails[0].device),
      domain(rails[0].domain),
      registration(rails[0].registration) {
  for (uint32_t rail = 0; rail < options.rails; ++rail) rails[rail] = MakeRail(rail);
  service = address = device->address();
  service.port = kServicePort;
  Reopen();
}

Node::RailParts Node::MakeRail(uint32_t rail) {
  RailParts parts;
  verbs::soft::DeviceOptions device_options;
  device_options.name = absl::StrCat("soft:test", index);
  if (rail > 0) absl::StrAppend(&device_options.name, ".", rail);
  device_options.address = *verbs::Address::Parse(absl::StrCat("10.", index / 250, ".", rail, ".", index % 250 + 1));
  device_options.seed = world.options.seed * 100 + index + 1000003 * rail;
  device_options.trace_node = index;
  auto opened = verbs::soft::OpenSoftDevice(nic_loop, *world.fabric, world.trace, device_options);
  CHECK(opened.ok()) << opened.status();
  parts.device = *std::move(opened);
  if (options.like_iwarp) parts.device = LikeIwarp(std::move(parts.device));
  if (options.wrap) parts.device = options.wrap(std::move(parts.device));
  auto made = parts.device->CreateProtectionDomain();
  CHECK(made.ok()) << made.status();
  parts.domain = *std::move(made);
  if (options.on_demand) {
    parts.registration = RegisterOnDemand(*parts.device, *parts.domain);
  } else if (options.cached) {
    parts.registration = RegisterCached(*parts.device, *parts.domain, arena.all());
  } else {
    auto registered = RegisterArena(*parts.device, *parts.domain, arena.all());
    CHECK(registered.ok()) << registered.status();
    parts.registration = *std::move(registered);
  }
  return parts;
}

Node::~Node() { endpoint.reset(); }

void Node::Reopen() {
  EndpointOptions endpoint_options = options.endpoint;
  endpoint_options.trace_node = index;
  endpoint_options.security = options.security.value_or(SecurityUnderTest());
  std::vector<Rail> all;
  for (const RailParts& rail : rails) all.push_back({*rail.device, *rail.domain, *rail.registration});
  auto opened =
      Endpoint::Open(loop, all, source, base::Random(world.options.seed).Fork(index), world.trace, endpoint_options);
  CHECK(opened.ok()) << opened.status();
  endpoint = *std::move(opened);
  const absl::Status listening = endpoint->Listen(service);
  CHECK(listening.ok()) << listening;
}

base::ObjectId Node::AddObject(uint64_t data_size, uint64_t metadata_size) {
  const base::ObjectId id = base::ObjectId::FromName(absl::StrCat(index, "/", sizes.size()));
  sizes[id] = {data_size, metadata_size};
  source.Add(id, arena.Take(data_size + metadata_size), metadata_size);
  return id;
}

PullRequest Node::Request(const Node& owner, const base::ObjectId& id, Protocol protocol) const {
  PullRequest request;
  request.id = id;
  request.owner = owner.service;
  auto size = owner.sizes.find(id);
  if (size != owner.sizes.end()) request.size = size->second;
  request.protocol = protocol;
  return request;
}

std::shared_ptr<Outcome> Node::Pull(const PullRequest& request, const SinkOptions& sink) {
  auto outcome = std::make_shared<Outcome>();
  outcome->id = request.id;
  outcome->pull = endpoint->StartPull(request, std::make_unique<FakeSink>(*this, sink, request.size, outcome));
  EXPECT_FALSE(outcome->done) << "Done ran inside StartPull";
  return outcome;
}

std::shared_ptr<Outcome> Node::Pull(const Node& owner, const base::ObjectId& id, Protocol protocol,
                                    const SinkOptions& sink) {
  return Pull(Request(owner, id, protocol), sink);
}

void Node::ExpectNothingWasTouched() const {
  for (absl::Span<uint8_t> memory : given_back_) {
    EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](uint8_t b) { return b == kGivenBack; }))
        << "memory of a failed pull was written after it was given back";
  }
}

// ---- World

sim::LinkOptions FastLink() {
  sim::LinkOptions link;
  link.picoseconds_per_byte = 80;
  return link;
}

namespace {

constexpr uint32_t kMostNodes = 100;  // and other peers, by the last byte of their address

sim::NetworkOptions NetworkOf(const WorldOptions& options) {
  sim::NetworkOptions network;
  network.seed = options.seed;
  network.link = options.link;
  network.hosts = kMostNodes;
  network.rails = kMaxRails;
  return network;
}

}  // namespace

World::World(const WorldOptions& o)
    : options(o),
      network(MakeNetworkUnderTest(NetworkOf(options), trace)),
      time(network->time()),
      loopback(options.loopback ? std::make_unique<sim::LoopbackFabric>() : nullptr),
      fabric(options.loopback ? loopback.get() : &network->fabric()) {}

World::~World() {
  for (auto& node : nodes_) node->DropEndpoint();
  for (auto& node : nodes_) EXPECT_EQ(node->source.pins(), 0u) << "pins were kept by node " << node->index;
}

Node& World::Add(const NodeOptions& node_options) {
  nodes_.push_back(std::make_unique<Node>(*this, static_cast<uint32_t>(nodes_.size()), node_options));
  return *nodes_.back();
}

bool World::RunUntil(const std::function<bool()>& done, base::Duration limit) {
  return time.RunUntil(done, time.Now() + limit);
}

bool World::Finish(const std::shared_ptr<Outcome>& outcome, base::Duration limit) {
  return RunUntil([&outcome] { return outcome->done; }, limit) && outcome->dropped;
}

void World::CutRail(const Node& a, const Node& b, uint32_t rail) {
  network->Cut(a.AddressOf(rail), b.AddressOf(rail));
  network->Cut(b.AddressOf(rail), a.AddressOf(rail));
}

void World::MendRail(const Node& a, const Node& b, uint32_t rail) {
  network->Mend(a.AddressOf(rail), b.AddressOf(rail));
  network->Mend(b.AddressOf(rail), a.AddressOf(rail));
}

void World::ExpectClean() {
  const auto pins = [this] {
    size_t sum = 0;
    for (auto& node : nodes_) sum += node->source.pins();
    return sum;
  };
  EXPECT_TRUE(RunUntil([&pins] { return pins() == 0; }, base::Seconds(400))) << pins() << " pins were never given back";
  for (auto& node : nodes_) {
    node->ExpectNothingWasTouched();
    if (node->endpoint == nullptr) continue;
    const EndpointCounters& counters = node->endpoint->counters();
    EXPECT_EQ(counters.pulls_started, counters.pulls_ok + counters.pulls_failed);
    EXPECT_EQ(counters.serves_started, counters.serves_ok + counters.serves_failed);
  }
}

}  // namespace tokamak::transport::testing
