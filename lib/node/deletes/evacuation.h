// Evacuation hands over to other nodes what this node keeps, before it leaves: each object put here
// gets a copy elsewhere that is kept as the original was, not evicted like other copies.
//
// A node that is asked to keep an object pulls it, as for a program of its own, and answers when it
// has it, or why not (object_keep.h). EvacuationTargets chooses the node. A refused object is
// offered again, to others and later, until it is taken or the time is over; one deleted meanwhile
// is forgotten at once, at the other end as well.
//
//  the store's list, new puts --> waiting <--> moving --> handed over
//                                    ^____________|  refused, no answer
//
// Objects put meanwhile go the same way. When nothing is left, or more is put than handed over, or
// three quarters of the time are over, the store is closed to puts; the evacuation ends once the
// objects put until then are handed over as well: each object that a program was promised is kept
// is elsewhere, or counted in the report.
//
// Law: an object is given up only at the end of the time, unless there never was another node.
// Law: no answer is awaited blindly: every kLookInterval each asked node reports how far it is. One
// that does not is set aside, and its objects are offered to others.
// Bound: kAtOnce objects move, kMaxWaiting are remembered to be offered again; further ones are
// forgotten, and found again in the store's list. An object handed over is remembered as long as it
// is in the store.
// Thread rule: the node's control loop.
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
  uint64_t left_objects = 0;  // at the end: that nobody took
  uint64_t left_bytes = 0;
  // Why some are left or have to wait: the count of each reason, largest first. OK: none are.
  absl::Status trouble;
};

class Evacuation final : public base::Handle {
 public:
  static constexpr size_t kAtOnce = 64;
  static constexpr size_t kMaxWaiting = 1024;
  static constexpr base::Duration kLookInterval = base::Seconds(1);
  static constexpr base::Duration kLookDeadline = base::Seconds(3);
  // A pull without progress for this long is tried elsewhere: a little after the other node gives
  // up itself.
  static constexpr base::Duration kStall = base::Seconds(12);
  static_assert(kStall > transport::kPatience);
  // If the directory names no other node for this long, this one is alone and does not wait.
  static constexpr base::Duration kAloneFor = base::Seconds(2);
  // The store is closed to puts when 1 / kDoorShare of the time is left, or when puts exceed the
  // objects handed over by more than that share of these plus kAtOnce.
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
    base::Duration deadline;  // of a question to the directory
  };

  // Starts at once and ends after `limit` at the latest. `progress` runs every second; `done` runs
  // once, later, and the store stays closed to puts. Dropping it before opens the store again.
  Evacuation(const Needs& needs, base::Duration limit, Callback progress, Callback done);
  ~Evacuation() override;

 private:
  // Why an object is still here; equal counts are reported in this order.
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
    base::Duration pause;                                  // doubled each time that all have refused it
    base::Time due;                                        // while waiting
    directory::NodeId target;                              // empty: waiting
    base::Pending call;
    uint64_t come = 0;   // bytes of it that have arrived there
    base::Time came_at;  // when the last of these arrived

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
  bool targets_known_ = false;  // the directory has answered once
  bool seen_others_ = false;    // the directory has named another node
  base::Pending question_;
  base::Timer question_timer_;

  std::optional<base::ObjectId> listed_to_;
  bool listed_ = false;      // to the end
  bool list_again_ = false;  // an object was forgotten
  base::Time list_again_at_;
  Why forgotten_why_ = Why::kNoTime;  // of the object forgotten last
  bool door_closed_ = false;
  uint64_t put_ = 0;  // objects put meanwhile

  Objects objects_;                                           // waiting and moving
  std::set<std::pair<base::Time, base::ObjectVersion>> due_;  // the waiting ones
  size_t moving_ = 0;
  absl::flat_hash_set<base::ObjectVersion> handed_;  // those still in the store

  std::unique_ptr<store::Subscription> events_;
  base::Timer fill_timer_;
  base::Time fill_at_;  // while it is armed
  base::Timer door_timer_;
  base::Timer report_timer_;
  base::Timer end_;
};

}  // namespace tokamak::node
