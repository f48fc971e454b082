// Target is what --directory names: a Redis server, the Sentinels that know which server is the
// master, or a Redis Cluster.
//
//   redis@HOST[:PORT]   redis@unix:PATH                  a server
//   redis://[USER@]HOST[:PORT][/DATABASE]                likewise; rediss:// over TLS
//   unix://[USER@]/PATH[?db=DATABASE]                    likewise, on a Unix socket
//   sentinel://[USER@]HOST[:PORT],.../MASTER[/DATABASE]  sentinel+tls:// over TLS
//   cluster://[USER@]HOST[:PORT],...                     cluster+tls:// over TLS
//
// IPv6 addresses are in brackets. No password: everybody on the machine can read a command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/text/host_port.h"

namespace tokamak::directory::redis {

struct Place {
  base::HostPort address;
  std::string path;  // of a Unix socket, in place of the address

  std::string ToString() const;  // "10.0.0.1:6379", "[::1]:6379", "unix:/run/redis.sock"
  bool operator==(const Place& other) const { return address == other.address && path == other.path; }
  bool operator!=(const Place& other) const { return !(*this == other); }
};

struct Target {
  enum class Kind : uint8_t { kServer, kSentinel, kCluster };

  static constexpr size_t kMaxPlaces = 16;
  static constexpr uint32_t kMaxDatabase = 65535;

  Kind kind = Kind::kServer;
  std::vector<Place> places;  // kServer: one; else Sentinels, or nodes of the cluster
  std::string master;         // kSentinel: its name there
  bool tls = false;
  std::string user;  // empty: the server's default one
  uint32_t database = 0;

  // kInvalidArgument: one line with the mistake and the right form.
  static absl::StatusOr<Target> Parse(const std::string& text);
  // Returns true if `text` begins as one.
  static bool IsMeantBy(const std::string& text);
};

}  // namespace tokamak::directory::redis
