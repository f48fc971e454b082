// The flags of tokd, read and checked.
#pragma once

#include <cstdint>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/base/log.h"
#include "lib/base/text/host_port.h"
#include "lib/base/time.h"
#include "lib/daemon/devices/device.h"
#include "lib/daemon/flags/policy_choice.h"
#include "lib/daemon/memory/store_memory.h"
#include "lib/directory/redis/redis_directory.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/sockets/socket_access.h"
#include "lib/verbs/soft/congestion/congestion.h"
#include "lib/verbs/types.h"

namespace tokamak::daemon {

// This node's own, served to others ("serve"), another node's ("tokd@HOST:PORT"), or in Redis
// (lib/directory/redis/server/target.h).
struct DirectoryChoice {
  enum class Kind { kServe, kRemote, kRedis };
  Kind kind = Kind::kServe;
  base::HostPort server;            // kRemote
  directory::redis::Options redis;  // kRedis; ParseDirectory sets only the target
};
absl::StatusOr<DirectoryChoice> ParseDirectory(const std::string& text);

// Even with all retries a vanished peer is given up before a connection attempt.
constexpr base::Duration kMaxAckTimeout = base::Milliseconds(500);

struct LogChoice {
  base::Severity level = base::Severity::kInfo;  // the least that is logged
  bool json = false;
};

// How other nodes prove that they belong to the cluster (docs/security.md).
struct PeerChoice {
  std::string secret_file;  // empty: not at all
  bool insecure = false;    // true if that is meant, on other addresses than loopback
  bool encrypts = true;
};

struct DaemonOptions {
  std::string name;
  verbs::Address listen;  // of the first engine; bulk engine i (from 1): port + i
  std::string device;     // comma-separated
  uint64_t memory = 0;    // bytes
  std::string socket;     // path
  os::SocketAccess socket_access = os::SocketAccess::kUser;
  PeerChoice peers;
  DirectoryChoice directory;
  uint32_t engines = 1;           // for bulk; 0: the first moves all
  uint32_t bulk_queue_pairs = 1;  // per device
  uint32_t chunk_size = 1 << 20;  // bytes of one READ or WRITE
  uint32_t chunks_in_flight = 8;  // of one transfer
  os::Detection detection;
  std::string registration = "arena";
  PolicyChoice policy;
  ConnectBy connect_by = ConnectBy::kRdmaCm;
  FabricSettings fabric;
  bool require_rdma = false;
  bool cache = false;
  uint64_t quota = 0;  // bytes per program; 0: unlimited
  HugePagesChoice huge_pages = HugePagesChoice::kWhereFree;
  bool prefault = true;
  std::string pcap;
  std::string trace;                                        // empty: none
  std::optional<verbs::soft::CongestionChoice> congestion;  // nullopt: the software NIC's choice
  base::Duration drain = base::Seconds(10);
  bool evacuate = false;
  base::Duration lease = base::Seconds(10);  // docs/consistency.md
  base::Duration grace = base::Seconds(60);
  std::optional<base::Duration> ack_timeout;  // nullopt: by device
  LogChoice log;
  std::optional<base::HostPort> http;   // metrics and page; nullopt: none
  std::vector<std::string> http_hosts;  // further Host names allowed there
};

// Parses "PORT", on loopback (0: a free one), or "IP:PORT".
absl::StatusOr<base::HostPort> ParseHttpAddress(const std::string& text);

// A shorter lease would end between renewals on a busy machine; directories refuse a longer one.
constexpr base::Duration kMinLease = base::Milliseconds(200);
constexpr base::Duration kMaxLease = base::Seconds(3600);

// Run with these options, or exit: 0 after --help, 2 after a wrong flag; output is complete.
struct ParsedFlags {
  bool run = false;
  int exit_code = 0;
  DaemonOptions options;
  std::string config;  // as of --print-config
};
// Reads command line, environment and --config's file.
ParsedFlags ParseFlags(int argc, const char* const* argv, std::ostream& errors = std::cerr);

}  // namespace tokamak::daemon
