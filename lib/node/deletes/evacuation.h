// Evacuation hands over to other nodes what this node keeps, before it leaves: each object put here
// gets a kept copy elsewhere.
//
// A target (EvacuationTargets) pulls the object and answers when it has it, or why not
// (object_keep.h). A refused object is offered to others and later again; a deleted one is
// forgotten, there too.
//
//  the store's list, new puts --> waiting <--> moving --> handed over
//                                    ^____________|  refused, no answer
//
// When nothing is left, or puts outrun it, or three quarters of the time are over, the store closes
// to puts; the evacuation ends once the rest is handed over, so each kept object is elsewhere or in
// the report.
//
// Law: an object is given up only at the end of the time, unless there never was another node.
// Law: every kLookInterval each asked node reports how far it is; one that does not is set aside.
// Bound: kAtOnce objects move, kMaxWaiting wait to be offered again; further ones are found again
// in the store's list. Objects handed over are remembered while in the store. Thread rule: the
// control loop.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/node/calls/object_messages.h"
#include "lib/node/cluster/membership.h"
#include "lib/node/deletes/evacuation_targets.h"
#include "lib/store/store.h"
#include "lib/transport/caller.h"
#include "lib/transport/limits.h"

namespace tokamak::node {

// So far, or at the end. Bytes are data and metadata.
struct EvacuationReport {
  uint64_t objects = 0;  // handed over
  uint64_t bytes = 0;
  uint64_t left_objects = 0;  // at the end: taken by nobody
  uint64_t left_bytes = 0;
  // Counts of the reasons why some are left or wait, largest first. OK: none.
  absl::Status trouble;
};

class Evacuation final : public base::Handle {
 public:
  static constexpr size_t kAtOnce = 64;
  static constexpr size_t kMaxWaiting = 1024;
  static constexpr base::Duration kLookInterval = base::Seconds(1);
  static constexpr base::Duration kLookDeadline = base::Seconds(3);
  // A pull without progress this long is tried elsewhere, after the other node has given up.
  static constexpr base::Duration kStall = base::Seconds(12);
  static_assert(kStall > transport::kPatience);
  // Time without another node named after which this one is alone.
  static constexpr base::Duration kAloneFor = base::Seconds(2);
  // The store closes to puts when 1 / kDoorShare of the time is left, or when puts exceed the
  // objects handed over by that share of these plus kAtOnce.
  static constexpr int kDoorShare = 4;

  using Callback = std::function<void(const EvacuationReport&)>;

  // All references must outlive it.
  struct Needs {
    base::EventLoop& loop;
    store::Store& store;
    directory::Directory& directory;
    const Membership& membership;
    transport::Caller& holders;  // of the service kObjects
    size_t& evacuations;         // under way
    directory::NodeId self;
    base::Duration deadline;  // of each question
  };

  // Ends after `limit` at the latest. `progress` runs every second; `done` once, later, with the
  // store still closed to puts. Dropping it before opens the store again.
  Evacuation(const Needs& needs, base::Duration limit, Callback progress, Callback done);
  ~Evacuation() override;

 private:
  // Reason why an object is here; equal counts go in this order.
  enum class Why : uint8_t {
    kNoTime,
    kNoNode,
    kNoDirectory,
    kNoRoom,
    kTooLarge,
    kInUse,
    kNoAnswer,
    kUnannounced,
    kLater,
  };
  static constexpr size_t kWhys = 9;
  static absl::Status Describe(Why why, uint64_t count);

  struct Object {
    KeepRequest request;
    Why why = Why::kNoTime;
    absl::InlinedVector<directory::NodeId, 1> refused_by;  // since it waited last
    base::Duration pause;                                  // doubled when all have refused it
    base::Time due;
    directory::NodeId target;  // empty: waiting
    base::Pending call;
    uint64_t come = 0;   // bytes arrived there
    base::Time came_at;  // the last arrival

    bool moves() const { return !target.empty(); }
  };
  using Objects = std::map<base::ObjectVersion, Object>;
  using Counts = std::array<uint64_t, kWhys>;
  static absl::Status Summary(const Counts& counts);

  void AskForNodes();
  void Heard(absl::Span<const store::Event> events);
  void Add(const base::ObjectVersion& version, const store::Location& place, base::Time due);
  void ListNextPage();
  void ListAgain();
  void Fill();
  void FillSoon() { FillAt(needs_.loop.Now()); }
  void FillAt(base::Time time);
  bool LookAtNext();
  bool Start(Objects::iterator object);
  void Ask(Objects::iterator object, const directory::NodeId& target);
  void Answered(const base::ObjectVersion& version, const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void TakeAnswer(Objects::iterator object, EvacuationTargets::Target& target, std::optional<KeepAnswer> answer);
  void HandedOver(Objects::iterator object);
  void Stop(Objects::iterator object, Why why);
  void Pause(Objects::iterator object, Why why);
  void Forget(Objects::iterator object);
  void StepOrEnd();
  void CloseDoor();
  void LookAtTargets();
  void Looked(const directory::NodeId& id, const std::vector<base::ObjectVersion>& asked,
              const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void EndStalled();
  void Report();
  void CountLeft();
  void Finish();

  const Needs needs_;
  const base::Time began_;
  const base::Time limit_;
  const Callback progress_;
  Callback done_;
  EvacuationReport report_;
  EvacuationTargets targets_;
  bool targets_known_ = false;
  bool seen_others_ = false;
  base::Pending question_;
  base::Timer question_timer_;

  std::optional<base::ObjectId> listed_to_;
  bool listed_ = false;      // to the end
  bool list_again_ = false;  // an object was forgotten
  base::Time list_again_at_;
  Why forgotten_why_ = Why::kNoTime;  // of the last forgotten
  bool door_closed_ = false;
  uint64_t put_ = 0;

  Objects objects_;
  std::set<std::pair<base::Time, base::ObjectVersion>> due_;
  size_t moving_ = 0;
  absl::flat_hash_set<base::ObjectVersion> handed_;  // those still in the store

  std::unique_ptr<store::Subscription> events_;
  base::Timer fill_timer_;
  base::Time fill_at_;
  base::Timer door_timer_;
  base::Timer report_timer_;
  base::Timer end_;
};

}  // namespace tokamak::node
