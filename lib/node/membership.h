// Membership keeps this node in the directory, and the directory true about it.
//
// It renews the node's lease, announces what the store seals and withdraws what the store deletes or evicts. What could not
// be said because the directory was out of reach is said later; a directory that forgot us (a restart) is told everything
// again, a page of the store at a time. A lease whose renewal was not answered may have ended, and the directory may have taken
// us in anew with the answer that did not come: after that, too, it is told everything.
// Law: one word about an object is under way at a time, and it says what was true when it left: the last word is the truth.
// Law: nobody else speaks for this node's objects. Who finds an entry stale has the holder look again (Recheck).
// Thread rule: the node's control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/types/optional.h"
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
  uint64_t refused = 0;           // announcements of an object that the cluster knows with other sizes
  uint64_t re_announcements = 0;  // times that everything was announced again
};

class Membership final {
 public:
  // What is still to be said when a Recheck is not worth noting: whoever finds the entry stale next will ask again.
  static constexpr size_t kMaxRechecks = 4096;

  using StatusCallback = std::function<void(const absl::Status&)>;

  // References must outlive it.
  Membership(base::EventLoop& loop, store::Store& store, directory::Directory& directory, directory::NodeInfo self,
             const MembershipOptions& options);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  // Enters the directory and stays in it. `joined` runs once, with the first answer; on an error it goes on trying.
  void Start(StatusCallback joined);

  // Ends the lease; `left` runs by the directory deadline. Nothing is renewed or announced after.
  void Leave(StatusCallback left);

  // Says again whether `id` is here: somebody was told that it is, and did not find it.
  void Recheck(const base::ObjectId& id);

  bool joined() const { return joined_; }
  // Updates that the directory has not confirmed yet, as far as they are known: while everything is announced again, one page.
  size_t behind() const { return dirty_.size() + in_flight_.size() + (sweeping_ ? 1 : 0); }
  const directory::NodeInfo& self() const { return self_info_; }
  const MembershipCounters& counters() const { return counters_; }

 private:
  void Renew();
  void Renewed(const absl::StatusOr<directory::JoinResult>& result);
  void Mark(absl::Span<const store::Event> events);
  void Flush();
  void MarkNextPage();
  void Update(const base::ObjectId& id);
  void Updated(const base::ObjectId& id, bool announced, const absl::Status& status);

  base::EventLoop& loop_;
  store::Store& store_;
  directory::Directory& directory_;
  const directory::NodeInfo self_info_;
  const MembershipOptions options_;
  bool joined_ = false;
  bool renewing_ = false;
  bool unanswered_ = false;  // the last Join failed: it may have been what entered us
  bool leaving_ = false;
  StatusCallback on_first_answer_;
  base::Timer renew_timer_;
  base::Timer retry_timer_;
  std::set<base::ObjectId> dirty_;                 // what the directory may have wrong
  absl::flat_hash_set<base::ObjectId> in_flight_;  // being told now; may be dirty again; never visited in its own order
  bool sweeping_ = false;                          // marking everything dirty, page by page
  absl::optional<base::ObjectId> swept_to_;
  MembershipCounters counters_;
  std::unique_ptr<store::Handle> subscription_;
  const std::shared_ptr<Membership*> alive_;  // callbacks of the directory look here first
};

}  // namespace tokamak::node
