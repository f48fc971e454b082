#include "lib/daemon/flags/options.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "lib/base/units.h"
#include "lib/base/version.h"
#include "lib/daemon/flags/config_file.h"
#include "lib/daemon/flags/flag_table.h"
#include "lib/daemon/flags/help_format.h"
#include "lib/daemon/flags/redis_flags.h"
#include "lib/daemon/flags/wrong_flags.h"
#include "lib/daemon/watch/http_hosts.h"
#include "lib/directory/directory.h"
#include "lib/transport/limits.h"

namespace tokamak::daemon {

namespace {

constexpr char kAbout[] =
    "tokd keeps immutable objects in shared memory for the programs of this machine, and moves them between machines "
    "over RDMA verbs. One tokd runs for each node; programs reach it through --socket, other nodes through --listen.";
constexpr char kExample[] =
    "Example, two nodes on one machine, without RDMA hardware:\n"
    "  tokd --listen 127.0.0.1:7000 --device soft:udp@127.0.0.1 --memory 512MiB \\\n"
    "       --socket /tmp/node1.sock &\n"
    "  tokd --listen 127.0.0.2:7000 --device soft:udp@127.0.0.2 --memory 512MiB \\\n"
    "       --socket /tmp/node2.sock --directory tokd@127.0.0.1:7000 &\n"
    "Each flag may also stand in the environment, as TOKD_MEMORY=1GiB, or in a JSON file (--config), as "
    "{\"memory\": \"1GiB\"}; the command line goes before the environment, and that before the file.\n"
    "SIGTERM or SIGINT drains (--drain) and ends; a second one ends at once. SIGHUP reads --config again: drain, "
    "evacuate, quota and log-level change at once, what else is new there is named in the log and needs a restart.\n"
    "Exit codes: 0 after SIGTERM or SIGINT, 2 when it could not start, 1 after an error of its own.";

// Checked together, or opposite to an option.
struct RawFlags {
  RedisTexts redis;
  bool no_encryption = false;
  bool huge_pages = false;
  bool no_huge_pages = false;
  bool no_prefault = false;
};

absl::Status CheckFabric(const FabricSettings& fabric, ConnectBy connect_by) {
  if (connect_by == ConnectBy::kTcp) return absl::OkStatus();
  if (fabric.router_lid.has_value()) {
    return absl::InvalidArgumentError("--router-lid: goes with --cm tcp; rdma_cm finds the routers by itself");
  }
  if (fabric.pkey_index == 0) return absl::OkStatus();
  return absl::InvalidArgumentError("--pkey-index: goes with --cm tcp; rdma_cm takes the partition of its IP address");
}

absl::Status CheckHttpHosts(const DaemonOptions& options) {
  if (options.http_hosts.empty()) return absl::OkStatus();
  if (!options.http.has_value()) return absl::InvalidArgumentError("--http-host: goes with --http");
  if (options.http_hosts.size() > HttpHosts::kMaxNames) {
    return absl::InvalidArgumentError(absl::StrCat("--http-host: at most ", HttpHosts::kMaxNames, " names"));
  }
  for (const std::string& name : options.http_hosts) {
    const absl::Status status = HttpHosts::Check(name);
    if (!status.ok()) return absl::InvalidArgumentError(absl::StrCat("--http-host: ", status.message()));
  }
  return absl::OkStatus();
}

constexpr unsigned kProcessorsToSpin = 8;
constexpr uint64_t kMinMemory = 1 << 20;  // bytes

static_assert(kMaxAckTimeout * (verbs::kMaxRetryCount + 1) < transport::kConnectDeadline,
              "a peer that is gone is given up first");

absl::StatusOr<os::Detection> ParseDetection(const std::string& text) {
  // Three spinning loops need processors of their own.
  const bool can_spin = std::thread::hardware_concurrency() >= kProcessorsToSpin;
  if (text == "auto") return can_spin ? os::Detection::Adaptive(base::Microseconds(20)) : os::Detection::Event();
  if (text == "busy") return os::Detection::Busy();
  if (text == "event") return os::Detection::Event();
  if (text == "adaptive") return os::Detection::Adaptive(base::Microseconds(20));
  if (absl::StartsWith(text, "adaptive:")) {
    const auto spin = base::ParseDuration(text.substr(9));
    if (!spin.ok()) return spin.status();
    return os::Detection::Adaptive(*spin);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("unknown detection '", text, "': use auto, busy, event, adaptive or adaptive:20us"));
}

// Without IPv6's brackets, for directory::CheckNodeId.
std::string DefaultName(const verbs::Address& listen) {
  if (listen.is_ipv4()) return listen.ToString();
  verbs::Address ip = listen;
  ip.port = 0;
  return absl::StrCat(ip.ToString(), "-", listen.port);
}

absl::StatusOr<verbs::Address> ParseListen(const std::string& text) {
  auto listen = verbs::Address::Parse(text);
  if (!listen.ok()) return listen;
  if (listen->port == 0) return absl::InvalidArgumentError("give a port as well, such as 127.0.0.1:7000");
  if (!listen->is_unspecified()) return listen;
  listen->port = 0;
  return absl::InvalidArgumentError(absl::StrCat("peers are told this address, and ", listen->ToString(),
                                                 " leads each to itself: give one of this host's"));
}

absl::StatusOr<uint32_t> ParseChunkSize(const std::string& text) {
  const auto size = base::ParseSize(text);
  if (!size.ok()) return size.status();
  if (*size >= transport::kMinChunkSize && *size <= transport::kMaxChunkSize) return static_cast<uint32_t>(*size);
  return absl::InvalidArgumentError(absl::StrCat("from ", base::FormatSize(transport::kMinChunkSize), " to ",
                                                 base::FormatSize(transport::kMaxChunkSize)));
}

absl::Status CheckRedis(const RedisTexts& texts, DirectoryChoice& directory) {
  const bool in_redis = directory.kind == DirectoryChoice::Kind::kRedis;
  return in_redis ? TakeRedisFlags(texts, directory.redis) : CheckNoRedisFlags(texts);
}

absl::Status CheckPorts(const DaemonOptions& options) {
  const uint32_t last = options.listen.port + options.engines;
  if (last <= UINT16_MAX) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--listen: ", options.engines, " engines for bulk need ports up to ",
                                                 last, ": choose a lower port"));
}

absl::Status CheckPeers(const DaemonOptions& options) {
  const PeerChoice& peers = options.peers;
  const bool has_secret = !peers.secret_file.empty();
  if (has_secret && peers.insecure) {
    return absl::InvalidArgumentError("--secret-file and --insecure are both given: leave one out");
  }
  if (!peers.encrypts && !has_secret) return absl::InvalidArgumentError("--no-encryption: goes with --secret-file");
  if (has_secret || peers.insecure || options.listen.is_loopback()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--listen ", options.listen.ToString(),
      ": whoever reaches this address could read and delete all objects. Make a secret (tok secret new FILE), give all "
      "nodes the same (--secret-file FILE), or say --insecure on a network that is yours alone; see docs/security.md"));
}

absl::Status CheckName(const std::string& name) {
  const absl::Status status = directory::CheckNodeId(name);
  return status.ok() ? status : absl::InvalidArgumentError(absl::StrCat("--name: ", status.message()));
}

// Adds flags outside the table, and checks conditions among several. Returns the first error, with
// the flag's name.
absl::Status Complete(const RawFlags& raw, DaemonOptions& options) {
  options.prefault = !raw.no_prefault;
  options.peers.encrypts = !raw.no_encryption;
  if (raw.huge_pages) options.huge_pages = HugePagesChoice::kAlways;
  if (raw.no_huge_pages) options.huge_pages = HugePagesChoice::kNever;
  if (options.name.empty()) options.name = DefaultName(options.listen);
  absl::Status status = CheckRedis(raw.redis, options.directory);
  if (status.ok()) status = CheckPeers(options);
  if (status.ok()) status = CheckHttpHosts(options);
  if (status.ok()) status = CheckFabric(options.fabric, options.connect_by);
  if (status.ok()) status = CheckPorts(options);
  if (status.ok()) status = CheckName(options.name);
  return status;
}

// Titles the flags added from here on.
void Group(CLI::App& app, const char* name) { app.option_defaults()->group(name); }

void AddNodeFlags(CLI::App& app, FlagTable& table, RawFlags& raw, DaemonOptions& options) {
  table
      .Add("--listen", "", options.listen, ParseListen,
           "IP:PORT at which other nodes connect; engine i listens on PORT + i")
      ->required();
  app.add_option(
         "--device", options.device,
         "RDMA device: soft:udp@IP[:UDP_PORT], our software NIC over UDP; soft:raw@IP[:UDP_PORT], the same through raw "
         "sockets, which need CAP_NET_RAW; ibv:NAME[:PORT][@GID_INDEX], real verbs: ibv_devices lists names; up to "
         "four "
         "(A,B or --device A --device B): large transfers are spread over them, from first to first, second to second")
      ->join(',')
      ->required();
  table.Add("--memory", "512MiB", options.memory,
            Within(base::ParseSize, kMinMemory, UINT64_MAX, "at least 1MiB, for objects and their bookkeeping"),
            "size of the object store, such as 512MiB or 16GiB");
  app.add_option("--socket", options.socket, "path of the Unix socket for the programs of this machine")->required();
  table.AddChoice<os::SocketAccess>(
      "--socket-access", {{"user", os::SocketAccess::kUser}, {"group", os::SocketAccess::kGroup}},
      options.socket_access,
      "whose programs may use the socket: user (this one's alone), or group (those of its group as well)");
  Group(app, "Security");
  app.add_option("--secret-file", options.peers.secret_file,
                 "file with the cluster's secret, the same on all nodes (tok secret new); nodes prove by it that they "
                 "belong together, and encrypt what they say to each other; SIGHUP reads it again");
  app.add_flag("--insecure", options.peers.insecure,
               "take everybody who reaches --listen for a node of the cluster, on other addresses than loopback too");
  app.add_flag("--no-encryption", raw.no_encryption,
               "nodes prove themselves, and leave what they say readable if the other one says the same; for a "
               "network that protects itself");
  Group(app, "Directory");
  table.Add("--directory", "serve", options.directory, ParseDirectory,
            "who knows where objects are: serve (this node, for others too); tokd@HOST:PORT (the node that serves); "
            "redis://[USER@]HOST[:PORT][/DATABASE], redis@unix:PATH; sentinel://[USER@]HOST[:PORT],.../MASTER; "
            "cluster://[USER@]HOST[:PORT],...; with TLS rediss://, sentinel+tls://, cluster+tls://; see docs/redis.md");
  AddRedisFlags(app, raw.redis);
  Group(app, "Options");
  app.add_option("--name", options.name,
                 "this node's name in the cluster, of A-Z a-z 0-9 . _ : -; the --listen address unless given");
}

void AddTransferFlags(CLI::App& app, FlagTable& table, DaemonOptions& options) {
  Group(app, "Transfers");
  app.add_option("--engines", options.engines,
                 "transport engines for bulk, a thread each; 0: everything on the control loop")
      ->check(CLI::Range(0, 15))
      ->capture_default_str();
  app.add_option("--bulk-queue-pairs", options.bulk_queue_pairs,
                 "queue pairs for large transfers, for each peer and device; 16 for a peer at most")
      ->check(CLI::Range(1, 8))
      ->capture_default_str();
  table.Add("--chunk-size", "1MiB", options.chunk_size, ParseChunkSize,
            "bytes of one READ or WRITE request: larger objects move in several; 4KiB to 1GiB");
  app.add_option("--chunks-in-flight", options.chunks_in_flight, "such requests of one transfer at a time")
      ->check(CLI::Range(uint32_t{1}, transport::kMaxChunksInFlight))
      ->capture_default_str();
  table.Add("--detection", "auto", options.detection, ParseDetection,
            "how completions are found: busy, event, adaptive:TIME (spin, then sleep), or auto: adaptive:20us "
            "from 8 processors on");
  app.add_option("--registration", options.registration,
                 "how object memory is registered: arena (all of it, at the start), on_demand (for each transfer) or "
                 "cached (blocks of 16 MiB when they are first used, and kept)")
      ->check(CLI::IsMember({"arena", "on_demand", "cached"}))
      ->capture_default_str();
  table.AddOptional(
      "--policy", options.policy, ParsePolicyChoice,
      "protocol by object size: a table such as eager:32KiB,read; FILE.json, which tok tune writes; adaptive, "
      "which learns from the pulls; adaptive:TABLE, which begins with one; unless given, what is built in "
      "for such a device");
  Group(app, "Looking on");
  app.add_option("--pcap", options.pcap,
                 "write the software NIC's packets to this file, for Wireshark; bulk, which has a UDP port "
                 "of its own, to FILE.bulk; those of a second device to FILE.1");
  app.add_option(
      "--trace", options.trace,
      "at the end, write how long each get of a program took, and what each pull of this node spent its time on, "
      "to this file, for Perfetto (ui.perfetto.dev)");
  Group(app, "Transfers");
  table.AddOptional("--congestion", options.congestion, verbs::soft::CongestionChoice::Parse,
                    "how fast the software NIC sends: additive (a window that finds out, unless given), dcqcn:RATE "
                    "(by the marks of switches, from this rate down, such as 10Gb/s), fixed (a window) or none");
  table.AddOptional(
      "--ack-timeout", options.ack_timeout,
      Within(base::ParseDuration, base::Milliseconds(1), kMaxAckTimeout,
             absl::StrCat("from 1ms to ", base::FormatDuration(kMaxAckTimeout))),
      "how long a peer may take to acknowledge, seven times in a row, before it is given up; unless given, 67ms "
      "or what a device's own report asks for, 268ms at most; more for slow machines or long ways");
}

void AddEndingFlags(CLI::App& app, FlagTable& table, DaemonOptions& options) {
  Group(app, "Ending");
  table.Add("--drain", "10s", options.drain, base::ParseDuration,
            "after SIGTERM, wait this long for peers that still read, or that have not got all that was sent; with "
            "--evacuate this long for each of the two");
  app.add_flag("--evacuate", options.evacuate,
               "after SIGTERM, first hand what was put on this node over to other nodes, which keep it");
  Group(app, "Directory");
  table.Add("--lease", "10s", options.lease,
            Within(base::ParseDuration, kMinLease, kMaxLease,
                   absl::StrCat("from ", base::FormatDuration(kMinLease), " to ", base::FormatDuration(kMaxLease))),
            "the directory counts this node as alive for this long after it last heard from it; renewed three "
            "times as often");
  table.Add("--grace", "60s", options.grace,
            Within(base::ParseDuration, base::Duration(), kMaxLease,
                   absl::StrCat("at most ", base::FormatDuration(kMaxLease))),
            "after its lease has ended the directory waits this long for the node to come back before it counts "
            "what the node held as gone; by then the node refuses gets");
}

void AddFabricFlags(CLI::App& app, FlagTable& table, DaemonOptions& options) {
  Group(app, "Fabric");
  table.AddChoice<ConnectBy>(
      "--cm", {{"rdma", ConnectBy::kRdmaCm}, {"tcp", ConnectBy::kTcp}}, options.connect_by,
      "how connections of ibv: are made: rdma (rdma_cm, which needs IP on the fabric) or tcp (an exchange over "
      "TCP at --listen)");
  app.add_option("--pkey-index", options.fabric.pkey_index,
                 "with --cm tcp, on InfiniBand: the partition, by its place in the port's table")
      ->check(CLI::Range(0, UINT16_MAX))
      ->capture_default_str();
  app.add_option("--path-mtu", options.fabric.path_mtu,
                 "of real verbs: the largest packets that a path carries, where a switch between carries less than the "
                 "ports; unless given, what the ports do, and what InfiniBand's paths do with --cm rdma")
      ->check(CLI::IsMember({256, 512, 1024, 2048, 4096}));
  app.add_option("--router-lid", options.fabric.router_lid,
                 "with --cm tcp, on InfiniBand: the LID of the router to peers of other subnets")
      ->check(CLI::Range(1, 0xbfff));
  app.add_option("--service-level", options.fabric.service_level,
                 "of InfiniBand, or the priority of RoCE; unless given, what the fabric says, or 0 with --cm tcp")
      ->check(CLI::Range(0, 15));
  app.add_option(
         "--traffic-class", options.fabric.traffic_class,
         "DSCP times 4 (104 is DSCP 26) of what RoCE v2, iWARP and the software NIC send, plus ECN's bits where "
         "real verbs leave them to programs; unless given, what the fabric says, or 0")
      ->check(CLI::Range(0, UINT8_MAX));
  app.add_flag("--require-rdma", options.require_rdma, "fail unless the device is real RDMA");
}

void AddMemoryFlags(CLI::App& app, FlagTable& table, RawFlags& raw, DaemonOptions& options) {
  Group(app, "Memory");
  app.add_flag("--cache", options.cache,
               "evict objects created here, too, perhaps the only copies, when room is needed");
  table.Add("--quota", "0", options.quota, base::ParseSize,
            "most bytes that one program may hold, unsealed and pinned together; 0: any");
  auto* const huge = app.add_flag("--huge-pages", raw.huge_pages,
                                  "keep the store in huge pages, or fail; unless given, where enough of them are free");
  app.add_flag("--no-huge-pages", raw.no_huge_pages, "leave huge pages to others")->excludes(huge);
  app.add_flag("--no-prefault", raw.no_prefault,
               "do not touch all memory at the start: starts faster, first writes are slower");
}

void AddWatchingFlags(CLI::App& app, FlagTable& table, DaemonOptions& options) {
  Group(app, "Looking on");
  table.AddChoice<base::Severity>("--log-level",
                                  {{"debug", base::Severity::kDebug},
                                   {"info", base::Severity::kInfo},
                                   {"warning", base::Severity::kWarning},
                                   {"error", base::Severity::kError}},
                                  options.log.level, "what is less is not logged: debug, info, warning or error");
  table.AddChoice<bool>("--log-format", {{"text", false}, {"json", true}}, options.log.json,
                        "of the log on standard error: text, or json: one object in each line");
  table.AddOptional(
      "--http", options.http, ParseHttpAddress,
      "serve metrics for Prometheus (/metrics), health (/healthz, /readyz) and a page of the cluster (/) at "
      "PORT of 127.0.0.1 (0: one that is free, which the log names), or at IP:PORT, to everybody who reaches "
      "it; see docs/operations.md");
  app.add_option("--http-host", options.http_hosts,
                 "a further name of this machine by which a browser may ask there, such as a proxy's (again for each); "
                 "its host name, its addresses and localhost are known")
      ->type_name("NAME")
      ->allow_extra_args(false);
}

void TakeConfigFile(CLI::App& app) {
  const char* const file = std::getenv("TOKD_CONFIG");
  const bool is_given = file != nullptr && *file != '\0';
  app.set_config("--config", is_given ? file : "", "read flags from this JSON file; see docs/configuration.md",
                 /*config_required=*/is_given)
      ->type_name("FILE");
  app.config_formatter(std::make_shared<ConfigFile>(app));
}

std::string ConfigFileOf(const CLI::App& app) { return app.get_config_ptr()->as<std::string>(); }

}  // namespace

absl::StatusOr<DirectoryChoice> ParseDirectory(const std::string& text) {
  DirectoryChoice choice;
  if (text == "serve") return choice;
  if (directory::redis::Target::IsMeantBy(text)) {
    auto target = directory::redis::Target::Parse(text);
    if (!target.ok()) return target.status();
    choice.kind = DirectoryChoice::Kind::kRedis;
    choice.redis.target = *std::move(target);
    return choice;
  }
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "tokd@")) {
    auto server = base::HostPort::Parse(rest);
    if (!server.ok()) return server.status();
    choice.kind = DirectoryChoice::Kind::kRemote;
    choice.server = *std::move(server);
    return choice;
  }
  return absl::InvalidArgumentError(absl::StrCat("unknown directory '", text,
                                                 "': use serve, tokd@HOST:PORT, redis://HOST:PORT, redis@unix:PATH, "
                                                 "sentinel://HOST,.../MASTER or cluster://HOST,..."));
}

absl::StatusOr<base::HostPort> ParseHttpAddress(const std::string& text) {
  if (text == "0") return base::HostPort{"127.0.0.1", 0};
  const bool is_port = text.find_first_not_of("0123456789") == std::string::npos;
  const std::string full = is_port ? absl::StrCat("127.0.0.1:", text) : text;
  auto address = base::HostPort::Parse(full);
  if (!address.ok() || !verbs::Address::Parse(full).ok()) {  // the latter refuses host names
    return absl::InvalidArgumentError(absl::StrCat("'", text,
                                                   "' is neither a PORT, which is taken on 127.0.0.1, nor "
                                                   "IP:PORT: give such as 9464, 10.0.0.1:9464 or [::1]:9464"));
  }
  return address;
}

ParsedFlags ParseFlags(int argc, const char* const* argv, std::ostream& errors) {
  ParsedFlags parsed;
  DaemonOptions& options = parsed.options;
  RawFlags raw;
  CLI::App app(kAbout, "tokd");
  FlagTable table(app);
  app.formatter(std::make_shared<HelpFormat>());
  app.footer(kExample);
  app.set_version_flag("--version", absl::StrCat("tokd ", base::kVersion));
  AddNodeFlags(app, table, raw, options);
  AddTransferFlags(app, table, options);
  AddEndingFlags(app, table, options);
  AddFabricFlags(app, table, options);
  AddMemoryFlags(app, table, raw, options);
  AddWatchingFlags(app, table, options);
  Group(app, "Options");
  bool print_config = false;
  app.add_flag("--print-config", print_config, "print all flags as a file for --config, and end")->configurable(false);
  const auto refuse = [&](absl::string_view what) {
    errors << "tokd: " << what << std::endl;
    parsed.exit_code = 2;
    return parsed;
  };
  TakeConfigFile(app);
  if (const absl::Status status = ReadEnvironment(app, kRedisVariables); !status.ok()) return refuse(status.message());
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {                                 // help or version
    for (CLI::Option* option : app.get_options()) option->envname("");  // one line of the help names them all
    app.exit(asked);
    return parsed;
  } catch (const CLI::FileError&) {
    return refuse(absl::StrCat("--config: cannot read ", ConfigFileOf(app)));
  } catch (const CLI::ConfigError& error) {
    return refuse(absl::StrCat("--config: ", ConfigFileOf(app), ": ", error.what()));
  } catch (const CLI::ParseError& error) {
    return refuse(ExplainWrongFlags(app, error));
  }
  absl::Status status = table.Read();
  if (status.ok()) status = Complete(raw, options);
  if (!status.ok()) return refuse(status.message());
  parsed.config = app.config_to_str();
  if (print_config) {
    std::cout << parsed.config << std::endl;
    return parsed;
  }
  parsed.run = true;
  return parsed;
}

}  // namespace tokamak::daemon
