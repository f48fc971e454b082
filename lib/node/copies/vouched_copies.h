// VouchedCopies are copies that other nodes made of what is here before the directory had entered
// them, since it is away or slow, or was not asked: this node vouches for them.
//
// A deletion that is told to this node reaches its copies, and theirs, too, and it confirms only
// when all of them are gone; until then it withdraws nothing.
//
//   Vouch --> vouched --Drop--> dropping: each node is told, again until it answers --> gone
//                |
//                +-- its time is over: its node has announced it, dropped it, or is fenced --> gone
//
// Bounds: kMaxCopies; of one object kMaxNodes that are vouched for, and
// DropCopyRequest::kMaxNamed with those that these vouch for. Thread rule: the node's control loop.
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
  struct Services {
    base::EventLoop& loop;
    transport::Caller& objects;  // of the service kObjects
    verbs::Address self;
  };
  struct Options {
    base::Duration lifetime = base::Seconds(75);  // also of those that a node which drops its copy names
    base::Duration deadline = base::Seconds(2);   // of a call
    base::Duration retry = base::Seconds(1);      // after a call that was not answered
  };
  using GoneCallback = std::function<void(const base::ObjectVersion&)>;

  // `gone` runs when the last copy of a version that was dropped, or outlived, is gone.
  VouchedCopies(const Services& services, const Options& options, GoneCallback gone)
      : services_(services), options_(options), gone_(std::move(gone)) {}
  ~VouchedCopies();
  VouchedCopies(const VouchedCopies&) = delete;
  VouchedCopies& operator=(const VouchedCopies&) = delete;

  // The node with an engine at `node` may seal its copy of `version`, and will have announced or
  // dropped it `lifetime` from now. False: too many are vouched for. (The directory would not say
  // where a node is that has lost its lease.)
  [[nodiscard]] bool Vouch(const base::ObjectVersion& version, const verbs::Address& node, base::Duration lifetime);

  bool Contains(const base::ObjectVersion& version) const { return objects_.count(version) != 0; }

  // `version` was deleted: begins to tell the nodes that have a copy.
  void Drop(const base::ObjectVersion& version);

  // Runs `done` when no copy of `version` is left; null, and `done` does not run, if none is now.
  [[nodiscard]] base::Pending Await(const base::ObjectVersion& version, base::Task done);

  // Where the copies of `version` may be: an engine of each node that this one vouches for.
  std::vector<verbs::Address> NodesOf(const base::ObjectVersion& version) const;

 private:
  struct Object;
  // One who waits for the end of an object's copies; on its list until told or dropped.
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
    std::set<verbs::Address> named;  // while dropping: all that ever were
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

  const Services services_;
  const Options options_;
  const GoneCallback gone_;
  std::map<base::ObjectVersion, Object> objects_;
  std::multimap<base::Time, Expiry> expiries_;
  base::Timer expiry_;
};

}  // namespace tokamak::node
