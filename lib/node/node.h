// Node joins a store of objects, a directory of who holds them, and the engines that move them.
//
// It answers its machine's programs (gets, deletes) and its peers (pins, calls), on one loop, and
// names no implementation. Its promises: docs/consistency.md.
//
//   Get -> store (here?) -> PullTable -> directory, Peers -> Engine -> transport -> Seal
//       -> the get's answer
//
// Thread rule: the control loop. No callback runs inside the call that asked for it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/answers.h"
#include "lib/base/event_loop.h"
#include "lib/base/fair_share.h"
#include "lib/base/handle.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/node/calls/call_router.h"
#include "lib/node/calls/object_messages.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/cluster/peers.h"
#include "lib/node/cluster_view.h"
#include "lib/node/copies/copies.h"
#include "lib/node/copies/dropped_versions.h"
#include "lib/node/copies/vouched_copies.h"
#include "lib/node/deletes/deletes.h"
#include "lib/node/deletes/evacuation.h"
#include "lib/node/deletes/object_delete.h"
#include "lib/node/engines/engine.h"
#include "lib/node/pulls/get_latency.h"
#include "lib/node/pulls/location_cache.h"
#include "lib/node/pulls/object_keep.h"
#include "lib/node/pulls/object_push.h"
#include "lib/node/pulls/pull_table.h"
#include "lib/store/store.h"

namespace tokamak::node {

struct NodeOptions {
  directory::NodeId id;
  uint64_t incarnation = 1;
  std::string device;
  MembershipOptions membership;
  PeersOptions peers;
  PullOptions pulls;
  uint32_t trace_node = 0;  // TraceEvent::node
};

struct GetOptions {
  base::Duration timeout;  // zero: only objects here now
  transport::Protocol protocol = transport::Protocol::kAuto;
  bool local_only = false;
};

// An object's place, pinned once for the asking owner, or why it is missing.
struct GetResult {
  base::ObjectId id;
  std::optional<store::Location> location;
  absl::Status status;
};

class Node final : public Copies {
 public:
  using GetCallback = std::function<void(absl::Span<const GetResult>)>;  // valid during the call
  using DeleteCallback = std::function<void(absl::StatusOr<uint32_t>)>;  // copies deleted
  using LocateCallback = directory::Directory::LocateCallback;

  // All must outlive the node. At least one engine, each open already. They must have ended before
  // the node is dropped: until then peers may touch the store.
  Node(base::EventLoop& loop, store::Store& store, directory::Directory& directory, std::vector<Engine*> engines,
       base::Random random, base::Trace& trace, const NodeOptions& options);
  ~Node() override;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Enters the directory, retrying; `answered` runs with each answer until it is in.
  void Start(std::function<void(const absl::Status&)> answered);

  // Leaves the directory and refuses gets and puts from now on. Running transfers go on.
  void Leave(std::function<void(const absl::Status&)> left);

  // Answers when all `ids` are sealed here, the missing ones can never come, or at the time-out;
  // results in the order of `ids`. Dropping the handle gives back its pins.
  [[nodiscard]] base::Pending Get(absl::Span<const base::ObjectId> ids, const GetOptions& options, store::Owner who,
                                  GetCallback done);

  // Brings the object here without a pin for any owner; with `pin` it stays (Store::PinHere).
  // Ignores quotas.
  [[nodiscard]] base::Pending Prefetch(const base::ObjectId& id, const GetOptions& options, bool pin,
                                       std::function<void(const absl::Status&)> done);

  // Has node `to` bring the objects to itself. kNotFound: no such node. kInvalidArgument: this one.
  // kResourceExhausted: kMaxPushes are under way.
  [[nodiscard]] base::Pending Push(const directory::NodeId& to, PushRequest request, ObjectPush::Callback done);

  // Deletes the object on every node. kNotFound: nobody has it. kUnavailable: the directory, or a
  // possible holder, cannot be asked; the text says which. Owners take turns (deletes.h).
  [[nodiscard]] base::Pending Delete(const base::ObjectId& id, store::Owner who, DeleteCallback done) {
    return deletes_.Add(id, who, std::move(done));
  }
  [[nodiscard]] base::Pending Delete(const base::ObjectId& id, DeleteCallback done) {
    return Delete(id, prefetcher_, std::move(done));
  }

  // Answers when the directory has accepted `version` for its id; call it in the task that seals
  // it. Each error drops it. kAlreadyExists: the id has another content. kUnavailable: the
  // directory cannot be asked. kResourceExhausted: it has no room.
  [[nodiscard]] base::Pending Confirm(const base::ObjectVersion& version,
                                      std::function<void(const absl::Status&)> done);

  // Hands this node's puts over to others within `limit`, meanwhile keeping nothing for others and,
  // near the end, taking no puts. See Evacuation.
  [[nodiscard]] base::Pending Evacuate(base::Duration limit, Evacuation::Callback progress, Evacuation::Callback done);

  // Asks the directory who holds `id`, waiting up to `wait` for a holder. Reports at once if the
  // directory is away; one that does not answer in time counts as away.
  [[nodiscard]] base::Pending Locate(const base::ObjectId& id, base::Duration wait, LocateCallback done);

  [[nodiscard]] base::Pending Nodes(directory::Directory::NodesCallback done) {
    return directory_.Nodes(options_.membership.directory_deadline, std::move(done));
  }

  // With the numbers of each, see ClusterView.
  [[nodiscard]] base::Pending LookAtCluster(ClusterView::Callback done) { return cluster_.Look(std::move(done)); }
  // Sets the source; until then there are none to show.
  void SayNumbers(std::function<NodeNumbers()> own) { own_numbers_ = std::move(own); }

  size_t pins_of_peers() const;
  // Since the node began.
  uint64_t pins_of_peers_total() const { return pins_of_peers_total_; }

  // Returns a sealed object, data then metadata, for a peer entered as coming or vouched for. Valid
  // until the next task. Empty: not here.
  absl::Span<const uint8_t> ContentsForPeer(const base::ObjectVersion& version);
  // Successful calls of ContentsForPeer.
  uint64_t brought_to_peers_total() const { return brought_to_peers_total_; }

  CallRouter& call_router() { return call_router_; }
  store::Store& store() { return store_; }
  const store::Store& store() const { return store_; }
  const Membership& membership() const { return membership_; }
  const PullTable& pulls() const { return pulls_; }
  const LocationCache& places() const { return places_; }
  const GetLatency& latency() const { return latency_; }
  const NodeOptions& options() const { return options_; }

  // Copies:
  bool StaysEntered(const base::ObjectVersion& version) const override {
    return pulls_.IsComing(version) || vouched_.Contains(version);
  }
  void OnWithdraw(const base::ObjectVersion& version) override { pulls_.OnWithdraw(version); }
  void OnDeletedIsNamed(const base::ObjectVersion& version) override;
  void Drop(const base::ObjectVersion& version, const absl::Status& why) override;
  [[nodiscard]] base::Pending AwaitVouched(const base::ObjectVersion& version, base::Task done) override {
    return vouched_.Await(version, std::move(done));
  }

 private:
  // Objects pinned by one engine's peers.
  struct Served {
    Engine* engine = nullptr;
    store::Owner owner{};
    std::map<uint64_t, base::ObjectId> pins;
  };

  void Serve(Served& served);
  void PinFor(Served& served, uint64_t pin, const base::ObjectVersion& version);
  void UnpinFor(Served& served, uint64_t pin);
  base::Pending HandleObjectCall(absl::Span<const uint8_t> request, const CallRouter::Reply& reply);
  base::Pending Answer(const DropRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const KeepRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const VouchRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const DropCopyRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const BringRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const BringAllRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const PushRequest& request, const CallRouter::Reply& reply);
  base::Pending Answer(const HowFarRequest& request, const CallRouter::Reply& reply);
  std::optional<base::Duration> VouchFor(const base::ObjectVersion& version, const verbs::Address& node,
                                         base::Duration lifetime);
  std::optional<store::Location> PlaceOf(const base::ObjectVersion& version) const;
  bool MayBring(const store::Location& here) const;
  base::Duration VouchLifetime(bool brings) const;
  std::optional<uint64_t> SizeInBundle(const base::ObjectVersion& version) const;
  base::Pending HandleNumbersCall(absl::Span<const uint8_t> request, const CallRouter::Reply& reply) const;
  base::Pending AnswerSoon(base::Task answer) { return answers_.Add(std::move(answer)); }
  static directory::NodeInfo SelfInfo(const std::vector<Engine*>& engines, uint64_t capacity,
                                      const NodeOptions& options);

  base::EventLoop& loop_;
  store::Store& store_;
  directory::Directory& directory_;
  const NodeOptions options_;
  const store::Owner prefetcher_;
  CallRouter call_router_;
  std::vector<std::unique_ptr<Served>> served_;
  uint64_t pins_of_peers_total_ = 0;
  uint64_t brought_to_peers_total_ = 0;
  static constexpr size_t kMaxCarriedOn = 64;
  // Each holds one of the kMaxCallsServed calls at its peer.
  static constexpr size_t kMaxPushes = 32;

  base::Pending BeginDelete(const base::ObjectId& id, DeleteCallback done);
  ObjectDelete::Needs DeleteNeeds();
  ObjectKeep::Needs KeepNeeds();
  static VouchedCopies::Options VouchOptions(const NodeOptions& options);

  size_t pushes_ = 0;  // under way
  base::FairShare<directory::Host> brought_{ObjectPush::kMaxBrought};
  size_t evacuations_ = 0;
  base::Answers answers_;
  DroppedVersions dropped_;
  LocationCache places_;
  GetLatency latency_;
  Peers peers_;
  Membership membership_;
  ServiceCaller object_caller_;
  ServiceCaller numbers_caller_;
  std::function<NodeNumbers()> own_numbers_ = [] { return NodeNumbers(); };
  ClusterView cluster_;
  VouchedCopies vouched_;
  PullTable pulls_;
  Deletes deletes_;
  std::map<base::ObjectVersion, base::Pending> carried_on_;  // deletions that the directory had forgotten
};

}  // namespace tokamak::node
