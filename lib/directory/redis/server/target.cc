#include "lib/directory/redis/server/target.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace tokamak::directory::redis {
namespace {

constexpr uint16_t kServerPort = 6379;
constexpr uint16_t kSentinelPort = 26379;
constexpr size_t kLongestName = 256;  // of a user or master
constexpr size_t kLongestPath = 107;  // unix(7)

struct Scheme {
  const char* text;
  Target::Kind kind;
  bool tls;
};
constexpr std::array<Scheme, 6> kSchemes = {{
    {"redis://", Target::Kind::kServer, false},
    {"rediss://", Target::Kind::kServer, true},
    {"sentinel://", Target::Kind::kSentinel, false},
    {"sentinel+tls://", Target::Kind::kSentinel, true},
    {"cluster://", Target::Kind::kCluster, false},
    {"cluster+tls://", Target::Kind::kCluster, true},
}};
constexpr absl::string_view kShort = "redis@";
constexpr absl::string_view kUnixScheme = "unix://";
constexpr absl::string_view kUnixPrefix = "unix:";

const char* ExampleOf(Target::Kind kind) {
  switch (kind) {
    case Target::Kind::kSentinel:
      return "sentinel://host1:26379,host2:26379,host3:26379/mymaster";
    case Target::Kind::kCluster:
      return "cluster://host1:6379,host2:6379";
    case Target::Kind::kServer:
      break;
  }
  return "redis://127.0.0.1:6379 or redis@unix:/path/to/socket";
}

absl::Status Wrong(absl::string_view what, Target::Kind kind) {
  return absl::InvalidArgumentError(absl::StrCat(what, ": write ", ExampleOf(kind)));
}

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](char c) { return absl::ascii_isgraph(c); });
}

bool ReadDatabase(absl::string_view text, uint32_t* database) {
  return absl::SimpleAtoi(text, database) && *database <= Target::kMaxDatabase;
}

absl::Status TakeUser(absl::string_view* rest, Target* target) {
  const size_t at = rest->substr(0, rest->find('/')).rfind('@');
  if (at == absl::string_view::npos) return absl::OkStatus();
  const absl::string_view user = rest->substr(0, at);
  rest->remove_prefix(at + 1);
  if (absl::StrContains(user, ':')) {
    return absl::InvalidArgumentError(
        "a password in --directory can be read by everybody on this machine: leave it out, and give "
        "--redis-password-file FILE, or TOKD_REDIS_PASSWORD in the environment");
  }
  if (!IsName(user)) return Wrong("no user stands before the @", target->kind);
  target->user = std::string(user);
  return absl::OkStatus();
}

absl::StatusOr<Target> ParseUnix(absl::string_view path) {
  Target target;
  if (path.empty() || path.size() > kLongestPath) {
    return Wrong(absl::StrCat("the path of a Unix socket has from 1 to ", kLongestPath, " bytes"), target.kind);
  }
  target.places.push_back({{}, std::string(path)});
  return target;
}

absl::StatusOr<Target> ParseUnixScheme(absl::string_view rest) {
  Target named;
  if (absl::Status status = TakeUser(&rest, &named); !status.ok()) return status;
  const size_t question = rest.find("?db=");
  if (question != absl::string_view::npos) {
    if (!ReadDatabase(rest.substr(question + 4), &named.database)) {
      return Wrong(absl::StrCat("\"", rest.substr(question + 4), "\" is no number of a database"), named.kind);
    }
    rest = rest.substr(0, question);
  }
  absl::StatusOr<Target> target = ParseUnix(rest);
  if (!target.ok()) return target;
  target->user = named.user;
  target->database = named.database;
  return target;
}

// "HOST[:PORT],..." and the rest: "/MASTER/DATABASE", "/DATABASE"
absl::StatusOr<Target> ParseHosts(absl::string_view rest, Target target) {
  if (absl::Status status = TakeUser(&rest, &target); !status.ok()) return status;
  std::vector<absl::string_view> parts = absl::StrSplit(rest, '/');
  const absl::string_view hosts = parts[0];
  parts.erase(parts.begin());
  for (const absl::string_view host : absl::StrSplit(hosts, ',')) {
    const uint16_t port = target.kind == Target::Kind::kSentinel ? kSentinelPort : kServerPort;
    const absl::StatusOr<base::HostPort> address = base::HostPort::Parse(host, port);
    if (!address.ok()) return Wrong(absl::StrCat("\"", host, "\" is no host with a port"), target.kind);
    target.places.push_back({*address, ""});
  }
  if (target.places.size() > (target.kind == Target::Kind::kServer ? 1 : Target::kMaxPlaces)) {
    return Wrong(absl::StrCat(target.places.size(), " hosts are too many"), target.kind);
  }
  if (target.kind == Target::Kind::kSentinel) {
    if (parts.empty() || !IsName(parts[0])) {
      return Wrong("the name by which the Sentinels know the master is missing", target.kind);
    }
    target.master = std::string(parts[0]);
    parts.erase(parts.begin());
  }
  if (parts.empty() || (parts.size() == 1 && parts[0].empty())) return target;
  if (target.kind == Target::Kind::kCluster)
    return Wrong("a Redis Cluster has no databases to choose from", target.kind);
  if (parts.size() > 1 || !ReadDatabase(parts[0], &target.database)) {
    return Wrong(absl::StrCat("\"", parts[0], "\" is no number of a database"), target.kind);
  }
  return target;
}

}  // namespace

std::string Place::ToString() const { return path.empty() ? address.ToString() : absl::StrCat(kUnixPrefix, path); }

bool Target::IsMeantBy(const std::string& text) {
  return absl::StartsWith(text, kShort) || absl::StartsWith(text, kUnixScheme) ||
         std::any_of(kSchemes.begin(), kSchemes.end(),
                     [&](const Scheme& scheme) { return absl::StartsWith(text, scheme.text); });
}

absl::StatusOr<Target> Target::Parse(const std::string& text) {
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, kUnixScheme)) return ParseUnixScheme(rest);
  if (absl::ConsumePrefix(&rest, kShort)) {
    if (absl::ConsumePrefix(&rest, kUnixPrefix)) return ParseUnix(rest);
    return ParseHosts(rest, Target());
  }
  for (const Scheme& scheme : kSchemes) {
    rest = text;
    if (!absl::ConsumePrefix(&rest, scheme.text)) continue;
    Target target;
    target.kind = scheme.kind;
    target.tls = scheme.tls;
    return ParseHosts(rest, std::move(target));
  }
  return Wrong(absl::StrCat("\"", text, "\" names no Redis"), Target::Kind::kServer);
}

}  // namespace tokamak::directory::redis
