// LocalDirectory is the directory as pure state in this process: one node's own, or what a serving node shares with others.
//
// Law: only nodes with a lease are named as holders; when a lease ends, all that the node held is forgotten.
// Law: an object is known while somebody holds it, with the sizes that its first holder announced.
// Bounds: kMaxNodes nodes, kMaxHolders holders of one object, and LocalBounds (kResourceExhausted beyond).
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "lib/base/event_loop.h"
#include "lib/directory/answers.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

struct LocalBounds {
  size_t objects = size_t{1} << 24;  // known at once
  size_t waiting = size_t{1} << 20;  // for an object to appear
};

// A question of LocateAny. Dropping it ends it without an answer, also from inside the answer.
class AnyWait {
 public:
  virtual ~AnyWait() = default;
};

class LocalDirectory final : public Directory {
 public:
  // `loop` must outlive it.
  explicit LocalDirectory(base::EventLoop& loop, const LocalBounds& bounds = {})
      : loop_(loop), bounds_(bounds), answers_(loop) {}
  LocalDirectory(const LocalDirectory&) = delete;
  LocalDirectory& operator=(const LocalDirectory&) = delete;

  void Join(const NodeInfo& node, base::Duration lease, base::Duration deadline, JoinCallback done) override;
  void Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) override;
  void Announce(const base::ObjectId& id, uint64_t data_size, uint64_t metadata_size, const NodeId& node,
                base::Duration deadline, StatusCallback done) override;
  void Withdraw(const base::ObjectId& id, const NodeId& node, base::Duration deadline, StatusCallback done) override;
  void Locate(const base::ObjectId& id, base::Duration wait, base::Duration deadline, LocateCallback done) override;
  void Nodes(base::Duration deadline, NodesCallback done) override;

  // Which of `ids` are held: those that are, or, where none is, the first that appear within `wait`, with their places in `ids`.
  // `done` runs once, later. kNotFound: the wait was in vain; kResourceExhausted. So one question covers all that the gets of
  // a peer wait for.
  using Found = std::vector<std::pair<size_t, ObjectInfo>>;
  using AnyCallback = std::function<void(absl::StatusOr<Found>)>;
  [[nodiscard]] std::unique_ptr<AnyWait> LocateAny(const std::vector<base::ObjectId>& ids, base::Duration wait,
                                                   AnyCallback done);

  // Objects that somebody holds or waits for.
  size_t objects() const { return objects_.size(); }
  size_t nodes() const { return nodes_.size(); }

 private:
  struct Member {
    NodeInfo info;
    std::set<base::ObjectId> held;
    base::Timer lease;
  };
  struct Waiting {
    LocateCallback done;
    base::Timer timeout;  // of a Locate; an Any has its own
  };
  struct Entry {
    ObjectInfo info;  // holders in the order announced
    std::map<uint64_t, Waiting> waiting;
  };

  class Any;

  void Answer(base::Task answer) { answers_.Add(std::move(answer)); }
  void Forget(const NodeId& node);
  void Remove(const base::ObjectId& id, const NodeId& node);
  void EraseIfIdle(const base::ObjectId& id);
  void WakeWaiting(Entry& entry);
  const ObjectInfo* FindHeld(const base::ObjectId& id) const;
  uint64_t AddWaiting(const base::ObjectId& id, LocateCallback done);
  void DropWaiting(const base::ObjectId& id, uint64_t number);

  base::EventLoop& loop_;
  const LocalBounds bounds_;
  std::map<NodeId, Member> nodes_;
  std::map<base::ObjectId, Entry> objects_;
  uint64_t last_waiting_ = 0;
  size_t waiting_ = 0;
  Answers answers_;
  const std::shared_ptr<char> alive_ = std::make_shared<char>();  // for questions that outlive us
};

}  // namespace tokamak::directory
