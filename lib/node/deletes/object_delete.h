// ObjectDelete deletes one object in the whole cluster: it has the directory mark it and each
// possible holder drop it, and reports to the directory who confirmed, until nobody is left.
//
//   directory: mark --> names of holders --> tell each --> directory: these confirmed --> ...
//       --> nobody left: OK
//
// Once marked, nobody locates or announces the object: the names only become fewer. A holder that
// is silent or does not answer ends it with kUnavailable, named, and learns of the deletion when
// back. A directory that does not know an accepted content here has lost entries: then deletions go
// to all nodes until each has compared its objects (Membership::OthersMayBeLost). Thread rule: the
// control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/cluster/peers.h"
#include "lib/node/copies/copies.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

class ObjectDelete final : public base::Handle {
 public:
  // The number of copies deleted.
  using Callback = std::function<void(absl::StatusOr<uint32_t>)>;

  // All references must outlive it.
  struct Needs {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    Peers& peers;
    transport::Caller& holders;  // of the service kObjects
    Copies& copies;
    Membership& membership;
    directory::NodeId self;
    base::Duration deadline;  // of each question
  };

  // Deletes any content of the id, here and in the cluster; `done` runs once, later.
  ObjectDelete(const Needs& needs, const base::ObjectId& id, Callback done);
  // Deletes this content only.
  ObjectDelete(const Needs& needs, const base::ObjectVersion& version, Callback done);

 private:
  void Mark();
  void Marked(const absl::StatusOr<directory::DeleteReply>& reply);
  bool HasLostThisNode(const directory::DeleteReply& reply) const;
  bool DeletesWhatIsHereNext();
  void DropHere(base::Generation generation);
  void TellAll();
  void TellSomeOfAll();
  void TellHolders();
  void Tell(const directory::NodeId& holder);
  void AwaitVouched();
  void Told(const directory::NodeId& holder, bool confirmed, bool had_it);
  void Finish(const absl::Status& directory_status);

  const Needs needs_;
  const base::ObjectId id_;
  Callback done_;
  base::Generation here_ = base::kNoGeneration;        // at the beginning; perhaps unknown to the directory
  base::Generation generation_ = base::kNoGeneration;  // being deleted
  bool marked_ = false;                                // known to the directory once
  bool dropped_here_ = false;
  bool tells_all_ = false;              // holders are unknown
  std::vector<directory::NodeId> all_;  // with tells_all_: uncalled
  std::vector<directory::NodeId> to_tell_;
  std::vector<directory::NodeId> confirmed_;  // since the last question
  std::set<directory::NodeId> failed_;
  directory::NodeId after_;
  std::vector<directory::NodeId> silent_;
  uint32_t copies_ = 0;
  uint32_t unanswered_ = 0;
  base::Pending question_;
  std::vector<base::Pending> calls_;
  base::Pending vouched_;  // copies that this node vouches for
  base::Timer vouched_deadline_;
};

}  // namespace tokamak::node
