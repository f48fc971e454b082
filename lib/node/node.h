// Node joins the three: a store of objects, a directory of who holds them, and the engines that move them.
//
// It answers the programs of its machine (gets that pull what is missing, deletes that reach every holder) and serves its
// peers (pins for their pulls, calls). It names no implementation and runs on one loop, in a daemon as in a simulation.
//
//   Get -> store (here?) -> Pulls -> directory, Peers -> EngineLink -> transport -> Seal -> the get's answer
//
// Thread rule: the control loop. No callback runs inside the call that asked for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/node/engine.h"
#include "lib/node/membership.h"
#include "lib/node/peers.h"
#include "lib/node/pull.h"
#include "lib/node/services.h"
#include "lib/store/store.h"

namespace tokamak::node {

class ClusterDelete;

struct NodeOptions {
  directory::NodeId id;
  uint64_t incarnation = 1;
  std::string device;  // for people
  MembershipOptions membership;
  PeersOptions peers;
  PullOptions pulls;
};

struct GetOptions {
  base::Duration timeout;  // zero: only what is here now
  transport::Protocol protocol = transport::Protocol::kAuto;
  bool local_only = false;  // do not pull
};

// One object of a get: its place, pinned once for the owner that asked, or why it is not there.
struct GetResult {
  base::ObjectId id;
  absl::optional<store::Location> location;
  absl::Status status;
};

struct DeleteResult {
  uint32_t copies = 0;       // deleted, here and elsewhere
  uint32_t unreachable = 0;  // holders that did not answer; their copies may live on
};

class Node final {
 public:
  using GetCallback = std::function<void(absl::Span<const GetResult>)>;  // valid during the call
  using DeleteCallback = std::function<void(absl::StatusOr<DeleteResult>)>;

  // All must outlive the node. Engines are open already; at least one. Their hosts must be dropped before the node: until then
  // they may touch the store.
  Node(base::EventLoop& loop, store::Store& store, directory::Directory& directory, std::vector<EngineLink*> engines,
       base::Random random, const NodeOptions& options);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Enters the directory; `joined` runs with the first answer, and the node goes on trying where that was an error.
  void Start(std::function<void(const absl::Status&)> joined);

  // Leaves the directory, so that nobody new asks for our objects. Transfers that run go on.
  void Leave(std::function<void(const absl::Status&)> left) { membership_.Leave(std::move(left)); }

  // Answers when all of `ids` are here and sealed, when the missing ones can never come, or at the time-out. Results come in
  // the order asked. Dropping the handle ends the get and gives back its pins.
  [[nodiscard]] std::unique_ptr<store::Handle> Get(absl::Span<const base::ObjectId> ids, const GetOptions& options,
                                                   store::Owner who, GetCallback done);

  // Deletes every copy that the directory knows of, ours too. kNotFound: nobody has it. A copy that is just on its way to a
  // node may be missed. Where the directory cannot be asked only ours is deleted, and the error says so.
  void Delete(const base::ObjectId& id, DeleteCallback done);

  // Objects pinned for peers now; a draining daemon waits until there are none.
  size_t pins_of_peers() const;
  // How often a peer got an object pinned here to take it, since the node began.
  uint64_t pins_of_peers_total() const { return pins_of_peers_total_; }

  Services& services() { return services_; }
  store::Store& store() { return store_; }
  const store::Store& store() const { return store_; }
  directory::Directory& directory() { return directory_; }
  const Membership& membership() const { return membership_; }
  const Pulls& pulls() const { return pulls_; }
  const NodeOptions& options() const { return options_; }

 private:
  // What one engine's peers have pinned.
  struct Served {
    EngineLink* engine = nullptr;
    store::Owner owner{};
    std::map<uint64_t, base::ObjectId> pins;
  };

  void Serve(Served& served);
  void PinFor(Served& served, uint64_t pin, const base::ObjectId& id);
  void UnpinFor(Served& served, uint64_t pin);
  void HandleObjectCall(absl::Span<const uint8_t> request, const Services::Reply& reply);
  static directory::NodeInfo SelfInfo(const std::vector<EngineLink*>& engines, uint64_t capacity,
                                      const NodeOptions& options);

  base::EventLoop& loop_;
  store::Store& store_;
  directory::Directory& directory_;
  const NodeOptions options_;
  Services services_;
  std::vector<std::unique_ptr<Served>> served_;
  uint64_t pins_of_peers_total_ = 0;
  Peers peers_;
  Pulls pulls_;
  ServiceCaller object_caller_;
  Membership membership_;
  std::map<ClusterDelete*, std::shared_ptr<ClusterDelete>> deletes_;
};

}  // namespace tokamak::node
