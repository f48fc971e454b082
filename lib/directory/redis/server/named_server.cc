#include "lib/directory/redis/server/named_server.h"

#include <utility>

#include "lib/directory/redis/server/remedies.h"
#include "lib/directory/redis/server/server_info.h"

namespace tokamak::directory::redis {

base::Pending NamedServer::Find(base::Duration, FoundCallback found) {
  return answers_.Add([this, found = std::move(found)] { found(place_); });
}

std::vector<Command> NamedServer::Questions() const {
  return role_ == Role::kMaster ? std::vector<Command>{{"INFO"}} : std::vector<Command>();
}

absl::Status NamedServer::Judge(const Place&, const std::vector<Reply>& replies) {
  return role_ == Role::kMaster ? JudgeInfo(replies[0], Target::Kind::kServer) : absl::OkStatus();
}

base::Pending NamedServer::Confirm(const Place&, base::Duration, StatusCallback done) {
  return answers_.Add([done = std::move(done)] { done(absl::OkStatus()); });
}

absl::Status JudgeInfo(const Reply& reply, Target::Kind kind) {
  if (reply.kind == Reply::Kind::kError) return absl::UnavailableError(WithRemedy(reply.text));
  return ServerInfo::Parse(reply.text).Check(kind);
}

}  // namespace tokamak::directory::redis
