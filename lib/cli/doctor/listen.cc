#include "lib/cli/doctor/listen.h"

#include <sys/signalfd.h>

#include <csignal>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "lib/base/log.h"
#include "lib/cli/doctor/pulls.h"
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

std::string AskingCommand(const std::string& device, const Opening& opening, const verbs::Address& address) {
  std::string command = absl::StrCat("tok doctor --peer ", address.ToString());
  if (verbs::soft::IsUdpDevice(device)) absl::StrAppend(&command, " --device soft:udp@ITS_IP");
  if (opening.by_tcp) absl::StrAppend(&command, " --cm tcp --address ITS_IP");
  if (const std::string flags = opening.FabricFlags(); !flags.empty()) absl::StrAppend(&command, " ", flags);
  return command;
}

absl::Status Listen(const std::string& device, const Opening& opening, uint16_t port, uint32_t netdev_mtu) {
  const os::FileDescriptor signals = TakeSignals();
  base::SetLogLevel(base::Severity::kWarning);  // that a device went away is one; of the endpoint's news none is
  os::EpollLoop loop(MeasuringDetection(UsableProcessors()));
  const auto opened = opening.Open(device);
  if (!opened.ok()) return opened.status();
  verbs::Device& opened_device = (*opened)->device();
  const auto station = Station::Make(loop, opened_device, 1, PullPlan().patience, [](absl::string_view) {});
  if (!station.ok()) return station.status();
  verbs::Address address = opened_device.address();
  address.port = port;
  const DeviceWords words = {device, opened_device.limits().active_mtu, netdev_mtu};
  if (absl::Status status = (*station)->Lend(address, words); !status.ok()) return status;
  address = (*station)->endpoint().address();
  std::cerr << "listening at " << address.ToString()
            << "; on the other host: " << AskingCommand(device, opening, address) << "; end with Ctrl-C" << std::endl;
  const os::FdWatch watch = loop.Watch(signals.get(), EPOLLIN, [&](uint32_t) { loop.Stop(); });
  loop.Run();
  return absl::OkStatus();
}

}  // namespace tokamak::cli::doctor
