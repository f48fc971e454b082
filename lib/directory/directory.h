// Directory knows who holds what and who is alive: object -> sizes and holders, node -> addresses and lease.
//
// Entries are hints and the holder is the authority: a holder that answers kNotFound is withdrawn and the puller goes on.
// Liveness is a lease: a node renews it, and is gone, with all that it held, when it did not. Implementations: local.h (pure
// state), remote.h (another node's local one, asked over the transport), redis.h. All pass tests/directory/conformance.
//
// Law: every callback runs once, on the node's loop, never inside the call, by the call's deadline; but none runs after its
// directory was dropped.
// Thread rule: one loop, the node's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/object_id.h"
#include "lib/base/time.h"

namespace tokamak::directory {

// A node's name in the cluster, and which of its lives this is: a restarted node has a higher incarnation.
using NodeId = std::string;  // at most kMaxNodeName bytes of [A-Za-z0-9._:-]
constexpr size_t kMaxNodeName = 64;
constexpr size_t kMaxHolders = 64;  // named for one object; further ones are not kept
constexpr size_t kMaxEngines = 16;
constexpr size_t kMaxAddressText = 64;  // bytes of an engine's address
constexpr size_t kMaxDeviceText = 256;
constexpr size_t kMaxNodes = 4096;  // with a lease at once; further ones are refused (kResourceExhausted)

// kInvalidArgument says what is wrong with a name.
absl::Status CheckNodeId(const NodeId& node);

struct NodeInfo {
  NodeId id;
  uint64_t incarnation = 0;
  std::vector<std::string> engines;  // where each engine's transport listens: "10.0.0.1:7000"
  std::string device;                // "soft:udp@127.0.0.1", for people
  uint64_t capacity = 0;             // bytes
};

struct ObjectInfo {
  uint64_t data_size = 0;
  uint64_t metadata_size = 0;
  std::vector<NodeId> holders;
};

// kInvalidArgument says which bound it breaks.
absl::Status CheckNode(const NodeInfo& node);

enum class JoinResult {
  kEntered,  // the directory did not know this life of the node (or was restarted): announce everything that is held
  kRenewed,
};

// All deadlines count from the call. Errors of every call: kDeadlineExceeded, kUnavailable (the directory is out of reach; the
// text says what to do).
class Directory {
 public:
  using StatusCallback = std::function<void(absl::Status)>;
  using JoinCallback = std::function<void(absl::StatusOr<JoinResult>)>;
  using LocateCallback = std::function<void(absl::StatusOr<ObjectInfo>)>;
  using NodesCallback = std::function<void(absl::StatusOr<std::vector<NodeInfo>>)>;

  virtual ~Directory() = default;

  // Enters or renews this node; it counts as alive for `lease` from now. A lower incarnation than the known one is refused
  // (kFailedPrecondition). A higher one forgets what the earlier life held. One that fails may have been carried out, and
  // kEntered is said once: who gets no answer takes the next one for kEntered, whatever it says.
  virtual void Join(const NodeInfo& node, base::Duration lease, base::Duration deadline, JoinCallback done) = 0;

  // Ends the lease at once.
  virtual void Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) = 0;

  // `node` holds `id`. kNotFound: the node has no lease (join first). kInvalidArgument: known with other sizes.
  virtual void Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                        base::Duration deadline, StatusCallback done) = 0;

  // `node` does not hold `id` any more. An object without holders is forgotten.
  virtual void Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration deadline, StatusCallback done) = 0;

  // Who holds `id`, alive nodes only. Waits up to `wait` until somebody does, then says kNotFound; a wait of zero asks once.
  // `deadline` bounds the whole call and is longer than `wait`.
  virtual void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, LocateCallback done) = 0;

  // All nodes with a lease, by id.
  virtual void Nodes(base::Duration deadline, NodesCallback done) = 0;
};

}  // namespace tokamak::directory
