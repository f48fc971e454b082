// VouchedCopies are other nodes' copies of objects here, not entered by a directory that is away,
// slow, or was not asked: this node vouches for them.
//
// A deletion here reaches the copies, and theirs; until all are gone this node neither confirms it
// nor withdraws anything.
//
//   Vouch --> vouched --Drop--> dropping: calls to each node until it answers --> gone
//                |
//                +-- its time is over: its node has announced it, dropped it, or is fenced --> gone
//
// Bounds: kMaxCopies; of one object kMaxNodes vouched for here, DropCopyRequest::kMaxNamed with
// those behind them. Thread rule: the control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/event_loop.h"
#include "lib/base/generation.h"
#include "lib/base/handle.h"
#include "lib/base/time.h"
#include "lib/transport/caller.h"
#include "lib/verbs/types.h"

namespace tokamak::node {

class VouchedCopies final {
 public:
  static constexpr size_t kMaxCopies = 65536;
  static constexpr size_t kMaxNodes = 16;

  // All references must outlive it.
  struct Needs {
    base::EventLoop& loop;
    transport::Caller& objects;  // of the service kObjects
    verbs::Address self;
  };
  struct Options {
    base::Duration lifetime = base::Seconds(75);  // also of those named by another node
    base::Duration deadline = base::Seconds(2);   // of a call
    base::Duration retry = base::Seconds(1);      // after no answer
  };
  using GoneCallback = std::function<void(const base::ObjectVersion&)>;

  // `gone` runs when a version's last copy is gone.
  VouchedCopies(const Needs& needs, const Options& options, GoneCallback gone)
      : needs_(needs), options_(options), gone_(std::move(gone)) {}
  ~VouchedCopies();
  VouchedCopies(const VouchedCopies&) = delete;
  VouchedCopies& operator=(const VouchedCopies&) = delete;

  // Lets the node with an engine at `node` seal its copy of `version`, to be announced or dropped
  // within `lifetime`. False: too many. (Addresses: the directory would not locate a node without a
  // lease.)
  [[nodiscard]] bool Vouch(const base::ObjectVersion& version, const verbs::Address& node, base::Duration lifetime);

  bool Contains(const base::ObjectVersion& version) const { return objects_.count(version) != 0; }

  // Tells the nodes with a copy of `version` that it was deleted.
  void Drop(const base::ObjectVersion& version);

  // Runs `done` when no copy of `version` is left. Null, and no call, if there is none.
  [[nodiscard]] base::Pending Await(const base::ObjectVersion& version, base::Task done);

  // An engine of each node that may have a copy of `version`.
  std::vector<verbs::Address> NodesOf(const base::ObjectVersion& version) const;

 private:
  struct Object;
  // On its list until answered or dropped.
  class Waiter final : public base::Handle {
   public:
    Waiter(Object& object, base::Task done) : object_(&object), done_(std::move(done)) {}
    ~Waiter() override;
    void Tell();
    void Orphan() { object_ = nullptr; }

    base::Link<Waiter> link;

   private:
    Object* object_;  // null: off the list
    base::Task done_;
  };
  struct Object {
    std::map<verbs::Address, base::Time> nodes;  // holders, and until when
    bool dropping = false;
    std::set<verbs::Address> named;  // all so far, while dropping
    std::map<verbs::Address, base::Pending> calls;
    base::Timer retry;
    base::IntrusiveList<Waiter, &Waiter::link> waiters;
  };
  struct Expiry {
    base::ObjectVersion version;
    verbs::Address node;
  };

  void Add(Object& object, const base::ObjectVersion& version, const verbs::Address& node, base::Duration lifetime);
  void Tell(const base::ObjectVersion& version);
  void TellLater(Object& object, const base::ObjectVersion& version);
  void Answered(const base::ObjectVersion& version, const verbs::Address& node,
                const absl::StatusOr<absl::Span<const uint8_t>>& answer);
  bool TakeNames(Object& object, const base::ObjectVersion& version, absl::Span<const uint8_t> answer);
  bool Remove(const base::ObjectVersion& version, const verbs::Address& node);
  void Expire();

  const Needs needs_;
  const Options options_;
  const GoneCallback gone_;
  std::map<base::ObjectVersion, Object> objects_;
  std::multimap<base::Time, Expiry> expiries_;
  base::Timer expiry_;
};

}  // namespace tokamak::node
