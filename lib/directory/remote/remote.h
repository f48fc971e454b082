// RemoteDirectory asks another node's directory, over calls of the same transport that moves the
// objects.
//
// The node that serves has a DirectoryServer (server.h) before its LocalDirectory. A malformed
// reply counts as no reply (kUnavailable). Locates that may wait are asked together, see watches.h.
// Thread rule: the loop of the Caller.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lib/base/answers.h"
#include "lib/base/codec.h"
#include "lib/base/event_loop.h"
#include "lib/base/lifetime.h"
#include "lib/base/random.h"
#include "lib/directory/directory.h"
#include "lib/directory/remote/locates.h"
#include "lib/directory/remote/messages.h"
#include "lib/directory/remote/watches.h"
#include "lib/transport/caller.h"
#include "lib/verbs/types.h"

namespace tokamak::directory {

class RemoteDirectory final : public Directory {
 public:
  static constexpr size_t kMostCallsOfNode = 16;
  static constexpr size_t kMostCalls = kMostCallsOfNode + Locates::kMaxCalls + Watches::kMaxCalls + 2;  // polls

  // `loop` and `caller` must outlive it. `server` is where the serving node's first engine listens.
  // Without a port it is not known yet, and calls fail (kUnavailable). `random` names us to it, so
  // no two askers may have the same.
  RemoteDirectory(base::EventLoop& loop, transport::Caller& caller, const verbs::Address& server, base::Random random)
      : RemoteDirectory(loop, caller, caller, server, random) {}
  // The same, where Delete and Roster, which programs may ask for as often as they like, go by
  // `programs`. All else is at most kMostCalls calls of `caller` at once, while its user has at
  // most `kMostCallsOfNode` Joins, Leaves, Updates and Verifies under way.
  RemoteDirectory(base::EventLoop& loop, transport::Caller& caller, transport::Caller& programs,
                  const verbs::Address& server, base::Random random);
  RemoteDirectory(const RemoteDirectory&) = delete;
  RemoteDirectory& operator=(const RemoteDirectory&) = delete;

  // It is found there: calls from now on go to this address.
  void MoveTo(const verbs::Address& server) { server_ = server; }

  // Whether the last call that has ended had no answer.
  bool unanswered() const { return unanswered_; }

  base::Pending Join(const JoinRequest& request, base::Duration deadline, JoinCallback done) override;
  base::Pending Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline, StatusCallback done) override;
  base::Pending Update(const NodeId& node, absl::string_view as_of, absl::Span<const directory::Update> updates,
                       base::Duration deadline, UpdateCallback done) override;
  base::Pending Locate(const LocateRequest& request, LocateCallback done) override;
  base::Pending Delete(const DeleteRequest& request, base::Duration deadline, DeleteCallback done) override;
  base::Pending Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions, base::Duration deadline,
                       VerifyCallback done) override;
  base::Pending Held(const NodeId& node, const std::string& after, base::Duration deadline, HeldCallback done) override;
  base::Pending Roster(base::Duration deadline, RosterCallback done) override;

 private:
  class RosterCall;
  class VerifyCall;

  // `read` gets the status and, where that is ok, what follows it in the reply. What was waited for
  // before is told first.
  template <typename Read>
  base::Pending Ask(const base::Writer& request, base::Duration deadline, Read read);
  template <typename Read>
  base::Pending AskForProgram(const base::Writer& request, base::Duration deadline, Read read);
  template <typename Read>
  base::Pending Call(transport::Caller& caller, const base::Writer& request, base::Duration deadline, Read read);

  base::EventLoop& loop_;
  transport::Caller& caller_;
  transport::Caller& programs_;
  verbs::Address server_;
  bool unanswered_ = false;
  Watches watches_;
  Locates locates_;
  base::Answers answers_;
  const base::Lifetime lifetime_;
};

}  // namespace tokamak::directory
