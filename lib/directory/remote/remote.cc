#include "lib/directory/remote/remote.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace tokamak::directory {

namespace {

constexpr size_t kVerifyOverhead = 128;  // bytes of a request, beside its versions

}  // namespace

RemoteDirectory::RemoteDirectory(base::EventLoop& loop, transport::Caller& caller, transport::Caller& programs,
                                 const verbs::Address& server, base::Random random)
    : loop_(loop),
      caller_(caller),
      programs_(programs),
      server_(server),
      watches_(loop, caller.max_call_size(), random,
               [this](const base::Writer& request, base::Duration deadline, Watches::Read read) {
                 return Call(caller_, request, deadline, std::move(read));
               }),
      locates_(loop, caller.max_call_size(),
               [this](const base::Writer& request, base::Duration deadline, Locates::Read read) {
                 return Call(caller_, request, deadline, std::move(read));
               }),
      answers_(loop) {}

template <typename Read>
base::Pending RemoteDirectory::Ask(const base::Writer& request, base::Duration deadline, Read read) {
  watches_.Flush();
  locates_.Flush();
  return Call(caller_, request, deadline, std::move(read));
}

template <typename Read>
base::Pending RemoteDirectory::AskForProgram(const base::Writer& request, base::Duration deadline, Read read) {
  watches_.Flush();
  locates_.Flush();
  return Call(programs_, request, deadline, std::move(read));
}

template <typename Read>
base::Pending RemoteDirectory::Call(transport::Caller& caller, const base::Writer& request, base::Duration deadline,
                                    Read read) {
  if (server_.port == 0) {
    return answers_.Add([this, read = std::move(read)] {
      unanswered_ = true;
      base::Reader nothing({});
      read(absl::UnavailableError("the directory's address is not known yet: its host's name is being looked up"),
           nothing);
    });
  }
  return caller.Call(
      server_, request.bytes(), deadline,
      [this, gone = lifetime_.Watched(), read = std::move(read)](absl::StatusOr<absl::Span<const uint8_t>> reply) {
        if (gone.over()) return;
        unanswered_ = !reply.ok();
        base::Reader reader(reply.ok() ? *reply : absl::Span<const uint8_t>());
        if (reply.ok()) return read(ReadStatus(reader), reader);
        const absl::Status& status = reply.status();
        read(absl::Status(status.code(), absl::StrCat("directory at ", server_.ToString(), ": ", status.message())),
             reader);
      });
}

base::Pending RemoteDirectory::Join(const JoinRequest& join, base::Duration deadline, JoinCallback done) {
  base::Writer request = BeginRequest(RequestKind::kJoin);
  WriteNode(request, join.node);
  request.Integer(join.lease.picoseconds());
  request.Integer(join.grace.picoseconds());
  request.Integer(static_cast<uint8_t>((join.returning ? 1 : 0) | (join.complete ? 2 : 0)));
  request.Text(join.mark);
  return Ask(request, deadline, [done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    if (!status.ok()) return done(status);
    JoinReply reply;
    const auto flags = reader.Integer<uint8_t>();
    reply.entered = (flags & 1) != 0;
    reply.outdated = (flags & 2) != 0;
    reply.mark = reader.Text(kMaxMark);
    reply.as_of = reader.Text(kMaxMark);
    reply.drops.resize(reader.Count(kMaxDropsTold, base::ObjectId::kSize + sizeof(uint64_t)));
    bool any_without = false;
    for (base::ObjectVersion& version : reply.drops) {
      version = ReadVersion(reader);
      any_without |= version.generation == base::kNoGeneration;
    }
    if (!reader.Complete() || any_without || flags > 3) return done(MalformedReply());
    done(std::move(reply));
  });
}

base::Pending RemoteDirectory::Leave(const NodeId& node, uint64_t incarnation, base::Duration deadline,
                                     StatusCallback done) {
  base::Writer request = BeginRequest(RequestKind::kLeave);
  request.Text(node);
  request.Integer(incarnation);
  return Ask(request, deadline, [done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    done(status.ok() && !reader.Complete() ? MalformedReply() : status);
  });
}

base::Pending RemoteDirectory::Update(const NodeId& node, absl::string_view as_of,
                                      absl::Span<const directory::Update> updates, base::Duration deadline,
                                      UpdateCallback done) {
  base::Writer request = BeginRequest(RequestKind::kUpdate);
  request.Text(node);
  request.Text(as_of);
  request.Integer(static_cast<uint32_t>(updates.size()));
  for (const directory::Update& update : updates) WriteUpdate(request, update);
  return Ask(request, deadline,
             [done = std::move(done), count = updates.size()](const absl::Status& status, base::Reader& reader) {
               if (!status.ok()) return done(status);
               if (reader.Integer<uint32_t>() != count) return done(MalformedReply());
               UpdateStatuses statuses;
               statuses.reserve(count);
               for (size_t i = 0; i < count; ++i) statuses.push_back(ReadStatus(reader));
               if (!reader.Complete()) return done(MalformedReply());
               done(std::move(statuses));
             });
}

base::Pending RemoteDirectory::Locate(const LocateRequest& locate, LocateCallback done) {
  if (locate.wait > base::Duration()) {
    locates_.Flush();
    return watches_.Locate(locate, std::move(done));
  }
  watches_.Flush();
  return locates_.Locate(locate, std::move(done));
}

base::Pending RemoteDirectory::Delete(const DeleteRequest& step, base::Duration deadline, DeleteCallback done) {
  base::Writer request = BeginRequest(RequestKind::kDelete);
  WriteVersion(request, {step.id, step.generation});
  WriteNames(request, step.dropped);
  request.Text(step.after);
  return AskForProgram(request, deadline, [done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    if (!status.ok()) return done(status);
    DeleteReply reply;
    reply.generation = base::Generation{reader.Integer<uint64_t>()};
    reply.holders = ReadNames(reader);
    reply.silent = ReadNames(reader);
    if (!reader.Complete() || reply.generation == base::kNoGeneration) return done(MalformedReply());
    done(std::move(reply));
  });
}

// Asks for as many versions as fit, until all were looked at.
class RemoteDirectory::VerifyCall final : public base::Handle {
 public:
  VerifyCall(RemoteDirectory& directory, const NodeId& node, absl::Span<const base::ObjectVersion> versions,
             base::Duration deadline, VerifyCallback done)
      : directory_(directory),
        node_(node),
        versions_(versions.begin(), versions.end()),
        deadline_(directory.loop_.Now() + deadline),
        done_(std::move(done)) {
    AskNext();
  }

 private:
  void AskNext() {
    const size_t room = std::max<size_t>(directory_.caller_.max_call_size(), 2 * kVerifyOverhead) - kVerifyOverhead;
    const size_t asked =
        std::min(versions_.size() - looked_at_, room / (base::ObjectId::kSize + sizeof(base::Generation)));
    base::Writer request = BeginRequest(RequestKind::kVerify);
    request.Text(node_);
    request.Integer(static_cast<uint32_t>(asked));
    for (size_t i = 0; i < asked; ++i) WriteVersion(request, versions_[looked_at_ + i]);
    step_ = directory_.Ask(request, deadline_ - directory_.loop_.Now(),
                           [this, asked](const absl::Status& status, base::Reader& reader) {
                             const absl::Status read = status.ok() ? Read(reader, asked) : status;
                             if (read.ok() && looked_at_ < versions_.size()) return AskNext();
                             const VerifyCallback done = std::move(done_);  // may drop us
                             if (!read.ok()) return done(read);
                             done(std::move(unknown_));
                           });
  }

  absl::Status Read(base::Reader& reader, size_t asked) {
    const uint32_t looked_at = reader.Integer<uint32_t>();
    const uint32_t unknown = reader.Count(looked_at, sizeof(uint32_t));
    for (uint32_t i = 0; i < unknown; ++i) {
      const auto place = reader.Integer<uint32_t>();
      if (place >= looked_at) return MalformedReply();
      unknown_.push_back(static_cast<uint32_t>(looked_at_) + place);
    }
    if (!reader.Complete() || looked_at > asked || (looked_at == 0 && asked > 0)) return MalformedReply();
    looked_at_ += looked_at;
    return absl::OkStatus();
  }

  RemoteDirectory& directory_;
  const NodeId node_;
  const std::vector<base::ObjectVersion> versions_;
  const base::Time deadline_;
  VerifyCallback done_;
  size_t looked_at_ = 0;
  std::vector<uint32_t> unknown_;
  base::Pending step_;
};

base::Pending RemoteDirectory::Verify(const NodeId& node, absl::Span<const base::ObjectVersion> versions,
                                      base::Duration deadline, VerifyCallback done) {
  if (versions.size() <= kMaxVerified) {
    return std::make_unique<VerifyCall>(*this, node, versions, deadline, std::move(done));
  }
  return answers_.Add([done = std::move(done)] {
    done(absl::InvalidArgumentError(absl::StrCat("at most ", kMaxVerified, " versions at once")));
  });
}

base::Pending RemoteDirectory::Held(const NodeId& node, const std::string& after, base::Duration deadline,
                                    HeldCallback done) {
  base::Writer request = BeginRequest(RequestKind::kHeld);
  request.Text(node);
  request.Text(after);
  return Ask(request, deadline, [after, done = std::move(done)](const absl::Status& status, base::Reader& reader) {
    if (!status.ok()) return done(status);
    HeldReply reply;
    reply.next = reader.Text(kMaxHeldCursor);
    reply.versions.resize(reader.Count(kHeldPage, base::ObjectId::kSize + sizeof(uint64_t)));
    bool any_without = false;
    for (base::ObjectVersion& version : reply.versions) {
      version = ReadVersion(reader);
      any_without |= version.generation == base::kNoGeneration;
    }
    const bool stands_still = !reply.next.empty() && reply.next == after;
    if (!reader.Complete() || any_without || stands_still) return done(MalformedReply());
    done(std::move(reply));
  });
}

// Asks for the next nodes until there are no more.
class RemoteDirectory::RosterCall final : public base::Handle {
 public:
  RosterCall(RemoteDirectory& directory, base::Duration deadline, RosterCallback done)
      : directory_(directory), deadline_(directory.loop_.Now() + deadline), done_(std::move(done)) {
    AskNext();
  }

 private:
  void AskNext() {
    base::Writer request = BeginRequest(RequestKind::kRoster);
    request.Text(roster_.empty() ? NodeId() : roster_.back().node.id);
    step_ = directory_.AskForProgram(request, deadline_ - directory_.loop_.Now(),
                                     [this](const absl::Status& status, base::Reader& reader) {
                                       bool more = false;
                                       const absl::Status read = status.ok() ? Read(reader, &more) : status;
                                       if (read.ok() && more) return AskNext();
                                       const RosterCallback done = std::move(done_);  // may drop us
                                       if (!read.ok()) return done(read);
                                       done(std::move(roster_));
                                     });
  }

  // Names must rise: else a reply could make us ask for ever.
  absl::Status Read(base::Reader& reader, bool* more) {
    *more = reader.Integer<uint8_t>() != 0;
    const uint32_t count = reader.Integer<uint32_t>();
    for (uint32_t i = 0; i < count && reader.ok(); ++i) {
      RosterEntry entry;
      if (!ReadRosterEntry(reader, &entry)) return MalformedReply();
      const bool rises = roster_.empty() || roster_.back().node.id < entry.node.id;
      if (!rises || roster_.size() == kMaxNodes) return MalformedReply();
      roster_.push_back(std::move(entry));
    }
    return !reader.Complete() || (*more && count == 0) ? MalformedReply() : absl::OkStatus();
  }

  RemoteDirectory& directory_;
  const base::Time deadline_;
  RosterCallback done_;
  std::vector<RosterEntry> roster_;
  base::Pending step_;
};

base::Pending RemoteDirectory::Roster(base::Duration deadline, RosterCallback done) {
  return std::make_unique<RosterCall>(*this, deadline, std::move(done));
}

}  // namespace tokamak::directory
