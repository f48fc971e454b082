// A small world for the transport's tests: nodes with software NICs on one network, all
// in virtual time. Which network that is, is decided where a test is linked (network_under_test.h).
//
// The store of a node is a fake: objects lie in an arena, pins are counted, and memory that must
// not matter any more is spoiled. An object's bytes follow from its name and size; they are there
// only while it is pinned. Memory that a failed pull returned is filled with a pattern that must
// still be there at the end (NothingWasTouched).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "lib/base/trace.h"
#include "lib/transport/endpoint.h"
#include "lib/verbs/soft/device.h"
#include "lib/verbs/soft/fabric.h"
#include "sim/network/network.h"
#include "tests/transport/network_under_test.h"

namespace tokamak::transport::testing {

// Memory that nobody gets twice.
class FakeArena {
 public:
  explicit FakeArena(uint64_t size) : memory_(new uint8_t[size]), size_(size) {}
  absl::Span<uint8_t> all() { return {memory_.get(), size_}; }
  absl::Span<uint8_t> Take(uint64_t size);

 private:
  std::unique_ptr<uint8_t[]> memory_;
  uint64_t size_;
  uint64_t used_ = 0;
};

// The bytes of an object.
void FillObject(const base::ObjectId& id, absl::Span<uint8_t> memory);
bool IsObject(const base::ObjectId& id, absl::Span<const uint8_t> memory);

class FakeSource final : public Source {
 public:
  explicit FakeSource(base::EventLoop& loop) : loop_(loop) {}

  void Add(const base::ObjectId& id, absl::Span<uint8_t> memory, uint64_t metadata_size);
  void Remove(const base::ObjectId& id) { objects_.erase(id); }
  // Makes answers take `delay` from now on.
  void SetDelay(base::Duration delay) { delay_ = delay; }

  void Pin(const base::ObjectVersion& version, PinId pin, PinCallback done) override;
  void Unpin(PinId pin) override;

  size_t pins() const { return pins_.size(); }  // granted or asked for
  uint64_t pins_ever() const { return pins_ever_; }
  // The object requested last.
  const base::ObjectVersion& last_version() const { return last_version_; }

 private:
  struct Object {
    absl::Span<uint8_t> memory;
    uint64_t metadata_size;
    int pinned;
  };
  struct OnePin {
    base::ObjectId id;
    bool granted = false;
    PinCallback done;
    base::Timer answer;
  };
  void Answer(PinId pin);

  base::EventLoop& loop_;
  base::Duration delay_;
  std::map<base::ObjectId, Object> objects_;
  std::map<PinId, OnePin> pins_;
  uint64_t pins_ever_ = 0;
  base::ObjectVersion last_version_;
};

// A handler of calls that needs no work beyond the call.
inline CallHandler Handler(std::function<void(absl::Span<const uint8_t> request, Reply reply)> handle) {
  return [handle = std::move(handle)](absl::Span<const uint8_t> request, Reply reply) {
    handle(request, std::move(reply));
    return nullptr;
  };
}

// The result of a pull.
struct Outcome {
  PullId pull = 0;
  bool done = false;
  bool dropped = false;  // the sink
  absl::Status status;
  TransferReport report;
  absl::Span<uint8_t> memory;
  base::ObjectId id;
  base::Time done_at;
  bool right = false;  // the bytes, when it was done
};

struct SinkOptions {
  absl::Span<uint8_t> memory;  // where a pull that was cut goes on; else new memory
  bool keep = false;           // what a failed pull leaves, for another to go on
  std::function<void(const Outcome&)> on_done;
};

constexpr uint64_t kArena = 256 << 20;  // never touched as a whole

struct NodeOptions {
  EndpointOptions endpoint;
  bool on_demand = false;  // registration; else an arena, or
  bool cached = false;
  uint64_t arena_size = kArena;
  bool like_iwarp = false;               // the devices lack what iWARP lacks
  uint32_t rails = 1;                    // devices
  std::optional<PeerSecurity> security;  // else SecurityUnderTest()
  std::function<std::unique_ptr<verbs::Device>(std::unique_ptr<verbs::Device>)> wrap;  // what each goes into, if any
};

class World;

class Node {
 public:
  Node(World& world, uint32_t index, const NodeOptions& options);
  ~Node();

  // The endpoint ends as a program does; the device goes on.
  void DropEndpoint() { endpoint.reset(); }
  void Reopen();

  // An object of this node.
  base::ObjectId AddObject(uint64_t data_size, uint64_t metadata_size = 0);

  std::shared_ptr<Outcome> Pull(const PullRequest& request, const SinkOptions& sink = {});
  // The whole of it from `owner`.
  std::shared_ptr<Outcome> Pull(const Node& owner, const base::ObjectId& id, Protocol protocol,
                                const SinkOptions& sink = {});
  PullRequest Request(const Node& owner, const base::ObjectId& id, Protocol protocol) const;

  void ExpectNothingWasTouched() const;

  const verbs::Address& AddressOf(uint32_t rail) const { return rails[rail].device->address(); }

  World& world;
  const uint32_t index;
  const NodeOptions options;
  const std::unique_ptr<base::EventLoop> own_loop, own_nic_loop;
  base::EventLoop& loop;
  base::EventLoop& nic_loop;
  FakeArena arena;
  FakeSource source;
  // One device with its own of everything, at 10.0.RAIL.NODE+1; from the 251st node on at 10.1 and
  // so on.
  struct RailParts {
    std::unique_ptr<verbs::Device> device;
    std::unique_ptr<verbs::ProtectionDomain> domain;
    std::unique_ptr<Registration> registration;
  };
  std::vector<RailParts> rails;
  std::unique_ptr<verbs::Device>& device;  // of the first rail; and so on
  std::unique_ptr<verbs::ProtectionDomain>& domain;
  std::unique_ptr<Registration>& registration;
  std::unique_ptr<Endpoint> endpoint;
  verbs::Address address;
  verbs::Address service;
  std::map<base::ObjectId, ObjectSize> sizes;

 private:
  friend class FakeSink;
  RailParts MakeRail(uint32_t rail);

  std::vector<absl::Span<uint8_t>> given_back_;  // by failed pulls
};

struct WorldOptions {
  bool loopback = false;  // instead of the network
  uint64_t seed = 1;
  sim::LinkOptions link;
};

class World {
 public:
  explicit World(const WorldOptions& options = {});
  ~World();

  Node& Add(const NodeOptions& options = {});
  Node& node(size_t i) { return *nodes_[i]; }

  bool RunUntil(const std::function<bool()>& done, base::Duration limit = base::Seconds(120));
  void RunFor(base::Duration duration) { time.RunFor(duration); }
  bool Finish(const std::shared_ptr<Outcome>& outcome, base::Duration limit = base::Seconds(120));

  // CutRail stops all packets between the two on this rail, MendRail lets them pass again.
  void CutRail(const Node& a, const Node& b, uint32_t rail);
  void MendRail(const Node& a, const Node& b, uint32_t rail);

  // Everything is over: no pins, no pulls, nothing touched what was given back.
  void ExpectClean();

  const WorldOptions options;
  base::TraceHash trace;
  const std::unique_ptr<sim::Network> network;
  sim::VirtualTime& time;
  const std::unique_ptr<verbs::soft::Fabric> loopback;  // where it is asked for
  verbs::soft::Fabric* const fabric;

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
};

// 100 Gb/s and 2 us.
sim::LinkOptions FastLink();

}  // namespace tokamak::transport::testing
