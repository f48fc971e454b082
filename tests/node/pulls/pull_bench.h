// PullBench is what the parts of a pull work with, around a loop, a store, a membership and engines
// of a test's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "lib/base/trace.h"
#include "lib/node/pulls/object_pull.h"
#include "lib/node/pulls/pull_context.h"

namespace tokamak::node {

class PullBench final : private PullContext::Table {
 public:
  // All references must outlive it. `engines` as PullNeeds has them.
  PullBench(base::EventLoop& loop, store::Store& store, directory::Directory& directory, Membership& membership,
            Copies& copies, std::vector<Engine*> engines, const PeersOptions& peers_options = {})
      : peers(loop, directory, peers_options),
        needs_{loop,    store,  directory,        peers,   membership,           places,
               dropped, copies, *engines.front(), engines, membership.self().id, trace_} {}

  // Reads who is alive and where, within `time` of the test's that runs it.
  void RefreshPeers() {
    asking_ = peers.Refresh([](const absl::Status&) {});
  }

  std::vector<directory::NodeId> freed;  // slots of these holders

 private:
  void Enqueue(const directory::NodeId&, ObjectPull&) override {}
  void Dequeue(const directory::NodeId&, const ObjectPull&) override {}
  void SlotFreed(const directory::NodeId& holder) override { freed.push_back(holder); }
  size_t running() const override { return 1; }
  std::unique_ptr<ObjectPull> TakeOut(const base::ObjectId&) override { return nullptr; }

  base::NoTrace trace_;
  base::Pending asking_;

 public:
  Peers peers;
  LocationCache places;
  DroppedVersions dropped;
  PullOptions options;

 private:
  const PullNeeds needs_;

 public:
  PullContext context{
      needs_, options, *this, base::Random(1), {needs_.loop, needs_.objects, options.directory_deadline}};
};

}  // namespace tokamak::node
