// DirectoryServer answers other nodes' directory requests from this node's own directory.
//
// A malformed request gets kInvalidArgument. An asker's waits are in a session (watch_session.h),
// which ends with its next one, or after kSessionSilence.
// Bounds: kMaxSessions, and LocalDirectory::most_waiting() watches of all hosts together; of both,
// a host has at most as many as it leaves to others (base::FairShare).
// Thread rule: the directory's loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "absl/types/span.h"
#include "lib/base/codec.h"
#include "lib/base/event_loop.h"
#include "lib/base/fair_share.h"
#include "lib/base/handle.h"
#include "lib/directory/local.h"
#include "lib/directory/remote/messages.h"
#include "lib/directory/remote/watch_session.h"
#include "lib/transport/caller.h"

namespace tokamak::directory {

class DirectoryServer final {
 public:
  static constexpr size_t kMinReply = 512;  // least bytes of max_reply
  static constexpr size_t kMaxSessions = kMaxNodes;
  static constexpr base::Duration kSessionSilence = base::Seconds(60);
  static_assert(kSessionSilence >= kPollTurn * 2, "who polls is not silent");

  // `loop` and `directory` must outlive it. `max_reply`: bytes.
  DirectoryServer(base::EventLoop& loop, LocalDirectory& directory, size_t max_reply)
      : loop_(loop), directory_(directory), max_reply_(max_reply), watched_(directory.most_waiting()) {}
  DirectoryServer(const DirectoryServer&) = delete;
  DirectoryServer& operator=(const DirectoryServer&) = delete;

  // Lets answers bring the objects of `self`, its node. `contents` returns data and then metadata;
  // empty: not here.
  using Contents = std::function<absl::Span<const uint8_t>(const base::ObjectVersion&)>;
  void BringFrom(NodeId self, Contents contents);

  // A transport::CallHandler: `reply` runs at most once, perhaps inside the call.
  [[nodiscard]] base::Pending Handle(absl::Span<const uint8_t> request, transport::Reply reply);

  size_t sessions() const { return sessions_.size(); }

 private:
  struct Asked {
    base::ObjectId id;
    bool may_bring = false;
  };
  struct Session {
    std::unique_ptr<WatchSession> watches;
    base::Timer silence;
    base::FairShare<Host>::Claim place;
  };

  base::Pending HandleJoin(base::Reader& reader, transport::Reply reply);
  base::Pending HandleLeave(base::Reader& reader, transport::Reply reply);
  base::Pending HandleUpdate(base::Reader& reader, transport::Reply reply);
  base::Pending HandleLocate(base::Reader& reader, const transport::Reply& reply);
  bool MayBring(const LocatedObject& object) const;
  void Bring(const base::ObjectId& id, LocatedObject& object) const;
  base::Pending HandleDelete(base::Reader& reader, transport::Reply reply);
  base::Pending HandleVerify(base::Reader& reader, transport::Reply reply);
  base::Pending HandleHeld(base::Reader& reader, const transport::Reply& reply);
  base::Pending HandleRoster(base::Reader& reader, const transport::Reply& reply);
  base::Pending HandleWatch(base::Reader& reader, transport::Reply reply);
  base::Pending HandlePoll(base::Reader& reader, transport::Reply reply);

  // Null: unknown, or the asker has a later one.
  WatchSession* FindSession(const SessionName& name);
  // Null: too many.
  WatchSession* BeginSession(const SessionName& name, const Host& host);
  void NoteWord(uint64_t asker, Session& session);

  base::EventLoop& loop_;
  LocalDirectory& directory_;
  const size_t max_reply_;
  NodeId self_;
  Contents contents_;
  base::FairShare<Host> places_{kMaxSessions};  // of sessions
  base::FairShare<Host> watched_;
  std::map<uint64_t, Session> sessions_;  // by asker
};

}  // namespace tokamak::directory
