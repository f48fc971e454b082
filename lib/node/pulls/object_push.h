// ObjectPush has another node bring objects to itself, from any holder, as for a program of its
// own, and report how each went.
//
// This node sends no bytes and need not hold them. Dropping the handle cancels the outstanding ones
// there. Thread rule: the control loop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "lib/base/event_loop.h"
#include "lib/base/fair_share.h"
#include "lib/base/handle.h"
#include "lib/directory/directory.h"
#include "lib/node/calls/object_messages.h"
#include "lib/node/cluster/peers.h"
#include "lib/transport/caller.h"

namespace tokamak::node {

class ObjectPush final : public base::Handle {
 public:
  // Outcomes in the order of the ids; valid during the call.
  using Callback = std::function<void(absl::Span<const absl::Status>)>;

  // All references must outlive it.
  struct Needs {
    Peers& peers;
    transport::Caller& nodes;  // of the service kObjects
    size_t& under_way;         // live pushes
    base::Duration deadline;   // for the answer, beyond the time-out
  };

  // `done` runs once, later. Requires at most PushRequest::kMaxPushed ids.
  ObjectPush(const Needs& needs, const directory::NodeId& to, PushRequest request, Callback done);
  ~ObjectPush() override { --needs_.under_way; }

  // Objects brought for peers at once; the directory's bound beside a node's own programs.
  static constexpr size_t kMaxBrought = 16384;

  // A peer's request being served, owned by its objects' pulls.
  class Served final : public base::Handle {
   public:
    Served(size_t objects, transport::Reply reply, base::FairShare<directory::Host>::Claim claim)
        : claim_(std::move(claim)), reply_(std::move(reply)), statuses_(objects), left_(objects) {}

    void Add(base::Pending one) { brought_.push_back(std::move(one)); }
    void Ended(size_t place, const absl::Status& status);

   private:
    const base::FairShare<directory::Host>::Claim claim_;
    const transport::Reply reply_;
    std::vector<absl::Status> statuses_;
    size_t left_;
    std::vector<base::Pending> brought_;
  };

 private:
  void Ask();
  void Answered(const absl::StatusOr<absl::Span<const uint8_t>>& reply);
  void Finish(const absl::Status& of_all);

  const Needs needs_;
  const directory::NodeId to_;
  const PushRequest request_;
  Callback done_;
  base::Pending step_;
};

}  // namespace tokamak::node
