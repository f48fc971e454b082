// EnginePulls are one engine's pulls under way, with the callbacks that wait for their ends.
//
// Law: each callback runs once, at the pull's end or in EndAll, in the order in which they began
// there; callbacks of pulls that are left when this is dropped never run.
// Thread rule: the node's control loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "lib/base/check.h"
#include "lib/base/containers/intrusive_list.h"
#include "lib/base/containers/numbered_table.h"
#include "lib/base/lifetime.h"
#include "lib/node/engines/engine.h"
#include "lib/transport/object_access.h"
#include "lib/transport/pull_request.h"

namespace tokamak::node {

class EnginePulls final {
 public:
  struct OnePull {
    OnePull(uint64_t t, Engine::PullCallback d) : token(t), done(std::move(d)) {}
    const uint64_t token;
    transport::PullId transfer = 0;  // its name at an endpoint of the same loop; 0: none is known here
    Engine::PullCallback done;
    base::Link<OnePull> table_link;
  };

  // Returns an error if no further pull may begin.
  absl::Status CheckRoom() const {
    if (pulls_.size() < kMaxEnginePulls) return absl::OkStatus();
    return absl::ResourceExhaustedError("too many objects are on their way here: waiting for some to arrive");
  }

  // Notes a pull that begins, under a new token.
  OnePull& Add(Engine::PullCallback done) {
    const uint64_t token = ++last_token_;
    OnePull* pull = pulls_.Claim(token, std::move(done));
    pulls_.Bind(token, pull);
    return *pull;
  }

  // Returns null if that pull is over.
  const OnePull* Find(uint64_t token) const { return pulls_.Find(token); }
  size_t size() const { return pulls_.size(); }

  // Runs the callback of a pull, which is over. It may drop this.
  void End(uint64_t token, const absl::Status& status, const transport::TransferReport& report) {
    const Engine::PullCallback done = TakeOut(pulls_.Find(token));
    done(status, report);
  }

  // Ends all with EngineGone(): the endpoint is gone. A callback may drop this.
  void EndAll() {
    const base::Lifetime::Watch watch = lifetime_.Watched();
    while (!pulls_.empty()) {
      const Engine::PullCallback done = TakeOut(pulls_.first());
      done(EngineGone(), {});
      if (watch.over()) return;
    }
  }

 private:
  Engine::PullCallback TakeOut(OnePull* pull) {
    CHECK(pull != nullptr);
    Engine::PullCallback done = std::move(pull->done);
    pulls_.Unbind(pull->token);
    pulls_.Release(pull);
    return done;
  }

  uint64_t last_token_ = 0;
  base::NumberedTable<OnePull> pulls_;  // by token
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::node
