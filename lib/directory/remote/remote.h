// RemoteDirectory asks another node's directory, over calls of the transport that also moves the
// objects.
//
// server.h is the other end. A malformed reply counts as none (kUnavailable).
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
  static constexpr size_t kMostCalls = kMostCallsOfNode + Locates::kMaxCalls + Watches::kMaxCalls + 2;  // and polls

  // `loop` and `caller` must outlive it. `server`: the serving node's first engine; without a port
  // calls fail (kUnavailable). `random` draws our name at the server: another stream for each
  // asker.
  RemoteDirectory(base::EventLoop& loop, transport::Caller& caller, const verbs::Address& server, base::Random random)
      : RemoteDirectory(loop, caller, caller, server, random) {}
  // The same, but Delete and Roster, unbounded as of programs, go by `programs`; all else is at
  // most kMostCalls calls of `caller`, while the user has at most kMostCallsOfNode Joins, Leaves,
  // Updates and Verifies under way.
  RemoteDirectory(base::EventLoop& loop, transport::Caller& caller, transport::Caller& programs,
                  const verbs::Address& server, base::Random random);
  RemoteDirectory(const RemoteDirectory&) = delete;
  RemoteDirectory& operator=(const RemoteDirectory&) = delete;

  // Takes effect for later calls.
  void MoveTo(const verbs::Address& server) { server_ = server; }

  // True if the last call to end had no answer.
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

  // `read` gets the status and, if OK, the rest of the reply. Waiting Locates and watches go first.
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
