#include "lib/directory/redis/server/server_watch.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/directory/redis/server/server_info.h"

namespace tokamak::directory::redis {
namespace {

constexpr base::Duration kDeadline = base::Seconds(5);

}  // namespace

void ServerWatch::Look() {
  next_ = loop_.RunAfter(kLookEvery, [this] { Look(); });
  asked_ = connection_.Call({"INFO"}, kDeadline, [this](const absl::StatusOr<Reply>& reply) {
    if (reply.ok()) Heard(*reply);  // else other calls report the trouble
  });
}

void ServerWatch::Heard(const Reply& reply) {
  const ServerInfo info = ServerInfo::Parse(reply.text);
  const std::vector<std::string> dangers = info.Dangers();
  for (const std::string& danger : dangers) {
    const bool is_new = std::find(told_.begin(), told_.end(), danger) == told_.end();
    LOG_IF(WARNING, is_new) << connection_.Trouble(danger).message();
  }
  told_ = dangers;
  if (info.run_id == run_id_ && info.evicted_keys > evicted_keys_) {
    LOG(WARNING) << connection_
                        .Trouble(absl::StrCat("it has evicted ", info.evicted_keys - evicted_keys_,
                                              " keys; nodes tell it again what it forgot of theirs, but not what was "
                                              "deleted: set maxmemory-policy noeviction, or give it more memory"))
                        .message();
  }
  run_id_ = info.run_id;
  evicted_keys_ = info.evicted_keys;
}

}  // namespace tokamak::directory::redis
