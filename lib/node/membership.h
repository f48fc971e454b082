// Membership keeps this node in the directory, and the directory true about it.
//
// It renews the node's lease, announces what the store seals and withdraws what the store deletes or evicts. What could not
// be said because the directory was out of reach is said later; a directory that forgot us (a restart) is told everything
// again. Only the latest truth about an object is ever on its way.
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/directory/directory.h"
#include "lib/store/store.h"

namespace tokamak::node {

struct MembershipOptions {
  base::Duration lease = base::Seconds(10);
  base::Duration renew = base::Seconds(3);
  base::Duration directory_deadline = base::Seconds(2);
  base::Duration retry = base::Milliseconds(200);
  uint32_t max_updates_in_flight = 64;
};

struct MembershipCounters {
  uint64_t renewals = 0;
  uint64_t failed_renewals = 0;
  uint64_t announced = 0;
  uint64_t withdrawn = 0;
  uint64_t re_announcements = 0;  // times that everything was announced again
};

class Membership final {
 public:
  // References must outlive it.
  Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory, directory::NodeInfo self,
             const MembershipOptions& options);
  ~Membership();

  // Enters the directory and stays in it. `joined` runs once, with the first answer; on an error it goes on trying.
  void Start(std::function<void(const absl::Status&)> joined);

  // Ends the lease; `left` runs by the directory deadline. Nothing is renewed or announced after.
  void Leave(std::function<void(const absl::Status&)> left);

  bool joined() const { return joined_; }
  // Updates that the directory has not confirmed yet.
  size_t behind() const { return dirty_.size() + in_flight_.size(); }
  const directory::NodeInfo& self() const { return self_; }
  const MembershipCounters& counters() const { return counters_; }

 private:
  void Renew();
  void Renewed(absl::StatusOr<directory::JoinResult> result);
  void MarkAll();
  void Mark(absl::Span<const store::Event> events);
  void Flush();
  void Update(const base::ObjectId& id);
  void Updated(const base::ObjectId& id, bool announced, const absl::Status& status);

  base::EventLoop& loop_;
  store::Store& store_;
  directory::Directory& directory_;
  const directory::NodeInfo self_;
  const MembershipOptions options_;
  bool joined_ = false;
  bool leaving_ = false;
  std::function<void(const absl::Status&)> on_first_answer_;
  base::Timer renew_timer_;
  base::Timer retry_timer_;
  std::set<base::ObjectId> dirty_;      // what the directory may have wrong
  std::set<base::ObjectId> in_flight_;  // being told now; may be dirty again
  MembershipCounters counters_;
  std::unique_ptr<store::Handle> subscription_;
  std::shared_ptr<Membership*> alive_;  // callbacks of the directory look here first
};

}  // namespace tokamak::node
