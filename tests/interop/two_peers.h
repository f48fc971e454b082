// TwoPeers is two software NICs over UDP, on loopback, and a thread for each end that talks over
// them.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "lib/daemon/devices/device.h"
#include "lib/os/epoll_loop.h"
#include "tests/interop/link.h"

namespace tokamak::interop {

// How a link becomes connected.
using Join = std::function<absl::Status()>;

// One end's use of its link, which is joined when it says so.
using Part = std::function<absl::Status(Link& link, const Join& join)>;

class TwoPeers : public testing::Test {
 protected:
  TwoPeers() {
    for (int i : {0, 1}) {
      daemon::DeviceSettings settings;
      settings.seed = static_cast<uint64_t>(i) + 1;
      auto opened = daemon::OpenDevice("soft:udp@127.0.0." + std::to_string(i + 1), settings);
      EXPECT_TRUE(opened.ok()) << opened.status();
      if (opened.ok()) devices_[i] = *std::move(opened);
    }
  }

  verbs::Device& device(int index) { return devices_[index]->device(); }

  // Lets device `server` accept and device `client` connect, each on a thread; returns how the two
  // parts ended.
  std::pair<absl::Status, absl::Status> Meet(int server, const Part& serve, int client, const Part& ask) {
    std::promise<verbs::Address> listening;
    absl::Status served;
    std::thread other([&] { served = Serve(device(server), serve, listening); });
    const verbs::Address address = listening.get_future().get();
    const absl::Status asked = Ask(device(client), ask, address);
    other.join();
    return {served, asked};
  }

 private:
  static absl::Status Serve(verbs::Device& device, const Part& part, std::promise<verbs::Address>& listening) {
    os::EpollLoop loop;
    auto service = Service::Listen(loop, device, 0);
    listening.set_value(service.ok() ? (*service)->address() : verbs::Address());
    if (!service.ok()) return service.status();
    auto link = Link::Open(loop, device, LinkOptions());
    if (!link.ok()) return link.status();
    return part(**link, [&]() -> absl::Status {
      auto request = (*service)->Await(LinkOptions().patience);
      return request.ok() ? (*link)->Accept(**request) : request.status();
    });
  }

  static absl::Status Ask(verbs::Device& device, const Part& part, const verbs::Address& address) {
    os::EpollLoop loop;
    auto link = Link::Open(loop, device, LinkOptions());
    if (!link.ok()) return link.status();
    return part(**link, [&] { return (*link)->Connect(address); });
  }

  std::unique_ptr<daemon::OpenedDevice> devices_[2];
};

}  // namespace tokamak::interop
