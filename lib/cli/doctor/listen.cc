#include "lib/cli/doctor/listen.h"

#include <sys/signalfd.h>

#include <csignal>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "lib/cli/doctor/peer_desk.h"
#include "lib/cli/doctor/ping_pong.h"
#include "lib/cli/doctor/probe.h"
#include "lib/os/epoll_loop.h"
#include "lib/os/file_descriptor.h"
#include "lib/verbs/soft/udp/udp_fabric.h"

namespace tokamak::cli::doctor {

namespace {

// Blocked before any thread starts, so that no other thread takes them.
os::FileDescriptor TakeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return os::FileDescriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

}  // namespace

std::string AskingCommand(const ListenSettings& settings, uint16_t port) {
  std::string command = "tok doctor --peer THIS_HOST";
  if (port != kPeerPort) absl::StrAppend(&command, " --port ", port);
  if (verbs::soft::IsUdpDevice(settings.device)) absl::StrAppend(&command, " --device soft:udp@ITS_IP");
  if (settings.by_tcp) absl::StrAppend(&command, " --cm tcp --address ITS_IP");
  if (const std::string fabric = FlagsOf(settings.fabric); !fabric.empty()) absl::StrAppend(&command, " ", fabric);
  return command;
}

absl::Status Listen(const ListenSettings& settings) {
  const os::FileDescriptor signals = TakeSignals();
  os::EpollLoop loop(MeasuringDetection(UsableProcessors()));
  const auto opened =
      daemon::OpenDevice(settings.device, SettingsFor(settings.by_tcp, settings.address, settings.fabric));
  if (!opened.ok()) return opened.status();
  verbs::Device& device = (*opened)->device();
  const auto responder = PingPongResponder::Start(loop, device);
  if (!responder.ok()) return responder.status();
  PeerHello hello;
  hello.device = settings.device;
  hello.service = (*responder)->service();
  hello.active_mtu = device.limits().active_mtu;
  hello.netdev_mtu = settings.netdev_mtu;
  hello.by_tcp = settings.by_tcp;
  const auto desk = PeerDesk::Open(loop, settings.port, hello);
  if (!desk.ok()) return desk.status();
  std::cerr << "listening on TCP port " << (*desk)->port() << ", RDMA at " << hello.service.ToString()
            << "; on the other host: " << AskingCommand(settings, (*desk)->port()) << "; end with Ctrl-C" << std::endl;
  const os::FdWatch watch = loop.Watch(signals.get(), EPOLLIN, [&](uint32_t) { loop.Stop(); });
  loop.Run();
  return absl::OkStatus();
}

}  // namespace tokamak::cli::doctor
