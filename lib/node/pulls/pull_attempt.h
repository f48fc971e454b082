// PullAttempt is the transfer of a pull's object from one holder: an engine moves the bytes.
//
//   idle --Begin--> moving --the engine's report--> idle
//
// It holds the holder's slot (Peers), and reports to Peers how it has done. Objects up to kShortWay
// go between first engines, others between bulk engines.
// Law: from Begin to OnMoved the engine may write to the memory, also after Cancel.
// Thread rule: the control loop.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "lib/directory/directory.h"
#include "lib/node/cluster/peers.h"
#include "lib/node/engines/engine.h"
#include "lib/node/pulls/pull_context.h"
#include "lib/transport/endpoint.h"
#include "lib/transport/object_access.h"

namespace tokamak::node {

class PullAttempt final {
 public:
  class Owner {
   public:
    // The memory is safe, and report() is set. May begin the next attempt, or destroy this.
    virtual void OnMoved(const absl::Status& status) = 0;

   protected:
    ~Owner() = default;
  };

  // References must outlive it.
  PullAttempt(PullContext& context, Owner& owner) : context_(context), owner_(owner) {}
  // Requires that it is not moving, or that the engine has ended.
  ~PullAttempt();
  PullAttempt(const PullAttempt&) = delete;
  PullAttempt& operator=(const PullAttempt&) = delete;

  // Moves the object that `request` names (id, generation, sizes, protocol, bytes arrived,
  // activity) from `holder`, which is ready, to `memory`; counts the bytes that have come in
  // `moved`. Errors as Engine::Pull's: nothing has begun, and the holder is not to blame.
  [[nodiscard]] absl::Status Begin(const directory::NodeId& holder, transport::PullRequest request,
                                   absl::Span<uint8_t> memory, std::atomic<uint64_t>& moved);
  // Asks for the end: OnMoved follows once the memory is safe; the object may have arrived all the
  // same.
  void Cancel();

  bool moving() const { return token_.has_value(); }
  const directory::NodeId& holder() const { return holder_; }          // the last attempt's
  const transport::TransferReport& report() const { return report_; }  // the last one's

 private:
  bool IsBulk(const transport::PullRequest& request, const Peers::Peer& peer) const;
  void Moved(const absl::Status& status, const transport::TransferReport& report);
  void RestBulk(const absl::Status& status);

  PullContext& context_;
  Owner& owner_;
  directory::NodeId holder_;
  bool bulk_ = false;              // true if between engines for bulk
  Engine* engine_ = nullptr;       // of the last attempt
  std::optional<uint64_t> token_;  // the engine's, for the transfer; nullopt: idle
  transport::TransferReport report_;
};

}  // namespace tokamak::node
