// PullAttempt is the transfer of a pull's object from one holder: an engine moves the bytes.
//
//   idle --Begin--> moving --the engine's report--> idle
//
// It takes and gives back the holder's slot (Peers), and reports to Peers how the holder has done.
// Small objects go between the first engines of both nodes, others between engines for bulk
// (kShortWay).
// Law: from Begin to OnMoved the engine may write to the memory, also after Cancel. Thread rule:
// the node's control loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/peers.h"
#include "lib/node/engines/engine_link.h"
#include "lib/node/pulls/pull_context.h"
#include "lib/transport/endpoint.h"
#include "lib/transport/object_access.h"

namespace tokamak::node {

class PullAttempt final {
 public:
  class Owner {
   public:
    // The attempt has ended: nobody touches the memory any more, and report() is its report. May
    // begin the next attempt, or destroy this object.
    virtual void OnMoved(const absl::Status& status) = 0;

   protected:
    ~Owner() = default;
  };

  // References must outlive it.
  PullAttempt(PullContext& context, Owner& owner) : context_(context), owner_(owner) {}
  // Requires that it is not moving, or that the engine's host has been dropped.
  ~PullAttempt();
  PullAttempt(const PullAttempt&) = delete;
  PullAttempt& operator=(const PullAttempt&) = delete;

  // Moves the object that `request` names (id, generation, sizes, protocol, bytes arrived,
  // activity) from `holder`, which is ready, to `memory`; counts the bytes that have come in
  // `moved`. Errors as EngineLink::Pull's: nothing has begun, and the holder is not to blame.
  [[nodiscard]] absl::Status Begin(const directory::NodeId& holder, transport::PullRequest request,
                                   absl::Span<uint8_t> memory, std::atomic<uint64_t>& moved);
  // Asks for the end: OnMoved follows as soon as the memory is safe; the object may have arrived
  // all the same.
  void Cancel();

  bool moving() const { return token_.has_value(); }
  const directory::NodeId& holder() const { return holder_; }          // of the last attempt
  const transport::TransferReport& report() const { return report_; }  // of the last that ended

 private:
  bool IsBulk(const transport::PullRequest& request, const Peers::Peer& peer) const;
  void Moved(const absl::Status& status, const transport::TransferReport& report);
  void RestBulk(const absl::Status& status);

  PullContext& context_;
  Owner& owner_;
  directory::NodeId holder_;
  bool bulk_ = false;              // true if between engines for bulk
  EngineLink* engine_ = nullptr;   // of the last attempt
  std::optional<uint64_t> token_;  // the engine's, for the transfer; nullopt: idle
  transport::TransferReport report_;
};

}  // namespace tokamak::node
