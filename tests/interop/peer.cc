// One end of a conversation between two RDMA devices of any kind: see rping_peer.h, pingpong_peer.h
// and exchange.h.
//
//   for: rping -c -a 10.0.0.2 -S 64 -C 10
//     peer --device soft:udp@10.0.0.2 --listen 7174 rping --size 64
//   for: rping -s -a 10.0.0.1
//     peer --device soft:udp@10.0.0.2 --connect 10.0.0.1:7174 rping --count 10
//   for: ibv_rc_pingpong -d rxe0 -g 1 10.0.0.2
//     peer --device soft:udp@10.0.0.2 --listen 18515 pingpong
//   between two of these:
//     peer --device ibv:rxe0 --listen 7175 exchange
//     peer --device soft:raw@10.0.0.2 --connect 10.0.0.1:7175 exchange --largest 1MiB
//
// A listening end prints "listening at ADDRESS" when it may be connected to. Exit code: 0 when all
// bytes were right, 1 when not, 2 for wrong flags or a device that does not open.
#include <CLI/CLI.hpp>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/base/units.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/epoll_loop.h"
#include "tests/interop/exchange.h"
#include "tests/interop/link.h"
#include "tests/interop/pingpong_peer.h"
#include "tests/interop/rping_peer.h"

namespace tokamak::interop {
namespace {

// Unacknowledged messages, a disconnection or the last message, are sent again while their queue
// pair and its device live; and the peer's repetitions are acknowledged. No event shows that both
// sides are through.
constexpr base::Duration kLinger = base::Seconds(1);

// An emulated machine pauses for longer than a real one answers.
constexpr base::Duration kAckTimeout = base::Milliseconds(500);

constexpr uint32_t kPings = 10;  // of a connection, unless --count is given

struct Flags {
  std::string device;
  int listen = -1;
  std::string connect;
  std::string pcap;
  std::string patience = "30s";
  uint32_t times = 1;
  uint32_t ping_size = 64;
  std::optional<uint32_t> pings;
  PingpongOptions pingpong;
  std::string largest = "1MiB";
};

enum class Kind { kRping, kPingpong, kExchange };

struct Settings {
  Kind kind = Kind::kExchange;
  verbs::Address service;  // to connect to
  LinkOptions link;
  ExchangeOptions exchange;
};

void SayListening(const verbs::Address& address) { std::cout << "listening at " << address.ToString() << std::endl; }

// How a link becomes connected.
using Join = std::function<absl::Status()>;

absl::StatusOr<std::string> RunRping(const Flags& flags, Link& link, const Join& join) {
  auto peer = RpingPeer::Prepare(link, flags.ping_size);
  if (!peer.ok()) return peer.status();
  if (auto s = join(); !s.ok()) return s;
  if (flags.listen < 0) {
    const uint32_t pings = flags.pings.value_or(kPings);
    if (auto s = (*peer)->Ping(pings); !s.ok()) return s;
    link.Disconnect();
    return absl::StrCat(pings, " pings of ", flags.ping_size, " bytes, path MTU ", link.path_mtu());
  }
  const auto served = (*peer)->Serve(flags.pings);
  if (!served.ok()) return served.status();
  if (*served == 0) return absl::DataLossError("the client left without a ping");
  return absl::StrCat("answered ", *served, " pings, path MTU ", link.path_mtu());
}

absl::StatusOr<std::string> RunExchange(const Flags& flags, const Settings& settings, Link& link, const Join& join) {
  auto exchange = Exchange::Prepare(link, settings.exchange);
  if (!exchange.ok()) return exchange.status();
  if (auto s = join(); !s.ok()) return s;
  const auto report = flags.listen < 0 ? (*exchange)->Lead() : (*exchange)->Follow();
  if (!report.ok()) return report.status();
  if (flags.listen < 0) {
    link.Disconnect();
  } else if (auto s = link.AwaitDisconnection(); !s.ok()) {
    return s;
  }
  return ToString(*report);
}

// Without a connection manager, so it is not joined.
absl::StatusOr<std::string> RunPingpong(const Flags& flags, const Settings& settings, Link& link,
                                        const verbs::Address& address) {
  auto peer = PingpongPeer::Prepare(link, address, flags.pingpong);
  if (!peer.ok()) return peer.status();
  absl::Status status;
  if (flags.listen < 0) {
    auto tcp = Knock(settings.service, settings.link.patience);
    status = tcp.ok() ? (*peer)->Ask(*tcp) : tcp.status();
  } else {
    verbs::Address place = address;
    place.port = static_cast<uint16_t>(flags.listen);
    auto door = Door::Open(place, settings.link.patience);
    if (!door.ok()) return door.status();
    SayListening(place);
    auto tcp = door->Admit();
    status = tcp.ok() ? (*peer)->Serve(*tcp) : tcp.status();
  }
  if (!status.ok()) return status;
  return absl::StrCat(flags.pingpong.count, " messages of ", flags.pingpong.size, " bytes each way, path MTU ",
                      flags.pingpong.path_mtu);
}

absl::StatusOr<std::string> Converse(const Flags& flags, const Settings& settings, os::EpollLoop& loop,
                                     verbs::Device& device, Service* service) {
  auto link = Link::Open(loop, device, settings.link);
  if (!link.ok()) return link.status();
  const Join join = [&]() -> absl::Status {
    if (service == nullptr) return (*link)->Connect(settings.service);
    auto request = service->Await(settings.link.patience);
    return request.ok() ? (*link)->Accept(**request) : request.status();
  };
  const auto talk = [&] {
    if (settings.kind == Kind::kRping) return RunRping(flags, **link, join);
    if (settings.kind == Kind::kExchange) return RunExchange(flags, settings, **link, join);
    return RunPingpong(flags, settings, **link, device.address());
  };
  auto said = talk();
  loop.RunUntil([] { return false; }, loop.Now() + kLinger);
  return said;
}

absl::Status Run(const Flags& flags, const Settings& settings, os::EpollLoop& loop, verbs::Device& device) {
  std::unique_ptr<Service> service;
  if (flags.listen >= 0 && settings.kind != Kind::kPingpong) {
    auto listening = Service::Listen(loop, device, static_cast<uint16_t>(flags.listen));
    if (!listening.ok()) return listening.status();
    service = *std::move(listening);
    SayListening(service->address());
  }
  for (uint32_t i = 0; i < flags.times; ++i) {
    const auto said = Converse(flags, settings, loop, device, service.get());
    if (!said.ok()) return said.status();
    std::cout << *said << std::endl;
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status, int code) {
  std::cerr << "peer: " << status << std::endl;
  return code;
}

absl::StatusOr<Settings> Check(const Flags& flags) {
  Settings settings;
  if ((flags.listen >= 0) == !flags.connect.empty()) return absl::InvalidArgumentError("give --listen or --connect");
  if (!flags.connect.empty()) {
    auto service = verbs::Address::Parse(flags.connect);
    if (!service.ok()) return service.status();
    settings.service = *service;
  }
  const auto patience = base::ParseDuration(flags.patience);
  if (!patience.ok()) return patience.status();
  settings.link.patience = *patience;
  settings.link.reliability.ack_timeout = kAckTimeout;
  const auto largest = base::ParseSize(flags.largest);
  if (!largest.ok()) return largest.status();
  if (*largest > kMaxLargest) return absl::InvalidArgumentError("--largest is at most 64MiB");
  settings.exchange.largest = static_cast<uint32_t>(*largest);
  return settings;
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("One end of a conversation between two RDMA devices of any kind.", "peer");
  app.require_subcommand(1);
  app.add_option("--device", flags.device, "soft:udp@IP, soft:raw@IP or ibv:NAME")->required();
  app.add_option("--listen", flags.listen, "wait for the other end at this port")->check(CLI::Range(0, 65535));
  app.add_option("--connect", flags.connect, "IP:PORT of the other end");
  app.add_option("--times", flags.times, "so many connections, one after another")->capture_default_str();
  app.add_option("--patience", flags.patience, "for anything to happen")->capture_default_str();
  app.add_option("--pcap", flags.pcap, "write the software NIC's packets to this file, for Wireshark");
  CLI::App* rping = app.add_subcommand("rping", "speak with rdma-core's rping, or with another of these");
  rping->add_option("--size", flags.ping_size, "bytes of a ping")->capture_default_str();
  rping->add_option("--count", flags.pings,
                    "pings of each connection; unless given 10, and with --listen until the other end disconnects");
  CLI::App* pingpong = app.add_subcommand("pingpong", "speak with rdma-core's ibv_rc_pingpong");
  pingpong->add_option("--size", flags.pingpong.size, "bytes of a message")->capture_default_str();
  pingpong->add_option("--count", flags.pingpong.count, "messages each way")->capture_default_str();
  pingpong->add_option("--path-mtu", flags.pingpong.path_mtu, "bytes")->capture_default_str();
  pingpong->add_flag("--echo", flags.pingpong.echo, "send what was received, as ibv_rc_pingpong does");
  CLI::App* exchange = app.add_subcommand("exchange", "try all operations of verbs, in both directions");
  exchange->add_option("--largest", flags.largest, "bytes of the largest request")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  auto settings = Check(flags);
  if (!settings.ok()) return Fail(settings.status(), 2);
  if (rping->parsed()) settings->kind = Kind::kRping;
  if (pingpong->parsed()) settings->kind = Kind::kPingpong;

  daemon::DeviceSettings device_settings;
  device_settings.detection = os::Detection::Event();
  device_settings.seed = std::random_device()();  // else peers would take this run's requests for an earlier one's
  device_settings.pcap_path = flags.pcap;
  auto device = daemon::OpenDevice(flags.device, device_settings);
  if (!device.ok()) return Fail(device.status(), 2);
  os::EpollLoop loop;
  const absl::Status status = Run(flags, *settings, loop, (*device)->device());
  return status.ok() ? 0 : Fail(status, 1);
}

}  // namespace
}  // namespace tokamak::interop

int main(int argc, char** argv) { return tokamak::interop::Main(argc, argv); }
