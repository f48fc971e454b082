// ClusterDelete deletes every copy of one object that the directory knows of.
//
// It asks each holder in a call of its own; a holder that does not answer is counted, not waited for beyond its deadline.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lib/node/node.h"

namespace tokamak::node {

class ClusterDelete final : public std::enable_shared_from_this<ClusterDelete> {
 public:
  // References must outlive it. `done` runs once, after Begin, never inside it.
  ClusterDelete(store::Store& store, directory::Directory& directory, Peers& peers, transport::Caller& holders,
                directory::NodeId self, const base::ObjectId& id, base::Duration deadline, Node::DeleteCallback done);

  // Must be owned by a shared_ptr.
  void Begin();

  // A peer's request to delete here, and the answer to it.
  static std::vector<uint8_t> EncodeRequest(const base::ObjectId& id);
  static std::vector<uint8_t> Answer(absl::Span<const uint8_t> request, store::Store& store, Membership& membership);

 private:
  void Located(absl::StatusOr<directory::ObjectInfo> info);
  bool AllKnown() const;
  void AskHolders();
  void Ask(const verbs::Address& holder);
  void Settle();

  store::Store& store_;
  directory::Directory& directory_;
  Peers& peers_;
  transport::Caller& holders_;
  const directory::NodeId self_;
  const base::ObjectId id_;
  const base::Duration deadline_;
  Node::DeleteCallback done_;
  directory::ObjectInfo info_;
  absl::Status directory_status_;
  DeleteResult result_;
  uint32_t unanswered_ = 0;
};

}  // namespace tokamak::node
