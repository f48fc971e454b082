// LocalDirectory is the directory as pure state in this process: one node's own, or what a serving node shares with others.
//
// Law: only nodes with a lease are named as holders; when a lease ends, all that the node held is forgotten.
// Law: an object is known while somebody holds it, with the sizes that its first holder announced.
// Bounds: kMaxNodes nodes, kMaxHolders holders of one object, and LocalBounds (kResourceExhausted beyond).
// Thread rule: its loop.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "lib/base/event_loop.h"
#include "lib/directory/answers.h"
#include "lib/directory/directory.h"

namespace tokamak::directory {

struct LocalBounds {
  size_t objects = size_t{1} << 24;  // known at once
  size_t waiting = 65536;            // Locates
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
    base::Timer timeout;
  };
  struct Entry {
    ObjectInfo info;  // holders in the order announced
    std::map<uint64_t, Waiting> waiting;
  };

  void Answer(base::Task answer) { answers_.Add(std::move(answer)); }
  void Forget(const NodeId& node);
  void Remove(const base::ObjectId& id, const NodeId& node);
  void EraseIfIdle(const base::ObjectId& id);
  void WakeWaiting(Entry& entry);

  base::EventLoop& loop_;
  const LocalBounds bounds_;
  std::map<NodeId, Member> nodes_;
  std::map<base::ObjectId, Entry> objects_;
  uint64_t last_waiting_ = 0;
  size_t waiting_ = 0;
  Answers answers_;
};

}  // namespace tokamak::directory
