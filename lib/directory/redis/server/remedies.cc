#include "lib/directory/redis/server/remedies.h"

#include <algorithm>
#include <array>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace tokamak::directory::redis {
namespace {

constexpr size_t kMostShown = 200;  // bytes of an error

struct Remedy {
  const char* part;  // of the error
  const char* text;
  bool wrong_server = false;
};

// The first that fits applies.
constexpr std::array<Remedy, 31> kRemedies = {{
    {"NOAUTH", "it asks for a password: give --redis-password-file, or TOKD_REDIS_PASSWORD in the environment", true},
    {"WRONGPASS", "correct the user in --directory, or the password"},
    {"invalid password", "correct the password"},
    {"without any password configured", "the server wants no password: give none, or set requirepass there"},
    {"no password is set", "the server wants no password: give none, or set requirepass there"},
    {"number of arguments for 'auth'", "users need Redis 6 or later: leave the user out of --directory"},
    {"unknown command", "is it a Redis server, 5 or later, with all its commands under their names?"},
    {"NOPERM", "give the user the ACL rule of docs/redis.md"},
    {"t run this command", "give the user the ACL rule of docs/redis.md"},  // in a script
    {"t access at least one of the keys", "give the user the ACL rule of docs/redis.md, for the prefix in use"},
    {"ACL failure in script", "give the user the ACL rule of docs/redis.md, for the prefix in use"},  // since Redis 7.2
    {"attempted to access a non local key",
     "its hash slot is being moved to another server: the directory is back when that has ended"},
    {"ASK ", "its hash slot is being moved to another server: the directory is back when that has ended"},
    {"MOVED ", "another server of the cluster has the keys: it is looked for", true},
    {"CLUSTERDOWN", "the Redis Cluster lacks a master: see redis-cli cluster nodes", true},
    {"READONLY", "it is a read-only replica: name the master, or the Sentinels", true},
    {"MASTERDOWN", "it is a replica that has lost its master: see to the master", true},
    {"WRONGTYPE",
     "somebody else writes to this server: remove that key (redis-cli DEL), or give another --redis-prefix"},
    {"NOREPLICAS", "too few replicas follow the server (min-replicas-to-write): start them"},
    {"OOM", "it is out of memory: raise its maxmemory, or delete objects"},
    {"MISCONF", "it cannot save its snapshot: make room on its disk, or set stop-writes-on-bgsave-error no"},
    {"LOADING", "it reads its data: wait"},
    {"BUSY", "a script of another program blocks it: end that by redis-cli SCRIPT KILL"},
    {"Script killed by user", "somebody has ended the directory's script: it is tried again"},
    {"protected mode", "set its password (requirepass), or what it listens on (bind)"},
    {"max number of clients", "raise its maxclients"},
    {"DB index is out of range", "raise its databases, or choose a lower one in --directory"},
    {"SELECT is not allowed", "a Redis Cluster has no databases: write --directory cluster://HOST:PORT,..."},
    {"No such master", "correct the master's name in --directory: redis-cli -p 26379 SENTINEL MASTERS lists them"},
    {"cluster support disabled", "it is no part of a Redis Cluster: write --directory redis://HOST:PORT"},
    {"reply type byte", "does it speak TLS there? With it: rediss://, sentinel+tls:// or cluster+tls://"},
}};

const Remedy* RemedyOf(absl::string_view error) {
  const auto found = std::find_if(kRemedies.begin(), kRemedies.end(),
                                  [&](const Remedy& remedy) { return absl::StrContains(error, remedy.part); });
  return found == kRemedies.end() ? nullptr : &*found;
}

}  // namespace

std::string WithRemedy(absl::string_view error) {
  // The server may quote a password among the arguments.
  const size_t end = std::min(error.find_first_of("\r\n"), error.find(", with args beginning with"));
  std::string line(error.substr(0, std::min(end, kMostShown)));
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  const Remedy* const remedy = RemedyOf(error);
  return remedy == nullptr ? line : absl::StrCat(line, "; ", remedy->text);
}

bool IsWrongServer(absl::string_view error) {
  const Remedy* const remedy = RemedyOf(error);
  return remedy != nullptr && remedy->wrong_server;
}

}  // namespace tokamak::directory::redis
