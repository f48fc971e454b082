// VouchedCopies are copies that other nodes made of objects here before the directory had entered
// them, because it is away or slow, or was not asked: this node vouches for them.
//
// A deletion that reaches this node reaches its copies, and their copies too; this node confirms
// the deletion only when all of them are gone, and until then withdraws nothing.
//
//   Vouch --> vouched --Drop--> dropping: calls to each node until it answers --> gone
//                |
//                +-- its time is over: its node has announced it, dropped it, or is fenced --> gone
//
// Bounds: kMaxCopies; of one object kMaxNodes vouched for here, and DropCopyRequest::kMaxNamed with
// those that these vouch for. Thread rule: the node's control loop.
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
    base::Duration lifetime = base::Seconds(75);  // also of those named by a node that drops its copy
    base::Duration deadline = base::Seconds(2);   // of a call
    base::Duration retry = base::Seconds(1);      // after a call without an answer
  };
  using GoneCallback = std::function<void(const base::ObjectVersion&)>;

  // `gone` runs when the last copy of a version that was dropped, or outlived, is gone.
  VouchedCopies(const Needs& needs, const Options& options, GoneCallback gone)
      : needs_(needs), options_(options), gone_(std::move(gone)) {}
  ~VouchedCopies();
  VouchedCopies(const VouchedCopies&) = delete;
  VouchedCopies& operator=(const VouchedCopies&) = delete;

  // Lets the node with an engine at `node` seal its copy of `version`; that node will have
  // announced or dropped it `lifetime` from now. False: too many are vouched for. (Addresses, since
  // the directory would not locate a node that has lost its lease.)
  [[nodiscard]] bool Vouch(const base::ObjectVersion& version, const verbs::Address& node, base::Duration lifetime);

  bool Contains(const base::ObjectVersion& version) const { return objects_.count(version) != 0; }

  // Begins to tell the nodes with a copy of `version` that it was deleted.
  void Drop(const base::ObjectVersion& version);

  // Runs `done` when no copy of `version` is left. Returns null, without running `done`, if none is
  // now.
  [[nodiscard]] base::Pending Await(const base::ObjectVersion& version, base::Task done);

  // Where copies of `version` may be: an engine of each node that this one vouches for.
  std::vector<verbs::Address> NodesOf(const base::ObjectVersion& version) const;

 private:
  struct Object;
  // Waits for the end of an object's copies; on its list until answered or dropped.
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
    std::map<verbs::Address, base::Time> nodes;  // that may have a copy, and until when
    bool dropping = false;
    std::set<verbs::Address> named;  // all nodes so far, while dropping
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
